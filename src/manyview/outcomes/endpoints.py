"""Time and event of survival in a clinical table: which columns they are, and how the event is coded."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from manyview._labels import as_list
from manyview._types import Array

from .align import quoted
from .columns import stands_for_missing

_UNIT = r"(?:time|days?|weeks?|months?|years?|yrs?|mo|d|m|y)"
#: The surest first; of the first pattern that fits any column, exactly one may fit.
TIMES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"os(?:_{_UNIT})+|overall_survival(?:_{_UNIT})*",
        rf"survival(?:_{_UNIT})*|time_to_(?:event|death)(?:_{_UNIT})?",
        rf"futime|follow_?up(?:_{_UNIT})*|time(?:_{_UNIT})?",
    )
)
#: Times of other endpoints: they end at the last visit, too, and must not be compared as plain numbers.
OTHER_TIMES = re.compile(
    rf"(?:pfs|pfi|dfs|dfi|dss|css|rfs|efs|d?mfs|lrfs|ttp|ttr)(?:_{_UNIT})+|\w+_survival(?:_{_UNIT})+"
    rf"|\w+_free(?:_{_UNIT})+|{_UNIT}_of_\w*survival"
    r"|days_to_(?:death|last_\w+|progression|recurrence|relapse|new_\w+)"
)
EVENTS = tuple(
    re.compile(pattern)
    for pattern in (
        r"os|os_(?:event|status)|overall_survival_(?:event|status)",
        r"dead|death|died|deceased|is_dead|vital_status|survival_status",
        r"event|fustat|status",
        r"(?:is_|still_)?alive",
        r"(?:is_|os_)?cens(?:or\w*)?(?:_(?:status|indicator))?",
    )
)
_UNITS = (("month", "months"), ("day", "days"), ("week", "weeks"), ("year", "years"))
#: Headings under which "yes" is no event. Under the last two, tables of both codings are common, so
#: that 0 and 1 say nothing: GBSG2 has cens = 1 for an event, the NCDB a vital status of 1 for alive.
_ALIVE = re.compile(r"(?:is_|still_)?(?:alive|living)|survived")
_CENSORED = re.compile(r"(?:.*_)?cens(?:or[a-z]*)?(?:_.*)?")
_EITHER = re.compile(
    r"vital(?:_status)?|survival(?:_status)?|.*_free|.*surviv(?:or|ing)|no_?event|no[nt]_.*|(?:.*_)?lost(?:_.*)?"
)
HAPPENED = frozenset(("dead", "deceased", "died", "death", "event", "uncensored", "not censored"))
NOT_HAPPENED = frozenset(("alive", "living", "censored", "no event"))
YES, NO = frozenset(("true", "yes")), frozenset(("false", "no"))
#: Values of a column among which the reader chooses.
MOST_OFFERED = 6


class UnclearEvent(ValueError):
    """An event column whose values do not say where the event happened.

    Attributes
    ----------
    why : str
    column : str
    values : list of str
        One of them means that the event happened.
    """

    def __init__(self, why: str, column: str, values: list[str]):
        self.why, self.column, self.values = why, column, values
        super().__init__(f"{why}; code it as 1 (it happened) and 0 (censored), and name it “event”")

    @property
    def answers(self) -> list[str]:
        """What the reader may mean: "COLUMN=VALUE", where VALUE says that the event happened."""
        few = len(self.values) <= MOST_OFFERED
        return [f"{self.column}={value}" for value in self.values] if few else []


class Endpoint(NamedTuple):
    """The columns of time and event, None where not recognized, a sentence on them, and what is unclear."""

    time: str | None
    event: str | None
    note: str
    doubt: UnclearEvent | None = None


def recognize(columns: Mapping[str, Sequence[Any]]) -> Endpoint:
    """Find the columns of overall survival by their headings, and see whether the event can be read.

    Both are needed, and each must be the only one of its kind; otherwise nothing is guessed.
    """
    time, event = _only(columns, TIMES), _only(columns, EVENTS)
    if len(time) == len(event) == 1:
        try:
            read_events(columns[event[0]], event[0])
        except UnclearEvent as doubt:
            return Endpoint(time[0], event[0], f"no survival: {doubt.why}", doubt)
        return Endpoint(
            time[0],
            event[0],
            f"survival: time from the column {time[0]!r}, event from {event[0]!r} (recognized by "
            "their names)",
        )
    if not time and not event:
        return Endpoint(None, None, "")
    problems = [
        f"{len(found)} columns may be the {what} ({', '.join(map(repr, found[:4]))})"
        if len(found) > 1
        else f"no {what} column was recognized"
        for what, found in (("time", time), ("event", event))
        if len(found) != 1
    ]
    return Endpoint(None, None, f"no survival: {' and '.join(problems)}")


def split_event(text: str, names: Collection[str]) -> tuple[str, str | None]:
    """ "censorship=0" → the column and the value that means the event; a column of that very name first."""
    column, mark, value = text.rpartition("=")
    known = {name.lower() for name in names}
    return (column, value) if mark and text.lower() not in known else (text, None)


def read_events(data: Any, name: str = "event", happened: str | None = None) -> tuple[Array, str]:
    """Read a column of events: 1 happened, 0 censored, NaN missing; and a note on how it was read.

    ``name`` is the heading, which tells an event from a column of the living or the censored.
    ``happened`` is the value that means the event, all others being censored. Without it a coding
    that may mean either is an `UnclearEvent`.
    """
    texts = [None if stands_for_missing(value) else _text(value) for value in as_list(data)]
    values = sorted({text for text in texts if text is not None})
    codes: dict[str | None, int]
    if happened is None:
        codes = {text: code for text in values if (code := _code(text, _plain(name))) is not None}
        strange = next((text for text in values if text not in codes), None)
        if strange is not None:
            raise UnclearEvent(_unclear(name, strange, values), name, values)
    else:
        wanted = _text(happened).lower()
        codes = {text: int(text.lower() == wanted) for text in values}
        if values and not any(codes.values()):
            raise ValueError(
                f"{quoted(name)} never has the value {quoted(happened)}, which was said to mean the "
                f"event; its values are {', '.join(map(quoted, values[:MOST_OFFERED]))}"
            )
    read = np.array([np.nan if text is None else codes[text] for text in texts], dtype=float)
    if all(text.lower() in (("0", "false"), ("1", "true"))[codes[text]] for text in values):
        return read, ""
    values_of = [
        ", ".join(quoted(text) for text in values if codes[text] == code) or "nothing"
        for code in (1, 0)
    ]
    return read, f"In {name}, {values_of[0]} is read as an event and {values_of[1]} as censored."


def is_follow_up(name: str) -> bool:
    """Tell a time that ends at the event or at the last visit, by its heading."""
    return any(pattern.fullmatch(_plain(name)) for pattern in (*TIMES, OTHER_TIMES))


def unit_of(name: str) -> str:
    """The unit of a column of times, if its heading says so: "os_months" → "months"."""
    text = _plain(name)
    return next((unit for word, unit in _UNITS if word in text), "")


def _code(text: str, heading: str) -> int | None:
    """1 for an event, 0 for none, None where the value may mean either."""
    word = text.lower()
    if number := re.match(r"([01]):\s*(.*)", word):  # "1:DECEASED"; "1:CENSORED" may mean either
        contrary = NOT_HAPPENED if number[1] == "1" else HAPPENED
        return None if number[2] in contrary else int(number[1])
    if word in HAPPENED | NOT_HAPPENED:
        return int(word in HAPPENED)
    if word not in {"0", "1"} | YES | NO or _EITHER.fullmatch(heading):
        return None
    affirmed = word == "1" or word in YES
    if _CENSORED.fullmatch(heading):
        return None if word in ("0", "1") else int(not affirmed)
    return int(affirmed != bool(_ALIVE.fullmatch(heading)))


def _unclear(name: str, strange: str, values: list[str]) -> str:
    if strange in ("0", "1") or strange.lower() in YES | NO:
        other = "censored" if _CENSORED.fullmatch(_plain(name)) else "alive"
        one = "1" if "1" in values else strange
        return (
            f"{quoted(name)} holds {' and '.join(values)}, and {one} may mean “{other}” or that the "
            "event happened"
        )
    return (
        f"{quoted(name)} cannot be read as an event: event must be 1 (it happened) or 0 (censored), or "
        f"words such as 'dead' and 'alive', got {quoted(strange)}"
    )


def _text(value: Any) -> str:
    """A value as it is compared: 1, 1.0, "1" and "1.0" are the same."""
    if isinstance(value, Real) and not isinstance(value, bool) and float(value).is_integer():
        return str(int(float(value)))
    return re.sub(r"^([01])\.0+$", r"\1", str(value).strip())


def _only(names: Iterable[str], patterns: tuple[re.Pattern[str], ...]) -> list[str]:
    for pattern in patterns:
        found = [name for name in names if pattern.fullmatch(_plain(name))]
        if found:
            return found
    return []


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
