"""p, β and K: how the view weights and the scores change with them."""

from __future__ import annotations

from manyview.paper.page.read import (
    SCORES,
    Results,
    Row,
    grouped,
    spread,
)

from .judging import (
    ABOVE,
    ALIKE,
    Interval,
    Verdict,
    judged,
    paired,
    told,
    within,
)


def verdicts(results: Results) -> list[Verdict]:
    weights = grouped(results.rows("p", "weights"), "dataset")
    found = [_sparse(dataset, rows) for dataset, rows in weights.items()]
    for name, claim, least in (
        ("p", "Scores are alike for p ≥ 4", 4),
        ("beta", "Scores are robust to β", 0),
        ("k", "Scores are robust to K", 0),
    ):
        for dataset, rows in grouped(results.rows(name), "dataset").items():
            kept = [row for row in rows if row["value"] >= least]
            if len(grouped(kept, "value")) > 1:
                found.append(_alike(name, f"{claim} ({dataset})", kept))
    return found


def _sparse(dataset: str, rows: list[Row]) -> Verdict:
    """Whether the largest weight is larger at the smallest p than at each of the others."""
    largest: dict[float, list[Row]] = {}
    for value, mine in sorted(grouped(rows, "value").items()):
        runs = grouped(mine, "run").items()
        largest[value] = [{"run": i, "top": max(r["alpha"] for r in of)} for i, of in runs]
    low, *rest = largest
    gaps = {f"p={value}": paired(largest[low], largest[value], "top") for value in rest}
    means = {value: s.mean for value, mine in largest.items() if (s := spread(mine, "top"))}
    last = f"p={rest[-1]}"
    return judged(
        "p",
        f"Small p gives sparse view weights ({dataset})",
        "yes",
        "largest α " + ", ".join(f"{m:.2f} at p={value}" for value, m in means.items()),
        ABOVE.each(gaps),
        ABOVE,
        difference=f"{gaps[last]} from p={low} to {last}",
        lead=f"Is the largest α higher at p={low} than at the others? ",
        parts="values",
        topic="alpha",
    )


def _alike(experiment: str, claim: str, rows: list[Row]) -> Verdict:
    """Every score between the values with its highest and its lowest mean."""
    ranges = {word: _range(rows, score) for score, word in SCORES.items()}
    each = within(ALIKE).each({word: gap for word, (gap, _) in ranges.items()})
    widest = max(ranges, key=lambda word: ranges[word][0].mean)
    gap, ends = ranges[widest]
    one = "One run of each: there is no scatter to compare that to."
    rest = one if gap.n < 2 else f"Within {ALIKE:g}? {told(each, 'scores')}"
    return judged(
        experiment,
        claim,
        "yes",
        f"{widest} {min(ends):.3f} to {max(ends):.3f}",
        each,
        within(ALIKE),
        difference=str(gap).lstrip("+"),
        words=f"{widest} varies most, by {gap.mean:.3f} over the values tried. {rest}",
    )


def _range(rows: list[Row], score: str) -> tuple[Interval, list[float]]:
    """The difference between the values with the highest and the lowest mean, and all means."""
    by_value = grouped(rows, "value")
    means = {value: s.mean for value, mine in by_value.items() if (s := spread(mine, score))}
    high, low = max(means, key=lambda v: means[v]), min(means, key=lambda v: means[v])
    return paired(by_value[high], by_value[low], score), list(means.values())
