"""The digits: the paper's table beside ours, and its claims about it."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product
from statistics import mean, median
from typing import NamedTuple

from manyview.reproduction.page import paper
from manyview.reproduction.page.read import SCORES, Results, Row, Spread, grouped, spread, two

from .judging import (
    AGREES,
    DIFFERS,
    NOT_THEIRS,
    SAME,
    UNDECIDED,
    Verdict,
    above,
    interval,
    listed,
    paired,
    sentence,
    together,
    told,
    within,
)

PROPOSED = ("WM-NMF", "NMF-W1", "NMF-W2")
#: A clustering with less NMI knows nothing of the classes; its recall is high all the same where it puts
#: nearly everything into one cluster.
MEANINGLESS = 0.1

#: A run with so much less ACC than the median has ended in a poorer clustering.
POOR = 0.05


class Cell(NamedTuple):
    """A score of a method: the paper's mean and deviation, ours, and whether ours lies in its spread."""

    paper: float
    paper_sd: float | None
    ours: Spread
    inside: bool


class DigitsRow(NamedTuple):
    """A method of the paper's table."""

    method: str
    runs: list[Row]
    cells: dict[str, Cell]

    @property
    def is_whole(self) -> bool:
        """Whether it ran on all digits, and not on the first of each class."""
        return self.runs[0]["dataset"] == "digits"

    @property
    def n_inside(self) -> int:
        return sum(cell.inside for cell in self.cells.values())

    @property
    def note(self) -> str:
        off = {score: c.ours.mean > c.paper for score, c in self.cells.items() if not c.inside}
        if not off:
            return ""
        ways = [(word, [SCORES[s] for s in off if off[s] == up]) for word, up in
                (("higher", True), ("lower", False))]  # fmt: skip
        said = "; ".join(f"{word} on {listed(names)}" for word, names in ways if names)
        reasons = {paper.WHY.get((self.method, word)) for word, names in ways if names}
        why = reasons.pop() if len(reasons) == 1 else None
        return f"Ours is {said}. {why or self._poor_runs() or 'Why is not known.'}"

    def _poor_runs(self) -> str:
        """Said where a few poor runs alone have pulled the mean out of the paper's spread."""
        acc = [run["acc"] for run in self.runs]
        kept = [value for value in acc if value >= median(acc) - POOR]
        cell = self.cells["acc"]
        if cell.inside or len(kept) == len(acc) or not is_inside(mean(kept), *cell[:2]):
            return ""
        return (
            f"{len(acc) - len(kept)} of {len(acc)} runs end more than {two(POOR)} below the median; "
            "without them the mean ACC would lie within."
        )


def in_order(rows: list[Row]) -> list[Row]:
    """Rows of methods in the order of the paper's table, others after them."""
    names = list(paper.DIGITS)
    return sorted(
        rows, key=lambda r: names.index(r["method"]) if r["method"] in names else len(names)
    )


def name_of(row: Row) -> str:
    """The method, and the number of digits where it ran on few of each of the 10 classes."""
    kind, _, few = row["dataset"].partition("-")
    few_digits = kind == "digits" and few.isdigit()
    return f"{row['method']} ({10 * int(few)})" if few_digits else row["method"]


def digits_rows(results: Results) -> list[DigitsRow]:
    found = []
    for method, rows in grouped(in_order(results.rows("digits")), "method").items():
        if method not in paper.DIGITS:
            continue
        theirs = zip(paper.COLUMNS, paper.DIGITS[method], strict=True)
        cells = {
            score: Cell(m, sd, ours, is_inside(ours.mean, m, sd))
            for score, (m, sd) in theirs
            if (ours := spread(rows, score))
        }
        found.append(DigitsRow(method, rows, cells))
    return found


def is_inside(ours: float, theirs: float, sd: float | None) -> bool:
    """Ours, rounded as the paper's numbers are, within its deviation; equal where it gives none."""
    return abs(round(100 * round(ours, 2)) - round(100 * theirs)) <= round(100 * (sd or 0.0))


def verdicts(results: Results) -> list[Verdict]:
    # Fewer digits are another problem: those rows are shown, and not judged.
    rows = {row.method: row for row in digits_rows(results) if row.is_whole}
    found = []
    if "WM-NMF" in rows:
        found += [reaches("digits", rows["WM-NMF"].runs, s, v) for s, v in TARGETS]
        found.append(_best(rows))
    if set(PROPOSED) <= set(rows):
        found.append(_order(rows))
        found += _above_multinmf(rows)
    return found + _concatenated(rows, results) + _left_out(results)


TARGETS = (("acc", 0.96), ("nmi", 0.93))


def reaches(experiment: str, runs: list[Row], score: str, target: float) -> Verdict:
    """Whether WM-NMF has the paper's mean."""
    ours = spread(runs, score)
    assert ours is not None
    off = interval([row[score] - target for row in runs])
    sure = within(off, SAME)
    near = "within" if abs(off.mean) <= SAME else "more than"
    # The claim is about a mean, and the means agree; the words say how sure that is.
    outcome = AGREES if sure == UNDECIDED and near == "within" and off.n > 1 else sure
    words = f"The mean of {ours.n} run{'s' * (ours.n > 1)} is {near} {two(SAME)} of the paper's."
    if near == "more than":
        words = words.replace(" of the", " from the")
    if sure == UNDECIDED:
        words = words[:-1] + ", but runs scatter so much that others could end on the other side."
    data = {"digits": "the digits", "lihc": "LIHC"}[experiment]
    claim = f"WM-NMF reaches {SCORES[score]} {two(target)} on {data}"
    return Verdict(experiment, claim, two(target), str(ours), str(off), outcome, words)


def _best(rows: dict[str, DigitsRow]) -> Verdict:
    ours = rows["WM-NMF"]
    rivals = [row for row in rows.values() if row is not ours]
    idle = [row for row in rivals if row.cells["nmi"].ours.mean < MEANINGLESS]
    outcomes: dict[str, str] = {}
    rest: dict[str, list[str]] = {DIFFERS: [], UNDECIDED: []}  # rivals, once for every score
    for score in SCORES:
        judged = [row for row in rivals if score != "recall" or row not in idle]
        each = {row.method: above(paired(ours.runs, row.runs, score)) for row in judged}
        for word, names in rest.items():
            names += [method for method, found in each.items() if found == word]
        found = set(each.values())
        outcomes[score] = next((word for word in rest if word in found), AGREES)
    best = [SCORES[s] for s in SCORES if outcomes[s] == AGREES]
    words = f"Clearly best on {listed(best)}." if best else "Clearly best on none."
    for said, word in (("Clearly not above", DIFFERS), ("Not clearly above", UNDECIDED)):
        counts = [f"{method} on {n}" for method, n in Counter(rest[word]).most_common()]
        words += f" {said} {listed(counts)} of the scores." if counts else ""
    for row in idle:
        words += (
            f" {row.method} is left aside for recall ({row.cells['recall'].ours}): with NMI "
            f"{two(row.cells['nmi'].ours.mean)} it has found no classes"
            + (", though with it WM-NMF would not be best."
               if above(paired(ours.runs, row.runs, "recall")) == DIFFERS else ".")
        )  # fmt: skip
    claim = f"WM-NMF is best on all six scores (of {len(rows)} methods run on all digits)"
    measured = f"{len(best)} of 6 clearly"
    return Verdict("digits", claim, "6 of 6", measured, "", together(outcomes.values()), words)


def _order(rows: dict[str, DigitsRow]) -> Verdict:
    theirs = " > ".join(two(rows[name].cells["acc"].paper) for name in PROPOSED)
    ours = ", ".join(f"{rows[name].cells['acc'].ours.mean:.3f}" for name in PROPOSED)
    gaps = {
        f"{a} over {b}": paired(rows[a].runs, rows[b].runs, "acc") for a, b in pairwise(PROPOSED)
    }
    each = {pair: above(gap) for pair, gap in gaps.items()}
    return Verdict(
        "digits",
        " > ".join(PROPOSED),
        theirs,
        ours,
        ", ".join(map(str, gaps.values())),
        together(each.values()),
        f"By ACC. {told(each, 'comparisons')}",
    )


def _above_multinmf(rows: dict[str, DigitsRow]) -> list[Verdict]:
    others = [name for name in ("MultiNMF1", "MultiNMF2") if name in rows]
    if len(others) < 2:
        return []
    gaps = {(a, b): paired(rows[a].runs, rows[b].runs, "acc") for a, b in product(PROPOSED, others)}
    each = {pair: above(gap) for pair, gap in gaps.items()}
    closest = min(gaps, key=lambda pair: gaps[pair].mean)
    named = {f"{a} over {b}": word for (a, b), word in each.items()}
    means = {name: rows[name].cells["acc"] for name in (*PROPOSED, *others)}
    return [
        Verdict(
            "digits",
            "WM-NMF, NMF-W1 and NMF-W2 are all above MultiNMF",
            f"{two(min(means[m].paper for m in PROPOSED))} > {two(max(means[m].paper for m in others))}",
            ", ".join(f"{name} {two(cell.ours.mean)}" for name, cell in means.items()),
            f"{gaps[closest]} at the closest ({closest[0]}, {closest[1]})",
            together(each.values()),
            f"By ACC. {told(named, 'comparisons')}",
        )
    ]


def _concatenated(rows: dict[str, DigitsRow], results: Results) -> list[Verdict]:
    """The paper's failing baseline, and why it fails."""
    if "ConcatSpectral" not in rows:
        return []
    row = rows["ConcatSpectral"]
    target = row.cells["acc"].paper
    off = interval([run["acc"] - target for run in row.runs])
    scaled = spread(results.rows("honest", method="ConcatSpectral-z"), "acc")
    words = sentence(
        within(off, SAME),
        "So it is, with the features as they come.",
        "Not with the same features.",
    )
    words += f" Scaled to unit variance, the same features give {scaled}." if scaled else ""
    return [
        Verdict(
            "digits",
            "Spectral clustering of the concatenated views fails",
            f"ACC {two(target)}",
            f"ACC {row.cells['acc'].ours}",
            str(off),
            within(off, SAME),
            words,
        )
    ]


def _left_out(results: Results) -> list[Verdict]:
    """What the paper did not compare with, against WM-NMF."""
    runs = grouped(results.rows("honest"), "method")
    found = []
    for method, what in (
        ("ConcatSpectral-z", "Plain spectral clustering of the scaled, concatenated views"),
        ("RobustWMNMF", "RobustWMNMF"),
    ):
        if "WM-NMF" not in runs or method not in runs:
            continue
        gap = paired(runs[method], runs["WM-NMF"], "acc")
        both = [spread(runs[name], "acc") for name in (method, "WM-NMF")]
        words = sentence(above(gap), "Its ACC is clearly above.", "Its ACC is clearly not above.")
        measured = f"{both[0]} against {both[1]}"
        claim = f"{what} is above WM-NMF on the digits"
        found.append(Verdict("honest", claim, NOT_THEIRS, measured, str(gap), above(gap), words))
    return found
