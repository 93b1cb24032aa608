"""Figures of curves: the sweeps, running time, convergence, and the two weaknesses."""

from __future__ import annotations

from collections.abc import Sequence

from manyview.reproduction.page.claims.runtime import (
    PARTS,
    medians,
    seconds_of,
    slope,
    total_seconds,
)

from .forms import Figure, Panel, Series
from .read import DATA, SCORES, Results, Row, grouped, spread


def sweep(results: Results, experiment: str) -> list[Figure]:
    """Scores against the parameter; for p also the view weights, left of them."""
    symbol = {"p": "p", "beta": "β", "k": "K"}[experiment]
    weights = grouped(results.rows(experiment, "weights"), "dataset")
    panels = []
    for dataset, rows in grouped(results.rows(experiment), "dataset").items():
        if experiment == "p":
            series = [
                _line(view, mine, "value", "alpha", i)
                for i, (view, mine) in enumerate(grouped(weights.get(dataset, []), "view").items())
            ]
            title = f"View weights, {DATA.get(dataset, dataset)}"
            panels.append(Panel(title, symbol, "α", series, y_range=(0, 1)))
        lines = [_line(w, rows, "value", s, i) for i, (s, w) in enumerate(SCORES.items())]
        lowest = min((v for line in lines for v in line.y), default=1.0)
        bottom = 0.8 if lowest >= 0.8 else 0.1 * int(10 * lowest)
        title = f"Scores, {DATA.get(dataset, dataset)}"
        panels.append(Panel(title, symbol, "score", lines, y_range=(bottom, 1.005)))
    return [
        Figure(
            experiment, "Means over the runs; bars are one standard deviation.", panels, columns=2
        )
    ]


def _line(
    name: str, rows: Sequence[Row], x: str, y: str, color: int, dashed: bool = False
) -> Series:
    """Means of y for every x, with their standard deviations."""
    points = [(v, s) for v, mine in grouped(rows, x).items() if (s := spread(mine, y))]
    points.sort(key=lambda p: p[0])
    sd = [s.sd for _, s in points]
    return Series(
        name,
        [v for v, _ in points],
        [s.mean for _, s in points],
        color=color,
        sd=sd if any(sd) else None,
        dashed=dashed,
    )


def runtime(results: Results, experiment: str) -> list[Figure]:
    panels = []
    for axis, label in (("N", "observations N"), ("n_v", "views n_v")):
        ours = results.rows("runtime", axis=axis, method="manyview")
        plain = results.rows("runtime", axis=axis, method="plain NumPy")
        curves = [("whole fit", medians(ours, total_seconds), 5)]
        curves += [
            (name, medians(ours, seconds_of(part)), color)
            for (part, name), color in zip(PARTS.items(), (1, 2, 3, 4), strict=True)
        ]
        curves.append(("plain NumPy, loop", medians(plain, seconds_of("seconds_loop")), 0))
        series = [
            Series(
                f"{name}: slope {b:.2f}",
                [x for x, _ in points],
                [y for _, y in points],
                color=color,
            )
            for name, points, color in curves
            if (b := slope(points)) is not None
        ]
        panels.append(Panel(f"Against the {label}", label, "CPU seconds", series, True, True))
    caption = (
        "Medians of the repeats, both axes logarithmic: a slope of 1 is linear, 2 quadratic. Slopes by "
        "least squares. Plain NumPy keeps the graph as a dense N×N matrix, as the paper's operation "
        "count assumes; the others are the parts of manyview's fit."
    )
    return [Figure("runtime", caption, panels, columns=2, height=420)]


def convergence(results: Results, experiment: str) -> list[Figure]:
    terms = ("objective", "reconstruction", "consensus", "regularizer")
    panels = []
    for dataset, rows in grouped(results.rows("convergence"), "dataset").items():
        for scheme, mine in grouped(rows, "scheme").items():
            first = [r for r in mine if r["run"] == 0]
            series = [
                Series(
                    term,
                    [r["iteration"] for r in first if r[term] > 0],
                    [r[term] for r in first if r[term] > 0],
                    color=i,
                )
                for i, term in enumerate(terms)
            ]
            how = "the recipe (2×30 per view)" if scheme == "recipe" else "one iteration per round"
            label = "iteration of any view" if scheme == "recipe" else "round"
            panels.append(
                Panel(f"{DATA.get(dataset, dataset)}: {how}", label, "value", series, y_log=True)
            )
    caption = (
        "Every term of the objective, first seed, logarithmic. With one iteration per round, "
        "rescaling U and the new weights come after each; the jumps of the recipe are these same steps "
        "after 30 iterations."
    )
    return [Figure("convergence", caption, panels, columns=2)]


def degeneracy(results: Results, experiment: str) -> list[Figure]:
    weights = grouped(results.rows("degeneracy", "weights"), "view")
    rows = results.rows("degeneracy")
    collapse = [
        Panel(
            "View weights by round",
            "rounds",
            "α",
            [_line(v, r, "round", "alpha", i) for i, (v, r) in enumerate(weights.items())],
            y_range=(0, 1),
        ),
        Panel(
            "Accuracy by round",
            "rounds",
            "score",
            [_line(SCORES[s], rows, "round", s, i) for i, s in enumerate(("acc", "nmi")) if rows],
        ),
        Panel(
            "Objective by round",
            "rounds",
            "objective",
            [_line("objective", rows, "round", "objective", 0)] if rows else [],
            y_log=True,
        ),
    ]
    sizes = grouped(results.rows("degeneracy", "sizes"), "rescale")
    named = {"True": "U rescaled", "False": "not rescaled"}
    escape = [
        Panel(
            title,
            "rounds",
            title,
            [_line(named[k], r, "round", column, i) for i, (k, r) in enumerate(sizes.items())],
            y_log=True,
        )
        for title, column in (
            ("Mean column sum of U", "column_sum_of_U"),
            ("Mean entry of V", "size_of_V"),
        )
    ]
    scales = results.rows("degeneracy", "scales")
    terms = ("objective", "reconstruction", "consensus", "regularizer")
    lines = [_line(term, scales, "t", term, i) for i, term in enumerate(terms)] if scales else []
    escape.append(Panel("Objective at (tU, V/t)", "t", "value", lines, x_log=True, y_log=True))
    return [
        Figure(
            "degeneracy-collapse",
            "WM-NMF round by round: the view weights, the scores and the objective. Means over the runs; "
            "bars are one standard deviation.",
            collapse,
        ),
        Figure(
            "degeneracy-escape",
            "Left and middle: the sizes of U and V by round, with U rescaled after each and without. "
            "Right: every term of the objective at (tU, V/t), for the U and V of one fit.",
            escape,
        ),
    ]
