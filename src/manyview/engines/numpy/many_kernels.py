"""The compiled pass over rows with many components (numba, extra "fast"): most coefficients are 0."""

from __future__ import annotations

import numpy as np

from manyview._types import Array

from .jit import fast, inlined
from .sum_kernels import add_sums, scaled_products

#: From so many components on most coefficients of a row are 0 and stay so: what does not change is skipped.
MANY = 100
#: Products with coefficients of which at most one in so many is not 0 take less time without the others.
SPARSE = 8
#: Rows of a block.
BLOCK = 64


@inlined
def _mostly_zero(V: Array) -> bool:
    """Whether so few coefficients are not 0 that products are quicker without the others."""
    count = 0
    for i in range(V.shape[0]):
        for k in range(V.shape[1]):
            count += V[i, k] != 0
    return SPARSE * count <= V.size


@inlined
def _add_products(V: Array, H: Array, out: Array) -> None:
    """V H, added to ``out``, of the coefficients that are not 0."""
    for i in range(V.shape[0]):
        for k in range(V.shape[1]):
            v = V[i, k]
            if v != 0:
                for m in range(H.shape[1]):
                    out[i, m] += v * H[k, m]


@inlined
def _hals_row_by_row(
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
    """`SimplexHALS.update_V`: two sweeps over the coordinates, HV touched only where one changes."""
    n, K = V.shape
    linear, quadratic = np.empty(K, dtype=V.dtype), np.empty(K, dtype=V.dtype)
    fitted = np.zeros((n, K), dtype=V.dtype)
    if _mostly_zero(V):
        _add_products(V, H, fitted)
    else:
        np.dot(V, H, fitted)
    for i in range(n):
        weight = w2[i, 0]
        for k in range(K):
            pull = negative[i, k] - positive[i, k] + curvature[i, k] * V[i, k]
            linear[k] = weight * XU[i, k] + a * consensus[i, k] + beta * pull
            quadratic[k] = weight * H[k, k] + a + beta * curvature[i, k]
            out[i, k] = V[i, k]
        for _ in range(2):
            for k in range(K):
                old, divisor = out[i, k], quadratic[k]
                usable = divisor > 0
                rest = linear[k] - weight * (fitted[i, k] - old * H[k, k])
                step = rest / (divisor if usable else 1)
                step = 0 if step <= 0 else step  # NaN stays
                step = step if usable else old
                change = step - old
                if change != 0:
                    out[i, k] = step
                    for m in range(K):
                        fitted[i, m] += change * H[k, m]


@inlined
def _add_few(
    X: Array,
    scale: Array,
    V: Array,
    consensus: Array,
    weight: Array,
    P: Array,
    G: Array,
    vc: Array,
    vv: Array,
) -> None:
    """`add_sums` of the coefficients that are not 0."""
    n, K = V.shape
    places = np.empty(K, dtype=np.int64)
    for i in range(n):
        count = 0
        for k in range(K):
            if V[i, k] != 0:
                places[count] = k
                count += 1
        for e in range(count):
            own = np.uint64(places[e])
            v = V[i, own]
            vc[own] += v * consensus[i, own]
            vv[own] += v * v
            share = weight[i, 0] * v
            for f in range(count):
                G[own, np.uint64(places[f])] += share * V[i, np.uint64(places[f])]
            share *= scale[i, 0]
            for m in range(X.shape[1]):
                P[own, m] += share * X[i, m]


@fast
def many_rows_pass(
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
) -> None:
    """`kernels.rows_pass` by the rule of `SimplexHALS`, which leaves out what is 0."""
    K, M, dtype = V.shape[1], X.shape[1], X.dtype
    Ut = np.ascontiguousarray(U.T)
    XU, WV = np.empty((K, BLOCK), dtype=dtype), np.empty((BLOCK, K), dtype=dtype)
    XWV = np.empty((K, M), dtype=dtype)
    for start in range(0, len(X), BLOCK):
        stop = min(start + BLOCK, len(X))
        x, V_b, V_new, V_star = X[start:stop], V[start:stop], out[start:stop], consensus[start:stop]
        minus, plus, curve = negative[start:stop], positive[start:stop], curvature[start:stop]
        weight, sums_weight = fit_weight[start:stop], sum_weight[start:stop]
        products = XU if len(x) == BLOCK else np.empty((K, len(x)), dtype=dtype)
        size_b = scale[start:stop]
        scaled_products(Ut, x, size_b, products)
        XU_b = products.T
        _hals_row_by_row(V_b, XU_b, H, q, V_star, weight, a, beta, minus, plus, curve, V_new)
        if _mostly_zero(V_new):
            _add_few(x, size_b, V_new, V_star, sums_weight, P, G, vc, vv)
        else:
            add_sums(x, size_b, V_new, V_star, sums_weight, WV[: len(x)], XWV, P, G, vc, vv)
