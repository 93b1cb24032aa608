"""Clusters against the known classes."""

from __future__ import annotations

from typing import Any

from manyview._colors import SCALE
from manyview.app.report.page import figure, html, table
from manyview.app.report.run_files import Run

from .shared import axis_labels

#: Classes drawn; of more the page shows the commonest of each cluster only.
DRAWN = 30
#: Columns of the table that are no classes.
OWN = ("cluster", "n", "majority", "majority_share")


def classes(run: Run) -> Any:
    about = run.about["classes"]
    if "problem" in about:
        return html("<p>The known classes were not counted: {{ why }}.</p>", why=about["problem"])
    rows = run.tables["classes"]
    names = [heading for heading in rows[0] if heading not in OWN]
    few = len(names) <= DRAWN
    columns = ["cluster", *(names if few else []), *OWN[1:]]
    return html(
        "<p>The clusters and the {{ k }} known classes of {{ n }} observations agree with an adjusted "
        "Rand index of <b>{{ ari }}</b> and a normalised mutual information of <b>{{ nmi }}</b> (both: "
        "1 the same, 0 as by chance). No method saw the classes.</p>{{ drawn }}{{ table }}"
        "{% if notes %}<ul>{% for note in notes %}<li>{{ note }}</li>{% endfor %}</ul>{% endif %}",
        k=about["classes"],
        n=about["n"],
        ari=f"{about['ari']:.2f}",
        nmi=f"{about['nmi']:.2f}",
        drawn=_drawn(rows, names) if few else "",
        table=table(
            [column.replace("_", " ") if column in OWN else column for column in columns],
            [[row[column] for column in columns] for row in rows],
            name="classes",
            caption="Observations of every class by cluster; the commonest class and its share."
            + ("" if few else " There are too many classes to list; classes.csv has all."),
            formats={"majority share": ".0%"},
        ),
        notes=about["notes"],
    )


def _drawn(rows: list[dict[str, Any]], names: list[str]) -> Any:
    counts = [[row[name] for name in names] for row in rows]
    shares = [[n / max(sum(own), 1) for n in own] for own in counts]
    return figure(
        [
            {
                "type": "heatmap",
                "z": shares,
                "text": counts,
                "x": axis_labels(names),
                "y": [f"cluster {row['cluster']}" for row in rows],
                "zmin": 0,
                "zmax": 1,
                "colorscale": SCALE,
                "texttemplate": "%{text}" if len(names) <= 16 else "",
                "hovertemplate": "%{y}, class %{x}: %{text} (%{z:.0%} of the cluster)<extra></extra>",
                "colorbar": {
                    "thickness": 12,
                    "tickformat": ".0%",
                    "title": {"text": "of the cluster", "side": "right"},
                },
            }
        ],
        {
            "yaxis": {"autorange": "reversed", "type": "category", "showgrid": False},
            "xaxis": {"type": "category", "showgrid": False, "title": {"text": "known class"}},
            "margin": {"l": 10, "r": 10, "t": 20, "b": 40},
        },
        label="Heat map of known classes by cluster",
        name="classes",
        caption="Numbers are observations; the colour is their share of the cluster.",
        height=max(240, 150 + 34 * len(rows)),
    )
