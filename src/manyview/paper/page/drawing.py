"""A figure as plain values, drawn by matplotlib: once for the page and for the files beside it."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from manyview._colors import PALETTE

#: Colour of all text and axes; on the page it follows the theme.
INK = "#1d2125"
#: Inches from side to side, shared by the panels of a row.
WIDTH = 11.2
#: Pixels of the page in an inch of a drawing.
PIXELS = 100


@dataclass(frozen=True)
class Series:
    """``kind`` is "line", "box" (horizontal, ``x`` are the values), "bar" or "marks"."""

    name: str
    x: Sequence[Any]
    y: Sequence[Any]
    kind: str = "line"
    color: int = 0
    sd: Sequence[float | None] | None = None

    @property
    def paint(self) -> str:
        return PALETTE[self.color % len(PALETTE)]


@dataclass(frozen=True)
class Panel:
    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_log: bool = False
    y_log: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    #: Places of vertical dashed lines.
    marks: Sequence[float] = ()


@dataclass(frozen=True)
class Figure:
    """``name`` is also the stem of its files; ``height`` is that of a panel in pixels."""

    name: str
    caption: str
    panels: Sequence[Panel]
    height: int = 340
    #: Panels side by side where there is room.
    columns: int = 3


def files(figure: Figure) -> dict[str, bytes]:
    """All panels in one picture, as ``name.png`` and ``name.svg``."""
    columns = min(figure.columns, len(figure.panels))
    kinds: dict[str, Any] = {"png": {"dpi": 130}, "svg": {"metadata": {"Date": None}}}
    drawn = _drawn(figure, figure.panels, columns, kinds, facecolor="white")
    return {f"{figure.name}.{kind}": data for kind, data in drawn.items()}


def svgs(figure: Figure) -> list[str]:
    """Every panel as an SVG element for a page, so that a phone can stack them."""
    columns = min(figure.columns, len(figure.panels))
    found = []
    for panel in figure.panels:
        kinds = {"svg": {"metadata": {"Date": None}, "transparent": True}}
        text = _drawn(figure, [panel], 1, kinds, width=WIDTH / columns)["svg"].decode()
        # Inside a page: no prologue, the page's own width and ink, and no name twice.
        text = re.sub(
            r' id="[\w.]+_\d+"', "", text[text.index("<svg") :].replace(INK, "currentColor")
        )
        found.append(
            re.sub(r'<svg[^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1">', text, count=1)
        )
    return found


def _drawn(
    figure: Figure,
    panels: Sequence[Panel],
    columns: int,
    kinds: dict[str, dict[str, Any]],
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
    colors = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    # Text stays text, and equal results give equal files.
    style: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "manyview", "font.size": 8}
    rows = -(-len(panels) // columns)
    with mpl.rc_context(style | dict.fromkeys(colors, INK)):
        canvas = Canvas(figsize=(width, figure.height / PIXELS * rows), layout="constrained")
        FigureCanvasAgg(canvas)
        axes = canvas.subplots(rows, columns, squeeze=False).ravel()
        for ax, panel in zip(axes, panels, strict=False):
            _draw(ax, panel)
        for ax in axes[len(panels) :]:
            ax.remove()
        found = {}
        for kind, own in kinds.items():
            buffer = io.BytesIO()
            canvas.savefig(buffer, format=kind, **own, **settings)
            found[kind] = buffer.getvalue()
    return found


def _draw(ax: Any, panel: Panel) -> None:
    bars = [s for s in panel.series if s.kind == "bar"]
    boxes = [s for s in panel.series if s.kind == "box"]
    places = {s.name: i for i, s in enumerate(boxes)}
    for series in panel.series:
        if series.kind == "box":
            _box(ax, series, places[series.name])
        elif series.kind == "marks":
            known = [(x, places[y]) for x, y in zip(series.x, series.y, strict=True) if y in places]
            ax.scatter(*zip(*known, strict=True), marker="D", s=16, color=series.paint, zorder=3)
        elif series.kind == "bar":
            _bars(ax, series, bars.index(series), len(bars))
        else:
            shape = {
                "marker": "o" if len(series.x) <= 30 else "",
                "markersize": 3,
                "linewidth": 1.2,
            }
            errors = [sd or 0.0 for sd in series.sd] if series.sd else None
            ax.errorbar(series.x, series.y, errors, color=series.paint, label=series.name, **shape)
    if boxes:
        ax.set_yticks(range(len(boxes)), list(places), parse_math=False)
    for x in panel.marks:
        ax.axvline(x, color=PALETTE[5], linestyle="--", linewidth=1)
    _finish(ax, panel)
    if not boxes and len(panel.series) > 1:
        for text in ax.legend(fontsize=7, frameon=False).get_texts():
            text.set_parse_math(False)


def _finish(ax: Any, panel: Panel) -> None:
    """Scales, ranges and words of a panel."""
    # Only where asked: setting a scale, even the same again, forgets the names of the ticks.
    for axis, log, scale in (
        (ax.xaxis, panel.x_log, ax.set_xscale),
        (ax.yaxis, panel.y_log, ax.set_yscale),
    ):
        if log:
            scale("log")
            axis.set_major_formatter("{x:g}")
            low, high = sorted(axis.get_view_interval())
            axis.set_minor_formatter("{x:g}" if high < 30 * low else "")
    ax.set_xlim(panel.x_range)
    ax.set_ylim(panel.y_range)
    ax.set_title(panel.title, fontsize=9, loc="left", parse_math=False)
    ax.set_xlabel(panel.x_label, parse_math=False)
    ax.set_ylabel(panel.y_label, parse_math=False)
    ax.tick_params(labelsize=7, which="both")
    ax.grid(alpha=0.25)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def _box(ax: Any, series: Series, place: int) -> None:
    drawn = ax.boxplot(
        [list(series.x)], positions=[place], widths=0.6, orientation="horizontal",
        patch_artist=True, manage_ticks=False, showfliers=False,
    )  # fmt: skip
    drawn["boxes"][0].set(facecolor=series.paint, alpha=0.5)
    for line in (*drawn["medians"], *drawn["whiskers"], *drawn["caps"]):
        line.set(color=INK)
    # Every run is seen too, a little apart from the others.
    at = [place + 0.09 * (0, 1, -1, 2, -2)[i % 5] for i in range(len(series.x))]
    ax.scatter(list(series.x), at, s=3, color=series.paint, alpha=0.7, zorder=2.5)


def _bars(ax: Any, series: Series, place: int, n: int) -> None:
    width = 0.8 / n
    at = [i + (place - (n - 1) / 2) * width for i in range(len(series.x))]
    values = [0 if y is None else y for y in series.y]
    ax.bar(at, values, width, color=series.paint, label=series.name)
    ax.margins(y=0.35)  # room for the legend
    ax.set_xticks(range(len(series.x)), list(series.x), rotation=30, ha="right", parse_math=False)
