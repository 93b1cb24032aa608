"""In which precision a fit computes, and its results as arrays of the host."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from manyview._arrays import on_host
from manyview._types import Array, Factors, Views

#: float32 views of more bytes than this are computed with as they are.
LARGE_FLOAT32 = 2**30


def working_dtype(views: Views, asked: npt.DTypeLike | None) -> np.dtype:
    """The precision of the computation: what was asked for, or float64 unless the data are large float32.

    A float64 copy of large float32 data would take more memory than its owner planned for.
    """
    if asked is not None:
        dtype = np.dtype(asked)
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32, float64 or None, got {asked!r}")
        return dtype
    size = sum(X.data.nbytes if sp.issparse(X) else X.nbytes for X in views.matrices)
    large = views.dtype == np.float32 and size > LARGE_FLOAT32
    return np.dtype(np.float32 if large else np.float64)


def on_host_factors(factors: Factors) -> Factors:
    """The same factors as NumPy arrays."""
    U, V = (tuple(on_host(part) for part in parts) for parts in (factors.U, factors.V))
    return Factors(U, V, on_host(factors.consensus), factors.alpha, on_host(factors.w))


def in_dtype(array: Array, dtype: np.dtype) -> Array:
    """A result as users get it: in their precision, in one memory order."""
    return np.ascontiguousarray(array, dtype=dtype)
