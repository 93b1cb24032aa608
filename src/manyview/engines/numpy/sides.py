"""Sums of distances over views as products of two sides, in single precision.

In one view d_ij = ‖z_i − z_j‖²/(m_i m_j) with m = √μ. With u = √α z/m, q = √α ‖z‖²/m and b = √α/m,

    α d_ij = −2 u_i·u_j + q_i b_j + b_i q_j,

so that one product of matrices has Σ_s α_s d^s of many pairs. A row that is missing in a view is at 1
there: its u, q and b are zero, and α − α c_i c_j is added, where c says who is there. The u of all views
may be replaced by their coordinates along the directions in which they vary most. Where entries are
unobserved, a row that has the share f of them has z/f and ‖z‖²/f in place of z and ‖z‖²: that is d_ij, if
what is observed in one row has nothing to do with what is in the other.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from manyview._types import Array, Matrix
from manyview.engines.threads import blocks

from .code_cache import import_compiled
from .sources import leading_directions, looking_rows, project
from .ties import product_error

#: How much longer a product of two sparse numbers takes than one of many in a dense product.
SPARSE_COST = 32
#: Columns that are put in another order together: a line of memory holds so many.
COLUMNS = 16

if TYPE_CHECKING:
    from .distances import Geometry


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
        kernels = import_compiled("manyview.engines.numpy.kernels")
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
