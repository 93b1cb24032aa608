"""From the tables to figures: one function for each kind of experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import paper
from .claims.beside import (
    PaperRow,
    digits_rows,
    in_order,
    name_of,
)
from .claims.lihc import lihc_rows
from .claims.noise import KINDS, WEIGHTS, before_and_after
from .claims.runtime import PARTS, medians, slope
from .drawing import Figure, Panel, Series
from .read import (
    DATA,
    SCORES,
    TERMS,
    Results,
    Row,
    grouped,
    spread,
)

#: Colours by the origin of a method (places in the palette); all others are the paper's rivals.
OURS, PROPOSED, SIMPLE, THEIRS = 3, 5, 2, 0
COLORS = {
    "RobustWMNMF": OURS,
    **dict.fromkeys(("WM-NMF", "NMF-W1", "NMF-W2"), PROPOSED),
    **dict.fromkeys(("ConcatSpectral-z", "ConcatK-z", "ConcatSpectral-minmax", "SumOfGraphs"), SIMPLE),
}  # fmt: skip
NOISE = {"some": "noise on some observations", "replaced": "view replaced", "added": "view added"}


def figures(results: Results, experiment: str) -> list[Figure]:
    """The figures of an experiment, those without data left out."""
    makers = {
        **dict.fromkeys(("digits", "honest", "synthetic", "lihc", "nutrimouse"), boxes),
        **dict.fromkeys(("p", "beta", "k"), sweep),
        "runtime": runtime,
        "convergence": convergence,
        "noise": noise,
        "degeneracy": degeneracy,
    }
    if experiment not in makers:
        return []
    return [f for f in makers[experiment](results, experiment) if any(p.series for p in f.panels)]


def boxes(results: Results, experiment: str) -> list[Figure]:
    """A panel per score, a box per method, a dashed line at WM-NMF's mean: the form of the LIHC figure."""
    by_method = grouped(in_order(results.rows(experiment)), name_of)
    theirs = {"digits": digits_rows, "lihc": lihc_rows}.get(experiment, _none)(results)
    # The paper's rows are of all digits: no diamond on the boxes of a few.
    theirs = [row for row in theirs if name_of(row.runs[0]) == row.method]
    panels = []
    for score, word in SCORES.items():
        # The last is drawn on top: the paper's own methods first, as in its table.
        series = [
            Series(
                name, [r[score] for r in rows], [name] * len(rows), "box", COLORS.get(name, THEIRS)
            )
            for name, rows in reversed(by_method.items())
        ]
        if theirs:
            means = [row.cells[score].paper for row in theirs]
            names = [row.method for row in theirs]
            series.append(Series("the paper's mean", means, names, "marks", 9))
        mean = spread(by_method.get("WM-NMF", []), score)
        marks = [mean.mean] if mean else []
        panels.append(Panel(word, "", "", series, x_range=(-0.02, 1.02), marks=marks))
    caption = (
        "One box per method over its runs, one dot per run; the dashed line is WM-NMF's mean. Orange: the "
        "paper's method and its ablations; blue: methods it compares to; green: plain methods it left out; "
        "pink: RobustWMNMF."
    )
    caption += " Grey diamonds: the paper's means." if theirs else ""
    if any(name.endswith("(500)") for name in by_method):
        caption += " (500): run on the first 50 digits of each class, not on all 2000."
    return [Figure(f"{experiment}-boxes", caption, panels, 90 + 21 * max(len(by_method), 8))]


def _none(results: Results) -> list[PaperRow]:
    return []


def sweep(results: Results, experiment: str) -> list[Figure]:
    """Scores against the parameter; for p also the view weights, left of them."""
    symbol = paper.SYMBOLS[experiment]
    weights = grouped(results.rows(experiment, "weights"), "dataset")
    panels = []
    for dataset, rows in grouped(results.rows(experiment), "dataset").items():
        name = DATA.get(dataset, dataset)
        if experiment == "p":
            alpha = _of_each(weights.get(dataset, []), "view", "value", "alpha")
            panels.append(Panel(f"View weights, {name}", symbol, "α", alpha, y_range=(0, 1)))
        lines = _columns(rows, "value", SCORES)
        lowest = min((v for line in lines for v in line.y), default=1.0)
        bottom = 0.8 if lowest >= 0.8 else 0.1 * int(10 * lowest)
        panels.append(Panel(f"Scores, {name}", symbol, "score", lines, y_range=(bottom, 1.005)))
    caption = "Means over the runs; bars are one standard deviation."
    return [Figure(experiment, caption, panels, columns=2)]


def runtime(results: Results, experiment: str) -> list[Figure]:
    panels = []
    for axis, label in (("N", "observations N"), ("n_v", "views n_v")):
        ours = results.rows("runtime", axis=axis, method="manyview")
        plain = results.rows("runtime", axis=axis, method="plain NumPy")
        curves = [("whole fit", medians(ours), 5)]
        curves += [
            (name, medians(ours, [part]), i) for i, (part, name) in enumerate(PARTS.items(), 1)
        ]
        curves.append(("plain NumPy, loop", medians(plain), 0))
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
    return [Figure("runtime", caption, panels, 420, 2)]


def convergence(results: Results, experiment: str) -> list[Figure]:
    panels = []
    for dataset, rows in grouped(results.rows("convergence", run=0), "dataset").items():
        for scheme, mine in grouped(rows, "scheme").items():
            recipe = scheme == "recipe"
            how = "the recipe (2×30 per view)" if recipe else "one iteration per round"
            title = f"{DATA.get(dataset, dataset)}: {how}"
            label = "iteration of any view" if recipe else "round"
            series = _columns(mine, "iteration", TERMS)
            panels.append(Panel(title, label, "value", series, y_log=True))
    caption = (
        "Every term of the objective, first seed, logarithmic. With one iteration per round, "
        "rescaling U and the new weights come after each; the jumps of the recipe are these same steps "
        "after 30 iterations."
    )
    return [Figure("convergence", caption, panels, columns=2)]


def degeneracy(results: Results, experiment: str) -> list[Figure]:
    rows, sizes = results.rows("degeneracy"), results.rows("degeneracy", "sizes")
    named = [row | {"rescale": paper.RESCALED[row["rescale"]]} for row in sizes]
    alpha = _of_each(results.rows("degeneracy", "weights"), "view", "round", "alpha")
    scores = _columns(rows, "round", {s: SCORES[s] for s in ("acc", "nmi")})
    objective = _columns(rows, "round", {"objective": "objective"})
    collapse = [
        Panel("View weights by round", "rounds", "α", alpha, y_range=(0, 1)),
        Panel("Accuracy by round", "rounds", "score", scores),
        Panel("Objective by round", "rounds", "objective", objective, y_log=True),
    ]
    escape = [
        Panel(t, "rounds", t, _of_each(named, "rescale", "round", column), y_log=True)
        for t, column in (
            ("Mean column sum of U", "column_sum_of_U"),
            ("Mean entry of V", "size_of_V"),
        )
    ]
    at = _columns(results.rows("degeneracy", "scales"), "t", TERMS)
    escape.append(Panel("Objective at (tU, V/t)", "t", "value", at, x_log=True, y_log=True))
    first = (
        "WM-NMF round by round: the view weights, the scores and the objective. Means over the runs; "
        "bars are one standard deviation."
    )
    second = (
        "Left and middle: the sizes of U and V by round, with U rescaled after each and without. "
        "Right: every term of the objective at (tU, V/t), for the U and V of one fit."
    )
    collapsed = Figure("degeneracy-collapse", first, collapse)
    return [collapsed, Figure("degeneracy-escape", second, escape)]


def noise(results: Results, experiment: str) -> list[Figure]:
    asked = {
        "alpha": "Does the weight α of a view fall where there is noise in it? Grey: without the noise, "
        "same seed (for an added view, an equal share); orange: with it. Means over the runs.",
        "w": "Does the weight w of observations fall where they are noisy? Grey: the same observations "
        "without the noise, same seed (for an added view, the mean of the other views); orange: with it. "
        "Means over the runs.",
    }
    methods = grouped(results.rows("noise"), "method")
    found = []
    for weight, caption in asked.items():
        panels = []
        for method in methods:
            for kind in KINDS:
                pairs = before_and_after(results, method, weight, kind)
                series = [
                    Series(name, list(pairs), [_mean(runs[i], weight) for runs in pairs.values()], "bar", c)
                    for i, (name, c) in enumerate((("without noise", 9), ("with noise", 5)))
                ]  # fmt: skip
                title = f"{method}: {NOISE[kind]}"
                panels += [Panel(title, "view", WEIGHTS[weight][1], series)] if pairs else []
        found.append(Figure(f"noise-{weight}", caption, panels, height=280))
    series = []
    for i, (method, mine) in enumerate(methods.items()):
        kinds = grouped([r for r in mine if r["dataset"] == "digits"], _scenario)
        means = [_mean(rows, "acc") for rows in kinds.values()]
        series.append(Series(method, list(kinds), means, "bar", (5, 3)[i % 2]))
    caption = (
        "What noise does to the clustering: on some of the observations of a view, on all, or as a view "
        "added. Means over the runs."
    )
    panel = Panel("Accuracy on the digits", "", "ACC", series, y_range=(0, 1))
    return [*found, Figure("noise-accuracy", caption, [panel])]


def _scenario(row: Row) -> str:
    word = {"clean": "clean", "added": "view added"}.get(row["scenario"])
    return word or f"{row['of_view']} {'all' if row['scenario'] == 'replaced' else 'some'}"


def _mean(rows: Sequence[Row], column: str) -> float | None:
    found = spread(rows, column)
    return found.mean if found else None


def _of_each(rows: Sequence[Row], by: str, x: str, y: str) -> list[Series]:
    """A line for each value of the column ``by``."""
    return [_line(name, mine, x, y, i) for i, (name, mine) in enumerate(grouped(rows, by).items())]


def _columns(rows: Sequence[Row], x: str, names: Mapping[str, str]) -> list[Series]:
    """A line for each column, under its name."""
    return [_line(name, rows, x, y, i) for i, (y, name) in enumerate(names.items()) if rows]


def _line(name: str, rows: Sequence[Row], x: str, y: str, color: int) -> Series:
    """Means of y for every x, with their standard deviations."""
    points = [(v, s) for v, mine in grouped(rows, x).items() if (s := spread(mine, y))]
    points.sort(key=lambda p: p[0])
    sd = [s.sd for _, s in points]
    at, means = [v for v, _ in points], [s.mean for _, s in points]
    return Series(name, at, means, color=color, sd=sd if any(sd) else None)
