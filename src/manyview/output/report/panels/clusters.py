"""Where the observations lie, and which cluster each is in."""

from __future__ import annotations

from statistics import median
from typing import Any

from manyview._colors import PALETTE
from manyview.output.report.page import figure, html, plot_text, table

from .measured import LOW_CONFIDENCE, basis
from .shared import EMBEDDED, Rows, color, percent, short

SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star")


def clusters(run: Any) -> Any:
    points = run.tables["embedding"]
    sure = {row["id"]: row["confidence"] for row in run.tables["labels"]}
    traces, marks = [], []
    for k in sorted({row["cluster"] for row in points}):
        own = [row for row in points if row["cluster"] == k]
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": f"{k} ({len(own)})",
                "x": [short(row["x"]) for row in own],
                "y": [short(row["y"]) for row in own],
                "customdata": [[plot_text(row["id"]), percent(sure.get(row["id"]))] for row in own],
                "hovertemplate": f"%{{customdata[0]}}<br>cluster {k}<br>confidence "
                "%{customdata[1]}<extra></extra>",
                "marker": {
                    "color": color(k),
                    "size": 9 if len(points) < 300 else 5,
                    "opacity": 0.85,
                    "symbol": SYMBOLS[k // len(PALETTE) % len(SYMBOLS)],
                },
            }
        )
        middle = _middle(own)
        marks.append(
            {
                "x": middle["x"],
                "y": middle["y"],
                "text": f"<b>{k}</b>",
                "showarrow": False,
                "font": {"size": 16},
            }
        )
    bare = {"showticklabels": False, "showgrid": False, "zeroline": False, "title": {"text": ""}}
    drawn = figure(
        traces,
        {
            "xaxis": bare,
            "yaxis": {**bare, "scaleanchor": "x"},
            "annotations": marks,
            "legend": {"title": {"text": "Cluster (size)"}, "itemsizing": "constant"},
            "hovermode": "closest",
            "showlegend": True,
        },
        label="Observations in two dimensions, coloured by cluster",
        caption=f"A dot is an observation{_of_all(len(points), run)}; dots that lie close together "
        "were found alike over all views. Directions and distances between far groups mean "
        "nothing. Point at a dot for its name; press a legend entry to hide a cluster.",
        height=560,
    )
    columns = list(run.clusters[0])
    overview = table(
        [column.replace("_", " ") for column in columns],
        [list(row.values()) for row in run.clusters],
        name="clusters",
        caption="The clusters. Silhouette and stability are explained further down.",
        formats={"share": ".1%"}
        | dict.fromkeys(("mean confidence", "silhouette", "stability"), ".2f"),
    )
    rows = [[r["id"], r["cluster"], r["confidence"]] for r in run.tables["labels"]]
    all_labels = table(
        ["id", "cluster", "confidence"],
        rows[:EMBEDDED],
        name="labels",
        caption=f"Every observation. Confidence: {run.about['confidence_is']}."
        + basis(run, LOW_CONFIDENCE, " Below 0.8, ", ".")
        + (f" The first {EMBEDDED}; labels.csv has all." if len(rows) > EMBEDDED else ""),
        formats={"confidence": ".3f"},
        shown=8,
    )
    return html("{{ a }}{{ b }}{{ c }}", a=drawn, b=overview, c=all_labels)


def _middle(points: Rows) -> dict[str, Any]:
    """The point nearest to the median: a label there never lies between two clouds."""
    x, y = (median(row[axis] for row in points) for axis in ("x", "y"))
    return min(points, key=lambda row: (row["x"] - x) ** 2 + (row["y"] - y) ** 2)


def _of_all(drawn: int, run: Any) -> str:
    n = run.about["n_samples"]
    return "" if drawn == n else f" ({drawn} of {n} are drawn)"
