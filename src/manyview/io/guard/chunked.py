"""HDF5 and Zarr files: none may read other files, run code, or unpack to more than its limit."""

from __future__ import annotations

import bz2
import json
import lzma
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from . import limits
from .limits import TooLarge, check_claim, check_held, room_for, unpacking_limit

# --- chunks: how large they become when unpacked, which nothing outside of them says --------------


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


# --- HDF5 (.h5, .h5ad, .h5mu, .mat 7.3) -----------------------------------------------------------


OUTSIDE = "whose bytes would be read along, whatever they are; copy the numbers into one file"


def open_hdf5(h5py: Any, path: str | Path) -> Any:
    """The open file, once all that is in it has been looked at."""
    file = h5py.File(path, "r")
    try:
        _Walk(h5py, Path(path).stat().st_size).group(file)
    except BaseException:
        file.close()
        raise
    return file


class _Walk:
    """Every object of a file, once: links may lead in circles."""

    def __init__(self, h5py: Any, packed: int):
        self.h5py, self.packed = h5py, packed
        #: Filters that unpack nothing: they reorder, or add a checksum.
        self.keeping = (h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32)
        self.seen: set[Any] = set()

    def group(self, group: Any) -> None:
        waiting = [group]
        while waiting:
            for item in self._members(waiting.pop()):
                info = self.h5py.h5o.get_info(item.id)
                if (info.fileno, info.addr) in self.seen:
                    continue
                self.seen.add((info.fileno, info.addr))
                if isinstance(item, self.h5py.Group):
                    waiting.append(item)
                elif isinstance(item, self.h5py.Dataset):
                    self.dataset(item)

    def _members(self, group: Any) -> list[Any]:
        """What a group holds. Links to names in the file lead to what is looked at anyway."""
        links, members = group.id.links, []
        for name in group:
            kind = links.get_info(name.encode("utf-8", "surrogateescape")).type
            if kind == self.h5py.h5l.TYPE_HARD:
                members.append(group[name])
            elif kind != self.h5py.h5l.TYPE_SOFT:
                raise ValueError(f"{_named(group, name)} is a link to another file, {OUTSIDE}")
        return members

    def dataset(self, item: Any) -> None:
        made = item.id.get_create_plist()
        if made.get_external_count():
            raise ValueError(f"{item.name!r} keeps its numbers in other files, {OUTSIDE}")
        if made.get_layout() == self.h5py.h5d.VIRTUAL:
            raise ValueError(
                f"{item.name!r} is put together from other datasets or files, {OUTSIDE}"
            )
        if item.shape is None:
            return
        wanted = float(prod(map(int, item.shape)) * item.dtype.itemsize)
        if item.dtype.kind in "biuf":
            check_claim(wanted, self.packed, repr(item.name))
        if item.chunks and made.get_nfilters():
            chunk = prod(item.chunks) * item.dtype.itemsize
            check_held(chunk, self.packed, f"a chunk of {item.name!r}")
            self._chunks(item, [made.get_filter(i)[0] for i in range(made.get_nfilters())])

    def _chunks(self, item: Any, filters: list[int]) -> None:
        """Deflate unpacks whatever a chunk holds, however small it should be."""
        unpacking = [number for number in filters if number not in self.keeping]
        if len(unpacking) > 1:
            raise ValueError(
                f"{item.name!r} is packed more than once; write it again with one filter"
            )
        room = room_for(self.packed)
        if unpacking != [self.h5py.h5z.FILTER_DEFLATE] or MOST["zlib"] * self.packed <= room:
            return
        stored: list[Any] = []
        item.id.chunk_iter(stored.append)
        for chunk in stored:
            if MOST["zlib"] * chunk.size > room:
                raw = item.id.read_direct_chunk(chunk.chunk_offset)[1]
                check_chunk("zlib", len(raw), BytesIO(raw).read, self.packed)


def check_lengths(item: Any, packed: int) -> None:
    """Refuse a dataset whose texts are too long together: many rows can name one long text of the file.

    None is longer than the file, so that so many may be looked at at a time.
    """
    before = 0.0
    step = max(1, int(room_for(packed) // max(1, packed)))
    if item.ndim > 1:
        step = max(1, step // max(1, prod(item.shape[1:])))
    for start in range(0, item.shape[0] if item.shape else 1, step):
        block = item[start : start + step] if item.shape else item[()]
        before += _length(np.asarray(block))
        check_held(before, packed, f"what is in it, up to {item.name!r},", so_far=True)


def _length(block: np.ndarray) -> float:
    if block.dtype.names:
        return float(sum(_length(block[name]) for name in block.dtype.names))
    if block.dtype.kind != "O":
        return 0.0
    sized = (value for value in block.ravel() if isinstance(value, str | bytes | np.ndarray))
    return float(sum(v.nbytes if isinstance(v, np.ndarray) else len(v) for v in sized))


def _named(group: Any, name: str) -> str:
    return repr(f"{str(group.name).rstrip('/')}/{name}")


# --- Zarr: codecs are named in JSON, which is read here before the library zarr sees it -----------


#: Codecs that only rearrange or unpack bytes, as numcodecs names them.
PLAIN = {
    "adler32", "astype", "bitround", "blosc", "bz2", "crc32", "crc32c", "delta", "fixedscaleoffset",
    "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma", "packbits", "quantize", "shuffle", "zlib",
    "zstd",
}  # fmt: skip
#: Codecs of texts: what they unpack is text or bytes, never another object.
TEXTS = {"vlen-utf8", "vlen-bytes"}
#: Those of the third format, which also knows the ones above as numcodecs.NAME.
THIRD = {"bytes", "transpose", "blosc", "gzip", "zstd", "crc32c", "sharding_indexed", *TEXTS}
SHARDS = "sharding_indexed"
#: Names of the files that describe arrays and groups.
DESCRIBING = {".zarray", ".zgroup", ".zmetadata", "zarr.json"}
#: Deeper nesting describes nothing.
DEEPEST = 4


@dataclass(frozen=True)
class _Array:
    """What a description says of an array; ``shards`` are (chunks in each, bytes after their table)."""

    codecs: tuple[str, ...]
    kind: np.dtype
    chunk: Any
    shards: tuple[int, int] | None = None


def check_zarr(path: str | Path) -> None:
    """Refuse a folder that would run code, read other files or fill the memory."""
    folder = Path(path)
    if not folder.is_dir():
        raise ValueError("it is a file, and a .zarr is read from a folder; unpack it")
    described, packed = [], 0
    for found, kind, size in _files(folder):
        packed += size
        if kind in DESCRIBING:
            described.append(Path(found))
    looked_at = set()
    for file in described:
        for place, listed in _arrays(_parsed(file), file.parent, DEEPEST):
            name = (
                f"the array {str(place.relative_to(folder))!r}" if place != folder else "the array"
            )
            array = _checked(name, listed, packed)
            if (place, array.codecs, array.shards) not in looked_at:
                looked_at.add((place, array.codecs, array.shards))
                _check_chunks(place, array, packed)


def _check_chunks(place: Path, array: _Array, packed: int) -> None:
    codec = next((name for name in map(_short, array.codecs) if name in UNPACKING), None)
    if codec is None or not place.is_dir():
        return
    for file, name, size in _files(place):
        if name in DESCRIBING or name == ".zattrs" or not size:
            continue
        with open(file, "rb", buffering=0) as opened:
            parts = [(0, size)]
            if array.shards is not None:
                parts = shard_parts(opened, *array.shards)
            for start, length in parts:
                check_chunk(codec, length, partial(_read_at, opened, start), packed)


def _read_at(file: Any, start: int, n: int) -> bytes:
    file.seek(start)
    return file.read(n)


def _short(codec: str) -> str:
    return codec.removeprefix("numcodecs.")


def _files(folder: Path) -> Iterator[tuple[str, str, int]]:
    """(path, name, size) of all files; links may name others of the folder only."""
    home, waiting = folder.resolve(), [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as items:
            for item in items:
                if item.is_symlink() and not Path(item.path).resolve().is_relative_to(home):
                    raise ValueError(
                        f"{os.path.relpath(item.path, folder)!r} in it is a link to something outside of "
                        "the folder, which would be read along; copy what it names into the folder"
                    )
                if item.is_dir(follow_symlinks=False):
                    waiting.append(item.path)
                elif item.is_file():
                    yield item.path, item.name.lower(), item.stat().st_size


def _parsed(file: Path) -> Any:
    check_held(30 * file.stat().st_size, file.stat().st_size, f"{file.name!r} in it")
    try:
        return json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file.name!r} in it is no JSON ({error})") from error


def _arrays(found: Any, place: Path, deeper: int) -> Iterator[tuple[Path, dict[str, Any]]]:
    """What describes arrays, and where they are: itself, or inside what describes a whole folder."""
    if not isinstance(found, dict) or not deeper:
        raise ValueError("a description in it is none of an array or a group")
    if "shape" in found or found.get("node_type") == "array":
        yield place, found
        return
    if found.get("consolidated_metadata") is not None:
        yield from _arrays(found["consolidated_metadata"], place, deeper - 1)
    listed = found.get("metadata")
    for key, item in listed.items() if isinstance(listed, dict) else ():
        steps = str(key).split("/")
        if ".." in steps:
            raise ValueError(f"it describes {key!r}, which is outside of it")
        if steps[-1].lower() != ".zattrs":
            below = steps[:-1] if steps[-1].startswith(".z") else steps
            yield from _arrays(item, place.joinpath(*filter(None, below)), deeper - 1)


def _checked(name: str, listed: dict[str, Any], packed: int) -> _Array:
    if listed.get("zarr_format") == 3 or "codecs" in listed or "node_type" in listed:
        array = _third(listed)
        texts = bool(TEXTS & set(array.codecs))
        allowed = THIRD | {f"numcodecs.{codec}" for codec in PLAIN}
    else:
        array = _second(listed)
        texts = array.codecs[:1] in (("vlen-utf8",), ("vlen-bytes",))
        allowed = PLAIN | TEXTS
    for codec in array.codecs:
        if codec not in allowed:
            raise ValueError(
                f"{name} is packed by the codec {codec!r}, which is none of those that only unpack "
                "numbers or texts: it could run code from the file. Write the array again with another, "
                "such as zstd"
            )
    if sum(_short(codec) in UNPACKING for codec in array.codecs) > 1:
        raise ValueError(f"{name} is packed more than once; write it again with one codec")
    if array.kind.hasobject and not texts:
        raise ValueError(
            f"{name} holds Python objects, which are not read because they can run code"
        )
    _check_size(name, listed.get("shape"), array.chunk, array.kind.itemsize, packed)
    return array


def _check_size(name: str, shape: Any, chunk: Any, width: int, packed: int) -> None:
    for sizes in (shape, chunk):
        if not _is_shape(sizes):
            raise ValueError(f"{name} has the impossible shape {str(sizes)[:60]}")
    check_claim(prod(shape) * width, packed, name)
    check_held(prod(chunk) * width, packed, f"a chunk of {name}")


def _is_shape(sizes: Any) -> bool:
    return isinstance(sizes, list) and all(type(n) is int and n >= 0 for n in sizes)


def _second(listed: dict[str, Any]) -> _Array:
    codecs = [*(listed.get("filters") or ()), listed.get("compressor")]
    codecs += [
        listed.get("object_codec")
    ]  # of no known version; whoever writes it must mean something
    named = tuple(_name(codec, "id") for codec in codecs if codec is not None)
    return _Array(named, _dtype(listed.get("dtype")), listed.get("chunks"))


def _third(listed: dict[str, Any]) -> _Array:
    if listed.get("storage_transformers"):
        raise ValueError("its chunks are changed by storage transformers, which are not known here")
    codecs, chunk = _listed(listed.get("codecs")), _setting(listed.get("chunk_grid"), "chunk_shape")
    names, shards = [_name(codec, "name") for codec in codecs], None
    if SHARDS in names:
        if names != [SHARDS]:
            raise ValueError("its shards are packed again; write it with one codec for the shards")
        whole, chunk = chunk, _setting(codecs[0], "chunk_shape")
        if not _is_shape(whole) or not _is_shape(chunk) or 0 in chunk or len(whole) != len(chunk):
            raise ValueError(f"its shards have the impossible shape {str(chunk)[:60]}")
        n_chunks = prod(-(-n // m) for n, m in zip(whole, chunk, strict=True))
        shards = (n_chunks, _after_table(codecs[0]))
        names = [_name(codec, "name") for codec in _listed(_setting(codecs[0], "codecs"))]
        if SHARDS in names:
            raise ValueError("it has shards in shards; write it with one kind of them")
    return _Array(tuple(names), _dtype_of_third(listed.get("data_type")), chunk, shards)


def _after_table(codec: Any) -> int:
    """Bytes after the table of a shard, which must be at its end and as it is, to be looked at."""
    names = [
        _name(c, "name") for c in _listed(_setting(codec, "index_codecs") or [{"name": "bytes"}])
    ]
    place = _setting(codec, "index_location") or "end"
    if place != "end" or names not in (["bytes"], ["bytes", "crc32c"]):
        raise ValueError(
            "the tables of its shards are kept in an unusual way; write it again by zarr"
        )
    return 4 * ("crc32c" in names)


def _listed(codecs: Any) -> list[Any]:
    if not isinstance(codecs, list):
        raise ValueError("its list of codecs is none")
    return codecs


def _setting(of: Any, name: str) -> Any:
    settings = of.get("configuration") if isinstance(of, dict) else None
    return settings.get(name) if isinstance(settings, dict) else None


def _name(codec: Any, key: str) -> str:
    name = codec.get(key) if isinstance(codec, dict) else codec
    return name if isinstance(name, str) else repr(name)


def _dtype(listed: Any) -> np.dtype:
    """Of the second format: text as NumPy has it, or a list of fields."""
    try:
        return np.dtype(_fields(listed))
    except (TypeError, ValueError, RecursionError, KeyError) as error:
        raise ValueError(f"its numbers are of the unknown kind {str(listed)[:60]}") from error


def _fields(listed: Any) -> Any:
    """Fields as NumPy wants them: (name, kind) or (name, kind, shape)."""
    if not isinstance(listed, list):
        return listed
    return [(field[0], _fields(field[1]), *(tuple(size) for size in field[2:])) for field in listed]


def _dtype_of_third(listed: Any) -> np.dtype:
    """Numbers by their names; what else there is holds texts or bytes, and is no view."""
    try:
        return np.dtype(listed) if isinstance(listed, str) else np.dtype("V16")
    except TypeError:
        return np.dtype("V16")
