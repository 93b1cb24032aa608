"""Files whose rows can be read a few at a time, by their endings; and arrays that another process reads.

A format's reader, its checks and its errors are in a module of their own. A damaged HDF5, Parquet, MATLAB
or Matrix Market file can hang or crash the library that reads it: `arrays_apart` reads it elsewhere first.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array
from manyview.io.child import read_apart
from manyview.io.limits import check_held
from manyview.io.packed import check_shape_claim, counted

from .hdf5 import read_hdf5
from .parquet import Parquet
from .row_file import Held, RowFile, check_shape, open_npy
from .zarr import open_zarr

HDF5, ZARR, PARQUET = (".h5", ".hdf5", ".h5ad"), (".zarr",), (".parquet",)
#: Endings of file names that can be read by rows.
STREAMABLE = (".npy", *HDF5, *ZARR, *PARQUET)
#: What a name of a row or column may be in JSON.
NAMES = (str, int, float, bool, type(None))
#: The program that reads files whose libraries may hang or crash.
PROGRAM = Path(__file__).with_name("apart_program.py")
#: Ending → the kind of reader there.
APART = dict.fromkeys((*HDF5, ".h5mu", ".mat"), "hdf5") | {".parquet": "rows of parquet"}
#: A .mat file before version 7.3, which is no HDF5.
OLD_MATLAB = "matlab"
APART |= {OLD_MATLAB: "scipy", ".mtx": "scipy"}


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


def arrays_in(path: str, key: str | None, kind: str, most: float | None) -> dict[str, RowFile]:
    """Name → array of a file that another process reads; see `read_hdf5`."""
    if APART[kind] == "scipy":
        read = _matlab if kind == OLD_MATLAB else _matrix_market
        return {name: Held(array) for name, array in read(Path(path)).items()}
    if kind in PARQUET:
        return {"": check_shape(Parquet(path))}
    return read_hdf5(path, key, kind, most)


def _matlab(path: Path) -> dict[str, Any]:
    """The arrays of a file of version 5 to 7, those of a cell array as name1, name2, … Only numbers: text,
    structures, functions and complex numbers are no views."""
    from scipy.io import loadmat

    found: dict[str, Any] = {}
    for name, value in loadmat(path, chars_as_strings=False).items():
        cells = isinstance(value, np.ndarray) and value.dtype.kind == "O"
        items = enumerate(value.ravel(order="F"), 1) if cells else [("", value)]
        for i, item in items:
            numbers = isinstance(item, np.ndarray) or sp.issparse(item)
            if numbers and item.dtype.kind in "biuf":
                found[f"{name}{i}"] = _sound(item, path, f"the sparse array {name!r}")
    return found


def _matrix_market(path: Path) -> dict[str, Any]:
    """The matrix of a file, packed or not, as doubles."""
    from scipy.io import mmread
    from threadpoolctl import threadpool_limits

    with counted(path) as file, threadpool_limits(1):  # each thread takes memory that is limited
        matrix = mmread(file)
    if matrix.dtype.kind not in "biuf":
        raise ValueError("it holds complex numbers; a view holds real ones")
    if not np.isfinite(matrix.data if sp.issparse(matrix) else matrix).all():
        raise ValueError("a line of it is not finite")
    matrix = _sound(matrix, path, "it")
    return {"": matrix.astype(float)}


def _sound(matrix: Any, path: Path, what: str) -> Any:
    """An array in one order of bytes, or a CSR matrix whose places were looked at."""
    if not sp.issparse(matrix):
        kind = "u1" if matrix.dtype == bool else matrix.dtype.newbyteorder("=")
        return np.ascontiguousarray(matrix, kind)
    check_shape_claim(matrix.shape, path.stat().st_size, what)
    columns = sp.csc_array(matrix)
    columns.check_format(full_check=True)
    return sp.csr_array(columns.astype(float))


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


def open_rows(path: str, key: str | None, kind: str) -> RowFile:
    """The reader that suits the name of a file, or ``kind``; ``key`` names an array in it."""
    kind = kind or Path(path).suffix.lower()
    if kind == ".npy":
        found = open_npy(path)
    elif kind in HDF5:
        found = read_hdf5(path, key)[""]
    elif kind in ZARR:
        found = open_zarr(path, key)
    elif kind in PARQUET:
        found = Parquet(path)
    else:
        raise ValueError(f"only {', '.join(STREAMABLE)} can be read by rows")
    return check_shape(found)
