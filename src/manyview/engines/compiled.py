"""Whether compiled inner loops are at hand (numba, extra "fast")."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any


@cache
def compiled() -> Any:
    """The module of compiled loops, or None without numba: then NumPy does the same, slower."""
    if find_spec("numba") is None:
        return None
    from .. import kernels

    return kernels
