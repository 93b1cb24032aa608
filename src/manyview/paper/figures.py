"""The figures of every experiment, drawn by matplotlib: once for the page and for the files beside it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from manyview.plot import COLORS as PALETTE

from .claims import (
    KINDS,
    PARTS,
    WEIGHTS,
    before_and_after,
    by_method,
    medians,
    name_of,
    paper_rows,
    slope,
)
from .results import SCORES, Results, grouped
from .tables import DATA, RESCALED, SYMBOLS, TERMS
from .texts import TEXTS

CAPTIONS: dict[str, str] = TEXTS["figures"]
#: Colour of all text and axes; on the page it follows the theme.
INK = "#1d2125"
#: Inches from side to side, shared by the panels of a row; pixels of the page in an inch.
WIDTH, PIXELS = 11.2, 100
#: Colours by the origin of a method (places in the palette); all others are the paper's rivals.
OURS, PROPOSED, SIMPLE, THEIRS, GREY = 3, 5, 2, 0, 9
COLORS = {
    "RobustWMNMF": OURS,
    **dict.fromkeys(("WM-NMF", "NMF-W1", "NMF-W2"), PROPOSED),
    **dict.fromkeys(("ConcatSpectral-z", "ConcatK-z", "ConcatSpectral-minmax", "SumOfGraphs"), SIMPLE),
}  # fmt: skip
NOISE = {"some": "noise on some observations", "replaced": "view replaced", "added": "view added"}


@dataclass(frozen=True)
class Panel:
    """One pair of axes: ``draw`` puts the data there, ``axes`` are settings of matplotlib's."""

    title: str
    draw: Callable[[Any], None]
    axes: Mapping[str, Any]
    #: What a reader who cannot see it is told beside the title.
    label: str = ""


@dataclass(frozen=True)
class Figure:
    """``name`` is also the stem of its files; ``height`` is that of a panel in pixels."""

    name: str
    caption: str
    panels: Sequence[Panel]
    height: int = 340
    #: Panels side by side where there is room.
    columns: int = 3


def figures(results: Results, experiment: str) -> list[Figure]:
    """The figures of an experiment, those without data left out."""
    makers: dict[str, Callable[[Results, str], Iterator[Figure]]] = {
        **dict.fromkeys(("digits", "honest", "synthetic", "lihc", "nutrimouse"), boxes),
        **dict.fromkeys(("p", "beta", "k"), sweep),
        "runtime": runtime,
        "convergence": convergence,
        "noise": noise,
        "degeneracy": degeneracy,
    }
    if experiment not in makers or results.rows(experiment).empty:
        return []
    return [figure for figure in makers[experiment](results, experiment) if figure.panels]


def files(figure: Figure) -> dict[str, bytes]:
    """All panels in one picture, as ``name.png`` and ``name.svg``."""
    kinds: dict[str, Any] = {"png": {"dpi": 130}, "svg": {"metadata": {"Date": None}}}
    columns = min(figure.columns, len(figure.panels))
    drawn = _drawn(figure, figure.panels, columns, kinds, facecolor="white")
    return {f"{figure.name}.{kind}": data for kind, data in drawn.items()}


def svgs(figure: Figure) -> list[str]:
    """Every panel as an SVG element for a page, so that a phone can stack them."""
    width = WIDTH / min(figure.columns, len(figure.panels))
    found = []
    for panel in figure.panels:
        kinds = {"svg": {"metadata": {"Date": None}, "transparent": True}}
        text = _drawn(figure, [panel], 1, kinds, width=width)["svg"].decode()
        # Inside a page: no prologue, the page's own width and ink, and no name twice.
        text = text[text.index("<svg") :].replace(INK, "currentColor")
        text = re.sub(r' id="[\w.]+_\d+"', "", text)
        found.append(
            re.sub(r'<svg[^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1">', text, count=1)
        )
    return found


def _drawn(
    figure: Figure,
    panels: Sequence[Panel],
    columns: int,
    kinds: Mapping[str, dict[str, Any]],
    width: float = WIDTH,
    **settings: Any,
) -> dict[str, bytes]:
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "figures need matplotlib: pip install 'manyview[app]'", name="matplotlib"
        ) from error
    # Text stays text, a view's name is no mathematics, and equal results give equal files.
    style: dict[Any, Any] = {
        "svg.fonttype": "none", "svg.hashsalt": "manyview", "text.parse_math": False,
        "font.size": 8, "axes.titlesize": 9, "axes.titlelocation": "left", "legend.fontsize": 7,
        "legend.frameon": False, "xtick.labelsize": 7, "ytick.labelsize": 7, "axes.grid": True,
        "grid.alpha": 0.25, "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
    }  # fmt: skip
    colors = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    rows = -(-len(panels) // columns)
    with mpl.rc_context(style | dict.fromkeys(colors, INK)):
        canvas = Canvas(figsize=(width, figure.height / PIXELS * rows), layout="constrained")
        FigureCanvasAgg(canvas)
        axes = canvas.subplots(rows, columns, squeeze=False).ravel()
        for ax, panel in zip(axes, panels, strict=False):
            panel.draw(ax)
            ax.set(title=panel.title, **panel.axes)
            for axis in (ax.xaxis, ax.yaxis):
                if axis.get_scale() == "log":
                    low, high = sorted(axis.get_view_interval())
                    axis.set_major_formatter("{x:g}")
                    axis.set_minor_formatter("{x:g}" if high < 30 * low else "")
        for ax in axes[len(panels) :]:
            ax.remove()
        found = {}
        for kind, own in kinds.items():
            buffer = io.BytesIO()
            canvas.savefig(buffer, format=kind, **own, **settings)
            found[kind] = buffer.getvalue()
    return found


def lines(
    title: str, curves: Mapping[str, pd.DataFrame], colors: Sequence[int] = (), **axes: Any
) -> list[Panel]:
    """A panel with a line for each frame of means (and, as a second column, their deviations)."""
    curves = {name: curve for name, curve in curves.items() if len(curve)}

    def draw(ax: Any) -> None:
        for i, (name, curve) in enumerate(curves.items()):
            sd = curve["sd"].fillna(0) if "sd" in curve and curve["sd"].any() else None
            color = PALETTE[(colors[i] if colors else i) % len(PALETTE)]
            marker = "o" if len(curve) <= 30 else ""
            ax.errorbar(curve.index, curve["mean"], sd, color=color, label=name, marker=marker,
                        markersize=3, linewidth=1.2)  # fmt: skip
        if len(curves) > 1:
            ax.legend()

    return [Panel(title, draw, axes, ", ".join(curves))] if curves else []


def curve(rows: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    """Means of y for every x, with their standard deviations."""
    return rows.groupby(x)[y].agg(mean="mean", sd="std")


def curves_of(rows: pd.DataFrame, x: str, columns: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    return {name: curve(rows, x, y) for y, name in columns.items()} if len(rows) else {}


def bars(title: str, heights: pd.DataFrame, colors: Sequence[int], **axes: Any) -> Panel:
    """A group of bars for each row, a color for each column."""

    def draw(ax: Any) -> None:
        heights.plot.bar(ax=ax, width=0.8, color=[PALETTE[c] for c in colors], legend=False)
        ax.margins(y=0.35)  # room for the legend
        ax.tick_params(axis="x", rotation=30)
        if heights.shape[1] > 1:
            ax.legend()

    return Panel(title, draw, {"xlabel": "", **axes}, ", ".join(map(str, heights)))


def boxes(results: Results, experiment: str) -> Iterator[Figure]:
    """A panel per score, a box per method, a dashed line at WM-NMF's mean: the form of the LIHC figure."""
    # The last is drawn on top: the paper's own methods first, as in its table.
    found = by_method(results.rows(experiment)).values()
    methods = {name_of(rows): rows for rows in reversed(found)}
    # The paper's rows are of all digits: no diamond on the boxes of a few.
    theirs = [row for row in paper_rows(results, experiment) if name_of(row.runs) == row.method]
    panels = [
        Panel(word, _boxes(score, methods, {row.method: row.scores.paper[score] for row in theirs}),
              {"xlim": (-0.02, 1.02)}, ", ".join(methods))
        for score, word in SCORES.items()
    ]  # fmt: skip
    caption = CAPTIONS["boxes"] + (CAPTIONS["means"] if theirs else "")
    caption += CAPTIONS["few"] if any(name.endswith("(500)") for name in methods) else ""
    yield Figure(f"{experiment}-boxes", caption, panels, 90 + 21 * max(len(methods), 8))


def _boxes(
    score: str, methods: Mapping[str, pd.DataFrame], theirs: Mapping[str, float]
) -> Callable[[Any], None]:
    def draw(ax: Any) -> None:
        drawn = ax.boxplot(
            [rows[score] for rows in methods.values()], positions=range(len(methods)), widths=0.6,
            orientation="horizontal", patch_artist=True, manage_ticks=False, showfliers=False,
        )  # fmt: skip
        for line in (*drawn["medians"], *drawn["whiskers"], *drawn["caps"]):
            line.set(color=INK)
        for place, (box, (name, rows)) in enumerate(
            zip(drawn["boxes"], methods.items(), strict=True)
        ):
            color = PALETTE[COLORS.get(name, THEIRS)]
            box.set(facecolor=color, alpha=0.5)
            # Every run is seen too, a little apart from the others.
            at = [place + 0.09 * (0, 1, -1, 2, -2)[i % 5] for i in range(len(rows))]
            ax.scatter(rows[score], at, s=3, color=color, alpha=0.7, zorder=2.5)
        places = [list(methods).index(name) for name in theirs]
        ax.scatter(list(theirs.values()), places, marker="D", s=16, color=PALETTE[GREY], zorder=3)
        ax.set_yticks(range(len(methods)), list(methods))
        if "WM-NMF" in methods:
            mean = methods["WM-NMF"][score].mean()
            ax.axvline(mean, color=PALETTE[PROPOSED], linestyle="--", linewidth=1)

    return draw


def sweep(results: Results, experiment: str) -> Iterator[Figure]:
    """Scores against the parameter; for p also the view weights, left of them."""
    symbol = SYMBOLS[experiment]
    weights = grouped(results.rows(experiment, "weights"), "dataset")
    panels: list[Panel] = []
    for dataset, rows in grouped(results.rows(experiment), "dataset").items():
        name = DATA.get(dataset, dataset)
        if experiment == "p" and dataset in weights:
            views = grouped(weights[dataset], "view").items()
            alpha = {view: curve(mine, "value", "alpha") for view, mine in views}
            panels += lines(f"View weights, {name}", alpha, xlabel=symbol, ylabel="α", ylim=(0, 1))
        found = curves_of(rows, "value", SCORES)
        lowest = min(line["mean"].min() for line in found.values())
        bottom = 0.8 if lowest >= 0.8 else 0.1 * int(10 * lowest)
        axes: dict[str, Any] = {"xlabel": symbol, "ylabel": "score", "ylim": (bottom, 1.005)}
        panels += lines(f"Scores, {name}", found, **axes)
    yield Figure(experiment, CAPTIONS["sweep"], panels, columns=2)


def runtime(results: Results, experiment: str) -> Iterator[Figure]:
    panels: list[Panel] = []
    for axis, label in (("N", "observations N"), ("n_v", "views n_v")):
        ours = results.rows("runtime", axis=axis, method="manyview")
        plain = results.rows("runtime", axis=axis, method="plain NumPy")
        curves = {"whole fit": medians(ours)}
        curves |= {name: medians(ours, [part]) for part, name in PARTS.items()}
        curves["plain NumPy, loop"] = medians(plain)
        found = {
            f"{name}: slope {b:.2f}": seconds.to_frame("mean")
            for name, seconds in curves.items()
            if (b := slope(seconds.index, seconds)) is not None
        }
        log: dict[str, Any] = {"xscale": "log", "yscale": "log"}
        colors = (5, 1, 2, 3, 4, 0)
        panels += lines(
            f"Against the {label}", found, colors, xlabel=label, ylabel="CPU seconds", **log
        )
    yield Figure("runtime", CAPTIONS["runtime"], panels, 420, 2)


def convergence(results: Results, experiment: str) -> Iterator[Figure]:
    panels: list[Panel] = []
    for dataset, rows in grouped(results.rows("convergence", run=0), "dataset").items():
        for scheme, mine in grouped(rows, "scheme").items():
            recipe = scheme == "recipe"
            how = "the recipe (2×30 per view)" if recipe else "one iteration per round"
            label = "iteration of any view" if recipe else "round"
            found = curves_of(mine, "iteration", {term: term for term in TERMS})
            title = f"{DATA.get(dataset, dataset)}: {how}"
            panels += lines(title, found, xlabel=label, ylabel="value", yscale="log")
    yield Figure("convergence", CAPTIONS["convergence"], panels, columns=2)


def degeneracy(results: Results, experiment: str) -> Iterator[Figure]:
    rows, sizes = results.rows("degeneracy"), results.rows("degeneracy", "sizes")
    weights, scales = results.rows("degeneracy", "weights"), results.rows("degeneracy", "scales")
    alpha = {v: curve(mine, "round", "alpha") for v, mine in grouped(weights, "view").items()}
    scores = {s: SCORES[s] for s in ("acc", "nmi")}
    sized = {RESCALED[k]: mine for k, mine in grouped(sizes, "rescale").items()}
    x: dict[str, Any] = {"xlabel": "rounds"}
    log: dict[str, Any] = {"yscale": "log"}
    objective = curves_of(rows, "round", {"objective": "objective"})
    collapse = [
        *lines("View weights by round", alpha, **x, ylabel="α", ylim=(0, 1)),
        *lines("Accuracy by round", curves_of(rows, "round", scores), **x, ylabel="score"),
        *lines("Objective by round", objective, **x, ylabel="objective", **log),
    ]
    escape: list[Panel] = []
    for title, column in (
        ("Mean column sum of U", "column_sum_of_U"),
        ("Mean entry of V", "size_of_V"),
    ):
        found = {name: curve(mine, "round", column) for name, mine in sized.items()}
        escape += lines(title, found, **x, ylabel=title, **log)
    at = curves_of(scales, "t", {term: term for term in TERMS})
    escape += lines("Objective at (tU, V/t)", at, xlabel="t", ylabel="value", xscale="log", **log)
    yield Figure("degeneracy-collapse", CAPTIONS["collapse"], collapse)
    yield Figure("degeneracy-escape", CAPTIONS["escape"], escape)


def noise(results: Results, experiment: str) -> Iterator[Figure]:
    methods = grouped(results.rows("noise"), "method")
    for weight in ("alpha", "w"):
        panels = []
        for method in methods:
            for kind in KINDS:
                rows = before_and_after(results, method, weight, kind)
                if len(rows):
                    means = rows.groupby("of_view", sort=False)[["before", "after"]].mean()
                    means.columns = pd.Index(["without noise", "with noise"])
                    title = f"{method}: {NOISE[kind]}"
                    panels.append(bars(title, means, (GREY, 5), ylabel=WEIGHTS[weight][1]))
        yield Figure(f"noise-{weight}", CAPTIONS[f"noise-{weight}"], panels, height=280)
    rows = results.rows("noise", dataset="digits")
    place = rows.of_view + rows.scenario.map({"replaced": " all"}).fillna(" some")
    named = rows.scenario.map({"clean": "clean", "added": "view added"}).fillna(place)
    acc = rows.acc.groupby([named, rows.method], sort=False).mean().unstack(sort=False)
    panel = bars("Accuracy on the digits", acc, (5, 3), ylabel="ACC", ylim=(0, 1))
    yield Figure("noise-accuracy", CAPTIONS["noise-accuracy"], [panel])
