"""Files whose rows can be read a few at a time: .npy, HDF5, Zarr, Parquet and AnnData's .h5ad.

The readers of .npy, HDF5 and Zarr are here, that of Parquet in `parquet`. A damaged HDF5 or Parquet file
can hang or crash the library that reads it: `arrays_apart` has it read by another process first.
"""

from __future__ import annotations

import importlib
import os
from math import prod
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

from manyview._types import Array
from manyview.io.guard import (
    check_held,
    check_lengths,
    check_shape_claim,
    check_zarr,
    open_hdf5,
)
from manyview.io.guard.sandbox import read_apart

from .parquet import Parquet
from .row_file import RowFile

HDF5, ZARR, PARQUET = (".h5", ".hdf5", ".h5ad"), (".zarr",), (".parquet",)
#: Endings of file names that can be read by rows.
STREAMABLE = (".npy", *HDF5, *ZARR, *PARQUET)
#: Between the name of a file and that of an array in it.
INSIDE = "::"
#: An array stored column by column is read whole, up to this many bytes.
LARGEST_TURNED = 2**28
#: What a name of a row or column may be in JSON.
NAMES = (str, int, float, bool, type(None))
#: The program that reads files whose libraries may hang or crash.
PROGRAM = Path(__file__).with_name("apart_program.py")
#: Ending → the kind of reader there.
APART = dict.fromkeys((*HDF5, ".h5mu", ".mat"), "hdf5") | {".parquet": "rows of parquet"}
#: A .mat file before version 7.3, which is no HDF5.
OLD_MATLAB = "matlab"
APART[OLD_MATLAB] = "scipy"


class Plain(RowFile):
    """Numbers row by row from some byte on: an .npy file, or what a numpy.memmap maps.

    Opened anew for every read: threads need no lock, and nothing is mapped, since touching a mapped
    file that has shrunk kills the process. The system is told to fetch as many rows again meanwhile.
    """

    direct = True

    def __init__(self, path: str, layout: tuple[int, str, tuple[int, int]] | None = None):
        self.path = path
        self.start, dtype, self.shape = layout or _npy_layout(path)
        self.dtype = np.dtype(dtype)
        check_shape(self)
        self.row_bytes = self.shape[1] * self.dtype.itemsize
        held, wanted = Path(path).stat().st_size, self.start + self.shape[0] * self.row_bytes
        if held < wanted:
            raise ValueError(f"it should hold {wanted} bytes but holds {held}: it was cut short")

    def read(self, start: int, stop: int) -> Array:
        block = np.empty((max(0, stop - start), self.shape[1]), dtype=self.dtype)
        if not block.size:
            return block
        left = memoryview(block.data).cast("B")
        with open(self.path, "rb", buffering=0) as file:
            file.seek(self.start + start * self.row_bytes)
            if hasattr(os, "posix_fadvise"):
                after = self.start + stop * self.row_bytes
                os.posix_fadvise(file.fileno(), after, block.nbytes, os.POSIX_FADV_WILLNEED)
            while len(left):
                got = file.readinto(left)
                if not got:
                    raise EOFError("the file ends before; it has shrunk since it was opened")
                left = left[got:]
        return block


def _npy_header(path: str) -> tuple[int, tuple[int, ...], bool, np.dtype]:
    """Where the numbers begin, their shape, whether they are stored by columns, and their type."""
    with open(path, "rb") as file:
        version = np.lib.format.read_magic(file)
        headers: Any = np.lib.format
        read = headers.read_array_header_1_0 if version == (1, 0) else headers.read_array_header_2_0
        shape, by_columns, dtype = read(file)
        if dtype.hasobject:
            raise ValueError(
                "it holds Python objects, which are not read because they can run code"
            )
        return file.tell(), shape, by_columns and len(shape) == 2 and 1 not in shape, dtype


def _npy_layout(path: str) -> tuple[int, str, Any]:
    start, shape, by_columns, dtype = _npy_header(path)
    if by_columns:
        raise ValueError(
            "it is stored column by column; save it again by "
            "numpy.save(name, numpy.ascontiguousarray(array))"
        )
    return start, dtype.str, shape


class Held(RowFile):
    """Rows in memory, dense or sparse."""

    direct = True

    def __init__(self, array: Any, **about: Any):
        self.array, self.shape, self.dtype = array, tuple(array.shape), array.dtype
        self.sparse = sp.issparse(array)
        if self.sparse:
            self.nnz = array.nnz
        vars(self).update(about)

    def read(self, start: int, stop: int) -> Any:
        return self.array[start:stop]


def _small_by_columns(path: str) -> bool:
    return _npy_header(path)[2] and Path(path).stat().st_size <= LARGEST_TURNED


def _turned(path: str) -> Array:
    return np.ascontiguousarray(np.load(path, allow_pickle=False))


class Stored(RowFile):
    """A two-dimensional dataset of HDF5, or array of Zarr: anything sliced by rows."""

    def __init__(
        self,
        array: Any,
        ids: Array | None = None,
        features: Array | None = None,
        turned: bool = False,
    ):
        self.array, self.dtype, self.turned = array, np.dtype(array.dtype), turned
        self.shape = tuple(array.shape[::-1] if turned else array.shape)
        self.ids, self.features = ids, features
        chunks = getattr(array, "chunks", None)
        self.piece = int(chunks[0]) if chunks else 1
        # HDF5 unpacks whole chunks if they are compressed, and reads rows of others as they are.
        self.direct = hasattr(array, "file") and not array.id.get_create_plist().get_nfilters()
        self.notes = _absent(array)

    def read(self, start: int, stop: int) -> Array:
        if self.turned:  # of any number of dimensions
            return np.asarray(self.array[()]).T
        return np.asarray(self.array[start:stop])


class StoredRows(RowFile):
    """A sparse matrix in a group of HDF5 or Zarr, row by row: data, indices, indptr."""

    sparse = True

    def __init__(
        self,
        group: Any,
        ids: Array | None = None,
        features: Array | None = None,
        most: float | None = None,
    ):
        self.ids, self.features = ids, features
        if "indptr" not in group:
            raise ValueError(
                f"{group.name!r} is no array but a group of {', '.join(group.keys()) or 'nothing'}; "
                f"name an array in it, after {INSIDE}"
            )
        kind = str(group.attrs.get("encoding-type", group.attrs.get("h5sparse_format", "")))
        if kind[:3] not in ("csr", "csc"):
            raise ValueError(
                f"its sparse matrix is stored as {kind or 'something unknown'}; save it again as csr_matrix"
            )
        self.by_columns, self.turned = kind.startswith("csc"), sp.csr_array((0, 0))
        shape = group.attrs["shape"] if "shape" in group.attrs else group.attrs["h5sparse_shape"]
        self.shape = (int(shape[0]), int(shape[1]))
        self.data, self.indices = group["data"], group["indices"]
        self.dtype = np.dtype(self.data.dtype)
        self.notes = [
            note for name in ("data", "indices", "indptr") for note in _absent(group[name])
        ]
        self.indptr = group["indptr"][:].astype(np.int64)
        self._check_ends()
        self.nnz = int(self.indptr[-1])
        if self.by_columns and 12 * self.nnz > (LARGEST_TURNED if most is None else most):
            raise ValueError(
                f"its sparse matrix is stored as {kind}, not by rows; save it again as csr_matrix"
            )

    def _check_ends(self) -> None:
        """SciPy trusts the places of a sparse matrix, and reads outside of memory if they are wrong."""
        held = min(self.data.shape[0], self.indices.shape[0])
        ends = self.indptr
        if (
            len(ends) != self.shape[self.by_columns] + 1
            or ends[0] != 0
            or (np.diff(ends) < 0).any()
            or ends[-1] > held
        ):
            raise ValueError(
                f"its sparse matrix of shape {self.shape} has rows that end where it has no entries; "
                "save it again"
            )

    def read(self, start: int, stop: int) -> sp.csr_array:
        if self.by_columns:
            if self.turned.shape != self.shape:
                self.turned = self._columns()
            return self.turned[start:stop]
        ends = self.indptr[start : stop + 1]
        part = slice(int(ends[0]), int(ends[-1]))
        values, columns = self.data[part], self.indices[part]
        if len(columns) and not 0 <= columns.min() <= columns.max() < self.shape[1]:
            raise ValueError(f"an entry of it lies outside of its {self.shape[1]} columns")
        block = sp.csr_array((values, columns, ends - ends[0]), (stop - start, self.shape[1]))
        block.sum_duplicates()
        return block

    def _columns(self) -> sp.csr_array:
        """All of a matrix that is stored by columns."""
        parts = (self.data[: self.nnz], self.indices[: self.nnz], self.indptr)
        matrix = sp.csc_array(parts, shape=self.shape)
        matrix.check_format(full_check=True)
        return sp.csr_array(matrix)


def _absent(array: Any) -> list[str]:
    """A note if chunks of an array are not in its file: they are read as the fill value."""
    if not hasattr(array, "id"):  # Zarr
        fill, total = array.fill_value, array.nchunks
        missing = total - array.nchunks_initialized
    elif array.is_virtual or array.external:
        return []
    elif array.chunks:
        fill, total = array.fillvalue, prod(map(_ceil, array.shape, array.chunks))
        missing = total - array.id.get_num_chunks()
    else:
        fill, total = array.fillvalue, 1
        missing = int(array.size > 0 and not array.id.get_storage_size())
    if missing <= 0:
        return []
    name = (array.name or "").strip("/")
    return [
        f"{missing} of the {total} chunks{f' of {name!r}' if name else ''} are not in the file; their "
        f"entries are read as {fill}. That is right if nothing else was ever written there, as programs "
        "may leave such chunks out. If chunks were lost, the result is wrong: copy the file again"
    ]


def _ceil(n: int, chunk: int) -> int:
    return -(-n // chunk)


def arrays_apart(
    path: str, key: str | None = None, kind: str = "", most: float = np.inf
) -> dict[str, Any]:
    """Name → the arrays of an HDF5 or Parquet file (see `arrays_in`), read by another process.

    Those of more than ``most`` bytes are only described; the library has then read all of the file
    but the numbers, and may be trusted with it here.
    """
    kind = kind or Path(path).suffix.lower()
    wanted = {"key": key, "kind": kind, "most": min(most, 2**62)}
    listed, parts = read_apart(PROGRAM, Path(path), APART[kind], wanted)
    found, left = {}, iter(parts)
    for about in listed:
        shape, dtype = tuple(about["shape"]), np.dtype(about["dtype"])
        made: dict[str, Any] = {"notes": about["notes"]}
        for names in ("ids", "features"):
            if about[names] is not None:
                made[names] = np.array(about[names][1], dtype=about[names][0])
        array = None
        if about["whole"]:
            values = np.frombuffer(next(left), dtype)
            if about["sparse"]:
                indices, indptr = (np.frombuffer(next(left), t) for t in about["whole"])
                array = Held(sp.csr_array((values, indices, indptr), shape=shape), **made)
            else:
                array = Held(values.reshape(shape), **made)
        found[about["name"]] = array
    return found


def arrays_in(
    path: str, key: str | None, kind: str, most: float | None = None
) -> dict[str, RowFile]:
    """Name → array: of a .mat file all arrays of numbers, of an .h5mu file the X of every modality, of any
    other the array that ``key`` names or the only one, under the name "".

    One that is stored by columns may take as many bytes as the one who asks wants to hold.
    """
    if kind == OLD_MATLAB:
        return {name: Held(array) for name, array in _matlab(path).items()}
    if kind not in (".h5mu", ".mat"):
        return {"": open_rows(path, key, kind, most)}
    file = open_hdf5(_imported("h5py", path), path)
    if kind == ".h5mu":
        names = [str(name) for name in file["mod"].attrs.get("mod-order", file["mod"].keys())]
        return {name: check_shape(_inside(file, f"mod/{name}/X", most)) for name in names}
    numbers = {n: item for n, item in file.items() if isinstance(item, _Array)}
    # MATLAB stores columns first.
    return {
        n: Stored(item, turned=True) for n, item in numbers.items() if item.dtype.kind in "biuf"
    }


def _matlab(path: str) -> dict[str, Any]:
    """The arrays of a file of version 5 to 7, those of a cell array as name1, name2, … Only numbers: text,
    structures, functions and complex numbers are no views."""
    from scipy.io import loadmat

    found: dict[str, Any] = {}
    packed = Path(path).stat().st_size
    for name, value in loadmat(path, chars_as_strings=False).items():
        cells = isinstance(value, np.ndarray) and value.dtype.kind == "O"
        items = enumerate(value.ravel(order="F"), 1) if cells else [("", value)]
        found |= {f"{name}{i}": item for i, item in items if _is_numeric(item)}
    for name, value in found.items():
        if not sp.issparse(value):
            kind = "u1" if value.dtype == bool else value.dtype.newbyteorder("=")
            found[name] = np.ascontiguousarray(value, kind)
            continue
        check_shape_claim(value.shape, packed, f"the sparse array {name!r}")
        columns = sp.csc_array(value)
        columns.check_format(full_check=True)
        found[name] = sp.csr_array(columns.astype(float))
    return found


def _is_numeric(item: Any) -> bool:
    return (isinstance(item, np.ndarray) or sp.issparse(item)) and item.dtype.kind in "biuf"


def described(rows: RowFile, most: float, packed: int) -> tuple[dict[str, Any], list[Any]]:
    """What `arrays_apart` needs to know of an array, for JSON, and its parts if they are to be sent."""
    about: dict[str, Any] = {"shape": rows.shape, "dtype": rows.dtype.str, "sparse": rows.sparse}
    about |= {"notes": rows.notes, "ids": _listed(rows.ids), "features": _listed(rows.features)}
    entries = getattr(rows, "nnz", prod(rows.shape))
    about["whole"] = entries * rows.dtype.itemsize <= most
    if not about["whole"]:
        return about, []
    check_held(entries * (rows.dtype.itemsize + 4 * rows.sparse), packed)
    matrix = rows.read(0, rows.shape[0] if rows.shape else 0)
    if not rows.sparse:
        return about, [np.ascontiguousarray(matrix)]
    places = [matrix.indices, matrix.indptr]
    return {**about, "whole": [part.dtype.str for part in places]}, [matrix.data, *places]


def _listed(names: Array | None) -> tuple[str, list[Any]] | None:
    """Names as JSON can hold them."""
    if names is None:
        return None
    plain = names.astype(np.int64) if names.dtype.kind in "mM" else names
    return names.dtype.str, [n if isinstance(n, NAMES) else str(n) for n in plain.tolist()]


def open_rows(
    path: str, key: str | None = None, kind: str = "", most: float | None = None
) -> RowFile:
    """The reader that suits the name of a file, or ``kind``; ``key`` names an array in it."""
    kind = kind or Path(path).suffix.lower()
    if kind == ".npy":
        whole = _small_by_columns(path)
        found: RowFile = Held(_turned(path)) if whole else Plain(path)
    elif kind in HDF5:
        found = _hdf5(path, key, most)
    elif kind in ZARR:
        found = _zarr(path, key)
    elif kind in PARQUET:
        found = Parquet(path)
    else:
        raise ValueError(f"only {', '.join(STREAMABLE)} can be read by rows")
    return check_shape(found)


def check_shape(found: Any, what: str = "it") -> Any:
    """What a file holds, if that can be a view."""
    if len(found.shape) != 2:
        raise ValueError(
            f"{what} has {len(found.shape)} dimension(s); a view has samples × features"
        )
    if found.dtype.kind not in "biuf":
        raise ValueError(f"{what} has entries of type {found.dtype}; a view holds numbers only")
    if not all(found.shape):
        raise ValueError(f"{what} is empty (shape {found.shape}); both must be at least 1")
    return found


def _imported(library: str, path: str) -> Any:
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise ImportError(
            f"reading {Path(path).name} needs {library}; "
            "install it with: pip install 'manyview[disk]'"
        ) from error


def _hdf5(path: str, key: str | None, most: float | None) -> RowFile:
    h5py = _imported("h5py", path)
    file = open_hdf5(h5py, path)
    if key is None and (Path(path).suffix.lower() == ".h5ad" or _is_anndata(file)):
        key = "X"
    if key is None:
        tables: list[str] = []
        file.visititems(
            lambda name, item: (
                tables.append(name) if isinstance(item, h5py.Dataset) and item.ndim == 2 else None
            )
        )
        key = _only(path, tables)
    return _inside(file, key, most)


@runtime_checkable
class _Array(Protocol):
    """What h5py and zarr hold as one array."""

    shape: tuple[int, ...]
    dtype: Any


@runtime_checkable
class _Group(Protocol):
    """What h5py and zarr hold other things in."""

    attrs: Any

    def keys(self) -> Any: ...
    def __getitem__(self, name: str) -> Any: ...
    def __contains__(self, name: object) -> bool: ...


@runtime_checkable
class _Texts(Protocol):
    """A dataset of h5py, whose texts are bytes unless asked for otherwise."""

    file: Any

    def asstr(self) -> Any: ...


def _zarr(path: str, key: str | None) -> RowFile:
    zarr = _imported("zarr", path)
    check_zarr(path)
    opened = zarr.open(path, mode="r")
    if isinstance(opened, _Array):
        return Stored(opened)
    if key is None and _is_anndata(opened):
        key = "X"
    if key is None:
        key = _only(path, [name for name, array in opened.arrays() if array.ndim == 2])
    return _inside(opened, key)


def _inside(file: Any, key: str, most: float | None = None) -> RowFile:
    """An array of an open file, or a sparse matrix; with names if it is a part of an AnnData."""
    if key not in file:
        raise ValueError(f"it holds no {key!r}, only {', '.join(file.keys())}")
    item = file[key]
    names = _names_of(file, key)
    return Stored(item, *names) if isinstance(item, _Array) else StoredRows(item, *names, most)


def _is_anndata(group: Any) -> bool:
    return group.attrs.get("encoding-type") == "anndata"


def _names_of(file: Any, key: str) -> tuple[Array | None, Array | None]:
    """Names of the rows and columns of an array that is part of an AnnData: the whole file, or a group
    in it (a modality of MuData)."""
    steps = key.strip("/").split("/")
    for depth in reversed(range(len(steps))):
        group = file["/".join(steps[:depth])] if depth else file
        ids = _names(group, "obs")
        if ids is not None:
            by_variables = steps[depth:] == ["X"] or steps[depth] == "layers"
            return ids, _names(group, "var") if by_variables else None
    return None, None


def _names(file: Any, table: str) -> Array | None:
    """Names of the observations or variables of an AnnData; None in those of old versions."""
    group = file.get(table)
    index = group.attrs.get("_index") if isinstance(group, _Group) else None
    if index is None:
        return _names_before_07(group)
    held = group[index]
    if not isinstance(held, _Group):
        return _texts(held)
    if "codes" in held:  # a categorical index, in which -1 is no name
        codes = held["codes"][:]
        names, lost = _texts(held["categories"])[codes], codes < 0
    else:
        names, lost = _texts(held["values"]), held["mask"][:].astype(bool)
    names[lost] = None
    return names


def _names_before_07(table: Any) -> Array | None:
    """The same in files of AnnData before 0.7, where a table is one array with several fields."""
    fields = getattr(getattr(table, "dtype", None), "names", None) or ()
    index = next((name for name in ("_index", "index") if name in fields), None)
    if index is None:
        return None
    check_lengths(table, Path(table.file.filename).stat().st_size)
    texts = [n.decode() if isinstance(n, bytes) else n for n in table[index].tolist()]
    return np.array(texts, dtype=object)


def _texts(array: Any) -> Array:
    """Of HDF5, texts are bytes unless asked for otherwise."""
    if isinstance(array, _Texts):
        check_lengths(array, Path(array.file.filename).stat().st_size)
        array = array.asstr()
    return np.array(array[:], dtype=object)


def _only(path: str, tables: list[str]) -> str:
    if len(tables) != 1:
        example = f"{Path(path).name}{INSIDE}{tables[0] if tables else 'name'}"
        raise ValueError(
            f"it holds {len(tables)} two-dimensional arrays ({', '.join(tables[:5])}); name one of "
            f"them, as in {example}"
        )
    return tables[0]
