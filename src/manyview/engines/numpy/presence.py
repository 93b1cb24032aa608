"""What kind of view a matrix is, which of its rows and entries are observed, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from manyview._arrays import namespace, on_host
from manyview._types import Array, Matrix
from manyview.engines.threads import Threads

from .relations import Relation, kind_of
from .sources import is_streamed, over

#: Entries that one thread looks through sooner than several are started.
SMALL = 2**22
#: Columns looked at first, and then of the rows that have no value there.
FIRST_COLUMNS = (1, 16)


def present_rows(X: Matrix) -> Array:
    """Rows that hold at least one observed, nonzero value; of a relation, those with an entry."""
    if isinstance(X, Relation):
        return X.present()
    if is_streamed(X):
        return np.concatenate(over(X, present_rows))
    if sp.issparse(X):
        return np.ravel(abs(X).sum(axis=1)) > 0
    if not isinstance(X, np.ndarray):
        return on_host(_has_value(X))
    found, empty, begin = np.zeros(X.shape[0], dtype=bool), np.arange(X.shape[0]), 0
    for end in (*FIRST_COLUMNS, X.shape[1]):
        part = X[:, begin:end] if len(empty) == len(X) else X[empty, begin:end]
        found[empty] = _has_value(part)
        empty, begin = empty[~found[empty]], end
    return found


def survey(X: Matrix) -> tuple[Array, bool]:
    """Rows that hold an observed, nonzero value, and whether a row of zeros is a value in such a view.

    It is one in views of zeros and ones, of one column, and with numbers below zero. In other views
    (counts, words, images) it says that nothing was measured. All rows are read once.
    """
    if isinstance(X, Relation):
        return X.present(), False
    if is_streamed(X):
        found = over(X, _surveyed)
        present = np.concatenate([rows for rows, _, _ in found])
        kinds = [kind for _, *kind in found]
    elif sp.issparse(X):
        present, kinds = present_rows(X), [_kind(X)]
    else:
        present = present_rows(X)
        kinds = looking_threads(X).map(lambda rows: _kind(X[rows]), X.shape[0])
    binary, signed = all(kind[0] for kind in kinds), any(kind[1] for kind in kinds)
    return present, bool(present.any() and (X.shape[1] == 1 or binary or signed))


def _surveyed(block: Matrix) -> tuple[Array, bool, bool]:
    return present_rows(block), *_kind(block)


def _kind(X: Matrix) -> tuple[bool, bool]:
    """Whether all observed values are 0 or 1, and whether one is below 0."""
    values = X.data if sp.issparse(X) else X
    if values.size == 0:
        return True, False
    low = values.min()
    signed = low < 0 if low == low else bool((values < 0).any())

    def binary(part: Array) -> bool:
        return bool(((part == 0) | (part == 1) | (part != part)).all())

    return binary(values[:1]) and binary(values), bool(signed)


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


class Words(NamedTuple):
    """Words for a view without samples, and for samples that it lacks."""

    empty: str
    lacking: str
    #: How a user may say that they are not missing; empty where there is no such way.
    remedy: str = ""


def is_table(X: Matrix) -> bool:
    """Whether a view is a table of features, in memory or elsewhere, and no relation."""
    return kind_of(X) is None


def separable(X: Matrix) -> bool:
    """Whether rows can be taken out of a view: not out of a file, nor of a relation they are columns of."""
    return is_table(X) and not is_streamed(X)


def numbers_of(X: Matrix) -> Matrix:
    """The numbers of a view: those of a relation are its matrix."""
    return X.matrix if isinstance(X, Relation) else X


def read_rows(X: Matrix, rows: slice) -> Matrix:
    """Some rows of a view as numbers."""
    return X.read(rows) if is_streamed(X) else numbers_of(X)[rows]


def as_table(X: Matrix) -> Matrix:
    """A view as methods of features take it."""
    return X.as_features() if isinstance(X, Relation) else X


def absence(X: Matrix, name: str, zeros_count: bool) -> Words:
    """What it means to be missing in a view; ``zeros_count``: a row of zeros is a finding."""
    if isinstance(X, Relation):
        return Words(f"is a {X.kind} without entries", X.entries)
    wanted = "observed value" if zeros_count else "observed value that is not zero"
    remedy = f"; if zeros are findings, use zero_rows={{{name!r}: 'observed'}}"
    return Words(f"has no {wanted}", "are zero throughout", remedy)
