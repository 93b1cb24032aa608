"""Compiled inner loops (numba, extra "fast"): the formulas of `equations` and `geometry`, row by row.

Nothing here is new mathematics; tests hold every kernel to the NumPy form it stands in for. They let
go of the interpreter's lock: `engines.threads` runs them on row blocks side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.core.cgutils import get_item_pointer
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from manyview._types import Array

#: Sums may be regrouped and fused; NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz"}
#: Division by zero gives infinity, as in NumPy: no test in the inner loops, which can then use vectors.
SETTINGS: Any = {"nogil": True, "cache": True, "fastmath": FAST, "error_model": "numpy"}
fast = njit(**SETTINGS)
#: Rows of a block, half as many where rows are long. With so few, and X turned, OpenBLAS uses kernels for
#: small products where the processor has AVX-512: a third less time than with larger blocks, and half of
#: it in float32. (Told to compute as on older processors, the float32 pass took a fifth longer instead.)
BLOCK, WIDE = 64, 2048
#: Neighbours lie anywhere in V: their rows are asked for so many edges ahead.
AHEAD = 16
#: Features of long rows that are looked at together when pairs are measured.
COLUMNS = 1024
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
    tiny = np.finfo(V.dtype).tiny
    np.dot(V, H, out)
    for i in range(n):
        weight = w2[i, 0]
        for k in range(K):
            top = weight * XU[i, k] + a * consensus[i, k] * q[k] + beta * negative[i, k]
            bottom = weight * out[i, k] + a * q[k] * q[k] * V[i, k] + beta * positive[i, k]
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
    """`SimplexHALS.update_V`: two sweeps over the coordinates, HV kept up to date.

    Coordinates depend on each other, rows do not: everything is turned so that rows lie side by side.
    """
    n, K = V.shape
    room = np.empty((4, K, n), dtype=V.dtype)
    new, linear, quadratic, fitted = room[0], room[1], room[2], room[3]
    weight, change = np.empty(n, dtype=V.dtype), np.empty(n, dtype=V.dtype)
    for i in range(n):
        weight[i] = w2[i, 0]
        for k in range(K):
            pull = negative[i, k] - positive[i, k] + curvature[i, k] * V[i, k]
            linear[k, i] = w2[i, 0] * XU[i, k] + a * consensus[i, k] + beta * pull
            quadratic[k, i] = w2[i, 0] * H[k, k] + a + beta * curvature[i, k]
            new[k, i] = V[i, k]
    np.dot(H, new, fitted)
    for _ in range(2):
        for k in range(K):
            for i in range(n):
                old, divisor = new[k, i], quadratic[k, i]
                usable = divisor > 0
                rest = linear[k, i] - weight[i] * (fitted[k, i] - old * H[k, k])
                step = rest / (divisor if usable else 1)
                step = 0 if step <= 0 else step  # NaN stays
                step = step if usable else old
                change[i] = step - old
                new[k, i] = step
            for m in range(K):
                for i in range(n):
                    fitted[m, i] += change[i] * H[k, m]
    for i in range(n):
        for k in range(K):
            out[i, k] = new[k, i]


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
def rows_pass(
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
    hals: bool,
) -> None:
    """The pass over some rows: a block is read once for X_bU, the step on V_b and its sums."""
    K, M, dtype = V.shape[1], X.shape[1], X.dtype
    size = BLOCK if M <= WIDE else BLOCK // 2
    Ut = np.ascontiguousarray(U.T)
    XU, WV = np.empty((K, size), dtype=dtype), np.empty((size, K), dtype=dtype)
    XWV = np.empty((K, M), dtype=dtype)
    for start in range(0, len(X), size):
        stop = min(start + size, len(X))
        x, V_b, V_new, V_star = X[start:stop], V[start:stop], out[start:stop], consensus[start:stop]
        minus, plus, curve = negative[start:stop], positive[start:stop], curvature[start:stop]
        weight, sums_weight = fit_weight[start:stop], sum_weight[start:stop]
        products = XU if len(x) == size else np.empty((K, len(x)), dtype=dtype)
        np.dot(Ut, x.T, products)
        XU_b = products.T
        if hals:
            hals_rows(V_b, XU_b, H, q, V_star, weight, a, beta, minus, plus, curve, V_new)
        else:
            multiplicative_rows(V_b, XU_b, H, q, V_star, weight, a, beta, minus, plus, curve, V_new)
        add_sums(x, V_new, V_star, sums_weight, WV[: len(x)], XWV, P, G, vc, vv)


@inlined
def simplex_threshold(y: Array) -> float:
    """What all entries lose when y is projected to the simplex.

    Entries below the threshold of all that are left drop out until none does: a few passes where
    sorting takes seventeen.
    """
    left, threshold = -1, y[0] * 0
    while True:
        total, count = y[0] * 0, 0
        for j in range(len(y)):
            if left < 0 or y[j] > threshold:
                total += y[j]
                count += 1
        # Rounding may let one that has dropped out back in: fewer are left each time, or it ends.
        if count == 0 or 0 <= left <= count:
            return threshold
        left, threshold = count, (total - 1) / count


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
            threshold = simplex_threshold(y)
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


@intrinsic
def _ask_for(context: Any, array: Any, row: Any, column: Any) -> Any:
    """Have an entry of a matrix fetched, without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        matrix = make_array(kind)(context, builder, args[0])
        entry = get_item_pointer(context, builder, kind, matrix, args[1:])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        )
        to_read, everywhere, data = number(0), number(3), number(1)
        builder.call(prefetch, [builder.bitcast(entry, byte), to_read, everywhere, data])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


def _nothing(array: Array, row: int, column: int) -> None:
    pass


#: Without a compiler (NUMBA_DISABLE_JIT) nothing can be asked for.
ask_for: Any = _nothing if config.DISABLE_JIT else _ask_for  # type: ignore[attr-defined]


@inlined
def _graph_product(
    indptr: Array, indices: Array, data: Array, V: Array, start: int, stop: int, negative: Array
) -> None:
    K, last = V.shape[1], len(indices) - 1
    for i in range(start, stop):
        for k in range(K):
            negative[i, k] = 0
        for e in range(indptr[i], indptr[i + 1]):
            coming = indices[min(e + AHEAD, last)]
            ask_for(V, coming, 0)
            ask_for(V, coming, K - 1)
            # Unsigned: otherwise every access asks whether the index counts from the end.
            j, weight = np.uint64(indices[e]), data[e]
            for k in range(K):
                negative[i, k] += weight * V[j, k]


@fast
def graph_step(
    indptr: Array,
    indices: Array,
    data: Array,
    now: Array,
    before: Array,
    p: float,
    q: float,
    r: float,
    start: int,
    stop: int,
    out: Array,
) -> None:
    """Rows of p·S now + q·now + r·before."""
    K, last = now.shape[1], len(indices) - 1
    for i in range(start, stop):
        for k in range(K):
            out[i, k] = q * now[i, k] + r * before[i, k]
        for e in range(indptr[i], indptr[i + 1]):
            coming = indices[min(e + AHEAD, last)]
            ask_for(now, coming, 0)
            ask_for(now, coming, K - 1)
            j, weight = np.uint64(indices[e]), p * data[e]
            for k in range(K):
                out[i, k] += weight * now[j, k]


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
    """d of the pairs (i, j); 1 where a member is missing.

    Of long rows some columns at a time, so that few rows and many pairs are read from the cache.
    """
    out[:] = 0
    for start in range(0, Z.shape[1], COLUMNS):
        stop = min(start + COLUMNS, Z.shape[1])
        for e in range(len(i)):
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
