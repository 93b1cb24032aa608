"""Arrays from bytes of unknown origin: no objects, no more memory than the bytes account for."""

from __future__ import annotations

from io import BytesIO
from math import prod
from typing import IO, Any

import numpy as np

from manyview._types import Array

#: Bytes read at a time.
PIECE = 2**20


def read_npy(file: IO[bytes], n_bytes: int | None = None) -> Array:
    """The one array of an .npy stream; ValueError if it is damaged or holds objects.

    Its shape is compared with the bytes that follow before anything is allocated for it; ``n_bytes``
    is how many there are in all, where the stream cannot be asked.
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
    held = (file.seek(0, 2) if n_bytes is None else n_bytes) - start
    if n_bytes is None:
        file.seek(start)
    wanted = prod(shape) * dtype.itemsize
    if held != wanted:
        raise ValueError(f"it should hold {wanted} bytes of numbers but holds {held}")
    flat = np.empty(prod(shape), dtype=dtype)
    left: Any = memoryview(flat.view(np.uint8).data) if wanted else b""
    while len(left):
        part = file.read(min(PIECE, len(left)))
        if not part:
            raise ValueError(f"it ends {len(left)} bytes too early")
        left[: len(part)] = part
        left = left[len(part) :]
    return flat.reshape(shape, order="F" if fortran else "C")


def npy_bytes(array: Array) -> bytes:
    buffer = BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()
