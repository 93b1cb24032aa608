"""What sets each cluster apart."""

from __future__ import annotations

from typing import Any

from manyview.app.report.page import html, table
from manyview.app.report.run_files import Run

from .heatmap import heatmap
from .shared import Rows

#: Clusters whose features are unfolded at first.
OPEN = 3


def features(run: Run) -> Any:
    rows = run.tables["top_features"]
    if not rows:
        return html("<p>No feature differs between a cluster and the rest.</p>")
    sizes_shown = sorted(abs(row["effect"]) for row in rows if row["rank"] <= 5)
    # A single huge effect must not make all other bars invisible.
    longest = max(1.0, sizes_shown[int(0.9 * len(sizes_shown))])
    groups: dict[int, dict[str, Rows]] = {}
    for row in rows:
        if row["rank"] <= 5:
            groups.setdefault(row["cluster"], {}).setdefault(row["view"], []).append(row)
    sizes = {row["cluster"]: row["size"] for row in run.clusters}
    columns = list(rows[0])
    return html(
        """<p>Features by effect: how far the mean of the cluster lies from that of all other
observations, in standard deviations (Cohen's d). From about 0.8 on an effect is large. Bars to the
right: higher in the cluster; to the left, striped: lower; the longest
stand for {{ '%.1f'|format(longest) }} or more. The features were picked because they
differ, so these numbers describe the clusters and prove nothing.</p>{{ heatmap }}
{% for k, views in groups.items() %}<details{% if loop.index <= open %} open{% endif %}>
<summary>Cluster {{ k }} <span class="faint">({{ sizes[k] }} observations)</span></summary>
<div class="cards">{% for view, found in views.items() %}<div class="card"><h4>{{ view }}</h4><ol>
{% for row in found %}<li><span class="name">{{ row.feature }}</span><span class="effect"><span
 class="bar {{ 'up' if row.effect > 0 else 'down' }}" style="width: {{
 ([48, 48 * row.effect|abs / longest]|min)|round(1) }}%"></span></span><span class="value">{{
 '%+.2f'|format(row.effect) }}</span></li>
{% endfor %}</ol></div>{% endfor %}</div></details>
{% endfor %}{{ table }}{{ tests }}""",
        heatmap=heatmap(run),
        tests=_tests(run),
        groups=groups,
        sizes=sizes,
        longest=longest,
        open=OPEN,
        table=table(
            [column.replace("_", " ") for column in columns],
            [[row[column] for column in columns] for row in rows],
            name="top_features",
            caption="The ten features of largest effect per cluster and view.",
            formats={"effect": "+.2f"},
            shown=10,
        ),
    )


def _tests(run: Run) -> Any:
    rows = run.tables["markers"]
    if not rows:
        return ""
    columns = list(rows[0])
    honest = "q_without_view" in columns
    return html(
        "<p><b>Effects and descriptive p-values.</b> Every cluster is compared with all others. "
        "Read the effect first: it runs from −1 (always lower) to 1 (always higher). p and q come from "
        "Fisher's exact test for features of 0 and 1, and from ranks (Mann–Whitney) for others. They are "
        "descriptive: the same data found the clusters, and clusters cut out of noise have “significant” "
        "features too.{% if honest %} <b>q without view</b> is a test: its clusters were found without the "
        "feature's view.{% endif %}</p>"
        "{{ table }}",
        honest=honest,
        table=table(
            [column.replace("_", " ") for column in columns],
            [list(row.values()) for row in rows],
            name="markers",
            caption="Features by effect, for every cluster and view.",
            formats=dict.fromkeys(
                ("effect", "inside", "outside", "p descriptive", "q descriptive", "q without view"),
                ".3g",
            ),
            shown=10,
        ),
    )
