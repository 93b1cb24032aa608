"""Arrays from bytes of unknown origin: no objects, no more memory than the bytes account for."""

from __future__ import annotations

from io import BytesIO
from math import prod
from typing import Any, BinaryIO

import numpy as np

from ._types import Array


def read_npy(file: BinaryIO) -> Array:
    """The one array of an .npy stream; ValueError if it is damaged or holds objects.

    Its shape is compared with the bytes that follow before anything is allocated for it.
    """
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"its .npy version {version} is unknown")
    read_header: Any = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    shape, fortran, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are not read because they can run code")
    if dtype.itemsize == 0:
        raise ValueError(
            f"its entries of type {dtype} are empty"
        )  # any number of them takes no bytes
    if any(not isinstance(n, int) or n < 0 for n in shape):
        raise ValueError(f"its shape {shape} is impossible")
    start = file.tell()
    held = file.seek(0, 2) - start
    file.seek(start)
    wanted = prod(shape) * dtype.itemsize
    if held != wanted:
        raise ValueError(f"it should hold {wanted} bytes of numbers but holds {held}")
    flat = np.empty(prod(shape), dtype=dtype)
    if wanted:
        file.readinto(flat.view(np.uint8))  # type: ignore[attr-defined]
    return flat.reshape(shape, order="F" if fortran else "C")


def npy_bytes(array: Array) -> bytes:
    buffer = BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()
