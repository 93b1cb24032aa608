"""The paper's updates written down directly, with a dense graph: what the running time is held against."""

from __future__ import annotations

import numpy as np

from manyview._types import Array


def iterate(
    X: Array, U: Array, V: Array, A: Array, d: Array, V_star: Array, w: Array, a: float, beta: float
) -> tuple[Array, Array]:
    """One update of U, then of V: A dense (N×N), d its row sums, w the view's observation weights."""
    w2 = (w**2)[:, None]
    q = U.sum(axis=0)
    U = U * (
        (X.T @ (w2 * V) + a * (V * V_star).sum(axis=0))
        / np.maximum(U @ (V.T @ (w2 * V)) + a * q * (V * V).sum(axis=0), 1e-300)
    )
    q = U.sum(axis=0)
    V = V * (
        (w2 * (X @ U) + a * V_star * q + beta * (A @ V))
        / np.maximum(w2 * (V @ (U.T @ U)) + a * V * q**2 + beta * d[:, None] * V, 1e-300)
    )
    return U, V
