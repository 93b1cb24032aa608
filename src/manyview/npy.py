"""Arrays from bytes of unknown origin: no objects, no more memory than the bytes account for."""

from __future__ import annotations

import zipfile
from io import BytesIO
from math import prod
from typing import Any, BinaryIO

import numpy as np

from ._types import Array

#: Deflate cannot shrink anything further than this; a member that claims to is a trap.
MAX_RATIO = 1100


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


def check_sizes(archive: zipfile.ZipFile, n_bytes: int) -> None:
    """Refuse an archive that claims to unpack to more than its ``n_bytes`` can hold."""
    members = archive.infolist()
    packed = sum(member.compress_size for member in members)
    impossible = any(m.file_size > MAX_RATIO * (m.compress_size + 1) for m in members)
    if packed > n_bytes or impossible:
        raise ValueError("its table of contents does not fit its size")
