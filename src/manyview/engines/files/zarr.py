"""Zarr: what could run code or fill the memory is refused before any of its numbers are read."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

from manyview.io.limits import check_claim, check_held

from .hdf5 import Stored, imported, inside, is_anndata, only
from .row_file import RowFile

#: Names of the files that describe arrays and groups.
DESCRIBING = {".zarray", ".zmetadata", "zarr.json"}


def open_zarr(path: str, key: str | None) -> RowFile:
    zarr = imported("zarr", path)
    if not Path(path).is_dir():
        raise ValueError("it is a file, and a .zarr is read from a folder; unpack it")
    home = Path(path).resolve()
    for item in Path(path).rglob("*"):
        if item.is_symlink() and not item.resolve().is_relative_to(home):
            raise ValueError(
                f"{item.relative_to(path)} in it is a link to something outside of the folder; copy "
                "that into the folder"
            )
    files = [file for file in Path(path).rglob("*") if file.is_file()]
    for file in files:
        if file.name in DESCRIBING and _names_pickle(json.loads(file.read_bytes())):
            raise ValueError(
                f"{file.relative_to(path)} in it names the codec 'pickle', which could run code from the "
                "file. Write the array again with another, such as zstd"
            )
    opened = zarr.open(path, mode="r")
    if not hasattr(opened, "dtype"):
        if key is None and is_anndata(opened):
            key = "X"
        if key is None:
            key = only(path, [name for name, array in opened.arrays() if array.ndim == 2])
    item = opened[key] if key is not None and key in opened else opened
    packed = sum(file.stat().st_size for file in files)
    for array in [item] if hasattr(item, "dtype") else [part for _, part in item.arrays()]:
        width, name = array.dtype.itemsize, array.name.strip("/") or "the array"
        check_claim(prod(array.shape) * width, packed, name)
        check_held(prod(array.chunks) * width, packed, f"a chunk of {name}")
    return Stored(opened) if key is None else inside(opened, key)


def _names_pickle(about: Any) -> bool:
    """Whether the codec of numcodecs that unpickles is named; zarr itself refuses unknown ones."""
    if isinstance(about, dict):
        named = (str(about.get(key)).rpartition(".")[2] for key in ("id", "name"))
        return "pickle" in named or any(map(_names_pickle, about.values()))
    return isinstance(about, list) and any(map(_names_pickle, about))
