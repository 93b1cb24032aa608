"""Where the observations lie, and which cluster each is in."""

from __future__ import annotations

from statistics import median
from typing import Any

from manyview._colors import PALETTE
from manyview.app.report.page import (
    figure,
    html,
    plot_text,
    table,
)
from manyview.app.report.run_files import Run

from . import colouring
from .measured import LOW_CONFIDENCE, basis
from .shared import (
    EMBEDDED,
    Rows,
    color,
    percent,
    short,
)


def clusters(run: Run) -> Any:
    drawn = _map(run)
    columns = list(run.clusters[0])
    overview = table(
        [column.replace("_", " ") for column in columns],
        [list(row.values()) for row in run.clusters],
        name="clusters",
        caption="The clusters. Stability is explained further down.",
        formats={"share": ".1%"} | dict.fromkeys(("mean confidence", "stability"), ".2f"),
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


def _map(run: Run) -> Any:
    points = run.tables["embedding"]
    sure = {row["id"]: row["confidence"] for row in run.tables["labels"]}
    ids = [row["id"] for row in points]
    others = [*colouring.known(run), *colouring.measured(run)]
    bare = {"showticklabels": False, "showgrid": False, "zeroline": False, "title": {"text": ""}}
    return figure(
        [],
        {
            "xaxis": bare,
            "yaxis": {**bare, "scaleanchor": "x"},
            "annotations": _numbers(points),
            "legend": {"itemsizing": "constant"},
            "hovermode": "closest",
            "showlegend": True,
        },
        label="Observations in two dimensions",
        name="map",
        caption=f"A dot is an observation{_of_all(len(points), run)}; dots that lie close together "
        f"were found alike over all views. Projection: {run.about['projection']} of what the clusters "
        "were read from. Directions and distances between far groups mean nothing. Numbers are "
        "clusters. Point at a dot for its name; press a legend entry to hide a group.",
        height=560,
        choices={
            "points": {
                "x": [short(row["x"]) for row in points],
                "y": [short(row["y"]) for row in points],
                "text": [
                    f"{plot_text(row['id'])}<br>cluster {row['cluster']}, confidence "
                    f"{percent(sure.get(row['id']))}"
                    for row in points
                ],
            },
            "trace": {
                "type": "scatter",
                "mode": "markers",
                "hovertemplate": "%{text}<extra></extra>",
                "marker": {"size": 9 if len(points) < 300 else 5, "opacity": 0.85},
            },
            "by": [{"name": "cluster", "traces": _by_cluster(points)}]
            + [{"name": item.name, "traces": colouring.traces(item, ids)} for item in others],
        },
    )


def _by_cluster(points: Rows) -> list[dict[str, Any]]:
    found = []
    for k in sorted({row["cluster"] for row in points}):
        rows = [r for r, row in enumerate(points) if row["cluster"] == k]
        symbol = colouring.SYMBOLS[k // len(PALETTE) % len(colouring.SYMBOLS)]
        marker = {"color": color(k), "symbol": symbol}
        found.append({"rows": rows, "trace": {"name": f"{k} ({len(rows)})", "marker": marker}})
    return found


def _numbers(points: Rows) -> list[dict[str, Any]]:
    marks = []
    for k in sorted({row["cluster"] for row in points}):
        middle = _middle([row for row in points if row["cluster"] == k])
        place = {"x": middle["x"], "y": middle["y"], "showarrow": False}
        marks.append({**place, "text": f"<b>{k}</b>", "font": {"size": 16}})
    return marks


def _middle(points: Rows) -> dict[str, Any]:
    """The point nearest to the median: a label there never lies between two clouds."""
    x, y = (median(row[axis] for row in points) for axis in ("x", "y"))
    return min(points, key=lambda row: (row["x"] - x) ** 2 + (row["y"] - y) ** 2)


def _of_all(drawn: int, run: Run) -> str:
    n = run.about["n_samples"]
    return "" if drawn == n else f" ({drawn} of {n} are drawn)"
