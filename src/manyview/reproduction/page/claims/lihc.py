"""LIHC: the values the paper names in its text, and its three claims."""

from __future__ import annotations

from itertools import product
from statistics import median, stdev

from manyview.reproduction.page import paper
from manyview.reproduction.page.read import SCORES, Results, Row, Spread, grouped, spread, two

from .digits import is_inside
from .judging import (
    AGREES,
    SAME,
    Interval,
    Verdict,
    above,
    below,
    interval,
    paired,
    sentence,
    signed,
    together,
    told,
    within,
)

LEADERS = ("WM-NMF", "NMF-W2")
MLRSSC = ("P-MLRSSC", "C-MLRSSC", "P-KMLRSSC", "C-KMLRSSC")


def by_method(results: Results) -> dict[str, list[Row]]:
    """Runs of the paper's methods: what it claims, it claims of these."""
    found = grouped(results.rows("lihc"), "method")
    return {method: runs for method, runs in found.items() if method in paper.DIGITS}


def best_mlrssc(runs: dict[str, list[Row]]) -> str | None:
    """Of the four, the one with the highest mean ACC, as the paper reports it."""
    means = {m: s.mean for m in MLRSSC if (s := spread(runs.get(m, []), "acc"))}
    return max(means, key=lambda m: means[m], default=None)


def beside(
    results: Results,
) -> list[tuple[str, str, dict[str, tuple[float, float | None, Spread, bool]]]]:
    """Name in the paper, method of ours, and by score the paper's mean and deviation, ours, inside."""
    runs = by_method(results)
    pairs = {"WM-NMF": "WM-NMF" if "WM-NMF" in runs else None, "best MLRSSC": best_mlrssc(runs)}
    found = []
    for name, method in pairs.items():
        if method is None:
            continue
        theirs = zip(paper.COLUMNS, paper.LIHC[name], strict=True)
        cells = {
            score: (m, sd, ours, is_inside(ours.mean, m, sd))
            for score, (m, sd) in theirs
            if (ours := spread(runs[method], score))
        }
        found.append((name, method, cells))
    return found


def verdicts(results: Results) -> list[Verdict]:
    runs = by_method(results)
    if "WM-NMF" not in runs:
        return []
    return [_scores(runs["WM-NMF"]), *_leaders(runs), _steady(runs), _supervised(runs["WM-NMF"])]


def _scores(runs: list[Row]) -> Verdict:
    theirs = {s: m for s, (m, _) in zip(paper.COLUMNS, paper.LIHC["WM-NMF"], strict=True)}
    gaps = {s: interval([row[s] - m for row in runs]) for s, m in theirs.items()}
    each = {s: within(gap, SAME) for s, gap in gaps.items()}
    named = {SCORES[s]: word for s, word in each.items()}
    return Verdict(
        "lihc",
        f"WM-NMF's six scores on LIHC: {', '.join(SCORES.values())}",
        ", ".join(two(m) for m in theirs.values()),
        ", ".join(two(m + gaps[s].mean) for s, m in theirs.items()),
        ", ".join(signed(gap.mean, 2) for gap in gaps.values()),
        together(each.values()),
        f"Within {two(SAME)} of the paper's? {told(named, 'scores')}",
    )


def _leaders(runs: dict[str, list[Row]]) -> list[Verdict]:
    others = [method for method in runs if method not in LEADERS]
    if not set(LEADERS) <= set(runs) or not others:
        return []
    gaps = {(a, b): paired(runs[a], runs[b], "acc") for a, b in product(LEADERS, others)}
    each = {pair: above(gap) for pair, gap in gaps.items()}
    named = {f"{a} over {b}": word for (a, b), word in each.items()}
    closest = min(gaps, key=lambda pair: gaps[pair].mean)
    return [
        Verdict(
            "lihc",
            "WM-NMF and NMF-W2 are above all others on LIHC",
            "yes",
            f"on {sum(word == AGREES for word in each.values())} of {len(each)} comparisons",
            f"{gaps[closest]} at the closest ({closest[0]}, {closest[1]})",
            together(each.values()),
            f"By ACC. {told(named, 'comparisons')}",
        )
    ]


def _steady(runs: dict[str, list[Row]]) -> Verdict:
    """Spread as the distance of a run from the median of its method: compared run by run as well."""
    ours = _distances(runs["WM-NMF"])
    gaps: dict[str, Interval] = {
        method: paired(ours, _distances(mine), "off")
        for method, mine in runs.items()
        if method != "WM-NMF"
    }
    each = {method: below(gap) for method, gap in gaps.items()}
    deviations = {m: stdev([r["acc"] for r in mine]) for m, mine in runs.items() if len(mine) > 1}
    least = min(deviations, key=lambda m: deviations[m], default="")
    return Verdict(
        "lihc",
        "WM-NMF has the smallest spread on LIHC",
        "yes",
        ", ".join(
            f"{m} {deviations[m]:.3f}" for m in dict.fromkeys(("WM-NMF", least)) if m in deviations
        ),
        "",
        together(each.values()),
        f"By the standard deviation of ACC. {told(each, 'comparisons')}",
    )


def _distances(runs: list[Row]) -> list[Row]:
    middle = median(row["acc"] for row in runs)
    return [{"run": row["run"], "off": abs(row["acc"] - middle)} for row in runs]


def _supervised(runs: list[Row]) -> Verdict:
    ours = spread(runs, "acc")
    gap = interval([row["acc"] - paper.SUPERVISED for row in runs])
    return Verdict(
        "lihc",
        "WM-NMF is slightly above a supervised network on LIHC",
        f"accuracy {paper.SUPERVISED:.1%}",
        str(ours),
        str(gap),
        above(gap),
        sentence(above(gap), "Its mean is clearly above.", "Its mean is clearly not above."),
    )
