"""The compiled sums that a step on U needs (numba, extra "fast"), which passes write out in place.

Numba looks for changes in the file of a pass alone: after a change here, touch those that import it.
"""

from __future__ import annotations

import numpy as np

from manyview._types import Array

from .jit import inlined


@inlined
def add_sums(
    X: Array,
    scale: Array,
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

    The rows are ``scale`` times X. WV and XWV are room for intermediate results.
    """
    n, K = V.shape
    for i in range(n):
        for k in range(K):
            v = V[i, k]
            WV[i, k] = weight[i, 0] * v
            vc[k] += v * consensus[i, k]
            vv[k] += v * v
    VWV = np.dot(V.T, WV)
    for i in range(n):
        for k in range(K):
            WV[i, k] *= scale[i, 0]
    np.dot(WV.T, X, XWV)
    for k in range(K):
        for m in range(X.shape[1]):
            P[k, m] += XWV[k, m]
        for m in range(K):
            G[k, m] += VWV[k, m]


@inlined
def scaled_products(Ut: Array, X: Array, scale: Array, out: Array) -> None:
    """Uᵀxᵢ of rows that are each times their scale (K × rows)."""
    np.dot(Ut, X.T, out)
    for k in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[k, i] *= scale[i, 0]
