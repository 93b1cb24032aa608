"""Which columns of a clinical table hold the time and the event, told from their headings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

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
EVENTS = tuple(
    re.compile(pattern)
    for pattern in (
        r"os|os_(?:event|status)|overall_survival_(?:event|status)",
        r"dead|death|died|deceased|is_dead|vital_status|survival_status",
        r"event|fustat|status",
    )
)
_UNITS = (("month", "months"), ("day", "days"), ("week", "weeks"), ("year", "years"))


class Endpoint(NamedTuple):
    """The columns of time and event, None where not recognised, and a sentence on it."""

    time: str | None
    event: str | None
    note: str


def recognise(names: Iterable[str]) -> Endpoint:
    """Find the columns of overall survival by their headings.

    Both are needed, and each must be the only one of its kind; otherwise nothing is guessed.
    """
    names = list(names)
    time, event = _only(names, TIMES), _only(names, EVENTS)
    if len(time) == len(event) == 1:
        return Endpoint(
            time[0],
            event[0],
            f"survival: time from the column {time[0]!r}, event from {event[0]!r} (recognised by "
            "their names; name others by --time and --event)",
        )
    if not time and not event:
        return Endpoint(None, None, "")
    doubt = [
        f"{len(found)} columns may be the {what} ({', '.join(map(repr, found[:4]))})"
        if len(found) > 1
        else f"no column is known to be the {what}"
        for what, found in (("time", time), ("event", event))
        if len(found) != 1
    ]
    return Endpoint(
        None, None, f"no survival: {' and '.join(doubt)}; name them by --time and --event"
    )


def unit_of(name: str) -> str:
    """The unit of a column of times, if its heading says so: "os_months" → "months"."""
    text = _plain(name)
    return next((unit for word, unit in _UNITS if word in text), "")


def _only(names: list[str], patterns: tuple[re.Pattern[str], ...]) -> list[str]:
    for pattern in patterns:
        found = [name for name in names if pattern.fullmatch(_plain(name))]
        if found:
            return found
    return []


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
