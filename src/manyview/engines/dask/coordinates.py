"""Rows of a few numbers each on Dask workers: what the neighbors of large views are looked for in."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from operator import getitem
from typing import Any

import numpy as np

from manyview._types import Array, Matrix
from manyview.engines.threads import CHUNK_ROWS, blocks

from .cluster import Cluster
from .source import DaskMatrix, on_piece

#: Blocks of fewer than `LARGE` rows, and of more: by their number alone, so that blocks of several views
#: hold the same rows.
FEW, MANY, LARGE = 16, 64, 2**22


class Coordinates:
    """Dense rows in single precision on the workers of a cluster; every block of them is a future."""

    def __init__(self, cluster: Cluster, held: list[Any], rows: list[slice], width: int):
        self.cluster, self.blocks, self.rows = cluster, held, rows
        self.shape = (rows[-1].stop, width)

    @classmethod
    def of(cls, cluster: Cluster, Z: Any, directions: Array) -> Coordinates:
        """Rows of a user's dask array, scaled as ``Z`` says, along some directions."""
        array: DaskMatrix = Z.X
        rows, told = cut(array.shape[0]), cluster.keep(directions)
        tasks, whole = [], array.blocks()
        for home, some in zip(cluster.homes(len(rows)), rows, strict=True):
            parts, inside = array.parts_of(some, whole)
            given = (parts, inside, array.dtype, _scaled_along, Z.recipe(some), told)
            tasks.append(cluster.task(home, on_piece, *given))
        return cls(cluster, cluster.begin(tasks)[0], rows, directions.shape[1])

    def tasks(self, work: Callable, args: list[tuple]) -> list[Any]:
        """Tasks work(block b, *args[b]), each for the worker that has block b."""
        homes = self.cluster.where(self.blocks, self.cluster.homes(len(self.blocks)))
        return [
            self.cluster.task(home, work, block, *given)
            for home, block, given in zip(homes, self.blocks, args, strict=True)
        ]

    def each(self, work: Callable, *args: Any) -> list[Any]:
        """work(block, *args) of every block, in their order."""
        return self.cluster.results(self.tasks(work, [args] * len(self.rows)))

    def each_from(self, work: Callable, *args: Any) -> list[Any]:
        """Likewise, with the number of its first row after the block."""
        return self.cluster.results(self.tasks(work, [(part.start, *args) for part in self.rows]))

    def along(self, directions: Array) -> Coordinates:
        """The same rows along some directions."""
        told = self.cluster.keep(directions)
        tasks = self.tasks(along_directions, [(told,)] * len(self.rows))
        return Coordinates(
            self.cluster, self.cluster.begin(tasks)[0], self.rows, directions.shape[1]
        )

    def only(self, chosen: Array) -> Coordinates:
        """Some rows, in ascending order, numbered anew."""
        if len(chosen) == self.shape[0]:
            return self
        inside = np.zeros(self.shape[0], dtype=bool)
        inside[chosen] = True
        masks = [inside[rows] for rows in self.rows]
        ends = list(accumulate((int(mask.sum()) for mask in masks), initial=0))
        tasks = self.tasks(getitem, [(mask,) for mask in masks])
        rows = [slice(*ends) for ends in pairwise(ends)]
        return Coordinates(self.cluster, self.cluster.begin(tasks)[0], rows, self.shape[1])

    def take(self, chosen: Array) -> Array:
        """Some rows, in ascending order, in this process."""
        parts = [chosen[(chosen >= r.start) & (chosen < r.stop)] - r.start for r in self.rows]
        tasks = self.tasks(getitem, [(part,) for part in parts])
        return np.concatenate(self.cluster.results(tasks))

    def gathered(self) -> Array:
        """All rows in this process."""
        whole = np.empty(self.shape, dtype=np.float32)
        for future, rows in zip(self.blocks, self.rows, strict=True):
            whole[rows] = self.cluster.result(future)
        return whole


def cut(n: int) -> list[slice]:
    return list(blocks(slice(0, n), max(CHUNK_ROWS, -(-n // (FEW if n < LARGE else MANY)))))


# --- what runs on workers ----------------------------------------------------------------------


def along_directions(block: Matrix, directions: Array) -> Array:
    return np.ascontiguousarray(block @ directions, dtype=np.float32)


def _scaled_along(X: Matrix, recipe: Callable[[Matrix], Matrix], directions: Array) -> Array:
    return along_directions(recipe(X), directions)
