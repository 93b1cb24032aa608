"""Zarr: codecs are named in JSON, which is read here before the library zarr sees it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from manyview.io.limits import check_claim, check_held
from manyview.io.packed import UNPACKING, check_chunk, shard_parts

from .hdf5 import Stored, imported, inside, is_anndata, only
from .rows import RowFile

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
        size = file.stat().st_size
        check_held(30 * size, size, f"{file.name!r} in it")
        try:
            parsed = json.loads(file.read_bytes())
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file.name!r} in it is no JSON ({error})") from error
        for place, listed in _arrays(parsed, file.parent, DEEPEST):
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
                opened.seek(start)
                check_chunk(codec, length, opened.read, packed)


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
    shape: Any = listed.get("shape")
    width = array.kind.itemsize
    for sizes in (shape, array.chunk):
        if not _is_shape(sizes):
            raise ValueError(f"{name} has the impossible shape {str(sizes)[:60]}")
    check_claim(prod(shape) * width, packed, name)
    check_held(prod(array.chunk) * width, packed, f"a chunk of {name}")
    return array


def _is_shape(sizes: Any) -> bool:
    return isinstance(sizes, list) and all(type(n) is int and n >= 0 for n in sizes)


def _second(listed: dict[str, Any]) -> _Array:
    codecs = [*(listed.get("filters") or ()), listed.get("compressor")]
    # Of no known version; whoever writes it must mean something.
    codecs.append(listed.get("object_codec"))
    named = tuple(_name(codec, "id") for codec in codecs if codec is not None)
    kind = listed.get("dtype")
    try:
        return _Array(named, np.dtype(_fields(kind)), listed.get("chunks"))
    except (TypeError, ValueError, RecursionError, KeyError) as error:
        raise ValueError(f"its numbers are of the unknown kind {str(kind)[:60]}") from error


def _fields(listed: Any) -> Any:
    """A kind of number as NumPy wants it: text, or fields (name, kind) or (name, kind, shape)."""
    if not isinstance(listed, list):
        return listed
    return [(field[0], _fields(field[1]), *(tuple(size) for size in field[2:])) for field in listed]


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
        # The table of a shard must be at its end and as it is, to be looked at.
        index = _listed(_setting(codecs[0], "index_codecs") or [{"name": "bytes"}])
        packing = [_name(codec, "name") for codec in index]
        place = _setting(codecs[0], "index_location") or "end"
        if place != "end" or packing not in (["bytes"], ["bytes", "crc32c"]):
            raise ValueError(
                "the tables of its shards are kept in an unusual way; write it again by zarr"
            )
        shards = (n_chunks, 4 * ("crc32c" in packing))
        names = [_name(codec, "name") for codec in _listed(_setting(codecs[0], "codecs"))]
        if SHARDS in names:
            raise ValueError("it has shards in shards; write it with one kind of them")
    kind = listed.get("data_type")
    try:
        numbers = np.dtype(kind if isinstance(kind, str) else "V16")
    except TypeError:  # what else there is holds texts or bytes, and is no view
        numbers = np.dtype("V16")
    return _Array(tuple(names), numbers, chunk, shards)


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


def open_zarr(path: str, key: str | None) -> RowFile:
    zarr = imported("zarr", path)
    check_zarr(path)
    opened = zarr.open(path, mode="r")
    if hasattr(opened, "dtype"):
        return Stored(opened)
    if key is None and is_anndata(opened):
        key = "X"
    if key is None:
        key = only(path, [name for name, array in opened.arrays() if array.ndim == 2])
    return inside(opened, key)
