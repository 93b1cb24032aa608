"""LIHC: the values the paper names in its text, and its claims; "not measured" without the data."""

from __future__ import annotations

from statistics import median, stdev

from manyview.paper.page import paper
from manyview.paper.page.read import (
    SCORES,
    Results,
    Row,
    grouped,
    spread,
    two,
)

from .beside import PaperRow, all_above, paper_row
from .judging import (
    ABOVE,
    BELOW,
    NOT_MEASURED,
    SAME,
    Verdict,
    interval,
    judged,
    of_one,
    paired,
    signed,
    within,
)

LEADERS = ("WM-NMF", "NMF-W2")
MLRSSC = ("P-MLRSSC", "C-MLRSSC", "P-KMLRSSC", "C-KMLRSSC")
#: Every claim, and what the paper says in numbers.
SIX = f"WM-NMF's six scores on LIHC: {', '.join(SCORES.values())}"
LEAD = "WM-NMF and NMF-W2 are above all others on LIHC"
STEADY = "WM-NMF has the smallest spread on LIHC"
NETWORK = "WM-NMF is slightly above a supervised network on LIHC"
STATED = {
    SIX: ", ".join(two(mean) for mean, _ in paper.LIHC["WM-NMF"]),
    LEAD: "yes",
    STEADY: "yes",
    NETWORK: f"accuracy {paper.SUPERVISED:.1%}",
}


def lihc_rows(results: Results) -> list[PaperRow]:
    """WM-NMF, and of the four MLRSSC the one with the highest mean ACC, as the paper reports it."""
    runs = _by_method(results)
    means = {m: s.mean for m in MLRSSC if (s := spread(runs.get(m, []), "acc"))}
    best = max(means, key=lambda m: means[m], default="")
    pairs = {"WM-NMF": "WM-NMF", "best MLRSSC": best}
    return [
        paper_row(name, runs[method], paper.LIHC[name])
        for name, method in pairs.items()
        if method in runs
    ]


def verdicts(results: Results) -> list[Verdict]:
    runs = _by_method(results)
    if "WM-NMF" not in runs:
        return [not_measured("lihc", claim) for claim in STATED] if results.rows("digits") else []
    others = [method for method in runs if method not in LEADERS]
    found = [_six(runs["WM-NMF"])]
    if set(LEADERS) <= set(runs) and others:
        found.append(all_above("lihc", LEAD, STATED[LEAD], "", runs, (LEADERS, others)))
    return [*found, _steady(runs), _network(runs["WM-NMF"])]


def not_measured(experiment: str, claim: str) -> Verdict:
    words = "The matrices are not public: they are measured where a user has the files."
    change = f"Files of your own: {paper.MEASURE_LIHC}"
    stated = STATED.get(claim, "yes")
    return Verdict(experiment, claim, stated, "", "", NOT_MEASURED, words, change)


def _by_method(results: Results) -> dict[str, list[Row]]:
    """Runs of the paper's methods: what it claims, it claims of these."""
    found = grouped(results.rows("lihc"), "method")
    return {method: runs for method, runs in found.items() if method in paper.DIGITS}


def _six(runs: list[Row]) -> Verdict:
    rule = within(SAME)
    theirs = zip(SCORES.values(), paper.COLUMNS, paper.LIHC["WM-NMF"], strict=True)
    gaps = {word: interval([row[s] - m for row in runs]) for word, s, (m, _) in theirs}
    ours = ", ".join(two(s.mean) for score in paper.COLUMNS if (s := spread(runs, score)))
    difference = ", ".join(signed(gap.mean, 2) for gap in gaps.values())
    lead = f"Within {two(SAME)} of the paper's? "
    return judged(
        "lihc", SIX, STATED[SIX], ours, rule.each(gaps), rule,
        difference=difference, lead=lead, parts="scores",
    )  # fmt: skip


def _steady(runs: dict[str, list[Row]]) -> Verdict:
    """Spread as the distance of a run from the median of its method: compared run by run as well."""
    off = {method: _distances(mine) for method, mine in runs.items()}
    gaps = {m: paired(off["WM-NMF"], mine, "off") for m, mine in off.items() if m != "WM-NMF"}
    deviations = {m: stdev([r["acc"] for r in mine]) for m, mine in runs.items() if len(mine) > 1}
    least = min(deviations, key=lambda m: deviations[m], default="")
    shown = [m for m in dict.fromkeys(("WM-NMF", least)) if m in deviations]
    ours = ", ".join(f"{m} {deviations[m]:.3f}" for m in shown)
    lead = "By the standard deviation of ACC. "
    return judged("lihc", STEADY, STATED[STEADY], ours, BELOW.each(gaps), BELOW, lead=lead)


def _distances(runs: list[Row]) -> list[Row]:
    middle = median(row["acc"] for row in runs)
    return [{"run": row["run"], "off": abs(row["acc"] - middle)} for row in runs]


def _network(runs: list[Row]) -> Verdict:
    gap = interval([row["acc"] - paper.SUPERVISED for row in runs])
    said = ("Its mean is clearly above.", "Its mean is clearly not above.")
    return of_one("lihc", NETWORK, STATED[NETWORK], str(spread(runs, "acc")), gap, ABOVE, said)
