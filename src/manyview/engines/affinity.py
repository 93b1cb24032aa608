"""The k-nearest-neighbor affinity of one view."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances_chunked
from sklearn.metrics.pairwise import nan_euclidean_distances
from sklearn.utils.extmath import row_norms

from manyview._arrays import as_numbers, is_tensor, namespace
from manyview._types import Array, Matrix
from manyview.engines.numpy.neighbors import (
    TREE_FEATURES,
    SquaredGaps,
    equal_share,
    exact_neighbors,
    index_neighbors,
    merged,
    nearest,
    product_error,
    streamed_neighbors,
    take_rows,
    use_index,
)
from manyview.engines.numpy.presence import has_nan
from manyview.engines.numpy.sources import is_streamed, reading, squared_norms
from manyview.engines.protocols import DeviceView, Remote, engine_part
from manyview.engines.threads import Threads, blocks

AFFINITIES = ("binary", "heat", "cosine")
#: Above this many samples the automatic heat width is a mean over this many rows, not all.
WIDTH_SAMPLE = 4096
#: Additional neighbors requested from an approximate index, which improves its lists.
EXTRA = 8


def nearest_neighbors(
    X: Matrix, n_neighbors: int, queries: Matrix | None = None
) -> tuple[Array, Array]:
    """Indices and squared Euclidean distances (each N×k) of the nearest rows of X.

    Without ``queries`` the rows of X ask about each other and no row is its own neighbor. With
    NaN among dense entries, distances use the features both rows have, rescaled to all; a pair
    that shares none is infinitely far. On a device all pairs are looked at. Of rows at equal distance
    (see `engines.numpy.neighbors`) those with smaller indices are taken.
    """
    if hasattr(X, "neighbors"):  # rows on workers find theirs there
        return X.neighbors(n_neighbors)
    if is_streamed(X) or is_streamed(queries):
        return streamed_neighbors(X, n_neighbors, queries)
    if on_device(X):
        return engine_part("torch", "neighbors").nearest_rows(X, n_neighbors, queries)
    if has_nan(X) or (queries is not None and has_nan(queries)):
        return _neighbors_with_holes(X, n_neighbors, queries)
    available = X.shape[0] - (queries is None)
    k = min(n_neighbors, available)
    if queries is None and (sp.issparse(X) or X.shape[1] > TREE_FEATURES) and use_index(available):
        # The best of a few more from an approximate index, by their exact distances.
        near = index_neighbors(X, min(k + EXTRA, available), seed=0)
        rows = np.repeat(np.arange(len(near)), near.shape[1])
        squared = SquaredGaps(X).pairs(rows, near.ravel()).reshape(near.shape)
        return merged([(near, squared)], k, equal_share(X.dtype))
    return exact_neighbors(X, k, queries)


def on_device(X: Any) -> bool:
    """Tensors, and views that live on a device."""
    return is_tensor(X) or isinstance(X, DeviceView)


def _neighbors_with_holes(X: Array, n_neighbors: int, queries: Array | None) -> tuple[Array, Array]:
    rows = X if queries is None else queries
    k = min(n_neighbors, X.shape[0] - (queries is None))
    indices, squared = np.empty((len(rows), k), dtype=int), np.empty((len(rows), k))
    lengths = np.sqrt(np.nansum(rows * rows, axis=1, dtype=float))
    # Few shared features are rescaled to all, and so are their errors.
    error = product_error(X.dtype, X.shape[1]) * X.shape[1]
    slack = error * (lengths + np.sqrt(np.nansum(X * X, axis=1, dtype=float).max())) ** 2
    for b in blocks(slice(0, len(rows)), max(1, 2**22 // X.shape[0])):
        d = nan_euclidean_distances(rows[b], X, squared=True)
        d[np.isnan(d)] = np.inf
        again = partial(_shared_gaps, rows[b], X)
        own = b.start if queries is None else None
        indices[b], squared[b] = nearest(d, k, own, slack[b], again, equal_share(X.dtype))
    return indices, squared


def _shared_gaps(rows: Array, X: Array, i: Array, j: Array) -> Array:
    """Squared distances of pairs over the features both have, rescaled to all."""
    squared = np.empty(len(i))
    for b in blocks(slice(0, len(i)), max(1, 2**21 // X.shape[1])):
        gap = rows[i[b]].astype(float) - X[j[b]]
        shared = (~np.isnan(gap)).sum(axis=1)
        total = np.nansum(gap * gap, axis=1) * X.shape[1]
        squared[b] = np.divide(total, shared, out=np.full(len(gap), np.inf), where=shared > 0)
    return squared


def affinity(
    X: Matrix,
    n_neighbors: int = 5,
    kind: str = "binary",
    width: float | None = None,
    mutual: bool = False,
) -> sp.csr_array:
    """Symmetric sparse affinity of the rows of X, without self loops.

    Neighbors are always Euclidean. Weights: "binary" 1; "heat" exp(−d²/width), where ``width`` is
    σ² and ``None`` means 2t² with t the mean distance of all pairs; "cosine" the cosine similarity.
    An edge is kept when either end names the other (union), or both do (``mutual``).
    """
    indices, squared = nearest_neighbors(X, n_neighbors)
    if kind == "heat" and width is None:
        width = automatic_width(X)
    if on_device(X):
        return engine_part("torch", "graph").united(
            indices, _weights(X, X, indices, squared, kind, width), mutual
        )
    A = _weighted_edges(X, X, indices, squared, kind, width)
    return (A.minimum(A.T) if mutual else A.maximum(A.T)).tocsr()


def inverse_distances(squared: Array) -> Array:
    """Weights ∝ 1/d² of the neighbors of every row (N×k), adding up to 1.

    A neighbor at distance 0 takes all, so that what is interpolated by them is exact at known rows.
    """
    d = np.clip(squared, np.finfo(float).tiny, np.finfo(float).max, dtype=float)
    closeness = d.min(axis=1, keepdims=True) / d
    return closeness / closeness.sum(axis=1, keepdims=True)


def links(
    queries: Matrix,
    X: Matrix,
    n_neighbors: int = 5,
    kind: str = "binary",
    width: float | None = None,
) -> sp.csr_array:
    """Affinity of new rows to their nearest rows of X (queries × N), with the weights of `affinity`."""
    indices, squared = nearest_neighbors(X, n_neighbors, queries)
    if kind == "heat" and width is None:
        width = automatic_width(X)
    return _weighted_edges(queries, X, indices, squared, kind, width)


def automatic_width(X: Matrix) -> float:
    """σ² = 2t², t the mean Euclidean distance over all pairs of rows, self pairs included."""
    n = X.shape[0]
    if on_device(X):
        t = engine_part("torch", "neighbors").mean_distance(X, min(n, WIDTH_SAMPLE))
        return 2 * t * t if t > 0 else 1.0
    chosen = np.linspace(0, n - 1, min(n, WIDTH_SAMPLE)).astype(int)
    rows = take_rows(X, chosen) if n > WIDTH_SAMPLE or is_streamed(X) else X
    metric = "nan_euclidean" if has_nan(X) else "euclidean"
    if isinstance(X, Remote):
        total = sum(X.each(_distance_sum, rows, metric))
    else:
        parts = reading(X) if is_streamed(X) else (X,)
        total = sum(_distance_sum(part, rows, metric) for part in parts)
    t = total / (rows.shape[0] * n)
    return 2 * t * t if t > 0 else 1.0


def _distance_sum(X: Matrix, rows: Matrix, metric: str) -> float:
    """The sum of all distances between rows of X and ``rows``."""
    blocks = pairwise_distances_chunked(rows, X, metric=metric, working_memory=64)
    return sum(float(np.nansum(block)) for block in blocks)


def _weights(
    rows: Matrix, X: Matrix, indices: Array, squared: Array, kind: str, width: float | None
) -> Array:
    xp = namespace(squared)
    if kind == "binary":
        return as_numbers(xp.isfinite(squared), squared)
    if kind == "heat":
        return xp.exp(-squared / width)
    if kind != "cosine":
        raise ValueError(f"affinity must be one of {AFFINITIES}, got {kind!r}")
    if has_nan(rows) or has_nan(X):
        raise ValueError(
            "affinity='cosine' needs fully observed rows; use affinity='binary' or 'heat'"
        )
    return _cosines(rows, X, indices, squared)


def _weighted_edges(
    rows: Matrix, X: Matrix, indices: Array, squared: Array, kind: str, width: float | None
) -> sp.csr_array:
    weights = _weights(rows, X, indices, squared, kind, width)
    n, k = indices.shape
    indptr = np.arange(0, n * k + 1, k)
    edges = sp.csr_array((weights.ravel(), indices.ravel(), indptr), shape=(n, X.shape[0]))
    edges.eliminate_zeros()
    edges.sort_indices()
    return edges


def _cosines(rows: Matrix, X: Matrix, indices: Array, squared: Array) -> Array:
    """Cosine similarity along the edges, from distances and norms, without the features."""
    left, right = _lengths(rows), _lengths(X)
    products = (left[:, None] ** 2 + right[indices] ** 2 - squared) / 2
    norms = left[:, None] * right[indices]
    # A zero row has no direction: its similarity to anything is 0.
    known = norms > 0
    return (known * products / namespace(norms).where(known, norms, 1)).clip(0, 1)


def _lengths(X: Matrix) -> Array:
    if is_streamed(X):
        return np.sqrt(squared_norms(X, Threads(1)))
    if not on_device(X):
        return row_norms(X)
    return engine_part("torch", "neighbors").row_lengths(X)
