"""Compiled loops over pairs and rows of a view: distances, codes, smallest entries (extra "fast")."""

from __future__ import annotations

import numpy as np

from manyview._types import Array

from .ahead import ask_for
from .jit import fast, inlined

#: Rows lie anywhere: they are asked for so many pairs ahead, in lines of memory of so many bytes.
AHEAD, LINE = 8, 64
#: Features of long rows that are looked at together when pairs are measured.
COLUMNS = 1024
#: Rows and columns of a square array that are in the cache together.
TILE = 64


@fast
def pair_distances(
    Z: Array, root_mu: Array, comparable: Array, i: Array, j: Array, out: Array
) -> None:
    """d of the pairs (i, j); 1 where a member is missing.

    Of long rows some columns at a time, so that few rows and many pairs are read from the cache.
    """
    out[:] = 0
    last = len(i) - 1
    for start in range(0, Z.shape[1], COLUMNS):
        stop = min(start + COLUMNS, Z.shape[1])
        for e in range(len(i)):
            coming = j[min(e + AHEAD, last)]
            for m in range(start, stop, LINE // Z.itemsize):
                ask_for(Z, coming, m)
            r, c = np.uint64(i[e]), np.uint64(j[e])
            if not (comparable[r] and comparable[c]):
                continue
            squared = Z[r, 0] * 0
            for m in range(start, stop):
                gap = Z[r, m] - Z[c, m]
                squared += gap * gap
            out[e] += squared
    _in_units(root_mu, comparable, i, j, out)


@inlined
def _in_units(root_mu: Array, comparable: Array, i: Array, j: Array, out: Array) -> None:
    """Squared distances as d."""
    for e in range(len(i)):
        r, c = i[e], j[e]
        known = comparable[r] and comparable[c]
        out[e] = out[e] / (root_mu[r] * root_mu[c]) if known else 1.0


@fast
def sparse_pair_distances(
    indptr: Array,
    indices: Array,
    data: Array,
    root_mu: Array,
    comparable: Array,
    i: Array,
    j: Array,
    out: Array,
) -> None:
    """The same of rows in CSR form with sorted columns: what only one of two rows has is all a gap."""
    for e in range(len(i)):
        a, a_end = indptr[i[e]], indptr[i[e] + 1]
        b, b_end = indptr[j[e]], indptr[j[e] + 1]
        squared = 0.0
        while a < a_end and b < b_end:
            left, right = indices[a], indices[b]
            x = data[a] if left <= right else data[a] * 0
            y = data[b] if right <= left else data[b] * 0
            squared += (x - y) * (x - y)
            a += left <= right
            b += right <= left
        while a < a_end:
            squared += data[a] * data[a]
            a += 1
        while b < b_end:
            squared += data[b] * data[b]
            b += 1
        out[e] = squared
    _in_units(root_mu, comparable, i, j, out)


@fast
def row_codes(Z: Array, bits: Array, odd: Array, out: Array) -> None:
    """`repeats.row_codes`; ``bits`` are those of Z as whole numbers, ``odd`` the three odd numbers."""
    first, second, place = odd[0], odd[1], odd[2]
    for i in range(Z.shape[0]):
        total = np.int64(0)
        for m in range(Z.shape[1]):
            z = Z[i, m]
            code = np.int64(bits[i, m])
            code = np.int64(0) if z == 0 else code  # −0 is 0
            code = np.int64(1) if z != z else code
            x = (code + place * np.int64(m + 1)) * first
            x = (x ^ (x >> 31)) * second
            total += x ^ (x >> 29)
        out[i] = total


@fast
def sparse_row_codes(
    indptr: Array, indices: Array, data: Array, bits: Array, odd: Array, out: Array
) -> None:
    """The same of rows in CSR form; zeros that are stored are as if they were not."""
    first, second, place = odd[0], odd[1], odd[2]
    for i in range(len(indptr) - 1):
        total = np.int64(0)
        for e in range(indptr[i], indptr[i + 1]):
            z = data[e]
            code = np.int64(1) if z != z else np.int64(bits[e])
            x = (code + place * np.int64(indices[e] + 1)) * first
            x = (x ^ (x >> 31)) * second
            total += np.int64(0) if z == 0 else x ^ (x >> 29)
        out[i] = total


@fast
def smallest_rows(d: Array, k: int, first: int, indices: Array, values: Array) -> None:
    """The k smallest entries of every row in order, ties by column; row r itself is first + r."""
    for r in range(d.shape[0]):
        count = 0
        for c in range(d.shape[1]):
            x = d[r, c]
            if c == first + r or (count == k and x >= values[r, k - 1]):
                continue
            place = count if count < k else k - 1
            count = min(count + 1, k)
            while place > 0 and values[r, place - 1] > x:
                values[r, place] = values[r, place - 1]
                indices[r, place] = indices[r, place - 1]
                place -= 1
            values[r, place] = x
            indices[r, place] = c


@fast
def sparse_products(
    indptr: Array,
    indices: Array,
    data: Array,
    starts: Array,
    rows: Array,
    values: Array,
    out: Array,
) -> None:
    """Z Zᵀ of rows in CSR form, into zeros.

    Columns are written down as rows come, from ``starts`` on in ``rows`` and ``values``: a row meets those
    before it alone.
    """
    n, filled = len(indptr) - 1, starts.copy()
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            column, z = np.uint64(indices[e]), data[e]
            place = filled[column]
            rows[place], values[place], filled[column] = i, z, place + 1
            for f in range(starts[column], place + 1):
                out[i, np.uint64(rows[f])] += z * values[f]
    _mirrored(out)


@inlined
def _mirrored(square: Array) -> None:
    """What is below the diagonal of a square array is above it as well, a tile at a time."""
    n = len(square)
    for top in range(0, n, TILE):
        for left in range(0, top + 1, TILE):
            for i in range(top, min(top + TILE, n)):
                for j in range(left, min(left + TILE, i)):
                    square[j, i] = square[i, j]
