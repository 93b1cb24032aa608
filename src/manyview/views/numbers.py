"""What users pass as one view → a matrix of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview.engines.numpy.relations import Relation
from manyview.engines.numpy.sources import is_streamed

from .items import TOO_LARGE


def as_matrix(item: Any, name: str) -> Matrix:
    """A float32 or float64 array or CSR matrix; other numbers become float64."""
    if is_streamed(item) or isinstance(item, Relation):
        return item
    X = _sparse(item, name) if sp.issparse(item) else _dense(item, name)
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: view {name!r} has dtype {X.dtype}")
    if X.dtype.kind in "mMSUV":
        raise ValueError(
            f"view {name!r} has entries that are not numbers (dtype {X.dtype}); encode them as numbers"
        )
    if X.dtype in (np.float32, np.float64):
        return X
    if X.dtype.kind in "biuf":
        return X.astype(np.float32 if X.dtype == np.float16 else np.float64)
    return _from_objects(X, name)


def _sparse(item: Any, name: str) -> Matrix:
    """A CSR matrix with one entry for every place."""
    if item.ndim != 2:
        raise ValueError(f"Expected 2D array for view {name!r}, got {item.ndim}D array instead")
    X = sp.csr_array(item)
    if not X.has_canonical_format:
        X = X.copy()  # the user's buffers are shared, and may be read-only
        X.sum_duplicates()
    return X


def _dense(item: Any, name: str) -> Array:
    """A two-dimensional array; what is masked becomes NaN."""
    if isinstance(item, np.ma.MaskedArray) and item.dtype != object:
        item = np.ma.filled(item.astype(float), np.nan)
    try:
        # One memory order, so that every container gives the same bits.
        X = np.asarray(item, order="C")
    except ValueError as error:
        raise ValueError(f"view {name!r} is not a rectangular table of numbers: {error}") from error
    if X.ndim == 0:
        raise ValueError(
            f"Expected 2D array for view {name!r} (observations × features), got a "
            f"{type(item).__name__}; pass an array or a table of numbers"
        )
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array for view {name!r} (observations × features), got {X.ndim}D array "
            "instead. Reshape your data: X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) "
            "if it is one sample"
        )
    return X


def _from_objects(X: Matrix, name: str) -> Matrix:
    """Numbers of Python's own types as float64."""
    try:
        return X.astype(np.float64)
    except OverflowError as error:
        row, column = next(
            (i, j)
            for i, j in np.ndindex(X.shape)
            if isinstance(X[i, j], int) and _overflows(X[i, j])
        )
        raise ValueError(
            f"view {name!r} has an entry too large for a floating-point number at row {row}, column "
            f"{column}; {TOO_LARGE}"
        ) from error
    except (TypeError, ValueError) as error:
        # An object that can never be a number is a TypeError, a text that is none a ValueError.
        raise type(error)(f"view {name!r} has entries that are not numbers: {error}") from error


def _overflows(number: int) -> bool:
    return abs(number) > float(np.finfo(np.float64).max)  # exact: one of Python's is an integer
