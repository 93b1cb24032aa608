"""How sure the clusters are: silhouettes and stability."""

from __future__ import annotations

from typing import Any

from manyview.output.report.page import figure, html, plot_text, table
from manyview.output.report.run_files import Run

from .measured import NEGATIVE_SILHOUETTE, UNSTABLE_CLUSTER, UNSTABLE_OBSERVATION, basis
from .refits import consensus
from .shared import DRAWN, EMBEDDED, color, short


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
        '<div class="pair">{{ silhouettes }}{{ bars }}</div><p><b>Silhouette</b>: how much closer an '
        "observation lies to its own cluster than to the nearest other, over the z-scored features of "
        "all views with every view counting the same. 1 is far inside, 0 on the border, below 0 "
        "closer to another cluster. Clusters that are not round blobs in these features have low "
        "values and can still be right{{ measured }}.</p><p><b>Stability.</b> {{ text }}</p>{{ pairs }}"
        "{{ table }}",
        measured=basis(run, NEGATIVE_SILHOUETTE, ": of observations below 0, "),
        silhouettes=_silhouettes(run),
        bars=_stability(run) if stability else "",
        text=text,
        pairs=consensus(run),
        table=_sure_table(run),
    )


def _sure_table(run: Run) -> Any:
    rows = run.tables["silhouette"]
    if not rows:
        return ""
    columns = list(rows[0])
    last = "stability" if "stability" in columns else "silhouette"
    rows = sorted(rows, key=lambda row: (row[last] is None, row[last] or 0))
    return table(
        columns,
        [list(row.values()) for row in rows[:EMBEDDED]],
        name="silhouette",
        caption=(
            "Observations, the least sure first. Stability: the share of its cluster's other members "
            f"found with it again.{basis(run, UNSTABLE_OBSERVATION, ' Below 0.6, ', '.')}"
            if last == "stability"
            else "Observations, those with the lowest silhouette first."
        ),
        formats={"silhouette": ".3f", "stability": ".3f"},
        shown=8,
    )


def _silhouettes(run: Run) -> Any:
    rows = [row for row in run.tables["silhouette"] if row["silhouette"] is not None]
    if not rows:
        return html("<p>Silhouettes need at least two clusters.</p>")
    rows = rows[:: -(-len(rows) // DRAWN)]
    traces, start, ticks, names = [], 0, [], []
    for k in sorted({row["cluster"] for row in rows}):
        own = sorted(
            (row for row in rows if row["cluster"] == k), key=lambda row: -row["silhouette"]
        )
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "x": [short(row["silhouette"]) for row in own],
                "y": list(range(start, start + len(own))),
                "text": [plot_text(row["id"]) for row in own],
                "textposition": "none",
                "hovertemplate": f"%{{text}}<br>cluster {k}<br>silhouette %{{x:.2f}}<extra></extra>",
                "marker": {"color": color(k), "line": {"width": 0}},
                "showlegend": False,
            }
        )
        ticks.append(start + len(own) / 2)
        names.append(str(k))
        start += len(own) + max(1, len(rows) // 100)
    return figure(
        traces,
        {
            "bargap": 0,
            "yaxis": {
                "tickvals": ticks,
                "ticktext": names,
                "autorange": "reversed",
                "title": {"text": "cluster"},
                "showgrid": False,
            },
            "xaxis": {"title": {"text": "silhouette"}},
            "title": {"text": "Silhouette of every observation", "font": {"size": 14}},
            "margin": {"l": 10, "r": 10, "t": 40, "b": 40},
            "hovermode": "closest",
        },
        label="Silhouette of every observation, by cluster",
        height=420,
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
