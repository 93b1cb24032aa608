"""Compiled inner loops (numba, extra "fast"): the formulas of `maths.equations`, row by row.

Nothing here is new mathematics; tests hold every kernel to the NumPy form it stands in for. They let
go of the interpreter's lock: `engines.threads` runs them on row blocks side by side. This module is
what `compiled` hands out: the pass over the rows, and the loops over graphs and pairs.
"""

from __future__ import annotations

import numpy as np

from manyview._types import Array

from .basis_kernels import hals_columns, simplex_threshold
from .graph_kernels import graph_rows, graph_step
from .jit import fast, inlined
from .many_kernels import MANY, many_rows_pass
from .pair_kernels import (
    pair_distances,
    row_codes,
    smallest_rows,
    sparse_pair_distances,
    sparse_products,
    sparse_row_codes,
)
from .sum_kernels import add_sums, scaled_products

__all__ = [
    "MANY",
    "add_sums",
    "graph_rows",
    "graph_step",
    "hals_columns",
    "hals_rows",
    "many_rows_pass",
    "multiplicative_rows",
    "pair_distances",
    "row_codes",
    "rows_pass",
    "simplex_threshold",
    "smallest_rows",
    "sparse_pair_distances",
    "sparse_products",
    "sparse_row_codes",
]

#: Rows of a block, half as many where rows are long. With so few, and X turned, OpenBLAS uses kernels for
#: small products where the processor has AVX-512: a third less time than with larger blocks, and half of
#: it in float32. (Told to compute as on older processors, the float32 pass took a fifth longer instead.)
BLOCK, WIDE = 64, 2048


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


@fast
def rows_pass(
    X: Array,
    scale: Array,
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
    hals: bool | None,
) -> None:
    """The pass over some rows: a block is read once for X_bU, the step on V_b and its sums.

    The rows are those of X, each times its ``scale``: so that none need be written anew.
    ``hals`` is True, or None for the multiplicative rule: of these two types, numba compiles one rule each.
    """
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
        size_b = scale[start:stop]
        scaled_products(Ut, x, size_b, products)
        XU_b = products.T
        if hals is not None:
            hals_rows(V_b, XU_b, H, q, V_star, weight, a, beta, minus, plus, curve, V_new)
        else:
            multiplicative_rows(V_b, XU_b, H, q, V_star, weight, a, beta, minus, plus, curve, V_new)
        add_sums(x, size_b, V_new, V_star, sums_weight, WV[: len(x)], XWV, P, G, vc, vv)
