"""How long members of the clusters live: curves, numbers at risk, tests."""

from __future__ import annotations

from typing import Any

from manyview.app.report.page import figure, html, table
from manyview.app.report.run_files import Run

from .shared import Rows, color

#: Corners of a curve, and marks of censored members, that are drawn.
CORNERS, MARKS = 400, 300


def survival(run: Run) -> Any:
    about = run.about["survival"]
    if "problem" in about:
        return html("<p>Survival was not compared: {{ why }}.</p>", why=about["problem"])
    return html(
        "<p>{{ verdict }}</p>{{ drawn }}{{ clusters }}{{ pairs }}"
        "{% if notes %}<ul>{% for note in notes %}<li>{{ note }}</li>{% endfor %}</ul>{% endif %}",
        verdict=_verdict(about),
        drawn=_drawn(run, about),
        clusters=_clusters(run, about),
        pairs=_pairs(run, about),
        notes=about["notes"],
    )


def p_text(p: float | None, permutations: int = 0) -> str:
    """A p-value for people; the smallest that permutations can give says so."""
    if p is None:
        return "not tested"
    if permutations and p <= 1 / (permutations + 1):
        return f"≤ {p:.2g}"
    return f"{p:.2g}" if p >= 1e-4 else "< 0.0001"


def _verdict(about: dict[str, Any]) -> str:
    if about["p_value"] is None:
        return "Survival of the clusters could not be tested; the notes below say why."
    how = (
        f"from {about['permutations']} permutations of the labels"
        if about["permutations"]
        else "by the χ² approximation"
    )
    sense = (
        "Survival differs between the clusters"
        if about["p_value"] <= 0.05
        else "No difference in survival between the clusters can be shown"
    )
    return (
        f"{sense}: log-rank test over all clusters, χ² = {about['statistic']:.2f}, p "
        f"{equal(p_text(about['p_value'], about['permutations']))} ({how}). Time is the column "
        f"“{about['time']}”, the event “{about['event']}”."
    )


def equal(text: str) -> str:
    """What stands after "p": a p-value that only has a bound brings its own sign."""
    return text if text[0] in "≤<" else f"= {text}"


def _drawn(run: Run, about: dict[str, Any]) -> Any:
    rows, at_risk = run.tables["survival_curves"], run.tables["survival_at_risk"]
    clusters = sorted({row["cluster"] for row in rows})
    traces: list[dict[str, Any]] = []
    for k in clusters:
        own = [row for row in rows if row["cluster"] == k]
        traces += [*_band(own, k), _curve(own, k), *_censored(own, k)]
    times = [heading for heading in at_risk[0] if heading != "cluster"]
    traces += [_counts(row, times, y) for y, row in enumerate(at_risk)]
    low = min(0.4, (50 + 24 * len(clusters)) / (430 + 24 * len(clusters)))
    last = max([row["time"] for row in rows] + [1e-9])
    p = equal(p_text(about["p_value"], about["permutations"]))
    return figure(
        traces,
        {
            "xaxis": {
                "title": {"text": "time" + (f" ({about['unit']})" if about["unit"] else "")},
                "range": [-0.015 * last, 1.02 * last],
                "tickvals": [float(time) for time in times],
                "anchor": "y2",
                "zeroline": False,
            },
            "yaxis": {
                "domain": [low, 1],
                "range": [0, 1.03],
                "tickformat": ".0%",
                "title": {"text": "survival"},
            },
            "yaxis2": {
                "domain": [0, low - 0.09],
                "range": [len(clusters) - 0.5, -0.5],
                "tickvals": list(range(len(clusters))),
                "ticktext": [f"cluster {k}" for k in clusters],
                "showgrid": False,
                "zeroline": False,
                "automargin": True,
                "ticks": "outside",
                "ticklen": 10,
                "tickcolor": "rgba(0,0,0,0)",
                "title": {"text": "at risk", "standoff": 4},
            },
            "annotations": [
                {
                    "text": f"log-rank p {p}" if about["p_value"] is not None else "not tested",
                    # Above the curves: below, one that falls early would pass through it.
                    "xref": "paper",
                    "yref": "paper",
                    "x": 0,
                    "y": 1,
                    "xanchor": "left",
                    "yanchor": "bottom",
                    "showarrow": False,
                }
            ],
            "legend": {"title": {"text": "Cluster"}},
            "hovermode": "closest",
            "showlegend": True,
            "margin": {"l": 10, "r": 10, "t": 30, "b": 40},
        },
        label="Survival of the clusters (Kaplan–Meier) with numbers at risk",
        name="survival",
        caption=f"Kaplan–Meier curves with bands of {about['level']:.0%} confidence; ticks are members "
        "whose observation ended before the event. Below: members still observed.",
        height=430 + 24 * len(clusters),
    )


def _thinned(rows: Rows, most: int) -> Rows:
    """The first, the last, and evenly many between."""
    if len(rows) <= most:
        return rows
    return [rows[round(i * (len(rows) - 1) / (most - 1))] for i in range(most)]


def _corners(rows: Rows) -> Rows:
    events = [row for row in rows if row["events"] or row is rows[0] or row is rows[-1]]
    return _thinned(events, CORNERS)


def _curve(rows: Rows, k: int) -> dict[str, Any]:
    corners = _corners(rows)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": str(k),
        "legendgroup": str(k),
        "x": [row["time"] for row in corners],
        "y": [row["survival"] for row in corners],
        "customdata": [row["at_risk"] for row in corners],
        "line": {"shape": "hv", "color": color(k), "width": 2.2},
        "hovertemplate": f"cluster {k}<br>time %{{x:.4g}}: %{{y:.1%}} alive, %{{customdata}} at risk"
        "<extra></extra>",
    }


def _band(rows: Rows, k: int) -> list[dict[str, Any]]:
    corners = [row for row in _corners(rows) if row["lower"] is not None]
    edge = {
        "type": "scatter",
        "mode": "lines",
        "legendgroup": str(k),
        "showlegend": False,
        "hoverinfo": "skip",
        "x": [row["time"] for row in corners],
        "line": {"shape": "hv", "width": 0, "color": color(k)},
    }
    upper = {**edge, "y": [row["upper"] for row in corners]}
    lower = {**edge, "y": [row["lower"] for row in corners]}
    return [upper, {**lower, "fill": "tonexty", "fillcolor": _faint(color(k))}]


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.13)"


def _censored(rows: Rows, k: int) -> list[dict[str, Any]]:
    marks = [row for row in rows if row["censored"]]
    if not marks or len(marks) > MARKS:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "legendgroup": str(k),
            "showlegend": False,
            "hoverinfo": "skip",
            "x": [row["time"] for row in marks],
            "y": [row["survival"] for row in marks],
            "marker": {"symbol": "line-ns-open", "size": 7, "color": color(k)},
        }
    ]


def _counts(row: dict[str, Any], times: list[str], y: int) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "text",
        "x": [float(time) for time in times],
        "y": [y] * len(times),
        "text": [str(row[time]) for time in times],
        "textfont": {"size": 11},
        "yaxis": "y2",
        "showlegend": False,
        "hoverinfo": "skip",
        "cliponaxis": False,
    }


def _clusters(run: Run, about: dict[str, Any]) -> Any:
    rows = run.tables["survival"]
    interval = f"{about['level']:.0%} interval"
    columns = [
        "cluster",
        "n",
        "events",
        "last time",
        "median",
        interval,
        "restricted mean",
        interval,
        "at risk at the horizon",
    ]
    shown = [
        [
            *(row[c] for c in ("cluster", "n", "events", "last_time")),
            _value(row["median"], "not reached"),
            _interval(row, "median"),
            _value(row["restricted_mean"], "–"),
            _interval(row, "restricted_mean"),
            row.get("at_risk_at_horizon"),
        ]
        for row in rows
    ]
    return table(
        columns,
        shown,
        name="survival",
        caption="Median: when half of the cluster have died. Restricted mean: mean survival up to time "
        f"{about['horizon']:.4g}, the horizon.",
        full=(list(rows[0]), [list(row.values()) for row in rows]),
    )


def _pairs(run: Run, about: dict[str, Any]) -> Any:
    rows = run.tables["survival_pairs"]
    if not rows:
        return ""
    interval = f"{about['level']:.0%} interval"
    columns = ["cluster", "other", "χ²", "p", "q", "difference of means", interval]
    shown = [
        [row[c] for c in ("cluster", "other", "statistic", "p_value", "q_value")]
        + [_value(row["mean_difference"], "–"), _interval(row, "mean_difference")]
        for row in rows
    ]
    return table(
        columns,
        shown,
        name="survival_pairs",
        caption="Every two clusters: log-rank test, p by permutations; q is p adjusted for the number of "
        "pairs (Benjamini–Hochberg); difference of the restricted means up to time "
        f"{about['horizon']:.4g}.",
        formats=dict.fromkeys(("χ²", "p", "q"), ".3g"),
        shown=15,
        full=(list(rows[0]), [list(row.values()) for row in rows]),
    )


def _value(value: float | None, absent: str) -> str:
    return absent if value is None else f"{value:.3g}"


def _interval(row: dict[str, Any], name: str) -> str:
    low, high = row[f"{name}_lower"], row[f"{name}_upper"]
    if low is None and high is None:
        return "–"
    return f"{_value(low, '…')} to {_value(high, '…')}"
