"""Nearest neighbours of many observations: approximate (extra "fast") and checked on a sample, or exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.extmath import row_norms

from manyview._types import Array, Matrix
from manyview._warn import warn_user
from manyview.engines.threads import Threads, blocks

from .compiled import compiled
from .descent import descended, sharing_rows
from .ranking import improved, ranked
from .repeats import row_codes
from .sources import as_source, is_streamed, over, reading
from .ties import equal_share, farthest, first_k, is_unsure, merged, product_error, squared_gaps

#: Up to this many rows every pair is looked at.
EXACT = 30_000
#: The index is compared with exact neighbours of this many rows, and should find this share of them.
CHECKED_ROWS, RECALL = 200, 0.9
#: Long rows, and large views in files, are searched by their leading directions, this many, found in so
#: many passes.
DIRECTIONS, PASSES = 64, 3
#: Candidates of which the nearest are taken, per neighbour wanted.
WIDER = 1.25
#: With at most so many features a tree finds exact neighbours quickly, however many rows there are.
TREE_FEATURES = 15
#: Rows that ask at a time, when all rows of a file are compared with them.
ASKING = 2**22


def use_index(n: int) -> bool:
    """Whether to search approximately; large data without the package is slow, and says so once."""
    if n <= EXACT:
        return False
    if compiled() is not None:
        return True
    warn_user(
        f"exact neighbours of {n} observations take time quadratic in their number; "
        "pip install 'manyview[fast]' for an approximate index"
    )
    return False


def index_neighbors(
    Z: Any, k: int, seed: int, threads: Threads | None = None, enough: float = RECALL
) -> Array:
    """k approximate Euclidean neighbours of every row of Z, nearest first, itself left out.

    Searched again more widely if a sample of rows shows that fewer than ``enough`` of the neighbours
    were found. The lists are the same for any number of threads.
    """
    data = Z.astype(np.float32, copy=False)
    if sp.issparse(data):
        short = data.shape[1] < 2 * DIRECTIONS
        data = data.toarray() if short else sp.csr_array(data)
    data = data if sp.issparse(data) else np.ascontiguousarray(data)
    rows = np.random.default_rng(seed).choice(data.shape[0], CHECKED_ROWS, replace=False)
    exact = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(data)
    expected = exact.kneighbors(data[rows], return_distance=False)
    recall, found = 0.0, np.empty((0, k), dtype=np.int64)
    for search in _searches(data):
        found = search(data, k, seed, threads or Threads(1))
        hits = [
            np.isin(e[e != r][:k], found[r]).mean() for r, e in zip(rows, expected, strict=True)
        ]
        recall = float(np.mean(hits))
        if recall >= enough:
            return found
    tell_rough(recall, k)
    return found


def tell_rough(recall: float, k: int) -> None:
    """Say how few of the neighbours of a sample were found."""
    warn_user(
        f"the neighbour index finds only {recall:.0%} of the {k} nearest neighbours of a sample of "
        "rows; the graph is rough. Fewer, more telling features (a PCA of the view) would help"
    )


def _searches(data: Any) -> Sequence[Callable[[Any, int, int, Threads], Array]]:
    """Ways to search, the quickest first."""
    if sp.issparse(data):
        return [_among_sharing, _along_leading, partial(_among_sharing, wider=2)]
    all_features = [partial(_descend, wider=wider) for wider in (1, 2)]
    return all_features if data.shape[1] < 2 * DIRECTIONS else [_along_leading, *all_features]


def _descend(data: Array, k: int, seed: int, threads: Threads, wider: int) -> Array:
    return descended(data, wider * k, seed, threads)[:, :k]


def _along_leading(data: Matrix, k: int, seed: int, threads: Threads) -> Array:
    """Of long rows: the best of those that are near along the leading directions."""
    sketch = project(data, leading_directions(data))
    near = descended(sketch, min(int(WIDER * k), data.shape[0] - 1), seed, threads)
    return ranked([SquaredGaps(data)], np.ones(1), near, 0, k, threads)[0]


def _among_sharing(Z: sp.csr_array, k: int, seed: int, threads: Threads, wider: int = 1) -> Array:
    """Of sparse rows: those with rare features in common, and then neighbours of neighbours."""
    gaps, one = [SquaredGaps(Z)], np.ones(1)
    near, _ = ranked(gaps, one, sharing_rows(Z, 2 * wider * k, threads), 0, wider * k, threads)
    return improved(gaps, one, near, k, threads)[0]


class SquaredGaps:
    """Squared Euclidean distances of pairs of rows, for `ranking`."""

    def __init__(self, Z: Matrix):
        self.Z, self.kernels = Z, compiled()
        self.units = np.ones(Z.shape[0]), np.ones(Z.shape[0], dtype=bool)
        if sp.issparse(Z):
            Z.sort_indices()

    def pairs(self, i: Array, j: Array) -> Array:
        d = np.empty(len(i))
        if sp.issparse(self.Z):
            entries = (self.Z.indptr, self.Z.indices, self.Z.data)
            self.kernels.sparse_pair_distances(*entries, *self.units, i, j, d)
        else:
            self.kernels.pair_distances(self.Z, *self.units, i, j, d)
        return d


# --- every pair -----------------------------------------------------------------------------------


def exact_neighbors(X: Matrix, k: int, queries: Matrix | None = None) -> tuple[Array, Array]:
    """Indices and squared distances of the k nearest rows of X, ties by index.

    Without ``queries`` the rows of X ask, and none is its own neighbour.
    """
    asking, alone = (X, True) if queries is None else (queries, False)
    search = NearestNeighbors(n_neighbors=min(k + 1, X.shape[0] - alone)).fit(X)
    distances, indices = search.kneighbors(queries)
    squared, share = distances**2, equal_share(X.dtype)
    # Neighbours are near: no longer than the row itself and the distance together.
    reach = 2 * row_norms(asking) + distances[:, k - 1]
    slack = product_error(np.float64, X.shape[1]) * reach**2
    unsure = np.flatnonzero(is_unsure(squared, slack, share))
    indices, squared = indices[:, :k], squared[:, :k]
    if len(unsure):
        limit = farthest(squared[unsure, k - 1], slack[unsure], share)
        found = _measured_again(search, X, asking, unsure, limit, k, alone)
        indices[unsure], squared[unsure] = found
    return indices, squared


def _measured_again(
    search: Any, X: Matrix, asking: Matrix, rows: Array, limit: Array, k: int, alone: bool
) -> tuple[Array, Array]:
    """The lists of some rows from all pairs within ``limit``; copies of a row ask once."""
    _, first, of = np.unique(row_codes(asking[rows]), return_index=True, return_inverse=True)
    reach = np.zeros(len(first))
    np.maximum.at(reach, of, limit)
    lists, share = [], equal_share(X.dtype)
    for b in blocks(slice(0, len(first)), max(1, ASKING // X.shape[0])):
        one = rows[first[b]]
        i, j = _within(search, X, asking[one], reach[b])
        lists.append(first_k(i, j, squared_gaps(asking, one[i], X, j), k + alone, share))
    indices, squared = (np.concatenate(part)[of] for part in zip(*lists, strict=True))
    return without_own(indices, squared, rows) if alone else (indices, squared)


def _within(search: Any, X: Matrix, queries: Matrix, reach: Array) -> tuple[Array, Array]:
    """Pairs (query, row of X) no farther apart than the query's reach, the square of a distance."""
    if sp.issparse(X) or X.shape[1] > TREE_FEATURES:
        i, j = np.nonzero(euclidean_distances(queries, X, squared=True) <= reach[:, None])
        return i, j
    d, near = search.radius_neighbors(queries, np.sqrt(reach.max()))
    i = np.repeat(np.arange(len(near)), [len(part) for part in near])
    inside = np.concatenate(d) ** 2 <= reach[i]
    return i[inside], np.concatenate(near)[inside]


def without_own(indices: Array, squared: Array, rows: Array) -> tuple[Array, Array]:
    """Lists one shorter: without the row itself, or without the last where it is not there."""
    others = indices != rows[:, None]
    others[others.all(axis=1), -1] = False
    shape = (len(rows), indices.shape[1] - 1)
    return indices[others].reshape(shape), squared[others].reshape(shape)


def lists_in_block(
    block: Matrix, queries: Matrix, k: int, first: int, own: int | None
) -> tuple[Array, Array]:
    """The k rows nearest to every query in a block that begins with row ``first`` of its view.

    Distances are those of pairs, the same in any block. Queries that are rows of the view themselves,
    from ``own`` on, do not count.
    """
    n = queries.shape[0]
    k = min(k + (own is not None), block.shape[0])
    indices, _ = exact_neighbors(block, k, queries)
    rows = np.repeat(np.arange(n), k)
    squared = squared_gaps(queries, rows, block, indices.ravel()).reshape(n, k)
    indices = indices + first
    if own is not None:
        squared[indices == np.arange(own, own + n)[:, None]] = np.inf
    return indices, squared


# --- views in files ----------------------------------------------------------------------------


def streamed_neighbors(X: Any, k: int, queries: Any = None) -> tuple[Array, Array]:
    """Nearest rows of a view in a file (indices and squared distances), by reading it in blocks.

    Up to `EXACT` rows, and for unseen rows, every pair is looked at. Above, the rows of X are
    searched by an index of their `DIRECTIONS` leading directions, and distances are in these.
    """
    available = X.shape[0] - (queries is None)
    k = min(k, available)
    if queries is None and use_index(available):
        sketch = project(X, leading_directions(X))
        near = index_neighbors(sketch, k, seed=0)
        squared = np.empty(near.shape)
        for b in blocks(slice(0, len(near)), 4096):
            gap = sketch[near[b]] - sketch[b][:, None]
            squared[b] = np.einsum("ikm,ikm->ik", gap, gap)
        return merged([(near, squared)], k, equal_share(sketch.dtype))
    asking = X if queries is None else as_source(queries)
    found = [
        _nearest_of(X, asking.read(rows), k, rows.start if queries is None else None)
        for rows in blocks(slice(0, asking.shape[0]), max(1, ASKING // X.shape[1]))
    ]
    indices, squared = (np.concatenate(part) for part in zip(*found, strict=True))
    return indices, squared


def _nearest_of(X: Any, rows: Matrix, k: int, own: int | None) -> tuple[Array, Array]:
    """The k rows of X nearest to ``rows``; their own places in X, from ``own`` on, do not count."""
    found, start = (np.empty((rows.shape[0], 0), dtype=np.int64), np.empty((rows.shape[0], 0))), 0
    for block in reading(as_source(X)):
        more = lists_in_block(block, rows, k, start, own)
        found, start = merged([found, more], k, equal_share(X.dtype)), start + block.shape[0]
    return found


def leading_directions(X: Any, n_directions: int = DIRECTIONS) -> Array:
    """The directions of feature space along which rows vary most (M×d), by subspace iteration.

    Only sums over rows are kept, of the features times ``n_directions``.
    """
    m = X.shape[1]
    if m <= n_directions:
        return np.eye(m)
    mean = sum(over(X, _feature_sums)) / X.shape[0]
    directions = np.linalg.qr(np.random.default_rng(0).standard_normal((m, n_directions)))[0]
    for _ in range(PASSES):
        directions = np.linalg.qr(sum(over(X, _image, directions, mean)))[0]
    return directions


def _feature_sums(block: Matrix) -> Array:
    return np.ravel(block.sum(axis=0, dtype=float))


def _image(block: Matrix, directions: Array, mean: Array) -> Array:
    """(X − mean)ᵀ(X − mean) times the directions, of some rows."""
    along = block @ directions - mean @ directions
    return block.T @ along - np.outer(mean, along.sum(axis=0))


def project(X: Any, directions: Array) -> Array:
    """Rows of X along ``directions``, in float32."""
    return np.concatenate(over(X, _along, directions))


def _along(block: Matrix, directions: Array) -> Array:
    return (block @ directions).astype(np.float32)


def take_rows(X: Any, rows: Array) -> Matrix:
    """Chosen rows of a view, in memory or in a file."""
    if not is_streamed(X):
        return X[rows]
    return X.take(rows)
