"""Zarr folders: no codec that runs code, no link that leads out, no chunk that is a bomb.

The codecs are named in files of JSON, which are read here before the library zarr sees them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from .limits import check_claim, check_held

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
DEEPEST = 8


def check_zarr(path: str | Path) -> None:
    """Refuse a folder that would run code, read other files or fill the memory."""
    folder = Path(path)
    if not folder.is_dir():
        raise ValueError("it is a file, and a .zarr is read from a folder; unpack it")
    described, packed = [], 0
    for file in _files(folder):
        packed += file.stat().st_size
        if file.name.lower() in DESCRIBING:
            described.append(file)
    for file in described:
        for array in _arrays(_parsed(file), DEEPEST):
            _check_array(array, packed, str(file.parent.relative_to(folder)))


def _files(folder: Path) -> Iterator[Path]:
    """All files; links may name others of the folder only."""
    home = folder.resolve()
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            item = Path(place, name)
            if item.is_symlink() and not item.resolve().is_relative_to(home):
                raise ValueError(
                    f"{str(item.relative_to(folder))!r} in it is a link to something outside of the "
                    "folder, which would be read along; copy what it names into the folder"
                )
        yield from (Path(place, name) for name in names)


def _parsed(file: Path) -> Any:
    check_held(30 * file.stat().st_size, file.stat().st_size, f"{file.name!r} in it")
    try:
        return json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file.name!r} in it is no JSON ({error})") from error


def _arrays(found: Any, deeper: int) -> Iterator[dict[str, Any]]:
    """What describes arrays: itself, or inside what describes a whole folder at once."""
    if not isinstance(found, dict) or not deeper:
        raise ValueError("a description in it is none of an array or a group")
    if "shape" in found or found.get("node_type") == "array":
        yield found
        return
    for name in ("metadata", "consolidated_metadata"):
        inside = found.get(name)
        if isinstance(inside, dict) and name == "metadata":
            for key, item in inside.items():
                if not str(key).lower().endswith(".zattrs"):
                    yield from _arrays(item, deeper - 1)
        elif inside is not None:
            yield from _arrays(inside, deeper - 1)


def _check_array(array: dict[str, Any], packed: int, where: str) -> None:
    name = f"the array {where!r}" if where != "." else "the array"
    if array.get("zarr_format") == 3 or "codecs" in array or "node_type" in array:
        codecs, kind, chunk = _third(array)
        texts = bool(TEXTS & set(codecs))
        allowed = THIRD | {f"numcodecs.{codec}" for codec in PLAIN}
    else:
        codecs, kind, chunk = _second(array)
        texts = codecs[:1] in (["vlen-utf8"], ["vlen-bytes"])
        allowed = PLAIN | TEXTS
    for codec in codecs:
        if codec not in allowed:
            raise ValueError(
                f"{name} is packed by the codec {codec!r}, which is none of those that only unpack "
                "numbers or texts: it could run code from the file. Write the array again with another, "
                "such as zstd"
            )
    if kind.hasobject and not texts:
        raise ValueError(
            f"{name} holds Python objects, which are not read because they can run code"
        )
    _check_size(name, array.get("shape"), chunk, kind.itemsize, packed)


def _check_size(name: str, shape: Any, chunk: Any, width: int, packed: int) -> None:
    for sizes in (shape, chunk):
        if not isinstance(sizes, list) or not all(type(n) is int and n >= 0 for n in sizes):
            raise ValueError(f"{name} has the impossible shape {str(sizes)[:60]}")
    check_claim(prod(shape) * width, packed, name)
    check_held(prod(chunk) * width, packed, f"a chunk of {name}")


def _second(array: dict[str, Any]) -> tuple[list[str], np.dtype, Any]:
    filters = array.get("filters") or []
    if not isinstance(filters, list):
        raise ValueError("its list of filters is none")
    listed = [*filters, *([array["compressor"]] if array.get("compressor") is not None else [])]
    for further in (
        "object_codec",
        "codecs",
    ):  # of no known version; whoever reads them must know them
        if array.get(further):
            listed.append(array[further])
    return [_name(codec, "id") for codec in listed], _dtype(array.get("dtype")), array.get("chunks")


def _third(array: dict[str, Any]) -> tuple[list[str], np.dtype, Any]:
    if array.get("storage_transformers"):
        raise ValueError("its chunks are changed by storage transformers, which are not known here")
    grid = array.get("chunk_grid")
    settings = grid.get("configuration") if isinstance(grid, dict) else None
    chunk = settings.get("chunk_shape") if isinstance(settings, dict) else None
    codecs, chunk = _nested(array.get("codecs"), chunk, DEEPEST)
    return codecs, _dtype_of_third(array.get("data_type")), chunk


def _nested(codecs: Any, chunk: Any, deeper: int) -> tuple[list[str], Any]:
    """Names of codecs and those within; of shards, the chunk is what is unpacked at a time."""
    if not isinstance(codecs, list) or not deeper:
        raise ValueError("its list of codecs is none, or nested too deep")
    names = []
    for codec in codecs:
        names.append(_name(codec, "name"))
        settings = codec.get("configuration") if isinstance(codec, dict) else None
        if names[-1] == SHARDS and isinstance(settings, dict):
            inner, chunk = _nested(settings.get("codecs"), settings.get("chunk_shape"), deeper - 1)
            names += inner
            names += _nested(settings.get("index_codecs", []), chunk, deeper - 1)[0]
    return names, chunk


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
