"""Running time: the exponents of its growth, of the whole fit and of its parts."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import mean, median

from manyview.reproduction.page.read import Results, Row, grouped

from .judging import Verdict, interval, judge, sentence, signed

PARTS = {
    "seconds_graph": "graph",
    "seconds_start": "start",
    "seconds_loop": "loop",
    "seconds_labels": "labels",
}
#: Exponents this near to 1 are called about linear.
LINEAR = 0.3

Points = list[tuple[float, float]]


def slope(points: Points) -> float | None:
    """Exponent b of seconds ≈ c · size^b, by least squares on logarithms."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    mx, my = mean(x for x, _ in logs), mean(y for _, y in logs)
    return sum((x - mx) * (y - my) for x, y in logs) / sum((x - mx) ** 2 for x, _ in logs)


def total_seconds(row: Row) -> float:
    return sum(row.get(part) or 0.0 for part in PARTS)


def medians(rows: list[Row], seconds: Callable[[Row], float]) -> Points:
    """The median over the repeats at every size."""
    return [
        (value, median(seconds(row) for row in mine))
        for value, mine in sorted(grouped(rows, "value").items())
    ]


def seconds_of(part: str) -> Callable[[Row], float]:
    return lambda row: row.get(part) or 0.0


def verdicts(results: Results) -> list[Verdict]:
    found = []
    for axis, words in (("N", "observations"), ("n_v", "views")):
        ours = results.rows("runtime", axis=axis, method="manyview")
        whole = slope(medians(ours, total_seconds))
        if whole is not None:
            plain = results.rows("runtime", axis=axis, method="plain NumPy")
            found.append(_growth(axis, words, ours, plain, whole))
    return found


def _growth(axis: str, words: str, ours: list[Row], plain: list[Row], whole: float) -> Verdict:
    repeats = [
        slope([(row["value"], total_seconds(row)) for row in mine])
        for mine in grouped(ours, "run").values()
    ]
    exponents = interval([b - 1 for b in repeats if b is not None])
    outcome = judge(exponents, -LINEAR, LINEAR)
    parts = {
        name: b for part, name in PARTS.items() if (b := slope(medians(ours, seconds_of(part))))
    }
    other = slope(medians(plain, seconds_of("seconds_loop")))
    said = f"seconds ∝ {axis}^{whole:.2f}" + (f"; plain NumPy {axis}^{other:.2f}" if other else "")
    told = "By part: " + ", ".join(f"{name} {axis}^{b:.2f}" for name, b in parts.items()) + "."
    told += sentence(
        outcome,
        f" The whole is within {LINEAR:g} of 1.",
        f" The whole is not within {LINEAR:g} of 1.",
        " One timing of each size is too little to judge by." if exponents.n < 2 else
        f" Whether the whole is within {LINEAR:g} of 1 is not clear from {exponents.n} repeats.",
    )  # fmt: skip
    if axis == "N" and parts.get("graph", 0.0) > 1 + LINEAR:
        told += (
            " The graph looks at all pairs of observations, which is quadratic; beyond 30 000 an "
            "approximate search takes its place."
        )
    claim = f"Time is about linear in the number of {words}"
    gap = f"{signed(whole - 1, 2)} in the exponent"
    return Verdict("runtime", claim, "about linear", said, gap, outcome, told)
