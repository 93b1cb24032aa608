"""Where the rows of a view are read from, a block at a time, scaled on the way if need be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from manyview._types import Array, Matrix, storable
from manyview.engines.threads import Threads, blocks

#: OpenBLAS multiplies without repacking up to about 10⁶ multiplications: twice as fast for thin factors.
SMALL_PRODUCT = 10**6
#: Entries of a block that is only looked at: 8 MiB in double precision.
LOOK = 2**20


class Source(Protocol):
    shape: tuple[int, int]
    dtype: np.dtype
    sparse: bool

    def read(self, rows: slice) -> Matrix: ...


class InMemory:
    """Rows as they are."""

    def __init__(self, X: Matrix):
        self.X, self.shape, self.dtype, self.sparse = X, X.shape, X.dtype, sp.issparse(X)

    def read(self, rows: slice) -> Matrix:
        return self.X[rows]


@storable
class Scaled:
    """Rows scaled when read: no scaled copy of a large view is kept."""

    def __init__(self, X: Matrix, scaling: Any, dtype: np.dtype):
        self.X, self.scaling, self.shape, self.dtype = X, scaling, X.shape, np.dtype(dtype)
        self.sparse = X.sparse if is_streamed(X) else sp.issparse(X)
        self.on_disk = is_streamed(X)
        constant = scaling.constant
        tiny, large = np.finfo(dtype).tiny, np.finfo(dtype).max
        self.constant = constant if constant is not None and tiny < constant < large else None

    def read(self, rows: slice) -> Matrix:
        block = self.X[rows]
        if self.constant is not None and not sp.issparse(block):
            if block.dtype.itemsize <= self.dtype.itemsize:
                return np.multiply(block, self.dtype.type(self.constant), dtype=self.dtype)
        elif self.constant is not None and block.dtype == self.dtype:
            return block * self.dtype.type(self.constant)
        block = self.scaling.apply(block.astype(np.float64, copy=False))
        return block.astype(self.dtype, copy=False)

    def recipe(self, rows: slice) -> Callable[[Matrix], Matrix]:
        """What makes these rows of the data those of this view; it holds no data."""
        return partial(_scaled_whole, self.scaling, self.dtype)

    def take(self, rows: Array) -> Matrix:
        return Scaled(self.X[rows], self.scaling, self.dtype).read(slice(None))

    def sum(self) -> float:
        if hasattr(self.X, "each"):
            return float(sum(self.X.each(_scaled_sum, self.scaling, self.dtype)))
        return float(sum(block.sum(dtype=float) for block in reading(self)))

    def __matmul__(self, vector: Array) -> Array:
        return np.concatenate([block @ vector for block in reading(self)])


def _scaled_whole(scaling: Any, dtype: np.dtype, X: Matrix) -> Matrix:
    return Scaled(X, scaling, dtype).read(slice(None))


def _scaled_sum(X: Matrix, scaling: Any, dtype: np.dtype) -> float:
    return float(_scaled_whole(scaling, dtype, X).sum(dtype=float))


class UnitRows:
    """Rows of Z with unit L1 norm; ``row_scale`` is 1/norm, 0 for an empty row."""

    def __init__(self, Z: Matrix, row_scale: Array):
        self.Z, self.shape, self.dtype, self.on_disk = Z, Z.shape, Z.dtype, is_streamed(Z)
        self.sparse = Z.sparse if self.on_disk else sp.issparse(Z)
        self.row_scale = row_scale.astype(Z.dtype).reshape(-1, 1)

    def read(self, rows: slice) -> Matrix:
        block = self.Z.read(rows) if self.on_disk else self.Z[rows]
        return _times_rows(None, self.row_scale[rows], block)

    def recipe(self, rows: slice) -> Callable[[Matrix], Matrix]:
        """What makes these rows of the data those of this view; it holds no data."""
        return partial(_times_rows, self.Z.recipe(rows), self.row_scale[rows])


def _times_rows(before: Callable[[Matrix], Matrix] | None, scale: Array, X: Matrix) -> Matrix:
    """Every row times a number, after what is to be done before."""
    Z = X if before is None else before(X)
    return sp.csr_array(Z.multiply(scale)) if sp.issparse(Z) else Z * scale


def as_source(X: Any) -> Source:
    return X if hasattr(X, "read") else InMemory(X)


def whole(X: Any) -> Matrix:
    """All rows at once, for what cannot be done in blocks."""
    return X.read(slice(0, X.shape[0])) if hasattr(X, "read") else X


def is_streamed(X: Any) -> bool:
    """Whether the rows stay in a file, so that they must never be asked for all at once."""
    return bool(getattr(X, "on_disk", False))


def resident(X: Any) -> Any:
    """All rows at once, unless they are in a file: then what reads them."""
    return X if is_streamed(X) else whole(X)


def looking_rows(n_features: int) -> int:
    """Rows per block of what is only looked at."""
    return min(max(LOOK // max(1, n_features), 1), 4096)


def reading(X: Source) -> Iterator[Matrix]:
    """The rows in order, a block at a time."""
    for rows in blocks(slice(0, X.shape[0]), looking_rows(X.shape[1])):
        yield X.read(rows)


def over(X: Any, work: Callable, *args: Any) -> list[Any]:
    """work(block, *args) of all rows in order; rows on other machines are worked on there."""
    if hasattr(X, "each"):
        return X.each(work, *args)
    return [work(block, *args) for block in reading(as_source(X))]


def block_rows(source: Source, n_columns: int) -> int:
    """Rows per block: few enough for the cache and a small product, many enough to be worth a call."""
    if source.sparse:
        return 4096
    return min(max(SMALL_PRODUCT // max(1, 4 * source.shape[1] * n_columns), 32), 2048)


def squared_norms(source: Source, threads: Threads) -> Array:
    """‖x_i‖² of every row."""

    if hasattr(source, "squared_norms"):
        return source.squared_norms()

    def work(rows: slice) -> list[Array]:
        step = looking_rows(source.shape[1])
        return [row_norms(source.read(b), squared=True) for b in blocks(rows, step)]

    parts = threads.map(work, source.shape[0])
    return np.concatenate([norms for chunk in parts for norms in chunk])
