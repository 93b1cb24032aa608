"""What a dense N×N method will take, said before it starts."""

from __future__ import annotations

import time
from functools import lru_cache

import numpy as np

from .admm import soft_singular

#: Size of the trial from which seconds are extrapolated: large enough for BLAS to reach its pace.
TRIAL = 500
#: N×N arrays of float64 alive at once: per view (kernel, A, three C, three L), and in one step.
#: The latter was measured (solver and SVD workspaces are LAPACK's own): 1.8 GB for N=2000, four views.
ARRAYS_PER_VIEW, ARRAYS_OF_STEP = 8, 17


class CostWarning(UserWarning):
    """A fit is about to take much memory or time."""


def peak_bytes(n_samples: int, n_views: int) -> float:
    return 8.0 * n_samples**2 * (ARRAYS_PER_VIEW * n_views + ARRAYS_OF_STEP)


def seconds_per_iteration(n_samples: int, n_views: int) -> float:
    """One solve and one decomposition per view, both cubic in N, at the pace of this machine."""
    return n_views * float(n_samples) ** 3 * _seconds_per_cube()


@lru_cache(maxsize=1)
def _seconds_per_cube() -> float:
    """Seconds of one solve and one thresholding, divided by N³: the best of three trials."""
    M = np.random.default_rng(0).standard_normal((TRIAL, TRIAL))
    system = M @ M.T + TRIAL * np.eye(TRIAL)
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        np.linalg.solve(system, M)
        soft_singular(M, 1.0)
        seconds.append(time.perf_counter() - started)
    return min(seconds) / TRIAL**3


def duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
