"""Matrix Market files. SciPy's reader of them can be crashed by a damaged file; this one cannot."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import IO

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview.io.guard import check_shape_claim, counted

FIELDS = ("real", "integer", "pattern", "double", "unsigned-integer")
SYMMETRIES = ("general", "symmetric", "skew-symmetric")


def read_mtx(path: Path) -> Matrix:
    """A CSR matrix, or an array where the file lists every entry; ValueError if it is damaged."""
    with counted(path) as file:
        form, field, symmetry = _banner(file)
        sizes = _sizes(file, 3 if form == "coordinate" else 2)
        if form == "coordinate":
            check_shape_claim(sizes[:2], path.stat().st_size)
        width = 1 if form == "array" else 2 if field == "pattern" else 3
        body = _body(file, width)
    if form == "array":
        return _array(body, sizes)
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


def _array(body: Array, sizes: list[int]) -> Array:
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
