"""How a claim is judged: paired differences over the runs, what chance may do to them, and a word."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, stdev
from typing import NamedTuple

from scipy.special import stdtrit

from manyview.paper.page.read import Row

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
    #: What would have to be measured for another verdict.
    change: str
    #: What the claim is about, where an experiment has claims of several kinds.
    topic: str = ""

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


class Rule(NamedTuple):
    """Where the mean has to lie, as numbers and in words."""

    low: float
    high: float
    words: str

    def __call__(self, found: Interval) -> str:
        """Whether the mean lies there: yes, no, or not to be told from so few runs."""
        bottom, top = found.mean - found.margin, found.mean + found.margin
        if found.n < 2:
            return UNDECIDED
        if self.low <= bottom and top <= self.high:
            return AGREES
        return DIFFERS if top < self.low or bottom > self.high else UNDECIDED

    def each(self, parts: Mapping[str, Interval]) -> dict[str, str]:
        return {name: self(found) for name, found in parts.items()}


ABOVE = Rule(TINY, math.inf, "above 0")
BELOW = Rule(-math.inf, -TINY, "below 0")


def within(tolerance: float) -> Rule:
    return Rule(-tolerance - TINY, tolerance + TINY, f"within {tolerance:g} of 0")


def interval(values: Sequence[float]) -> Interval:
    n = len(values)
    if not n:
        return Interval(math.nan, math.inf, 0)
    margin = math.inf if n < 2 else float(stdtrit(n - 1, 0.975)) * stdev(values) / math.sqrt(n)
    return Interval(mean(values), margin, n)


def paired(rows: Iterable[Row], others: Iterable[Row], column: str) -> Interval:
    """Of the differences between runs of the same number, which had the same seed."""
    theirs = {row["run"]: row[column] for row in others if is_number(row.get(column))}
    mine = {row["run"]: row[column] for row in rows if is_number(row.get(column))}
    return interval([mine[run] - theirs[run] for run in mine if run in theirs])


def judged(
    experiment: str,
    claim: str,
    paper: str,
    ours: str,
    each: Mapping[str, str],
    rule: Rule,
    *,
    difference: str = "",
    words: str = "",
    lead: str = "",
    parts: str = "comparisons",
    topic: str = "",
) -> Verdict:
    """The verdict on a claim from the outcome of each of its parts; ``words`` replace the usual ones."""
    said = lead + (words or told(each, parts))
    change = turning_point(each, rule)
    outcome = together(each.values())
    return Verdict(experiment, claim, paper, ours, difference, outcome, said, change, topic)


def of_one(
    experiment: str,
    claim: str,
    paper: str,
    ours: str,
    gap: Interval,
    rule: Rule,
    said: Sequence[str],
    more: str = "",
) -> Verdict:
    """The verdict on a claim of one part; ``said`` are the words for yes, for no, and for neither."""
    words = sentence(rule(gap), *said) + more
    each = {"": rule(gap)}
    return judged(experiment, claim, paper, ours, each, rule, difference=str(gap), words=words)


def together(outcomes: Iterable[str]) -> str:
    """Of a claim with several parts: partly, where some surely hold and others surely do not."""
    found = set(outcomes)
    if found == {AGREES}:
        return AGREES
    if DIFFERS in found:
        return PARTLY if AGREES in found else DIFFERS
    return UNDECIDED


def turning_point(each: Mapping[str, str], rule: Rule) -> str:
    """What would change the verdict."""

    def of(outcome: str) -> str:
        names = [name for name, found in each.items() if found == outcome]
        return "" if len(each) == 1 else f" of {_named(names)}"

    return {
        AGREES: f"An interval that is not wholly {rule.words}.",
        PARTLY: f"It agrees once the interval{of(DIFFERS)} lies wholly {rule.words} too.",
        DIFFERS: f"It agrees once the interval{of(DIFFERS)} lies wholly {rule.words}.",
        UNDECIDED: f"More runs, once the interval{of(UNDECIDED)} lies wholly {rule.words} or wholly not.",
    }[together(each.values())]


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
        said += f"; {words} {_named(names)}" if names else ""
    return f"{said}."


def sentence(outcome: str, yes: str, no: str, open_: str = "") -> str:
    """What to say of an outcome; by default, that the runs scatter too much."""
    said = {AGREES: yes, DIFFERS: no}
    return said.get(outcome, open_ or "The runs are too few, or scatter too much, to tell.")


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _named(names: Sequence[str]) -> str:
    return listed(names) if len(names) <= MANY else f"{len(names)} of them"
