"""Sizes of archives, compressed streams and arrays, before they are unpacked."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO

import numpy as np

from manyview._types import Array

from .limits import check_claim, check_held, room_for

#: Deflate cannot shrink anything further than this; a member that claims to is a trap.
MAX_RATIO = 1100
#: What a byte of JSON takes as Python objects, at worst: "[]," is a list.
JSON_BYTES = 25
#: Bytes read at a time.
PIECE = 2**20
#: What a byte of a table takes: "0," becomes 8 bytes.
TEXT_BYTES = 4


def check_no_pipe(path: str | Path) -> None:
    """Refuse a pipe or a device: what is read from it is gone."""
    place = Path(path)
    if place.exists() and not place.is_file() and not place.is_dir():
        raise ValueError(
            f"{path} is a pipe or a device, but manyview reads files more than once; save it to a file "
            "first, for example by: cat > table.csv"
        )


def check_archive(archive: zipfile.ZipFile, packed: int) -> None:
    """Refuse an archive of ``packed`` bytes that claims what cannot be, or would fill the memory."""
    members = archive.infolist()
    for member in members:
        # Of other kinds zipfile unpacks all there is, whatever the table of contents says.
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(
                f"its member {member.filename!r} is packed in a way NumPy does not use; save it again"
            )
    total = sum(member.compress_size for member in members)
    impossible = any(m.file_size > MAX_RATIO * (m.compress_size + 1) for m in members)
    if total > packed or impossible:
        raise ValueError("its table of contents does not fit its size")
    held = sum(m.file_size * (JSON_BYTES if m.filename.endswith(".json") else 1) for m in members)
    check_held(held, packed)


def check_shape_claim(shape: Any, packed: int, what: str) -> None:
    """Refuse a sparse matrix that is nearly all shape: each row and column takes a number."""
    check_claim(8 * sum(int(n) for n in shape), packed, f"{what}, of shape {tuple(shape)},")


class _Counted(io.RawIOBase):
    """A stream that ends with an error when it becomes larger than its file may."""

    def __init__(self, stream: Any, packed: int, weight: int):
        self.stream, self.packed, self.weight, self.seen = stream, packed, weight, 0
        self.most = room_for(packed) / weight

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self.stream.read(len(buffer))
        buffer[: len(part)] = part
        self.seen += len(part)
        if self.seen > self.most:
            check_held(self.weight * self.seen, self.packed, so_far=True)
            self.most = room_for(self.packed) / self.weight
        return len(part)

    def close(self) -> None:
        self.stream.close()
        super().close()


def counted(path: Path, weight: int = TEXT_BYTES) -> BinaryIO:
    """The bytes of a file, or what is packed in it up to the limit; a byte takes ``weight``."""
    ending = next((end for end in STREAMS if path.name.lower().endswith(end)), None)
    if ending is None:
        return path.open("rb")
    stream: Any = _Counted(STREAMS[ending](path), path.stat().st_size, weight)
    return io.BufferedReader(stream, 2**16)


def _zstd(path: Path) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            f"reading {path.name} needs pyarrow; install it with: pip install 'manyview[app]'"
        ) from error
    return pyarrow.CompressedInputStream(pyarrow.OSFile(str(path)), "zstd")


#: Endings of files that pack one other file, and what unpacks them piece by piece.
STREAMS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".zst": _zstd,
}


@contextmanager
def text_of_file(path: Path, encoding: str = "utf-8-sig") -> Iterator[TextIO]:
    """The text of a table, packed or not."""
    with io.TextIOWrapper(counted(path), encoding=encoding, newline="") as file:
        yield file


# --- .npy: no objects, no more memory than the bytes account for ----------------------------------


def npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether columns are stored one after the other, and type of an array that may be read."""
    formats: Any = np.lib.format
    versions = {
        (1, 0): formats.read_array_header_1_0,
        (2, 0): formats.read_array_header_2_0,
    }
    version = formats.read_magic(file)
    if version not in versions:
        raise ValueError(f"its .npy version {version} is unknown")
    shape, fortran, dtype = versions[version](file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are not read because they can run code")
    if dtype.itemsize == 0:  # any number of them takes no bytes
        raise ValueError(f"its entries of type {dtype} are empty")
    if any(not isinstance(n, int) or n < 0 for n in shape):
        raise ValueError(f"its shape {shape} is impossible")
    return shape, fortran, dtype


def read_npy(file: IO[bytes], n_bytes: int | None = None) -> Array:
    """The one array of an .npy stream; ValueError if it is damaged or holds objects.

    Its shape is compared with the bytes that follow before anything is allocated for it; ``n_bytes``
    is how many there are in all, where the stream cannot be asked.
    """
    shape, fortran, dtype = npy_header(file)
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
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=False)
    return buffer.getvalue()
