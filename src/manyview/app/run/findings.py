"""What a run has to say of a fitted model, and the tables that say it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyview._types import Array, Views
from manyview.models import Estimator, number_of_clusters
from manyview.reliability import Stability
from manyview.robust import RobustWMNMF

from . import evidence, marks, tables
from .features import parts_are_clusters, top_features
from .notes import Measured, warnings_about
from .record import component_files
from .refits import refitted, shares_measurements

#: Tables that a run does without where there is nothing to say.
MAY_LACK = ("markers.csv", "leave_view_out.csv", "heatmap.csv", "consensus.csv", "stability.csv")


@dataclass(frozen=True)
class Findings:
    """What was found out about a fitted model; observations not looked at have NaN."""

    labels: Array
    #: How sure every label is, and what that number means.
    sure: Array
    sure_is: str
    #: The plain clustering beside the model's; empty where it was left out.
    rivals: tables.Rows
    stable: Stability | None
    no_stability: str | None
    markers: tables.Rows
    left_out: tables.Rows
    not_left_out: str
    agreement: Array
    redundancy: Array
    described: Array
    top: tables.Rows
    heatmap: tables.Rows
    heatmap_features: Any


def find_out(
    model: Estimator, views: Views, ids: list[str], truth: Any, n_runs: int | None, tell: Callable
) -> Findings:
    """Compare, refit, test and measure; ``tell`` hears of every step that takes time."""
    labels = np.asarray(model.labels_)
    seed = model.random_state if isinstance(model.random_state, int) else 0
    n_clusters = number_of_clusters(model)
    sure, sure_is = tables.confidence(model)
    tell("comparing with a plain clustering")
    tabled = evidence.tabled(views)
    shown, rows = evidence.looked_at(tabled, labels)
    zs = evidence.z_scored(shown)
    rival = None if shown is not tabled else evidence.rival_labels(zs, n_clusters, seed)
    method = type(model).__name__
    rivals = [] if rival is None else evidence.rivalry(method, labels, rival, truth)
    tell("refitting parts of the data, to see which clusters come back")
    n_runs = evidence.n_refits(views.n_samples) if n_runs is None else n_runs
    n_runs = n_runs if shown is tabled else 0
    stable = refitted(model, views, n_runs, seed, tell)
    tell("testing features, and each view on clusters found without it")
    wanted = stable is not None and shown is views
    leading, left_out, why_not = marks.tested(model, shown, labels[rows], wanted)
    tell("measuring how much the views agree")
    matrix, repeated = evidence.view_agreement(model, shown)
    described = tables.described(model, views)
    tell("drawing the consensus in two dimensions")
    top = top_features(model, shown, labels[rows])
    drawn = marks.heatmap(shown, labels[rows], sure[rows], [ids[i] for i in rows], leading or top)
    no_stability = evidence.no_refits(model, views.n_samples, n_runs)
    return Findings(
        labels, sure, sure_is, rivals, stable, no_stability, leading, left_out, why_not,
        matrix, repeated, described, top, *drawn,
    )  # fmt: skip


def tables_of(
    model: Estimator, views: Views, ids: list[str], found: Findings
) -> dict[str, tables.Rows]:
    """File name → rows."""
    labels, sure, stable = found.labels, found.sure, found.stable
    files = {
        "labels.csv": tables.labels_table(ids, labels, sure),
        "clusters.csv": tables.clusters_table(labels, sure, stable),
        "view_weights.csv": tables.view_weights_table(model, views, found.described),
        "sample_weights.csv": tables.sample_weights_table(
            model, views, ids, labels, found.described
        ),
        "top_features.csv": found.top,
        "embedding.csv": tables.embedding_table(model, ids, labels),
        "agreement.csv": tables.agreement_table(found.agreement, views.names),
        "redundancy.csv": tables.agreement_table(found.redundancy, views.names),
        "history.csv": tables.history_table(model),
        "stability.csv": [] if stable is None else tables.stability_table(ids, stable),
        "markers.csv": found.markers,
        "leave_view_out.csv": found.left_out,
        "heatmap.csv": found.heatmap,
        "consensus.csv": [] if stable is None else tables.consensus_table(ids, stable),
    }
    files = {name: rows for name, rows in files.items() if rows or name not in MAY_LACK}
    if found.rivals:
        files["baseline.csv"] = found.rivals
    for s, name in enumerate(component_files(views.names)):
        files[name] = tables.components_table(model, views, s)
    return files


def said_of(model: Estimator, found: Findings) -> dict[str, Any]:
    """What only `run.json` says."""
    stable = found.stable
    return {
        "confidence_is": found.sure_is,
        "parts_are_clusters": parts_are_clusters(model),
        "stability": None if stable is None else {"runs": stable.n_runs, "ari": stable.score},
        "refits_share": stable is not None and shares_measurements(model, len(found.labels)),
        "no_stability": found.no_stability,
        "weights_are": tables.origin_of_weights(model),
        "logarithms": model.log_reasons_ if isinstance(model, RobustWMNMF) else {},
        "heatmap": found.heatmap_features,
        "not_left_out": found.not_left_out,
        "projection": tables.projection_of(model, found.labels),
    }


def notes_on(model: Estimator, views: Views, ids: list[str], found: Findings) -> list[str]:
    """Sentences of warning."""
    measured = Measured(
        found.described, found.labels, found.agreement, found.redundancy, found.stable, found.rivals
    )
    return warnings_about(model, views, ids, measured)
