"""Compiled inner loops (numba, extra "fast"): the formulas of `equations` and `geometry`, row by row.

Nothing here is new mathematics; tests hold every kernel to the NumPy form it stands in for. They let
go of the interpreter's lock: `engines.threads` runs them on row blocks side by side.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ._types import Array

#: Sums may be regrouped and fused; NaN, infinity and signed zeros keep their meaning.
FAST = {"reassoc", "contract"}


@njit(nogil=True, cache=True, fastmath=FAST)
def multiplicative_rows(
    V: Array,
    XU: Array,
    H: Array,
    q: Array,
    consensus: Array,
    w2: Array,
    a: float,
    beta: float,
    negative: Array,
    positive: Array,
    curvature: Array,
    tiny: float,
    out: Array,
) -> None:
    """`Multiplicative.update_V`: v ∘ negative/positive, v itself where positive vanishes."""
    n, K = V.shape
    fitted = np.empty(K, dtype=V.dtype)
    for i in range(n):
        weight = w2[i, 0]
        fitted[:] = 0
        for m in range(K):
            v = V[i, m]
            for k in range(K):
                fitted[k] += v * H[m, k]
        for k in range(K):
            top = weight * XU[i, k] + a * consensus[i, k] * q[k] + beta * negative[i, k]
            bottom = weight * fitted[k] + a * V[i, k] * q[k] * q[k] + beta * positive[i, k]
            out[i, k] = V[i, k] * top / bottom if bottom > tiny else V[i, k]


@njit(nogil=True, cache=True, fastmath=FAST)
def hals_rows(
    V: Array,
    XU: Array,
    H: Array,
    q: Array,
    consensus: Array,
    w2: Array,
    a: float,
    beta: float,
    negative: Array,
    positive: Array,
    curvature: Array,
    tiny: float,
    out: Array,
) -> None:
    """`SimplexHALS.update_V`, a row at a time: two sweeps over its coordinates."""
    n, K = V.shape
    linear = np.empty(K, dtype=V.dtype)
    for i in range(n):
        weight = w2[i, 0]
        for k in range(K):
            h = curvature[i, k]
            pull = negative[i, k] - positive[i, k] + h * V[i, k]
            linear[k] = weight * XU[i, k] + a * consensus[i, k] + beta * pull
            out[i, k] = V[i, k]
        for _ in range(2):
            for k in range(K):
                quadratic = weight * H[k, k] + a + beta * curvature[i, k]
                if quadratic > 0:
                    others = out[i, 0] * H[0, k]
                    for m in range(1, K):
                        others += out[i, m] * H[m, k]
                    others -= out[i, k] * H[k, k]
                    out[i, k] = max((linear[k] - weight * others) / quadratic, 0 * weight)


@njit(nogil=True, cache=True, fastmath=FAST)
def hals_columns(columns: Array, P: Array, G: Array, floor: float) -> None:
    """`SimplexHALS.update_U` in place, ``columns`` being Uᵀ: two sweeps of simplex projections."""
    K, M = columns.shape
    for _ in range(2):
        for k in range(K):
            if G[k, k] <= floor:
                continue
            y = P[:, k].copy()
            for m in range(K):
                for j in range(M):
                    y[j] -= G[k, m] * columns[m, j]
            for j in range(M):
                y[j] = columns[k, j] + y[j] / G[k, k]
            ordered = np.sort(y)
            excess, threshold = -1.0, 0.0
            for count in range(1, M + 1):
                largest = ordered[M - count]
                excess += largest
                if largest * count > excess:
                    threshold = excess / count
            for j in range(M):
                columns[k, j] = max(y[j] - threshold, 0.0)


@njit(nogil=True, cache=True)
def graph_rows(
    indptr: Array,
    indices: Array,
    data: Array,
    degrees: Array,
    V: Array,
    start: int,
    stop: int,
    negative: Array,
    positive: Array,
) -> float:
    """Rows of A V and D V, and their share of Tr(VᵀLV)."""
    K = V.shape[1]
    value = 0.0
    for i in range(start, stop):
        for k in range(K):
            negative[i, k] = 0
        for e in range(indptr[i], indptr[i + 1]):
            j, weight = indices[e], data[e]
            for k in range(K):
                negative[i, k] += weight * V[j, k]
        for k in range(K):
            positive[i, k] = degrees[i, 0] * V[i, k]
            value += V[i, k] * (positive[i, k] - negative[i, k])
    return value


@njit(nogil=True, cache=True, fastmath=FAST)
def pair_distances(
    Z: Array, root_mu: Array, comparable: Array, i: Array, j: Array, out: Array
) -> None:
    """d of the pairs (i, j); 1 where a member is missing."""
    for e in range(len(i)):
        r, c = i[e], j[e]
        out[e] = 1.0
        if comparable[r] and comparable[c]:
            squared = Z[r, 0] * 0
            for m in range(Z.shape[1]):
                gap = Z[r, m] - Z[c, m]
                squared += gap * gap
            out[e] = squared / (root_mu[r] * root_mu[c])


@njit(nogil=True, cache=True)
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
