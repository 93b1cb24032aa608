"""P-values: how many permutations, what they say, and the correction for many tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import false_discovery_control

from manyview._types import Array

#: Permutations by default, for this many observations at most; fewer for more of them.
PERMUTATIONS, FULL_UP_TO = 9_999, 5_000
#: Permutations are never fewer than this by themselves.
LEAST = 499
#: After `LEAST` draws, this many as large as the observed value end the drawing: p is above 0.05.
ENOUGH = 25


def rounds(permutations: int | None, n: int) -> int:
    """Return how many permutations to draw for ``n`` observations."""
    if permutations is None:
        return max(LEAST, min(PERMUTATIONS, PERMUTATIONS * FULL_UP_TO // max(n, 1)))
    if isinstance(permutations, bool) or int(permutations) != permutations or permutations < 0:
        raise ValueError(f"permutations must be 0 (none) or a positive number, got {permutations}")
    return int(permutations)


def permuted_p(observed: float, drawn: Array) -> float:
    """Return (1 + number of draws as large) / (1 + number of draws), Phipson & Smyth (2010).

    A draw that differs from the observed value by rounding only counts as large.
    """
    reached = int((drawn >= observed - 1e-9 * max(1.0, abs(observed))).sum())
    return (1 + reached) / (1 + len(drawn))


def staged_p(observed: float, draw: Callable[[int], Array], permutations: int) -> tuple[float, int]:
    """Return `permuted_p` and how many values it is from; ``draw(b)`` draws b of them.

    Where the first draws give p > 0.05, they suffice. That keeps P(p ≤ a) ≤ a: for a ≤ 0.05 only p-values
    of all draws count, and above, whatever goes on had a p-value of at most 0.05 already.
    """
    drawn = draw(min(LEAST, permutations))
    p = permuted_p(observed, drawn)
    if len(drawn) < permutations and p <= ENOUGH / (1 + len(drawn)):
        drawn = np.concatenate([drawn, draw(permutations - len(drawn))])
        p = permuted_p(observed, drawn)
    return p, len(drawn)


def batches(total: int, width: int, limit: int = 100_000) -> list[int]:
    """Return batch sizes that add up to ``total``, so small that a batch stays in the cache."""
    size = max(1, limit // max(width, 1))
    return [min(size, total - start) for start in range(0, total, size)]


def adjusted(p: Array) -> Array:
    """Benjamini–Hochberg over the p-values that are there; NaN stays NaN."""
    p = np.asarray(p, dtype=float)
    q = np.full(p.shape, np.nan)
    tested = ~np.isnan(p)
    if tested.any():
        q[tested] = false_discovery_control(p[tested])
    return q


def check_level(level: float) -> None:
    """Refuse a confidence level outside (0, 1)."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1 (0.95 for 95% bands), got {level}")
