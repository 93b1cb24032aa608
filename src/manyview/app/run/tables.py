"""The tables of a fit, a DataFrame for each file, and what `run.json` says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix, Views
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
    top = top_features(model, found.shown, shown)
    leading = [] if found.leading is None else found.leading.to_dict("records")
    named, parallel = leading_features(found.shown, shown, leading or top)
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
    tables |= {"top_features": top, "heatmap": heat, "baseline": found.rivals}
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
    """Share of a sample's reliance that lies elsewhere than is usual in its cluster, in [0, 1].

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


TOP = 10


def top_features(
    model: Estimator, views: Views, labels: Array, top: int = TOP
) -> list[dict[str, Any]]:
    """The features of largest |effect| per cluster and view.

    The effect is the standardized mean difference (Cohen's d): the mean of the cluster minus that
    of all other samples, in pooled standard deviations. It does not depend on units.
    """
    rows: list[dict[str, Any]] = []
    own_parts = parts_are_clusters(model)
    clusters = np.unique(labels[labels >= 0])
    for s, (name, X) in enumerate(zip(views.names, views.matrices, strict=True)):
        names = feature_names(views, s)
        center = _center(X)
        sums = [_sums(X[labels == k], center) for k in clusters]
        total = tuple(np.sum([part[m] for part in sums], axis=0) for m in range(3))
        for k, inside in zip(clusters, sums, strict=True):
            rest = tuple(t - i for t, i in zip(total, inside, strict=True))
            effect, mean, mean_rest = _effect(inside, rest)
            # A mean that differs from 0 only by the rounding of its shift is 0.
            there, elsewhere = (
                np.where(np.abs(m + center) > 1e-12 * np.abs(center), m + center, 0.0)
                for m in (mean, mean_rest)
            )
            for rank, j in enumerate(np.argsort(-np.abs(effect), kind="stable")[:top]):
                if effect[j] == 0:
                    break
                row = {
                    "cluster": int(k),
                    "view": name,
                    "rank": rank + 1,
                    "feature": names[j],
                    "effect": effect[j],
                    "mean_in_cluster": there[j],
                    "mean_elsewhere": elsewhere[j],
                }
                if own_parts and model.components_[s].shape[1] == len(names):
                    row["share_of_part"] = model.components_[s][k, j]
                rows.append(row)
    return rows


def parts_are_clusters(model: Estimator) -> bool:
    """Whether row k of ``components_`` describes cluster k."""
    return isinstance(model, RobustWMNMF) or model.assign_labels == "argmax"


def _center(X: Matrix) -> Array:
    """What to subtract so that squares do not cancel; zero for sparse views, which stay sparse."""
    if sp.issparse(X):
        return np.zeros(X.shape[1])
    n = np.maximum(np.count_nonzero(~np.isnan(X), axis=0), 1)
    return np.nansum(X, axis=0, dtype=float) / n


def _sums(X: Matrix, center: Array) -> tuple[Array, Array, Array]:
    """Number of values, their sum and sum of squares, per feature; NaN does not count."""
    if sp.issparse(X):
        X = X.astype(float)
        n = np.full(X.shape[1], X.shape[0], dtype=float)
        return n, np.ravel(X.sum(axis=0)), np.ravel(X.multiply(X).sum(axis=0))
    seen = ~np.isnan(X)
    X = np.where(seen, X - center, 0)
    return seen.sum(axis=0).astype(float), X.sum(axis=0), (X**2).sum(axis=0)


def _effect(inside: tuple[Array, ...], rest: tuple[Array, ...]) -> tuple[Array, Array, Array]:
    (n, sum_, square), (n_rest, sum_rest, square_rest) = inside, rest
    mean, mean_rest = sum_ / np.maximum(n, 1), sum_rest / np.maximum(n_rest, 1)
    within = square - n * mean**2 + square_rest - n_rest * mean_rest**2
    sd = np.sqrt(np.maximum(within, 0) / np.maximum(n + n_rest - 2, 1))
    n_all = np.maximum(n + n_rest, 1)
    overall = (square + square_rest) / n_all - ((sum_ + sum_rest) / n_all) ** 2
    # A feature constant in the cluster and outside it would have an infinite effect.
    sd = np.maximum(sd, 0.01 * np.sqrt(np.maximum(overall, 0)))
    told = (n > 0) & (n_rest > 0) & (sd > 0)
    effect = np.divide(mean - mean_rest, sd, out=np.zeros_like(sd), where=told)
    return effect, mean, mean_rest
