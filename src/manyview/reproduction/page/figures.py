"""From the tables to figures: one function per experiment, and the boxes."""

from __future__ import annotations

from manyview.reproduction.page.claims.digits import in_order, name_of
from manyview.reproduction.page.claims.lihc import beside

from . import paper
from .bars import noise
from .curves import convergence, degeneracy, runtime, sweep
from .forms import Figure, Panel, Series
from .read import SCORES, Results, grouped, spread

#: Colours by the origin of a method (places in the palette).
OURS, PROPOSED, SIMPLE, THEIRS = 3, 5, 2, 0
_PROPOSED = ("WM-NMF", "NMF-W1", "NMF-W2")
_SIMPLE = ("ConcatSpectral-z", "ConcatK-z", "ConcatSpectral-minmax", "SumOfGraphs")


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
    panels = []
    for score, word in SCORES.items():
        # The last is drawn on top: the paper's own methods first, as in its table.
        series = [
            Series(name, [r[score] for r in rows], [name] * len(rows), "box", _color(name))
            for name, rows in reversed(by_method.items())
        ]
        theirs = _of_the_paper(results, experiment, score)
        if theirs:
            series.append(
                Series("the paper's mean", list(theirs.values()), list(theirs), "marks", 9)
            )
        mean = spread(by_method.get("WM-NMF", []), score)
        marks = [(mean.mean, "WM-NMF")] if mean else []
        panels.append(Panel(word, "", "", series, x_range=(-0.02, 1.02), marks=marks))
    caption = (
        "One box per method over its runs; the dashed line is WM-NMF's mean. Orange: the paper's method "
        "and its ablations; blue: methods it compares to; green: plain methods it left out; pink: "
        "RobustWMNMF."
    )
    if any(_of_the_paper(results, experiment, score) for score in SCORES):
        caption += " Grey diamonds: the paper's means."
    if any(name.endswith("(500)") for name in by_method):
        caption += " (500): run on the first 50 digits of each class, not on all 2000."
    return [Figure(f"{experiment}-boxes", caption, panels, True, 90 + 21 * max(len(by_method), 8))]


def _of_the_paper(results: Results, experiment: str, score: str) -> dict[str, float]:
    """The paper's mean by the name of the box it belongs to."""
    place = paper.COLUMNS.index(score)
    if experiment == "lihc":
        return {method: cells[score][0] for _, method, cells in beside(results)}
    if experiment != "digits":
        return {}
    # The paper's rows are of all digits: no diamond on the boxes of a few.
    names = grouped(results.rows(experiment), name_of)
    return {name: paper.DIGITS[name][place][0] for name in names if name in paper.DIGITS}


def _color(method: str) -> int:
    if method == "RobustWMNMF":
        return OURS
    return PROPOSED if method in _PROPOSED else SIMPLE if method in _SIMPLE else THEIRS
