"""HDF5 (.h5, .h5ad, .h5mu, .mat 7.3): files may read no other and unpack to no more than their limit."""

from __future__ import annotations

import importlib
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array
from manyview.io.limits import check_claim, check_held

from . import row_file
from .row_file import INSIDE, RowFile, check_shape

OUTSIDE = "whose bytes would be read along, whatever they are; copy the numbers into one file"


def open_hdf5(path: str | Path) -> Any:
    """The open file, once each object in it has been looked at, once: links may lead in circles."""
    h5py = imported("h5py", path)
    file, packed = h5py.File(path, "r"), Path(path).stat().st_size
    try:
        waiting, seen = [file], set()
        while waiting:
            group = waiting.pop()
            for name in group:
                kind = group.id.links.get_info(name.encode("utf-8", "surrogateescape")).type
                if kind == h5py.h5l.TYPE_SOFT:  # to a name in the file, which is looked at anyway
                    continue
                if kind != h5py.h5l.TYPE_HARD:
                    place = f"{str(group.name).rstrip('/')}/{name}"
                    raise ValueError(f"{place!r} is a link to another file, {OUTSIDE}")
                item = group[name]
                info = h5py.h5o.get_info(item.id)
                if (info.fileno, info.addr) in seen:
                    continue
                seen.add((info.fileno, info.addr))
                if isinstance(item, h5py.Group):
                    waiting.append(item)
                elif isinstance(item, h5py.Dataset):
                    _check_dataset(h5py, item, packed)
    except BaseException:
        file.close()
        raise
    return file


def _check_dataset(h5py: Any, item: Any, packed: int) -> None:
    made = item.id.get_create_plist()
    if made.get_external_count():
        raise ValueError(f"{item.name!r} keeps its numbers in other files, {OUTSIDE}")
    if made.get_layout() == h5py.h5d.VIRTUAL:
        raise ValueError(f"{item.name!r} is put together from other datasets or files, {OUTSIDE}")
    if item.shape is None:
        return
    if item.dtype.kind in "biuf":
        wanted = float(prod(map(int, item.shape)) * item.dtype.itemsize)
        check_claim(wanted, packed, repr(item.name))
    if item.chunks and made.get_nfilters():
        check_held(prod(item.chunks) * item.dtype.itemsize, packed, f"a chunk of {item.name!r}")


# --- rows, and their names in AnnData and MuData --------------------------------------------------


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
        if self.by_columns and 12 * self.nnz > (row_file.LARGEST_TURNED if most is None else most):
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
        counts = [-(-n // m) for n, m in zip(array.shape, array.chunks, strict=True)]
        fill, total = array.fillvalue, prod(counts)
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


def read_hdf5(
    path: str, key: str | None, kind: str = "", most: float | None = None
) -> dict[str, RowFile]:
    """Name → array: of a .mat file all arrays of numbers, of an .h5mu file the X of every modality, of any
    other the array that ``key`` names or the only one, under the name "".

    One that is stored by columns may take as many bytes as the one who asks wants to hold.
    """
    file = open_hdf5(path)
    if kind == ".h5mu":
        names = [str(name) for name in file["mod"].attrs.get("mod-order", file["mod"].keys())]
        return {name: inside(file, f"mod/{name}/X", most) for name in names}
    if kind == ".mat":  # MATLAB stores columns first
        numbers = {n: item for n, item in file.items() if hasattr(item, "dtype")}
        return {n: Stored(x, turned=True) for n, x in numbers.items() if x.dtype.kind in "biuf"}
    if key is None and (Path(path).suffix.lower() == ".h5ad" or is_anndata(file)):
        key = "X"
    if key is None:
        tables: list[str] = []
        file.visititems(
            lambda name, item: tables.append(name) if getattr(item, "ndim", 0) == 2 else None
        )
        key = only(path, tables)
    return {"": inside(file, key, most)}


def inside(file: Any, key: str, most: float | None = None) -> RowFile:
    """An array of an open file, or a sparse matrix; with names if it is a part of an AnnData."""
    if key not in file:
        raise ValueError(f"it holds no {key!r}, only {', '.join(file.keys())}")
    item = file[key]
    names = _names_of(file, key)
    if hasattr(item, "dtype"):
        return check_shape(Stored(item, *names))
    return check_shape(StoredRows(item, *names, most))


def is_anndata(group: Any) -> bool:
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
    """Names of the samples or variables of an AnnData."""
    group = file.get(table)
    if getattr(getattr(group, "dtype", None), "names", None):
        raise ValueError("it was written by AnnData before 0.7; save it again by a newer one")
    index = None if group is None else group.attrs.get("_index")
    if index is None:
        return None
    held = group[index]
    if not hasattr(held, "keys"):
        return _texts(held)
    if "codes" in held:  # a categorical index, in which -1 is no name
        codes = held["codes"][:]
        names, lost = _texts(held["categories"])[codes], codes < 0
    else:
        names, lost = _texts(held["values"]), held["mask"][:].astype(bool)
    names[lost] = None
    return names


def _texts(array: Any) -> Array:
    """HDF5 returns texts as bytes by default."""
    if hasattr(array, "asstr"):
        array = array.asstr()
    return np.array(array[:], dtype=object)


def only(path: str, tables: list[str]) -> str:
    if len(tables) != 1:
        example = f"{Path(path).name}{INSIDE}{tables[0] if tables else 'name'}"
        raise ValueError(
            f"it holds {len(tables)} two-dimensional arrays ({', '.join(tables[:5])}); name one of "
            f"them, as in {example}"
        )
    return tables[0]


def imported(library: str, path: str | Path) -> Any:
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise ImportError(
            f"reading {Path(path).name} needs {library}; "
            "install it with: pip install 'manyview[disk]'"
        ) from error
