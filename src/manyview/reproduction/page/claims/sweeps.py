"""p, β and K: how the view weights and the scores change with them."""

from __future__ import annotations

from manyview.reproduction.page.read import SCORES, Results, Row, grouped, spread

from .judging import ALIKE, Interval, Verdict, above, paired, together, told, within


def verdicts(results: Results) -> list[Verdict]:
    found = [
        _sparse(dataset, rows)
        for dataset, rows in grouped(results.rows("p", "weights"), "dataset").items()
    ]
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
        runs = grouped(mine, "run")
        largest[value] = [
            {"run": run, "top": max(r["alpha"] for r in of_run)} for run, of_run in runs.items()
        ]
    low, *rest = largest
    gaps = {value: paired(largest[low], largest[value], "top") for value in rest}
    each = {f"p={value}": above(gap) for value, gap in gaps.items()}
    means = {value: s.mean for value, mine in largest.items() if (s := spread(mine, "top"))}
    return Verdict(
        "p",
        f"Small p gives sparse view weights ({dataset})",
        "yes",
        "largest α " + ", ".join(f"{m:.2f} at p={value}" for value, m in means.items()),
        f"{gaps[rest[-1]]} from p={low} to p={rest[-1]}",
        together(each.values()),
        f"Is the largest α higher at p={low} than at the others? {told(each, 'values')}",
    )


def _alike(experiment: str, claim: str, rows: list[Row]) -> Verdict:
    """Every score between the values with its highest and its lowest mean."""
    ranges = {score: _range(rows, score) for score in SCORES}
    each = {SCORES[score]: within(gap, ALIKE) for score, gap in ranges.items()}
    widest = max(ranges, key=lambda score: ranges[score].mean)
    ends = [s.mean for mine in grouped(rows, "value").values() if (s := spread(mine, widest))]
    words = f"{SCORES[widest]} varies most, by {ranges[widest].mean:.3f} over the values tried"
    if ranges[widest].n < 2:
        rest = "One run of each: there is no scatter to compare that to."
    else:
        rest = f"Within {ALIKE:g}? {told(each, 'scores')}"
    return Verdict(
        experiment,
        claim,
        "yes",
        f"{SCORES[widest]} {min(ends):.3f} to {max(ends):.3f}",
        str(ranges[widest]).lstrip("+"),
        together(each.values()),
        f"{words}. {rest}",
    )


def _range(rows: list[Row], score: str) -> Interval:
    by_value = grouped(rows, "value")
    means = {value: s.mean for value, mine in by_value.items() if (s := spread(mine, score))}
    high, low = max(means, key=lambda v: means[v]), min(means, key=lambda v: means[v])
    return paired(by_value[high], by_value[low], score)
