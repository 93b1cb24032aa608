"""Which view each observation relies on, and who departs from the usual."""

from __future__ import annotations

from collections import Counter
from typing import Any

from manyview._colors import SCALE
from manyview.app.report.page import (
    figure,
    html,
    plot_text,
    table,
)
from manyview.app.report.run_files import Run

from .measured import (
    NO_SUPPORT,
    ONE_VIEW,
    UNUSUAL_RELIANCE,
    basis,
)
from .shared import (
    DRAWN,
    EMBEDDED,
    Rows,
    axis_labels,
    color,
    short,
)

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


def reliance(run: Run) -> Any:
    views = run.views
    if len(views) == 1:
        return html("<p>There is one view only, so every observation relies on it.</p>")
    rows = [row for row in run.tables["sample_weights"] if row["cluster"] >= 0]
    step = -(-len(rows) // DRAWN)
    shown = sorted(rows, key=lambda row: (row["cluster"], _last(row["departure"])))[::step]
    robust = run.about["method"] == "RobustWMNMF"
    intro = html(
        "<p>A bright cell says that the observation (a column) relies mostly on that view (a row). "
        "{{ meaning }}</p>",
        meaning=MEANING.get(run.about["method"], MEANING["RobustWMNMF"]),
    )
    return html(
        "{{ intro }}{{ map }}{{ unusual }}{{ unsupported }}{{ alone }}",
        intro=intro,
        map=_reliance_map(run, shown),
        unusual=_unusual(run, rows),
        unsupported=_unsupported(run, rows) if robust else "",
        alone=_alone(run, rows),
    )


def _high(values: list[float]) -> float:
    """Where the colours end: the few that rely on one view alone must not hide all else."""
    return (sorted(values)[int(0.99 * len(values))] if values else 0) or 1


def _last(value: float | None) -> float:
    return 2.0 if value is None else value


def _reliance_map(run: Run, shown: Rows) -> Any:
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


def _unusual(run: Run, rows: Rows) -> Any:
    found = sorted(
        (row for row in rows if (row["departure"] or 0) > UNUSUAL), key=lambda r: -r["departure"]
    )
    columns = ["id", "cluster", "departure", *[f"reliance: {view}" for view in run.views]]
    listed = [
        [row["id"], row["cluster"], row["departure"], *[row[f"reliance:{v}"] for v in run.views]]
        for row in found
    ]
    if not found:
        return html(
            "<p>No observation departs by more than {{ limit }} from what is usual in its cluster."
            "</p>",
            limit=f"{UNUSUAL:.0%}",
        )
    named = ", ".join(row["id"] for row in found[:5])
    return html(
        "<h3>Unusual observations</h3><p>{{ n }} observation{{ 's' if n > 1 }} rel{{ 'y' if n > 1 "
        "else 'ies' }} on other views than the rest of the cluster, by more than {{ limit }} of all "
        "reliance, above all {{ named }}. Look at their measurements in the views they avoid: a "
        "failed assay, a swapped sample and true biology all look like this.{{ measured }}</p>"
        "{{ table }}",
        n=len(found),
        measured=basis(run, UNUSUAL_RELIANCE, " Their clusters are less sure: ", "."),
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


def _views_of(row: dict[str, Any], views: list[str]) -> list[str]:
    """The views that describe an observation: the others' cells are empty."""
    return [view for view in views if row[f"weight:{view}"] is not None]


def _alone(run: Run, rows: Rows) -> Any:
    """Observations that one view describes: nobody can vouch for them, and nothing speaks against."""
    counts = Counter(held[0] for row in rows if len(held := _views_of(row, run.views)) == 1)
    n = sum(counts.values())
    return html(
        "{% if n %}<h3>Observations in one view</h3><p>{{ n }} of {{ of }} observations {{ 'is' if n "
        "== 1 else 'are' }} described by one view only ({{ by_view }}) and rel{{ 'ies' if n == 1 "
        "else 'y' }} on it wholly. No other view can vouch for them or contradict them{{ ', which is why "
        "their weight is 0' if robust }}.{{ measured }}</p>{% endif %}",
        robust=run.about["method"] == "RobustWMNMF",
        measured=basis(run, ONE_VIEW, " That makes their clusters a little less sure: ", "."),
        n=n,
        of=len(rows),
        by_view=", ".join(f"{counts[view]} by “{view}”" for view in run.views if counts[view]),
    )


def _unsupported(run: Run, rows: Rows) -> Any:
    """Observations in several views that no two of these agree about."""
    found = [
        row["id"]
        for row in rows
        if len(held := _views_of(row, run.views)) > 1
        and not any(row[f"weight:{view}"] for view in held)
    ]
    return html(
        "{% if found %}<p><b>Without support</b> ({{ found|length }}): {{ found[:20]|join(', ') }}"
        "{{ ', …' if found|length > 20 }}. Their neighbours in each of their views are no closer than "
        "chance in the others; they were placed by all of their views together.{{ measured }}</p>"
        "{% endif %}",
        found=found,
        measured=basis(run, NO_SUPPORT, " Their clusters are less sure: ", "."),
    )
