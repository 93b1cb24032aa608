"""Binary files: NumPy, MATLAB, Matrix Market, AnnData and MuData. Nothing in them is executed."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview.datasets._tables import split_suffix
from manyview.engines.files.formats import OLD_MATLAB, Held, arrays_apart, check_shape
from manyview.io.guard import TooLarge, check_archive, check_shape_claim, counted
from manyview.io.guard.sandbox import Refused
from manyview.io.npy import read_npy

from .samples import Part

#: Arrays so called, one number per sample, are the answer and no view.
LABELS = {"y", "gt", "gnd", "label", "labels", "truth", "target", "class", "classes", "c", "s"}


def read_arrays(path: Path) -> dict[str, Part]:
    """The arrays of a file by name; "" is the one that is called after the file."""
    kind = split_suffix(path.name)[1]
    reader = READERS[kind]
    try:
        return reader(path)
    except (ImportError, _Sentence) as error:
        raise type(error)(str(error)) from None if isinstance(error, ImportError) else error
    except TooLarge as error:
        raise ValueError(f"{path.name}: {error}") from None
    except Refused as error:
        raise ValueError(f"{path.name} {error}") from None
    except Exception as error:  # parsers of damaged files raise whatever they stumble over
        why = " ".join(str(error).split())[:300] or type(error).__name__
        hint = "; save it again by numpy.save from a numeric array" if kind[:3] == ".np" else ""
        what = "an array of numbers" if kind[:3] == ".np" else f"a {kind} file"
        raise ValueError(f"{path.name} could not be read as {what} ({why}){hint}") from error


class _Sentence(ValueError):
    """Already says everything; not to be wrapped."""


def load_npy(path: Path) -> Array:
    """The array of an .npy file, of any dimension."""
    try:
        with path.open("rb") as file:
            return read_npy(file)
    except (ValueError, EOFError, SyntaxError, MemoryError, UnicodeError) as error:
        why = f"{path.name} could not be read as an array of numbers ({error})"
        raise _Sentence(f"{why}; save it again by numpy.save from a numeric array") from error


def _npy(path: Path) -> dict[str, Part]:
    array = load_npy(path)
    try:
        return {"": Part(path.name, check_shape(array, path.name))}
    except ValueError as error:
        raise _Sentence(str(error)) from None


def _npz(path: Path) -> dict[str, Part]:
    with zipfile.ZipFile(path) as archive:
        check_archive(archive, path.stat().st_size)
        arrays = {
            member.removesuffix(".npy"): _member(archive, member)
            for member in archive.namelist()
            if member.endswith(".npy")
        }
    if not arrays:
        raise _Sentence(f"{path.name} holds no array; save it by numpy.savez")
    if {"format", "shape", "data"} <= set(arrays):
        matrix = _sparse(arrays, path.stat().st_size)
        return {"": Part(path.name, check_shape(matrix, path.name))}
    return _several(path, arrays)


def _member(archive: zipfile.ZipFile, name: str) -> Array:
    with archive.open(name) as file:
        return read_npy(file, archive.getinfo(name).file_size)


def _sparse(arrays: dict[str, Array], packed: int) -> Matrix:
    """What scipy.sparse.save_npz writes, checked before use: SciPy itself trusts the indices."""
    kind = arrays["format"].item()
    kind = kind.decode() if isinstance(kind, bytes) else kind
    shape = tuple(int(n) for n in arrays["shape"])
    if len(shape) != 2 or min(shape) < 0:
        raise ValueError(f"its sparse matrix has the shape {shape}")
    check_shape_claim(shape, packed, "its sparse matrix")
    if kind == "coo":
        parts: Any = (arrays["data"], (arrays["row"], arrays["col"]))
        return sp.csr_array(sp.coo_array(parts, shape=shape))
    if kind not in ("csr", "csc"):
        raise ValueError(f"its sparse matrix is in the format {kind!r}; save it as csr")
    make = sp.csr_array if kind == "csr" else sp.csc_array
    matrix = make((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
    matrix.check_format(full_check=True)
    return sp.csr_array(matrix)


def _several(path: Path, arrays: dict[str, Any]) -> dict[str, Part]:
    """Each two-dimensional array is a view; labels, single numbers and text are left out, aloud."""
    views, left_out = {}, []
    for key, array in arrays.items():
        if sp.issparse(array) or (array.ndim == 2 and not _is_labels(key, array)):
            views[key] = array
        else:
            left_out.append(f"{key} {tuple(array.shape)}")
    if not views:
        raise _Sentence(
            f"{path.name} holds no array of samples × features: {', '.join(left_out) or 'no numbers'}"
        )
    notes = []
    if left_out:
        notes = [f"{path.name}: {', '.join(left_out)} left out, no view of samples × features"]
    alone = len(arrays) == 1
    parts = {}
    for key, array in views.items():
        file = path.name if alone else f"{path.name}[{key}]"
        try:
            array = sp.csr_array(array) if sp.issparse(array) else array
            parts["" if alone else key] = Part(file, check_shape(array, file), notes=notes)
        except ValueError as error:
            raise _Sentence(str(error)) from None
        notes = []
    return parts


def _is_labels(key: str, array: Array) -> bool:
    return key.lower() in LABELS and min(array.shape) == 1


def _mat(path: Path) -> dict[str, Part]:
    """Arrays, and cell arrays of views as multi-view benchmarks are published: X{1}, X{2}, …"""
    with path.open("rb") as file:
        start = file.read(128)
    is_new = b"MATLAB 7.3" in start or start.startswith(b"\x89HDF")
    if not is_new and start[126:] not in (b"IM", b"MI"):
        raise ValueError("it is no MATLAB file of version 5 to 7; save it by save -v7")
    found = _apart(path, ".mat" if is_new else OLD_MATLAB)
    parts = _several(path, {key: item.array for key, item in found.items()})
    notes = [note for item in found.values() for note in item.notes]
    return {key: replace(part, notes=[*part.notes, *notes]) for key, part in parts.items()}


def _mtx(path: Path) -> dict[str, Part]:
    return {"": Part(path.name, check_shape(_read_mtx(path), path.name))}


#: Matrix Market. SciPy's reader of it can crash on a damaged file, and aborts where memory is limited.
FIELDS = ("real", "integer", "pattern", "double", "unsigned-integer")
SYMMETRIES = ("general", "symmetric", "skew-symmetric")


def _read_mtx(path: Path) -> Matrix:
    """A CSR matrix, or an array where the file lists every entry; ValueError if it is damaged."""
    with counted(path) as file:
        form, field, symmetry = _banner(file)
        sizes = _sizes(file, 3 if form == "coordinate" else 2)
        if form == "coordinate":
            check_shape_claim(sizes[:2], path.stat().st_size)
        width = 1 if form == "array" else 2 if field == "pattern" else 3
        body = _body(file, width)
    if form == "array":
        return _listed_in_full(body, sizes)
    return _coordinates(body, sizes, symmetry)


def _banner(file: IO[bytes]) -> tuple[str, str, str]:
    words = file.readline(1000).decode("ascii", "replace").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise ValueError("it does not begin with %%MatrixMarket matrix")
    form, field, symmetry = words[2:]
    if form not in ("coordinate", "array") or field not in FIELDS or symmetry not in SYMMETRIES:
        raise ValueError(f"its kind, {form} {field} {symmetry}, is not one of real numbers")
    if form == "array" and symmetry != "general":
        raise ValueError(f"it is a {symmetry} array; save it in full")
    return form, field, symmetry


def _sizes(file: IO[bytes], n: int) -> list[int]:
    line = b"%"
    while line.startswith(b"%") or (line and not line.strip()):
        line = file.readline(100_000)
    words = line.split()
    if len(words) != n or not all(word.isdigit() and len(word) < 16 for word in words):
        raise ValueError(f"its line of sizes holds {line[:40]!r}, where {n} numbers should be")
    return [int(word) for word in words]


def _body(file: IO[bytes], width: int) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no entries: a matrix of zeros
        values = np.loadtxt(file, comments="%", ndmin=2, encoding="latin-1")
    if not values.size:
        return np.empty((0, width))
    if values.shape[1] != width:
        raise ValueError(f"its lines hold {values.shape[1]} numbers instead of {width}")
    if not np.isfinite(values).all():
        raise ValueError("a line of it is not finite")
    return values


def _listed_in_full(body: Array, sizes: list[int]) -> Array:
    if len(body) != sizes[0] * sizes[1]:
        raise ValueError(f"it promises {sizes[0]} × {sizes[1]} entries and holds {len(body)}")
    return np.ascontiguousarray(body[:, 0].reshape(sizes, order="F"))


def _coordinates(body: Array, sizes: list[int], symmetry: str) -> sp.csr_array:
    rows, columns, entries = sizes
    if len(body) != entries:
        raise ValueError(f"it promises {entries} entries and holds {len(body)}")
    i, j = body[:, 0] - 1, body[:, 1] - 1
    if ((i % 1 != 0) | (j % 1 != 0) | (i < 0) | (j < 0) | (i >= rows) | (j >= columns)).any():
        raise ValueError(f"an entry lies outside of its {rows} × {columns}")
    values = body[:, 2] if body.shape[1] == 3 else np.ones(len(body))
    i, j = i.astype(np.int64), j.astype(np.int64)
    if symmetry != "general":
        if rows != columns:
            raise ValueError(f"it is {symmetry} but has {rows} × {columns} entries")
        sign, off = (-1 if symmetry == "skew-symmetric" else 1), i != j
        i, j = np.concatenate([i, j[off]]), np.concatenate([j, i[off]])
        values = np.concatenate([values, sign * values[off]])
    return sp.csr_array(sp.coo_array((values, (i, j)), shape=(rows, columns)))


def _apart(path: Path, kind: str = "") -> dict[str, Held]:
    found = arrays_apart(str(path), kind=kind)
    for item in found.values():
        item.notes = [f"{path.name}: {note}" for note in item.notes]
    return found


def _annotated(path: Path) -> dict[str, Part]:
    """AnnData and MuData: X of each modality with the names of its rows and columns."""
    parts = {}
    for key, item in _apart(path).items():
        ids, features = (
            None if names is None else [str(name) for name in names]
            for names in (item.ids, item.features)
        )
        file = f"{path.name}[{key}]" if key else path.name
        parts[key] = Part(file, check_shape(item.array, file), ids, features, notes=[*item.notes])
    return parts


READERS: dict[str, Callable[[Path], dict[str, Part]]] = {
    ".npy": _npy,
    ".npz": _npz,
    ".mat": _mat,
    ".mtx": _mtx,
    ".h5ad": _annotated,
    ".h5mu": _annotated,
}
