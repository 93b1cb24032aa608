"""Tables of numbers from CSV, TSV or Parquet files, with complaints that name the cell."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manyview.engines.files.formats import PROGRAM
from manyview.io.guard import STREAMS, TooLarge, check_pyarrow, text_of_file
from manyview.io.guard.sandbox import Refused, read_apart

from ._dataset import import_pandas

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
SUFFIXES = (*SEPARATORS, ".parquet")


@dataclass(frozen=True, eq=False)
class Table:
    """A file's cells with the names of its rows and columns, all names as text."""

    file: str
    rows: list[str]
    columns: list[str]
    cells: Any  # pandas DataFrame with positions 0, 1, ... on both axes

    def transposed(self) -> Table:
        """Rows and columns exchanged."""
        return Table(self.file, self.columns, self.rows, self.cells.T)


def split_suffix(name: str) -> tuple[str, str]:
    """Stem and kind of a file name, in lower case; `.gz`, `.bz2` and `.zst` are looked through."""
    path = Path(name.lower())
    if path.suffix in STREAMS:
        path = path.with_suffix("")
    return path.stem, path.suffix


def read_table(path: Path) -> Table:
    """Read a table whose first column, or Parquet index, names the rows."""
    pandas = import_pandas(f"reading {path.name}")
    kind = split_suffix(path.name)[1]
    if kind not in SUFFIXES:
        raise ValueError(f"{path.name} cannot be read; the kinds known are {', '.join(SUFFIXES)}")
    try:
        table = _parquet(pandas, path) if kind == ".parquet" else _text(pandas, path, kind)
    except ImportError as error:
        raise ImportError(
            f"reading {path.name} needs pyarrow; install it with: pip install 'manyview[app]'"
        ) from error
    except TooLarge as error:
        raise ValueError(f"{path.name}: {error}") from None
    except Refused as error:
        raise ValueError(f"{path.name} {error}") from None
    except Exception as error:  # parsers of damaged files raise whatever they stumble over
        why = " ".join(str(error).split())[:300] or type(error).__name__
        raise ValueError(f"{path.name} could not be read as a table: {why}") from error
    if not table.rows or not table.columns:
        expected = f"separated by {SEPARATORS[kind]!r}" if kind in SEPARATORS else "as Parquet"
        raise ValueError(
            f"{path.name} has {len(table.rows)} rows and {len(table.columns)} columns besides the "
            f"one of names; a table {expected} was expected"
        )
    return table


def _text(pandas: Any, path: Path, kind: str) -> Table:
    # Header and body are read apart: pandas would rename repeated column names, and a repeated
    # sample has to be noticed.
    separator = SEPARATORS[kind]
    options: dict[str, Any] = {"sep": separator, "header": None}
    with text_of_file(path) as file:
        head = pandas.read_csv(file, nrows=1, dtype=str, keep_default_na=False, **options)
    header = head.iloc[0].tolist()
    try:
        with text_of_file(path) as file:
            body = pandas.read_csv(file, skiprows=1, dtype={0: str}, low_memory=False, **options)
    except pandas.errors.EmptyDataError:
        return Table(path.name, [], header[1:], head.iloc[:0])
    if len(header) == body.shape[1]:
        header = header[1:]  # the name of the column of names
    elif len(header) != body.shape[1] - 1:  # R leaves that name out
        raise ValueError(f"the header has {len(header)} fields and the rows {body.shape[1]}")
    return _table(path.name, body[0].tolist(), header, body.iloc[:, 1:])


def _parquet(pandas: Any, path: Path) -> Table:
    frame = frame_of_parquet(path)
    if isinstance(frame.index, pandas.RangeIndex) and frame.shape[1]:
        names, frame = frame.iloc[:, 0].tolist(), frame.iloc[:, 1:]
    else:
        names = frame.index.tolist()
    return _table(path.name, names, frame.columns.tolist(), frame)


def frame_of_parquet(path: Path) -> Any:
    """A Parquet file as a data frame; what was converted is given free on the way."""
    import pyarrow

    check_pyarrow()
    _, [part] = read_apart(PROGRAM, path, "parquet")
    table = pyarrow.ipc.open_stream(pyarrow.py_buffer(part)).read_all()
    return table.to_pandas(split_blocks=True, self_destruct=True)


def _table(file: str, rows: list[Any], columns: list[Any], cells: Any) -> Table:
    unnamed = [i for i, name in enumerate(rows) if name is None or name != name]
    if unnamed:
        raise ValueError(f"row {unnamed[0] + 1} below the header has no name in the first column")
    cells = cells.set_axis(range(len(rows)), axis=0).set_axis(range(len(columns)), axis=1)
    return Table(file, [str(r).strip() for r in rows], [str(c).strip() for c in columns], cells)


def _short(cell: Any) -> str:
    text = str(cell)
    return text if len(text) <= 60 else f"{text[:40]}… ({len(text)} characters)"


class NotANumber(ValueError):
    """A cell of a table of numbers that is none; ``cell`` is what it holds."""

    def __init__(self, sentence: str, cell: str):
        super().__init__(sentence)
        self.cell = cell


def numbers(table: Table, rows_are: str = "row", columns_are: str = "column") -> np.ndarray:
    """The cells as doubles, NaN where empty; anything else that is no number is an error."""
    pandas = import_pandas(f"reading {table.file}")
    # pandas writes the missing value even where plain integers have none, and then fails.
    whole = all(isinstance(t, np.dtype) and t.kind in "iu" for t in table.cells.dtypes)
    raw = table.cells.to_numpy() if whole else table.cells.to_numpy(na_value=np.nan)
    if raw.dtype.kind == "O":
        # A table with one column of text becomes objects when transposed: usually still numbers.
        content = pandas.api.types.infer_dtype(raw.ravel(), skipna=True)
        plain = content in ("floating", "integer", "mixed-integer-float")
    else:
        plain = raw.dtype.kind in "iuf"
    values = raw.astype(float, copy=False) if plain else np.empty(raw.shape)
    if plain and not np.isinf(values).any():
        return values
    for j in range(table.cells.shape[1]):
        column = table.cells.iloc[:, j]
        parsed = pandas.to_numeric(column, errors="coerce").to_numpy(float, na_value=np.nan)
        bad = np.flatnonzero(np.isnan(parsed) & column.notna().to_numpy() | np.isinf(parsed))
        if bad.size:
            i = int(bad[0])
            raise NotANumber(
                f"{table.file} has {_short(column.iloc[i])!r} in {rows_are} {table.rows[i]!r}, "
                f"{columns_are} {table.columns[j]!r}, which is not a finite number; "
                "correct the cell or remove what is not data",
                str(column.iloc[i]),
            )
        values[:, j] = parsed
    return values
