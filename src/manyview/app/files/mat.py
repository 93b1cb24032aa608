"""MATLAB files up to version 7: numeric, sparse and cell arrays; everything else is passed over.

SciPy's reader of them can be crashed by a damaged file; this one only ever slices bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview.io.guard import check_held, check_shape_claim

#: Element types, by their number in the file.
NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
MATRIX, COMPRESSED = 14, 15
#: Array classes: cell, sparse, and double to uint64.
CELL, SPARSE, NUMERIC = 1, 5, range(6, 16)
DEPTH = 4
#: In the place of an element that is not there.
NONE = (0, memoryview(b""))


def read_mat(path: Path) -> dict[str, Any]:
    """Name → array, sparse matrix or list (a cell array); ValueError if the file is damaged."""
    raw = memoryview(path.read_bytes())
    if len(raw) < 132:
        raise ValueError("it is too short for a MATLAB file")
    order = {b"IM": "<", b"MI": ">"}.get(bytes(raw[126:128]))
    if order is None:
        raise ValueError("it is no MATLAB file of version 5 to 7; save it by save -v7")
    found, held = {}, 0
    for kind, data in _elements(raw[128:], order):
        if kind == COMPRESSED:
            held += _claimed(data, order)
            check_held(held, len(raw))
            kind, data = next(_elements(_inflated(data, order), order))
        if kind != MATRIX:
            raise ValueError(f"it holds an element of the unknown kind {kind}")
        name, value = _matrix(data, order, DEPTH)
        if value is not None:
            found[name] = value
    return found


def _claimed(data: memoryview, order: str) -> int:
    """How large a deflated element says it is; no more of it is ever inflated."""
    tag = zlib.decompressobj().decompress(data, 8)
    if len(tag) < 8:
        raise ValueError("it ends in the middle of an array")
    kind, size = struct.unpack(order + "II", tag)
    return 8 if kind >> 16 else 8 + int(size)


def _inflated(data: memoryview, order: str) -> memoryview:
    stream = zlib.decompressobj()
    return memoryview(stream.decompress(data, _claimed(data, order)))


def _elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """(type, bytes) one after the other; each is padded to 8 bytes, small ones share their tag."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack_from(order + "II", data, at)
        if kind >> 16:  # four bytes or fewer, in the place of the size's successor
            size, kind, start, step = kind >> 16, kind & 0xFFFF, at + 4, 8
            if size > 4:
                raise ValueError("a small element of it is too large")
        else:
            start = at + 8
            step = 8 + size + (0 if kind == COMPRESSED else -size % 8)
        if start + size > len(data):
            raise ValueError("it ends in the middle of an array")
        yield kind, data[start : start + size]
        at += step


def _matrix(data: memoryview, order: str, depth: int) -> tuple[str, Any]:
    parts = _elements(data, order)
    flags = _array(next(parts, NONE), order)
    if len(flags) < 1:
        raise ValueError("an array of it has no kind")
    kind, is_complex = int(flags[0]) & 0xFF, bool(int(flags[0]) & 0x0800)
    shape = [int(n) for n in _array(next(parts, NONE), order)]
    name = bytes(next(parts, NONE)[1]).decode("latin-1")
    if len(shape) < 2 or min(shape) < 0:
        raise ValueError(f"the array {name!r} has the shape {shape}")
    if kind == CELL and depth:
        cells = [_matrix(item, order, depth - 1)[1] for number, item in parts if number == MATRIX]
        return name, cells
    if is_complex or (kind != SPARSE and kind not in NUMERIC):
        return name, None  # text, structures, functions, complex numbers: no view
    if kind == SPARSE:
        return name, _sparse(name, shape, [_array(part, order) for part in parts])
    values = _array(next(parts, NONE), order)
    if len(values) != prod(shape):
        raise ValueError(f"the array {name!r} should have {prod(shape)} entries, not {len(values)}")
    return name, np.ascontiguousarray(values.reshape(shape, order="F"))


def _array(part: tuple[int, memoryview], order: str) -> Array:
    kind, data = part
    if kind not in NUMBERS:
        raise ValueError(f"it holds numbers of the unknown kind {kind}")
    dtype = np.dtype(order + NUMBERS[kind])
    whole = len(data) // dtype.itemsize * dtype.itemsize
    # Small arrays may lie anywhere in the bytes of the file: a copy is aligned and lets them go.
    return np.frombuffer(data[:whole], dtype).astype(dtype.newbyteorder("="))


def _sparse(name: str, shape: list[int], parts: list[Array]) -> Matrix:
    if len(parts) < 3 or len(shape) != 2 or len(parts[1]) != shape[1] + 1:
        raise ValueError(f"the sparse array {name!r} is incomplete")
    rows, starts, values = parts[:3]
    n = int(starts[-1])
    if not 0 <= n <= min(len(rows), len(values)):
        raise ValueError(f"the sparse array {name!r} has fewer entries than it says")
    packed = sum(part.nbytes for part in parts[:3])
    check_shape_claim(shape, packed, f"the sparse array {name!r}")
    columns = sp.csc_array((values[:n].astype(float), rows[:n], starts), shape=tuple(shape))
    columns.check_format(full_check=True)
    return sp.csr_array(columns)
