"""Each claim of the paper beside what was measured, with a verdict in plain words.

A function per experiment yields its claims. All are judged alike: each part of a claim is an interval,
and a rule says where that has to lie.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit
from scipy.stats import ttest_ind

from .results import SCORES, Results, grouped, listed, signed, spread, two, where
from .texts import DIGITS, LIHC, MEASURE_LIHC, TEXTS

AGREES, PARTLY, UNDECIDED, DIFFERS = "agrees", "partly", "undecided", "does not agree"
#: Below what any score can show: keeps 0.96 - 0.94 within 0.02, and a tie from being above.
TINY = 1e-9
NOT_MEASURED = "not measured"
#: In the place of the paper's value: an observation of ours, which counts neither for nor against it.
NOT_THEIRS = "not in the paper"
#: Words for the answers to our own questions.
OWN = {AGREES: "yes", DIFFERS: "no"}
#: Means nearer than this to the paper's are called the same; mean scores that differ by less, alike.
SAME, ALIKE = 0.02, 0.05
#: A run of less ACC has failed; one so far below the median has ended in a poorer clustering.
FAILED, POOR = 0.90, 0.05
#: A clustering with less NMI knows nothing of the classes; its recall is high all the same where it puts
#: nearly everything into one cluster.
MEANINGLESS = 0.1
#: A part of V*'s graph with fewer of the 2000 digits is small: a quarter of an average cluster.
SMALL = 50
PROPOSED, MULTINMF = ("WM-NMF", "NMF-W1", "NMF-W2"), ("MultiNMF1", "MultiNMF2")
MLRSSC = ("P-MLRSSC", "C-MLRSSC", "P-KMLRSSC", "C-KMLRSSC")
#: The values of the column "tuning", in the words of the page.
TUNINGS = {"default": "default", "digits": "tuned"}
LEADERS = ("WM-NMF", "NMF-W2")
#: Every claim on LIHC, and what the paper says in numbers; the accuracy of the network it names.
LIHC_CLAIMS: dict[str, str] = TEXTS["claims"]["lihc"]
SUPERVISED = 0.951
PARTS = {
    "seconds_graph": "graph",
    "seconds_start": "start",
    "seconds_loop": "loop",
    "seconds_labels": "labels",
}
#: The paper does not say where its curve begins: the change is counted from both.
COUNTS = {0: "the count from the start", 1: "the count from the first iteration"}
#: Kinds of noise, and their scenarios in the tables. The synthetic data come with theirs.
KINDS = {
    "some": ("some observations", "as given"),
    "replaced": ("replaced",),
    "added": ("added",),
}
#: The column of a weight with noise, and its symbol.
WEIGHTS = {"w": ("w_noisy", "w"), "alpha": ("alpha", "α")}
#: What the paper contributes, and the experiments or topics of the claims that bear on it.
CONTRIBUTIONS: dict[str, list[str]] = TEXTS["contributions"]


# --- How a claim is judged ---


class Interval(NamedTuple):
    """A mean, and the half width of its 95 % interval: infinite for one value, which tells nothing."""

    mean: float
    margin: float
    n: int

    def __str__(self) -> str:
        margin = "(one run)" if self.n < 2 else f"± {self.margin:.3f}"
        return f"{signed(self.mean)} {margin}"


def interval(values: Iterable[float]) -> Interval:
    found = pd.Series(list(values), dtype=float)
    n = len(found)
    margin = math.inf if n < 2 else float(stdtrit(n - 1, 0.975)) * float(found.sem())
    return Interval(float(found.mean()), margin, n)


def paired(rows: pd.DataFrame, others: pd.DataFrame, column: str) -> Interval:
    """Of the differences between runs of the same number, which had the same seed."""
    mine, theirs = (frame.groupby("run")[column].last() for frame in (rows, others))
    return interval((mine - theirs).dropna())


def apart(values: Iterable[float], others: Iterable[float]) -> Interval:
    """Of the difference of two means of different runs, by Welch's rule."""
    a, b = np.asarray(list(values), float), np.asarray(list(others), float)
    gap = float(a.mean() - b.mean())
    if min(len(a), len(b)) < 2:
        return Interval(gap, math.inf, 1)
    with warnings.catch_warnings():  # of runs that are all the same
        warnings.simplefilter("ignore")
        low, high = ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    return Interval(gap, float(np.nan_to_num((high - low) / 2)), len(a) + len(b))


class Rule(NamedTuple):
    """Where the mean has to lie."""

    low: float
    high: float

    def __call__(self, found: Interval) -> str:
        """Whether the whole interval lies there, or wholly elsewhere, or neither."""
        bottom, top = found.mean - found.margin, found.mean + found.margin
        if found.n < 2:
            return UNDECIDED
        if self.low <= bottom and top <= self.high:
            return AGREES
        return DIFFERS if top < self.low or bottom > self.high else UNDECIDED


ABOVE, BELOW = Rule(TINY, math.inf), Rule(-math.inf, -TINY)


def within(tolerance: float) -> Rule:
    return Rule(-tolerance - TINY, tolerance + TINY)


#: Exponents up to this much above 1 are called about linear: what grows more slowly, all the more.
LINEAR = Rule(-math.inf, 0.3)
#: Of the whole change of the objective, what may be left after 50 iterations where it has converged.
SETTLED = Rule(-1e-9, 0.05)


def together(outcomes: Iterable[str]) -> str:
    """Of a claim with several parts: partly, where some surely hold and others surely do not."""
    found = set(outcomes)
    if found == {AGREES}:
        return AGREES
    if DIFFERS in found:
        return PARTLY if AGREES in found else DIFFERS
    return UNDECIDED


def told(each: Mapping[str, str], parts: str) -> str:
    """For how many parts of a claim it holds, and which are the others."""
    if len(each) == 1:
        (outcome,) = each.values()
        return {AGREES: "Clearly so.", DIFFERS: "Clearly not so."}.get(outcome, "Not clear.")
    n = sum(outcome == AGREES for outcome in each.values())
    if n == len(each):
        return f"Clearly so for all {n} {parts}."
    said = f"Clearly so for {n or 'none'} of {len(each)} {parts}"
    for words, outcome in (("not so for", DIFFERS), ("not clear for", UNDECIDED)):
        names = [name for name, found in each.items() if found == outcome]
        said += f"; {words} {listed(names, 6)}" if names else ""
    return f"{said}."


class Claim(NamedTuple):
    """A row of the summary table."""

    experiment: str
    claim: str
    paper: str
    ours: str
    difference: str
    verdict: str
    words: str
    #: What the claim is about, where an experiment has claims of several kinds.
    topic: str = ""

    @property
    def is_own(self) -> bool:
        return self.paper == NOT_THEIRS


def judged(
    experiment: str,
    claim: str,
    paper: str,
    ours: str,
    parts: Mapping[str, Interval] | Interval,
    rule: Rule,
    said: Sequence[str] | str = "comparisons",
    *,
    difference: str | None = None,
    lead: str = "",
    more: str = "",
    topic: str = "",
) -> Claim:
    """A claim whose parts follow a rule; ``said``: sentences for yes, no and open, or the parts' name."""
    each = {"": rule(parts)} if isinstance(parts, Interval) else _each(rule, parts)
    outcome = together(each.values())
    if isinstance(said, str):
        words = told(each, said)
    else:
        unsure = "The runs are too few, or scatter too much, to tell."
        yes, no, open_ = (*said, unsure)[:3]
        words = {AGREES: yes, DIFFERS: no}.get(outcome, open_ or unsure)
    if difference is None:
        difference = str(parts) if isinstance(parts, Interval) else ""
    return Claim(experiment, claim, paper, ours, difference, outcome, lead + words + more, topic)


def _each(rule: Rule, parts: Mapping[str, Interval]) -> dict[str, str]:
    return {name: rule(found) for name, found in parts.items()}


def compared(
    experiment: str,
    claim: str,
    mine: pd.DataFrame,
    theirs: pd.DataFrame,
    said: Sequence[str] = ("Its ACC is clearly above.", "Its ACC is clearly not above."),
    *,
    column: str = "acc",
    rule: Rule = ABOVE,
    ours: str = "",
    more: str = "",
) -> Claim:
    """An observation of ours: whether some runs are above others of the same seeds, by default in ACC."""
    gap = paired(mine, theirs, column)
    ours = ours or f"{spread(mine[column])} against {spread(theirs[column])}"
    return judged(experiment, claim, NOT_THEIRS, ours, gap, rule, said, more=more)


def verdicts(results: Results) -> list[Claim]:
    """All claims whose experiment was run, in the order of the page."""
    makers = (digits, left_out, mlrssc, lihc, sweeps, seeds, runtime, objective, degeneracy, noise)
    found = [claim for make in makers for claim in make(results)]
    return [c._replace(verdict=OWN.get(c.verdict, c.verdict)) if c.is_own else c for c in found]


def contributions(found: Sequence[Claim]) -> list[tuple[str, str]]:
    """Each contribution of the paper, and how many of its claims got which verdict."""
    lines = []
    for contribution, topics in CONTRIBUTIONS.items():
        mine = [c.verdict for c in found if not c.is_own and (c.topic or c.experiment) in topics]
        if mine:
            said = listed(f"{verdict} {n}" for verdict, n in pd.Series(mine).value_counts().items())
            lines.append((contribution, f"{said} of {len(mine)} claim{'s' * (len(mine) > 1)}"))
    return lines


# --- A method's scores beside the paper's ---


class PaperRow(NamedTuple):
    """A method the paper has numbers for: ``name`` is its name there, ``method`` ours.

    ``scores`` has a row per score: the paper's mean and sd, our mean, whether ours lies in its spread.
    """

    name: str
    method: str
    runs: pd.DataFrame
    scores: pd.DataFrame

    @property
    def is_whole(self) -> bool:
        """Whether it ran on all digits, and not on the first of each class."""
        return bool(self.runs.dataset.iloc[0] == "digits")

    @property
    def inside(self) -> str:
        n, of = int(self.scores.inside.sum()), len(self.scores)
        return {0: "not reproduced", of: "yes"}.get(n, f"on {n} of {of} scores")

    @property
    def note(self) -> str:
        off = self.scores[~self.scores.inside]
        if off.empty:
            return ""
        up = off.ours > off.paper
        said = "; ".join(
            f"{word} on {listed(SCORES[score] for score in off.index[mask])}"
            for word, mask in (("higher", up), ("lower", ~up))
            if mask.any()
        )
        of_digits = self.runs.dataset.iloc[0].startswith("digits")
        why = TEXTS["published"]["why"].get(self.method) if of_digits else None
        return f"Ours is {said}. {why or self._poor_runs() or 'Why is not known.'}"

    def _poor_runs(self) -> str:
        """Said where a few poor runs alone have pulled the mean out of the paper's spread."""
        acc, cell = self.runs.acc, self.scores.loc["acc"]
        kept = acc[acc >= acc.median() - POOR]
        if cell.inside or len(kept) == len(acc) or not is_inside(kept.mean(), cell.paper, cell.sd):
            return ""
        return (
            f"{len(acc) - len(kept)} of {len(acc)} runs end more than {two(POOR)} below the median; "
            "without them the mean ACC would lie within."
        )


def paper_row(name: str, runs: pd.DataFrame) -> PaperRow:
    theirs = (LIHC if (runs.dataset == "lihc").all() else DIGITS)[name]
    found = pd.DataFrame(theirs, columns=["paper", "sd"], index=list(SCORES), dtype=float)
    found["ours"] = runs[list(SCORES)].mean()
    found["inside"] = [is_inside(row.ours, row.paper, row.sd) for row in found.itertuples()]
    return PaperRow(name, runs.method.iloc[0], runs, found)


def is_inside(ours: float, theirs: float, sd: float) -> bool:
    """Ours, rounded as the paper's numbers are, within its deviation; equal where it gives none."""
    allowed = 0 if math.isnan(sd) else round(100 * sd)
    return abs(round(100 * round(ours, 2)) - round(100 * theirs)) <= allowed


def by_method(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Rows of each method in the order of the paper's table, others after them."""
    found = grouped(rows, "method")
    return {method: found[method] for method in (*DIGITS, *found) if method in found}


def name_of(runs: pd.DataFrame) -> str:
    """The method, and the number of digits where it ran on few of each of the 10 classes."""
    kind, _, few = runs.dataset.iloc[0].partition("-")
    name = str(runs.method.iloc[0])
    return f"{name} ({10 * int(few)})" if kind == "digits" and few.isdigit() else name


def paper_rows(results: Results, experiment: str) -> list[PaperRow]:
    """On LIHC, of the four MLRSSC the one with the highest mean ACC, as the paper reports it."""
    runs = by_method(results.rows(experiment))
    if experiment == "digits":
        return [paper_row(m, mine) for m, mine in runs.items() if m in DIGITS]
    if experiment != "lihc":
        return []
    means = {m: runs[m].acc.mean() for m in MLRSSC if m in runs}
    pairs = {"WM-NMF": "WM-NMF", "best MLRSSC": max(means, key=lambda m: means[m], default="")}
    return [paper_row(name, runs[m]) for name, m in pairs.items() if m in runs]


def all_above(
    experiment: str,
    claim: str,
    theirs: str,
    ours: str,
    runs: Mapping[str, pd.DataFrame],
    pairs: Iterable[tuple[str, str]],
    more: str = "",
) -> Claim:
    """Whether the first method of every pair has a higher ACC than the second."""
    gaps = {f"{a} over {b}": paired(runs[a], runs[b], "acc") for a, b in pairs}
    closest = min(gaps, key=lambda pair: gaps[pair].mean)
    difference = f"{gaps[closest]} at the closest ({closest})"
    lead = f"By ACC. {more}"
    return judged(experiment, claim, theirs, ours, gaps, ABOVE, difference=difference, lead=lead)


def failures(rows: pd.DataFrame) -> str:
    return f"{(rows.acc < FAILED).sum()} of {len(rows)} runs are below ACC {two(FAILED)}"


# --- The digits ---


def digits(results: Results) -> Iterator[Claim]:
    # Fewer digits are another problem: those rows are shown, and not judged.
    rows = {row.method: row for row in paper_rows(results, "digits") if row.is_whole}
    runs = {method: row.runs for method, row in rows.items()}
    if "WM-NMF" in rows:
        yield reaches(runs["WM-NMF"], "acc", 0.96)
        yield reaches(runs["WM-NMF"], "nmi", 0.93)
        yield _best(runs)
    if set(PROPOSED) <= set(rows):
        theirs = {m: rows[m].scores.paper["acc"] for m in rows}
        yield all_above(
            "digits",
            " > ".join(PROPOSED),
            " > ".join(two(theirs[m]) for m in PROPOSED),
            ", ".join(f"{runs[m].acc.mean():.3f}" for m in PROPOSED),
            runs,
            pairwise(PROPOSED),
        )
        if set(MULTINMF) <= set(rows):
            more = "".join(
                f"{m} itself is not reproduced: {two(runs[m].acc.mean())} here, {two(theirs[m])} there. "
                for m in MULTINMF
                if not rows[m].scores.inside.any()
            )
            ends = min(theirs[m] for m in PROPOSED), max(theirs[m] for m in MULTINMF)
            ours = ", ".join(f"{m} {two(runs[m].acc.mean())}" for m in (*PROPOSED, *MULTINMF))
            claim = "WM-NMF, NMF-W1 and NMF-W2 are all above MultiNMF"
            pairs = product(PROPOSED, MULTINMF)
            yield all_above("digits", claim, " > ".join(map(two, ends)), ours, runs, pairs, more)
    if "ConcatSpectral" in rows:
        theirs_acc = rows["ConcatSpectral"].scores.paper["acc"]
        scaled = results.rows("honest", method="ConcatSpectral-z")
        more = "" if scaled.empty else f" Scaled to unit variance, they give {spread(scaled.acc)}."
        yield judged(
            "digits",
            "Spectral clustering of the concatenated views fails",
            f"ACC {two(theirs_acc)}",
            f"ACC {spread(runs['ConcatSpectral'].acc)}",
            interval(runs["ConcatSpectral"].acc - theirs_acc),
            within(SAME),
            ("So it is, with the features as they come.", "Not with the same features."),
            more=more,
        )


def reaches(runs: pd.DataFrame, score: str, target: float) -> Claim:
    """Whether WM-NMF has the paper's mean: only where the whole interval lies near it."""
    off = interval(runs[score] - target)
    near = "within" if abs(off.mean) <= SAME + TINY else "more than"
    place = f"{near} {two(SAME)} {'of' if near == 'within' else 'from'}"
    words = f"The mean of {off.n} run{'s' * (off.n > 1)} is {place} the paper's"
    open_ = f"{words}, but runs scatter so much that others could end on the other side."
    return judged(
        "digits",
        f"WM-NMF reaches {SCORES[score]} {two(target)} on the digits",
        two(target),
        spread(runs[score]),
        off,
        within(SAME),
        (f"{words}.", f"{words}.", open_),
        more=f" {failures(runs)}." if score == "acc" and off.n > 1 else "",
    )


def _best(runs: Mapping[str, pd.DataFrame]) -> Claim:
    """Whether WM-NMF is above every rival on each score; a degenerate rival is left aside for recall."""
    ours = runs["WM-NMF"]
    rivals = {m: mine for m, mine in runs.items() if m != "WM-NMF"}
    idle = [m for m, mine in rivals.items() if mine.nmi.mean() < MEANINGLESS]
    found = pd.DataFrame(
        {
            word: {m: ABOVE(paired(ours, mine, score)) for m, mine in rivals.items()}
            for score, word in SCORES.items()
        }
    )
    judged_ = found.copy()
    judged_.loc[idle, SCORES["recall"]] = AGREES
    outcomes = {
        word: next((o for o in (DIFFERS, UNDECIDED) if (judged_[word] == o).any()), AGREES)
        for word in SCORES.values()
    }
    best = [word for word, outcome in outcomes.items() if outcome == AGREES]
    words = f"Clearly best on {listed(best) or 'none'}."
    for said, outcome in (("Clearly not above", DIFFERS), ("Not clearly above", UNDECIDED)):
        n = (judged_ == outcome).sum(axis=1).sort_values(ascending=False, kind="stable")
        counts = listed(f"{m} on {count}" for m, count in n[n > 0].items())
        words += f" {said} {counts} of the scores." if counts else ""
    for m in idle:
        words += (
            f" {m} is left aside for recall ({spread(rivals[m].recall)}): with NMI "
            f"{two(rivals[m].nmi.mean())} it has found no classes"
        )
        beaten = found.loc[m, SCORES["recall"]] == DIFFERS
        words += ", though with it WM-NMF would not be best." if beaten else "."
    claim = f"WM-NMF is best on all six scores (of {len(runs)} methods run on all digits)"
    measured, outcome = f"{len(best)} of 6 clearly", together(outcomes.values())
    return Claim("digits", claim, "6 of 6", measured, "", outcome, words)


def left_out(results: Results) -> Iterator[Claim]:
    """What the paper did not compare with, against WM-NMF."""
    runs = grouped(results.rows("honest"), "method")
    for method, what in (
        ("ConcatSpectral-z", "Plain spectral clustering of the scaled, concatenated views"),
        ("RobustWMNMF", "RobustWMNMF"),
    ):
        if {"WM-NMF", method} <= set(runs):
            claim = f"{what} is above WM-NMF on the digits"
            yield compared("honest", claim, runs[method], runs["WM-NMF"])


def mlrssc(results: Results) -> Iterator[Claim]:
    """MLRSSC as its authors tuned it for the digits, beside its defaults on the same digits."""
    rows = results.rows("mlrssc")
    groups = rows.groupby(["method", "dataset"], sort=False) if len(rows) else ()
    for (method, dataset), mine in groups:
        by = grouped(mine, "tuning")
        if not set(TUNINGS) <= set(by):
            continue
        whole = "all" if dataset == "digits" else 10 * int(dataset.split("-")[1])
        claim = f"Tuned for the digits, {method} is above its defaults ({whole} digits)"
        ended = listed(remark for remark in by["digits"].remark.unique() if remark)
        more = f" Tuned, its ADMM did {ended}." if ended else ""
        yield compared("mlrssc", claim, by["digits"], by["default"], more=more)


def lihc(results: Results) -> Iterator[Claim]:
    # What the paper claims, it claims of its own methods.
    runs = grouped(results.rows("lihc"), "method")
    runs = {method: mine for method, mine in runs.items() if method in DIGITS}
    if "WM-NMF" not in runs:
        if not results.rows("digits").empty:
            yield from (
                not_measured("lihc", claim, stated) for claim, stated in LIHC_CLAIMS.items()
            )
        return
    six, above, steady, network = LIHC_CLAIMS.items()
    ours = runs["WM-NMF"]
    theirs = zip(SCORES, LIHC["WM-NMF"], strict=True)
    gaps = {SCORES[score]: interval(ours[score] - mean) for score, (mean, _) in theirs}
    ours_ = ", ".join(two(ours[score].mean()) for score in SCORES)
    off = ", ".join(signed(gap.mean, 2) for gap in gaps.values())
    lead = f"Within {two(SAME)} of the paper's? "
    yield judged("lihc", *six, ours_, gaps, within(SAME), "scores", difference=off, lead=lead)
    others = [method for method in runs if method not in LEADERS]
    if set(LEADERS) <= set(runs) and others:
        yield all_above("lihc", *above, "", runs, product(LEADERS, others))
    # Spread as the distance of a run from the median of its method: compared run by run as well.
    far = {m: mine.assign(off=(mine.acc - mine.acc.median()).abs()) for m, mine in runs.items()}
    gaps = {m: paired(far["WM-NMF"], mine, "off") for m, mine in far.items() if m != "WM-NMF"}
    sd = {m: mine.acc.std() for m, mine in runs.items() if len(mine) > 1}
    shown = dict.fromkeys(("WM-NMF", min(sd, key=lambda m: sd[m], default="")))
    said = ", ".join(f"{m} {sd[m]:.3f}" for m in shown if m in sd)
    lead = "By the standard deviation of ACC. "
    yield judged("lihc", *steady, said, gaps, BELOW, lead=lead)
    answers = ("Its mean is clearly above.", "Its mean is clearly not above.")
    yield judged(
        "lihc", *network, spread(ours.acc), interval(ours.acc - SUPERVISED), ABOVE, answers
    )


def not_measured(experiment: str, claim: str, stated: str) -> Claim:
    words = f"The matrices are not public. With files of your own: {MEASURE_LIHC}"
    return Claim(experiment, claim, stated, "", "", NOT_MEASURED, words)


# --- p, β and K ---


def sweeps(results: Results) -> Iterator[Claim]:
    for dataset, rows in grouped(results.rows("p", "weights"), "dataset").items():
        largest = rows.groupby(["value", "run"], as_index=False).alpha.max()
        by = dict(list(largest.groupby("value")))
        low, *rest = by
        gaps = {f"p={value}": paired(by[low], by[value], "alpha") for value in rest}
        means = ", ".join(f"{mine.alpha.mean():.2f} at p={value}" for value, mine in by.items())
        yield judged(
            "p",
            f"Small p gives sparse view weights ({dataset})",
            "yes",
            f"largest α {means}",
            gaps,
            ABOVE,
            "values",
            difference=f"{gaps[f'p={rest[-1]}']} from p={low} to p={rest[-1]}",
            lead=f"Is the largest α higher at p={low} than at the others? ",
            topic="alpha",
        )
    for name, claim, least in (
        ("p", "Scores are alike for p ≥ 4", 4),
        ("beta", "Scores are robust to β", 0),
        ("k", "Scores are robust to K", 0),
    ):
        for dataset, rows in grouped(results.rows(name), "dataset").items():
            by = dict(list(rows[rows.value >= least].groupby("value")))
            if len(by) > 1:
                yield _alike(name, f"{claim} ({dataset})", by)


def _alike(experiment: str, claim: str, by: Mapping[Any, pd.DataFrame]) -> Claim:
    """Every score between the values with its highest and its lowest mean."""
    means = pd.DataFrame({value: rows[list(SCORES)].mean() for value, rows in by.items()}).T
    gaps = {
        word: paired(by[means[score].idxmax()], by[means[score].idxmin()], score)
        for score, word in SCORES.items()
    }
    widest = max(SCORES, key=lambda score: gaps[SCORES[score]].mean)
    gap, ends = gaps[SCORES[widest]], means[widest]
    rule = within(ALIKE)
    one = "One run of each: there is no scatter to compare that to."
    rest = one if gap.n < 2 else f"Within {ALIKE:g}? {told(_each(rule, gaps), 'scores')}"
    words = f"{SCORES[widest]} varies most, by {gap.mean:.3f} over the values tried. {rest}"
    ours = f"{SCORES[widest]} {ends.min():.3f} to {ends.max():.3f}"
    difference = str(gap).lstrip("+")
    said = (words, words, words)
    return judged(experiment, claim, "yes", ours, gaps, rule, said, difference=difference)


# --- From seed to seed ---


def seeds(results: Results) -> Iterator[Claim]:
    by = grouped(results.rows("seeds"), "reading")
    if not {"spectral", "njw", "spectral, connected"} <= set(by):
        return
    plain = by["spectral"]
    small = plain.smallest_part < SMALL
    if small.any() and not small.all():
        having, others = plain[small], plain[~small]
        yield judged(
            "seeds",
            "Runs fail where a few observations are cut off from the rest of V*'s neighbour graph",
            NOT_THEIRS,
            f"with one, {failures(having)}; without, {failures(others)}",
            apart(having.acc, others.acc),
            BELOW,
            ("Their mean ACC is clearly lower.", "Their mean ACC is clearly not lower."),
            more=f" In all {failures(plain)}.",
        )
    for reading, claim, runs in (
        ("njw", "Unit rows (assign_labels='njw') raise ACC over the paper's reading of the same V*",
         plain.run),
        ("spectral, connected", "Where V*'s graph has a small part, connect=True raises ACC",
         plain.run[small]),
    ):  # fmt: skip
        mine, theirs = (by[name][by[name].run.isin(runs)] for name in (reading, "spectral"))
        if len(mine):
            ours = f"{mine.acc.mean():.3f} against {theirs.acc.mean():.3f} in {len(mine)} runs; "
            ours += f"{failures(mine)}, {failures(theirs)} otherwise"
            yield compared("seeds", claim, mine, theirs, ("It does.", "It does not."), ours=ours)


# --- Running time ---


def slope(sizes: Iterable[float], seconds: Iterable[float]) -> float | None:
    """Exponent b of seconds ≈ c · size^b, by least squares on logarithms."""
    x, y = np.asarray(list(sizes), float), np.asarray(list(seconds), float)
    known = (x > 0) & (y > 0)
    if len(np.unique(x[known])) < 2:
        return None
    return float(np.polyfit(np.log(x[known]), np.log(y[known]), 1)[0])


def medians(rows: pd.DataFrame, parts: Iterable[str] = PARTS) -> pd.Series:
    """The median over the repeats at every size, of the parts together."""
    if rows.empty:
        return pd.Series(dtype=float)
    return rows.reindex(columns=list(parts)).sum(axis=1).groupby(rows.value).median()


def runtime(results: Results) -> Iterator[Claim]:
    for axis, words in (("N", "observations"), ("n_v", "views")):
        ours = results.rows("runtime", axis=axis, method="manyview")
        plain = medians(results.rows("runtime", axis=axis, method="plain NumPy"))
        whole = medians(ours)
        if (exponent := slope(whole.index, whole)) is None:
            continue
        gaps = {}
        # What the paper's claim is judged by: an iteration, and the search for neighbours.
        for part in ("seconds_loop", "seconds_graph"):
            repeats = [slope(mine.value, mine[part]) for mine in grouped(ours, "run").values()]
            gaps[PARTS[part]] = interval([b - 1 for b in repeats if b is not None])
        gaps = {name: gap for name, gap in gaps.items() if gap.n}
        curves = {name: medians(ours, [part]) for part, name in PARTS.items()}
        parts = {name: b for name, curve in curves.items() if (b := slope(curve.index, curve))}
        said = ", ".join(f"{name} {axis}^{parts[name]:.2f}" for name in gaps)
        said += f"; whole fit {axis}^{exponent:.2f}"
        other = slope(plain.index, plain)
        said += f"; plain NumPy {axis}^{other:.2f}" if other else ""
        more = " By part: " + ", ".join(f"{name} {axis}^{b:.2f}" for name, b in parts.items()) + "."
        if max((gap.n for gap in gaps.values()), default=0) < 2:
            more += " One timing of each size is too little to judge by."
        if axis == "N" and parts.get("graph", 0.0) > 1 + LINEAR.high:
            more += (
                " The graph looks at all pairs of observations, which is quadratic; beyond 30 000 an "
                "approximate search takes its place."
            )
        gap = ", ".join(f"{name} {signed(parts[name] - 1, 2)}" for name in gaps)
        yield judged(
            "runtime",
            f"Time is about linear in the number of {words}",
            "about linear",
            said,
            gaps,
            LINEAR,
            "parts",
            difference=f"{gap} in the exponent",
            lead=f"About linear, at most {axis}^1.3? ",
            more=more,
        )


# --- The objective: whether it settles, and the two weaknesses of its form ---


def objective(results: Results) -> Iterator[Claim]:
    claim = "The objective converges within 50 iterations ({})"
    rows = grouped(results.rows("convergence", scheme="one at a time"), "dataset")
    # Before its first iteration a fit is the same under both schemes.
    starts = results.rows("convergence", scheme="recipe", iteration=0)
    for dataset, mine in rows.items():
        every = pd.concat([mine, where(starts, dataset=dataset)])
        at = every.pivot_table(index="run", columns="iteration", values="objective")
        found = {first: name for first, name in COUNTS.items() if {first, 50, 100} <= set(at)}
        if not found:
            continue
        left, rose = {}, 0
        each = {}
        for first, name in found.items():
            known = at[[first, 50, 100]].dropna()
            change = (known[first] - known[100]).abs()
            share = ((known[50] - known[100]).abs() / change).where(change > 0, 0.0)
            left[name] = interval(share)
            higher = int((known[first] <= known[100]).sum())
            each[name] = DIFFERS if higher else SETTLED(left[name])
            rose = max(rose, higher)
        change = interval((at[100] / at[50] - 1).fillna(0.0))
        words = (
            f"From iteration 50 to 100 it {'falls' if change.mean <= 0 else 'rises'} by "
            f"{abs(change.mean):.1%} of its value; converged means that at most {SETTLED.high:.0%} of "
            "the change is left, and the paper does not say from where it counts."
        )
        if rose:
            words = f"In {rose} of {change.n} runs it ends higher than it began. {words}"
        elif change.n < 2:
            words += " One run is too little to judge by."
        paper = "yes" if dataset in ("digits", "lihc") else NOT_THEIRS  # the paper shows these
        shares = ", ".join(f"{share.mean:.0%} by {name}" for name, share in left.items())
        ours = f"of the change over 100 iterations, after the 50th: {shares}"
        outcome = together(each.values())
        yield Claim("convergence", claim.format(dataset), paper, ours, "", outcome, words)
    if "digits" in rows and "lihc" not in rows:
        yield not_measured("convergence", claim.format("lihc"), "yes")


def degeneracy(results: Results) -> Iterator[Claim]:
    rounds = grouped(results.rows("degeneracy"), "round")
    if 2 in rounds and (last := max(rounds)) > 2:  # the recipe's two rounds, and many more
        for column, claim, rule, yes, no in (
            ("objective", "The objective falls on", BELOW, "It falls.", "It does not fall."),
            ("max_alpha", "The largest α of the views grows", ABOVE,
             "One view gains weight.", "No view gains weight."),
            ("acc", "ACC falls", BELOW,
             "The clusters get worse.", "The clusters do not get worse."),
        ):  # fmt: skip
            claim = f"{claim} from round 2 to round {last}"
            yield _moved(claim, rounds[2], rounds[last], column, rule, yes, no)
    yield from _scales(results)
    unscaled = grouped(results.rows("degeneracy", "sizes", rescale="False"), "round")
    if len(unscaled) > 1:
        first, last = min(unscaled), max(unscaled)
        claim = f"Left unscaled, the mean column sum of U grows from round {first} to {last}"
        said = ("It grows.", "It does not grow.")
        yield _moved(claim, unscaled[first], unscaled[last], "column_sum_of_U", ABOVE, *said)


def _moved(
    claim: str,
    before: pd.DataFrame,
    after: pd.DataFrame,
    column: str,
    rule: Rule,
    yes: str,
    no: str,
) -> Claim:
    ours = f"{before[column].mean():.3g} → {after[column].mean():.3g}"
    said = (yes, no, "One run, shown without a judgement." if len(after) < 2 else "")
    return compared("degeneracy", claim, after, before, said, column=column, rule=rule, ours=ours)


def _scales(results: Results) -> Iterator[Claim]:
    """O at (tU, V/t), for factors of one run: arithmetic, so one run is enough."""
    rows = results.rows("degeneracy", "scales")
    if rows.empty or 1 not in set(rows.t) or rows.t.max() <= 1:
        return
    at = rows.groupby("t").last()
    most, plain = at.index.max(), at.loc[1]
    off = float((at[["reconstruction", "consensus"]] / plain - 1).abs().max().max())
    b = slope(at.index, at.regularizer) or 0.0
    rounding = 1e-6
    holds = [off <= rounding, abs(b + 2) <= rounding, at.objective[most] < plain.objective]
    same = "stay as they are" if holds[0] else f"change by up to {off:.1%}"
    yield Claim(
        "degeneracy",
        "Scaling U up and V down lowers the objective, whatever they fit",
        NOT_THEIRS,
        f"objective {plain.objective:.3f} at (U, V), {at.objective[most]:.3f} at ({most:g} U, V/{most:g})",
        signed(at.objective[most] - plain.objective),
        together([AGREES if held else DIFFERS for held in holds]),
        f"Reconstruction and consensus {same}; the graph's term goes as t^{b:.2f}. Without a rule "
        f"for the scale the objective {'has no minimum' if all(holds) else 'may still have one'}.",
    )


# --- Noise ---


def before_and_after(results: Results, method: str, weight: str, kind: str) -> pd.DataFrame:
    """By view and run: the weight in the fit without noise of the same seed, and with it."""
    rows = results.rows("noise", method=method)
    if rows.empty:
        return rows
    rows = rows[rows.scenario.isin(KINDS[kind])]
    names = {f"{weight}_before": "before", WEIGHTS[weight][0]: "after"}
    return rows[["of_view", "run", *names]].rename(columns=names).dropna()


def noise(results: Results) -> Iterator[Claim]:
    for method, (weight, kind) in product(("WM-NMF", "RobustWMNMF"), product(WEIGHTS, KINDS)):
        rows = before_and_after(results, method, weight, kind)
        if rows.empty:
            continue
        by_view = grouped(rows, "of_view").items()
        gaps = {view: interval(mine.after - mine.before) for view, mine in by_view}
        means = rows.groupby("of_view", sort=False)[["before", "after"]].mean()
        ratios = (means.after / means.before)[means.before > 0]
        between = f" ({ratios.min():.2f} to {ratios.max():.2f})" if len(ratios) > 1 else ""
        yield judged(
            "noise",
            f"{TEXTS['claims']['noise'][weight][kind]} ({method})",
            "stated, not shown" if method == "WM-NMF" else NOT_THEIRS,
            ", ".join(f"{m.Index} {m.before:.3f} → {m.after:.3f}" for m in means.itertuples()),
            gaps,
            BELOW,
            "views",
            difference=f"{ratios.median():.2f} times{between}" if len(ratios) else "",
            topic=weight,
        )
