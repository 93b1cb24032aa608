"""Nearest neighbors: exact lists, approximate ones (extra "fast") checked on a sample, and ties.

Neighbors at equal distance go by row index, whoever computed the distances and in which blocks. Products of
matrices give distances that differ in their last bits with the shape of a block. A list that this could
change is *unsure*: its candidates are measured again, pair by pair, and then two distances that differ by
less than a small share (`EQUAL`) are the same distance.

No N×N array is made. Candidates come from products of two sides, of all pairs or of those in the nearest
cells, and are measured pair by pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.extmath import row_norms
from threadpoolctl import threadpool_limits

from manyview._arrays import on_host
from manyview._types import Array, Matrix
from manyview._warn import warn_user
from manyview.engines.threads import Threads, blocks

from .compiled import compiled
from .repeats import Crowds, copies_behind, row_codes
from .sources import (
    DIRECTIONS,
    as_source,
    is_streamed,
    leading_directions,
    looking_rows,
    project,
    reading,
)

if TYPE_CHECKING:
    from .distances import Geometry

# --- candidates by products ----------------------------------------------------------------------
#
# In one view d_ij = ‖z_i − z_j‖²/(m_i m_j) with m = √μ. With u = √α z/m, q = √α ‖z‖²/m and b = √α/m,
#
#     α d_ij = −2 u_i·u_j + q_i b_j + b_i q_j,
#
# so that one product of matrices has Σ_s α_s d^s of many pairs. A row that is missing in a view is at 1
# there: its u, q and b are zero, and α − α c_i c_j is added, where c says who is there. The u of all views
# may be replaced by their coordinates along the directions in which they vary most. Where entries are
# unobserved, a row that has the share f of them has z/f and ‖z‖²/f in place of z and ‖z‖²: that is d_ij, if
# what is observed in one row has nothing to do with what is in the other.
#
# If there are too many rows to compare all pairs, they are cut into cells, and a row is compared with
# the cells of smallest mean products. Their number comes from a sample of rows whose neighbors are known:
# as many cells as hold most of these. Then every row is compared with the neighbors of its neighbors.
# Rows are searched in chunks that N alone decides, and read the lists of the round before, so that lists
# are the same for any number of threads.

#: How much longer a product of two sparse numbers takes than one of many in a dense product.
SPARSE_COST = 32
#: Columns that are reordered together: as many as a line of memory holds.
COLUMNS = 16


def product_error(dtype: Any, n_features: int) -> float:
    """Rounding error of a squared distance from products, as a share of (‖x‖ + ‖y‖)²."""
    return float(np.finfo(dtype).eps) * (8 + n_features**0.5)


class Part:
    """What one view adds to the sides."""

    def __init__(
        self,
        weight: float,
        Z: Matrix,
        root_mu: Array,
        here: Array,
        observed: Array | None = None,
    ):
        self.Z, self.here, self.weight, self.observed = Z, here, weight, observed
        scale = np.divide(np.sqrt(weight), root_mu, out=np.zeros(len(here)), where=here)
        self.b = self.scale = scale.astype(np.float32)
        if observed is not None:
            share = np.maximum(observed.mean(axis=1), 1 / Z.shape[1])
            self.scale = (scale / share).astype(np.float32)
        # Geometry do not care where the origin is; around the mean, numbers are small and round well.
        self.sparse, self.center = sp.issparse(Z), np.zeros(Z.shape[1])
        if self.sparse:
            self.squared = row_norms(Z, squared=True)
            return
        self.center, self.squared = Z.mean(axis=0, dtype=float), np.empty(len(here))
        for b in blocks(slice(0, len(here)), looking_rows(Z.shape[1])):
            self.squared[b] = row_norms(self._centered(b), squared=True)

    def _centered(self, rows: slice | Array) -> Array:
        gap = (self.Z[rows] - self.center).astype(np.float32)
        return gap if self.observed is None else gap * self.observed[rows]

    def read(self, rows: slice | Array) -> Array:
        """u of a dense view."""
        return self._centered(rows) * self.scale[rows, None]

    def scaled(self) -> sp.csr_array:
        """u of a sparse view."""
        return sp.csr_array(self.Z.multiply(self.scale[:, None]), dtype=np.float32)

    def ends(self) -> list[Array]:
        """q and b in units in which they are as large: only their products count, and `Sides.slack`
        would otherwise be far too careful where a view has small or large numbers."""
        q = self.squared * self.scale
        largest, unit = float(q.max(initial=0)), 1.0
        if 0 < largest < np.inf:
            unit = np.sqrt(float(self.b.max()) / largest)
        return [(q * unit).astype(np.float32), (self.b / unit).astype(np.float32)]


class Joint:
    """u of all dense views side by side, read by rows."""

    dtype, sparse = np.dtype(np.float32), False

    def __init__(self, parts: list[Part], n_rows: int):
        self.parts, self.shape = parts, (n_rows, sum(part.Z.shape[1] for part in parts))

    def read(self, rows: slice | Array) -> Array:
        none = np.empty((self.shape[0], 0), dtype=np.float32)[rows]
        return np.hstack([none, *(part.read(rows) for part in self.parts)])


class Sides:
    """R and, made of it, L: L_i·R_j + ``constant`` is the distance of i and j but for rounding.

    With ``sparse`` u of some views, −2 u_i·u_j is to be added.
    """

    def __init__(
        self,
        right: Array,
        width: int,
        n_parts: int,
        constant: float,
        sparse: sp.csr_array | None = None,
    ):
        self.right, self.width, self.n_parts, self.constant = right, width, n_parts, constant
        self.sparse = sparse
        ends = width + np.arange(2 * n_parts).reshape(n_parts, 2)[:, ::-1].ravel()  # q meets b
        rest = np.arange(width + 2 * n_parts, right.shape[1])
        self.swapped = np.concatenate([np.arange(width), ends, rest])
        sign = np.repeat([-2, 1, -1], [width, 2 * n_parts, len(rest)])
        self.sign = sign.astype(np.float32)

    @classmethod
    def of(cls, parts: list[Part], n_directions: int | None = None) -> Sides:
        """Those of a sum over views; dense ones along some directions or all features."""
        dense, n = [part for part in parts if not part.sparse], len(parts[0].here)
        joint, sparse = Joint(dense, n), None
        directions = None
        if n_directions is not None:
            some = joint.read(evenly(n, DIRECTION_ROWS))
            directions = leading_directions(some, n_directions, joint.dtype)
        width = joint.shape[1] if directions is None else directions.shape[1]
        absent = [part for part in parts if not part.here.all()]
        ends = [end for part in parts for end in part.ends()]
        ends += [np.float32(part.weight**0.5) * part.here for part in absent]
        right = np.empty((n, width + len(ends)), dtype=np.float32)
        for b in blocks(slice(0, n), looking_rows(joint.shape[1])):
            u = joint.read(b)
            right[b, :width] = u if directions is None else u @ directions
        for column, end in enumerate(ends, width):
            right[:, column] = end
        if len(dense) < len(parts):
            sparse = sp.hstack([part.scaled() for part in parts if part.sparse], "csr")
        constant = sum(part.weight for part in absent)
        return cls(right, width, len(parts), constant, sparse)

    def places(self) -> Array:
        """u, or what replaces it, sparse ones along their leading directions: near for rows that are."""
        dense = self.right[:, : self.width]
        if self.sparse is None:
            return dense
        some = self.sparse[evenly(len(dense), DIRECTION_ROWS)]
        directions = leading_directions(some, dtype=np.float32)
        return np.hstack([dense, project(self.sparse, directions)])

    def left(self, rows: slice | Array) -> Array:
        return np.take(self.right[rows], self.swapped, axis=1) * self.sign

    def put_in_order(self, order: Array) -> None:
        """Put rows in another order, some columns at a time: no second array of this size."""
        for columns in blocks(slice(0, self.right.shape[1]), COLUMNS):
            self.right[:, columns] = self.right[order, columns]
        if self.sparse is not None:
            self.sparse = self.sparse[order]

    def work(self) -> float:
        """Multiplications of a row with all, those of dense products; sparse ones take longer."""
        dense = self.right.size
        if self.sparse is None:
            return dense
        frequency = np.bincount(self.sparse.indices).astype(float)
        return dense + SPARSE_COST * float(frequency @ frequency) / len(self.right)

    def slack(self) -> Array:
        """Bounds of the rounding errors of every row's distances."""
        mine = row_norms(self.right * self.sign, squared=True)
        theirs, n_terms = row_norms(self.right, squared=True), self.right.shape[1]
        if self.sparse is not None:
            own = row_norms(self.sparse, squared=True)
            mine, theirs = mine + 4 * own, theirs + own
            n_terms += int(np.diff(self.sparse.indptr).max(initial=0))
        error = product_error(np.float32, n_terms)
        return error * (np.sqrt(mine * theirs.max()) + self.constant)


def shared_features(u: sp.csr_array | None, starts: Array) -> tuple[Array, ...]:
    """Sparse u by rows and, for every cell of rows, who of them has a feature; nothing for None."""
    if u is None:
        none = np.empty(0, dtype=np.int32)
        return (
            none,
            none,
            none.astype(np.float32),
            np.empty((0, 0), np.int64),
            none,
            none.astype(np.float32),
        )
    by_column = [u[first:last].tocsc() for first, last in pairwise(starts)]
    ends = np.cumsum([0, *(cell.nnz for cell in by_column)])
    posts = np.stack([cell.indptr.astype(np.int64) for cell in by_column]) + ends[:-1, None]
    posted, weights = (
        np.concatenate([getattr(cell, part) for cell in by_column]) for part in ("indices", "data")
    )
    return u.indptr, u.indices, u.data, posts, posted, weights


def parts_of(views: list[Geometry], alpha: Array, rows: Array) -> list[Part]:
    """What views with weight add to Σ α_s d^s of some rows."""
    every = len(rows) == views[0].n_samples
    chosen: Any = slice(None) if every else rows  # all rows are not copied
    parts = []
    for a, view in zip(alpha, views, strict=True):
        if a > 0:  # also a constant one: all are at 1 there
            observed = None if view.observed is None else view.observed[chosen]
            Z = view.Z if every else view.Z[rows]
            parts.append(Part(float(a), Z, view.root_mu[chosen], view.comparable[chosen], observed))
    return parts


#: Query rows per block, and sparse rows they are compared with at a time.
ASKING, ASKED = 4096, 4096
#: Fewest rows of a cell, of one of sparse rows, rows per cell from which cells are found, and rounds of it.
CELL, SPARSE_CELL, PER_CELL, ROUNDS = 150, 1000, 20, 3
#: Rows that are summed at a time.
SUMMED = 2**16
#: Share of a sample's neighbors that lists of candidates should hold, and the cells looked into: of sparse
#: rows nearly all, of others most, the rest being found among the neighbors of neighbors.
NEARLY_ALL, IN_SPARSE_CELLS, IN_CELLS = 0.99, 0.98, 0.9
#: Most multiplications of a sparse row, and of another one.
MOST_SPARSE, MOST_WORK = 2**25, 2**21
#: Rows are compared with the neighbors of their neighbors, this many of each, and again if lists then hold
#: this share of a sample's neighbors more than before: another time adds about a tenth of that.
DEPTH, BETTER = 12, 0.1


class Sample(NamedTuple):
    """Some rows, the nearest of each, all pairs looked at, and how far the last of them is."""

    rows: Array
    near: Array
    last: Array

    def reached(self, d: Array, share: float) -> float:
        """recall@k of these rows' lists, counting ties."""
        return float((d[self.rows] <= self.last[:, None] * (1 + share)).mean())

    def held(self, lists: Array) -> float:
        """The share of them that lists of these rows hold."""
        return float(
            np.mean([np.isin(near, own) for near, own in zip(self.near, lists, strict=True)])
        )

    def wide(self, lists: Array) -> int:
        """How long lists of these rows have to be to hold nearly all; longer than they are: too long."""
        lengths = []
        for near, found in zip(self.near, lists, strict=True):
            order = np.argsort(found)
            at = np.searchsorted(found, near, sorter=order).clip(0, len(found) - 1)
            lengths.append(np.where(found[order[at]] == near, order[at] + 1, lists.shape[1] + 1))
        return int(np.quantile(lengths, NEARLY_ALL, method="inverted_cdf"))


def smallest_products(
    sides: Sides, k: int, threads: Threads, rows: Array | None = None
) -> tuple[Array, Array]:
    """The k rows with the smallest products for every row (or for ``rows``), and these."""
    n, asking = len(sides.right), np.arange(len(sides.right)) if rows is None else rows
    starts = np.array([*range(0, n, n if sides.sparse is None else ASKED), n])
    everything = np.arange(len(starts) - 1)
    near, values = no_lists(len(asking), k)
    look_into = looking(sides, starts, near, values)

    def look(part: slice) -> None:
        own = asking[part]
        look_into(part, own, everything, np.ones((len(everything), len(own)), dtype=bool))

    with threadpool_limits(1, "blas"):  # each thread has products of its own
        threads.each(look, list(blocks(slice(0, len(asking)), ASKING)))
    return near.astype(np.int64), values


def looking(sides: Sides, starts: Array, near: Array, values: Array) -> Callable[..., None]:
    """Have some rows look into cells: their lists, which rows they are, the cells in order, who looks."""
    shared, kernels = shared_features(sides.sparse, starts), compiled()

    def look_into(lists: slice, own: Array, order: Array, chosen: Array) -> None:
        left, found = sides.left(own), (near[lists], values[lists])
        kernels.look_into(left, sides.right, own, starts, order, chosen, shared, *found)

    return look_into


def nearest_in_cells(
    sides: Sides, k: int, sample: Sample, seed: int, threads: Threads
) -> tuple[Array, Array]:
    """k rows with small products for every row: nearly all of the smallest; and the rows cell by cell.

    Sides get this order.
    """
    cells = Cells.of(sides, seed)
    wanted = cells.wanted(sides, sample)
    sides.put_in_order(cells.order)
    near, values = no_lists(len(sides.right), k)
    look_into = looking(sides, cells.starts, near, values)

    def look(part: slice) -> None:
        chosen = cells.chosen(cells.products(sides, part), wanted)
        # Those that most look into first: once lists are good, little has to be put into them.
        order = np.argsort(-chosen.sum(axis=1), kind="stable")
        look_into(part, np.arange(part.start, part.stop), order, chosen)

    with threadpool_limits(1, "blas"):
        threads.each(look, list(blocks(slice(0, len(sides.right)), ASKING)))
    place = np.argsort(cells.order)
    sample = Sample(place[sample.rows], place[sample.near], sample.last)
    before, held = -1.0, sample.held(near[sample.rows])
    while sides.sparse is None and before + BETTER < held < NEARLY_ALL:
        near, values = further(sides, near, values, threads)
        before, held = held, sample.held(near[sample.rows])
    for i in np.flatnonzero(near[:, -1] < 0):  # less than k rows were met: some that follow the row
        have = near[i][near[i] >= 0]
        rest = np.setdiff1d((i + 1 + np.arange(2 * k)) % len(sides.right), [*have, i])
        near[i] = np.concatenate([have, rest])[:k]
    found = np.empty_like(near)
    found[cells.order] = cells.order.astype(near.dtype)[near]
    return found, cells.order


def further(sides: Sides, near: Array, values: Array, threads: Threads) -> tuple[Array, Array]:
    """Better lists: of every row's own and those of its neighbors, whichever of two lists the other."""
    kernels, n = compiled(), len(near)
    listed_by = kernels.listed_by(near, DEPTH)
    new, better = near.copy(), values.copy()

    def look(part: slice) -> None:
        seen = np.full(n, -1, dtype=np.int32)
        for b in blocks(part, ASKING):
            lists = near, listed_by, DEPTH
            kernels.look_further(
                sides.left(b), sides.right, b.start, *lists, seen, new[b], better[b]
            )

    threads.map(look, n)
    return new, better


class Cells(NamedTuple):
    """Rows in groups of rows near each other: one group after the other, and where groups begin."""

    order: Array
    starts: Array
    #: The mean right side of every cell, whose products are the mean products with its rows.
    means: Array
    #: Likewise the mean of sparse u, features × cells.
    sparse_means: Array | None

    @classmethod
    def of(cls, sides: Sides, seed: int) -> Cells:
        """Cells around the means of a sample of the rows (some rounds of k-means)."""
        n, u = len(sides.right), sides.sparse
        # Of many rows larger ones: the products with all cells are few compared with those with rows.
        count = max(1, n // (max(CELL, round(n**0.5 / 2)) if u is None else SPARSE_CELL))
        if u is not None:  # a cell knows for every feature who has it: no more room than that of u
            count = max(1, min(count, u.nnz // u.shape[1]))
        rng, places = np.random.default_rng(seed), sides.places()
        some = places[np.sort(rng.choice(n, min(n, PER_CELL * count), replace=False))]
        centers = _centers(some, count, rng)
        # Cells of one region follow each other: rows that ask together look into the same ones.
        regions = _centers(centers, round(count**0.5), rng)
        centers = centers[np.argsort(_nearest_center(centers, regions), kind="stable")]
        _, cell, sizes = np.unique(  # cells without rows are none
            _nearest_center(places, centers), return_inverse=True, return_counts=True
        )
        starts = np.concatenate([[0], np.cumsum(sizes)])
        means, sparse = _means(sides.right, cell, len(sizes)), None
        if u is not None:
            sparse = np.ascontiguousarray(_means(u, cell, len(sizes)).toarray().T)
        return cls(np.argsort(cell, kind="stable"), starts, means, sparse)

    def products(self, sides: Sides, rows: slice | Array) -> Array:
        """Mean products of some rows with the rows of every cell."""
        products = sides.left(rows) @ self.means.T
        if sides.sparse is not None and self.sparse_means is not None:
            products -= 2 * (sides.sparse[rows] @ self.sparse_means)
        return products

    def wanted(self, sides: Sides, sample: Sample) -> int:
        """How many cells a row has to look into for enough of its neighbors."""
        share, most = (
            (IN_CELLS, MOST_WORK) if sides.sparse is None else (IN_SPARSE_CELLS, MOST_SPARSE)
        )
        cell = np.empty(len(self.order), dtype=np.int64)
        cell[self.order] = np.repeat(np.arange(len(self.means)), np.diff(self.starts))
        nearness = np.argsort(self.products(sides, sample.rows), axis=1)
        rank = np.argsort(nearness, axis=1)
        needed = np.sort(np.take_along_axis(rank, cell[sample.near], axis=1).ravel())
        wanted = int(needed[min(int(share * len(needed)), len(needed) - 1)]) + 1
        return max(1, min(wanted, int(most * len(self.means) / sides.work())))

    @staticmethod
    def chosen(products: Array, wanted: int) -> Array:
        """Which rows look into which cells (cells × rows): those with the smallest products."""
        if wanted >= products.shape[1]:
            return np.ones(products.T.shape, dtype=bool)
        limit = np.partition(products, wanted - 1, axis=1)[:, wanted - 1]
        return np.ascontiguousarray((products <= limit[:, None]).T)


def _centers(places: Array, count: int, rng: np.random.Generator) -> Array:
    """Means of groups of rows near each other: some rounds of k-means."""
    centers = places[rng.permutation(len(places))[:count]]
    for _ in range(ROUNDS):
        centers = _means(places, _nearest_center(places, centers), count, centers)
    return centers


def _nearest_center(places: Array, centers: Array) -> Array:
    """The nearest center of every row."""
    sizes, nearest = (centers * centers).sum(axis=1), np.empty(len(places), dtype=np.int64)
    for b in blocks(slice(0, len(places)), ASKED):
        nearest[b] = (sizes - 2 * (places[b] @ centers.T)).argmin(axis=1)
    return nearest


def _means(rows: Matrix, group: Array, count: int, otherwise: Array | None = None) -> Matrix:
    """The mean row of every group, summed in double precision; of an empty one what is given."""
    sizes = np.bincount(group, minlength=count)

    def share(b: slice) -> Matrix:  # SciPy makes all it multiplies double
        at = group[b], np.arange(b.stop - b.start)
        members = sp.csr_array((1 / sizes[group[b]], at), shape=(count, b.stop - b.start))
        return members @ rows[b]

    means = reduce(add, map(share, blocks(slice(0, len(group)), SUMMED))).astype(np.float32)
    if otherwise is not None:
        means[sizes == 0] = otherwise[sizes == 0]
    return means


def evenly(n: int, count: int) -> Array:
    """A number of the n rows, all of them if they are fewer."""
    return np.unique(np.linspace(0, n - 1, min(n, count)).astype(int))


def no_lists(n: int, k: int) -> tuple[Array, Array]:
    return np.full((n, k), -1, dtype=np.int32), np.full((n, k), np.inf, dtype=np.float32)


# --- lists ----------------------------------------------------------------------------------------

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
    exact: Callable[[Array, Array], Array] | None,
    share: float,
) -> tuple[Array, Array]:
    """Columns and values of the k smallest entries of every row, in order, ties by column.

    ``slack`` bounds the error of a row's entries; ``exact(rows, columns)`` measures again, if these are
    not measured already. Row r itself is column own + r, and does not count.
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
        measured = d[unsure[i], j] if exact is None else exact(unsure[i], j)
        columns[unsure, :k], values[unsure, :k] = first_k(i, j, measured, k, share)
    return columns[:, :k], values[:, :k]


def is_unsure(values: Array, slack: Array, share: float) -> Array:
    """Which rows have neighboring values, in order, that may be equal or change places."""
    with np.errstate(invalid="ignore"):  # infinite ones are as equal as any
        gap = values[:, 1:] - values[:, :-1]
    return ~(gap > share * values[:, :-1] + 2 * slack[:, None]).all(axis=1)


def farthest(kth: Array, slack: Array, share: float) -> Array:
    """What may be no farther than the k-th neighbor."""
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
        first = -len(d) if own is None else own  # no column is negative
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


def pair_distances(views: Sequence[Any], alpha: Array, i: Array, j: Array) -> Array:
    """Σ α_s d^s of the pairs (i, j)."""
    each = (a * view.pairs(i, j) for a, view in zip(alpha, views, strict=True) if a > 0)
    return sum(each, start=np.zeros(len(i)))


def ranked(
    views: Sequence[Any],
    alpha: Array,
    lists: Array,
    depth: int,
    k: int,
    threads: Threads | None,
    order: Array | None = None,
) -> tuple[Array, Array]:
    """The k nearest under Σ α_s d^s among a row's list and the first ``depth`` of its members' lists.

    In an ``order`` in which neighbors follow each other most of them are in the processor's cache; rows
    that it lacks get zeros.
    """
    n, width = lists.shape
    order = np.arange(n) if order is None else order
    indices, distances, none = np.zeros((n, k), dtype=np.int64), np.zeros((n, k)), np.zeros(n)
    depth, share = min(depth, width), equal_share(views[0].Z.dtype)
    step = max(1, 2**18 // (width * (1 + depth)))

    def work(rows: slice) -> None:
        for b in blocks(rows, step):
            here = order[b]
            members = lists[here]
            reached = lists[members, :depth].reshape(len(here), -1)
            # Every candidate once, in the order of the rows, and not the row itself.
            candidates = np.sort(np.hstack([members, reached]), axis=1)
            useful = candidates != here[:, None]
            useful[:, 1:] &= candidates[:, 1:] != candidates[:, :-1]
            useful &= candidates >= 0
            d = np.where(useful, 0.0, np.inf)
            i, j = here[np.nonzero(useful)[0]], candidates[useful]
            d[useful] = pair_distances(views, alpha, i, j)
            candidates[~useful] = -1
            first, distances[here] = nearest(d, k, None, none[: len(d)], None, share)
            indices[here] = np.take_along_axis(candidates, first, axis=1)

    (threads or Threads(1)).map(work, len(order))
    return indices, distances


#: Up to this many rows every pair is looked at.
EXACT = 30_000
#: The index is compared with exact neighbors of this many rows, and should find this share of them.
CHECKED_ROWS, RECALL = 200, 0.9
#: Most candidates per neighbor wanted, along some directions and with all features.
WIDE, WIDEST = 3, 4
#: Long rows are searched by some of their directions if these hold enough neighbors of a sample. The
#: directions are those of this many rows.
MORE_DIRECTIONS, DIRECTION_ROWS = (32, 64, 128, 256), 2**14
#: With at most this many features a tree finds exact neighbors quickly, however many rows there are.
TREE_FEATURES = 15
#: Rows that ask at a time, when all rows of a file are compared with them.
READ_QUERIES = 2**22


def use_index(n: int) -> bool:
    """Whether to search approximately; large data without the package is slow, and says so once."""
    if n <= EXACT:
        return False
    if compiled() is not None:
        return True
    warn_user(
        f"exact neighbors of {n} samples take time quadratic in their number; "
        "pip install 'manyview[fast]' for an approximate index"
    )
    return False


def index_neighbors(
    Z: Any,
    k: int,
    seed: int,
    threads: Threads | None = None,
    enough: float = RECALL,
) -> Array:
    """k approximate Euclidean neighbors of every row of Z, nearest first, itself left out.

    A sample of rows tells whether enough of the neighbors were found. The lists are the same for any
    number of threads.
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
        found[rest] = rest[index_neighbors(data[rest], k, seed, threads, enough)]
        found[behind] = before
        return found
    rows = np.random.default_rng(seed).choice(n, min(CHECKED_ROWS, n), replace=False)
    exact = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(data)
    distances, near = exact.kneighbors(data[rows])
    near, squared = without_own(near, distances**2, rows)
    sample = Sample(rows, near, squared[:, -1])
    parts = [Part(1.0, data, np.ones(n), np.ones(n, dtype=bool))]
    near, order = searched(parts, k, sample, seed, threads)
    found, d = ranked([SquaredGaps(data)], np.ones(1), near, 0, k, threads, order)
    recall = sample.reached(d, equal_share(np.float32))
    if recall < enough:
        tell_rough(recall, k)
    return found


def tell_rough(recall: float, k: int) -> None:
    """Say how few of the neighbors of a sample were found."""
    warn_user(
        f"the neighbor index finds only {recall:.0%} of the {k} nearest neighbors of a sample of "
        "rows; the graph is rough. Fewer, more informative features (a PCA of the view) would help"
    )


def searched(
    parts: list[Part], k: int, sample: Sample, seed: int, threads: Threads
) -> tuple[Array, Array]:
    """Candidates for the k nearest of every row under the distances of ``parts``; and rows cell by cell.

    By as few directions of dense rows as will do, and as few candidates as hold enough of a sample's
    neighbors.
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

    Without ``queries`` the rows of X ask, and none is its own neighbor.
    """
    asking, alone = (X, True) if queries is None else (queries, False)
    search = NearestNeighbors(n_neighbors=min(k + 1, X.shape[0] - alone)).fit(X)
    distances, indices = search.kneighbors(queries)
    squared, share = distances**2, equal_share(X.dtype)
    # Neighbors are near: no longer than the row itself and the distance together.
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
    for b in blocks(slice(0, len(first)), max(1, READ_QUERIES // X.shape[0])):
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

    Geometry are those of pairs, the same in any block. Queries that are rows of the view themselves,
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


def streamed_neighbors(
    X: Any, k: int, queries: Any = None, threads: Threads | None = None
) -> tuple[Array, Array]:
    """Nearest rows of a view in a file (indices and squared distances), by reading it in blocks.

    Up to `EXACT` rows, and for unseen rows, every pair is looked at. Above, the rows of X are
    searched by an index of their `DIRECTIONS` leading directions, and distances are in these.
    """
    available = X.shape[0] - (queries is None)
    k = min(k, available)
    if queries is None and use_index(available):
        sketch = project(X, leading_directions(X))
        near = index_neighbors(sketch, k, 0, threads)
        squared = np.empty(near.shape)
        for b in blocks(slice(0, len(near)), 4096):
            gap = sketch[near[b]] - sketch[b][:, None]
            squared[b] = np.einsum("ikm,ikm->ik", gap, gap)
        return merged([(near, squared)], k, equal_share(sketch.dtype))
    asking = X if queries is None else as_source(queries)
    found = [
        _nearest_in_file(X, asking.read(rows), k, rows.start if queries is None else None)
        for rows in blocks(slice(0, asking.shape[0]), max(1, READ_QUERIES // X.shape[1]))
    ]
    indices, squared = (np.concatenate(part) for part in zip(*found, strict=True))
    return indices, squared


def _nearest_in_file(X: Any, rows: Matrix, k: int, own: int | None) -> tuple[Array, Array]:
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


#: Candidates by products beyond the neighbors wanted, when all pairs are looked at.
EXTRA_CANDIDATES = 8
#: Rows per block when a sample of rows is compared with all, and entries of long ones.
ANSWERING, ENTRIES = 2**14, 2**22
#: Entries of a temporary block of distances, and fewest rows of it.
BLOCK, FEWEST = 2**19, 64


def masses(view: Geometry, rows: Array, indices: Array, crowds: Crowds | None) -> Array | None:
    """What the pairs of lists count; None where all count alike."""
    if view.mass is None and crowds is None:
        return None
    own = np.ones(view.n_samples) if view.mass is None else view.mass
    theirs = own[on_host(indices)]
    if crowds is not None:
        theirs[np.searchsorted(rows, crowds.rows)] = crowds.stands_for
    return own[rows][:, None] * theirs


# --- some of the pairs -------------------------------------------------------------------------


def approximate(
    views: list[Geometry],
    alpha: Array,
    rows: Array,
    k: int,
    seed: int,
    threads: Threads | None,
) -> tuple[Array, Array]:
    """The k nearest of ``rows`` for each of them under Σ α_s d^s, but for a few that are missed."""
    threads, n = threads or Threads(1), views[0].n_samples
    checked = min(CHECKED_ROWS, len(rows))
    asking = np.random.default_rng(seed).choice(len(rows), checked, replace=False)
    sample = Sample(asking, *sample_lists(views, alpha, asking, rows, k, threads))
    near, order = searched(parts_of(views, alpha, rows), k, sample, seed, threads)
    lists = near if len(rows) == n else for_all_rows(rows, rows[near], n)
    share = equal_share(views[0].Z.dtype)
    indices, d = ranked(views, alpha, lists, 0, k, threads, rows[order])
    if sample.reached(d[rows], share) < RECALL:
        indices, d = ranked(views, alpha, indices, DEPTH, k, threads, rows[order])
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
        # All rows are not copied.
        others = part if len(rows) == views[0].n_samples else rows[part]
        d: Any = sum(a * view.across(rows[asking], others) for a, view in heard)
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
    """The k nearest of ``rows`` for each of them under Σ α_s d^s; with or without them where ``known``.

    Products in single precision tell which rows may be among them. Where these are too many, distances
    from products in the precision of the views are used, as they are without others.
    """
    n, threads = len(rows), threads or Threads(1)
    indices, d = np.empty((n, k), dtype=np.int64), np.empty((n, k))
    unsure = np.ones(n, dtype=bool)
    # Products of two sides have the distances of whole rows, and are quicker where none are kept.
    heard = [view for a, view in zip(alpha, views, strict=True) if a > 0]
    if compiled() is not None and all(v.observed is None and v.products() is None for v in heard):
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
    rights = [view.right_side() if many and view.products() is None else None for _, view in heard]
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
