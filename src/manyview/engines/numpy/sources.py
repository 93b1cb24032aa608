"""Where the rows of a view are read from, a block at a time, scaled on the way if need be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from manyview._types import Array, Matrix, storable
from manyview.engines.protocols import Remote, RowSource, looking_rows
from manyview.engines.threads import Threads, blocks

#: OpenBLAS multiplies without repacking up to about 10⁶ multiplications: twice as fast for thin factors.
SMALL_PRODUCT = 10**6


class InMemory(RowSource):
    """Rows as they are."""

    on_disk = False

    def __init__(self, X: Matrix):
        self.X, self.shape, self.dtype, self.sparse = X, X.shape, X.dtype, sp.issparse(X)

    def read(self, rows: slice) -> Matrix:
        return self.X[rows]


@storable
class Scaled(RowSource):
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
        if isinstance(self.X, Remote):
            return float(sum(self.X.each(_scaled_sum, self.scaling, self.dtype)))
        return float(sum(block.sum(dtype=float) for block in reading(self)))

    def __matmul__(self, vector: Array) -> Array:
        return np.concatenate([block @ vector for block in reading(self)])


def _scaled_whole(scaling: Any, dtype: np.dtype, X: Matrix) -> Matrix:
    return Scaled(X, scaling, dtype).read(slice(None))


def _scaled_sum(X: Matrix, scaling: Any, dtype: np.dtype) -> float:
    return float(_scaled_whole(scaling, dtype, X).sum(dtype=float))


class UnitRows(RowSource):
    """Rows of Z with unit L1 norm; ``row_scale`` is 1/norm, 0 for an empty row."""

    def __init__(self, Z: Matrix, row_scale: Array):
        self.X, self.shape, self.dtype, self.on_disk = Z, Z.shape, Z.dtype, is_streamed(Z)
        self.sparse = Z.sparse if self.on_disk else sp.issparse(Z)
        self.row_scale = row_scale.astype(Z.dtype).reshape(-1, 1)

    def read(self, rows: slice) -> Matrix:
        block = self.X.read(rows) if self.on_disk else self.X[rows]
        return _times_rows(None, self.row_scale[rows], block)

    def recipe(self, rows: slice) -> Callable[[Matrix], Matrix]:
        """What makes these rows of the data those of this view; it holds no data."""
        return partial(_times_rows, self.X.recipe(rows), self.row_scale[rows])


def _times_rows(before: Callable[[Matrix], Matrix] | None, scale: Array, X: Matrix) -> Matrix:
    """Every row times a number, after what is to be done before."""
    Z = X if before is None else before(X)
    return sp.csr_array(Z.multiply(scale)) if sp.issparse(Z) else Z * scale


def as_source(X: Any) -> Any:
    """What reads the rows of X: itself, or a reader of an array."""
    return X if isinstance(X, RowSource) else InMemory(X)


def whole(X: Any) -> Matrix:
    """All rows at once, for what cannot be done in blocks."""
    return X.read(slice(0, X.shape[0])) if isinstance(X, RowSource) else X


def is_streamed(X: Any) -> bool:
    """Whether the rows stay in a file, so that they are never read all at once."""
    return bool(getattr(X, "on_disk", False))


def resident(X: Any) -> Any:
    """All rows at once, unless they are in a file: then what reads them."""
    return X if is_streamed(X) else whole(X)


def reading(X: RowSource) -> Iterator[Matrix]:
    """The rows in order, a block at a time."""
    for rows in blocks(slice(0, X.shape[0]), looking_rows(X.shape[1])):
        yield X.read(rows)


def over(X: Any, work: Callable, *args: Any) -> list[Any]:
    """work(block, *args) of all rows in order; rows on other machines are worked on there."""
    if isinstance(X, Remote):
        return X.each(work, *args)
    return [work(block, *args) for block in reading(as_source(X))]


def block_rows(source: RowSource, n_columns: int) -> int:
    """Rows per block: few enough for the cache and a small product, many enough to be worth a call."""
    if source.sparse:
        return 4096
    return min(max(SMALL_PRODUCT // max(1, 4 * source.shape[1] * n_columns), 32), 2048)


def squared_norms(source: RowSource, threads: Threads) -> Array:
    """‖x_i‖² of every row."""
    if isinstance(source, Remote):
        return np.concatenate(source.each(_squared_rows))

    def work(rows: slice) -> list[Array]:
        step = looking_rows(source.shape[1])
        return [row_norms(source.read(b), squared=True) for b in blocks(rows, step)]

    parts = threads.map(work, source.shape[0])
    return np.concatenate([norms for chunk in parts for norms in chunk])


def _squared_rows(X: Matrix) -> Array:
    return row_norms(X, squared=True)


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
