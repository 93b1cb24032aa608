"""What a run has to say of a fitted model, and the tables that say it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Views
from manyview.models import Estimator, number_of_clusters
from manyview.outcomes import markers
from manyview.outcomes.mark import Markers, tested_markers
from manyview.reliability import Stability
from manyview.robust import RobustWMNMF
from manyview.views.containers import Collection, Item

from . import evidence, tables
from .evidence import clusters_without, drawn, refitted, shares_measurements
from .notes import Measured, warnings_about
from .record import component_files
from .tables import feature_names, parts_are_clusters, top_features

Rows = list[dict[str, Any]]

#: Features listed per cluster and view.
LISTED = 50
#: Entries of all views up to which every feature is tested: some seconds.
TESTED = 80_000_000
#: Views up to which the model is fitted again without each.
MOST_VIEWS = 12
#: Observations and features of the heat map.
COLUMNS, FEATURES = 300, 48


def tested(model: Estimator, views: Views, labels: Array, refits: bool) -> tuple[Rows, Rows, str]:
    """Leading features with tests; a row per view on the clusters found without it; why not, if so."""
    entries = views.n_samples * sum(views.n_features)
    if len(np.unique(labels[labels >= 0])) < 2:
        return [], [], "there is one cluster only"
    if entries > TESTED:
        return [], [], f"the views hold {entries} numbers, more than are tested unasked"
    given = _named(views)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the fit of all views has said them
        found = markers(labels, given)
        honest, why = None, "no refits were asked for"
        if refits:
            honest, why = _without_views(model, given, len(views), views.n_samples)
    rows = _leading(found, honest)
    left_out = [] if honest is None else _left_out(honest)
    return rows, left_out, why


def _named(views: Views) -> Collection:
    """The views with a name for every feature, as the other tables call them."""
    items = [
        Item(X, views.sample_names, np.array(feature_names(views, s), dtype=object))
        for s, X in enumerate(views.matrices)
    ]
    return Collection(list(views.names), items, by_name=True)


def _without_views(
    model: Estimator, views: Collection, n_views: int, n_samples: int
) -> tuple[Markers | None, str]:
    if not 2 <= n_views <= MOST_VIEWS:
        return None, (
            "there is one view only" if n_views < 2 else f"there are more than {MOST_VIEWS} views"
        )
    try:
        return tested_markers(model, views, without=clusters_without(model, n_samples)), ""
    except ValueError as error:  # a rest of the views that the model does not take
        return None, str(error)


def _leading(found: Markers, honest: Markers | None) -> Rows:
    table = found.top(LISTED, max_q=None)
    rows: Rows = []
    places = {
        view.view: {feature: j for j, feature in enumerate(view.features)} for view in found.views
    }
    again = {} if honest is None else {view.view: view for view in honest.views}
    number = {cluster: k for k, cluster in enumerate(found.clusters)}
    for row in table.to_dict("records"):
        if honest is not None:
            k, j = number[row["cluster"]], places[row["view"]][row["feature"]]
            row["q_without_view"] = float(again[row["view"]].q_value[k, j])
        rows.append(row)
    return rows


def _left_out(honest: Markers) -> Rows:
    return [
        {
            "view": view.view,
            "agreement": view.agreement,
            "features": len(view.features),
            "features_that_differ": int((view.q_value <= 0.05).any(axis=0).sum()),
        }
        for view in honest.views
    ]


def heatmap(
    views: Views, labels: Array, sure: Array, ids: list[str], leading: Rows
) -> tuple[Rows, list[dict[str, Any]]]:
    """z-scores of the leading features, a row per observation; and what the columns are."""
    picked = _picked(leading)
    if not picked:
        return [], []
    rows = drawn(labels, COLUMNS)
    rows = rows[np.lexsort((-sure[rows], labels[rows]))]
    columns: list[Array] = []
    about: list[dict[str, Any]] = []
    for s, name in enumerate(views.names):
        places = {feature: j for j, feature in enumerate(feature_names(views, s))}
        own = [row for row in picked if row["view"] == name]
        at = [places[row["feature"]] for row in own]
        if not own:
            continue
        X: Any = views.matrices[s][:, at]
        Z = _z(X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float))[rows]
        columns += [Z[:, j] for j in range(len(at))]
        about += [
            {"view": name, "feature": row["feature"], "cluster": row["cluster"]} for row in own
        ]
    order = sorted(range(len(about)), key=lambda j: about[j]["cluster"])
    about = [about[j] for j in order]
    for n, item in enumerate(about):  # two views may have a feature of one name
        item["heading"] = f"{n + 1}:{item['view']}:{item['feature']}"
    table = [
        {"id": ids[i], "cluster": int(labels[i])}
        | {item["heading"]: columns[j][at] for item, j in zip(about, order, strict=True)}
        for at, i in enumerate(rows.tolist())
    ]
    return table, about


def _picked(leading: Rows) -> Rows:
    """The same number of features of every cluster and view, each feature once."""
    groups: dict[tuple[Any, Any], Rows] = {}
    for row in leading:
        groups.setdefault((row["cluster"], row["view"]), []).append(row)
    each = max(1, min(5, FEATURES // max(len(groups), 1)))
    seen: set[tuple[Any, Any]] = set()
    picked: Rows = []
    for rows in groups.values():
        fresh = [row for row in rows if (row["view"], row["feature"]) not in seen][:each]
        seen |= {(row["view"], row["feature"]) for row in fresh}
        picked += fresh
    return picked


def _z(X: Array) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # features that nobody here has
        mean, sd = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    return (X - mean) / np.where(sd > 0, sd, 1)


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
    leading, left_out, why_not = tested(model, shown, labels[rows], wanted)
    tell("measuring how much the views agree")
    matrix, repeated = evidence.view_agreement(model, shown)
    described = tables.described(model, views)
    tell("drawing the consensus in two dimensions")
    top = top_features(model, shown, labels[rows])
    drawn = heatmap(shown, labels[rows], sure[rows], [ids[i] for i in rows], leading or top)
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
