"""Which view each observation relies on, and who departs from the usual."""

from __future__ import annotations

from typing import Any

from manyview._colors import SCALE
from manyview.output.report.page import figure, html, plot_text, table

from .shared import DRAWN, EMBEDDED, Rows, axis_labels, color, short

#: An observation that departs more than this from its cluster's usual reliance is named.
UNUSUAL, MOST_NAMED = 0.25, 30
MEANING = {
    "RobustWMNMF": "An observation leans on a view if its neighbours in the other views are close to "
    "it there as well: one measured badly in a view shows a dark cell there and brighter ones "
    "elsewhere.",
    "WMNMF": "An observation leans on the views that its factorisation reconstructs well. Views of "
    "small numbers or few features are easier to reconstruct, so compare observations along a row, "
    "not the rows with each other.",
}


def reliance(run: Any) -> Any:
    views = run.views
    if len(views) == 1:
        return html("<p>There is one view only, so every observation relies on it.</p>")
    rows = [row for row in run.tables["sample_weights"] if row["cluster"] >= 0]
    step = -(-len(rows) // DRAWN)
    shown = sorted(rows, key=lambda row: (row["cluster"], _last(row["departure"])))[::step]
    intro = html(
        "<p>A bright cell says that the observation (a column) relies mostly on that view (a row). "
        "{{ meaning }}</p>",
        meaning=MEANING.get(run.about["method"], MEANING["RobustWMNMF"]),
    )
    return html(
        "{{ intro }}{{ map }}{{ unusual }}",
        intro=intro,
        map=_reliance_map(run, shown),
        unusual=_unusual(run, rows),
    )


def _high(values: list[float]) -> float:
    """Where the colours end: the few that rely on one view alone must not hide all else."""
    return (sorted(values)[int(0.99 * len(values))] if values else 0) or 1


def _last(value: float | None) -> float:
    return 2.0 if value is None else value


def _reliance_map(run: Any, shown: Rows) -> Any:
    views = run.views
    shapes, ticks, names = [], [], []
    for k in sorted({row["cluster"] for row in shown}):
        places = [i for i, row in enumerate(shown) if row["cluster"] == k]
        shapes.append(
            {
                "type": "rect",
                "x0": places[0] - 0.5,
                "x1": places[-1] + 0.5,
                "yref": "paper",
                "y0": 1.01,
                "y1": 1.05,
                "fillcolor": color(k),
                "line": {"width": 0},
            }
        )
        ticks.append((places[0] + places[-1]) / 2)
        names.append(str(k))
    z = [[short(row[f"reliance:{view}"]) for row in shown] for view in views]
    ids = [f"{plot_text(row['id'])}, cluster {row['cluster']}" for row in shown]
    return figure(
        [
            {
                "type": "heatmap",
                "z": z,
                "y": axis_labels(views),
                "text": [ids] * len(views),
                "hovertemplate": "%{text}<br>%{y}: %{z:.0%}<extra></extra>",
                "colorscale": SCALE,
                "zmin": 0,
                "zmax": _high([v for row in z for v in row if v is not None]),
                "colorbar": {
                    "tickformat": ".0%",
                    "thickness": 12,
                    "title": {"text": "reliance"},
                },
                "hoverongaps": False,
            }
        ],
        {
            "shapes": shapes,
            "xaxis": {
                "tickvals": ticks,
                "ticktext": names,
                "title": {"text": "observations, by cluster"},
                "showgrid": False,
            },
            "margin": {"l": 10, "r": 10, "t": 30, "b": 50},
            "yaxis": {"autorange": "reversed", "type": "category", "showgrid": False},
        },
        label="Heat map: reliance of every observation on every view",
        caption="Columns are observations, sorted by cluster (the strip above has the clusters' "
        "colours) and within it from the usual on the left to the unusual on the right. Every "
        "column adds up to 100%. Blank cells: the view is missing there.",
        height=170 + 46 * len(views),
    )


def _unusual(run: Any, rows: Rows) -> Any:
    found = sorted(
        (row for row in rows if (row["departure"] or 0) > UNUSUAL), key=lambda r: -r["departure"]
    )
    alone = [row["id"] for row in rows if row["departure"] is None]
    lonely = html(
        "{% if alone %}<p><b>Supported by no view</b> ({{ alone|length }}): {{ alone[:20]|join(', ') "
        "}}{{ ', …' if alone|length > 20 }}. Their neighbours in each view are strangers in the "
        "others, so their place in a cluster is a guess.</p>{% endif %}",
        alone=alone,
    )
    columns = ["id", "cluster", "departure", *[f"reliance: {view}" for view in run.views]]
    listed = [
        [row["id"], row["cluster"], row["departure"], *[row[f"reliance:{v}"] for v in run.views]]
        for row in found
    ]
    if not found:
        return html(
            "<p>No observation departs by more than {{ limit }} from what is usual in its cluster."
            "</p>{{ lonely }}",
            limit=f"{UNUSUAL:.0%}",
            lonely=lonely,
        )
    named = ", ".join(row["id"] for row in found[:5])
    return html(
        "<h3>Unusual observations</h3><p>{{ n }} observation{{ 's' if n > 1 }} rel{{ 'y' if n > 1 "
        "else 'ies' }} on other views than the rest of the cluster, by more than {{ limit }} of all "
        "reliance, above all {{ named }}. Look at their measurements in the views they avoid: a "
        "failed assay, a swapped sample and true biology all look like this.</p>{{ table }}{{ lonely }}",
        lonely=lonely,
        n=len(found),
        limit=f"{UNUSUAL:.0%}",
        named=named,
        table=table(
            columns,
            listed[:EMBEDDED],
            name="unusual_observations",
            caption="Departure: the share of reliance that lies elsewhere than is usual in the "
            "cluster.",
            formats=dict.fromkeys(columns[2:], ".0%"),
            shown=MOST_NAMED if len(found) <= MOST_NAMED else 10,
        ),
    )
