"""Tables as users pass them (DataFrame, dict, sequence), aligned with the labels by id."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from numbers import Integral, Number, Real
from pathlib import Path
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator

from manyview._labels import as_list
from manyview._types import Array
from manyview.io.writing import csv_bytes, write_whole
from manyview.views.ids import places

#: Longest text printed in a cell or quoted in a sentence.
WIDTH = 40
#: Most rows printed.
HEIGHT = 60


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length.

    Attributes
    ----------
    columns : dict of name → sequence
    absent : dict of name → str
        The word printed for a missing number of a column, such as "not reached".
    """

    columns: Mapping[str, Any]
    absent: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The headings."""
        return tuple(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> Sequence[Any]:
        return self.columns[name]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Iterate over the rows, each a dict of heading → value.

        Yields
        ------
        dict of str to value
        """
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the same columns (extra ``app``).

        Returns
        -------
        DataFrame
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas: pip install 'manyview[app]'; .rows() and .to_csv() do not"
            ) from error
        return pandas.DataFrame({name: list(values) for name, values in self.columns.items()})

    def to_csv(self, path: Any = None) -> str:
        """Write the table as CSV; return the text.

        A missing number is an empty cell. A text that a spreadsheet would run as a formula gets an
        apostrophe in front.

        Parameters
        ----------
        path : path, optional
            File to write; by default none is written.

        Returns
        -------
        str
        """
        content = csv_bytes(self.names, zip(*self.columns.values(), strict=True))
        if path is not None:
            write_whole(Path(path), content)
        return content.decode()

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        shown = min(len(self), HEIGHT)
        cells = [
            [short(name), *(self._cell(name, value) for value in list(values)[:shown])]
            for name, values in self.columns.items()
        ]
        widths = [max(map(len, column)) for column in cells]
        numeric = [all(_is_number(v) for v in values) for values in self.columns.values()]
        lines = [
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, numeric, strict=True)
            ).rstrip()
            for row in zip(*cells, strict=True)
        ]
        if len(self) > shown:
            lines.append(f"… and {len(self) - shown} more rows")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks; every text is escaped."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = [
            "".join(f"<td>{escape(self._cell(name, value))}</td>" for name, value in row.items())
            for row, _ in zip(self.rows(), range(HEIGHT), strict=False)
        ]
        rows = "".join(f"<tr>{cells}</tr>" for cells in body)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def _cell(self, name: str, value: Any) -> str:
        if value is None or (_is_number(value) and value != value):
            return self.absent.get(name, "–")
        if isinstance(value, float | np.floating):
            number = float(value)
            return f"{number:.3g}" if abs(number) < 1000 else f"{number:.0f}"
        return short(value)


def short(value: Any) -> str:
    """Return a value as one short printable line: line breaks shown, long texts cut."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def quoted(value: Any) -> str:
    """Return a value as it stands in a sentence: short, texts in quotation marks."""
    return repr(short(value)) if isinstance(value, str) else short(value)


def counted(n: int, word: str) -> str:
    """Return a number with its noun: "1 event", "2 events", "2 entries"."""
    if n == 1:
        return f"1 {word}"
    return f"{n} {word[:-1]}ies" if word.endswith("y") else f"{n} {word}s"


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


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


@runtime_checkable
class Clustering(Protocol):
    """A fitted clustering model, of this package or another."""

    labels_: Any


@dataclass(frozen=True, eq=False)
class Groups:
    """Clusters of the observations that have one.

    Attributes
    ----------
    codes : ndarray (n,)
        Cluster of every observation kept, an index into ``names``.
    names : tuple
        The clusters as the user calls them, in order.
    rows : ndarray (n,)
        Positions of the observations kept among those given.
    """

    codes: Array
    names: tuple[Any, ...]
    rows: Array

    @property
    def sizes(self) -> Array:
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))

    def only(self, keep: Array) -> Groups:
        """Return the groups of the observations marked in ``keep``; every name stays."""
        return Groups(self.codes[keep], self.names, self.rows[keep])

    def without_empty(self) -> Groups:
        """Return the same groups less the names nobody bears."""
        used, codes = np.unique(self.codes, return_inverse=True)
        return Groups(codes, tuple(self.names[k] for k in used), self.rows)


@dataclass(eq=False)
class Matched:
    """Labels and other columns in the order of the labels; notes collect what was left out."""

    groups: Groups
    columns: list[dict[str, Any]]
    present: list[Array]
    notes: list[str] = field(default_factory=list)


def match(labels: Any, others: Sequence[Held], ids: Any = None) -> Matched:
    """Bring ``others`` to the order of ``labels``, by ids where both have them.

    Labels −1, None and NaN are left out. ``present[k]`` marks which of the observations kept occur
    in ``others[k]``; columns hold None for the rest.
    """
    given = read_labels(labels, ids)
    values = given.columns["labels"]
    notes: list[str] = []
    for other in others:
        given = given.beside(other.ids)
    known = _adopt(given.n, others, notes) if given.ids is None else given.ids
    others = [other.beside(known) for other in others]
    places = [_places(len(values), known, other, notes) for other in others]
    groups = read_groups(values, notes)
    columns, present = [], []
    for other, place in zip(others, places, strict=True):
        here = place[groups.rows]
        columns.append({name: pick(column, here) for name, column in other.columns.items()})
        present.append(here >= 0)
        if (here < 0).any():
            lacking = counted(int((here < 0).sum()), "labelled observation")
            notes.append(f"Absent from {other.name}: {lacking}.")
    return Matched(groups, columns, present, notes)


# --- labels ------------------------------------------------------------------------------------


def read_labels(labels: Any, ids: Any = None) -> Held:
    """Return labels as a list, with their ids if there are any."""
    known = None if ids is None else as_list(ids)
    if isinstance(labels, BaseEstimator) and not isinstance(labels, Clustering):
        raise ValueError(f"this {type(labels).__name__} has no labels yet; call fit first")
    if isinstance(labels, Clustering):
        names = vars(labels).get("sample_names_in_")
        known = list(np.asarray(names).tolist()) if known is None and names is not None else known
        labels = labels.labels_
    elif isinstance(labels, Mapping):
        known = list(labels) if known is None else known
        labels = list(labels.values())
    held = hold("labels", labels)
    values = as_list(held.columns["labels"])
    known = held.ids if known is None else known
    if known is not None and len(known) != len(values):
        raise ValueError(
            f"ids has {len(known)} entries and labels has {len(values)}; give one id per label"
        )
    check_unique("labels", known)
    return Held("labels", {"labels": values}, len(values), known, held.numbered)


def read_groups(values: list[Any], notes: list[str]) -> Groups:
    """Number the clusters in their natural order; leave out who has none."""
    for i, value in enumerate(values):
        if isinstance(value, list | tuple | dict | set | np.ndarray):
            raise ValueError(
                f"labels must be 1-D, one per observation, but entry {i} is a {type(value).__name__}"
            )
    kept = [i for i, value in enumerate(values) if not _is_unlabelled(value)]
    left_out = len(values) - len(kept)
    if not kept:
        raise ValueError(
            f"none of the {len(values)} observations has a cluster (all labels are −1 or missing); "
            "pass the labels of a clustering"
        )
    if left_out:
        without = counted(left_out, "observation")
        notes.append(f"Left out: {without} without a cluster (−1 or missing).")
    names = sorted(dict.fromkeys(values[i] for i in kept), key=order_of)
    code = {name: k for k, name in enumerate(names)}
    codes = np.array([code[values[i]] for i in kept], dtype=np.intp)
    if len(names) > max(50, len(kept) // 2):
        raise ValueError(
            f"labels has {len(names)} different values for {len(kept)} observations "
            f"(the first is {quoted(names[0])}); these are no clusters: pass one label per cluster"
        )
    return Groups(codes, tuple(names), np.array(kept, dtype=np.intp))


def order_of(name: Any) -> tuple[int, float, str]:
    """Sort numbers by value, texts by letters with the numbers inside them by value."""
    if isinstance(name, Real):
        return (0, float(name), "")
    parts, digits = [], ""
    for c in str(name) + "\0":
        if c.isdecimal():
            digits += c
            continue
        parts.append(digits.zfill(12) if digits else "")
        parts.append(c)
        digits = ""
    return (1, 0.0, "".join(parts))


def _is_unlabelled(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() in ("", "-1")
    return is_missing(value) or (
        isinstance(value, Number) and not isinstance(value, bool) and value == -1
    )


# --- ids ----------------------------------------------------------------------------------------


def _adopt(n: int, others: Sequence[Held], notes: list[str]) -> list[Any] | None:
    """Labels without ids stand in the order of the first column that has them."""
    first = next((other for other in others if other.ids is not None), None)
    if first is None or first.n != n:
        return None
    notes.append(f"The labels carry no ids; they are taken to be in the order of {first.name}.")
    return first.ids


def _places(n: int, ids: list[Any] | None, other: Held, notes: list[str]) -> Array:
    """Return the row of ``other`` for each label, −1 where there is none."""
    if ids is None or other.ids is None:
        if other.n != n:
            raise ValueError(
                f"labels has {n} entries and {other.name} has {other.n}; pass both with ids (a pandas "
                "Series or DataFrame indexed by id, or ids=) or one value per label"
            )
        if ids is not None:
            notes.append(
                f"{other.name} carries no ids; its rows are taken in the order of the labels."
            )
        return np.arange(n)
    rows = places(ids, other.ids)
    shared = int((rows >= 0).sum())
    if not shared:
        raise ValueError(
            f"labels and {other.name} share no id: labels has {ids[0]!r}, {other.name} has "
            f"{other.ids[0]!r}; give one observation one id everywhere, as text or as a number"
        )
    if shared < other.n:
        unlabelled = counted(other.n - shared, "row")
        notes.append(f"Left out: {unlabelled} of {other.name} without a label.")
    return rows
