"""Clinical columns: their kind (number, ordered, category, or why none), and which are technical."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from manyview._labels import as_list
from manyview._types import Array
from manyview.views.ids import places

from .align import coded, counted, is_missing, pandas, quoted

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
#: Levels with a well-known order: tumour stages, TNM, grades, low to high.
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


class _Untestable(Exception):
    """Why a column is of no kind."""


def read_column(name: str, data: Any, kind: Any = None) -> Column:
    """Type a column; ``kind`` is one of `KINDS`, a sequence of levels in order, or None to look."""
    if not (kind is None or kind in KINDS if isinstance(kind, str | None) else _is_levels(kind)):
        raise ValueError(
            f"the kind of column {quoted(name)} must be one of {list(KINDS)} or the list of its levels "
            f"in order, got {kind!r}"
        )
    values = as_list(data)
    absent = np.array([stands_for_missing(value) for value in values], dtype=bool)
    known = [value for value, gone in zip(values, absent.tolist(), strict=True) if not gone]
    words = Counter(v.strip() for v in values if isinstance(v, str) and stands_for_missing(v))
    notes = []
    if words:
        entries = counted(sum(words.values()), "entry")
        notes.append(f"Read as missing: {entries} such as {quoted(next(iter(words)))}.")
    full = np.full(len(values), np.nan)
    try:
        _check_testable(known, kind is not None)
        read, found, levels = _read(known, _declared(data) if kind is None else kind)
    except _Untestable as reason:
        return Column(name, None, full, absent, (), str(reason), " ".join(notes))
    full[~absent] = found
    column = Column(name, read, full, absent, levels)
    if kind is None and read == "ordered" and not _declared(data):
        notes.append(f"Its levels have the order {', '.join(map(str, levels))}.")
    if kind is None and may_be_codes(column):
        notes.append(
            f"Its {len(np.unique(found))} whole numbers are treated as amounts; if they are codes (of a "
            'site, a batch), write them as words or say that the kind is "category".'
        )
    return replace(column, note=" ".join(notes))


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
        raise ValueError(f"{name}: {column.reason}")
    return column.values


def _is_levels(kind: Any) -> bool:
    return isinstance(kind, Sequence) and len(kind) > 1 and len(set(kind)) == len(kind)


def _declared(data: Any) -> Any:
    """Return what a pandas categorical says about itself."""
    pd = pandas()
    if not (isinstance(data, pd.Series) and isinstance(data.dtype, pd.CategoricalDtype)):
        return None
    return list(data.cat.categories) if data.cat.ordered else "category"


def stands_for_missing(value: Any) -> bool:
    """Tell missing values, and texts that say so, from others."""
    if isinstance(value, str):
        return value.strip().lower() in MISSING_WORDS
    return is_missing(value)


def _check_testable(values: list[Any], kind_is_given: bool) -> None:
    """Refuse a column that is of no kind at all."""
    if not values:
        raise _Untestable("every value is missing")
    dates: list[Any] = [v for v in values if isinstance(v, date | datetime | time | np.datetime64)]
    texts = [v.strip() for v in values if isinstance(v, str)]
    if not dates and not kind_is_given:
        dates = [v for v in texts if DATE.fullmatch(v)]
    if len(dates) > MOSTLY * len(values):
        raise _Untestable(
            f"it holds dates ({quoted(str(dates[0]))}); turn them into a number, "
            "for example days since diagnosis"
        )
    for v in values:
        if isinstance(v, timedelta | np.timedelta64):
            raise _Untestable(f"it holds spans of time ({v}); turn them into a number of days")
    for v in values:
        if not isinstance(v, str | Real | np.bool_):
            raise _Untestable(f"it holds a {type(v).__name__}; entries must be numbers or texts")
    commas = [v for v in texts if COMMA.fullmatch(v)]
    if len(commas) > MOSTLY * len(values):
        raise _Untestable(
            f"it holds numbers with a decimal comma ({quoted(commas[0])}); write a point"
        )


def _read(values: list[Any], kind: Any) -> tuple[str, Array, tuple[Any, ...]]:
    """Return kind, values and levels."""
    if _is_levels(kind) and not isinstance(kind, str):
        for v in values:
            if v not in kind:
                raise _Untestable(f"the value {quoted(v)} is not among the levels given")
        return "ordered", places(values, kind).astype(float), tuple(kind)
    numbers, texts = _numbers(values)
    if kind == "number" and texts:
        raise _Untestable(f"{len(texts)} entries are no numbers, such as {quoted(texts[0])}")
    if kind is None and texts and len(texts) < len(values):
        raise _Untestable(
            f"it mixes {len(values) - len(texts)} numbers and {len(texts)} texts such as "
            f"{quoted(texts[0])}; make them one kind, empty where a value is missing"
        )
    if not texts and kind != "category":
        if not np.isfinite(numbers).all():
            raise _Untestable(f"{int((~np.isfinite(numbers)).sum())} entries are infinite")
        distinct = np.unique(numbers)
        if kind is not None or len(distinct) > 2:
            return kind or "number", numbers, ()
        # Two values are two categories: a share is what people read.
        plain = [int(v) if float(v).is_integer() else float(v) for v in distinct.tolist()]
        return "category", np.searchsorted(distinct, numbers).astype(float), tuple(plain)
    cleaned = [v.strip() if isinstance(v, str) else v for v in values]
    codes, levels = coded(cleaned)
    if len(levels) > 20 and len(levels) > len(values) / 2:
        raise _Untestable(
            f"{len(levels)} of its {len(values)} values differ: these look like names or free text"
        )
    if len(levels) > MAX_LEVELS:
        raise _Untestable(
            f"it has {len(levels)} levels, {MAX_LEVELS} at most can be compared; join rare ones"
        )
    order = _known_order(levels) if kind in (None, "ordered") else None
    if kind == "ordered" and order is None:
        raise _Untestable("the order of its levels is not known; give the list of them in order")
    if order:
        levels = tuple(sorted(levels, key=order))
        codes = places(cleaned, levels)
    return "ordered" if order else "category", codes.astype(float), levels


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


def _known_order(levels: Sequence[Any]) -> Callable[[Any], tuple[float, str]] | None:
    """Return the key that orders levels of a well-known order, if they are such."""
    if not all(isinstance(level, str) for level in levels):
        return None
    if all(level.lower() in WORDS for level in levels):
        return lambda level: (WORDS.index(level.lower()), "")
    found = {level: TNM.fullmatch(level) for level in levels}
    if all(found.values()) and len({m[1] for m in found.values() if m}) == 1:
        return lambda level: (int(level[1]), level[2:])
    stages = {level: STAGE.fullmatch(level) for level in levels}
    if all(stages.values()):
        parts = {level: match.groups() for level, match in stages.items() if match}
        return lambda level: (ROMAN[parts[level][0].lower()], "".join(parts[level][1:]).lower())
    return None


class Term(NamedTuple):
    """A column of a linear model: a covariate in units of its deviation, or one level of a category."""

    name: str
    unit: float = 1.0
    reference: str = ""


def design_of(columns: Sequence[Column], n: int) -> tuple[list[Term], Array]:
    """Terms and columns of a linear model of ``n`` samples.

    Numbers and ordered levels are in units of their deviation, missing ones at the mean; a category has
    a column for each level but the commonest, and one where it is missing.
    """
    terms, parts = [], [np.empty((n, 0))]
    for column in columns:
        gone = np.isnan(column.values)
        if column.kind == "category":
            codes = np.where(gone, len(column.levels), column.values).astype(np.intp)
            counts = np.bincount(codes, minlength=len(column.levels) + 1)
            names = [str(level) for level in (*column.levels, "missing")]
            used = [k for k in np.flatnonzero(counts) if k != counts.argmax()]
            terms += [Term(f"{column.name}={names[k]}", 1.0, names[counts.argmax()]) for k in used]
            parts.append(np.array(codes[:, None] == used, dtype=float).reshape(n, len(used)))
        elif (spread := np.nanstd(column.values)) > 0:
            mean = np.nanmean(column.values)
            per = "level" if column.levels else "unit"
            terms.append(Term(column.name, float(spread), f"per {per}"))
            parts.append(((np.where(gone, mean, column.values) - mean) / spread)[:, None])
    return terms, np.hstack(parts)


# --- technical columns ---

#: What a technical column is called: how, where and when samples were measured.
_NOUN = re.compile(
    "batch|plate|site|cent(er|re)|run|lane|chip|slide|flowcell|array|cartridge|kit|pool|well|lab(oratory)?"
    "|library|hospital|clinic|institut(e|ion)|facility|scanner|sequencer|instrument|machine|platform"
    "|technician|operator|shipment|tss|study|dataset|cohort"
)
#: What may come after the noun ("plate_id", "Center.Name"), and what makes a site one of the body.
_SUFFIX = re.compile("ids?|no|nr|num|number|code|name|label|index")
_BODY = re.compile(
    "primary|tumou?r|anatomic(al)?|metasta(tic|sis)|disease|biopsy|body|cancer|lesion|organ|tissue|relapse"
    "|recurrence|neoplasm|surg(ery|ical)|specimen"
)


def is_technical(name: str) -> bool:
    """Tell from its heading that a column says how, where or when samples were measured."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    words = re.findall(r"[a-z]+", re.sub(r"flow[ _.-]?cell", "flowcell", spaced.lower()))
    while len(words) > 1 and _SUFFIX.fullmatch(words[-1]):
        words.pop()
    if not words or not _NOUN.fullmatch(words[-1]):
        return False
    return words[-1] != "site" or not any(map(_BODY.fullmatch, words[-2:-1]))


def read_levels(name: str, data: Any) -> Column | None:
    """A technical column as levels, even if these are numbers (plate 1 to 40); None for all others."""
    column = read_column(name, data, "category") if is_technical(name) else None
    return None if column is None or column.kind is None else column
