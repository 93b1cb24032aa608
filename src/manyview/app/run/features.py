"""Which features set a cluster apart from the rest, view by view."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix, Views
from manyview.models import Estimator
from manyview.robust import RobustWMNMF

TOP = 10


def top_features(
    model: Estimator, views: Views, labels: Array, top: int = TOP
) -> list[dict[str, Any]]:
    """The features of largest |effect| per cluster and view.

    The effect is the standardised mean difference (Cohen's d): the mean of the cluster minus that
    of all other observations, in pooled standard deviations. It does not depend on units.
    """
    rows: list[dict[str, Any]] = []
    own_parts = parts_are_clusters(model)
    clusters = np.unique(labels[labels >= 0])
    for s, (name, X) in enumerate(zip(views.names, views.matrices, strict=True)):
        names = feature_names(views, s)
        centre = _centre(X)
        sums = [_sums(X[labels == k], centre) for k in clusters]
        total = tuple(np.sum([part[m] for part in sums], axis=0) for m in range(3))
        for k, inside in zip(clusters, sums, strict=True):
            rest = tuple(t - i for t, i in zip(total, inside, strict=True))
            effect, mean, mean_rest = _effect(inside, rest)
            for rank, j in enumerate(np.argsort(-np.abs(effect), kind="stable")[:top]):
                if effect[j] == 0:
                    break
                row = {
                    "cluster": int(k),
                    "view": name,
                    "rank": rank + 1,
                    "feature": names[j],
                    "effect": effect[j],
                    "mean_in_cluster": mean[j] + centre[j],
                    "mean_elsewhere": mean_rest[j] + centre[j],
                }
                if own_parts and model.components_[s].shape[1] == len(names):
                    row["share_of_part"] = model.components_[s][k, j]
                rows.append(row)
    return rows


def parts_are_clusters(model: Estimator) -> bool:
    """Whether row k of ``components_`` describes cluster k."""
    return isinstance(model, RobustWMNMF) or model.assign_labels == "argmax"


def feature_names(views: Views, s: int) -> list[str]:
    known = views.feature_names[s]
    if known is not None:
        return [str(name) for name in known]
    return [f"{views.names[s]}_{j}" for j in range(views.n_features[s])]


def _centre(X: Matrix) -> Array:
    """What to subtract so that squares do not cancel; zero for sparse views, which stay sparse."""
    if sp.issparse(X):
        return np.zeros(X.shape[1])
    n = np.maximum(np.count_nonzero(~np.isnan(X), axis=0), 1)
    return np.nansum(X, axis=0, dtype=float) / n


def _sums(X: Matrix, centre: Array) -> tuple[Array, Array, Array]:
    """Number of values, their sum and sum of squares, per feature; NaN does not count."""
    if sp.issparse(X):
        X = X.astype(float)
        n = np.full(X.shape[1], X.shape[0], dtype=float)
        return n, np.ravel(X.sum(axis=0)), np.ravel(X.multiply(X).sum(axis=0))
    seen = ~np.isnan(X)
    X = np.where(seen, X - centre, 0)
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
