"""Tables as users pass them (DataFrame, dict, sequence), aligned with the labels by id."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from numbers import Integral, Number, Real
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator

from manyview._labels import as_list
from manyview._types import Array
from manyview.views.ids import places

#: Longest text printed in a cell or quoted in a sentence, and most rows printed.
WIDTH, HEIGHT = 40, 60


# --- pandas, and texts -----------------------------------------------------------------------------


@cache
def pandas() -> Any:
    """Import pandas, or name the extra that has it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "manyview.outcomes needs pandas: pip install 'manyview[outcomes]'"
        ) from error
    return pandas


def frame(columns: Mapping[str, Iterable[Any]]) -> Any:
    """Make a DataFrame of columns; None and mixed values stay what they are."""
    return pandas().DataFrame({name: list(values) for name, values in columns.items()})


def printed(table: Any) -> str:
    """Return a DataFrame as text: three digits, long texts cut, at most `HEIGHT` rows."""
    return table.to_string(
        index=False,
        max_rows=HEIGHT,
        max_colwidth=WIDTH,
        na_rep="–",
        float_format=lambda x: f"{x:.3g}" if abs(x) < 1000 else f"{x:.0f}",
    )


def short(value: Any) -> str:
    """Return a value as one short printable line: line breaks shown, long texts cut."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def quoted(value: Any) -> str:
    """Return a value for a sentence: short, texts in quotation marks."""
    return repr(short(value)) if isinstance(value, str) else short(value)


def counted(n: int, word: str) -> str:
    """Return a number with its noun: "1 event", "2 events", "2 entries"."""
    if n == 1:
        return f"1 {word}"
    return f"{n} {word[:-1]}ies" if word.endswith("y") else f"{n} {word}s"


# --- columns ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Held:
    """Columns of equal length and, where the user gave any, the ids of their rows.

    ``numbered``: pandas numbers the rows 0, 1, 2, …; these are ids only together with other such numbers.
    """

    name: str
    columns: dict[str, Any]
    n: int
    ids: list[Any] | None = None
    numbered: bool = False

    def beside(self, ids: Sequence[Any] | None) -> Held:
        """Return the same with the row numbers as ids, if ``ids`` are such numbers.

        A table that was sorted or filtered keeps the numbers it had, and so is matched to one that
        was not. Patients 1 to n are no rows 0 to n − 1.
        """
        if self.ids is None and self.numbered and ids is not None:
            whole = (isinstance(i, Integral) and not isinstance(i, bool) for i in ids)
            if all(whole) and all(0 <= i < self.n for i in ids):
                return replace(self, ids=list(range(self.n)))
        return self


def hold(name: str, data: Any) -> Held:
    """Read a table (DataFrame, dict of columns) or one column, with its ids if it has any."""
    pd, polars = pandas(), sys.modules.get("polars")
    names: list[Any] = [name]
    values: list[Any] = [data]
    ids, numbered = None, False
    if isinstance(data, pd.DataFrame):
        names, values = list(data.columns), [data.iloc[:, j] for j in range(data.shape[1])]
    elif polars is not None and isinstance(data, polars.DataFrame):
        names, values = data.columns, [data[c].to_list() for c in data.columns]
    elif isinstance(data, Mapping):
        names, values = list(data), list(data.values())
    if isinstance(data, pd.DataFrame | pd.Series):
        index = data.index
        numbered = isinstance(index, pd.RangeIndex) and (index.start, index.step) == (0, 1)
        ids = None if numbered else index.tolist()
        check_unique(name, ids)
    columns: dict[str, Any] = {}
    for heading, column in zip(map(str, names), values, strict=True):
        if heading in columns:
            raise ValueError(f"{name} has two columns named {quoted(heading)}; rename one")
        columns[heading] = column
    lengths = {heading: _length(heading, column) for heading, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of {name} differ in length: {lengths}")
    n = len(data) if isinstance(data, pd.DataFrame) else next(iter(lengths.values()), 0)
    return Held(name, columns, n, ids, numbered)


def hold_column(name: str, data: Any) -> Held:
    """Read one column: a sequence, a Series, or a dict of id → value."""
    if isinstance(data, Mapping):
        check_unique(name, list(data))
        return Held(name, {name: list(data.values())}, len(data), list(data))
    held = hold(name, data)
    if len(held.columns) != 1:
        raise ValueError(f"{name} must be one column, got a table of {len(held.columns)}")
    return held


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
    return len(values) if hasattr(values, "__len__") else len(as_list(values))


def pick(values: Any, rows: Array) -> Any:
    """Return the entries of a column at ``rows``, None where a row is negative."""
    if (rows >= 0).all():
        if isinstance(values, np.ndarray):
            return values[rows]
        if isinstance(values, pandas().Series):
            return values.iloc[rows]
    items = as_list(values)
    return [items[i] if i >= 0 else None for i in rows.tolist()]


def check_unique(name: str, ids: list[Any] | None) -> None:
    """Refuse ids that are missing or occur twice."""
    if ids is None:
        return
    known = pandas().Series(ids, dtype=object)
    if (gone := known.isna()).any():
        row = int(gone.argmax())
        raise ValueError(f"row {row} of {name} has no id; give every row one, or none at all")
    if (twice := known.duplicated()).any():
        raise ValueError(
            f"{name} has the id {quoted(known[twice.argmax()])} more than once; ids must be unique: "
            "keep one row for each observation"
        )


def is_missing(value: Any) -> bool:
    """Tell None, NaN, NaT and pandas.NA from values."""
    return pandas().isna(value) is True


# --- labels ----------------------------------------------------------------------------------------


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
        Cluster of every observation, an index into ``names``.
    names : tuple
        The clusters as the user calls them, in order.
    rows : ndarray (n,)
        Positions of the observations among those given.
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
        """Return the same groups without the names of empty ones."""
        used, codes = np.unique(self.codes, return_inverse=True)
        return Groups(codes, tuple(self.names[k] for k in used), self.rows)


@dataclass(eq=False)
class Matched:
    """Labels and other columns in the order of the labels; notes say what was left out."""

    groups: Groups
    columns: list[dict[str, Any]]
    present: list[Array]
    notes: list[str] = field(default_factory=list)


def match(labels: Any, others: Sequence[Held], ids: Any = None) -> Matched:
    """Bring ``others`` to the order of ``labels``, by ids where both have them.

    Labels −1, None and NaN are left out. ``present[k]`` marks the remaining observations that occur
    in ``others[k]``; columns hold None for the rest.
    """
    given = read_labels(labels, ids)
    notes: list[str] = []
    for other in others:
        given = given.beside(other.ids)
    known = given.ids
    first = next((other for other in others if other.ids is not None), None)
    if known is None and first is not None and first.n == given.n:
        notes.append(f"The labels carry no ids; they are taken to be in the order of {first.name}.")
        known = first.ids
    others = [other.beside(known) for other in others]
    rows = [_rows(given.n, known, other, notes) for other in others]
    groups = read_groups(given.columns["labels"], notes)
    matched = Matched(groups, [], [], notes)
    for other, row in zip(others, rows, strict=True):
        here = row[groups.rows]
        matched.columns.append({name: pick(c, here) for name, c in other.columns.items()})
        matched.present.append(here >= 0)
        if (here < 0).any():
            lacking = counted(int((here < 0).sum()), "labelled observation")
            notes.append(f"Absent from {other.name}: {lacking}.")
    return matched


def _rows(n: int, ids: list[Any] | None, other: Held, notes: list[str]) -> Array:
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


def read_labels(labels: Any, ids: Any = None) -> Held:
    """Return labels as a list, with their ids if there are any."""
    known = None if ids is None else as_list(ids)
    if isinstance(labels, BaseEstimator) and not isinstance(labels, Clustering):
        raise ValueError(f"this {type(labels).__name__} has no labels yet; call fit first")
    if isinstance(labels, Clustering):
        names = vars(labels).get("sample_names_in_")
        known = np.asarray(names).tolist() if known is None and names is not None else known
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
    """Number the clusters in their natural order; leave out observations without one."""
    for i, value in enumerate(values):
        if isinstance(value, list | tuple | dict | set | np.ndarray):
            raise ValueError(
                f"labels must be 1-D, one per observation, but entry {i} is a {type(value).__name__}"
            )
    kept = [i for i, value in enumerate(values) if not _is_unlabelled(value)]
    if not kept:
        raise ValueError(
            f"none of the {len(values)} observations has a cluster (all labels are −1 or missing); "
            "pass the labels of a clustering"
        )
    if len(kept) < len(values):
        without = counted(len(values) - len(kept), "observation")
        notes.append(f"Left out: {without} without a cluster (−1 or missing).")
    names = sorted(dict.fromkeys(values[i] for i in kept), key=order_of)
    if len(names) > max(50, len(kept) // 2):
        raise ValueError(
            f"labels has {len(names)} different values for {len(kept)} observations "
            f"(the first is {quoted(names[0])}); these are no clusters: pass one label per cluster"
        )
    code = {name: k for k, name in enumerate(names)}
    codes = np.array([code[values[i]] for i in kept], dtype=np.intp)
    return Groups(codes, tuple(names), np.array(kept, dtype=np.intp))


def order_of(name: Any) -> tuple[int, float, str]:
    """Sort numbers by value, texts by letters with the numbers inside them by value."""
    if isinstance(name, Real):
        return (0, float(name), "")
    return (1, 0.0, re.sub(r"\d+", lambda digits: digits[0].zfill(12), str(name)))


def _is_unlabelled(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() in ("", "-1")
    return is_missing(value) or (
        isinstance(value, Number) and not isinstance(value, bool) and value == -1
    )
