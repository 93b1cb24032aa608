"""Dask arrays and data frames of users as views whose rows stay where Dask keeps them."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview.engines.numpy.presence import present_rows
from manyview.engines.numpy.scaling import ScaledFile, Scaling, scaled_rows
from manyview.engines.protocols import RowSource
from manyview.engines.threads import blocks
from manyview.io.limits import free_memory

from .cluster import current_client, saying_if_lost, wait_for

#: Bytes of the rows that are worked on at a time (as if they were dense).
PIECE = 2**26


def is_lazy(item: Any) -> bool:
    """Whether ``item`` is a dask array or data frame; Dask is not imported to find out."""
    kind = type(item)
    library = kind.__module__.split(".")[0]
    return library in ("dask", "dask_expr") and kind.__name__ in ("Array", "DataFrame")


class DaskMatrix(RowSource):
    """A dask array cut by rows: its shape and precision, work on its blocks, and rows on request."""

    keep = False
    nbytes = 0

    def __init__(self, data: Any, view: str = ""):
        self.view = view
        self.features, self.ids = None, None
        if hasattr(data, "columns"):
            self.features = [str(c) for c in data.columns]
            data, self.ids = _from_frame(self._numeric(data))
        self.array = self._by_rows(data)
        self.shape = (int(self.array.shape[0]), int(self.array.shape[1]))
        single = self.array.dtype in (np.float32, np.float16)
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self.sparse = sp.issparse(self.array._meta)
        self.nbytes = int(np.prod(self.shape)) * self.dtype.itemsize
        ends = np.cumsum(self.array.chunks[0])
        sizes = zip(ends, self.array.chunks[0], strict=True)
        self.rows = [slice(int(end - size), int(end)) for end, size in sizes if size]
        step = max(1, PIECE // max(1, self.shape[1] * self.dtype.itemsize))
        #: What `each` works on: cut by the shape alone, so that sums and checksums do not depend on blocks.
        self.pieces = list(blocks(slice(0, self.shape[0]), step))

    def _numeric(self, frame: Any) -> Any:
        """pandas' nullable columns, which would make objects of all numbers, as floats with NaN."""
        nullable = {}
        for name, kind in frame.dtypes.items():
            if getattr(kind, "kind", "O") not in "biuf":
                raise ValueError(
                    f"{self.label} has the non-numeric column {name!r} ({kind}); drop it, set it as "
                    "the index, or encode it as numbers"
                )
            if not isinstance(kind, np.dtype):
                nullable[name] = float
        return frame.astype(nullable) if nullable else frame

    def _by_rows(self, data: Any) -> Any:
        if data.ndim != 2:
            raise ValueError(
                f"Expected 2D array for {self.label} (samples × features), got {data.ndim}D "
                "array instead"
            )
        if data.dtype.kind not in "biuf":
            raise ValueError(
                f"{self.label} has entries that are not numbers (dtype {data.dtype}); encode them as "
                "numbers"
            )
        if np.isnan(data.chunks[0]).any():
            data = copy(data).compute_chunk_sizes()  # it writes them into the array
        if len(data.chunks[1]) > 1:
            raise ValueError(
                f"{self.label} has the shape {data.shape} in {len(data.chunks[1])} blocks of features "
                f"({' + '.join(map(str, data.chunks[1][:4]))}{', …' * (len(data.chunks[1]) > 4)}); "
                f"blocks must hold whole rows: pass .rechunk({{1: -1}})"
            )
        return data

    @property
    def label(self) -> str:
        return f"view {self.view!r}" if self.view else "a dask array"

    def blocks(self) -> list[Any]:
        """A delayed matrix for every block that has rows."""
        whole = self.array.to_delayed().ravel()
        return [part for part, n in zip(whole, self.array.chunks[0], strict=True) if n]

    def each(
        self, work: Callable, *args: Any, place: bool = False, only: Array | None = None
    ) -> list[Any]:
        """work(X_p, *args) of consecutive pieces, where Dask computes, in their order.

        With ``place`` the number of its first row comes after X_p; pieces without any of the rows
        ``only`` (ascending) are left out, except one.
        """
        import dask

        call, parts, tasks = dask.delayed(on_piece, pure=False), self.blocks(), []
        low, high = (0, self.shape[0]) if only is None else (0, 0)
        if only is not None and len(only):
            low, high = only[0], only[-1]
        for piece in self.pieces:
            if piece.start > high or low >= piece.stop:
                continue
            given = (piece.start, *args) if place else args
            tasks.append(call(*self.parts_of(piece, parts), self.dtype, work, *given))
        return computed(tasks)

    def scaled(self, scaling: Scaling, present: Array, dtype: np.dtype) -> ScaledOnWorkers:
        """z of these rows, on the workers."""
        return ScaledOnWorkers(self, scaling, present, dtype)

    def parts_of(self, rows: slice, parts: list[Any] | None = None) -> tuple[list[Any], slice]:
        """The delayed blocks (of ``parts``, if known) that hold some rows, and where these are in them."""
        parts, starts = parts or self.blocks(), [part.start for part in self.rows]
        first = int(np.searchsorted(starts, rows.start, side="right")) - 1
        last = int(np.searchsorted(starts, rows.stop, side="left"))
        return parts[first:last], slice(rows.start - starts[first], rows.stop - starts[first])

    def read(self, rows: slice) -> Matrix:
        start, stop, _ = rows.indices(self.shape[0])
        return self.take(np.arange(start, stop))

    def take(self, rows: Array) -> Matrix:
        """The requested rows in their order, in this process."""
        if not self.pieces:  # no rows at all
            return np.empty(self.shape, dtype=self.dtype)
        order = np.argsort(rows, kind="stable")
        ordered = np.asarray(rows)[order]
        found = self.each(_chosen, ordered, place=True, only=ordered)
        found = [part for part in found if part.shape[0]] or found[:1]
        taken = together(found)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return taken[back]

    def columns(self, part: slice) -> DaskMatrix:
        """Some features of all rows."""
        return DaskMatrix(self.array[:, part], self.view)

    def load(self) -> Matrix:
        """All rows in this process, if they leave room for as many again."""
        free = free_memory()
        size = self.nbytes
        if self.sparse and 2 * size > free:
            size = sum(self.each(_sparse_bytes))
        if 2 * size > free:
            raise ValueError(
                f"{self.label} is a dask array of {size / 2**30:.3g} GiB, more than half of the free "
                f"memory ({free / 2**30:.3g} GiB), and would be brought here whole; "
                "engine='dask' leaves it on the workers, or write it to a file (.npy, HDF5, Zarr), "
                "which is read by rows"
            )
        return self.read(slice(0, self.shape[0]))


class ScaledOnWorkers(ScaledFile):
    """z of rows on other machines, which are scaled and worked on there."""

    def each(self, work: Callable, *args: Any) -> list[Any]:
        """work(z of a piece, *args) of consecutive pieces."""
        complete = bool(self.present.all())
        return self.X.each(_on_scaled, self.scaling, complete, self.dtype, work, *args)


def computed(tasks: list[Any]) -> list[Any]:
    """The values of delayed things, where Dask computes."""
    import dask

    client = current_client()
    if client is None:
        return list(dask.compute(*tasks))
    with saying_if_lost(client):
        futures = client.compute(tasks)
    return [wait_for(client, future) for future in futures]


def _from_frame(frame: Any) -> tuple[Any, Array | None]:
    """A data frame as an array whose blocks have known lengths, and the ids in its index.

    A frame read in parts may count from 0 in every part, so its index has no ids.
    """
    parts = computed(frame.index.to_delayed())
    array = frame.to_dask_array(lengths=[len(part) for part in parts])
    filled = [np.asarray(part) for part in parts if len(part)]
    counted = all(
        part.dtype.kind in "iu" and np.array_equal(part, np.arange(len(part))) for part in filled
    )
    if not filled or (counted and len(filled) > 1 and frame.index.name is None):
        return array, None
    return array, np.concatenate(filled)


# --- what runs on workers ----------------------------------------------------------------------


def as_block(X: Any, dtype: np.dtype) -> Matrix:
    """A block as the equations want it, whatever the array's blocks are."""
    if sp.issparse(X):
        return sp.csr_array(X).astype(dtype, copy=False)
    # From another worker numbers may start at any byte: NumPy then adds them in other groups.
    return np.require(X, dtype=dtype, requirements=["C", "A"])


def together(parts: list[Matrix]) -> Matrix:
    """Rows of some matrices, one after the other."""
    if len(parts) == 1:
        return parts[0]
    return sp.csr_array(sp.vstack(parts)) if sp.issparse(parts[0]) else np.concatenate(parts)


def on_piece(parts: list[Any], inside: slice, dtype: np.dtype, work: Callable, *args: Any) -> Any:
    """``inside`` are the rows of the piece, counted from the first row of the parts."""
    start, chosen = 0, []
    for part in parts:
        low, high = max(0, inside.start - start), min(part.shape[0], inside.stop - start)
        start += part.shape[0]
        part = as_block(part, dtype) if sp.issparse(part) else part  # not all kinds can be sliced
        chosen.append(as_block(part[low:high], dtype))
    return work(together(chosen), *args)


def _on_scaled(
    X: Matrix, scaling: Any, complete: bool, dtype: np.dtype, work: Callable, *args: Any
) -> Any:
    """Work on z of a piece; rows of zeros are missing, unless all rows of the view are there."""
    present = np.ones(X.shape[0], dtype=bool) if complete else present_rows(X)
    return work(scaled_rows(X, scaling, present, dtype), *args)


def _sparse_bytes(X: Any) -> int:
    return X.data.nbytes + X.indices.nbytes


def _chosen(X: Matrix, start: int, rows: Array) -> Matrix:
    return X[rows[(rows >= start) & (rows < start + X.shape[0])] - start]
