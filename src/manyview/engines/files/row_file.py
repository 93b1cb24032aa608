"""Rows of files: what every reader says of itself; those of .npy files, and those in memory."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview.io.packed import npy_header

#: Between the name of a file and that of an array in it.
INSIDE = "::"
#: An array stored column by column is read whole, up to this many bytes.
LARGEST_TURNED = 2**28


class RowFile(ABC):
    """Rows of a file, with their names and those of the columns if the file has any."""

    shape: tuple[int, ...]
    dtype: np.dtype
    sparse = False
    #: How many rows are stored together.
    piece = 1
    #: Whether any rows can be read as quickly as others: then slabs and a thread would only cost.
    direct = False
    #: Sentences about the file that its user should know.
    notes: Sequence[str] = ()
    ids: Array | None = None
    features: Array | None = None

    @abstractmethod
    def read(self, start: int, stop: int) -> Matrix:
        """Rows from start to before stop."""


class Plain(RowFile):
    """Numbers row by row from some byte on: an .npy file, or what a numpy.memmap maps.

    Opened anew for every read: threads need no lock, and nothing is mapped, since touching a mapped
    file that has shrunk kills the process. Meanwhile the system fetches the next rows.
    """

    direct = True

    def __init__(self, path: str, start: int, dtype: Any, shape: tuple[int, ...]):
        self.path, self.start, self.shape, self.dtype = path, start, shape, np.dtype(dtype)
        check_shape(self)
        self.row_bytes = self.shape[1] * self.dtype.itemsize
        held, wanted = Path(path).stat().st_size, self.start + self.shape[0] * self.row_bytes
        if held < wanted:
            raise ValueError(f"it should hold {wanted} bytes but holds {held}: it was cut short")

    def read(self, start: int, stop: int) -> Array:
        block = np.empty((max(0, stop - start), self.shape[1]), dtype=self.dtype)
        if not block.size:
            return block
        left = memoryview(block.data).cast("B")
        with open(self.path, "rb", buffering=0) as file:
            file.seek(self.start + start * self.row_bytes)
            if hasattr(os, "posix_fadvise"):
                after = self.start + stop * self.row_bytes
                os.posix_fadvise(file.fileno(), after, block.nbytes, os.POSIX_FADV_WILLNEED)
            while len(left):
                got = file.readinto(left)
                if not got:
                    raise EOFError("the file ends before; it has shrunk since it was opened")
                left = left[got:]
        return block


class Held(RowFile):
    """Rows in memory, dense or sparse."""

    direct = True

    def __init__(self, array: Any, **about: Any):
        self.array, self.shape, self.dtype = array, tuple(array.shape), array.dtype
        self.sparse = sp.issparse(array)
        if self.sparse:
            self.nnz = array.nnz
        vars(self).update(about)

    def read(self, start: int, stop: int) -> Any:
        return self.array[start:stop]


def open_npy(path: str) -> RowFile:
    """An .npy file; one that is stored column by column is read whole, if it is small."""
    with open(path, "rb") as file:
        shape, by_columns, dtype = npy_header(file)
        start = file.tell()
    if not by_columns or len(shape) != 2 or 1 in shape:
        return Plain(path, start, dtype, shape)
    if Path(path).stat().st_size > LARGEST_TURNED:
        raise ValueError(
            "it is stored column by column; save it again by "
            "numpy.save(name, numpy.ascontiguousarray(array))"
        )
    return Held(np.ascontiguousarray(np.load(path, allow_pickle=False)))


def check_shape(found: Any, what: str = "it") -> Any:
    """What a file holds, if that can be a view."""
    if len(found.shape) != 2:
        raise ValueError(
            f"{what} has {len(found.shape)} dimension(s); a view has samples × features"
        )
    if found.dtype.kind not in "biuf":
        raise ValueError(f"{what} has entries of type {found.dtype}; a view holds numbers only")
    if not all(found.shape):
        raise ValueError(f"{what} is empty (shape {found.shape}); both must be at least 1")
    return found
