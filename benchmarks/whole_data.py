"""The large set that `whole.py`, its peers and the benchmark of a cluster share; needs NumPy alone."""

from __future__ import annotations

import numpy as np

CLUSTERS = 10


def large(n: int, m: int = 100, n_views: int = 4) -> tuple[list, np.ndarray, int]:
    """Clusters whose rows vary in eight directions of their own per view, and some noise."""
    rng = np.random.default_rng(0)
    y, views = rng.integers(CLUSTERS, size=n), []
    for _ in range(n_views):
        X = rng.random((CLUSTERS, m), dtype=np.float32)[y]
        turn = 0.3 * rng.standard_normal((8, m), dtype=np.float32)
        X += rng.standard_normal((n, 8), dtype=np.float32) @ turn
        X += 0.3 * rng.standard_normal((n, m), dtype=np.float32)
        views.append(X)
    return views, y, CLUSTERS
