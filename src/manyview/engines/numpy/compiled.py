"""Whether compiled inner loops are at hand (numba, extra "fast")."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

from .code_cache import import_compiled


@cache
def compiled() -> Any:
    """The module of compiled loops, or None without numba: then NumPy does the same, slower."""
    try:
        return import_compiled("manyview.engines.numpy.kernels")
    except ModuleNotFoundError:
        return None
    except ImportError as error:  # numba refuses a NumPy newer than itself
        warnings.warn(
            f"numba is installed but does not work ({error}); going on without it, slower",
            UserWarning,
            stacklevel=2,
        )
        return None
