"""Chunks of Zarr and HDF5: how large they become when unpacked, which nothing outside of them tells.

Each is unpacked whole by the library that reads the file, to whatever it holds. Codecs that write the
size in front are asked; of the others a chunk is unpacked, held nowhere, if it might be too large.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable
from typing import Any

from . import limits
from .limits import TooLarge, check_held, room_for, unpacking_limit

#: The most a byte can become.
MOST = {"gzip": 1040, "zlib": 1040, "bz2": 10**5, "lzma": 10**5}
#: Codecs that unpack; one inside another would hide how much.
UNPACKING = {"blosc", "lz4", "zstd", *MOST}
#: Bytes at the beginning of a chunk that say how large it becomes.
HEAD = 18
PIECE = 2**20


def check_chunk(codec: str, size: int, read: Callable[[int], bytes], packed: int) -> None:
    """Refuse a chunk of ``size`` bytes that becomes too large; ``read(n)`` gives its first n bytes."""
    if not size or codec not in UNPACKING:
        return
    if codec not in MOST:
        told = _told(codec, read(min(HEAD, size)))
        if told is None and unpacking_limit() is None:
            raise TooLarge(
                f"a chunk of it ({codec}) does not say how large it becomes, and could fill the memory. If "
                "you know the file, allow it: max_unpacked=1 or --max-unpacked 1 (GiB)"
            )
        check_held(told or 0, size, "a chunk of it")
    # Against the whole file: only a chunk that is a good part of it can be too large, so few are tried.
    elif MOST[codec] * size > limits.ALWAYS and MOST[codec] * size > room_for(packed):
        check_held(
            _counted(codec, read(size), room_for(packed)), packed, "a chunk of it", so_far=True
        )


def _told(codec: str, head: bytes) -> int | None:
    """What the first bytes say; 0 of what is damaged, which is told when it is read."""
    if codec == "lz4":
        return int.from_bytes(head[:4], "little")
    if codec == "blosc":
        return int.from_bytes(head[4:8], "little")
    if head[:4] != b"\x28\xb5\x2f\xfd" or len(head) < 6:
        return 0
    # A frame of zstd: bits of the fifth byte say where the size is, and in how many bytes.
    single, width = head[4] >> 5 & 1, head[4] >> 6
    n = (1 if single else 0, 2, 4, 8)[width]
    if n == 0:
        return None
    at = 5 + (0 if single else 1) + (0, 1, 2, 4)[head[4] & 3]
    told = int.from_bytes(head[at : at + n], "little")
    return told + 256 if n == 2 else told


def _counted(codec: str, data: bytes, most: float) -> int:
    """How many bytes come out, counted up to ``most``; damage is left to whoever reads them."""
    makers: dict[str, Any] = {
        "gzip": lambda: zlib.decompressobj(31),
        "zlib": zlib.decompressobj,
        "bz2": bz2.BZ2Decompressor,
        "lzma": lambda: lzma.LZMADecompressor(memlimit=PIECE * 256),
    }
    total = 0
    try:
        while data and total <= most:
            stream = makers[codec]()
            part = data
            while not stream.eof and total <= most:
                piece = stream.decompress(part, PIECE)
                part = stream.unconsumed_tail if codec in ("gzip", "zlib") else b""
                total += len(piece)
                if not piece and not part:
                    return total
            data = stream.unused_data if stream.eof else b""
    except (zlib.error, OSError, EOFError, lzma.LZMAError):
        pass
    return total


def shard_parts(file: Any, n: int, tail: int) -> list[tuple[int, int]]:
    """(place, size) of the chunks in a shard, from the table of ``n`` at its end."""
    length = file.seek(0, 2)
    start = length - 16 * n - tail
    if start < 0:
        raise ValueError("a shard of it is too short for its table of contents")
    file.seek(start)
    found = struct.iter_unpack("<QQ", file.read(16 * n))
    return [(place, size) for place, size in found if place < 2**64 - 1 and place + size <= length]
