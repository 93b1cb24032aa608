"""Which rows and entries of a view hold values, and a sentence where none may be missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from manyview._arrays import namespace, on_host
from manyview._types import Array, Matrix
from manyview.engines.threads import Threads

from .relations import Relation
from .sources import is_streamed, over

#: Entries that one thread looks through sooner than several are started.
SMALL = 2**22


def present_rows(X: Matrix) -> Array:
    """Rows that hold at least one observed, nonzero value; of a relation, those with an entry."""
    if isinstance(X, Relation):
        return X.present()
    if is_streamed(X):
        return np.concatenate(over(X, present_rows))
    if sp.issparse(X):
        return np.ravel(abs(X).sum(axis=1)) > 0
    return _with_values(X) if isinstance(X, np.ndarray) else on_host(_has_value(X))


#: Columns looked at first, and then of the rows that have no value there.
FIRST_COLUMNS = (1, 16)


def _with_values(X: Array) -> Array:
    found, empty, begin = np.zeros(X.shape[0], dtype=bool), np.arange(X.shape[0]), 0
    for end in (*FIRST_COLUMNS, X.shape[1]):
        part = X[:, begin:end] if len(empty) == len(X) else X[empty, begin:end]
        found[empty] = _has_value(part)
        empty, begin = empty[~found[empty]], end
    return found


def _has_value(X: Array) -> Array:
    return ((X != 0) & (X == X)).any(axis=1)  # NaN alone differs from itself


def observed_rows(X: Matrix) -> Array:
    """Rows that hold at least one observed value, be it zero; in a relation zeros say nothing."""
    if isinstance(X, Relation):
        return X.present()
    if sp.issparse(X) or is_streamed(X):
        return np.ones(X.shape[0], dtype=bool)
    return on_host(~namespace(X).isnan(X).all(axis=1))


def unobserved(X: Matrix) -> Array:
    """Share of the features of every row that is NaN; files have none."""
    if sp.issparse(X) or is_streamed(X) or isinstance(X, Relation):
        return np.zeros(X.shape[0])
    if not isinstance(X, np.ndarray):
        return on_host(namespace(X).isnan(X).sum(axis=1)) / max(1, X.shape[1])
    share, rows = np.zeros(X.shape[0]), np.flatnonzero(_maybe_nan(X))
    share[rows] = np.isnan(X[rows]).sum(axis=1) / max(1, X.shape[1])
    return share


def has_nan(X: Matrix) -> bool:
    return isinstance(X, np.ndarray) and bool(_maybe_nan(X).any() and np.isnan(X).any())


def _maybe_nan(X: Array) -> Array:
    """Rows without a sum: those with NaN, and those whose numbers are too large to be added."""
    if X.ndim != 2 or X.dtype not in (np.float32, np.float64):
        return np.isnan(X.sum(axis=tuple(range(1, X.ndim))))
    ones = np.ones(X.shape[1], dtype=X.dtype)

    def without_sum(rows: slice) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.isnan(X[rows] @ ones)

    return np.concatenate([ones[:0] > 0, *looking_threads(X).map(without_sum, X.shape[0])])


def looking_threads(X: Array) -> Threads:
    """To look through an array once: one thread where it is small, as many as there are otherwise."""
    return Threads(None if X.size > SMALL else 1)


def refuse_holes(Xs: Sequence[Matrix], names: Sequence[str]) -> None:
    for X, name in zip(Xs, names, strict=True):
        if has_nan(X):
            raise ValueError(
                f"view {name!r} has unobserved (NaN) entries, which WMNMF takes with "
                "engine='numpy' only; use that, or fill them in"
            )


def check_finite(Xs: Sequence[Matrix], names: Sequence[str]) -> None:
    for X, name in zip(Xs, names, strict=True):
        if not np.isfinite(X.sum()):
            raise ValueError(
                f"view {name!r} has entries too large or too small to compute with; divide it "
                "by a constant"
            )
