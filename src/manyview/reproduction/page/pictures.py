"""The same figures as PNG and SVG files, by matplotlib."""

from __future__ import annotations

import io
from typing import Any

from manyview._colors import PALETTE

from .forms import Figure, Panel, Series


def pictures(form: Figure) -> dict[str, bytes]:
    """``name.png`` and ``name.svg``."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "figures as files need matplotlib: pip install 'manyview[app]'", name="matplotlib"
        ) from error
    columns = min(form.columns, len(form.panels))
    rows = -(-len(form.panels) // columns)
    size = (4.4 * columns, (form.height / 100 + 0.4) * rows)
    canvas = Canvas(figsize=size, layout="constrained")
    FigureCanvasAgg(canvas)
    axes = canvas.subplots(rows, columns, squeeze=False).ravel()
    for ax, panel in zip(axes, form.panels, strict=False):
        _panel(ax, panel, legend=not form.shared_legend)
    for ax in axes[len(form.panels) :]:
        ax.remove()
    return {f"{form.name}.{kind}": _saved(canvas, kind) for kind in ("png", "svg")}


def _saved(canvas: Any, kind: str) -> bytes:
    import matplotlib as mpl

    buffer = io.BytesIO()
    # Text stays text, and equal results give equal files.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "manyview"}):
        settings: dict[str, Any] = {"metadata": {"Date": None}} if kind == "svg" else {"dpi": 130}
        canvas.savefig(buffer, format=kind, facecolor="white", **settings)
    return buffer.getvalue()


def _panel(ax: Any, panel: Panel, legend: bool) -> None:
    bars = [s for s in panel.series if s.kind == "bar"]
    boxes = [s for s in panel.series if s.kind == "box"]
    places = {s.name: i for i, s in enumerate(boxes)}
    for series in panel.series:
        if series.kind == "box":
            _box(ax, series, places[series.name])
        elif series.kind == "marks":
            known = [(x, places[y]) for x, y in zip(series.x, series.y, strict=True) if y in places]
            ax.scatter(*zip(*known, strict=True), marker="D", s=16, color=_color(series), zorder=3)
        elif series.kind == "bar":
            _bars(ax, series, bars.index(series), len(bars))
        else:
            _curve(ax, series)
    if boxes:
        ax.set_yticks(range(len(boxes)), [s.name for s in boxes], parse_math=False, fontsize=7)
    for x, _ in panel.marks:
        ax.axvline(x, color=PALETTE[5], linestyle="--", linewidth=1)
    # Only where asked: setting a scale, even the same again, forgets the names of the ticks.
    for axis, log, scale in (
        (ax.xaxis, panel.x_log, ax.set_xscale),
        (ax.yaxis, panel.y_log, ax.set_yscale),
    ):
        if log:
            scale("log")
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("{x:g}" if _few_decades(axis) else "")
    if panel.x_range:
        ax.set_xlim(*panel.x_range)
    if panel.y_range:
        ax.set_ylim(*panel.y_range)
    ax.set_title(panel.title, fontsize=9, parse_math=False)
    ax.set_xlabel(panel.x_label, fontsize=8, parse_math=False)
    ax.set_ylabel(panel.y_label, fontsize=8, parse_math=False)
    ax.tick_params(labelsize=7, which="both")
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    if legend and len(panel.series) > 1:
        for text in ax.legend(fontsize=6, frameon=False).get_texts():
            text.set_parse_math(False)


def _few_decades(axis: Any) -> bool:
    low, high = sorted(axis.get_view_interval())
    return high < 30 * low


def _color(series: Series) -> str:
    return PALETTE[series.color % len(PALETTE)]


def _box(ax: Any, series: Series, place: int) -> None:
    drawn = ax.boxplot(
        [list(series.x)], positions=[place], widths=0.6, orientation="horizontal",
        patch_artist=True, manage_ticks=False, flierprops={"markersize": 2},
    )  # fmt: skip
    drawn["boxes"][0].set(facecolor=_color(series), alpha=0.6)
    drawn["medians"][0].set(color="black")


def _bars(ax: Any, series: Series, place: int, n: int) -> None:
    width = 0.8 / n
    at = [i + (place - (n - 1) / 2) * width for i in range(len(series.x))]
    values = [0 if y is None else y for y in series.y]
    ax.bar(at, values, width, color=_color(series), label=series.name)
    ax.set_xticks(range(len(series.x)), list(series.x), rotation=30, ha="right", parse_math=False)


def _curve(ax: Any, series: Series) -> None:
    style = {
        "color": _color(series),
        "linestyle": "--" if series.dashed else "-",
        "label": series.name,
    }
    marker = "o" if len(series.x) <= 30 else ""
    if series.sd:
        errors = [sd or 0.0 for sd in series.sd]
        ax.errorbar(series.x, series.y, errors, marker=marker, markersize=3, linewidth=1.2, **style)
    else:
        ax.plot(series.x, series.y, marker=marker, markersize=3, linewidth=1.2, **style)
