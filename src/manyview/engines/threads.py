"""Row blocks on threads. NumPy, BLAS and the compiled kernels all let go of the interpreter's lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")
Part = TypeVar("Part")

#: Rows are cut into at most this many chunks, by N alone: sums over chunks, taken in order, have the
#: same bits for any number of threads.
CHUNKS, CHUNK_ROWS = 32, 4096


def available_cores() -> int:
    """The cores this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return cores or 1


def available_threads(n_jobs: int | None) -> int:
    """``n_jobs`` as scikit-learn reads it, but ``None`` means the cores this process may use."""
    cores = available_cores()
    if n_jobs is None:
        limit = os.environ.get("OMP_NUM_THREADS", "")
        return min(cores, int(limit)) if limit.isdigit() and int(limit) > 0 else cores
    return max(1, cores + 1 + n_jobs) if n_jobs < 0 else max(1, n_jobs)


def beside(work: Callable[[], Result]) -> Callable[[], Result]:
    """Start work on another thread; calling the result waits for it."""
    pool = ThreadPoolExecutor(1)
    future = pool.submit(work)
    pool.shutdown(wait=False)
    return future.result


class Threads:
    """Maps a function over chunks of rows; with one thread, a plain loop."""

    def __init__(self, n_jobs: int | None = 1):
        self.n_threads = available_threads(n_jobs)

    def map(self, work: Callable[[slice], Result], n_rows: int) -> list[Result]:
        return self.each(work, list(chunks(n_rows)))

    def each(self, work: Callable[[Part], Result], parts: list[Part]) -> list[Result]:
        """work(part) of all parts, in their order."""
        if self.n_threads == 1 or len(parts) == 1:
            return [work(part) for part in parts]
        with ThreadPoolExecutor(self.n_threads) as pool:
            return list(pool.map(work, parts))


def chunks(n_rows: int) -> Iterator[slice]:
    size = max(CHUNK_ROWS, -(-n_rows // CHUNKS))
    return blocks(slice(0, n_rows), size)


def blocks(rows: slice, size: int) -> Iterator[slice]:
    """Consecutive slices of at most ``size`` rows."""
    for start in range(rows.start, rows.stop, size):
        yield slice(start, min(start + size, rows.stop))
