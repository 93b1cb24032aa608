"""Nearest neighbors: exact lists, approximate ones (extra "fast") checked on a sample, and ties.

Neighbors at equal distance go by row index, whoever computed the distances and in which blocks. Products of
matrices give distances that differ in their last bits with the shape of a block. A list that this could
change is *unsure*: its candidates are measured again, pair by pair, and then two distances that differ by
less than a small share (`EQUAL`) are the same distance.

No N×N array is made. Candidates come from products of two sides (`search`), of all pairs or of those in the
nearest cells, and are measured pair by pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.extmath import row_norms

from manyview._arrays import on_host
from manyview._types import Array, Matrix
from manyview._warn import warn_user
from manyview.engines.protocols import Distances, Lists
from manyview.engines.threads import Threads, blocks

from .compiled import compiled
from .repeats import Crowds, copies_behind, crowds_of, row_codes
from .search import (
    ENOUGH,
    Part,
    Sample,
    Sides,
    nearest_in_cells,
    parts_of,
    product_error,
    smallest_products,
)
from .sources import DIRECTIONS, as_source, is_streamed, leading_directions, project, reading

if TYPE_CHECKING:
    from .distances import Geometry

#: Whole numbers that were scaled are whole only to rounding: closer distances than this are equal.
EQUAL = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-5}
#: Up to this many columns NumPy selects as quickly as a compiled loop.
FEW = 500
#: Numbers gathered at a time to measure pairs.
GATHERED = 2**21


def equal_share(dtype: Any) -> float:
    return EQUAL.get(np.dtype(dtype), EQUAL[np.dtype(np.float64)])


def nearest(
    d: Array,
    k: int,
    own: int | None,
    slack: Array,
    exact: Callable[[Array, Array], Array],
    share: float,
) -> tuple[Array, Array]:
    """Columns and values of the k smallest entries of every row, in order, ties by column.

    ``slack`` bounds the error of a row's entries; ``exact(rows, columns)`` measures again. Row r itself
    is column own + r, and does not count.
    """
    wide = min(k + 1, d.shape[1] - (own is not None))
    columns, values = smallest(d, wide, own)
    unsure = np.flatnonzero(is_unsure(values, slack, share))
    if len(unsure):
        limit = farthest(values[unsure, k - 1], slack[unsure], share)
        near = d[unsure] <= limit[:, None]
        if own is not None:
            near[np.arange(len(unsure)), own + unsure] = False
        i, j = np.nonzero(near)
        columns[unsure, :k], values[unsure, :k] = first_k(i, j, exact(unsure[i], j), k, share)
    return columns[:, :k], values[:, :k]


def is_unsure(values: Array, slack: Array, share: float) -> Array:
    """Which rows have neighbouring values, in order, that may be equal or change places."""
    with np.errstate(invalid="ignore"):  # infinite ones are as equal as any
        gap = values[:, 1:] - values[:, :-1]
    return ~(gap > share * values[:, :-1] + 2 * slack[:, None]).all(axis=1)


def farthest(kth: Array, slack: Array, share: float) -> Array:
    """What may be no farther than the k-th neighbour."""
    return kth * (1 + share) + 2 * slack


def first_k(i: Array, j: Array, d: Array, k: int, share: float) -> tuple[Array, Array]:
    """The k nearest of every row's candidates j, ties by j; rows i = 0, 1, … each have k or more."""
    order = np.lexsort((j, d, i))
    i, j, d = i[order], j[order], d[order]
    apart = (i[1:] != i[:-1]) | ~(d[1:] <= d[:-1] * (1 + share))
    level = np.concatenate([[0], np.cumsum(apart)])
    order = np.lexsort((j, level))  # levels rise from row to row
    counts = np.bincount(i)
    starts = np.cumsum(counts) - counts
    chosen = order[(starts[:, None] + np.arange(k))]
    return j[chosen], d[chosen]


def merged(lists: list[tuple[Array, Array]], k: int, share: float) -> tuple[Array, Array]:
    """The k nearest of several lists per row (columns, distances), ties by column."""
    columns, d = (np.hstack(parts) for parts in zip(*lists, strict=True))
    rows = np.repeat(np.arange(len(d)), d.shape[1])
    return first_k(rows, columns.ravel(), d.ravel(), min(k, d.shape[1]), share)


def smallest(d: Array, k: int, own: int | None) -> tuple[Array, Array]:
    """Columns and values of the k smallest entries per row, the row itself apart, in order."""
    kernels = compiled()
    if kernels is not None and d.shape[1] > FEW:
        columns, values = np.empty((len(d), k), dtype=np.int64), np.empty((len(d), k))
        first = -len(d) if own is None else own  # nobody has a negative column
        kernels.smallest_rows(d, k, first, columns, values)
        return columns, values
    if own is not None:
        d[np.arange(len(d)), np.arange(own, own + len(d))] = np.inf
    near = np.argpartition(d, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(d, near, axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(values, order, axis=1)


def squared_gaps(X: Matrix, i: Array, Y: Matrix, j: Array) -> Array:
    """‖x_i − y_j‖² of pairs of rows, each from its own differences: copies are at 0, whatever the block."""
    squared = np.empty(len(i))
    for b in blocks(slice(0, len(i)), max(1, GATHERED // max(1, X.shape[1]))):
        gap = X[i[b]] - Y[j[b]]
        if sp.issparse(gap):
            squared[b] = np.ravel(gap.multiply(gap).sum(axis=1, dtype=float))
        else:
            gap = gap.astype(float, copy=False)
            squared[b] = np.einsum("em,em->e", gap, gap)
    return squared


#: Members of a neighbour's own list that are looked at when lists are improved.
DEPTH = 8


def pair_distances(views: Sequence[Any], alpha: Array, i: Array, j: Array) -> Array:
    """Σ α_s d^s of the pairs (i, j)."""
    each = (a * view.pairs(i, j) for a, view in zip(alpha, views, strict=True) if a > 0)
    return sum(each, start=np.zeros(len(i)))


def improved(
    views: Sequence[Any], alpha: Array, lists: Array, k: int, threads: Threads | None
) -> tuple[Array, Array]:
    """One pass over neighbours of neighbours: the k best of them and of the lists themselves."""
    return ranked(views, alpha, lists, min(DEPTH, lists.shape[1]), k, threads)


def ranked(
    views: Sequence[Any],
    alpha: Array,
    lists: Array,
    depth: int,
    k: int,
    threads: Threads | None,
) -> tuple[Array, Array]:
    """The k nearest under Σ α_s d^s among a row's list and the first ``depth`` of its members' lists."""
    n, width = lists.shape
    indices, distances, none = np.empty((n, k), dtype=np.int64), np.empty((n, k)), np.zeros(n)
    step, share = max(1, 2**18 // (width * (1 + depth))), equal_share(views[0].Z.dtype)

    def work(rows: slice) -> None:
        for b in blocks(rows, step):
            here = np.arange(b.start, b.stop)
            members = lists[here]
            reached = lists[members, :depth].reshape(len(here), -1)
            candidates = _distinct(here, np.hstack([members, reached]))
            d = _distances(views, alpha, here, candidates)
            # Measured pair by pair already; candidates are in the order of the rows.
            order, distances[b] = nearest(d, k, None, none[: len(d)], partial(_entries, d), share)
            indices[b] = np.take_along_axis(candidates, order, axis=1)

    (threads or Threads(1)).map(work, n)
    return indices, distances


def _entries(d: Array, i: Array, j: Array) -> Array:
    return d[i, j]


def _distinct(rows: Array, candidates: Array) -> Array:
    """Every candidate once, in order; −1 in place of repeats and of the row itself."""
    found = np.sort(candidates, axis=1)
    useless = found == rows[:, None]
    useless[:, 1:] |= found[:, 1:] == found[:, :-1]
    found[useless] = -1
    return found


def _distances(views: Sequence[Any], alpha: Array, rows: Array, candidates: Array) -> Array:
    """Σ α_s d^s to every candidate; infinite where there is none."""
    useful = candidates >= 0
    d = np.where(useful, 0.0, np.inf)
    i, j = np.nonzero(useful)[0] + rows[0], candidates[useful]
    d[useful] = pair_distances(views, alpha, i, j)
    return d


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
    """Squared Euclidean distances of pairs of rows, for `ranked`."""

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
            self.kernels.sparse_pair_distances(entries, *self.units, i, j, d)
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


#: Candidates by products beyond the neighbours wanted, when all pairs are looked at.
EXTRA_CANDIDATES = 8
#: Rows that answer at a time when a sample of rows looks at all, and entries of long ones.
ANSWERING, ENTRIES = 2**14, 2**22
#: Entries of a temporary block of distances, and fewest rows of it.
BLOCK, FEWEST = 2**19, 64


def view_lists(view: Geometry, k: int, seed: int, threads: Threads | None = None) -> Lists:
    """The k nearest rows of every comparable row."""
    rows = np.flatnonzero(view.comparable)
    k = min(k, len(rows) - 1)
    if k < 1:
        return Lists(rows[:0], np.empty((0, 1), dtype=np.int64), np.empty((0, 1)))
    crowds = crowds_of(view, rows, k)
    asking = rows if crowds is None else np.setdiff1d(rows, crowds.behind)
    if use_index(len(asking)):
        indices, d = view.search(asking, k, seed, threads)
    else:
        known = rows[:0] if crowds is None else np.setdiff1d(crowds.rows, crowds.behind)
        indices, d = all_pairs([view], np.ones(1), asking, k, known, threads)
    if crowds is not None:
        found, at = (indices, d), np.searchsorted(rows, asking)
        indices, d = np.empty((len(rows), k), dtype=np.int64), np.zeros((len(rows), k))
        indices[at], d[at] = found
        at = np.searchsorted(rows, crowds.rows)
        indices[at], d[at] = crowds.near, 0
    return Lists(rows, indices, d, masses(view, rows, indices, crowds))


def masses(view: Distances, rows: Array, indices: Array, crowds: Crowds | None) -> Array | None:
    """What the pairs of lists count; None where all count alike."""
    if view.mass is None and crowds is None:
        return None
    own = np.ones(view.n_samples) if view.mass is None else view.mass
    theirs = own[on_host(indices)]
    if crowds is not None:
        theirs[np.searchsorted(rows, crowds.rows)] = crowds.stands_for
    return own[rows][:, None] * theirs


def fused_lists(
    views: list[Geometry],
    alpha: Array,
    k: int,
    seed: int,
    threads: Threads | None = None,
) -> tuple[Array, Array]:
    """The k nearest rows of every row under F = Σ α_s d^s, nearest first."""
    n = views[0].n_samples
    k, everyone = min(k, n - 1), np.arange(n)
    if not use_index(n):
        return all_pairs(views, alpha, everyone, k, everyone[:0], threads)
    return approximate(views, alpha, everyone, k, seed, threads)


# --- some of the pairs -------------------------------------------------------------------------


def approximate(
    views: list[Geometry],
    alpha: Array,
    rows: Array,
    k: int,
    seed: int,
    threads: Threads | None,
    enough: float = ENOUGH,
) -> tuple[Array, Array]:
    """The k nearest of ``rows`` for each of them under Σ α_s d^s, but for a few that are missed."""
    threads, n = threads or Threads(1), views[0].n_samples
    checked = min(CHECKED_ROWS, len(rows))
    asking = np.random.default_rng(seed).choice(len(rows), checked, replace=False)
    sample = Sample(asking, *sample_lists(views, alpha, asking, rows, k, threads), enough)
    near = searched(parts_of(views, alpha, rows), k, sample, seed, threads)
    lists = near if len(rows) == n else for_all_rows(rows, rows[near], n)
    share = equal_share(views[0].Z.dtype)
    indices, d = ranked(views, alpha, lists, 0, k, threads)
    if sample.reached(d[rows], share) < RECALL:
        indices, d = improved(views, alpha, indices, k, threads)
        recall = sample.reached(d[rows], share)
        if recall < RECALL:
            tell_rough(recall, k)
    return indices[rows], d[rows]


def sample_lists(
    views: list[Geometry], alpha: Array, asking: Array, rows: Array, k: int, threads: Threads
) -> tuple[Array, Array]:
    """The k nearest of ``rows`` for some of them, by their places there, and how far the last one is.

    Some rows at a time answer: distances of even a few rows to all of a million take much room.
    """
    heard = [(float(a), view) for a, view in zip(alpha, views, strict=True) if a > 0]

    def look(part: slice) -> tuple[Array, Array]:
        d: Any = sum(a * view.across(rows[asking], rows[part]) for a, view in heard)
        own = np.flatnonzero((asking >= part.start) & (asking < part.stop))
        d[own, asking[own] - part.start] = np.inf
        near, values = smallest(d, min(k, d.shape[1]), None)
        return near + part.start, values

    widest = max(view.n_features for _, view in heard)
    step = min(ANSWERING, max(k + 1, ENTRIES // widest))
    found = threads.each(look, list(blocks(slice(0, len(rows)), step)))
    near, _ = merged(found, k, equal_share(views[0].Z.dtype))
    i, j = np.repeat(rows[asking], k), rows[near.ravel()]
    return near, pair_distances(views, alpha, i, j).reshape(near.shape).max(axis=1)


# --- all pairs ---------------------------------------------------------------------------------


def all_pairs(
    views: list[Geometry], alpha: Array, rows: Array, k: int, known: Array, threads: Threads | None
) -> tuple[Array, Array]:
    """The k nearest of ``rows`` for each of them under Σ α_s d^s; of no matter whom where ``known``.

    Products in single precision tell which rows may be among them. Where these are too many, distances
    from products in the precision of the views are looked at, as they are where nothing else is at hand.
    """
    n, threads = len(rows), threads or Threads(1)
    indices, d = np.empty((n, k), dtype=np.int64), np.empty((n, k))
    unsure = np.ones(n, dtype=bool)
    if all(view.products_tell() for a, view in zip(alpha, views, strict=True) if a > 0):
        indices, d, unsure = by_products(views, alpha, rows, k, threads)
    unsure[np.searchsorted(rows, known)] = False
    rest = np.flatnonzero(unsure)
    if len(rest):
        indices[rest], d[rest] = looked_at(views, alpha, rows[rest], rows, k, threads)
    return indices, d


def by_products(
    views: list[Geometry], alpha: Array, rows: Array, k: int, threads: Threads
) -> tuple[Array, Array, Array]:
    """Lists from the smallest products, and which of them may not be the nearest."""
    sides = Sides.of(parts_of(views, alpha, rows))
    wide = min(k + EXTRA_CANDIDATES, len(rows) - 1)
    near, values = smallest_products(sides, wide, threads)
    lists = for_all_rows(rows, rows[near], views[0].n_samples)
    indices, d = (part[rows] for part in ranked(views, alpha, lists, 0, k, threads))
    if wide == len(rows) - 1:  # all are candidates, but for products too large for single precision
        return indices, d, np.asarray((near < 0).any(axis=1))
    # Whoever is no candidate is no nearer than the last of them.
    nearer = values[:, -1] + sides.constant - sides.slack()
    return indices, d, ~(d[:, -1] * (1 + equal_share(views[0].Z.dtype)) < nearer)


def looked_at(
    views: list[Geometry], alpha: Array, asking: Array, rows: Array, k: int, threads: Threads
) -> tuple[Array, Array]:
    """The k nearest of ``rows`` for some rows ``asking``, from their distances to all, ties by row."""
    heard = [(float(a), view) for a, view in zip(alpha, views, strict=True) if a > 0]
    # A right side is larger than its view: for few rows, that of one view after the other.
    many = len(asking) > CHECKED_ROWS
    rights = [view.right_side() if many and view.needs_right() else None for _, view in heard]
    n = views[0].n_samples
    others = np.ones(n, dtype=bool)
    others[rows] = False
    slack: Any = sum(a * view.slack() for a, view in heard)
    share, hidden = equal_share(views[0].Z.dtype), bool(others.any())

    def look(b: slice) -> tuple[Array, Array]:
        here = asking[b]
        d: Any = sum(
            a * view.between(here, right) for (a, view), right in zip(heard, rights, strict=True)
        )
        d[np.arange(len(here)), here] = np.inf
        if hidden:
            d[:, others] = np.inf

        def exact(i: Array, j: Array) -> Array:
            return pair_distances(views, alpha, here[i], j)

        return nearest(d, k, None, slack[here], exact, share)

    found = threads.each(look, list(blocks(slice(0, len(asking)), max(FEWEST, BLOCK // n))))
    indices, d = (np.concatenate(part) for part in zip(*found, strict=True))
    return indices, d


def for_all_rows(rows: Array, indices: Array, n: int) -> Array:
    """Lists of some rows as lists of all; a row without one lists itself (which counts for nothing)."""
    if len(rows) == n:
        return indices
    full = np.repeat(np.arange(n)[:, None], indices.shape[1], axis=1)
    full[rows] = indices
    return full
