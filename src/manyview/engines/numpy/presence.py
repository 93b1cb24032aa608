"""Which rows of a view hold values."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from manyview._arrays import namespace, on_host
from manyview._types import Array, Matrix

from .relations import Relation
from .sources import is_streamed, over


def present_rows(X: Matrix) -> Array:
    """Rows that hold at least one observed, nonzero value; of a relation, those with an entry."""
    if isinstance(X, Relation):
        return X.present()
    if is_streamed(X):
        return np.concatenate(over(X, present_rows))
    if sp.issparse(X):
        return np.ravel(abs(X).sum(axis=1)) > 0
    return on_host(((X != 0) & (X == X)).any(axis=1))  # NaN alone differs from itself


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
    return on_host(namespace(X).isnan(X).sum(axis=1)) / max(1, X.shape[1])
