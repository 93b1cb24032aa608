"""The tables of a run: lists of rows with the same keys, one list per file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._embed2d import coordinates, embed2d, projection
from manyview._types import Array, Matrix, Views
from manyview.base import kept_views, observed_columns, observed_part
from manyview.engines.affinity import nearest_neighbors
from manyview.engines.numpy.presence import observed_rows
from manyview.fuse import quiet_presence
from manyview.labels import n_neighbors
from manyview.models import Estimator
from manyview.reliability import Stability
from manyview.robust import RobustWMNMF

from .evidence import drawn

Rows = list[dict[str, Any]]

#: Observations drawn in the embedding: t-SNE of more takes minutes, and nobody can see them.
DRAWN = 5000
#: Observations whose pairs are counted over the refits.
PAIRED = 200
VOTES = "share of its nearest neighbours in the consensus that are in the same cluster"
REFITS = "how likely a refit on resampled data is to put it into the same cluster"
SHARE = "its largest share of the consensus"


def confidence(model: Estimator) -> tuple[Array, str]:
    """How sure each label is, from 0 to 1, and in words what that number is."""
    if isinstance(model, RobustWMNMF):
        return _of_own_cluster(model.confidence_, model.labels_), REFITS
    if model.assign_labels == "argmax":
        V = model.consensus_
        return V.max(axis=1) / np.maximum(V.sum(axis=1), 1e-300), SHARE
    V, labels = np.asarray(model.consensus_, dtype=float), model.labels_
    indices, _ = nearest_neighbors(V, n_neighbors(len(V)))
    return (labels[indices] == labels[:, None]).mean(axis=1), VOTES


def _of_own_cluster(confidence: Array, labels: Array) -> Array:
    return confidence[np.arange(len(labels)), np.maximum(labels, 0)]


def labels_table(ids: Sequence[str], labels: Array, sure: Array) -> Rows:
    return [
        {"id": i, "cluster": int(k), "confidence": float(c) if k >= 0 else None}
        for i, k, c in zip(ids, labels, sure, strict=True)
    ]


def described(model: Estimator, views: Views) -> Array:
    """Which views describe each observation (N×n_views), as the model has it."""
    if not isinstance(model, RobustWMNMF):
        return np.column_stack([observed_rows(X) for X in views.matrices])
    columns = observed_columns(views)
    if columns is None:
        return np.column_stack(quiet_presence(views, model.zero_rows_))
    # Columns that nobody observed were left out of the fit, and make no row incomplete.
    here = np.zeros((views.n_samples, len(views)), dtype=bool)
    part = observed_part(views, columns)
    here[:, kept_views(columns)] = np.column_stack(quiet_presence(part, model.zero_rows_))
    return here


def origin_of_weights(model: Estimator) -> str:
    """Where the view weights come from: "learned", "equal" or "given"."""
    if isinstance(model, RobustWMNMF):
        return model.view_weights if isinstance(model.view_weights, str) else "given"
    return "learned" if model.learn_view_weights else "equal"


def view_weights_table(model: Estimator, views: Views, here: Array) -> Rows:
    """What is said of every view; of the robust method also how it was scaled, and the weights
    learned, whoever gave those that were used."""
    reliance, rows = model.reliance_, []
    for s, (name, X) in enumerate(zip(views.names, views.matrices, strict=True)):
        row: dict[str, Any] = {"view": name, "features": X.shape[1]}
        row["observations"] = int(here[:, s].sum())
        row["weight"] = model.view_weights_[s]
        if isinstance(model, RobustWMNMF):
            row["learned_weight"] = model.learned_view_weights_[s]
        row["mean_reliance"] = float(reliance[:, s].mean())
        if isinstance(model, RobustWMNMF):
            row["scaling"] = model.scaling_[name]
        rows.append(row)
    return rows


def sample_weights_table(
    model: Estimator, views: Views, ids: Sequence[str], labels: Array, here: Array
) -> Rows:
    """Weight w and reliance of every observation in every view (empty where the view is missing),
    and how unusual the latter is."""
    unusual = departures(model.reliance_, labels, here)
    w, reliance = (np.where(here, a, np.nan) for a in (model.sample_weights_, model.reliance_))
    rows = []
    for i, id_ in enumerate(ids):
        row: dict[str, Any] = {"id": id_, "cluster": int(labels[i])}
        row |= {f"weight:{name}": w[i, s] for s, name in enumerate(views.names)}
        row |= {f"reliance:{name}": reliance[i, s] for s, name in enumerate(views.names)}
        rows.append(row | {"departure": unusual[i]})
    return rows


def departures(reliance: Array, labels: Array, here: Array) -> Array:
    """Share of an observation's reliance that lies elsewhere than is usual in its cluster, in [0, 1].

    Usual is the median of the cluster over the views the observation has: to lack a view is no
    departure. NaN for an observation that no view supports.
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


def components_table(model: Estimator, views: Views, s: int) -> Rows:
    U = model.components_[s]
    names = feature_names(views, s)
    if len(names) != U.shape[1]:  # distances are factorised by their principal coordinates
        names = [f"coordinate_{j}" for j in range(U.shape[1])]
    return [
        {"feature": name, **{f"component_{k}": U[k, j] for k in range(len(U))}}
        for j, name in enumerate(names)
    ]


def embedding_table(model: Estimator, ids: Sequence[str], labels: Array, most: int = DRAWN) -> Rows:
    rows = drawn(labels, most)
    Z = embed2d(coordinates(model)[rows])
    return [
        {"id": ids[i], "x": z[0], "y": z[1], "cluster": int(labels[i])}
        for i, z in zip(rows.tolist(), Z, strict=True)
    ]


def projection_of(model: Estimator, labels: Array, most: int = DRAWN) -> str:
    """How the embedding was made flat."""
    return projection(coordinates(model)[drawn(labels, most)])


def agreement_table(matrix: Array, names: Sequence[str]) -> Rows:
    return [
        {"view": name, **{f"with:{other}": m for other, m in zip(names, row, strict=True)}}
        for name, row in zip(names, matrix, strict=True)
    ]


def history_table(model: Estimator) -> Rows:
    history = {name: np.asarray(column) for name, column in model.history_.items()}
    return [dict(zip(history, row, strict=True)) for row in zip(*history.values(), strict=True)]


def stability_table(ids: Sequence[str], stable: Stability) -> Rows:
    """Each observation that has a cluster, and how much of it came back around it."""
    return [
        {"id": ids[i], "cluster": int(stable.labels[i]), "stability": stable.observations[i]}
        for i in np.flatnonzero(stable.labels >= 0).tolist()
    ]


def clusters_table(labels: Array, sure: Array, stable: Stability | None) -> Rows:
    rows = []
    for k in np.unique(labels[labels >= 0]):
        own = labels == k
        row: dict[str, Any] = {
            "cluster": int(k),
            "size": int(own.sum()),
            "share": float(own.mean()),
            "mean_confidence": float(sure[own].mean()),
        }
        if stable is not None:
            row["stability"] = stable.clusters[int(k)]
        rows.append(row)
    return rows


def consensus_table(ids: Sequence[str], stable: Stability) -> Rows:
    """How often two observations were in one cluster, of the refits that saw both; sorted by cluster."""
    rows = drawn(stable.labels, PAIRED)
    rows = rows[np.lexsort((-stable.observations[rows], stable.labels[rows]))]
    shares = stable.together(rows)
    return [
        {"id": ids[i], "cluster": int(stable.labels[i])}
        | {f"{j + 1}:{ids[rows[j]]}": share for j, share in enumerate(shares[at].tolist())}
        for at, i in enumerate(rows.tolist())
    ]


def selection_table(selection: Any) -> Rows:
    """The scores of every method and candidate, as `Selection.table` has them."""
    columns = selection.table
    listed = zip(*(columns[name].tolist() for name in columns), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in listed]


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
