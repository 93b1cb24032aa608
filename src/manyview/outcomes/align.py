"""Tables as users pass them (DataFrame, dict, sequence), aligned with the labels by id."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from numbers import Integral, Number, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from manyview._labels import as_list
from manyview._types import Array, Clustering
from manyview.views.ids import places

#: Longest text printed in a cell or quoted in a sentence, and most rows printed.
WIDTH, HEIGHT = 40, 60
#: What is no entry of a column.
NESTED = list | tuple | dict | set | np.ndarray


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


# --- texts -----------------------------------------------------------------------------------------


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


# --- tables ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Table:
    """Columns and, where the user gave any, the ids of their rows.

    ``columns`` is a DataFrame of objects and categories, its rows numbered. ``numbered``: pandas
    numbered the rows 0, 1, 2, … before; these are ids only together with other such numbers.
    """

    name: str
    columns: Any
    ids: list[Any] | None = None
    numbered: bool = False

    @property
    def n(self) -> int:
        return len(self.columns)

    def numbered_like(self, ids: Sequence[Any] | None) -> Table:
        """Return the same with the row numbers as ids, if ``ids`` are such numbers.

        A table that was sorted or filtered keeps the numbers it had, and so is matched to one that
        was not. Patients 1 to n are no rows 0 to n − 1.
        """
        if self.ids is None and self.numbered and ids is not None:
            whole = (isinstance(i, Integral) and not isinstance(i, bool) for i in ids)
            if all(whole) and all(0 <= i < self.n for i in ids):
                return replace(self, ids=list(range(self.n)))
        return self


def read_table(name: str, data: Any) -> Table:
    """Read a table (DataFrame, dict of columns) or one column, with its ids if it has any."""
    pd, polars = pandas(), sys.modules.get("polars")
    pairs: list[tuple[Any, Any]] = [(name, data)]
    ids, numbered, n = None, False, 0
    if isinstance(data, pd.DataFrame):
        pairs, n = [(h, data.iloc[:, j]) for j, h in enumerate(data.columns)], len(data)
    elif polars is not None and isinstance(data, polars.DataFrame):
        pairs = [(heading, data[heading].to_list()) for heading in data.columns]
    elif isinstance(data, Mapping):
        pairs = list(data.items())
    if isinstance(data, pd.DataFrame | pd.Series):
        index = data.index
        numbered = isinstance(index, pd.RangeIndex) and (index.start, index.step) == (0, 1)
        ids = None if numbered else index.tolist()
        check_unique(name, ids)
    columns: dict[str, Any] = {}
    for heading, values in pairs:
        if str(heading) in columns:
            raise ValueError(f"{name} has two columns named {quoted(str(heading))}; rename one")
        columns[str(heading)] = _series(str(heading), values)
    lengths = {heading: len(column) for heading, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of {name} differ in length: {lengths}")
    index = range(n or next(iter(lengths.values()), 0))
    return Table(name, pd.DataFrame(columns, index=index), ids, numbered)


def read_single(name: str, data: Any) -> Table:
    """Read one column: a sequence, a Series, or a dict of id → value."""
    if isinstance(data, Mapping):
        check_unique(name, list(data))
        return replace(read_table(name, list(data.values())), ids=list(data))
    table = read_table(name, data)
    if table.columns.shape[1] != 1:
        raise ValueError(f"{name} must be one column, got a table of {table.columns.shape[1]}")
    return table


def _series(name: str, values: Any) -> Any:
    """A column as objects; what a pandas categorical says about its levels is kept."""
    pd, shape = pandas(), getattr(values, "shape", None)
    if shape is not None and len(shape) != 1:
        raise ValueError(f"{name} must be 1-D, one value per sample, but has shape {shape}")
    column = isinstance(values, Iterable) or hasattr(values, "__array__")
    if isinstance(values, str | bytes) or not column:
        raise ValueError(
            f"{name} must hold one value per sample, but is of type {type(values).__name__}"
        )
    if isinstance(values, set | frozenset):
        raise ValueError(f"{name} is a set, which has no order; pass a list")
    if isinstance(values, pd.Series) and isinstance(values.dtype, pd.CategoricalDtype):
        return values.reset_index(drop=True)
    return pd.Series(as_list(values), dtype=object)


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
            "keep one row for each sample"
        )


def is_missing(value: Any) -> bool:
    """Tell None, NaN, NaT and pandas.NA from values."""
    return pandas().isna(value) is True


# --- labels ----------------------------------------------------------------------------------------


class Groups(NamedTuple):
    """Clusters of the samples that have one.

    Attributes
    ----------
    codes : ndarray (n,)
        Cluster of every sample, an index into ``names``; −1 where it has none of them.
    names : tuple
        The clusters as the user calls them, in order.
    rows : ndarray (n,)
        Positions of the samples among those given.
    """

    codes: Array
    names: tuple[Any, ...]
    rows: Array

    @property
    def sizes(self) -> Array:
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))

    def only(self, keep: Array) -> Groups:
        """Return the groups of the samples marked in ``keep``; every name stays."""
        return Groups(self.codes[keep], self.names, self.rows[keep])

    def without_empty(self) -> Groups:
        """Return the same groups without the names of empty ones."""
        used, codes = np.unique(self.codes, return_inverse=True)
        return Groups(codes, tuple(self.names[k] for k in used), self.rows)


class Matched(NamedTuple):
    """Labels, and other tables in the order of the labels; notes say what was left out.

    ``present[k]`` marks the samples that occur in ``tables[k]``; its rows are missing elsewhere.
    """

    groups: Groups
    tables: list[Any]
    present: list[Array]
    notes: list[str]


def match(labels: Any, others: Sequence[Table], ids: Any = None) -> Matched:
    """Bring ``others`` to the order of ``labels``, by ids where both have them.

    Labels −1, None and NaN are left out.
    """
    read = read_labels(labels, ids)
    notes: list[str] = []
    for other in others:
        read = read.numbered_like(other.ids)
    known = read.ids
    first = next((other for other in others if other.ids is not None), None)
    if known is None and first is not None and first.n == read.n:
        notes.append(f"The labels have no ids; they are matched by position with {first.name}.")
        known = first.ids
    others = [other.numbered_like(known) for other in others]
    rows = [_rows(read.n, known, other, notes) for other in others]
    groups = read_groups(as_list(read.columns["labels"]), notes)
    matched = Matched(groups, [], [], notes)
    for other, row in zip(others, rows, strict=True):
        here = row[groups.rows]
        matched.tables.append(other.columns.reindex(here))
        matched.present.append(here >= 0)
        if (here < 0).any():
            lacking = counted(int((here < 0).sum()), "labeled sample")
            notes.append(f"Absent from {other.name}: {lacking}.")
    return matched


def _rows(n: int, ids: list[Any] | None, other: Table, notes: list[str]) -> Array:
    """Return the row of ``other`` for each label, −1 where there is none."""
    if ids is None or other.ids is None:
        if other.n != n:
            raise ValueError(
                f"labels has {n} entries and {other.name} has {other.n}; pass both with ids (a pandas "
                "Series or DataFrame indexed by id, or ids=) or one value per label"
            )
        if ids is not None:
            notes.append(
                f"{other.name} has no ids; its rows are matched with the labels by position."
            )
        return np.arange(n)
    rows = places(ids, other.ids)
    shared = int((rows >= 0).sum())
    if not shared:
        raise ValueError(
            f"labels and {other.name} share no id: labels has {ids[0]!r}, {other.name} has "
            f"{other.ids[0]!r}; give one sample one id everywhere, as text or as a number"
        )
    if shared < other.n:
        unlabeled = counted(other.n - shared, "row")
        notes.append(f"Left out: {unlabeled} of {other.name} without a label.")
    return rows


def read_labels(labels: Any, ids: Any = None) -> Table:
    """Return labels as a table of one column, with their ids if there are any."""
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
    table = read_single("labels", labels)
    known = table.ids if known is None else known
    if known is not None and len(known) != table.n:
        raise ValueError(
            f"ids has {len(known)} entries and labels has {table.n}; give one id per label"
        )
    check_unique("labels", known)
    return Table("labels", table.columns.set_axis(["labels"], axis=1), known, table.numbered)


def read_groups(values: list[Any], notes: list[str]) -> Groups:
    """Number the clusters in their natural order; leave out samples without one."""
    for i, value in enumerate(values):
        if isinstance(value, NESTED):
            raise ValueError(
                f"labels must be 1-D, one per sample, but entry {i} is a {type(value).__name__}"
            )
    kept = [i for i, value in enumerate(values) if not _is_unlabeled(value)]
    if not kept:
        raise ValueError(
            f"none of the {len(values)} samples has a cluster (all labels are −1 or missing); "
            "pass the labels of a clustering"
        )
    if len(kept) < len(values):
        without = counted(len(values) - len(kept), "sample")
        notes.append(f"Left out: {without} without a cluster (−1 or missing).")
    codes, names = coded([values[i] for i in kept])
    if len(names) > max(50, len(kept) // 2):
        raise ValueError(
            f"labels has {len(names)} different values for {len(kept)} samples "
            f"(the first is {quoted(names[0])}); these are no clusters: pass one label per cluster"
        )
    return Groups(codes, names, np.array(kept, dtype=np.intp))


def coded(values: Sequence[Any]) -> tuple[Array, tuple[Any, ...]]:
    """Return values as indices into their distinct ones, and these in their natural order.

    Numbers come first, by value; then texts by letters, with the numbers inside them by value.
    """

    def order(name: Any) -> tuple[int, float, str]:
        if isinstance(name, Real):
            return (0, float(name), "")
        return (1, 0.0, re.sub(r"\d+", lambda digits: digits[0].zfill(12), str(name)))

    names = tuple(sorted(dict.fromkeys(values), key=order))
    return places(values, names), names


def _is_unlabeled(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() in ("", "-1")
    return is_missing(value) or (
        isinstance(value, Number) and not isinstance(value, bool) and value == -1
    )
