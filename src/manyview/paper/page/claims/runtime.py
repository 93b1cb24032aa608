"""Running time: the exponents of its growth, of the whole fit and of its parts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import mean, median

from manyview.paper.page.read import Results, Row, grouped

from .judging import (
    Rule,
    Verdict,
    interval,
    judged,
    signed,
    told,
)

PARTS = {
    "seconds_graph": "graph",
    "seconds_start": "start",
    "seconds_loop": "loop",
    "seconds_labels": "labels",
}
#: What the paper's claim is judged by: an iteration of the algorithm, and the search for neighbours.
JUDGED = ("seconds_loop", "seconds_graph")
#: Exponents up to this much above 1 are called about linear: what grows more slowly, all the more.
LINEAR = Rule(-math.inf, 0.3, "at most 0.3 above 1")

Points = list[tuple[float, float]]


def slope(points: Points) -> float | None:
    """Exponent b of seconds ≈ c · size^b, by least squares on logarithms."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    mx, my = mean(x for x, _ in logs), mean(y for _, y in logs)
    return sum((x - mx) * (y - my) for x, y in logs) / sum((x - mx) ** 2 for x, _ in logs)


def seconds(row: Row, parts: Iterable[str] = PARTS) -> float:
    return sum(row.get(part) or 0.0 for part in parts)


def medians(rows: list[Row], parts: Iterable[str] = PARTS) -> Points:
    """The median over the repeats at every size, of the parts together."""
    by_size = sorted(grouped(rows, "value").items())
    return [(size, median(seconds(row, parts) for row in mine)) for size, mine in by_size]


def verdicts(results: Results) -> list[Verdict]:
    found = []
    for axis, words in (("N", "observations"), ("n_v", "views")):
        ours = results.rows("runtime", axis=axis, method="manyview")
        if slope(medians(ours)) is not None:
            plain = results.rows("runtime", axis=axis, method="plain NumPy")
            found.append(_growth(axis, words, ours, plain))
    return found


def _growth(axis: str, words: str, ours: list[Row], plain: list[Row]) -> Verdict:
    exponents = {}
    for part in JUDGED:
        repeats = [
            slope([(row["value"], seconds(row, [part])) for row in mine])
            for mine in grouped(ours, "run").values()
        ]
        exponents[PARTS[part]] = interval([b - 1 for b in repeats if b is not None])
    each = LINEAR.each({name: found for name, found in exponents.items() if found.n})
    parts = {name: b for part, name in PARTS.items() if (b := slope(medians(ours, [part])))}
    whole, other = slope(medians(ours)) or 0.0, slope(medians(plain))
    ours_said = ", ".join(f"{name} {axis}^{parts[name]:.2f}" for name in each)
    ours_said += f"; whole fit {axis}^{whole:.2f}"
    ours_said += f"; plain NumPy {axis}^{other:.2f}" if other else ""
    said = f"About linear, at most {axis}^1.3? {told(each, 'parts')} By part: "
    said += ", ".join(f"{name} {axis}^{b:.2f}" for name, b in parts.items()) + "."
    if max((found.n for found in exponents.values()), default=0) < 2:
        said += " One timing of each size is too little to judge by."
    if axis == "N" and parts.get("graph", 0.0) > 1 + LINEAR.high:
        said += (
            " The graph looks at all pairs of observations, which is quadratic; beyond 30 000 an "
            "approximate search takes its place."
        )
    claim = f"Time is about linear in the number of {words}"
    gap = ", ".join(f"{name} {signed(parts[name] - 1, 2)}" for name in each) + " in the exponent"
    return judged(
        "runtime", claim, "about linear", ours_said, each, LINEAR, difference=gap, words=said
    )
