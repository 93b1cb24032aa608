"""How numba compiles the inner loops (extra "fast")."""

from __future__ import annotations

from typing import Any

from numba import njit

#: Sums may be regrouped and fused; NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz"}
#: Division by zero gives infinity, as in NumPy: no test in the inner loops, which can then use vectors.
SETTINGS: Any = {"nogil": True, "cache": True, "fastmath": FAST, "error_model": "numpy"}
fast = njit(**SETTINGS)
#: For what other kernels call, too. As a call it may be the copy of either, depending on what was
#: compiled and what loaded from the cache: a first run would then round otherwise than all later ones.
inlined = njit(inline="always", **SETTINGS)
