"""Rows of Parquet files, a row group at a time."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from manyview._types import Array
from manyview.engines.files.headings import is_id_heading
from manyview.io.limits import check_claim, check_held

from .row_file import RowFile

#: A row group of a Parquet file is decoded whole: larger ones would fill the memory.
LARGEST_GROUP = 2**28
#: Types of Parquet columns that hold numbers, and text.
NUMBERS = ("int", "uint", "float", "double", "halffloat", "bool")
TEXT = re.compile(r"(large_)?string(_view)?|dictionary<values=(large_)?string,.*")


class Parquet(RowFile):
    """Numeric columns of a Parquet file.

    Rows are named by the index that pandas has stored, the one column of text, or a first column headed
    as ids.
    """

    def __init__(self, path: str):
        try:
            self.file = check_parquet(path, by_rows=True)
        except ModuleNotFoundError as error:
            raise ImportError(
                f"reading {Path(path).name} needs pyarrow; install it with: pip install 'manyview[app]'"
            ) from error
        self.lock = Lock()
        self._held = (-1, np.empty((0, 0)))
        fields = {field.name: str(field.type) for field in self.file.schema_arrow}
        if len(fields) < len(self.file.schema_arrow):
            counts = Counter(self.file.schema_arrow.names)
            twice = next(name for name, n in counts.items() if n > 1)
            raise ValueError(f"it has the column {twice!r} more than once; give each its own name")
        names = self._id_columns(fields)
        for name, kind in fields.items():
            if name not in names and not kind.startswith(NUMBERS):
                raise ValueError(
                    f"its column {name!r} ({kind}) holds no numbers; leave one column of text at "
                    "most, for the ids of the rows"
                )
        self.columns = [name for name in fields if name not in names]
        self.features = np.array(self.columns, dtype=object)
        if names:
            self.ids = self._column(names[0])
        meta = self.file.metadata
        sizes = [meta.row_group(g).num_rows for g in range(meta.num_row_groups)]
        self.ends = np.cumsum([0, *sizes])
        self.shape = (int(self.ends[-1]), len(self.columns))
        self.dtype = np.dtype(
            np.float32 if all(fields[c] == "float" for c in self.columns) else np.float64
        )
        self.piece = max(sizes, default=1)
        group = self.piece * self.shape[1] * self.dtype.itemsize
        if group > LARGEST_GROUP:
            rows = max(1, LARGEST_GROUP // 8 // max(1, self.shape[1] * self.dtype.itemsize))
            raise ValueError(
                f"its row groups take {group >> 20} MiB each and are read whole; write it again with "
                f"row_group_size={rows}"
            )

    def _id_columns(self, fields: dict[str, str]) -> list[str]:
        """The column with the ids of the rows, if any; `ids` is set where the index is a range."""
        index = (self.file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
        if len(index) > 1:
            raise ValueError(
                f"its index has {len(index)} levels; write it with one column of ids for the rows"
            )
        if index and isinstance(index[0], str) and index[0] in fields:
            return index
        if index and isinstance(index[0], dict):
            start, stop, step = (int(index[0][key]) for key in ("start", "stop", "step"))
            if (start, step) != (0, 1):
                self.ids = np.arange(start, stop, step)
                return []
        texts = [name for name, kind in fields.items() if TEXT.fullmatch(kind)]
        if texts or not fields:
            return texts[:1]
        first = next(iter(fields))
        # The whole column is read only where its heading leaves a doubt.
        known = is_id_heading(first, False) or (
            is_id_heading(first, True)
            and len(np.unique(self._column(first))) == self.file.metadata.num_rows
        )
        return [first] if known and len(fields) > 1 else []

    def _column(self, name: str) -> Array:
        values = self.file.read(columns=[name]).column(0)
        if TEXT.fullmatch(str(values.type)):
            return np.array(values.to_pylist(), dtype=object)
        return values.to_numpy()

    def read(self, start: int, stop: int) -> Array:
        first = int(np.searchsorted(self.ends, start, side="right")) - 1
        last = int(np.searchsorted(self.ends, stop, side="left"))
        with self.lock:
            parts = []
            for g in range(first, last):
                low, high = (int(edge) for edge in self.ends[g : g + 2])
                parts.append(self._group(g)[max(start, low) - low : min(stop, high) - low])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _group(self, g: int) -> Array:
        if self._held[0] != g:
            table = self.file.read_row_group(g, columns=self.columns)
            block = np.empty((table.num_rows, len(self.columns)), dtype=self.dtype)
            for j in range(len(self.columns)):
                block[:, j] = table.column(j).to_numpy()
            self._held = (g, block)
        return self._held[1]


def check_parquet(path: str | Path, by_rows: bool = False) -> Any:
    """An open ParquetFile whose columns may be read."""
    import pyarrow.parquet as pq

    packed, file = Path(path).stat().st_size, pq.ParquetFile(path)
    check_flat(file.schema_arrow)
    claimed = file.metadata
    what = f"its table of {claimed.num_rows} rows and {claimed.num_columns} columns"
    wanted = 8 * claimed.num_rows * claimed.num_columns
    (check_claim if by_rows else check_held)(wanted, packed, what)
    return file


def check_flat(schema: Any) -> None:
    """Refuse tables in which a cell holds several values."""
    from pyarrow import types

    for field in schema:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if types.is_nested(kind) or types.is_binary(kind):
            raise ValueError(
                f"its column {field.name!r} ({field.type}) does not hold one number or text in each row; "
                "leave it out, or spread it over several columns"
            )
