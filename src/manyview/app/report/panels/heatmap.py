"""Heat map of the leading features: observations ordered by cluster, bars of what is known above."""

from __future__ import annotations

from typing import Any

from manyview._colors import PALETTE, SCALE
from manyview.app.report.page import figure, html, plot_text
from manyview.app.report.run_files import Run

from . import colouring
from .shared import (
    axis_labels,
    color,
    percent,
    short,
)

#: Bars above the heat map, the cluster's own aside.
BARS = 6
#: Values beyond are drawn like these, in standard deviations.
LIMIT = 2.5
DIVERGING = [[0, "#2166ac"], [0.25, "#92c5de"], [0.5, "#f7f7f7"], [0.75, "#f4a582"], [1, "#b2182b"]]


def heatmap(run: Run) -> Any:
    rows, features = run.tables["heatmap"], run.about.get("heatmap") or []
    if not rows or not features:
        return ""
    ids = [row["id"] for row in rows]
    bars = chosen_bars(run)
    labels = axis_labels([f"{item['feature']}" for item in features])
    z = [[short(row[item["heading"]]) for row in rows] for item in features]
    hover = [f"{plot_text(i)}, cluster {row['cluster']}" for i, row in zip(ids, rows, strict=True)]
    body = {
        "type": "heatmap",
        "z": z,
        "y": labels,
        "text": [
            [
                f"{who}<br>{plot_text(item['view'])}, a marker of cluster {item['cluster']}"
                for who in hover
            ]
            for item in features
        ]
        if len(features) * len(rows) <= 6000
        else [hover] * len(features),
        "hovertemplate": "%{y}: %{z:+.2f}<br>%{text}<extra></extra>",
        "colorscale": DIVERGING,
        "zmin": -LIMIT,
        "zmax": LIMIT,
        "hoverongaps": False,
        "colorbar": {
            "thickness": 12,
            "title": {"text": "z"},
            "len": 0.5,
            "y": 0,
            "yanchor": "bottom",
        },
    }
    height = 120 + 13 * len(features) + 16 * (len(bars) + 1)
    high = (13 * len(features)) / (13 * len(features) + 16 * (len(bars) + 1) + 8)
    traces = [body, _cluster_bar(rows)]
    for n, item in enumerate(bars):
        traces += _bar(item, ids, n + 1)
    return figure(
        traces,
        {
            "xaxis": _axis(rows) | {"anchor": "y"},
            "yaxis": {
                "autorange": "reversed",
                "type": "category",
                "showgrid": False,
                "domain": [0, high - 0.01],
                "tickfont": {"size": 10},
                "dtick": 1,
            },
            "yaxis2": {
                "domain": [high, 1],
                "range": [len(bars) + 0.5, -0.5],
                "tickvals": list(range(len(bars) + 1)),
                "ticktext": ["cluster", *axis_labels([item.name for item in bars], 18)],
                "showgrid": False,
                "zeroline": False,
                "automargin": True,
                "tickfont": {"size": 10},
            },
            "shapes": _borders(rows),
            "legend": {"y": 1, "tracegroupgap": 4, "font": {"size": 10}},
            "showlegend": any(item.levels is not None for item in bars),
            "margin": {"l": 10, "r": 10, "t": 32, "b": 40},
            "plot_bgcolor": "rgba(128,128,128,0.4)",
        },
        label="Heat map of the leading features, observations ordered by cluster",
        name="heatmap",
        caption=_caption(run, len(rows), bars),
        height=height,
    )


def _caption(run: Run, drawn: int, bars: list[colouring.Colouring]) -> Any:
    n = run.about["n_samples"]
    return html(
        "Rows: the features that set the clusters apart most, cluster by cluster (top to bottom) and "
        "view by view. Columns: observations{{ part }}, ordered by cluster and within it from sure to "
        "unsure. Colours: standard deviations from the feature's mean, cut at ±{{ limit }}; grey: not "
        "observed.{% if scales %} Bars of numbers run from dark (lowest) to bright (highest).{% endif %}",
        part=f" ({drawn} of {n})" if drawn < n else "",
        limit=LIMIT,
        scales=any(item.levels is None for item in bars),
    )


def chosen_bars(run: Run) -> list[colouring.Colouring]:
    """Known properties first, columns that differ between clusters before others; then reliance."""
    known, measured = colouring.known(run), colouring.measured(run)
    marked = (run.about.get("clinical") or {}).get("significant", [])
    known.sort(key=lambda item: (item.name != "class", item.name not in marked))
    reliance = [item for item in measured if item.name != "confidence"]
    return [*known[: BARS - 2], *reliance][:BARS] if known else reliance[:BARS]


def _axis(rows: list[dict[str, Any]]) -> dict[str, Any]:
    ticks, names = [], []
    for k in sorted({row["cluster"] for row in rows}):
        places = [i for i, row in enumerate(rows) if row["cluster"] == k]
        ticks.append((places[0] + places[-1]) / 2)
        names.append(str(k))
    title = {"text": "observations, by cluster"}
    return {
        "tickvals": ticks,
        "ticktext": names,
        "title": title,
        "showgrid": False,
        "zeroline": False,
    }


def _borders(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    at = [i for i in range(1, len(rows)) if rows[i]["cluster"] != rows[i - 1]["cluster"]]
    line = {"color": "#333333", "width": 1}
    return [
        {
            "type": "line",
            "x0": i - 0.5,
            "x1": i - 0.5,
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "line": line,
        }
        for i in at
    ]


def _strip(z: list[Any], y: int, scale: Any, low: float, high: float, words: list[str]) -> Any:
    return {
        "type": "heatmap",
        "z": [z],
        "y": [y],
        "yaxis": "y2",
        "colorscale": scale,
        "zmin": low,
        "zmax": high,
        "showscale": False,
        "text": [words],
        "hovertemplate": "%{text}<extra></extra>",
        "hoverongaps": False,
        "ygap": 2,
    }


def _steps(colours: list[str]) -> list[Any]:
    """A scale that gives the whole number k colour k."""
    n = len(colours)
    return [[(k + end) / n, colour] for k, colour in enumerate(colours) for end in (0, 1)]


def _cluster_bar(rows: list[dict[str, Any]]) -> Any:
    clusters = sorted({row["cluster"] for row in rows})
    place = {k: float(i) for i, k in enumerate(clusters)}
    scale = _steps([color(k) for k in clusters])
    words = [f"{plot_text(row['id'])}<br>cluster {row['cluster']}" for row in rows]
    return _strip(
        [place[row["cluster"]] for row in rows], 0, scale, -0.5, len(clusters) - 0.5, words
    )


def _bar(item: colouring.Colouring, ids: list[str], y: int) -> list[Any]:
    values = [item.values.get(i) for i in ids]
    name = plot_text(item.name)
    if item.levels is None:
        numbers = sorted(value for value in values if value is not None)
        if not numbers:
            return []
        low, high = numbers[int(0.01 * len(numbers))], numbers[int(0.99 * (len(numbers) - 1))]
        words = [
            f"{name}: " + ("not known" if v is None else percent(v) if item.percent else f"{v:.4g}")
            for v in values
        ]
        return [_strip([short(v) for v in values], y, SCALE, low, max(high, low + 1e-9), words)]
    shown = colouring.shown_levels(item.levels, values)
    rare = any(v is not None and v not in shown for v in values)
    colours = [PALETTE[k % len(PALETTE)] for k in range(len(shown))] + [colouring.OTHER] * rare
    if not colours:
        return []
    place = {level: float(k) for k, level in enumerate(shown)}
    codes = [None if v is None else place.get(v, float(len(shown))) for v in values]
    words = [f"{name}: {'not known' if v is None else plot_text(v)}" for v in values]
    strip = _strip(codes, y, _steps(colours), -0.5, len(colours) - 0.5, words)
    return [strip, *_keys(item.name, [*shown, "others"] if rare else shown, colours)]


def _keys(name: str, levels: list[str], colours: list[str]) -> list[Any]:
    """Entries of the legend, under the name of the column."""
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [None],
            "y": [None],
            "yaxis": "y2",
            "name": plot_text(level, 20),
            "legendgroup": name,
            "legendgrouptitle": {"text": plot_text(name, 20)},
            "marker": {"color": colour, "symbol": "square", "size": 9},
            "hoverinfo": "skip",
        }
        for level, colour in zip(levels, colours, strict=True)
    ]
