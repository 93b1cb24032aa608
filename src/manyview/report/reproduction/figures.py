"""From the tables to figures: one function per experiment."""

from __future__ import annotations

from collections.abc import Sequence

from . import paper
from .forms import Figure, Panel, Series
from .read import SCORES, Results, Row, grouped, spread
from .verdicts import in_order, slope, total_seconds

#: Colours by the origin of a method (places in the palette).
OURS, PROPOSED, SIMPLE, THEIRS = 3, 5, 2, 0
_PROPOSED = ("WM-NMF", "NMF-W1", "NMF-W2")
_SIMPLE = ("ConcatSpectral-z", "ConcatK-z", "ConcatSpectral-minmax", "SumOfGraphs")
DATA = {
    "digits": "digits",
    "synthetic": "synthetic data",
    "lihc": "LIHC",
    "nutrimouse": "nutrimouse",
}


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
    by_method = grouped(in_order(results.rows(experiment)), "method")
    panels = []
    for score, word in SCORES.items():
        # The last is drawn on top: the paper's own methods first, as in its table.
        series = [
            Series(name, [r[score] for r in rows], [name] * len(rows), "box", _color(name))
            for name, rows in reversed(by_method.items())
        ]
        if experiment == "digits":
            place = paper.COLUMNS.index(score)
            known = [name for name in by_method if name in paper.DIGITS]
            values = [paper.DIGITS[name][place][0] for name in known]
            series.append(Series("the paper's mean", values, known, "marks", 9))
        mean = spread(by_method.get("WM-NMF", []), score)
        marks = [(mean.mean, "WM-NMF")] if mean else []
        panels.append(Panel(word, "", "", series, x_range=(-0.02, 1.02), marks=marks))
    caption = (
        "One box per method over its runs; the dashed line is WM-NMF's mean. Orange: the paper's method "
        "and its ablations; blue: methods it compares to; green: plain methods it left out; pink: "
        "RobustWMNMF."
    )
    if experiment == "digits":
        caption += " Grey diamonds: the paper's means."
    return [Figure(f"{experiment}-boxes", caption, panels, True, 90 + 21 * max(len(by_method), 8))]


def _color(method: str) -> int:
    if method == "RobustWMNMF":
        return OURS
    return PROPOSED if method in _PROPOSED else SIMPLE if method in _SIMPLE else THEIRS


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
        rows = [r | {"total": total_seconds(r)} for r in results.rows("runtime", axis=axis)]
        ours = [r for r in rows if r["method"] == "manyview"]
        plain = [r for r in rows if r["method"] != "manyview"]
        series = []
        for name, mine, column, color in (
            ("manyview, whole fit", ours, "total", 5),
            ("manyview, loop only", ours, "seconds_loop", 1),
            ("plain NumPy, loop only", plain, "seconds_loop", 0),
        ):
            b = slope([(r["value"], r[column]) for r in mine])
            if b is not None:
                series.append(_line(f"{name}: slope {b:.2f}", mine, "value", column, color))
        panels.append(Panel(f"Against the {label}", label, "CPU seconds", series, True, True))
    caption = (
        "Both axes logarithmic: a slope of 1 is linear, 2 quadratic. Slopes by least squares. Plain NumPy "
        "keeps the graph as a dense N×N matrix, as the paper's operation count assumes."
    )
    return [Figure("runtime", caption, panels, columns=2)]


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


def noise(results: Results, experiment: str) -> list[Figure]:
    weights, alphas, accuracies = [], [], []
    rows = results.rows("noise")
    for method, mine in grouped(rows, "method").items():
        clean = grouped(
            results.rows("noise", "weights", method=method, scenario="clean"), "of_view"
        )
        hit = grouped([r for r in mine if r["scenario"] in ("replaced", "added")], "of_view")
        names = list(hit)
        before = [s.mean if (s := spread(clean.get(v, []), "alpha")) else None for v in names]
        after = [s.mean if (s := spread(hit[v], "alpha")) else None for v in names]
        shown = [f"{v} (added)" if v == "noise" else v for v in names]
        alphas.append(
            Panel(
                f"α of a view that is noise, {method}",
                "view replaced by noise",
                "α",
                [
                    Series("as it was", shown, before, "bar", 9),
                    Series("as noise", shown, after, "bar", 5),
                ],
            )
        )
        some = grouped([r for r in mine if r.get("w_noisy") is not None], "of_view")
        pairs = {v: (spread(r, "w_clean"), spread(r, "w_noisy")) for v, r in some.items()}
        weights.append(
            Panel(
                f"w of observations, {method}",
                "view with noise on some observations",
                "mean w in that view",
                [
                    Series(
                        "clean", list(pairs), [p[0] and p[0].mean for p in pairs.values()], "bar", 9
                    ),
                    Series(
                        "noisy", list(pairs), [p[1] and p[1].mean for p in pairs.values()], "bar", 5
                    ),
                ],
            )
        )
    series = []
    for i, (method, mine) in enumerate(grouped(rows, "method").items()):
        told = grouped([r for r in mine if r["dataset"] == "digits"], _scenario)
        means = [s.mean if (s := spread(r, "acc")) else None for r in told.values()]
        series.append(Series(method, list(told), means, "bar", (5, 3)[i % 2]))
    accuracies.append(Panel("Accuracy on the digits", "", "ACC", series, y_range=(0, 1)))
    return [
        Figure(
            "noise-alpha",
            "Does the weight of a view fall when it holds nothing but noise?",
            alphas,
            columns=2,
        ),
        Figure(
            "noise-w",
            "Does the weight of an observation fall where it is noisy?",
            weights,
            columns=2,
        ),
        Figure(
            "noise-accuracy",
            "What noise does to the clustering: on 20 % of the observations of a view, on all, or as a "
            "view added.",
            accuracies,
        ),
    ]


def _scenario(row: Row) -> str:
    word = {"clean": "clean", "added": "view added"}.get(row["scenario"])
    return word or f"{row['of_view']} {'all' if row['scenario'] == 'replaced' else '20 %'}"


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
            "The objective keeps falling while one view takes all the weight and the clusters get no "
            "better.",
            collapse,
        ),
        Figure(
            "degeneracy-escape",
            "Scaling U up and V down leaves two terms as they are and shrinks the graph term: without the "
            "rescaling of U the iterations drift that way.",
            escape,
        ),
    ]
