"""The picture of a comparison: a row per method, a panel per score, a dot per run."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from manyview.app.compare.methods import GROUPS
from manyview.app.report.page import printable
from manyview.plot import COLORS, pyplot

#: Column of the table, title, and what is better.
PANELS = (
    ("acc", "Accuracy", "higher is better"),
    ("nmi", "NMI", "higher is better"),
    ("ari", "Adjusted Rand index", "higher is better"),
    ("f_score", "Pair F-score", "higher is better"),
    ("precision", "Pair precision", "higher is better"),
    ("recall", "Pair recall", "1 also if all is one cluster"),
    ("seconds", "Seconds per run", "further left is faster"),
)
PER_ROW = 4
COLOR_OF = dict(zip(GROUPS, (COLORS[i] for i in (3, 5, 0, 2, 1, 7)), strict=True))
#: Stands for the colour of text: in a page it becomes the page's own, light or dark.
INK, FAINT = "#010203", "#808387"
LONGEST_NAME = 26


def draw(table: Any, summary: Any, methods: Sequence[dict[str, Any]]) -> Any:
    """A figure of all panels the table has columns for, methods in the order of the summary."""
    plt = pyplot()
    panels = [panel for panel in PANELS if panel[0] in table]
    about = {method["name"]: method for method in methods}
    names = list(summary["method"])
    n_columns = min(PER_ROW, len(panels))
    n_rows = -(-len(panels) // n_columns)
    size = (2.6 + 2.45 * n_columns, n_rows * (1.0 + 0.27 * len(names)) + 0.7)
    with plt.rc_context({"text.color": INK, "axes.labelcolor": INK, "axes.titlecolor": INK}):
        figure = plt.figure(figsize=size, layout="constrained")
        grid = figure.subplots(n_rows, n_columns, squeeze=False, sharey=True)
        axes = grid.ravel()
        for ax, (column, title, hint) in zip(axes, panels, strict=False):
            _panel(ax, table, names, about, column)
            ax.set_title(title, fontsize=10, weight="bold", pad=6)
            ax.set_xlabel(hint, fontsize=8, color=FAINT)
        for ax in axes[len(panels) :]:
            ax.remove()
        for row in grid:
            _name_rows(row[0], table, names, about)
        _legend(figure, [about[name] for name in names])
    return figure


def svg(figure: Any) -> str:
    """The figure as an <svg> element that takes the colour of the text around it."""
    plt = pyplot()
    buffer = io.StringIO()
    # Text stays text, and ids stay the same: equal results give equal files.
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "manyview"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :].replace(INK, "currentColor")


def _panel(ax: Any, table: Any, names: list[str], about: dict[str, Any], column: str) -> None:
    if column == "seconds":
        _whole_decades(ax, table[column].dropna())
    else:
        ax.set_xlim(-0.03, 1.03)
    for i, name in enumerate(names):
        values = table.loc[(table["method"] == name) & (table["status"] == "ok"), column]
        values = values.dropna().to_numpy()
        if i % 2 == 0:
            ax.axhspan(i - 0.5, i + 0.5, color=FAINT, alpha=0.09, linewidth=0)
        if not len(values):
            continue
        color = COLOR_OF[about[name]["group"]]
        # Spread over the row so that equal runs remain visible; evenly, so that it means nothing.
        offset = np.linspace(-0.22, 0.22, len(values)) if len(values) > 1 else np.zeros(1)
        fill = "none" if about[name]["oracle"] else color
        ax.scatter(values, i + offset, s=13, facecolors=fill, edgecolors=color, lw=0.8, alpha=0.75)
        ax.plot([values.mean()] * 2, [i - 0.38, i + 0.38], color=INK, lw=1.6)
        shown = f"{values.mean():.2f}" if column != "seconds" else _short(values.mean())
        ax.annotate(
            shown,
            (1.02, i),
            xycoords=("axes fraction", "data"),
            fontsize=8,
            va="center",
            color=INK,
        )
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(colors=FAINT, labelsize=8, length=2)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color=FAINT, alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[:].set_visible(False)


def _whole_decades(ax: Any, seconds: Any) -> None:
    """A log axis from one power of ten to another, so that two ticks at least can be read."""
    from matplotlib.ticker import NullFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    if len(seconds):
        low, high = np.log10(max(seconds.min(), 1e-3)), np.log10(max(seconds.max(), 1e-3))
        ax.set_xlim(0.8 * 10 ** np.floor(low), 1.25 * 10 ** max(np.ceil(high), np.floor(low) + 1))


def _name_rows(ax: Any, table: Any, names: list[str], about: dict[str, Any]) -> None:
    ax.set_yticks(range(len(names)), [_label(name, about[name]["oracle"]) for name in names])
    for tick, name in zip(ax.get_yticklabels(), names, strict=True):
        tick.set(color=INK, fontsize=9, parse_math=False)
        if about[name]["group"] in ("robust", "proposed"):
            tick.set_weight("bold")
    for i, name in enumerate(names):
        states = set(table.loc[table["method"] == name, "status"])
        if "ok" not in states:
            text = "failed" if "failed" in states else "skipped"
            ax.annotate(
                f"{text}, see the table",
                (0.03, i),
                xycoords=("axes fraction", "data"),
                fontsize=8,
                va="center",
                style="italic",
                color=FAINT,
            )


def _legend(figure: Any, methods: Sequence[dict[str, Any]]) -> None:
    from matplotlib.lines import Line2D

    def dot(color: str, filled: bool) -> dict[str, Any]:
        face = color if filled else "none"
        return {"marker": "o", "color": "none", "mfc": face, "mec": color, "ms": 6}

    present = [group for group in GROUPS if any(m["group"] == group for m in methods)]
    handles = [Line2D([], [], label=GROUPS[g], **dot(COLOR_OF[g], True)) for g in present]
    if any(m["oracle"] for m in methods):
        label = "oracle: chose its view by the true classes"
        handles.append(Line2D([], [], label=label, **dot(COLOR_OF["paper"], False)))
    handles.append(
        Line2D([], [], label="mean of the runs", color="none", marker="|", mec=INK, ms=11, mew=1.6)
    )
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=3,
        frameon=False,
        fontsize=9,
        handletextpad=0.2,
    )


def _label(name: str, oracle: bool) -> str:
    name = printable(name)
    short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return f"{short} (oracle)" if oracle else short


def _short(seconds: float) -> str:
    return (
        f"{seconds:.0f}"
        if seconds >= 10
        else f"{seconds:.1f}"
        if seconds >= 1
        else f"{seconds:.2f}"
    )
