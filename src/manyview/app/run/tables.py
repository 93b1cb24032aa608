"""The tables of a fit, a DataFrame for each file, and what `run.json` says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manyview._types import Array, Views
from manyview.models import Estimator
from manyview.outcomes.align import frame
from manyview.plot.model import coordinates, embed2d, projection
from manyview.robust import RobustWMNMF

from .evidence import Findings, drawn, feature_names, shares_measurements
from .features import heatmap, leading_features
from .record import component_files

#: Samples drawn in the embedding: t-SNE of more takes minutes, and dots overlap.
DRAWN = 5000
#: Samples whose pairs are counted over the refits.
PAIRED = 200


def tables_of(
    model: Estimator, views: Views, ids: Sequence[str], found: Findings
) -> tuple[dict[str, Any], dict[str, Any]]:
    """File name → table; and what only `run.json` says."""
    everyone, names = np.array(ids, dtype=object), views.names
    labels, sure, here, stable = found.labels, found.sure, found.here, found.stable
    robust, known = isinstance(model, RobustWMNMF), labels >= 0
    w, reliance = (np.where(here, a, np.nan) for a in (model.sample_weights_, model.reliance_))
    sizes = {int(k): labels == k for k in np.unique(labels[known])}
    chosen = drawn(labels, DRAWN)
    flat, shown = coordinates(model)[chosen], found.labels[found.rows]
    xy = embed2d(flat)
    leading = [] if found.leading is None else found.leading.to_dict("records")
    named, parallel = leading_features(found.shown, shown, leading)
    logged = model.log_reasons_ if robust else ()
    heat, features = heatmap(
        found.shown, shown, sure[found.rows], everyone[found.rows], named, list(logged)
    )
    tables: dict[str, Any] = {
        "labels": {"id": everyone, "cluster": labels, "confidence": np.where(known, sure, np.nan)},
        "clusters": {
            "cluster": sizes,
            "size": [own.sum() for own in sizes.values()],
            "share": [own.mean() for own in sizes.values()],
            "mean_confidence": [sure[own].mean() for own in sizes.values()],
            **({"stability": [stable.clusters[k] for k in sizes]} if stable else {}),
        },
        "view_weights": {
            "view": names,
            "features": [X.shape[1] for X in views.matrices],
            "samples": here.sum(axis=0),
            "weight": model.view_weights_,
            **({"learned_weight": model.learned_view_weights_} if robust else {}),
            "mean_reliance": model.reliance_.mean(axis=0),
            **(
                {
                    "cluster_structure": model.cluster_structure_,
                    "structure_error": model.cluster_structure_error_,
                }
                if robust
                else {}
            ),
            **({"scaling": [model.scaling_[name] for name in names]} if robust else {}),
        },
        "sample_weights": {
            "id": everyone,
            "cluster": labels,
            **_by_name("weight:", names, w.T),
            **_by_name("reliance:", names, reliance.T),
            **({"agreement": model.sample_agreement_} if robust else {}),
            "departure": departures(model.reliance_, labels, here),
        },
        "embedding": {
            "id": everyone[chosen],
            "x": xy[:, 0],
            "y": xy[:, 1],
            "cluster": labels[chosen],
        },
        "agreement": {"view": names, **_by_name("with:", names, found.agreement.T)},
        "redundancy": {"view": names, **_by_name("with:", names, found.redundancy.T)},
        "history": model.history_,
    }
    if robust:
        tables["cluster_view_weights"] = {
            "cluster": range(len(model.cluster_view_weights_)),
            **_by_name("view:", names, model.cluster_view_weights_.T),
        }
    tables |= {"heatmap": heat, "baseline": found.rivals}
    tables |= {"cluster_features": named, "parallel_features": parallel}
    if found.leading is not None:
        tables["markers"] = found.leading
    if found.without_views is not None:
        tables["leave_view_out"] = [
            {
                "view": view.view,
                "agreement": view.agreement,
                "features": len(view.features),
                "features_that_differ": int((view.q_value <= 0.05).any(axis=0).sum()),
            }
            for view in found.without_views.views
        ]
    tables["fusion"] = found.fusion
    if found.fusion:
        tables["fusion_labels"] = {"id": everyone, **found.fusion_labels}
    if stable is not None:
        tables["stability"] = {
            "id": everyone[known], "cluster": labels[known], "stability": stable.samples[known]
        }  # fmt: skip
        rows = drawn(labels, PAIRED)
        rows = rows[np.lexsort((-stable.samples[rows], labels[rows]))]
        # How often two samples were in one cluster, of the refits that saw both.
        shares = _by_name(
            "", [f"{j + 1}:{ids[i]}" for j, i in enumerate(rows)], stable.together(rows).T
        )
        tables["consensus"] = {"id": everyone[rows], "cluster": labels[rows], **shares}
    for s, file in enumerate(component_files(names)):
        U, own = model.components_[s], feature_names(views, s)
        if len(own) != U.shape[1]:  # distances are factorized by their principal coordinates
            own = [f"coordinate_{j}" for j in range(U.shape[1])]
        tables[file.removesuffix(".csv")] = {
            "feature": own, **{f"component_{k}": row for k, row in enumerate(U)}
        }  # fmt: skip
    about = {
        "confidence_is": found.sure_is,
        "parts_are_clusters": parts_are_clusters(model),
        "stability": None if stable is None else {"runs": stable.n_runs, "ari": stable.score},
        "refits_share": stable is not None and shares_measurements(model, len(labels)),
        "no_stability": found.no_stability,
        "weights_are": origin_of_weights(model),
        "logarithms": dict(logged) if robust else {},
        "heatmap": features,
        "not_left_out": found.not_left_out,
        "n_tested": found.n_tested,
        "batches_aligned": robust and model.needs_batch,
        "projection": projection(flat),
    }
    files = {name: frame(t) if isinstance(t, dict) else t for name, t in tables.items()}
    return {f"{name}.csv": table for name, table in files.items() if len(table)}, about


def _by_name(prefix: str, names: Sequence[str], columns: Array) -> dict[str, Array]:
    return {f"{prefix}{name}": column for name, column in zip(names, columns, strict=True)}


def origin_of_weights(model: Estimator) -> str:
    """Where the view weights come from: "learned", "equal" or "given"."""
    if isinstance(model, RobustWMNMF):
        return model.view_weights if isinstance(model.view_weights, str) else "given"
    return "learned" if model.learn_view_weights else "equal"


def departures(reliance: Array, labels: Array, here: Array) -> Array:
    """Share of a sample's reliance that differs from what is usual in its cluster, in [0, 1].

    Usual is the median of the cluster over the views the sample has: to lack a view is no
    departure. NaN for a sample that no view supports.
    """
    found = np.full(len(labels), np.nan)
    for k in np.unique(labels[labels >= 0]):
        rows = labels == k
        usual = np.median(reliance[rows], axis=0) * here[rows]
        total = usual.sum(axis=1, keepdims=True)
        usual = np.divide(usual, total, out=reliance[rows].astype(float), where=total > 0)
        found[rows] = np.abs(reliance[rows] - usual).sum(axis=1) / 2
    found[~reliance.any(axis=1)] = np.nan
    return found


def parts_are_clusters(model: Estimator) -> bool:
    """Whether row k of ``components_`` describes cluster k."""
    return isinstance(model, RobustWMNMF) or model.assign_labels == "argmax"
