"""Nearest neighbours of many observations: approximate (extra "fast") and checked on a sample, or exact."""

from __future__ import annotations

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
from .ranking import ranked
from .repeats import copies_behind, row_codes
from .search import ENOUGH, Sample, nearest_in_cells, smallest_products
from .sides import Part, Sides
from .sources import DIRECTIONS, as_source, is_streamed, leading_directions, project, reading
from .ties import equal_share, farthest, first_k, is_unsure, merged, product_error, squared_gaps

#: Up to this many rows every pair is looked at.
EXACT = 30_000
#: The index is compared with exact neighbours of this many rows, and should find this share of them.
CHECKED_ROWS, RECALL = 200, 0.9
#: Most candidates per neighbour wanted, along some directions and with all features.
WIDE, WIDEST = 2, 4
#: Long rows are searched by some of their directions if these hold enough neighbours of a sample.
MORE_DIRECTIONS = (DIRECTIONS, 2 * DIRECTIONS, 4 * DIRECTIONS)
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
    Z: Any,
    k: int,
    seed: int,
    threads: Threads | None = None,
    enough: float = RECALL,
    in_cells: float = ENOUGH,
) -> Array:
    """k approximate Euclidean neighbours of every row of Z, nearest first, itself left out.

    A sample of rows tells whether enough of the neighbours were found; ``in_cells`` is the share of them
    in the cells that rows look into. The lists are the same for any number of threads.
    """
    data = Z.astype(np.float32, copy=False)
    if sp.issparse(data):
        short = data.shape[1] < 2 * DIRECTIONS
        data = data.toarray() if short else sp.csr_array(data)
    data = data if sp.issparse(data) else np.ascontiguousarray(data)
    threads, n = threads or Threads(1), data.shape[0]
    behind, before = copies_behind(row_codes(data), k)
    if len(behind):  # all pairs of very many copies would be too many, and tell nothing new
        rest, found = np.setdiff1d(np.arange(n), behind), np.empty((n, k), dtype=np.int64)
        found[rest] = rest[index_neighbors(data[rest], k, seed, threads, enough, in_cells)]
        found[behind] = before
        return found
    sample = _sample(data, k, seed)._replace(enough=in_cells)
    parts = [Part(1.0, data, np.ones(n), np.ones(n, dtype=bool))]
    near = searched(parts, k, sample, seed, threads)
    found, d = ranked([SquaredGaps(data)], np.ones(1), near, 0, k, threads)
    recall = sample.reached(d, equal_share(np.float32))
    if recall < enough:
        tell_rough(recall, k)
    return found


def _sample(data: Matrix, k: int, seed: int) -> Sample:
    """Some rows and their nearest, all pairs looked at."""
    n, rng = data.shape[0], np.random.default_rng(seed)
    rows = rng.choice(n, min(CHECKED_ROWS, n), replace=False)
    exact = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(data)
    d, near = exact.kneighbors(data[rows])
    near, squared = without_own(near, d**2, rows)
    return Sample(rows, near, squared[:, -1])


def tell_rough(recall: float, k: int) -> None:
    """Say how few of the neighbours of a sample were found."""
    warn_user(
        f"the neighbour index finds only {recall:.0%} of the {k} nearest neighbours of a sample of "
        "rows; the graph is rough. Fewer, more telling features (a PCA of the view) would help"
    )


def searched(parts: list[Part], k: int, sample: Sample, seed: int, threads: Threads) -> Array:
    """Candidates for the k nearest of every row under the distances of ``parts``.

    By as few directions of dense rows as will do, and as few candidates as hold enough of a sample's
    neighbours.
    """
    n, n_features = len(parts[0].here), sum(part.Z.shape[1] for part in parts if not part.sparse)
    for n_directions in (*MORE_DIRECTIONS, None):
        if n_directions is not None and n_features < 2 * n_directions:
            continue
        most = min((WIDE if n_directions else WIDEST) * k, n - 1)
        sides = Sides.of(parts, n_directions)
        wide = sample.wide(smallest_products(sides, most, threads, sample.rows)[0])
        if wide <= most:
            break
    return nearest_in_cells(sides, max(k, min(wide, most)), sample, seed, threads)


class SquaredGaps:
    """Squared Euclidean distances of pairs of rows, for `ranking`."""

    def __init__(self, Z: Matrix):
        if sp.issparse(Z):
            Z = sp.csr_array(Z)
            Z = Z if Z.has_sorted_indices else Z.sorted_indices()  # the rows may be a user's own
        self.Z, self.kernels = Z, compiled()
        self.units = np.ones(Z.shape[0]), np.ones(Z.shape[0], dtype=bool)

    def pairs(self, i: Array, j: Array) -> Array:
        d = np.empty(len(i))
        i, j = (np.asarray(side, dtype=np.int64) for side in (i, j))  # compiled for once
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


def take_rows(X: Any, rows: Array) -> Matrix:
    """Chosen rows of a view, in memory or in a file."""
    if not is_streamed(X):
        return X[rows]
    return X.take(rows)
