"""How a claim is judged: paired differences over the runs, what chance may do to them, and a word."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, stdev
from typing import NamedTuple

from scipy.special import stdtrit

from manyview.reproduction.page.read import Row

AGREES, PARTLY, UNDECIDED, DIFFERS = "agrees", "partly", "undecided", "does not agree"
NOT_MEASURED = "not measured"
#: In the place of the paper's value: an observation of ours, which counts neither for nor against it.
NOT_THEIRS = "not in the paper"
#: Words for the answers to our own questions.
OWN = {AGREES: "yes", DIFFERS: "no"}
#: Means nearer than this to the paper's are called the same.
SAME = 0.02
#: Mean scores that differ by less are called alike.
ALIKE = 0.05
#: More names than this are only counted.
MANY = 6
#: Below what any score can show: keeps 0.96 - 0.94 within 0.02, and a tie from being above.
TINY = 1e-9


class Verdict(NamedTuple):
    """A row of the summary table."""

    experiment: str
    claim: str
    paper: str
    ours: str
    difference: str
    verdict: str
    words: str

    @property
    def is_own(self) -> bool:
        return self.paper == NOT_THEIRS


class Interval(NamedTuple):
    """A mean, and the half width of its 95 % interval: infinite for one value, which tells nothing."""

    mean: float
    margin: float
    n: int

    def __str__(self) -> str:
        margin = "(one run)" if self.n < 2 else f"± {self.margin:.3f}"
        return f"{signed(self.mean)} {margin}"


def interval(values: Sequence[float]) -> Interval:
    n = len(values)
    if not n:
        return Interval(math.nan, math.inf, 0)
    margin = math.inf if n < 2 else float(stdtrit(n - 1, 0.975)) * stdev(values) / math.sqrt(n)
    return Interval(mean(values), margin, n)


def paired(rows: Iterable[Row], others: Iterable[Row], column: str) -> Interval:
    """Of the differences between runs of the same number, which had the same seed."""
    theirs = {row["run"]: row[column] for row in others if _is_number(row.get(column))}
    mine = {row["run"]: row[column] for row in rows if _is_number(row.get(column))}
    return interval([mine[run] - theirs[run] for run in mine if run in theirs])


def judge(found: Interval, low: float = -math.inf, high: float = math.inf) -> str:
    """Whether the mean lies from low to high: yes, no, or not to be told from so few runs."""
    bottom, top = found.mean - found.margin, found.mean + found.margin
    if found.n < 2:
        return UNDECIDED
    if low <= bottom and top <= high:
        return AGREES
    return DIFFERS if top < low or bottom > high else UNDECIDED


def above(found: Interval) -> str:
    return judge(found, low=TINY)


def below(found: Interval) -> str:
    return judge(found, high=-TINY)


def within(found: Interval, tolerance: float) -> str:
    return judge(found, -tolerance - TINY, tolerance + TINY)


def together(outcomes: Iterable[str]) -> str:
    """Of a claim with several parts: partly, where some surely hold and others surely do not."""
    found = set(outcomes)
    if found == {AGREES}:
        return AGREES
    if DIFFERS in found:
        return PARTLY if AGREES in found else DIFFERS
    return UNDECIDED


def signed(value: float, digits: int = 3) -> str:
    """With its sign, and never "-0.00"."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def listed(names: Sequence[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def told(each: Mapping[str, str], parts: str) -> str:
    """For how many parts of a claim it holds, and which are the others."""
    if len(each) == 1:
        (outcome,) = each.values()
        return sentence(outcome, "Clearly so.", "Clearly not so.", "Not clear.")
    n = sum(outcome == AGREES for outcome in each.values())
    if n == len(each):
        return f"Clearly so for all {n} {parts}."
    said = f"Clearly so for {n or 'none'} of {len(each)} {parts}"
    for words, outcome in (("not so for", DIFFERS), ("not clear for", UNDECIDED)):
        names = [name for name, found in each.items() if found == outcome]
        who = listed(names) if len(names) <= MANY else f"{len(names)} of them"
        said += f"; {words} {who}" if names else ""
    return f"{said}."


def sentence(outcome: str, yes: str, no: str, open_: str = "") -> str:
    """What to say of an outcome; by default, that the runs scatter too much."""
    said = {AGREES: yes, DIFFERS: no}
    return said.get(outcome, open_ or "The runs are too few, or scatter too much, to tell.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
