"""Neighbours at equal distance go by row index, whoever computed the distances and in which blocks.

Products of matrices give distances that differ in their last bits with the shape of a block. A list
that this could change is *unsure*: its candidates are measured again, pair by pair, and then two
distances that differ by less than a small share (`EQUAL`) are the same distance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview.engines.threads import blocks

from .compiled import compiled

#: Whole numbers that were scaled are whole only to rounding: closer distances than this are equal.
EQUAL = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-5}
#: Up to this many columns NumPy selects as quickly as a compiled loop.
FEW = 500
#: Numbers gathered at a time to measure pairs.
GATHERED = 2**21


def equal_share(dtype: Any) -> float:
    return EQUAL.get(np.dtype(dtype), EQUAL[np.dtype(np.float64)])


def product_error(dtype: Any, n_features: int) -> float:
    """Rounding error of a squared distance from products, as a share of (‖x‖ + ‖y‖)²."""
    return float(np.finfo(dtype).eps) * (8 + n_features**0.5)


def nearest(
    d: Array,
    k: int,
    own: int | None,
    slack: Array,
    exact: Callable[[Array, Array], Array],
    share: float,
) -> tuple[Array, Array]:
    """Columns and values of the k smallest entries of every row, in order, ties by column.

    ``slack`` bounds the error of a row's entries; ``exact(rows, columns)`` measures again. Row r itself
    is column own + r, and does not count.
    """
    wide = min(k + 1, d.shape[1] - (own is not None))
    columns, values = smallest(d, wide, own)
    unsure = np.flatnonzero(is_unsure(values, slack, share))
    if len(unsure):
        limit = farthest(values[unsure, k - 1], slack[unsure], share)
        near = d[unsure] <= limit[:, None]
        if own is not None:
            near[np.arange(len(unsure)), own + unsure] = False
        i, j = np.nonzero(near)
        columns[unsure, :k], values[unsure, :k] = first_k(i, j, exact(unsure[i], j), k, share)
    return columns[:, :k], values[:, :k]


def is_unsure(values: Array, slack: Array, share: float) -> Array:
    """Which rows have neighbouring values, in order, that may be equal or change places."""
    with np.errstate(invalid="ignore"):  # infinite ones are as equal as any
        gap = values[:, 1:] - values[:, :-1]
    return ~(gap > share * values[:, :-1] + 2 * slack[:, None]).all(axis=1)


def farthest(kth: Array, slack: Array, share: float) -> Array:
    """What may be no farther than the k-th neighbour."""
    return kth * (1 + share) + 2 * slack


def first_k(i: Array, j: Array, d: Array, k: int, share: float) -> tuple[Array, Array]:
    """The k nearest of every row's candidates j, ties by j; rows i = 0, 1, … each have k or more."""
    order = np.lexsort((j, d, i))
    i, j, d = i[order], j[order], d[order]
    apart = (i[1:] != i[:-1]) | ~(d[1:] <= d[:-1] * (1 + share))
    level = np.concatenate([[0], np.cumsum(apart)])
    order = np.lexsort((j, level))  # levels rise from row to row
    counts = np.bincount(i)
    starts = np.cumsum(counts) - counts
    chosen = order[(starts[:, None] + np.arange(k))]
    return j[chosen], d[chosen]


def merged(lists: list[tuple[Array, Array]], k: int, share: float) -> tuple[Array, Array]:
    """The k nearest of several lists per row (columns, distances), ties by column."""
    columns, d = (np.hstack(parts) for parts in zip(*lists, strict=True))
    rows = np.repeat(np.arange(len(d)), d.shape[1])
    return first_k(rows, columns.ravel(), d.ravel(), min(k, d.shape[1]), share)


def smallest(d: Array, k: int, own: int | None) -> tuple[Array, Array]:
    """Columns and values of the k smallest entries per row, the row itself apart, in order."""
    kernels = compiled()
    if kernels is not None and d.shape[1] > FEW:
        columns, values = np.empty((len(d), k), dtype=np.int64), np.empty((len(d), k))
        first = -len(d) if own is None else own  # nobody has a negative column
        kernels.smallest_rows(d, k, first, columns, values)
        return columns, values
    if own is not None:
        d[np.arange(len(d)), np.arange(own, own + len(d))] = np.inf
    near = np.argpartition(d, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(d, near, axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(values, order, axis=1)


def squared_gaps(X: Matrix, i: Array, Y: Matrix, j: Array) -> Array:
    """‖x_i − y_j‖² of pairs of rows, each from its own differences: copies are at 0, whatever the block."""
    squared = np.empty(len(i))
    for b in blocks(slice(0, len(i)), max(1, GATHERED // max(1, X.shape[1]))):
        gap = X[i[b]] - Y[j[b]]
        if sp.issparse(gap):
            squared[b] = np.ravel(gap.multiply(gap).sum(axis=1, dtype=float))
        else:
            gap = gap.astype(float, copy=False)
            squared[b] = np.einsum("em,em->e", gap, gap)
    return squared
