"""One view as a space of distances: scaled features, who is present, how far apart any rows are.

A row without any observed value (all NaN, or all zero) is *missing*: it is as far from everything as
a random pair, the neutral distance 1. A NaN inside a row is *unobserved*: distances then use the
features both rows have, rescaled to all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import row_norms

from manyview._arrays import converted, is_tensor, like, namespace, on_host
from manyview._types import Array, Matrix, storable
from manyview.engines.protocols import Lists, Remote
from manyview.engines.threads import Threads, blocks
from manyview.maths.coordinates import closed_neighborhoods

from .compiled import compiled
from .masked import unit_sum_rows
from .neighbors import (
    DIRECTION_ROWS,
    all_pairs,
    approximate,
    equal_share,
    evenly,
    masses,
    product_error,
    use_index,
)
from .presence import has_nan
from .repeats import crowds_of, row_codes
from .scaling import Linked, sampled, unit_rows
from .sources import DIRECTIONS, UnitRows, leading_directions, over, project


def feature_moments(
    Z: Matrix, present: Array, observed: Array | None, mass: Array | None
) -> tuple[Array, Array, Array]:
    """Per feature: mean square, mean and number of the observed values of present rows.

    In double precision; rows are weighted by ``mass``.
    """
    xp = namespace(Z)
    if mass is not None:
        weight = like(mass * present, Z) if is_tensor(Z) else mass * present

        def total(part: Matrix) -> Array:
            if sp.issparse(part):
                return part.T @ weight
            return converted(weight, xp.float64) @ converted(part, xp.float64)

        squares = total(Z.multiply(Z) if sp.issparse(Z) else Z * Z)
        n = 0 * squares + (mass * present).sum() if observed is None else weight @ observed
        return squares / n.clip(1), total(Z) / n.clip(1), n
    rows = Z if present.all() else Z[present]
    if sp.issparse(rows) or is_tensor(rows):
        squares = rows.multiply(rows) if sp.issparse(rows) else rows * rows
        squares = squares.sum(axis=0, dtype=xp.float64).reshape(-1)
    else:
        squares = np.einsum("im,im->m", rows, rows, dtype=float)
    if observed is None:
        n = 0 * squares + float(rows.shape[0])
    else:
        n = observed[present].sum(axis=0, dtype=float)
    mean = rows.sum(axis=0, dtype=xp.float64).reshape(-1) / n.clip(1)
    return squares / n.clip(1), mean, n


def mean_distances(
    Z: Matrix, observed: Array | None, mean_sq: Array, mean: Array, n: Array
) -> Array:
    """μ_i = (M/|O_i|) Σ_{m∈O_i} (z_im² − 2 z_im mean_m + mean_sq_m)·n_m/(n_m − 1)."""
    correction = (n > 1) * n / (n - 1).clip(1)
    if observed is None:
        level = float(mean_sq @ correction)
        if is_tensor(Z):
            correction, mean = (converted(part, Z.dtype) for part in (correction, mean))
        # In double precision, where these are differences soon.
        if is_tensor(Z):
            own = (Z * Z).sum(axis=1)
        elif sp.issparse(Z):
            own = np.ravel(Z.multiply(Z).sum(axis=1, dtype=float))
        else:
            own = np.einsum("im,im->i", Z, Z, dtype=float)
        # All features are observed equally often: one correction.
        own = own * (correction[0] if len(correction) else 1.0)
        return own - 2 * (Z @ (mean * correction)) + level
    total = (Z * Z) @ correction - 2 * (Z @ (mean * correction)) + observed @ (mean_sq * correction)
    return total * Z.shape[1] / np.maximum(observed.sum(axis=1), 1)


def squared_norms(Z: Matrix) -> Array:
    """‖z_i‖² of every row."""
    return (Z * Z).sum(axis=1) if is_tensor(Z) else row_norms(Z, squared=True)


#: Most products of the rows of a sparse view, or of one with few features, that are kept.
FEW_PRODUCTS = 2**24
#: Entries of long rows that are multiplied together.
CENTERED = 2**20
#: Sparse views with a larger share of nonzeros are written out: where compiled loops make products of
#: all rows, of limited size, and any others.
WITH_PRODUCTS, HARDLY_SPARSE, SMALL, FULL = 0.06, 0.03, 2**25, 0.25


@dataclass(frozen=True)
class Products:
    """Products of the distinct rows of a view about some origin, and which of them each row is."""

    table: Array
    #: The place of every row in the table; None: its own.
    of: Array | None = None

    def own(self) -> Array:
        """‖z_i‖² of every row."""
        own = self.table.diagonal()
        return own if self.of is None else own[self.of]

    def squared(self, rows: slice | Array) -> Array:
        """‖z_i − z_j‖² of some rows and all rows, but for rounding errors."""
        own = self.table.diagonal()
        left = rows if self.of is None else self.of[rows]
        d = -2 * self.table[left]
        d += own[left, None]
        d += own
        return d if self.of is None else d.take(self.of, axis=1)

    def squared_pairs(self, i: Array, j: Array) -> Array:
        """The same of the pairs (i, j)."""
        own = self.table.diagonal()
        i, j = (i, j) if self.of is None else (self.of[i], self.of[j])
        return own[i] + own[j] - 2 * self.table[i, j]

    def among(self, rows: Array | None) -> Array:
        """Products of some of the rows with each other; of all for None."""
        places = self.of if rows is None else rows if self.of is None else self.of[rows]
        return self.table if places is None else self.table[np.ix_(places, places)]

    def less(self, part: Products, codes: Array) -> Products:
        """What is left without the products over some of the features; ``codes`` tell rows apart there."""
        first, of = first_and_of(codes)
        return Products(self.among(first) - part.among(first), of)


def products_of(Z: Matrix, codes: Array) -> Products:
    """Products of the rows, of which those with equal ``codes`` are identical.

    One symmetric product is half the work of one block after the other. Dense rows are taken from
    their mean, from which they are less far than from 0: distances keep more digits.
    """
    first, of = first_and_of(codes)
    if sp.issparse(Z):
        return Products(sparse_products(Z if first is None else Z[first]), of)
    n = Z.shape[0] if first is None else len(first)
    mean, table = Z.mean(axis=0), np.zeros((), dtype=Z.dtype)
    # Of long rows some columns at a time: no second array of the size of the view.
    for part in blocks(slice(0, Z.shape[1]), max(n, CENTERED // n)):
        centered = Z[:, part] if first is None else Z[first, part]
        centered = centered - mean[part]
        table = table + centered @ centered.T
    return Products(table, of)


def first_and_of(codes: Array) -> tuple[Array | None, Array | None]:
    """The first of every kind of row and the kind of every row; None where all are distinct."""
    _, first, of = np.unique(codes, return_index=True, return_inverse=True)
    return (None, None) if len(first) == len(codes) else (first, of)


def sparse_products(Z: sp.csr_array) -> Array:
    """Z Zᵀ as a dense array."""
    kernels = compiled()
    if kernels is None:
        return (Z @ Z.T).toarray()
    starts = np.concatenate([[0], np.cumsum(np.bincount(Z.indices, minlength=Z.shape[1]))])
    rows, values = np.empty(Z.nnz, dtype=np.int32), np.empty_like(Z.data)
    out = np.zeros((Z.shape[0],) * 2, dtype=Z.dtype)
    kernels.sparse_products(Z.indptr, Z.indices, Z.data, starts, rows, values, out)
    return out


def written_out(Z: Matrix) -> Matrix:
    """A view as a dense array if that is quicker and takes little room: few of its entries are zeros."""
    if not sp.issparse(Z):
        return Z
    entries = Z.shape[0] * Z.shape[1]
    dense = HARDLY_SPARSE if entries <= SMALL else FULL
    if Z.shape[0] ** 2 <= FEW_PRODUCTS and compiled() is not None:
        dense = max(dense, WITH_PRODUCTS)
    return Z.toarray() if Z.nnz > dense * entries else Z


#: Sparse views of more rows, of this many rows per feature and of at least this share of nonzeros, such as
#: genes of cells, are compared along leading directions. In texts, with few words in a row, the directions
#: of small groups drown in noise: 100 topics were lost, which all features show.
MANY_SPARSE, ROWS_PER_FEATURE, TELLING = 2**12, 4, 0.06
#: Entries of a temporary block of distances: small enough to stay in the processor's cache.
BLOCK = 2**19
#: A distance from products is as good as measured if equal distances are this many times farther apart
#: than its rounding error.
CERTAIN = 10


@storable
class Geometry:
    """Distances d_ij = ‖z_i − z_j‖²/√(μ_i μ_j) within one scaled view.

    μ_i is the mean squared distance of row i to all others: d = 1 is "no closer than a random pair".
    """

    #: How often every row counts; None: all alike.
    mass: Array | None = None
    #: The batch of every row, where rows of several batches have been aligned.
    batch: Array | None = None
    #: Whether unseen rows may have unobserved entries.
    takes_holes = True
    #: z_i·z_j of all rows, computed on first use, of a view that is no smaller than they are.
    _products: Products | None = None
    #: `codes`, computed on first use.
    _codes: Array | None = None

    def __init__(
        self, Z: Matrix, present: Array, unit_rows: bool = False, mass: Array | None = None
    ):
        self.present, self.unit_rows = present, unit_rows
        if mass is not None:
            self.mass = mass
        #: Which entries are known; None: all (in rows that have any).
        self.observed: Array | None = None
        if not sp.issparse(Z) and (is_tensor(Z) or has_nan(Z)):
            known = ~namespace(Z).isnan(Z)
            self.observed = None if bool(known.all()) else known
        self.Z: Matrix = Z if self.observed is None else np.where(self.observed, Z, 0)
        if sp.issparse(Z):
            Z.sort_indices()  # once: pairs are measured on threads
        self.n_samples, self.n_features = Z.shape
        self.sq = squared_norms(self.Z)
        self._moments_ = feature_moments(self.Z, self.present, self.observed, self.mass)
        self.root_mu = self.new_root_mu(self.Z, self.observed)
        #: Rows with distances to speak of: present, in a view that is not constant.
        self.comparable = present & on_host(self.root_mu > 0)

    def new_root_mu(self, Z: Matrix, observed: Array | None) -> Array:
        """√μ of rows of ``Z``, which may be unseen; exactly 0 in a constant view."""
        mean_sq = self._moments_[0]
        mu = mean_distances(Z, observed, *self._moments_)
        # Below rounding errors all rows are the same row.
        floor = 1e-12 if mu.dtype != namespace(mu).float32 else 1e-5
        return namespace(mu).where(mu > floor * float(mean_sq.sum()), mu, 0) ** 0.5

    def between(self, rows: Array, right: Matrix = None) -> Array:
        """Distances of some rows to all; 1 where one of two is missing."""
        products = self.products()
        if products is not None:
            inverse, d = self._inverse_root_mu(), products.squared(rows)
            d *= inverse[rows, None]
            d *= inverse
            np.maximum(d, 0, out=d)
            d[:, ~self.comparable] = 1
        else:
            observed = None if self.observed is None else self.observed[rows]
            d = self.to_all(self.Z[rows], observed, self.root_mu[rows], right)
        d[~self.comparable[rows]] = 1
        return d

    def across(self, rows: Array, others: slice | Array) -> Array:
        """Distances of some rows to some others, in double precision; 1 where one of two is missing."""
        there = copy(self)
        # Of norms in single precision nothing would be left of the gaps between rows far from 0.
        there.Z, there.root_mu = self.Z[others].astype(float, copy=False), self.root_mu[others]
        there.comparable, observed = self.comparable[others], self.observed
        if observed is not None:
            there.observed, observed = observed[others], observed[rows]
        d = there.to_all(self.Z[rows].astype(float), observed, self.root_mu[rows])
        d[~self.comparable[rows]] = 1
        return d

    def products(self) -> Products | None:
        """Products of all rows of a wide or small view, kept for the next call; None for others."""
        if self._products is None and self.observed is None:
            n, m = self.Z.shape
            few = n**2 <= FEW_PRODUCTS
            if few if sp.issparse(self.Z) else n <= (4 if few else 2) * m:
                self._products = products_of(self.Z, self.codes())
        return self._products

    def _inverse_root_mu(self) -> Array:
        return np.divide(1, self.root_mu, out=np.zeros_like(self.root_mu), where=self.root_mu > 0)

    def to_all(
        self, Z: Matrix, observed: Array | None, root_mu: Array | None = None, right: Matrix = None
    ) -> Array:
        """d from rows of ``Z`` (this view's, or unseen) to every row; 1 where that row is missing."""
        root_mu = self.new_root_mu(Z, observed) if root_mu is None else root_mu
        if observed is None and self.observed is None:
            right = self.right_side() if right is None else right
            d = self._side(Z, root_mu, left=True) @ right.T
            d = d.toarray() if sp.issparse(d) else d
        else:
            d = self._with_holes(Z, observed, root_mu)
        np.maximum(d, 0, out=d)
        if not self.comparable.all():
            d[:, ~self.comparable] = 1
        return d

    def right_side(self) -> Matrix | None:
        """What `to_all` multiplies with, made once for many calls; None where entries are unobserved."""
        return self._side(self.Z, self.root_mu, left=False) if self.observed is None else None

    def _side(self, Z: Matrix, root_mu: Array, left: bool) -> Matrix:
        """Rows whose products are distances: [−2z, ‖z‖², 1]/√μ on the left, [z, 1, ‖z‖²]/√μ right."""
        scale = ((root_mu > 0) / (root_mu + (root_mu <= 0)))[:, None]
        ends = [squared_norms(Z)[:, None] * scale, scale]
        ends = ends if left else ends[::-1]
        factor = -2 * scale if left else scale
        if sp.issparse(Z):
            return sp.csr_array(sp.hstack([Z.multiply(factor), *map(sp.csr_array, ends)]))
        return namespace(Z).hstack([Z * factor, *ends])

    def _with_holes(self, Z: Array, observed: Array | None, root_mu: Array) -> Array:
        """Distances over shared observed features, rescaled to all; 1 where none is shared."""
        mine = np.ones(Z.shape) if observed is None else observed.astype(float)
        theirs = np.ones(self.Z.shape) if self.observed is None else self.observed.astype(float)
        d = (Z * Z) @ theirs.T - 2 * (Z @ self.Z.T) + mine @ (self.Z * self.Z).T
        norm = np.outer(root_mu, self.root_mu) * (mine @ theirs.T) / self.n_features
        return np.divide(d, norm, out=np.ones_like(d), where=norm > 0)

    def nearest(self, k: int, seed: int = 0, threads: Threads | None = None) -> Lists:
        """The k nearest rows of every comparable row."""
        rows = np.flatnonzero(self.comparable)
        k = min(k, len(rows) - 1)
        if k < 1:
            return Lists(rows[:0], np.empty((0, 1), dtype=np.int64), np.empty((0, 1)))
        crowds = crowds_of(self, rows, k)
        asking = rows if crowds is None else np.setdiff1d(rows, crowds.behind)
        if use_index(len(asking)):
            indices, d = approximate([self], np.ones(1), asking, k, seed, threads)
        else:
            known = rows[:0] if crowds is None else np.setdiff1d(crowds.rows, crowds.behind)
            indices, d = all_pairs([self], np.ones(1), asking, k, known, threads)
        if crowds is not None:
            found, at = (indices, d), np.searchsorted(rows, asking)
            indices, d = np.empty((len(rows), k), dtype=np.int64), np.zeros((len(rows), k))
            indices[at], d[at] = found
            at = np.searchsorted(rows, crowds.rows)
            indices[at], d[at] = crowds.near, 0
        return Lists(rows, indices, d, masses(self, rows, indices, crowds))

    def fused_nearest(
        self,
        views: list[Any],
        weights: Array,
        k: int,
        seed: int,
        threads: Threads | None = None,
    ) -> tuple[Array, Array]:
        """The k nearest rows of every row under the weighted sum of the distances of such views."""
        k, everyone = min(k, self.n_samples - 1), np.arange(self.n_samples)
        if use_index(self.n_samples):
            return approximate(views, weights, everyone, k, seed, threads)
        return all_pairs(views, weights, everyone, k, everyone[:0], threads)

    def pairs(self, i: Array, j: Array) -> Array:
        """d of the pairs (i, j), exactly as `blocks` has it; 1 where a member is missing."""
        if self._products is None:
            return self._measured(i, j)
        inverse, codes = self._inverse_root_mu(), self.codes()
        d = self._products.squared_pairs(i, j) * inverse[i] * inverse[j]
        unsure = ~(d * equal_share(self.Z.dtype) > CERTAIN * self.slack()[i])
        alike, missing = codes[i] == codes[j], ~(self.comparable[i] & self.comparable[j])
        d[alike] = 0
        d[missing] = 1
        unsure[alike | missing] = False
        again = np.flatnonzero(unsure)
        d[again] = self._measured(i[again], j[again])
        return d

    def _measured(self, i: Array, j: Array) -> Array:
        """d of every pair from its own differences."""
        kernels, d = compiled(), np.ones(len(i))
        i, j = (np.asarray(side, dtype=np.int64) for side in (i, j))  # compiled for once
        if kernels is not None and sp.issparse(self.Z):
            entries = (self.Z.indptr, self.Z.indices, self.Z.data)
            kernels.sparse_pair_distances(entries, self.root_mu, self.comparable, i, j, d)
            return d
        if kernels is not None and self.observed is None:
            kernels.pair_distances(self.Z, self.root_mu, self.comparable, i, j, d)
            return d
        for part in blocks(slice(0, len(i)), max(1, 4 * BLOCK // self.n_features)):
            d[part] = self._pairs(i[part], j[part])
        return d

    def _pairs(self, i: Array, j: Array) -> Array:
        gap = self.Z[i] - self.Z[j]  # from norms and products, copies would not be at 0
        if sp.issparse(gap):
            squared = gap.multiply(gap).sum(axis=1)
        else:
            if self.observed is not None:
                both = self.observed[i] & self.observed[j]
                shared = both.sum(axis=1)
                squared = np.einsum("em,em->e", gap * both, gap)
                of_all = squared * self.n_features / np.maximum(shared, 1)
                squared = np.where(shared > 0, of_all, np.nan)
            else:
                squared = np.einsum("em,em->e", gap, gap)
        norm = self.root_mu[i] * self.root_mu[j]
        d = np.divide(np.maximum(squared, 0), norm, out=np.ones_like(norm), where=norm > 0)
        d = np.nan_to_num(d, nan=1.0)
        return np.where(self.comparable[i] & self.comparable[j], d, 1)

    def slack(self, lengths: Array | None = None) -> Array:
        """Bounds of the rounding errors in `to_all`, for rows with these `lengths` (or this view's)."""
        products = self.products() if lengths is None else None
        squared = self.sq if products is None else products.own()
        own, largest = self._lengths(squared, self.root_mu), 0.0
        if self.comparable.any():
            largest = float(own[self.comparable].max())
        error = product_error(self.Z.dtype, self.n_features)
        error *= 1 if self.observed is None else self.n_features  # few shared ones stand for all
        return error * ((own if lengths is None else lengths) + largest) ** 2

    @staticmethod
    def _lengths(squared: Array, root_mu: Array) -> Array:
        """‖z‖/√μ; 0 in a constant view."""
        return np.divide(np.sqrt(squared), root_mu, out=np.zeros(len(squared)), where=root_mu > 0)

    def coordinates(self, Z: Matrix) -> Matrix:
        """Scaled rows in the space in which this view measures distances."""
        return Z

    def to_new(self, Z: Matrix, observed: Array | None, step: int) -> Iterator[tuple[Array, Array]]:
        """d from unseen rows to every row, ``step`` rows at a time, and bounds of its rounding errors."""
        right, Z = self.right_side(), self.coordinates(Z)
        for rows in blocks(slice(0, Z.shape[0]), step):
            known = None if observed is None else observed[rows]
            root_mu = self.new_root_mu(Z[rows], known)
            d = self.to_all(Z[rows], known, root_mu, right)
            yield d, self.slack(self._lengths(row_norms(Z[rows], squared=True), root_mu))

    def codes(self) -> Array:
        """A number for every row; rows that are identical in this view have the same."""
        if self._codes is None:
            self._codes = row_codes(self.Z)
            if self.observed is not None:
                self._codes = self._codes + row_codes(self.observed.astype(np.float32))
        return self._codes

    def unit_sums(self) -> Any:
        """The rows with unit L1 norm, as a pass of the factorization reads them."""
        return unit_sum_rows(self.Z, self.observed)

    def __getstate__(self) -> dict[str, Any]:
        """What copies and files have of it: all but what can be made again."""
        made = ("_products", "_codes")
        return {name: held for name, held in vars(self).items() if name not in made}

    def for_model(self, sparse: bool) -> Geometry:
        """What a fitted model keeps: all but products of rows, and sparse what came so."""
        new = copy(self)
        if sparse and not sp.issparse(self.Z):
            new.Z = sp.csr_array(self.Z)
        return new

    def distinct(self, first: Array, mass: Array | None) -> Geometry:
        """The same view of some of the rows, weighted by ``mass``."""
        new = copy(self)
        new.mass, new.Z, new.sq = mass, self.Z[first], self.sq[first]
        new.observed = None if self.observed is None else self.observed[first]
        new.present, new.n_samples = self.present[first], len(first)
        new._moments_ = feature_moments(new.Z, new.present, new.observed, new.mass)
        new.root_mu = new.new_root_mu(new.Z, new.observed)
        new.comparable = new.present & on_host(new.root_mu > 0)
        return new

    def mass_of(self, rows: Array) -> Array | None:
        return None if self.mass is None else self.mass[rows]

    def rows(self, chosen: Array) -> Geometry:
        """The same view of some of the rows."""
        Z = self.Z[chosen]
        if self.observed is not None:
            Z = np.where(self.observed[chosen], Z, np.nan)
        return type(self)(Z, self.present[chosen], self.unit_rows, self.mass_of(chosen))

    def half(self, columns: Array) -> Geometry:
        """The same rows seen through some of the features; count data get unit rows again."""
        if sp.issparse(self.Z):
            Z = self.Z.tocsc()[:, columns].tocsr()
        elif isinstance(self.Z, np.ndarray):
            Z = np.take(self.Z, columns, axis=1)  # by rows, as pairs are measured
        else:
            Z = self.Z[:, columns]
        if self.observed is not None:
            Z = np.where(self.observed[:, columns], Z, np.nan)
        elif self.unit_rows:
            Z = normalize(Z) if sp.issparse(Z) else unit_rows(Z)
        return type(self)(Z, self.present, self.unit_rows, self.mass)

    def halves(self, columns: Array, others: Array) -> tuple[Geometry, Geometry]:
        """Two halves of the features; known products less those of one half are those of the other."""
        one, other = self.half(columns), self.half(others)
        if self._products is not None and self._adds_up():
            part = one.products()
            if part is not None:
                other._products = self._products.less(part, other.codes())
        return one, other

    def _adds_up(self) -> bool:
        """Whether halves of the features hold the same numbers as this view."""
        return type(self) is Geometry and not (self.unit_rows or sp.issparse(self.Z))


@storable
class LinkGeometry(Geometry):
    """A graph as a space of distances, whose halves are halves of its links.

    Halves of the columns would share each link: i has j in one half, j has i in the other, and a
    random graph would seem reliable.
    """

    def __init__(self, rows: Linked, present: Array, mass: Array | None = None):
        super().__init__(rows.Z, present, False, mass)
        self.closed, self.own, self.discount = rows.closed, rows.own, rows.discount
        #: The column of every row.
        self.place = np.arange(self.n_samples)

    def distinct(self, first: Array, mass: Array | None) -> LinkGeometry:
        new = super().distinct(first, mass)
        assert isinstance(new, LinkGeometry)
        new.closed, new.own, new.place = self.closed[first], self.own[first], self.place[first]
        return new

    def rows(self, chosen: Array) -> LinkGeometry:
        return self.distinct(np.arange(self.n_samples)[chosen], self.mass_of(chosen))

    def half(self, columns: Array) -> Geometry:
        """The same rows with those links {i, j} for which (i + j) mod M is among ``columns``."""
        n, M = self.closed.shape
        chosen = np.zeros(M, dtype=bool)
        chosen[columns] = True
        links = self.closed.tocoo()
        i, j = self.place[links.row], links.col
        kept = chosen[(i + j) % M] | (i == j)
        half = sp.csr_array((links.data[kept], (links.row[kept], j[kept])), shape=(n, M))
        linked = np.bincount(links.row[kept & (i != j)], minlength=n) > 0
        Z = closed_neighborhoods(half, self.discount).astype(self.Z.dtype)
        return Geometry(Z, self.present & linked, False, self.mass)


@storable
class FileGeometry(Geometry):
    """Distances of rows in a file along the directions in which they vary most; exact up to 64 features.

    Only these coordinates are in memory. Halves of the features are compared on a sample of rows.
    """

    #: Where the rows are in the file; None: in order.
    places: Array | None = None
    takes_holes = False
    #: What some of the rows are, all of their features in memory.
    in_memory: type[Geometry] = Geometry

    def __init__(self, Z: Any, present: Array, unit_rows: bool = False):
        self.source, self.directions = Z, leading_directions(Z)
        along = project(Z, self.directions)
        self.center = along.mean(axis=0)
        along -= self.center
        super().__init__(along, present, unit_rows)
        self.n_features = Z.shape[1]

    def coordinates(self, Z: Any) -> Array:
        return project(Z, self.directions) - self.center

    def distinct(self, first: Array, mass: Array | None) -> Geometry:
        new: Any = super().distinct(first, mass)
        new.places = first if self.places is None else self.places[first]
        return new

    def rows(self, chosen: Array) -> Geometry:
        chosen = chosen[sampled(len(chosen), self.source.shape[1])]
        places = chosen if self.places is None else self.places[chosen]
        mass = self.mass_of(chosen)
        Z = self.source.take(places)
        return self.in_memory(Z, self.present[chosen], self.unit_rows, mass)

    def half(self, columns: Array) -> Geometry:
        return self.rows(np.arange(self.n_samples)).half(columns)

    def unit_sums(self) -> Any:
        return unit_rows_of_file(self.source)

    def for_model(self, sparse: bool) -> FileGeometry:
        new: Any = copy(self)
        if isinstance(self.source, Remote):
            new.source = None  # a model outlives the cluster
        return new


def along_directions(Z: sp.csr_array, present: Array) -> bool:
    """Whether the rows of a sparse view are compared along their leading directions."""
    n, m = int(present.sum()), Z.shape[1]
    telling = TELLING * Z.shape[0] * m < Z.nnz <= FULL * Z.shape[0] * m
    return telling and m >= 2 * DIRECTIONS and n > max(MANY_SPARSE, ROWS_PER_FEATURE * m)


@storable
class SparseGeometry(FileGeometry):
    """Distances of many sparse rows along the directions in which they vary most.

    Along these, neighbors take a tenth of the time; differences of single words or genes, most of which
    are noise, count less. Samples of the rows are compared by all features.
    """

    def __init__(self, Z: sp.csr_array, present: Array, unit_rows: bool = False):
        here = np.flatnonzero(present)
        some = here[evenly(len(here), DIRECTION_ROWS)]
        self.source = Z
        self.directions = leading_directions(Z[some], dtype=np.float32)
        self.center = project(Z[some], self.directions).mean(axis=0)
        Geometry.__init__(self, self.coordinates(Z), present, unit_rows)
        self.n_features = Z.shape[1]

    def rows(self, chosen: Array) -> Geometry:
        if len(chosen) > MANY_SPARSE:
            return self.distinct(chosen, self.mass_of(chosen))
        places = chosen if self.places is None else self.places[chosen]
        Z = written_out(self.source[places])
        return Geometry(Z, self.present[chosen], self.unit_rows, self.mass_of(chosen))

    def half(self, columns: Array) -> Geometry:
        return self.rows(evenly(self.n_samples, MANY_SPARSE)).half(columns)

    def unit_sums(self) -> Any:
        return unit_sum_rows(self.source, None)


def _row_sums(block: Matrix) -> Array:
    return np.ravel(abs(block).sum(axis=1))


def unit_rows_of_file(Z: Any) -> UnitRows:
    """The rows with unit L1 norm."""
    total = np.concatenate(over(Z, _row_sums))
    return UnitRows(Z, np.divide(1, total, out=np.zeros_like(total), where=total > 0))
