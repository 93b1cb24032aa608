"""What refits say: who stays with whom, and whether a view matters."""

from __future__ import annotations

from typing import Any

from manyview._colors import PALETTE, SCALE
from manyview.app.report.page import (
    figure,
    html,
    plot_text,
    table,
)
from manyview.app.report.run_files import Run

from .shared import axis_labels, short


def consensus(run: Run) -> Any:
    """The co-assignment matrix of the stability runs; nothing without them."""
    rows = run.tables["consensus"]
    if not rows:
        return ""
    n = len(rows)
    ticks, names, borders = [], [], []
    for k in sorted({row["cluster"] for row in rows}):
        places = [i for i, row in enumerate(rows) if row["cluster"] == k]
        ticks.append((places[0] + places[-1]) / 2)
        names.append(str(k))
        low, high = places[0] - 0.5, places[-1] + 0.5
        line = {"color": "#d55e00", "width": 1.5}
        borders.append({"type": "rect", "x0": low, "x1": high, "y0": low, "y1": high, "line": line})
    axis = {"tickvals": ticks, "ticktext": names, "showgrid": False, "title": {"text": "cluster"}}
    ids = [plot_text(row["id"], 24) for row in rows]
    text: list[Any] = [[f"{a}<br>{b}" for b in ids] for a in ids] if n <= 60 else []
    return figure(
        [
            {
                "type": "heatmap",
                "z": [[short(value) for value in list(row.values())[2:]] for row in rows],
                **({"text": text} if text else {}),
                "hovertemplate": ("%{text}<br>" if text else "")
                + "together in %{z:.0%}<extra></extra>",
                "colorscale": SCALE,
                "zmin": 0,
                "zmax": 1,
                "hoverongaps": False,
                "colorbar": {"thickness": 12, "tickformat": ".0%", "title": {"text": "together"}},
            }
        ],
        {
            "xaxis": {**axis, "constrain": "domain"},
            "yaxis": {**axis, "autorange": "reversed", "scaleanchor": "x", "constrain": "domain"},
            "shapes": borders,
            "margin": {"l": 10, "r": 10, "t": 10, "b": 40},
        },
        label="Heat map: how often two observations were in one cluster over the refits",
        name="consensus",
        caption=html(
            "<b>Consensus matrix</b> of the {{ runs }} refits: how often two observations were in one "
            "cluster, of the refits that saw both{{ part }}. Frames are the clusters. Bright blocks on "
            "dark ground: the clusters come back; dark patches inside a frame: it falls apart; bright "
            "patches outside: clusters mix.",
            runs=run.about["stability"]["runs"],
            part=f" ({n} of {run.about['n_samples']} observations are drawn)"
            if n < run.about["n_samples"]
            else "",
        ),
        height=520,
    )


def leave_view_out(run: Run) -> Any:
    """Whether the clusters change without a view; nothing where that was not tried."""
    rows = run.tables["leave_view_out"]
    if not rows:
        why = run.about.get("not_left_out")
        if len(run.views) < 2 or not why:
            return ""
        return html("<p>Fits without each view were not made: {{ why }}.</p>", why=why)
    least = min(rows, key=lambda row: row["agreement"])
    drawn = figure(
        [
            {
                "type": "bar",
                "orientation": "h",
                "y": axis_labels([row["view"] for row in rows]),
                "x": [row["agreement"] for row in rows],
                "text": [f"{row['agreement']:.2f}" for row in rows],
                "textposition": "outside",
                "cliponaxis": False,
                "marker": {"color": PALETTE[2]},
                "hovertemplate": "without %{y}: %{x:.2f}<extra></extra>",
            }
        ],
        {
            "xaxis": {
                "range": [min(0, *(row["agreement"] for row in rows)), 1.12],
                "title": {"text": "agreement without the view"},
            },
            "yaxis": {"autorange": "reversed", "type": "category"},
            "margin": {"l": 10, "r": 30, "t": 10, "b": 40},
        },
        label="Bar chart: agreement of the clusters with those found without each view",
        name="leave_view_out",
        height=110 + 34 * len(rows),
    )
    return html(
        "<h3>Does a view matter?</h3><p>The model was fitted again without each view. {{ verdict }} "
        "The measure is the adjusted Rand index: 1 says that the view changes nothing, 0 that without "
        "it the clusters are others altogether. A view that changes nothing may still confirm.</p>"
        "{{ drawn }}{{ table }}",
        verdict=_verdict(least),
        drawn=drawn,
        table=table(
            ["view left out", "agreement", "features", "features that differ"],
            [list(row.values()) for row in rows],
            name="leave_view_out",
            caption="Features that differ (q ≤ 0.05) between clusters found without their view: there "
            "the p-values are honest.",
            formats={"agreement": ".2f"},
        ),
    )


def _verdict(least: dict[str, Any]) -> str:
    if least["agreement"] > 0.9:
        return "Each can be left out, and the clusters stay nearly the same."
    return (
        f"The clusters depend most on “{least['view']}”: without it they agree to "
        f"{least['agreement']:.2f}."
    )
