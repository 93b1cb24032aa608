"""Tables of numbers from CSV, TSV or Parquet files, with complaints that name the cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from manyview.engines.files.formats import PROGRAM
from manyview.io.child import read_apart
from manyview.io.limits import naming
from manyview.io.packed import STREAMS, text_of_file

from ._dataset import import_pandas

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
SUFFIXES = (*SEPARATORS, ".parquet")


def split_suffix(name: str) -> tuple[str, str]:
    """Stem and kind of a file name, in lower case; `.gz`, `.bz2` and `.zst` are looked through."""
    path = Path(name.lower())
    if path.suffix in STREAMS:
        path = path.with_suffix("")
    return path.stem, path.suffix


def read_table(path: Path) -> Any:
    """A data frame whose index is the first column of the table, or the index of a Parquet file.

    All names are text, and may be repeated.
    """
    pandas = import_pandas(f"reading {path.name}")
    kind = split_suffix(path.name)[1]
    if kind not in SUFFIXES:
        raise ValueError(f"{path.name} cannot be read; the kinds known are {', '.join(SUFFIXES)}")
    with naming(path, "a table"):
        if kind == ".parquet":
            frame = frame_of_arrow(path)
            if isinstance(frame.index, pandas.RangeIndex) and frame.shape[1]:
                frame = frame.set_index(frame.columns[0])
        else:
            frame = _text(pandas, path, SEPARATORS[kind])
        unnamed = np.flatnonzero(frame.index.isna())
        if len(unnamed):
            raise ValueError(
                f"row {unnamed[0] + 1} below the header has no name in the first column"
            )
    if not frame.size:
        expected = f"separated by {SEPARATORS[kind]!r}" if kind in SEPARATORS else "as Parquet"
        raise ValueError(
            f"{path.name} has {len(frame)} rows and {frame.shape[1]} columns besides the "
            f"one of names; a table {expected} was expected"
        )
    rows, columns = ([str(name).strip() for name in names] for names in frame.axes)
    return frame.set_axis(rows, axis=0).set_axis(columns, axis=1)


def _text(pandas: Any, path: Path, separator: str) -> Any:
    # Header and body are read apart: pandas would rename repeated column names, and a repeated
    # sample has to be noticed.
    options: dict[str, Any] = {"sep": separator, "header": None}
    with text_of_file(path) as file:
        head = pandas.read_csv(file, nrows=1, dtype=str, keep_default_na=False, **options)
    header = head.iloc[0].tolist()
    try:
        with text_of_file(path) as file:
            body = pandas.read_csv(file, skiprows=1, dtype={0: str}, low_memory=False, **options)
    except pandas.errors.EmptyDataError:
        return pandas.DataFrame(columns=header[1:])
    if len(header) == body.shape[1]:
        header = header[1:]  # the name of the column of names
    elif len(header) != body.shape[1] - 1:  # R leaves that name out
        raise ValueError(f"the header has {len(header)} fields and the rows {body.shape[1]}")
    return body.set_index(0).set_axis(header, axis=1)


def frame_of_arrow(path: Path) -> Any:
    """A Parquet or Feather file as a data frame; what was converted is given free on the way."""
    _, [part] = read_apart(PROGRAM, path, path.suffix.lower()[1:])
    import pyarrow  # the child says which extra brings it

    table = pyarrow.ipc.open_stream(pyarrow.py_buffer(part)).read_all()
    return table.to_pandas(split_blocks=True, self_destruct=True)


class NotANumber(ValueError):
    """A cell of a table of numbers that is none; ``cell`` is what it holds."""

    def __init__(self, sentence: str, cell: str):
        super().__init__(sentence)
        self.cell = cell


def numbers(
    file: str, frame: Any, rows_are: str = "row", columns_are: str = "column"
) -> np.ndarray:
    """The cells as doubles, NaN where empty; anything else that is no number is an error."""
    pandas = import_pandas(f"reading {file}")
    # pandas writes the missing value even where plain integers have none, and then fails.
    whole = all(isinstance(t, np.dtype) and t.kind in "iu" for t in frame.dtypes)
    raw = frame.to_numpy() if whole else frame.to_numpy(na_value=np.nan)
    if raw.dtype.kind == "O":
        # A table with one column of text becomes objects when transposed: usually still numbers.
        content = pandas.api.types.infer_dtype(raw.ravel(), skipna=True)
        plain = content in ("floating", "integer", "mixed-integer-float")
    else:
        plain = raw.dtype.kind in "iuf"
    values = raw.astype(float, copy=False) if plain else np.empty(raw.shape)
    if plain and not np.isinf(values).any():
        return values
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        parsed = pandas.to_numeric(column, errors="coerce").to_numpy(float, na_value=np.nan)
        bad = np.flatnonzero(np.isnan(parsed) & column.notna().to_numpy() | np.isinf(parsed))
        if bad.size:
            cell = str(column.iloc[bad[0]])
            shown = cell if len(cell) <= 60 else f"{cell[:40]}… ({len(cell)} characters)"
            raise NotANumber(
                f"{file} has {shown!r} in {rows_are} {frame.index[bad[0]]!r}, {columns_are} "
                f"{frame.columns[j]!r}, which is not a finite number; correct the cell or remove what is "
                "not data",
                cell,
            )
        values[:, j] = parsed
    return values
