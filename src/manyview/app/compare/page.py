"""Pages of a comparison: a picture with a dot per run, and a self-contained page with the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from manyview.app.compare.methods import GROUPS
from manyview.app.report.page import (
    Section,
    asset,
    inline,
    macros,
    page,
    printable,
    trusted,
    with_csv,
)
from manyview.io.safe_csv import csv_of_dicts
from manyview.plot import COLORS, pyplot
from manyview.plot._draw import INK, file_of, short

Row = Mapping[str, Any]


class Score(NamedTuple):
    """A score against known classes: heading of its column, title of its panel, what it is."""

    heading: str
    title: str
    meaning: str


#: By the column of the table.
SCORES = {
    "acc": Score(
        "ACC",
        "Accuracy",
        "accuracy: share of samples in the right class under the best matching of clusters to classes",
    ),
    "nmi": Score("NMI", "NMI", "normalized mutual information of clusters and classes"),
    "ari": Score(
        "ARI",
        "Adjusted Rand index",
        "adjusted Rand index: agreement on pairs, 0 for a random clustering",
    ),
    "f_score": Score("F", "Pair F-score", "harmonic mean of pair precision and recall"),
    "precision": Score(
        "Prec.", "Pair precision", "of the pairs put together, the share that belong together"
    ),
    "recall": Score(
        "Recall",
        "Pair recall",
        "of the pairs that belong together, the share found; 1 for one big cluster",
    ),
}
#: Column of the summary, heading, its explanation.
OTHERS = (
    (
        "mean_rank",
        "Rank",
        "mean rank over ACC, NMI, ARI and F against the known classes; 1 is best; the "
        "ranks of other methods ignore oracles",
    ),
    ("stability", "Stab.", "stability: mean adjusted Rand index between runs of different seeds"),
    ("seconds_mean", "Seconds", "mean wall-clock time of one run"),
    ("peak_memory_mb", "MB", "largest peak memory of a run's whole process, Python included"),
)
PER_ROW, DPI = 4, 130
COLOR_OF = dict(zip(GROUPS, (COLORS[i] for i in (3, 5, 0, 2, 1, 7)), strict=True))
FAINT = "#808387"
LONGEST_NAME = 26


def draw(table: Any, summary: Any, methods: Sequence[dict[str, Any]]) -> Any:
    """A figure of all panels the table has columns for, methods in the order of the summary."""
    plt = pyplot()
    panels = [
        (
            name,
            score.title,
            "1 also if all is one cluster" if name == "recall" else "higher is better",
        )
        for name, score in SCORES.items()
        if name in table
    ]
    panels.append(("seconds", "Seconds per run", "further left is faster"))
    about = {method["name"]: method for method in methods}
    names = list(summary["method"])
    n_columns = min(PER_ROW, len(panels))
    n_rows = -(-len(panels) // n_columns)
    size = (
        2.6 + 2.45 * n_columns,
        n_rows * (1.0 + 0.27 * len(names)) + (0.7 if n_columns > 2 else 1.4),
    )
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
        _legend(figure, [about[name] for name in names], min(3, n_columns))
    return figure


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
        mean = values.mean()
        digits = 2 if column != "seconds" or mean < 1 else 1 if mean < 10 else 0
        _write(ax, f"{mean:.{digits}f}", 1.02, i, color=INK)
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
    told = [short(name, LONGEST_NAME) + " (oracle)" * about[name]["oracle"] for name in names]
    ax.set_yticks(range(len(names)), told)
    for tick, name in zip(ax.get_yticklabels(), names, strict=True):
        tick.set(color=INK, fontsize=9, parse_math=False)
        if about[name]["group"] in ("robust", "proposed"):
            tick.set_weight("bold")
    for i, name in enumerate(names):
        states = set(table.loc[table["method"] == name, "status"])
        if "ok" not in states:
            text = next(s for s in ("failed", "skipped", "not applicable") if s in states)
            _write(ax, f"{text}, see the table", 0.03, i, color=FAINT, style="italic")


def _write(ax: Any, text: str, x: float, row: int, **how: Any) -> None:
    place = {"xycoords": ("axes fraction", "data"), "va": "center"}
    ax.annotate(text, (x, row), fontsize=8, **place, **how)


def _legend(figure: Any, methods: Sequence[dict[str, Any]], n_columns: int) -> None:
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
    how = {
        "loc": "outside upper center",
        "ncols": n_columns,
        "frameon": False,
        "handletextpad": 0.2,
    }
    figure.legend(handles=handles, fontsize=9, **how)


def files_of(
    found: Any, command: str | None, tables: Mapping[str, Any], notes: Sequence[str]
) -> dict[str, bytes]:
    """The files of a `Comparison`; all are made before one is written."""
    plt, figure = pyplot(), found.figure()
    try:
        picture = file_of(figure, "png", dpi=DPI, facecolor="white")
        svg = inline(file_of(figure, "svg", transparent=True))
    finally:
        plt.close(figure)
    summary, results = plain_rows(found.summary), plain_rows(found.table)
    shared = {name: plain_rows(table) for name, table in tables.items()}
    page = _page(summary, results, found.methods, found.settings, svg, command, shared, notes)
    return {
        **{name: csv_of_dicts(rows, columns=tables[name].columns) for name, rows in shared.items()},
        "results.csv": csv_of_dicts(results, columns=found.table.columns),
        "summary.csv": csv_of_dicts(summary, columns=found.summary.columns),
        "comparison.png": picture,
        "comparison.html": page.encode(),
    }


def plain_rows(frame: Any) -> list[dict[str, Any]]:
    """Rows of plain values, None where empty: what a page builder may be given."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def _page(
    summary: Sequence[Row],
    results: Sequence[Row],
    methods: Sequence[Row],
    settings: Row,
    figure_svg: str,
    command: str | None,
    shared: Mapping[str, Sequence[Row]],
    notes: Sequence[str],
) -> str:
    """The page. Everything is text to be escaped except ``figure_svg``, an <svg> element."""
    title = f"{len(methods)} method{'s' * (len(methods) != 1)} compared"
    scores = tuple(
        (name, score.heading, score.meaning)
        for name, score in SCORES.items()
        if f"{name}_mean" in summary[0]
    )
    # Precision and recall last: the F-score sums them up, and screens are narrow.
    front, back = (scores[:-2], scores[1:][-2:]) if len(scores) > 1 else (scores, ())
    present = {method["group"] for method in methods}
    prose = macros(
        "comparison.html",
        rows=[{**row, "method": printable(row["method"])} for row in summary],
        about={printable(m["name"]): {**m, "name": printable(m["name"])} for m in methods},
        groups={group: text for group, text in GROUPS.items() if group in present},
        cautions={method["caution"] for method in methods},
        settings={**settings, "views": {printable(v): m for v, m in settings["views"].items()}},
        command=command and printable(command),
        svg=trusted(figure_svg),
        scores=scores,
        others=OTHERS,
        front=front,
        back=back,
        best={score: _best(summary, f"{score}_mean", max) for score, _, _ in scores}
        | {"rank": _best(summary, "mean_rank", min)},
        troubles=_troubles(results),
        ranked=any(row["mean_rank"] is not None for row in summary),
        shared={name: [_printable(row) for row in rows] for name, rows in shared.items()},
        notes=[printable(note) for note in notes],
        fixed=lambda value, digits: f"{round(value, digits) + 0.0:.{digits}f}",  # never "-0.00"
        with_csv=lambda body: with_csv(
            body, list(summary[0]), [list(row.values()) for row in summary], name="summary"
        ),
    )
    sections = [
        Section("summary", "Summary", prose.summary()),
        *([Section("shared", "What the methods share", prose.shared_part())] if shared else []),
        Section("every-run", "Every run", prose.runs()),
        Section("the-methods", "The methods", prose.methods()),
        Section("the-columns", "The columns", prose.columns()),
        Section("settings", "Settings", prose.made()),
    ]
    return page(title, sections, lead=prose.lead(), css=asset("comparison.css"))


def _printable(row: Row) -> dict[str, Any]:
    """The row with safe texts."""
    return {
        printable(name): printable(cell) if isinstance(cell, str) else cell
        for name, cell in row.items()
    }


def _best(summary: Sequence[Row], column: str, best: Any) -> float | None:
    values = [r[column] for r in summary if r[column] is not None and not r["oracle"]]
    return best(values) if values else None


def _troubles(results: Sequence[Row]) -> list[tuple[str, str, str, str]]:
    """Reasons of runs without a result and remarks of the others, equal ones together."""
    seen: dict[tuple[str, str, str], list[int]] = {}
    for row in results:
        if text := row["reason"] or row["remark"]:
            what = "remark" if row["status"] == "ok" else row["status"]
            seen.setdefault((row["method"], what, text), []).append(row["run"])
    found = []
    for (method, what, text), runs in seen.items():
        whole = len(runs) > 2 and runs == list(range(runs[0], runs[-1] + 1))
        which = f"{runs[0]} to {runs[-1]}" if whole else ", ".join(map(str, runs))
        found.append((printable(method), what, which, printable(text)))
    return sorted(
        found, key=lambda item: ("failed", "skipped", "not applicable", "remark").index(item[1])
    )
