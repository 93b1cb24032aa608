"""Candidates for nearest neighbors: rows with the smallest products of two sides, in single precision.

In one view d_ij = ‖z_i − z_j‖²/(m_i m_j) with m = √μ. With u = √α z/m, q = √α ‖z‖²/m and b = √α/m,

    α d_ij = −2 u_i·u_j + q_i b_j + b_i q_j,

so that one product of matrices has Σ_s α_s d^s of many pairs. A row that is missing in a view is at 1
there: its u, q and b are zero, and α − α c_i c_j is added, where c says who is there. The u of all views
may be replaced by their coordinates along the directions in which they vary most. Where entries are
unobserved, a row that has the share f of them has z/f and ‖z‖²/f in place of z and ‖z‖²: that is d_ij, if
what is observed in one row has nothing to do with what is in the other.

Where rows are too many to look at all pairs, they are cut into cells, and a row looks into those with the
smallest mean products. How many, a sample of rows tells whose neighbors are known: as many as hold nearly
all of these. Rows are searched in chunks that N alone decides, so that lists are the same for any number
of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms
from threadpoolctl import threadpool_limits

from manyview._types import Array, Matrix
from manyview.engines.threads import Threads, blocks

from .compiled import compiled
from .sources import leading_directions, looking_rows, project

#: How much longer a product of two sparse numbers takes than one of many in a dense product.
SPARSE_COST = 32
#: Columns that are put in another order together: a line of memory holds so many.
COLUMNS = 16

if TYPE_CHECKING:
    from .distances import Geometry


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
        # Distances do not care where the origin is; around the mean, numbers are small and round well.
        self.sparse, self.centre = sp.issparse(Z), np.zeros(Z.shape[1])
        if self.sparse:
            self.squared = row_norms(Z, squared=True)
            return
        self.centre, self.squared = Z.mean(axis=0, dtype=float), np.empty(len(here))
        for b in blocks(slice(0, len(here)), looking_rows(Z.shape[1])):
            self.squared[b] = row_norms(self._centred(b), squared=True)

    def _centred(self, rows: slice) -> Array:
        gap = (self.Z[rows] - self.centre).astype(np.float32)
        return gap if self.observed is None else gap * self.observed[rows]

    def read(self, rows: slice) -> Array:
        """u of a dense view."""
        return self._centred(rows) * self.scale[rows, None]

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

    def read(self, rows: slice) -> Array:
        none = np.empty((rows.stop - rows.start, 0), dtype=np.float32)
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
            directions = leading_directions(joint, n_directions, joint.dtype)
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

    @property
    def n_rows(self) -> int:
        return len(self.right)

    def places(self) -> Array:
        """u, or what replaces it, sparse ones along their leading directions: near for rows that are."""
        dense = self.right[:, : self.width]
        if self.sparse is None:
            return dense
        directions = leading_directions(self.sparse, dtype=np.float32)
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
        return dense + SPARSE_COST * float(frequency @ frequency) / self.n_rows

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


class Posted:
    """Sparse u by rows and, for every block of rows, who of them has a feature."""

    def __init__(self, u: sp.csr_array, starts: Array):
        self.entries = u.indptr, u.indices, u.data
        by_column = [u[first:last].tocsc() for first, last in pairwise(starts)]
        ends = np.cumsum([0, *(block.nnz for block in by_column)])
        self.posts = np.stack([block.indptr.astype(np.int64) for block in by_column])
        self.posts += ends[:-1, None]
        self.posted = np.concatenate([block.indices for block in by_column])
        self.values = np.concatenate([block.data for block in by_column])

    def add_to(self, products: Array, asking: Array, block: int) -> None:
        """Add −2 u_i·u_j for rows ``asking`` and those of a block."""
        kernels = compiled()
        posts = self.posts[block], self.posted, self.values
        kernels.add_shared(products, asking, *self.entries, *posts)


def parts_of(views: list[Geometry], alpha: Array, rows: Array) -> list[Part]:
    """What views with weight add to Σ α_s d^s of some rows."""
    every = len(rows) == views[0].n_samples
    chosen: Any = slice(None) if every else rows  # all rows are not copied
    parts = []
    for a, view in zip(alpha, views, strict=True):
        if a > 0:  # also one that tells nobody apart: all are at 1 there
            observed = None if view.observed is None else view.observed[chosen]
            Z = view.Z if every else view.Z[rows]
            parts.append(Part(float(a), Z, view.root_mu[chosen], view.comparable[chosen], observed))
    return parts


#: Rows that ask at a time: all others, and those in cells, where each asks for some.
ASKING, ASKING_CELLS = 2048, 4096
#: Rows they are compared with at a time.
ASKED = 4096
#: Of dense rows so many of these at a time: products stay in the processor's cache.
TILE = 512
#: Rows of a cell, of one of sparse rows, rows per cell from which cells are found, and rounds of that.
CELL, SPARSE_CELL, PER_CELL, ROUNDS = 300, 1000, 40, 5
#: Rows that are summed at a time.
SUMMED = 2**16
#: Share of a sample's neighbours that lists of candidates hold, and the cells looked into: of single views,
#: whose lists are means over many rows, fewer will do than under the distance that gives the clusters.
NEARLY_ALL, ENOUGH, ENOUGH_ALONE = 0.99, 0.99, 0.98
#: Most multiplications for one row: they take less than a millisecond.
MOST_WORK = 2**25


class Sample(NamedTuple):
    """Some rows, the nearest of each, all pairs looked at, and how far the last of them is."""

    rows: Array
    near: Array
    last: Array
    #: The share of them that cells should hold.
    enough: float = ENOUGH

    def reached(self, d: Array, share: float) -> float:
        """The share of the places in these rows' lists that somebody as near has."""
        return float((d[self.rows] <= self.last[:, None] * (1 + share)).mean())

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
    kernels = compiled()
    n, asking = sides.n_rows, np.arange(sides.n_rows) if rows is None else rows
    near, values = _no_lists(len(asking), k)

    def look(some: slice, posted: Posted | None, part: slice) -> None:
        left, places = sides.left(asking[part]), np.arange(part.start, part.stop)
        for tile in blocks(some, ASKED if posted else TILE):
            products = left @ sides.right[tile].T
            if posted is not None:
                posted.add_to(products, asking[part], 0)
            kernels.take(products, places, asking[part], tile.start, near, values)

    for some in blocks(slice(0, n), ASKED):
        posted = _posted(sides, np.array([some.start, some.stop]))
        _on_threads(threads, partial(look, some, posted), len(asking), ASKING)
    return near.astype(np.int64), values


def nearest_in_cells(sides: Sides, k: int, sample: Sample, seed: int, threads: Threads) -> Array:
    """k rows with small products for every row: nearly all of the smallest. Sides get another order."""
    kernels = compiled()
    cells = Cells.of(sides, seed)
    wanted = cells.wanted(sides, sample)
    sides.put_in_order(cells.order)
    near, values = _no_lists(sides.n_rows, k)
    posted = _posted(sides, cells.starts)

    def look(part: slice) -> None:
        left = sides.left(part)
        chosen = cells.chosen(cells.products(sides, part), wanted)
        # Those that most look into first: once lists are good, little has to be put into them.
        for cell in np.argsort(-chosen.sum(axis=1), kind="stable"):
            first, last = cells.starts[cell : cell + 2]
            asking = np.flatnonzero(chosen[cell])
            for b in blocks(slice(0, len(asking)), max(1, ASKING * ASKED // (last - first))):
                products = left[asking[b]] @ sides.right[first:last].T
                who = asking[b] + part.start
                if posted is not None:
                    posted.add_to(products, who, cell)
                kernels.take(products, who, who, first, near, values)

    _on_threads(threads, look, sides.n_rows, ASKING_CELLS)
    _complete(near)
    found = np.empty_like(near)
    found[cells.order] = cells.order.astype(near.dtype)[near]
    return found


def _posted(sides: Sides, starts: Array) -> Posted | None:
    return None if sides.sparse is None else Posted(sides.sparse, starts)


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
        n, u, size = sides.n_rows, sides.sparse, CELL if sides.sparse is None else SPARSE_CELL
        count = max(1, n // size)
        if u is not None:  # a cell knows for every feature who has it: no more room than that of u
            count = max(1, min(count, u.nnz // u.shape[1]))
        rng, places = np.random.default_rng(seed), sides.places()
        some = places[np.sort(rng.choice(n, min(n, PER_CELL * count), replace=False))]
        centres = _centres(some, count, rng)
        # Cells of one region follow each other: rows that ask together look into the same ones.
        regions = _centres(centres, round(count**0.5), rng)
        centres = centres[np.argsort(_nearest_of(centres, regions), kind="stable")]
        _, cell, sizes = np.unique(  # cells without rows are none
            _nearest_of(places, centres), return_inverse=True, return_counts=True
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
        """How many cells a row has to look into for enough of its neighbours."""
        cell = np.empty(len(self.order), dtype=np.int64)
        cell[self.order] = np.repeat(np.arange(len(self.means)), np.diff(self.starts))
        nearness = np.argsort(self.products(sides, sample.rows), axis=1)
        rank = np.argsort(nearness, axis=1)
        needed = np.sort(np.take_along_axis(rank, cell[sample.near], axis=1).ravel())
        wanted = int(needed[min(int(sample.enough * len(needed)), len(needed) - 1)]) + 1
        return max(1, min(wanted, int(MOST_WORK * len(self.means) / sides.work())))

    @staticmethod
    def chosen(products: Array, wanted: int) -> Array:
        """Which rows look into which cells (cells × rows): those with the smallest products."""
        if wanted >= products.shape[1]:
            return np.ones(products.T.shape, dtype=bool)
        limit = np.partition(products, wanted - 1, axis=1)[:, wanted - 1]
        return np.ascontiguousarray((products <= limit[:, None]).T)


def _centres(places: Array, count: int, rng: np.random.Generator) -> Array:
    """Means of groups of rows near each other: some rounds of k-means."""
    centres = places[rng.permutation(len(places))[:count]]
    for _ in range(ROUNDS):
        centres = _means(places, _nearest_of(places, centres), count, centres)
    return centres


def _nearest_of(places: Array, centres: Array) -> Array:
    """The nearest centre of every row."""
    sizes, nearest = (centres * centres).sum(axis=1), np.empty(len(places), dtype=np.int64)
    for b in blocks(slice(0, len(places)), ASKED):
        nearest[b] = (sizes - 2 * (places[b] @ centres.T)).argmin(axis=1)
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


def _on_threads(threads: Threads, look: Callable[[slice], None], n_rows: int, size: int) -> None:
    """Chunks of rows on threads, each with products of its own."""
    with threadpool_limits(1, "blas"):
        threads.each(look, list(blocks(slice(0, n_rows), size)))


def _no_lists(n: int, k: int) -> tuple[Array, Array]:
    return np.full((n, k), -1, dtype=np.int32), np.full((n, k), np.inf, dtype=np.float32)


def _complete(near: Array) -> None:
    """Where less than k rows were met, some of those that follow the row."""
    n, k = near.shape
    for i in np.flatnonzero(near[:, -1] < 0):
        have = near[i][near[i] >= 0]
        rest = np.setdiff1d((i + 1 + np.arange(2 * k)) % n, [*have, i])
        near[i] = np.concatenate([have, rest])[:k]
