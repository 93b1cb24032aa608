"""What kind of view a matrix is: a table in memory, rows that are read when needed, or a relation.

Stages and reports ask here, so that they need not know the classes.
"""

from __future__ import annotations

from typing import NamedTuple

from manyview._types import Matrix
from manyview._warn import setting

from .relations import Relation, kind_of
from .sources import is_streamed


class Words(NamedTuple):
    """What is said of a view that has nobody, and of observations that it lacks."""

    nobody: str
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
    remedy = f"; if zeros are findings, use {setting('zero_rows', name, 'observed')}"
    return Words(f"has no {wanted}", "are zero throughout", remedy)
