"""Views as row blocks on Dask workers: where they come from, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Callable
from operator import getitem, matmul
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from manyview._types import Array, Matrix
from manyview.engines.numpy.neighbors import (
    equal_share,
    lists_in_block,
    streamed_neighbors,
    use_index,
)
from manyview.engines.numpy.neighbors import merged as in_order
from manyview.engines.numpy.sources import as_source, is_streamed
from manyview.engines.optional import engine_part
from manyview.engines.protocols import Derived, Pass
from manyview.engines.threads import CHUNK_ROWS, blocks
from manyview.maths.solvers import Solver

from .cluster import Cluster
from .source import DaskMatrix, as_block, together

#: An iteration has a task for every pair of blocks. So many blocks are enough for a view of less than
#: `LARGE` bytes, and so many for one of more: by its size alone, so that sums over blocks have the
#: same bits for any number of workers.
FEW, MANY, LARGE = 16, 64, 2**32


class Block:
    """Some rows of a view on a worker, with their squared norms."""

    def __init__(self, X: Matrix):
        # One kind of memory wherever the rows come from: read-only ones would be compiled for again.
        self.X = X if sp.issparse(X) else np.require(X, requirements=["C", "A", "W"])
        self.x_sq = row_norms(self.X, squared=True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """From another worker."""
        X = state["X"]
        if sp.issparse(X):
            X = sp.csr_array(tuple(aligned(X.data, X.indices, X.indptr)), shape=X.shape)
            self.X, (self.x_sq,) = X, aligned(state["x_sq"])
        else:
            self.X, self.x_sq = aligned(X, state["x_sq"])

    def __sizeof__(self) -> int:
        """What Dask reads: it keeps work where the large values are."""
        parts = (self.X.data, self.X.indices) if sp.issparse(self.X) else (self.X,)
        return int(sum(part.nbytes for part in parts))


def aligned(*arrays: Array) -> list[Array]:
    """Arrays as this process would have made them.

    Those that came over the network may start at any byte. NumPy adds such numbers in other groups
    (sums then round differently); and they are read-only, so that loops would be compiled once more.
    """
    return [np.require(array, requirements=["A", "W"]) for array in arrays]


def _dask_rows(X: Any) -> DaskMatrix | None:
    """The user's dask array that a scaled view is made of."""
    while isinstance(X, Derived):
        X = X.X
    return X if isinstance(X, DaskMatrix) else None


class DaskView:
    """A scaled view whose blocks of rows are futures on the workers of a cluster."""

    on_disk = True  # not to be asked for as a whole

    def __init__(self, cluster: Cluster, blocks: list[Any], rows: list[slice], like: Any):
        """``like`` has the view's shape and dtype."""
        self.cluster, self.blocks, self.rows = cluster, blocks, rows
        self.shape, self.dtype = like.shape, np.dtype(like.dtype)
        self.homes = cluster.homes(len(rows))
        #: The regularizer last used, cut by blocks.
        self.edges: Any = None

    @classmethod
    def of(cls, cluster: Cluster, X: Any) -> DaskView:
        """A view of any kind: a user's dask array, files that workers open, or rows of this process.

        The last are written to files first, so that a lost worker loses no data.
        """
        source, held = as_source(X), _dask_rows(X)
        if held is not None:
            parts, groups = held.blocks(), merged(held.rows, most_blocks(X))
            rows = [slice(held.rows[g[0]].start, held.rows[g[-1]].stop) for g in groups]
            tasks = [
                cluster.task(None, _scaled_block, [parts[b] for b in g], held.dtype, X.recipe(r))
                for g, r in zip(groups, rows, strict=True)
            ]
            return cls(cluster, cluster.begin(tasks)[0], rows, X)
        rows = cut(source)
        homes = cluster.homes(len(rows))
        if is_streamed(X):
            tasks = [
                cluster.task(h, _read_block, X, part) for h, part in zip(homes, rows, strict=True)
            ]
        else:
            folder = cluster.new_folder()
            paths = [write_block(source.read(part), folder / str(part.start)) for part in rows]
            tasks = [
                cluster.task(h, _open_block, path) for h, path in zip(homes, paths, strict=True)
            ]
        return cls(cluster, cluster.begin(tasks)[0], rows, source)

    def as_rows(self, solver: Solver) -> Pass:
        return engine_part("dask", "rows").DaskRows(self, solver)

    def find_homes(self) -> None:
        """Work goes where the blocks are, which changes when a worker is lost."""
        self.homes = self.cluster.where(self.blocks, self.homes)

    def at_home(self, work: Callable, args: list[tuple]) -> list[Any]:
        """Tasks work(*args[b]), each for the worker that has block b."""
        pairs = zip(self.homes, args, strict=True)
        return [self.cluster.task(home, work, *given) for home, given in pairs]

    def keep(self, values: list[Any]) -> list[Any]:
        """Tasks whose values are these, one for each block."""
        return [self.cluster.keep(v, home) for v, home in zip(values, self.homes, strict=True)]

    def each(self, work: Callable, *args: Any) -> list[Any]:
        """work(X_b, *args) of every block, in their order."""
        tasks = [(block, work, *args) for block in self.blocks]
        return self.cluster.results(self.at_home(_on_matrix, tasks))

    def sum(self) -> float:
        return float(sum(self.each(_sum)))

    def squared_norms(self) -> Array:
        """‖x_i‖² of every row, found when the blocks were made."""
        tasks = self.at_home(getattr, [(block, "x_sq") for block in self.blocks])
        return np.concatenate(self.cluster.results(tasks))

    def __matmul__(self, vector: Array) -> Array:
        return np.concatenate(self.each(matmul, vector))

    def take(self, chosen: Array) -> Matrix:
        """Some rows, ``chosen`` in ascending order, in this process."""
        parts = [chosen[(chosen >= r.start) & (chosen < r.stop)] - r.start for r in self.rows]
        tasks = [(block, getitem, part) for block, part in zip(self.blocks, parts, strict=True)]
        found = self.cluster.results(self.at_home(_on_matrix, tasks))
        return together(found)

    def read(self, rows: slice) -> Matrix:
        start, stop, _ = rows.indices(self.shape[0])
        return self.take(np.arange(start, stop))

    def neighbors(self, k: int) -> tuple[Array, Array]:
        """Indices and squared distances (N×k) of every row's nearest other rows.

        Every block is compared with every other, the best k of all are kept, and blocks travel once
        to each worker. Of many rows the coordinates along their leading directions are searched here.
        """
        k = min(k, self.shape[0] - 1)
        if use_index(self.shape[0]):
            return streamed_neighbors(self, k)
        merged, share = [], equal_share(self.dtype)
        for b, block in enumerate(self.blocks):
            found = [
                self.cluster.task(home, _exact, held, block, k, self.rows[c].start, b == c)
                for c, (home, held) in enumerate(zip(self.homes, self.blocks, strict=True))
            ]
            merged.append(self.cluster.task(self.homes[b], in_order, found, k, share))
        indices, squared = zip(*self.cluster.results(merged), strict=True)
        return np.concatenate(indices), np.concatenate(squared)


def most_blocks(like: Any) -> int:
    n_bytes = int(np.prod(like.shape)) * np.dtype(like.dtype).itemsize
    return FEW if n_bytes < LARGE else MANY


def cut(source: Any) -> list[slice]:
    """Blocks of rows that nobody has cut yet."""
    n = source.shape[0]
    return list(blocks(slice(0, n), max(CHUNK_ROWS, -(-n // most_blocks(source)))))


def merged(rows: list[slice], most: int) -> list[list[int]]:
    """Consecutive blocks put together where there are more than ``most``."""
    if len(rows) <= most:
        return [[b] for b in range(len(rows))]
    groups: dict[int, list[int]] = {}
    for b, part in enumerate(rows):
        groups.setdefault(part.start * most // rows[-1].stop, []).append(b)
    return list(groups.values())


def write_block(X: Matrix, path: Path) -> Path:
    if sp.issparse(X):
        path = path.with_suffix(".npz")
        sp.save_npz(path, X, compressed=False)
        return path
    path = path.with_suffix(".npy")
    np.save(path, X)
    return path


# --- what runs on workers ----------------------------------------------------------------------


def _scaled_block(parts: list[Any], own: np.dtype, recipe: Callable[[Matrix], Matrix]) -> Block:
    return Block(recipe(together([as_block(part, own) for part in parts])))


def _read_block(source: Any, rows: slice) -> Block:
    return Block(source.read(rows))


def _open_block(path: Path) -> Block:
    if path.suffix == ".npz":
        return Block(sp.csr_array(sp.load_npz(path)))
    return Block(np.load(path, allow_pickle=False))


def _on_matrix(block: Block, work: Callable, *args: Any) -> Any:
    return work(block.X, *args)


def _sum(X: Matrix) -> float:
    return float(X.sum(dtype=float))


def _exact(held: Block, queries: Block, k: int, first: int, same: bool) -> tuple[Array, Array]:
    """The k rows of ``held`` nearest to each query, by their places in the view."""
    return lists_in_block(held.X, queries.X, k, first, first if same else None)
