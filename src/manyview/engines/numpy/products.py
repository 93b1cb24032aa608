"""Products z_i·z_j of all rows of a view, from which all of its distances follow.

Rows that are identical have the same products: those of the distinct rows are made, once, however
often each occurs. Of a view of large blocks (a category, a graph of cliques) these are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview.engines.threads import blocks

from .compiled import compiled

#: Most products of the rows of a sparse view, or of one with few features, that are kept.
FEW_PRODUCTS = 2**24
#: Entries of long rows that are multiplied together.
CENTRED = 2**20
#: Sparse views with a larger share of nonzeros are written out: where compiled loops make products of
#: all rows, of up to so many entries, and any others.
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


def are_kept(Z: Matrix) -> bool:
    """Whether products of all rows are kept: of wide views, and of small ones."""
    n = Z.shape[0]
    few = n**2 <= FEW_PRODUCTS
    return few if sp.issparse(Z) else n <= (4 if few else 2) * Z.shape[1]


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
    for part in blocks(slice(0, Z.shape[1]), max(n, CENTRED // n)):
        centred = Z[:, part] if first is None else Z[first, part]
        centred = centred - mean[part]
        table = table + centred @ centred.T
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
