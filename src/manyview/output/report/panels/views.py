"""How much each view counts, and how much the views agree."""

from __future__ import annotations

from typing import Any

from manyview._colors import PALETTE, SCALE
from manyview.output.report.page import figure, html, table

from .shared import Rows, axis_labels

MEANING = {
    "RobustWMNMF": (
        "A view's weight says how well it agrees with the other views: whether observations close to "
        "each other in it are close in the others as well. Weights add up to 100%, and a view nobody "
        "agrees with gets about none.",
        "A weight does not say how well something was measured, nor how important it is. A view can "
        "be excellent and stand alone. Views that repeat each other agree by that alone: such "
        "agreement does not count, and they share one weight.",
    ),
    "WMNMF": (
        "A view's weight says how close its own factorisation lies to the consensus. Weights add up "
        "to 100%.",
        "A weight is not a measure of quality: a view of pure noise can receive the largest, and "
        "with many rounds one view tends to take all. RobustWMNMF has weights made for that "
        "question; the agreement below does not depend on the weights.",
    ),
}


def views(run: Any) -> Any:
    rows, names = run.tables["view_weights"], run.views
    does, does_not = MEANING.get(run.about["method"], MEANING["RobustWMNMF"])
    weights = [row["weight"] for row in rows]
    bars = figure(
        [
            {
                "type": "bar",
                "orientation": "h",
                "y": axis_labels(names),
                "x": weights,
                "text": [f"{weight:.0%}" for weight in weights],
                "textposition": "outside",
                "cliponaxis": False,
                "hovertemplate": "%{y}: %{x:.1%}<extra></extra>",
                "marker": {"color": PALETTE[0]},
            }
        ],
        {
            "xaxis": {"range": [0, 1.2 * max(weights)], "tickformat": ".0%", "rangemode": "tozero"},
            "yaxis": {"autorange": "reversed", "type": "category"},
            "title": {"text": "View weights", "font": {"size": 14}},
            "margin": {"l": 10, "r": 30, "t": 40, "b": 30},
        },
        label="Bar chart of view weights",
        height=130 + 36 * len(names),
    )
    tables = html(
        "{{ a }}{{ b }}",
        a=table(
            ["view", "features", "observations", "weight", "mean reliance"],
            [list(row.values()) for row in rows],
            name="view_weights",
            caption="Views. Observations: those that have the view.",
            formats={"weight": ".3f", "mean reliance": ".3f"},
        ),
        b=table(
            ["view", *names],
            [[row["view"], *[row[f"with:{name}"] for name in names]] for row in _agreement(run)],
            name="agreement",
            caption="Agreement of views; on the diagonal that of random halves of one view.",
            formats=dict.fromkeys(names, ".2f"),
        ),
    )
    return html(
        '<div class="pair">{{ bars }}{{ map }}</div><p><b>What it means.</b> {{ does }}</p>'
        "<p><b>What it does not mean.</b> {{ does_not }}</p>"
        "<p><b>Agreement</b> of two views is 1 if neighbours in one are identical in the other, 0 if "
        "they are no closer there than any two observations. On the diagonal stands the agreement "
        "of two random halves of the view's own features: low values there say that a view is "
        "noisy or that its features have little in common.</p>{{ tables }}",
        bars=bars,
        map=_agreement_map(run),
        does=does,
        does_not=does_not,
        tables=tables,
    )


def _agreement(run: Any) -> Rows:
    return run.tables["agreement"]


def _agreement_map(run: Any) -> Any:
    names = run.views
    labels = axis_labels(names)
    z = [[row[f"with:{name}"] for name in names] for row in _agreement(run)]
    return figure(
        [
            {
                "type": "heatmap",
                "z": z,
                "x": labels,
                "y": labels,
                "zmin": 0,
                "zmax": 1,
                "colorscale": SCALE,
                "texttemplate": "%{z:.2f}" if len(names) <= 12 else "",
                "hovertemplate": "%{y} and %{x}: %{z:.2f}<extra></extra>",
                "colorbar": {"thickness": 12},
            }
        ],
        {
            "yaxis": {"autorange": "reversed", "type": "category", "showgrid": False},
            "xaxis": {"type": "category", "showgrid": False},
            "title": {"text": "Agreement between views", "font": {"size": 14}},
            "margin": {"l": 10, "r": 10, "t": 40, "b": 40},
        },
        label="Heat map of the agreement between views",
        height=max(260, 130 + 36 * len(names)),
    )
