"""Binary files: NumPy, MATLAB, Matrix Market, AnnData and MuData. Nothing in them is executed."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import scipy.sparse as sp

from manyview._types import Array
from manyview.engines.files.formats import OLD_MATLAB, arrays_apart
from manyview.engines.files.row_file import check_shape
from manyview.io.limits import BadFile, naming
from manyview.io.packed import check_archive, check_shape_claim, read_npy

from .samples import FileView
from .text import split_suffix

#: Arrays of these names, one number per sample, are classes and no view.
LABELS = {"y", "gt", "gnd", "label", "labels", "truth", "target", "class", "classes", "c", "s"}


def read_arrays(path: Path) -> dict[str, FileView]:
    """The arrays of a file by name; "" is the one that is called after the file."""
    kind = split_suffix(path.name)[1]
    if kind in (".npy", ".npz"):
        what, hint = "an array of numbers", "; save it again by numpy.save from a numeric array"
    else:
        what, hint = f"a {kind} file", ""
    with naming(path, what, hint):
        return READERS[kind](path)


def load_npy(path: Path) -> Array:
    """The array of an .npy file, of any dimension."""
    with (
        naming(path, "an array of numbers", "; save it again by numpy.save from a numeric array"),
        path.open("rb") as file,
    ):
        return read_npy(file)


def _npz(path: Path) -> dict[str, FileView]:
    with zipfile.ZipFile(path) as archive:
        check_archive(archive, path.stat().st_size)
        arrays = {}
        for member in archive.infolist():
            if member.filename.endswith(".npy"):
                with archive.open(member) as file:
                    arrays[member.filename.removesuffix(".npy")] = read_npy(file, member.file_size)
    if not arrays:
        raise BadFile(f"{path.name} holds no array; save it by numpy.savez")
    if {"format", "shape", "data"} <= set(arrays):  # what scipy.sparse.save_npz writes
        check_shape_claim(arrays["shape"].tolist(), path.stat().st_size, "its sparse matrix")
        columns = sp.csc_array(sp.load_npz(path))
        columns.check_format(full_check=True)  # SciPy trusts the indices
        return {"": FileView(path.name, check_shape(sp.csr_array(columns), path.name))}
    return _several(path, arrays)


def _several(path: Path, arrays: dict[str, Any]) -> dict[str, FileView]:
    """Each two-dimensional array is a view; labels, single numbers and text are left out, aloud."""
    views, left_out = {}, []
    for key, array in arrays.items():
        if sp.issparse(array) or (
            array.ndim == 2 and not (key.lower() in LABELS and min(array.shape) == 1)
        ):
            views[key] = array
        else:
            left_out.append(f"{key} {tuple(array.shape)}")
    if not views:
        raise BadFile(
            f"{path.name} holds no array of samples × features: {', '.join(left_out) or 'no numbers'}"
        )
    notes = []
    if left_out:
        notes = [f"{path.name}: {', '.join(left_out)} left out, no view of samples × features"]
    alone = len(arrays) == 1
    parts = {}
    for key, array in views.items():
        file = path.name if alone else f"{path.name}[{key}]"
        array = sp.csr_array(array) if sp.issparse(array) else array
        parts["" if alone else key] = FileView(file, _checked(array, file), notes=notes)
        notes = []
    return parts


def _mat(path: Path) -> dict[str, FileView]:
    """Arrays, and cell arrays of views as multi-view benchmarks are published: X{1}, X{2}, …"""
    with path.open("rb") as file:
        start = file.read(128)
    is_new = b"MATLAB 7.3" in start or start.startswith(b"\x89HDF")
    if not is_new and start[126:] not in (b"IM", b"MI"):
        raise ValueError("it is no MATLAB file of version 5 to 7; save it by save -v7")
    found = arrays_apart(str(path), kind=".mat" if is_new else OLD_MATLAB)
    parts = _several(path, {key: item.array for key, item in found.items()})
    notes = [f"{path.name}: {note}" for item in found.values() for note in item.notes]
    return {key: replace(part, notes=[*part.notes, *notes]) for key, part in parts.items()}


def _apart(path: Path, kind: str = "") -> dict[str, FileView]:
    """Arrays that another process reads, with the names of their rows and columns if they have any."""
    parts = {}
    for key, item in arrays_apart(str(path), kind=kind).items():
        ids, features = (
            None if names is None else [str(name) for name in names]
            for names in (item.ids, item.features)
        )
        file = f"{path.name}[{key}]" if key else path.name
        notes = [f"{path.name}: {note}" for note in item.notes]
        parts[key] = FileView(file, check_shape(item.array, file), ids, features, notes=notes)
    return parts


def _npy(path: Path) -> dict[str, FileView]:
    with path.open("rb") as file:
        return {"": FileView(path.name, _checked(read_npy(file), path.name))}


def _checked(array: Any, file: str) -> Any:
    try:
        return check_shape(array, file)
    except ValueError as error:
        raise BadFile(str(error)) from None


READERS: dict[str, Callable[[Path], dict[str, FileView]]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".mat": _mat,
    ".mtx": lambda path: _apart(path, ".mtx"),
    ".h5ad": _apart,
    ".h5mu": _apart,
}
