"""Compiled steps on U (numba, extra "fast"): columns projected to the simplex."""

from __future__ import annotations

from manyview._types import Array

from .jit import fast, inlined


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
