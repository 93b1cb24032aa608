"""The directions along which the rows of a view vary most, found by reading it in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from manyview._types import Array, Matrix
from manyview.engines.protocols import Remote
from manyview.engines.threads import blocks

from .sources import as_source, looking_rows

#: Long rows, and large views in files, are searched by their leading directions, this many, found in so
#: many passes.
DIRECTIONS, PASSES = 64, 3
#: Sparse rows that are read at a time.
SPARSE_ROWS = 2**14


def leading_directions(
    X: Any, n_directions: int = DIRECTIONS, dtype: npt.DTypeLike = np.float64
) -> Array:
    """The directions of feature space along which rows vary most (M×d), by subspace iteration.

    Only sums over rows are kept, of the features times ``n_directions``. Rows are multiplied in the
    precision ``dtype``: to look for candidates single precision is enough.
    """
    m = X.shape[1]
    if m <= n_directions:
        return np.eye(m)
    mean = _summed(X, _feature_sums) / X.shape[0]
    directions = np.linalg.qr(np.random.default_rng(0).standard_normal((m, n_directions)))[0]
    for _ in range(PASSES):
        image = _summed(X, _image, directions.astype(dtype), mean.astype(dtype))
        directions = np.linalg.qr(image)[0]
    return directions.astype(dtype)


def _summed(X: Any, work: Callable[..., Array], *args: Any) -> Array:
    """Σ work(block, *args) over all rows, one sum of the features' size at a time."""
    total: Array = sum(_over(X, work, *args), start=np.zeros(1))
    return total


def _over(X: Any, work: Callable[..., Array], *args: Any) -> Iterable[Array]:
    """work(block, *args) of all rows in order, one after the other; where the rows are elsewhere, there."""
    if isinstance(X, Remote):
        return X.each(work, *args)
    source = as_source(X)
    # Sparse rows are few numbers, however many features there are: a result for every few is too much.
    step = SPARSE_ROWS if source.sparse else looking_rows(X.shape[1])
    return (work(source.read(b), *args) for b in blocks(slice(0, X.shape[0]), step))


def _feature_sums(block: Matrix) -> Array:
    return np.ravel(block.sum(axis=0, dtype=float))


def _image(block: Matrix, directions: Array, mean: Array) -> Array:
    """(X − mean)ᵀ(X − mean) times the directions, of some rows."""
    along = block @ directions - mean @ directions
    return block.T @ along - np.outer(mean, along.sum(axis=0))


def project(X: Any, directions: Array) -> Array:
    """Rows of X along ``directions``, in float32."""
    return np.concatenate(list(_over(X, _along, directions)))


def _along(block: Matrix, directions: Array) -> Array:
    return (block @ directions).astype(np.float32)
