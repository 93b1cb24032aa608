"""How sure the clusters are: stability under refits."""

from __future__ import annotations

from typing import Any

from manyview.app.report.page import figure, html, table
from manyview.app.report.run_files import Run

from .measured import UNSTABLE_CLUSTER, UNSTABLE_OBSERVATION, basis
from .refits import consensus
from .shared import EMBEDDED, color


def sure(run: Run) -> Any:
    stability = run.about.get("stability")
    text = (
        f"The model was fitted {stability['runs']} more times, each time on 80% of the observations. "
        "A cluster's stability is how much of it came back on average (Jaccard index): above 0.85 it "
        f"is very stable, below 0.6 it should not be trusted{basis(run, UNSTABLE_CLUSTER, ' (', ')')}. "
        "Clusters that come back are there, but need not be the groups that one hoped for."
        if stability
        else f"Stability was not computed: {run.about.get('no_stability') or 'it was not asked for'}."
    )
    return html(
        "{{ bars }}<p><b>Stability.</b> {{ text }}</p>{{ pairs }}{{ table }}",
        bars=_stability(run) if stability else "",
        text=text,
        pairs=consensus(run),
        table=_sure_table(run),
    )


def _sure_table(run: Run) -> Any:
    rows = run.tables["stability"]
    if not rows:
        return ""
    rows = sorted(rows, key=lambda row: (row["stability"] is None, row["stability"] or 0))
    return table(
        list(rows[0]),
        [list(row.values()) for row in rows[:EMBEDDED]],
        name="stability",
        caption=(
            "Observations, the least sure first. Stability: the share of its cluster's other members "
            f"found with it again.{basis(run, UNSTABLE_OBSERVATION, ' Below 0.6, ', '.')}"
        ),
        formats={"stability": ".3f"},
        shown=8,
    )


def _stability(run: Run) -> Any:
    rows = run.clusters
    names = [str(row["cluster"]) for row in rows]
    lines = [
        {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": level,
            "y1": level,
            "line": {"dash": "dot", "color": "#888888", "width": 1.5},
        }
        for level in (0.6, 0.85)
    ]
    return figure(
        [
            {
                "type": "bar",
                "x": names,
                "y": [row["stability"] for row in rows],
                "marker": {"color": [color(row["cluster"]) for row in rows]},
                "hovertemplate": "cluster %{x}: %{y:.2f}<extra></extra>",
            }
        ],
        {
            "shapes": lines,
            "xaxis": {"type": "category", "title": {"text": "cluster"}},
            "yaxis": {"range": [0, 1.03]},
            "title": {"text": "Stability of every cluster", "font": {"size": 14}},
            "margin": {"l": 10, "r": 10, "t": 40, "b": 40},
        },
        label="Stability of every cluster",
        height=420,
    )
