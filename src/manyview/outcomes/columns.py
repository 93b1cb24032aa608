"""The kind of a clinical column: number, ordered, category, or why it cannot be tested."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from numbers import Real
from typing import Any

import numpy as np

from manyview._labels import as_list
from manyview._types import Array

from .held import counted, is_missing, order_of, quoted

KINDS = ("number", "ordered", "category")
#: Texts that stand for a missing value, whatever their case.
MISSING_WORDS = frozenset(
    [
        *("", "na", "n/a", "#n/a", "nan", "null", "nil", "unknown", "missing", "--", "'--", "-"),
        *("not available", "not reported", "not applicable", "not evaluated", ".", "?"),
        *("[not available]", "[not applicable]", "[not evaluated]", "[unknown]", "[discrepancy]"),
    ]
)
#: More levels than this are no categories that could be compared.
MAX_LEVELS = 100
#: Whole numbers of no more distinct values than this, each so often on average, may be codes (site 1,
#: 2, 3) as well as amounts.
MOST_CODES, FEWEST_PER_CODE = 10, 5
#: Share of the entries that must look alike before a column is taken for dates or decimal commas.
MOSTLY = 0.5
DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})([T ].*)?"
    r"|\d{1,2}[- ][A-Za-z]{3}[- ](\d{4}|\d{2})"
)
COMMA = re.compile(r"[-+]?\d+,\d+")
#: Levels with an order everybody knows: tumour stages, TNM, grades, low to high.
STAGE = re.compile(r"(?:stage[ _-]?)?(0|iv|i{1,3})([abc]?)(\d?)", re.IGNORECASE)
TNM = re.compile(r"([TNMG])(\d)([a-d]?)")
WORDS = ("very low", "low", "intermediate", "medium", "moderate", "high", "very high")
ROMAN = {"0": 0, "i": 1, "ii": 2, "iii": 3, "iv": 4}


@dataclass(frozen=True, eq=False)
class Column:
    """A column as it is tested.

    Attributes
    ----------
    name : str
    kind : {"number", "ordered", "category"} or None
        None: it is not tested, and ``reason`` says why.
    values : ndarray of float
        Numbers, or indices into ``levels``; NaN where missing, and everywhere if not tested.
    absent : ndarray of bool
        Where the value is missing.
    levels : tuple
    reason, note : str
        Sentences, or empty.
    """

    name: str
    kind: str | None
    values: Array
    absent: Array
    levels: tuple[Any, ...] = ()
    reason: str = ""
    note: str = ""

    def only(self, keep: Array) -> Column:
        """Return the entries marked in ``keep``."""
        return replace(self, values=self.values[keep], absent=self.absent[keep])


def read_column(name: str, data: Any, kind: Any = None) -> Column:
    """Type a column; ``kind`` is one of `KINDS`, a sequence of levels in order, or None to look."""
    if not (kind is None or kind in KINDS if isinstance(kind, str | None) else _is_levels(kind)):
        raise ValueError(
            f"the kind of column {quoted(name)} must be one of {list(KINDS)} or the list of its levels "
            f"in order, got {kind!r}"
        )
    values = as_list(data)
    told = kind
    if kind is None:
        kind = _declared(data)
    absent = np.array([stands_for_missing(value) for value in values], dtype=bool)
    kept = [value for value, gone in zip(values, absent.tolist(), strict=True) if not gone]
    words = Counter(v.strip() for v in values if isinstance(v, str) and stands_for_missing(v))
    note = ""
    if words:
        entries = counted(sum(words.values()), "entry")
        note = f"Read as missing: {entries} such as {quoted(next(iter(words)))}."
    reason = "every value is missing" if not kept else _refusal(kept, told is not None)
    if not reason:
        kind, read, levels, reason, more = _read(kept, kind)
        note = " ".join(part for part in (note, more) if part)
    if reason:
        nothing = np.full(len(values), np.nan)
        return Column(name, None, nothing, absent, (), f"not tested: {reason}", note)
    full = np.full(len(values), np.nan)
    full[~absent] = read
    column = Column(name, kind, full, absent, levels, "", note)
    if told is None and may_be_codes(column):
        return replace(column, note=" ".join(filter(None, (note, _taken_as_amounts(read)))))
    return column


def may_be_codes(column: Column) -> bool:
    """Tell a column of few whole numbers: site 1, 2, 3 and grade 1, 2, 3 look the same."""
    if column.kind != "number" or column.levels:
        return False
    values = column.values[~column.absent]
    distinct = np.unique(values)
    few = len(distinct) <= min(MOST_CODES, len(values) / FEWEST_PER_CODE)
    return few and bool((distinct == np.floor(distinct)).all())


def read_numbers(name: str, data: Any) -> Array:
    """Read a column that must hold numbers, NaN where missing; anything else is a ValueError."""
    column = read_column(name, data, "number")
    if column.kind is None and not column.reason.endswith("every value is missing"):
        raise ValueError(f"{name}: {column.reason.removeprefix('not tested: ')}")
    return column.values


def _taken_as_amounts(values: Array) -> str:
    return (
        f"Its {len(np.unique(values))} whole numbers are taken as amounts; if they are codes (of a "
        'site, a batch), write them as words or say that the kind is "category".'
    )


def _is_levels(kind: Any) -> bool:
    return isinstance(kind, Sequence) and len(kind) > 1 and len(set(kind)) == len(kind)


def _declared(data: Any) -> Any:
    """Return what a pandas categorical says about itself."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(data, pandas.Series):
        return None
    if not isinstance(data.dtype, pandas.CategoricalDtype):
        return None
    return list(data.cat.categories) if data.cat.ordered else "category"


def stands_for_missing(value: Any) -> bool:
    """Tell missing values, and texts that say so, from others."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING_WORDS
    return is_missing(value)


def _refusal(values: list[Any], kind_is_told: bool) -> str:
    """Say why a column is of no kind at all, if so."""
    dates: list[Any] = [v for v in values if isinstance(v, date | datetime | time | np.datetime64)]
    texts = [v for v in values if isinstance(v, str)]
    if not dates and not kind_is_told:
        dates = [v for v in texts if DATE.fullmatch(v.strip())]
    if len(dates) > MOSTLY * len(values):
        return (
            f"it holds dates ({quoted(str(dates[0]))}); turn them into a number, "
            "for example days since diagnosis"
        )
    spans = [v for v in values if isinstance(v, timedelta | np.timedelta64)]
    if spans:
        return f"it holds spans of time ({spans[0]}); turn them into a number of days"
    odd = next((v for v in values if not isinstance(v, str | Real | np.bool_)), None)
    if odd is not None:
        return f"it holds a {type(odd).__name__}; entries must be numbers or texts"
    commas = [v for v in texts if COMMA.fullmatch(v.strip())]
    if len(commas) > MOSTLY * len(values):
        return f"it holds numbers with a decimal comma ({quoted(commas[0])}); write a point"
    return ""


def _read(values: list[Any], kind: Any) -> tuple[str, Array, tuple[Any, ...], str, str]:
    """Return kind, values, levels, reason not to test, note."""
    nothing = ("", np.empty(0), ())
    if _is_levels(kind) and not isinstance(kind, str):
        strange = next((v for v in values if v not in kind), None)
        if strange is not None:
            return *nothing, f"the value {quoted(strange)} is not among the levels given", ""
        return "ordered", _codes(values, kind), tuple(kind), "", ""
    numbers, texts = _numbers(values)
    if kind == "number" and texts:
        return *nothing, f"{len(texts)} entries are no numbers, such as {quoted(texts[0])}", ""
    if kind is None and texts and len(texts) < len(values):
        return *nothing, _mixed(len(values) - len(texts), texts), ""
    if not texts and kind != "category":
        if not np.isfinite(numbers).all():
            return *nothing, f"{int((~np.isfinite(numbers)).sum())} entries are infinite", ""
        distinct = np.unique(numbers)
        if kind is not None or len(distinct) > 2:
            return kind or "number", numbers, (), "", ""
        # Two values are two categories: a share is what people read.
        plain = [int(v) if float(v).is_integer() else float(v) for v in distinct.tolist()]
        return "category", np.searchsorted(distinct, numbers).astype(float), tuple(plain), "", ""
    return _read_levels(values, kind)


def _read_levels(values: list[Any], kind: Any) -> tuple[str, Array, tuple[Any, ...], str, str]:
    cleaned = [v.strip() if isinstance(v, str) else v for v in values]
    distinct = sorted(dict.fromkeys(cleaned), key=order_of)
    nothing = ("", np.empty(0), ())
    if len(distinct) > 20 and len(distinct) > len(values) / 2:
        return (
            *nothing,
            f"{len(distinct)} of its {len(values)} values differ: these look like names or free text",
            "",
        )
    if len(distinct) > MAX_LEVELS:
        return (
            *nothing,
            f"it has {len(distinct)} levels, {MAX_LEVELS} at most can be compared; join rare ones",
            "",
        )
    order = _known_order(distinct) if kind in (None, "ordered") else None
    if order is not None:
        levels = sorted(distinct, key=order)
        told = "" if kind else f"Its levels are taken in the order {', '.join(map(str, levels))}."
        return "ordered", _codes(cleaned, levels), tuple(levels), "", told
    if kind == "ordered":
        return *nothing, "the order of its levels is not known; give the list of them in order", ""
    return "category", _codes(cleaned, distinct), tuple(distinct), "", ""


def _mixed(n: int, texts: list[Any]) -> str:
    return (
        f"it mixes {n} numbers and {len(texts)} texts such as {quoted(texts[0])}; make them one kind, "
        "empty where a value is missing"
    )


def _numbers(values: list[Any]) -> tuple[Array, list[Any]]:
    """Return the entries as floats, and those that are none."""
    numbers, texts = np.full(len(values), np.nan), []
    for i, value in enumerate(values):
        # float() would take "1_000" and "infinity" as well.
        if isinstance(value, str) and ("_" in value or value.strip()[-1:].isalpha()):
            texts.append(value)
            continue
        try:
            numbers[i] = float(value)
        except (TypeError, ValueError):
            texts.append(value)
    return numbers, texts


def _codes(values: list[Any], levels: Sequence[Any]) -> Array:
    code = {level: float(k) for k, level in enumerate(levels)}
    return np.array([code[value] for value in values])


def _known_order(levels: list[Any]) -> Callable[[Any], tuple[float, str]] | None:
    """Return the key that orders levels whose order everybody knows, if they are such."""
    if not all(isinstance(level, str) for level in levels):
        return None
    if all(level.lower() in WORDS for level in levels):
        return lambda level: (WORDS.index(level.lower()), "")
    found = {level: TNM.fullmatch(level) for level in levels}
    if all(found.values()) and len({m[1] for m in found.values() if m}) == 1:
        return lambda level: (int(level[1]), level[2:])
    if all(STAGE.fullmatch(level) for level in levels):
        return _stage
    return None


def _stage(level: str) -> tuple[float, str]:
    parts = STAGE.fullmatch(level)
    assert parts is not None
    return (ROMAN[parts[1].lower()], (parts[2] + parts[3]).lower())
