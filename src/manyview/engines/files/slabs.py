"""Slabs of chunked or compressed files: read whole, by threads, and held for a while."""

from __future__ import annotations

import os
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import count
from threading import Lock
from typing import Any

import numpy as np

from manyview._types import Matrix

from .row_file import RowFile

#: Bytes of a slab, and of all slabs held at a time, whatever the number of views.
SLAB, HELD = 2**22, 2**25
#: Bytes of a slab up to which two are held anyway, and of the largest one.
LARGE_SLAB, LARGEST_SLAB = 2**26, 2**28


class Slabs:
    """Aligned pieces of a file in the shared store of slabs, each read once by a thread of its own."""

    numbers = count()

    def __init__(self, rows: RowFile, state: Any = None):
        self.rows, self.number, self.state = rows, next(self.numbers), state
        wide = 4 if rows.dtype in (np.float32, np.float16) else 8
        entries = max(1, getattr(rows, "nnz", rows.shape[1]) // max(1, rows.shape[0]))
        per_row = 12 * entries if rows.sparse else max(1, rows.shape[1] * wide)
        size = max(1, SLAB // per_row)
        # Whole pieces: a compressed one would be unpacked for each of its parts.
        piece = max(1, min(rows.piece, rows.shape[0]))
        self.size = -(-size // piece) * piece if piece > 1 else size
        self.n = -(-rows.shape[0] // self.size)
        self.nbytes = self.size * per_row
        if self.nbytes > LARGEST_SLAB and not rows.direct:
            raise ValueError(
                f"its chunks of {piece} rows take {self.nbytes >> 20} MiB unpacked and are read "
                f"whole; write it again in chunks of {max(1, SLAB // per_row)} rows"
            )

    def get(self, j: int, dtype: np.dtype) -> Matrix:
        slab = STORE.get(self, j, dtype)
        if j + 1 < self.n and 2 * self.nbytes <= HELD:
            STORE.get(self, j + 1, dtype)
        return slab.result()

    def load(self, j: int, dtype: np.dtype) -> Matrix:
        low = j * self.size
        block = self.rows.read(low, min(low + self.size, self.rows.shape[0]))
        return block.astype(dtype, copy=False)


class SlabStore:
    """Recently used slabs of all views together, up to `HELD` bytes."""

    def __init__(self) -> None:
        self.lock, self.process = Lock(), os.getpid()
        self.slabs: OrderedDict[tuple[int, int], tuple[Future, int]] = OrderedDict()

    def get(self, slabs: Slabs, j: int, dtype: np.dtype) -> Future:
        key = (slabs.number, j)
        with self.lock:
            if self.process != os.getpid():  # a fork: reads under way are the parent's
                self.slabs, self.process = OrderedDict(), os.getpid()
            found = self.slabs.get(key, (None, 0))[0]
            if found is not None and not (found.done() and found.exception()):
                self.slabs.move_to_end(key)
                return found
            found = reader(os.getpid()).submit(slabs.load, j, dtype)
            self.slabs[key] = (found, slabs.nbytes)
            # Threads that read far apart would drive out each other's.
            least = 2 if slabs.nbytes <= LARGE_SLAB else 1
            while len(self.slabs) > least and sum(n for _, n in self.slabs.values()) > HELD:
                self.slabs.popitem(last=False)
            return found

    def clear(self) -> None:
        with self.lock:
            self.slabs.clear()


STORE = SlabStore()


@cache
def reader(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(2, thread_name_prefix="manyview-read")
