"""Approximate neighbours by trees of random planes and a descent over neighbours of neighbours.

The method is that of Dong, Charikar and Li (2011) as pynndescent has it, arranged so that the lists are
the same for any number of threads: a round looks for pairs by chunks of rows that N alone decides, and
then every thread keeps those of its own rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from manyview._types import Array
from manyview.engines.threads import Threads, blocks

from .code_cache import import_compiled

#: Trees, most rows of a leaf, and rounds at most.
TREES, LEAF, ROUNDS = 8, 48, 12
#: Neighbours of a row that are joined in a round: as many as are wanted within these bounds.
FEWEST_JOINED, MOST_JOINED = 16, 24
#: The descent ends when a round changes a smaller share of the lists.
SETTLED = 0.004
#: Rows between two times that lists take what was found, and chunks of these.
TURN, CHUNK = 2**16, 2**12
#: Rows with a feature in common that are looked at for one row of a sparse view.
MET = 20_000


def descended(data: Array, k: int, seed: int, threads: Threads) -> Array:
    """The k nearest rows of every row (float32), nearest first, but for some that are missed."""
    return Descent(data, k, seed, threads).run()


class Descent:
    """Lists of neighbours that become better."""

    def __init__(self, data: Array, k: int, seed: int, threads: Threads):
        self.kernels = import_compiled("manyview.engines.numpy.descent_kernels")
        self.data, self.seed, self.threads, n = data, seed, threads, len(data)
        self.indices = np.full((n, k), -1, dtype=np.int32)
        self.d = np.full((n, k), np.inf, dtype=np.float32)
        self.new = np.zeros((n, k), dtype=bool)
        self.joined = min(max(k, FEWEST_JOINED), MOST_JOINED)

    def run(self) -> Array:
        for tree in self.threads.each(self._tree, list(range(TREES))):
            self._look_in_leaves(*tree)
        for turn in range(ROUNDS):
            if self._round(turn) <= SETTLED * self.indices.size:
                break
        return self._complete()

    def _tree(self, number: int) -> tuple[Array, Array]:
        order = np.arange(len(self.data), dtype=np.int32)
        starts = np.empty(len(order) + 1, dtype=np.int64)
        leaves = self.kernels.grow(self.data, self.seed + number, LEAF, order, starts)
        return order, starts[: leaves + 1]

    def _look_in_leaves(self, order: Array, starts: Array) -> None:
        far = self.d[:, -1].copy()
        sizes = np.diff(starts)
        pairs_before = np.concatenate([[0], np.cumsum(sizes * (sizes - 1) // 2)])

        def look(some: slice) -> tuple[Array, Array]:
            room = int(pairs_before[some.stop] - pairs_before[some.start])
            pairs, d = np.empty((room, 2), dtype=np.int32), np.empty(room, dtype=np.float32)
            args = (self.data, order, starts, some.start, some.stop, far, pairs, d)
            count = self.kernels.join_leaves(*args)
            return pairs[:count], d[:count]

        self._show(self.threads.each(look, list(blocks(slice(0, len(sizes)), CHUNK // 16))))

    def _round(self, turn: int) -> int:
        """Neighbours of neighbours meet; how many places in the lists changed."""
        C, taken = self.joined, 0
        shape = (len(self.data), C)
        fresh, known = (np.full(shape, -1, dtype=np.int32) for _ in range(2))
        ranks = [np.empty(shape, dtype=np.int64) for _ in range(2)]

        def choose(rows: slice) -> None:
            sides = (fresh, ranks[0], known, ranks[1])
            self.kernels.candidates(self.indices, self.new, turn, rows.start, rows.stop, *sides)

        def chosen(rows: slice) -> None:
            self.kernels.no_longer_new(self.indices, self.new, rows.start, rows.stop, fresh)

        self.threads.each(choose, self._shares())
        self.threads.each(chosen, self._shares())  # when all have read who is new
        for part in blocks(slice(0, len(self.data)), TURN):
            far = self.d[:, -1].copy()

            def look(rows: slice, far: Array = far) -> tuple[Array, Array]:
                room = (rows.stop - rows.start) * (C * (C - 1) // 2 + C * C)
                pairs, d = np.empty((room, 2), dtype=np.int32), np.empty(room, dtype=np.float32)
                args = (self.data, fresh, known, rows.start, rows.stop, far, pairs, d)
                count = self.kernels.join_neighbors(*args)
                return pairs[:count].copy(), d[:count].copy()

            taken += self._show(self.threads.each(look, list(blocks(part, CHUNK))))
        return taken

    def _show(self, found: list[tuple[Array, Array]]) -> int:
        def take(rows: slice) -> int:
            lists = (rows.start, rows.stop, self.indices, self.d, self.new)
            return sum(self.kernels.show(pairs, d, *lists) for pairs, d in found)

        return sum(self.threads.each(take, self._shares()))

    def _shares(self) -> list[slice]:
        """The rows of every thread: what a row takes depends on nobody else's."""
        return list(blocks(slice(0, len(self.data)), -(-len(self.data) // self.threads.n_threads)))

    def _complete(self) -> Array:
        """The lists; where less than k rows were met, some of those that follow the row."""
        k, n = self.indices.shape[1], len(self.indices)
        for i in np.flatnonzero(self.indices[:, -1] < 0):
            have = self.indices[i][self.indices[i] >= 0]
            rest = np.setdiff1d((i + 1 + np.arange(2 * k)) % n, [*have, i])
            self.indices[i] = np.concatenate([have, rest])[:k]
        return self.indices.astype(np.int64)


def sharing_rows(Z: sp.csr_array, k: int, threads: Threads) -> Array:
    """k rows with much in common with every row of a sparse view, by its rarest features."""
    kernels: Any = import_compiled("manyview.engines.numpy.descent_kernels")
    Z = normalize(sp.csr_array(Z, dtype=np.float32))
    n, columns = Z.shape[0], Z.tocsc()
    frequency = np.diff(columns.indptr)
    rows = np.repeat(np.arange(n), np.diff(Z.indptr))
    order = np.lexsort((frequency[Z.indices], rows))
    words, values = Z.indices[order], np.abs(Z.data[order])
    posted_values = np.abs(columns.data)
    found = np.empty((n, k), dtype=np.int64)

    def look(some: slice) -> None:
        by_row = (words, values, Z.indptr, columns.indices, posted_values, columns.indptr)
        kernels.sharing(*by_row, MET, some.start, some.stop, found)

    threads.each(look, list(blocks(slice(0, n), CHUNK)))
    return found
