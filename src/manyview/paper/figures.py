"""The figures, drawn by matplotlib from the results: those of the page and those of the appendix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from manyview.plot import COLORS as PALETTE
from manyview.plot import pyplot
from manyview.plot._draw import file_of

from .claims import KINDS, PARTS, WEIGHTS, before_and_after, by_method, medians, slope
from .results import DIGITS, LIHC, SCORES, TEXTS, Reproduction, grouped

CAPTIONS: dict[str, str] = TEXTS["figures"]
#: Color of all text and axes; on the page it follows the theme.
INK = "#1d2125"
#: Colors by the origin of a method (places in the palette); all others are the paper's rivals.
OURS, PROPOSED, SIMPLE, THEIRS, GREY = 3, 5, 2, 0, 9
COLORS = {
    "RobustWMNMF": OURS,
    **dict.fromkeys(("WM-NMF", "NMF-W1", "NMF-W2"), PROPOSED),
    **dict.fromkeys(("ConcatSpectral-z", "ConcatK-z", "ConcatSpectral-minmax", "SumOfGraphs"), SIMPLE),
}  # fmt: skip
TERMS = ("objective", "reconstruction", "consensus", "regularizer")
SYMBOLS = {"p": "p", "beta": "β", "k": "K"}
NOISE = {"some": "noise on some samples", "replaced": "view replaced", "added": "view added"}
STYLE: dict[Any, Any] = {
    "text.parse_math": False,  # a view's name is no mathematics
    "font.size": 9, "axes.titlesize": 10, "axes.titlelocation": "left", "legend.fontsize": 8,
    "legend.frameon": False, "axes.grid": True, "grid.alpha": 0.25, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 1.3, "lines.markersize": 3.5,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
}  # fmt: skip

#: Puts one panel on a pair of axes.
Panel = Callable[[Any], None]


class Figure(NamedTuple):
    """``name`` is also the stem of its files; panels have the same size."""

    name: str
    caption: str
    panels: Sequence[Panel]
    columns: int = 3
    #: Of a panel, in inches.
    height: float = 3.2


def drawn(figure: Figure) -> dict[str, bytes]:
    """The figure as ``name.svg`` and ``name.png``."""
    plt = pyplot()
    columns = min(figure.columns, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    with plt.rc_context(STYLE):
        canvas = plt.figure(figsize=(10, figure.height * rows), layout="constrained")
        axes = canvas.subplots(rows, columns, squeeze=False).ravel()
        for ax, panel in zip(axes, figure.panels, strict=False):
            panel(ax)
        for ax in axes[len(figure.panels) :]:
            ax.remove()
        found = {
            f"{figure.name}.{kind}": file_of(canvas, kind, facecolor="white", dpi=dpi)
            for kind, dpi in (("svg", "figure"), ("png", 110))
        }
        plt.close(canvas)
    return found


def figures(results: Reproduction) -> Iterator[Figure]:
    """All figures with data; the first three are those of the page."""
    digits = {"dataset": "digits"}
    for name, panels, columns, height in (
        ("methods", list(methods(results, ("digits", "honest"), ("acc", "nmi"))), 2, 4.2),
        ("tuning", [*sweep(results, "p", "digits"), *sweep(results, "beta", "digits")], 3, 3.2),
        ("convergence", list(convergence(results, **digits)), 2, 3.2),
        *((f"{e}-scores", list(methods(results, (e,), SCORES)), 3, 3.6)
          for e in ("digits", "honest", "synthetic", "lihc", "nutrimouse")),
        ("tuning-other", [*sweep(results, "k", "digits"), *sweep(results, "p", "synthetic"),
                          *sweep(results, "beta", "synthetic"), *sweep(results, "k", "synthetic")], 3, 3.2),
        ("convergence-other", [*convergence(results, dataset="synthetic"),
                               *convergence(results, dataset="lihc")], 2, 3.2),
        ("runtime", list(runtime(results)), 2, 4.0),
        ("noise", list(noise(results)), 3, 2.8),
        ("degeneracy", list(degeneracy(results)), 3, 3.2),
    ):  # fmt: skip
        if panels:
            yield Figure(name, CAPTIONS[name.split("-")[-1]], panels, columns, height)


def lines(
    title: str, curves: Mapping[str, pd.DataFrame], colors: Sequence[int] = (), **axes: Any
) -> Iterator[Panel]:
    """A panel with a line for each frame of means (and, as a second column, their deviations)."""
    curves = {name: curve for name, curve in curves.items() if len(curve)}

    def draw(ax: Any) -> None:
        for i, (name, curve) in enumerate(curves.items()):
            sd = curve["sd"].fillna(0) if "sd" in curve and curve["sd"].any() else None
            color = PALETTE[(colors[i] if colors else i) % len(PALETTE)]
            marker = "o" if len(curve) <= 30 else ""
            ax.errorbar(curve.index, curve["mean"], sd, color=color, label=name, marker=marker)
        ax.set(title=title, **axes)
        for axis in (ax.xaxis, ax.yaxis):
            if axis.get_scale() == "log":
                low, high = sorted(axis.get_view_interval())
                axis.set_major_formatter("{x:g}")
                axis.set_minor_formatter("{x:g}" if high < 30 * low else "")
        if len(curves) > 1:
            ax.legend()

    if curves:
        yield draw


def curve(rows: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    """Means of y for every x, with their standard deviations."""
    return rows.groupby(x)[y].agg(mean="mean", sd="std")


def curves_of(rows: pd.DataFrame, x: str, columns: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    return {name: curve(rows, x, y) for y, name in columns.items()} if len(rows) else {}


def methods(
    results: Reproduction, experiments: Sequence[str], scores: Sequence[str] | Mapping[str, str]
) -> Iterator[Panel]:
    """A panel per score, a row per method: all its runs, their mean and deviation, the paper's mean."""
    rows = pd.concat([results.rows(e).assign(experiment=e) for e in experiments])
    if rows.empty:
        return
    of_paper = LIHC if experiments == ("lihc",) else DIGITS if "digits" in experiments else {}
    rows = rows[rows.dataset != "digits-50"]
    if len(experiments) > 1:  # a method of both has the same runs in both
        rows = rows.drop_duplicates(["method", "run"])
    # The first is on top.
    found = dict(reversed(by_method(rows).items()))

    def panel(score: str) -> Panel:
        def draw(ax: Any) -> None:
            for place, (method, mine) in enumerate(found.items()):
                color, values = PALETTE[COLORS.get(method, THEIRS)], mine[score]
                at = [place + 0.07 * (0, 1, -1, 2, -2)[i % 5] for i in range(len(values))]
                ax.scatter(values, at, s=6, color=color, alpha=0.4, linewidths=0)
                sd = values.std() if len(values) > 1 else None
                ax.errorbar(
                    values.mean(),
                    place,
                    xerr=sd,
                    color=color,
                    marker="|",
                    markersize=11,
                    linewidth=2,
                )
                if method in of_paper:
                    mean = of_paper[method][list(SCORES).index(score)][0]
                    ax.scatter(
                        mean, place, marker="D", s=26, facecolor="none", edgecolor=INK, zorder=3
                    )
            ax.set_yticks(range(len(found)), list(found))
            ax.set(title=SCORES[score], xlim=(-0.05, 1.02))

        return draw

    yield from map(panel, scores)


def sweep(results: Reproduction, experiment: str, dataset: str) -> Iterator[Panel]:
    """Scores against the parameter; for p also the weight of every view, left of them."""
    symbol, name = SYMBOLS[experiment], {"digits": "digits", "synthetic": "synthetic data"}[dataset]
    if experiment == "p":
        views = grouped(results.rows("p", "weights", dataset=dataset), "view").items()
        alpha = {view: curve(mine, "value", "alpha") for view, mine in views}
        yield from lines(f"View weights α, {name}", alpha, xlabel=symbol, ylim=(0, 1))
    found = curves_of(results.rows(experiment, dataset=dataset), "value", SCORES)
    if found:
        lowest = min(line["mean"].min() for line in found.values())
        bottom = 0.8 if lowest >= 0.8 else 0.1 * int(10 * lowest)
        colors = (5, 0, 1, 2, 3, 4)
        yield from lines(f"Scores, {name}", found, colors, xlabel=symbol, ylim=(bottom, 1.005))


def convergence(results: Reproduction, dataset: str) -> Iterator[Panel]:
    for scheme, how, label in (
        ("one at a time", "one iteration per view and round", "round"),
        ("recipe", "the recipe, 2 rounds × 30 per view", "iteration of any view"),
    ):
        rows = results.rows("convergence", run=0, dataset=dataset, scheme=scheme)
        found = curves_of(rows, "iteration", {term: term for term in TERMS})
        yield from lines(f"{dataset}: {how}", found, (5, 0, 3, 2), xlabel=label, yscale="log")


def runtime(results: Reproduction) -> Iterator[Panel]:
    for axis, label in (("N", "samples N"), ("n_v", "views n_v")):
        ours = results.rows("runtime", axis=axis, method="manyview")
        curves = {"whole fit": medians(ours)}
        curves |= {name: medians(ours, [part]) for part, name in PARTS.items()}
        curves["plain NumPy, loop"] = medians(
            results.rows("runtime", axis=axis, method="plain NumPy")
        )
        found = {
            f"{name}: slope {b:.2f}": seconds.to_frame("mean")
            for name, seconds in curves.items()
            if (b := slope(seconds.index, seconds)) is not None
        }
        log: dict[str, Any] = {"xscale": "log", "yscale": "log", "ylabel": "CPU seconds"}
        yield from lines(f"Against the {label}", found, (5, 1, 2, 3, 4, 0), xlabel=label, **log)


def noise(results: Reproduction) -> Iterator[Panel]:
    def bars(title: str, means: pd.DataFrame, label: str) -> Panel:
        def draw(ax: Any) -> None:
            means.plot.bar(ax=ax, width=0.8, color=[PALETTE[GREY], PALETTE[PROPOSED]])
            ax.margins(y=0.35)  # room for the legend
            ax.tick_params(axis="x", rotation=0)
            ax.set(title=title, xlabel="", ylabel=label)

        return draw

    for method in grouped(results.rows("noise"), "method"):
        for weight, kind in ((w, k) for w in WEIGHTS for k in KINDS):
            rows = before_and_after(results, method, weight, kind)
            if len(rows):
                means = rows.groupby("of_view", sort=False)[["before", "after"]].mean()
                means.columns = pd.Index(["without noise", "with noise"])
                yield bars(f"{method}: {NOISE[kind]}", means, {"alpha": "α"}.get(weight, weight))


def degeneracy(results: Reproduction) -> Iterator[Panel]:
    rows, sizes = results.rows("degeneracy"), results.rows("degeneracy", "sizes")
    alpha = {view: curve(mine, "round", "alpha")
             for view, mine in grouped(results.rows("degeneracy", "weights"), "view").items()}  # fmt: skip
    yield from lines("View weights α by round", alpha, xlabel="round", ylim=(0, 1))
    scores = curves_of(rows, "round", {s: SCORES[s] for s in ("acc", "nmi")})
    yield from lines("Scores by round", scores, xlabel="round")
    objective = curves_of(rows, "round", {"objective": "objective"})
    yield from lines("Objective by round", objective, xlabel="round", yscale="log")
    scaled = grouped(sizes, "rescale").items()
    for title, column in (
        ("Mean column sum of U", "column_sum_of_U"),
        ("Mean entry of V", "size_of_V"),
    ):
        found = {{"True": "rescaled", "False": "not rescaled"}[k]: curve(mine, "round", column)
                 for k, mine in scaled}  # fmt: skip
        yield from lines(title, found, xlabel="round", yscale="log")
    at = curves_of(results.rows("degeneracy", "scales"), "t", {term: term for term in TERMS})
    yield from lines("Objective at (tU, V/t)", at, xlabel="t", xscale="log", yscale="log")
