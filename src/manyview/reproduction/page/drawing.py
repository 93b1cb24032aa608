"""Figures for plotly, as plain JSON values: one plot per panel, so that a phone can stack them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manyview._colors import PALETTE
from manyview.output.report.page import figure, html, plot_text

from .forms import Figure, Panel, Series


def drawn(form: Figure, command: str = "", settings: Sequence[str] = ()) -> Any:
    """The panels side by side where there is room, with one row of toggles or a legend in each.

    Below them the caption, and what made the figure.
    """
    plots = [_plot(panel, form) for panel in form.panels]
    names = {s.name: s.color for panel in form.panels for s in panel.series}
    toggles = list(names.items())[::-1] if form.shared_legend else []
    return html(
        '<div class="group">{% if toggles %}<p class="toggles" role="group" aria-label="Show or hide">'
        '{% for name, color in toggles %}<button type="button" class="small" aria-pressed="true" '
        'data-series="{{ name }}"><span style="background:{{ palette[color] }}"></span>{{ name }}</button>'
        '{% endfor %}</p>{% endif %}<div class="panels wide{{ columns }}">'
        "{% for plot in plots %}{{ plot }}{% endfor %}</div>"
        "<p class=caption>{{ caption }}</p>{{ made }}</div>",
        toggles=toggles,
        palette=PALETTE,
        plots=plots,
        caption=form.caption,
        columns=form.columns,
        made=made_by(command, settings),
    )


def made_by(command: str, settings: Sequence[str]) -> Any:
    return html(
        "{% if command %}<div class=made><pre>{{ command }}</pre>"
        "{% if settings %}<details><summary>Settings</summary><ul>{% for line in settings %}"
        "<li>{{ line }}</li>{% endfor %}</ul></details>{% endif %}</div>{% endif %}",
        command=command,
        settings=settings,
    )


def _plot(panel: Panel, form: Figure) -> Any:
    traces = [_trace(series) for series in panel.series]
    layout: dict[str, Any] = {
        "title": {"text": plot_text(panel.title, 60), "font": {"size": 14}, "x": 0, "xanchor": "left"},
        "margin": {"l": 10, "r": 12, "t": 36, "b": 30},
        "xaxis": _axis(panel.x_label, panel.x_log, panel.x_range, [v for s in panel.series for v in s.x]),
        "yaxis": _axis(panel.y_label, panel.y_log, panel.y_range, [v for s in panel.series for v in s.y]),
        "showlegend": not form.shared_legend and len(traces) > 1,
        "legend": {"orientation": "h", "x": 0, "y": -0.25, "yanchor": "top"},
        "barmode": "group",
        "boxgap": 0.25,
        "shapes": [
            {"type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1,
             "line": {"dash": "dash", "width": 1.5, "color": PALETTE[5]}}
            for x, _ in panel.marks
        ],
    }  # fmt: skip
    names = ", ".join(series.name for series in panel.series)
    label = f"{panel.title}: {panel.y_label} {panel.x_label}; {names}"
    return figure(traces, layout, label=label, height=form.height)


def _axis(
    label: str, log: bool, span: tuple[float, float] | None, values: list[Any]
) -> dict[str, Any]:
    axis: dict[str, Any] = {"title": {"text": plot_text(label), "standoff": 6}}
    if log:
        # 1, 2 and 5 of each decade where there are few decades, else only the powers of ten.
        axis |= {"type": "log", "dtick": "D2" if max(values) < 100 * min(values) else 1}
    return axis | ({"range": list(span)} if span else {})


def _trace(series: Series) -> dict[str, Any]:
    # "meta" carries the plain name for the toggles; "name" is markup to plotly.
    name = plot_text(series.name)
    color = PALETTE[series.color % len(PALETTE)]
    trace: dict[str, Any] = {"name": name, "meta": series.name, "marker": {"color": color}}
    x, y = (
        [plot_text(v) if isinstance(v, str) else v for v in values]
        for values in (series.x, series.y)
    )
    trace |= {"x": x, "y": y}
    if series.kind == "box":
        points = {"boxpoints": "all", "jitter": 0.4, "pointpos": 0}
        marker = {"color": color, "size": 3, "opacity": 0.6}
        return trace | {
            "type": "box",
            "orientation": "h",
            **points,
            "marker": marker,
            "line": {"width": 1},
        }
    if series.kind == "bar":
        return trace | {"type": "bar"}
    if series.kind == "marks":
        marker = {
            "symbol": "diamond",
            "size": 8,
            "color": color,
            "line": {"width": 1, "color": "white"},
        }
        return trace | {"type": "scatter", "mode": "markers", "marker": marker}
    trace |= {"type": "scatter", "mode": "lines+markers" if len(x) <= 30 else "lines"}
    trace["line"] = {"color": color, "dash": "dash" if series.dashed else "solid"}
    if series.sd:
        trace["error_y"] = {"type": "data", "array": list(series.sd), "thickness": 1, "width": 3}
    return trace
