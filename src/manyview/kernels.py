"""Compiled inner loops (numba, extra "fast"): the formulas of `equations` and `geometry`, row by row.

Nothing here is new mathematics; tests hold every kernel to the NumPy form it stands in for. They let
go of the interpreter's lock: `engines.threads` runs them on row blocks side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ._types import Array

#: Sums may be regrouped and fused; NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz"}
#: Division by zero gives infinity, as in NumPy: no test in the inner loops, which can then use vectors.
SETTINGS: Any = {"nogil": True, "cache": True, "fastmath": FAST, "error_model": "numpy"}
fast = njit(**SETTINGS)
#: For what other kernels call, too. As a call it may be the copy of either, depending on what was
#: compiled and what loaded from the cache: a first run would then round otherwise than all later ones.
inlined = njit(inline="always", **SETTINGS)


@inlined
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
    out: Array,
) -> None:
    """`Multiplicative.update_V`: v ∘ negative/positive, v itself where positive vanishes."""
    n, K = V.shape
    fitted, tiny = np.empty(K, dtype=V.dtype), np.finfo(V.dtype).tiny
    for i in range(n):
        weight = w2[i, 0]
        for k in range(K):
            fitted[k] = 0
        for m in range(K):
            v = V[i, m]
            for k in range(K):
                fitted[k] += v * H[m, k]
        for k in range(K):
            top = weight * XU[i, k] + a * consensus[i, k] * q[k] + beta * negative[i, k]
            bottom = weight * fitted[k] + a * q[k] * q[k] * V[i, k] + beta * positive[i, k]
            usable = bottom > tiny
            step = V[i, k] * top / (bottom if usable else tiny)
            out[i, k] = step if usable else V[i, k]


@inlined
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
    out: Array,
) -> None:
    """`SimplexHALS.update_V`, a row at a time: two sweeps over its coordinates, Hv kept up to date."""
    n, K = V.shape
    linear, fitted = np.empty(K, dtype=V.dtype), np.empty(K, dtype=V.dtype)
    for i in range(n):
        weight = w2[i, 0]
        for k in range(K):
            pull = negative[i, k] - positive[i, k] + curvature[i, k] * V[i, k]
            linear[k] = weight * XU[i, k] + a * consensus[i, k] + beta * pull
            out[i, k] = V[i, k]
            fitted[k] = 0
        for m in range(K):
            v = V[i, m]
            for k in range(K):
                fitted[k] += v * H[m, k]
        for _ in range(2):
            for k in range(K):
                quadratic = weight * H[k, k] + a + beta * curvature[i, k]
                if quadratic <= 0:
                    continue
                old = out[i, k]
                new = (linear[k] - weight * (fitted[k] - old * H[k, k])) / quadratic
                new = new if new > 0 else 0 * new
                change = new - old
                out[i, k] = new
                for m in range(K):
                    fitted[m] += change * H[k, m]


@inlined
def add_sums(
    X: Array,
    V: Array,
    consensus: Array,
    weight: Array,
    WV: Array,
    XWV: Array,
    P: Array,
    G: Array,
    vc: Array,
    vv: Array,
) -> None:
    """`equations.sums_over_rows` of a block, added to the sums so far; P is transposed.

    WV and XWV are room for intermediate results.
    """
    n, K = V.shape
    for i in range(n):
        for k in range(K):
            v = V[i, k]
            WV[i, k] = weight[i, 0] * v
            vc[k] += v * consensus[i, k]
            vv[k] += v * v
    np.dot(WV.T, X, XWV)
    VWV = np.dot(V.T, WV)
    for k in range(K):
        for m in range(X.shape[1]):
            P[k, m] += XWV[k, m]
        for m in range(K):
            G[k, m] += VWV[k, m]


@fast
def multiplicative_pass(
    X: Array,
    U: Array,
    V: Array,
    H: Array,
    q: Array,
    consensus: Array,
    fit_weight: Array,
    a: float,
    beta: float,
    negative: Array,
    positive: Array,
    curvature: Array,
    sum_weight: Array,
    out: Array,
    P: Array,
    G: Array,
    vc: Array,
    vv: Array,
    size: int,
) -> None:
    """The pass over some rows: a block is read once for X_bU, the step on V_b and its sums."""
    K, dtype = V.shape[1], X.dtype
    XU, WV = np.empty((size, K), dtype=dtype), np.empty((size, K), dtype=dtype)
    XWV = np.empty((K, X.shape[1]), dtype=dtype)
    for start in range(0, len(X), size):
        stop = min(start + size, len(X))
        count = stop - start
        x, V_b, V_new, V_star = X[start:stop], V[start:stop], out[start:stop], consensus[start:stop]
        parts = (negative[start:stop], positive[start:stop], curvature[start:stop])
        weight, room = fit_weight[start:stop], WV[:count]
        np.dot(x, U, XU[:count])
        minus, plus, curve = parts
        XU_b = XU[:count]
        multiplicative_rows(V_b, XU_b, H, q, V_star, weight, a, beta, minus, plus, curve, V_new)
        sums_weight = sum_weight[start:stop]
        add_sums(x, V_new, V_star, sums_weight, room, XWV, P, G, vc, vv)


@fast
def hals_pass(
    X: Array,
    U: Array,
    V: Array,
    H: Array,
    q: Array,
    consensus: Array,
    fit_weight: Array,
    a: float,
    beta: float,
    negative: Array,
    positive: Array,
    curvature: Array,
    sum_weight: Array,
    out: Array,
    P: Array,
    G: Array,
    vc: Array,
    vv: Array,
    size: int,
) -> None:
    """The same with the steps of HALS."""
    K, dtype = V.shape[1], X.dtype
    XU, WV = np.empty((size, K), dtype=dtype), np.empty((size, K), dtype=dtype)
    XWV = np.empty((K, X.shape[1]), dtype=dtype)
    for start in range(0, len(X), size):
        stop = min(start + size, len(X))
        count = stop - start
        x, V_b, V_new, V_star = X[start:stop], V[start:stop], out[start:stop], consensus[start:stop]
        parts = (negative[start:stop], positive[start:stop], curvature[start:stop])
        weight, room = fit_weight[start:stop], WV[:count]
        np.dot(x, U, XU[:count])
        minus, plus, curve = parts
        XU_b = XU[:count]
        hals_rows(V_b, XU_b, H, q, V_star, weight, a, beta, minus, plus, curve, V_new)
        sums_weight = sum_weight[start:stop]
        add_sums(x, V_new, V_star, sums_weight, room, XWV, P, G, vc, vv)


@fast
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


@fast
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
    # Two loops: as one it is twice as slow, the compiler being unsure what the stores touch.
    _graph_product(indptr, indices, data, V, start, stop, negative)
    return _graph_value(degrees, V, start, stop, negative, positive)


@inlined
def _graph_product(
    indptr: Array, indices: Array, data: Array, V: Array, start: int, stop: int, negative: Array
) -> None:
    K = V.shape[1]
    for i in range(start, stop):
        for k in range(K):
            negative[i, k] = 0
        for e in range(indptr[i], indptr[i + 1]):
            # Unsigned: otherwise every access asks whether the index counts from the end.
            j, weight = np.uint64(indices[e]), data[e]
            for k in range(K):
                negative[i, k] += weight * V[j, k]


@inlined
def _graph_value(
    degrees: Array, V: Array, start: int, stop: int, negative: Array, positive: Array
) -> float:
    value = 0.0
    for i in range(start, stop):
        for k in range(V.shape[1]):
            own = degrees[i, 0] * V[i, k]
            positive[i, k] = own
            value += V[i, k] * (own - negative[i, k])
    return value


@fast
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
