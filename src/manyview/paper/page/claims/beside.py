"""A method's scores beside the paper's, and whether ours lie in its spread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from statistics import mean, median
from typing import NamedTuple

from manyview.paper.page import paper
from manyview.paper.page.read import (
    SCORES,
    Results,
    Row,
    Spread,
    grouped,
    spread,
    two,
)

from .judging import (
    ABOVE,
    Verdict,
    judged,
    listed,
    paired,
)

#: A run with so much less ACC than the median has ended in a poorer clustering.
POOR = 0.05


class Cell(NamedTuple):
    """A score of a method: the paper's mean and deviation, ours, and whether ours lies in its spread."""

    paper: float
    paper_sd: float | None
    ours: Spread
    inside: bool


class PaperRow(NamedTuple):
    """A method the paper has numbers for: ``name`` is its name there, ``method`` ours."""

    name: str
    method: str
    runs: list[Row]
    cells: dict[str, Cell]

    @property
    def is_whole(self) -> bool:
        """Whether it ran on all digits, and not on the first of each class."""
        return self.runs[0]["dataset"] == "digits"

    @property
    def is_reproduced(self) -> bool:
        return any(cell.inside for cell in self.cells.values())

    @property
    def inside(self) -> str:
        n = sum(cell.inside for cell in self.cells.values())
        return {0: "not reproduced", len(self.cells): "yes"}.get(
            n, f"on {n} of {len(self.cells)} scores"
        )

    @property
    def note(self) -> str:
        off = {score: c.ours.mean > c.paper for score, c in self.cells.items() if not c.inside}
        if not off:
            return ""
        ways = [(word, [SCORES[s] for s in off if off[s] == up]) for word, up in
                (("higher", True), ("lower", False))]  # fmt: skip
        said = "; ".join(f"{word} on {listed(names)}" for word, names in ways if names)
        why = paper.WHY.get(self.method) if self.runs[0]["dataset"].startswith("digits") else None
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


def paper_row(name: str, runs: list[Row], theirs: Iterable[tuple[float, float | None]]) -> PaperRow:
    cells = {
        score: Cell(m, sd, ours, is_inside(ours.mean, m, sd))
        for score, (m, sd) in zip(paper.COLUMNS, theirs, strict=True)
        if (ours := spread(runs, score))
    }
    return PaperRow(name, runs[0]["method"], runs, cells)


def is_inside(ours: float, theirs: float, sd: float | None) -> bool:
    """Ours, rounded as the paper's numbers are, within its deviation; equal where it gives none."""
    return abs(round(100 * round(ours, 2)) - round(100 * theirs)) <= round(100 * (sd or 0.0))


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


def digits_rows(results: Results) -> list[PaperRow]:
    runs = grouped(in_order(results.rows("digits")), "method")
    return [paper_row(m, mine, paper.DIGITS[m]) for m, mine in runs.items() if m in paper.DIGITS]


def all_above(
    experiment: str,
    claim: str,
    theirs: str,
    ours: str,
    runs: Mapping[str, list[Row]],
    pairs: tuple[Iterable[str], Iterable[str]],
    more: str = "",
) -> Verdict:
    """Whether every method of the first group has a higher ACC than every one of the second."""
    gaps = {f"{a} over {b}": paired(runs[a], runs[b], "acc") for a, b in product(*pairs)}
    closest = min(gaps, key=lambda pair: gaps[pair].mean)
    difference = f"{gaps[closest]} at the closest ({closest})"
    lead = f"By ACC. {more}"
    each = ABOVE.each(gaps)
    return judged(experiment, claim, theirs, ours, each, ABOVE, difference=difference, lead=lead)
