"""Columns as users hold them (DataFrame, dict, sequence), with the ids of their rows if there are any."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from manyview._labels import as_list
from manyview._types import Array

from .table import quoted


@dataclass(frozen=True, eq=False)
class Held:
    """Columns of equal length and, where the user gave any, the ids of their rows.

    ``numbered``: pandas numbers the rows 0, 1, 2, …, which are ids beside others of the kind only.
    """

    name: str
    columns: dict[str, Any]
    n: int
    ids: list[Any] | None = None
    numbered: bool = False

    def beside(self, ids: Sequence[Any] | None) -> Held:
        """Return the same with the numbers of its rows as ids, if ``ids`` are such numbers.

        A table that was sorted or filtered keeps the numbers it had, and so is matched to one that
        was not. Patients 1 to n are no rows 0 to n − 1.
        """
        if self.ids is not None or not self.numbered or ids is None:
            return self
        rows = all(_is_whole(i) and 0 <= i < self.n for i in ids)
        return replace(self, ids=list(range(self.n))) if rows else self


def hold(name: str, data: Any) -> Held:
    """Take a table (DataFrame, dict of columns) or one column, with its ids if it has any."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        columns = _named(name, data.columns, lambda j: data.iloc[:, j])
        return Held(name, columns, len(data), *_index(pandas, name, data.index))
    if pandas is not None and isinstance(data, pandas.Series):
        return Held(name, {name: data}, len(data), *_index(pandas, name, data.index))
    if polars is not None and isinstance(data, polars.DataFrame):
        columns = {c: data[c].to_list() for c in data.columns}
        return Held(name, columns, data.height)
    if isinstance(data, Mapping):
        columns = _named(name, list(data), list(data.values()).__getitem__)
        lengths = {column: _length(column, values) for column, values in columns.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"the columns of {name} differ in length: {lengths}")
        return Held(name, columns, next(iter(lengths.values()), 0))
    return Held(name, {name: data}, _length(name, data))


def hold_column(name: str, data: Any) -> Held:
    """Take one column: a sequence, a Series, or a dict of id → value."""
    if isinstance(data, Mapping):
        check_unique(name, list(data))
        return Held(name, {name: list(data.values())}, len(data), list(data))
    held = hold(name, data)
    if len(held.columns) != 1:
        raise ValueError(f"{name} must be one column, got a table of {len(held.columns)}")
    return held


def _named(table: str, names: Iterable[Any], column: Any) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for j, name in enumerate(names):
        if str(name) in columns:
            raise ValueError(f"{table} has two columns named {quoted(str(name))}; rename one")
        columns[str(name)] = column(j)
    return columns


def _length(name: str, values: Any) -> int:
    shape = getattr(values, "shape", None)
    if shape is not None and len(shape) != 1:
        raise ValueError(f"{name} must be 1-D, one value per observation, but has shape {shape}")
    column = isinstance(values, Iterable) or hasattr(values, "__array__")
    if isinstance(values, str | bytes) or not column:
        raise ValueError(
            f"{name} must hold one value per observation, but is of type {type(values).__name__}"
        )
    if isinstance(values, set | frozenset):
        raise ValueError(f"{name} is a set, which has no order; pass a list")
    return len(as_list(values))


def pick(values: Any, rows: Array) -> Any:
    """Return the entries of a column at ``rows``, None where a row is negative."""
    if (rows >= 0).all():
        pandas = sys.modules.get("pandas")
        if pandas is not None and isinstance(values, pandas.Series):
            return values.iloc[rows]
        if isinstance(values, np.ndarray):
            return values[rows]
    items = as_list(values)
    return [items[i] if i >= 0 else None for i in rows.tolist()]


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _index(pandas: Any, name: str, index: Any) -> tuple[list[Any] | None, bool]:
    """Return the ids of a pandas object, or none and that its rows are numbered 0, 1, 2, …"""
    if isinstance(index, pandas.RangeIndex) and index.start == 0 and index.step == 1:
        return None, True
    ids = index.tolist()
    check_unique(name, ids)
    return ids, False


def check_unique(name: str, ids: list[Any] | None) -> None:
    """Refuse ids that are missing or occur twice."""
    seen: set[Any] = set()
    for i, value in enumerate(ids or ()):
        if is_missing(value):
            raise ValueError(f"row {i} of {name} has no id; give every row one, or none at all")
        if value in seen:
            raise ValueError(
                f"{name} has the id {quoted(value)} more than once; ids must be unique: "
                "keep one row for each observation"
            )
        seen.add(value)


def is_missing(value: Any) -> bool:
    """Tell None, NaN, NaT and pandas.NA from values."""
    if value is None:
        return True
    if isinstance(value, str | bool | int):
        return False
    if isinstance(value, float):
        return math.isnan(value)
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA refuses to be a truth value; arrays have many
        return not isinstance(value, Iterable)
