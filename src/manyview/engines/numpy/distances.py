"""One view as a space of distances: scaled features, who is present, how far apart any rows are.

A row without any observed value (all NaN, or all zero) is *missing*: it is as far from everything as
a random pair, the neutral distance 1. A NaN inside a row is *unobserved*: distances then use the
features both rows have, rescaled to all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import row_norms

from manyview._arrays import namespace, on_host
from manyview._types import Array, Matrix, storable
from manyview.engines.protocols import Lists
from manyview.engines.threads import Threads, blocks

from .compiled import compiled
from .lists import approximate, view_lists
from .masked import unit_sum_rows
from .moments import feature_moments, mean_distances, squared_norms
from .presence import has_nan
from .products import Products, are_kept, products_of
from .repeats import row_codes
from .robust_scaling import unit_rows
from .search import ENOUGH_ALONE
from .ties import equal_share, product_error

#: Entries of a temporary block of distances: small enough to stay in the processor's cache.
BLOCK = 2**19
#: A distance from products is as good as measured if equal distances are so many times farther apart
#: than its rounding error.
CERTAIN = 10


@storable
class Geometry:
    """Distances d_ij = ‖z_i − z_j‖²/√(μ_i μ_j) within one scaled view.

    μ_i is the mean squared distance of row i to all others: d = 1 is "no closer than a random pair".
    """

    #: How often every row counts; None: all alike.
    mass: Array | None = None
    #: Whether unseen rows may have unobserved entries.
    takes_holes = True
    #: z_i·z_j of all rows, once asked for, of a view that is no smaller than they are.
    _products: Products | None = None
    #: `codes`, once asked for.
    _codes: Array | None = None

    def __init__(
        self, Z: Matrix, present: Array, unit_rows: bool = False, mass: Array | None = None
    ):
        self.present, self.unit_rows = present, unit_rows
        if mass is not None:
            self.mass = mass
        self.observed = _observed(Z)
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
        products = self._own_products()
        if products is not None:
            d = self._from_products(rows, products)
        else:
            observed = None if self.observed is None else self.observed[rows]
            d = self.to_all(self.Z[rows], observed, self.root_mu[rows], right)
        d[~self.comparable[rows]] = 1
        return d

    def across(self, rows: Array, others: Array) -> Array:
        """Distances of some rows to some others, in double precision; 1 where one of two is missing."""
        there = copy(self)
        # Of norms in single precision nothing would be left of the gaps between rows far from 0.
        there.Z, there.root_mu = self.Z[others].astype(float), self.root_mu[others]
        there.comparable, observed = self.comparable[others], self.observed
        if observed is not None:
            there.observed, observed = observed[others], observed[rows]
        d = there.to_all(self.Z[rows].astype(float), observed, self.root_mu[rows])
        d[~self.comparable[rows]] = 1
        return d

    def needs_right(self) -> bool:
        """Whether `between` multiplies with `right_side`."""
        return self._own_products() is None

    def products_tell(self) -> bool:
        """Whether products of two sides have the distances of this view, and are the quickest way."""
        if compiled() is None or self.observed is not None:
            return False
        return self._own_products() is None

    def _own_products(self) -> Products | None:
        """Products of all rows of a wide or small view, kept for the next call; None for others."""
        if self._products is None and self.observed is None and are_kept(self.Z):
            self._products = products_of(self.Z, self.codes())
        return self._products

    def _looked_up(self, i: Array, j: Array, products: Products, d: Array) -> Array:
        """d of pairs from known products; which ones have to be measured, being too near for that."""
        inverse = self._inverse_root_mu()
        d[:] = products.squared_pairs(i, j) * inverse[i] * inverse[j]
        unsure = ~(d * equal_share(self.Z.dtype) > CERTAIN * self.slack()[i])
        alike = self.codes()
        alike = alike[i] == alike[j]
        missing = ~(self.comparable[i] & self.comparable[j])
        d[alike] = 0
        d[missing] = 1
        unsure[alike | missing] = False
        return np.flatnonzero(unsure)

    def _from_products(self, rows: Array, products: Products) -> Array:
        """Distances of some rows to all rows from their products; 1 where the other is missing."""
        inverse, d = self._inverse_root_mu(), products.squared(rows)
        d *= inverse[rows, None]
        d *= inverse
        np.maximum(d, 0, out=d)
        d[:, ~self.comparable] = 1
        return d

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

    def search(
        self, rows: Array, k: int, seed: int, threads: Threads | None
    ) -> tuple[Array, Array]:
        """The k nearest of ``rows`` for each of them, where they are too many to look at all pairs."""
        return approximate([self], np.ones(1), rows, k, seed, threads, ENOUGH_ALONE)

    def nearest(self, k: int, seed: int = 0, threads: Threads | None = None) -> Lists:
        """The k nearest rows of every comparable row."""
        return view_lists(self, k, seed, threads)

    def pairs(self, i: Array, j: Array) -> Array:
        """d of the pairs (i, j), exactly as `blocks` has it; 1 where a member is missing."""
        d = np.ones(len(i))
        if self._products is None:
            self._measure(i, j, d)
            return d
        again = self._looked_up(i, j, self._products, d)
        measured = np.ones(len(again))
        self._measure(i[again], j[again], measured)
        d[again] = measured
        return d

    def _measure(self, i: Array, j: Array, d: Array) -> None:
        """d of every pair from its own differences."""
        kernels = compiled()
        i, j = (np.asarray(side, dtype=np.int64) for side in (i, j))  # compiled for once
        if kernels is not None and sp.issparse(self.Z):
            entries = (self.Z.indptr, self.Z.indices, self.Z.data)
            kernels.sparse_pair_distances(*entries, self.root_mu, self.comparable, i, j, d)
            return
        if kernels is not None and self.observed is None:
            kernels.pair_distances(self.Z, self.root_mu, self.comparable, i, j, d)
            return
        for part in blocks(slice(0, len(i)), max(1, 4 * BLOCK // self.n_features)):
            d[part] = self._pairs(i[part], j[part])

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
        products = self._own_products() if lengths is None else None
        squared = self.sq if products is None else products.own()
        own, largest = self._lengths(squared, self.root_mu), 0.0
        if self.comparable.any():
            largest = float(own[self.comparable].max())
        error = product_error(self.Z.dtype, self.n_features)
        error *= 1 if self.observed is None else self.n_features  # few shared ones stand for all
        return error * ((own if lengths is None else lengths) + largest) ** 2

    @staticmethod
    def lengths(Z: Matrix, root_mu: Array) -> Array:
        """‖z‖/√μ; 0 in a constant view."""
        return Geometry._lengths(row_norms(Z, squared=True), root_mu)

    @staticmethod
    def _lengths(squared: Array, root_mu: Array) -> Array:
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
            yield d, self.slack(self.lengths(Z[rows], root_mu))

    def codes(self) -> Array:
        """A number for every row; rows that are identical in this view have the same."""
        if self._codes is None:
            self._codes = row_codes(self.Z)
            if self.observed is not None:
                self._codes = self._codes + row_codes(self.observed.astype(np.float32))
        return self._codes

    def unit_sums(self) -> Any:
        """The rows with unit L1 norm, as a pass of the factorisation reads them."""
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
        """The same view of some of the rows, each of which counts as often as ``mass`` says."""
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
            part = one._own_products()
            if part is not None:
                other._products = self._products.less(part, other.codes())
        return one, other

    def _adds_up(self) -> bool:
        """Whether halves of the features hold the same numbers as this view."""
        return type(self) is Geometry and not (self.unit_rows or sp.issparse(self.Z))


def _observed(Z: Matrix) -> Array | None:
    """Which entries are known, or None if all are (in rows that have any)."""
    if sp.issparse(Z) or (isinstance(Z, np.ndarray) and not has_nan(Z)):
        return None
    known = ~namespace(Z).isnan(Z)
    return None if bool(known.all()) else known
