"""The sections of the page of a fit: figures, tables, and what they mean in plain words."""

from __future__ import annotations

from statistics import median
from typing import Any

from .page import PALETTE, SCALE, figure, html, plot_text, table

Rows = list[dict[str, Any]]
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star")
#: An observation that departs more than this from its cluster's usual reliance is named.
UNUSUAL, MOST_NAMED = 0.25, 30
#: Columns of the reliance figure, and rows of the largest tables.
DRAWN, EMBEDDED = 5000, 20_000
OPEN = 3


def color(cluster: int) -> str:
    return PALETTE[cluster % len(PALETTE)]


# --- in short ---------------------------------------------------------------------------------


def in_short(run: Any) -> Any:
    about = run.about
    sizes = sorted((row["size"] for row in run.clusters), reverse=True)
    lines = []
    if sizes:
        lines.append(
            f"{len(sizes)} clusters of {sizes[-1]} to {sizes[0]} observations."
            if len(sizes) > 1
            else "One cluster holds everything."
        )
    stability = about.get("stability")
    if stability:
        lines.append(
            f"Refitted {stability['runs']} times on parts of the data, the clusters "
            f"{_grade(stability['ari'])} (mean agreement of two refits {stability['ari']:.2f}; "
            "1 is always the same, 0 is chance)."
        )
    if run.tables["baseline"]:
        ari = run.tables["baseline"][0]["ari_with_other"]
        lines.append(
            "A plain method on the same data finds "
            + ("nearly the same" if ari > 0.8 else "partly the same" if ari > 0.5 else "other")
            + f" clusters (agreement {ari:.2f})."
        )
    if len(run.views) > 1:
        weights = sorted(run.tables["view_weights"], key=lambda row: -row["weight"])
        lines.append(
            f"The view that counts most is “{weights[0]['view']}” ({weights[0]['weight']:.0%} of the "
            f"weight), the one that counts least “{weights[-1]['view']}” "
            f"({weights[-1]['weight']:.0%})."
        )
    notes = [*about.get("warnings", []), *about.get("fit_warnings", [])]
    return html(
        "<ul>{% for line in lines %}<li>{{ line }}</li>{% endfor %}</ul>"
        '{% if notes %}<div class="warning" role="note"><p><b>Before you trust this</b></p><ul>'
        "{% for note in notes %}<li>{{ note }}</li>{% endfor %}</ul></div>"
        '{% else %}<p class="note">Nothing unusual was noticed: no view took over, no cluster is '
        "tiny, every observation has data, and the fit settled.</p>{% endif %}",
        lines=lines,
        notes=list(dict.fromkeys(notes)),
    )


def _grade(ari: float) -> str:
    if ari > 0.85:
        return "come back nearly unchanged"
    return "come back in part" if ari > 0.6 else "change a great deal"


# --- clusters ---------------------------------------------------------------------------------


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
                "x": [_short(row["x"]) for row in own],
                "y": [_short(row["y"]) for row in own],
                "customdata": [
                    [plot_text(row["id"]), _percent(sure.get(row["id"]))] for row in own
                ],
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
        marks.append(
            {
                "x": median(row["x"] for row in own),
                "y": median(row["y"] for row in own),
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
    overview = table(
        ["cluster", "size", "share", "mean confidence", "silhouette", "stability"],
        [
            [
                row["cluster"],
                row["size"],
                row["share"],
                row["mean_confidence"],
                row["silhouette"],
                row.get("stability"),
            ]
            for row in run.clusters
        ],
        name="clusters",
        caption="The clusters. Silhouette and stability are explained further down.",
        formats={
            "share": ".1%",
            "mean confidence": ".2f",
            "silhouette": ".2f",
            "stability": ".2f",
        },
    )
    rows = [[r["id"], r["cluster"], r["confidence"]] for r in run.tables["labels"]]
    all_labels = table(
        ["id", "cluster", "confidence"],
        rows[:EMBEDDED],
        name="labels",
        caption=f"Every observation. Confidence: {run.about['confidence_is']}."
        + (f" The first {EMBEDDED}; labels.csv has all." if len(rows) > EMBEDDED else ""),
        formats={"confidence": ".3f"},
        shown=8,
    )
    return html("{{ a }}{{ b }}{{ c }}", a=drawn, b=overview, c=all_labels)


def _of_all(drawn: int, run: Any) -> str:
    n = run.about["n_samples"]
    return "" if drawn == n else f" ({drawn} of {n} are drawn)"


# --- reliance ---------------------------------------------------------------------------------


def reliance(run: Any) -> Any:
    views = run.views
    if len(views) == 1:
        return html("<p>There is one view only, so every observation relies on it.</p>")
    rows = [row for row in run.tables["sample_weights"] if row["cluster"] >= 0]
    step = -(-len(rows) // DRAWN)
    shown = sorted(rows, key=lambda row: (row["cluster"], row["departure"]))[::step]
    intro = html(
        "<p>Each observation leans on the views that fit its neighbours: a bright cell says that the "
        "observation (a column) relies mostly on that view (a row). An observation measured badly in "
        "one view shows a dark cell there and brighter ones elsewhere.</p>"
    )
    return html(
        "{{ intro }}{{ map }}{{ unusual }}",
        intro=intro,
        map=_reliance_map(run, shown),
        unusual=_unusual(run, rows),
    )


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
    ids = [f"{plot_text(row['id'])}, cluster {row['cluster']}" for row in shown]
    return figure(
        [
            {
                "type": "heatmap",
                "z": [[_short(row[f"reliance:{view}"]) for row in shown] for view in views],
                "y": [plot_text(view, 24) for view in views],
                "text": [ids] * len(views),
                "hovertemplate": "%{text}<br>%{y}: %{z:.0%}<extra></extra>",
                "colorscale": SCALE,
                "zmin": 0,
                "colorbar": {"tickformat": ".0%", "thickness": 12, "title": {"text": "reliance"}},
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
            "yaxis": {"autorange": "reversed", "showgrid": False},
        },
        label="Heat map: reliance of every observation on every view",
        caption="Columns are observations, sorted by cluster (the strip above has the clusters' "
        "colours) and within it from the usual on the left to the unusual on the right. Every "
        "column adds up to 100%. Blank cells: the view is missing there.",
        height=150 + 46 * len(views),
    )


def _unusual(run: Any, rows: Rows) -> Any:
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
        "failed assay, a swapped sample and true biology all look like this.</p>{{ table }}",
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


# --- views ------------------------------------------------------------------------------------

MEANING = {
    "RobustWMNMF": (
        "A view's weight says how well it agrees with the other views: whether observations close to "
        "each other in it are close in the others as well. Weights add up to 100%, and a view nobody "
        "agrees with gets about none.",
        "A weight does not say how well something was measured, nor how important it is. A view can "
        "be excellent and stand alone. Views that repeat each other agree by that alone; "
        "near-duplicates are found and vote as one.",
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
                "y": [plot_text(name, 24) for name in names],
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
            "yaxis": {"autorange": "reversed"},
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
    labels = [plot_text(name, 24) for name in names]
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
            "yaxis": {"autorange": "reversed", "showgrid": False},
            "xaxis": {"showgrid": False},
            "title": {"text": "Agreement between views", "font": {"size": 14}},
            "margin": {"l": 10, "r": 10, "t": 40, "b": 40},
        },
        label="Heat map of the agreement between views",
        height=max(260, 130 + 36 * len(names)),
    )


# --- features ---------------------------------------------------------------------------------


def features(run: Any) -> Any:
    rows = run.tables["top_features"]
    if not rows:
        return html("<p>No feature differs between a cluster and the rest.</p>")
    largest = max(abs(row["effect"]) for row in rows)
    groups: dict[int, dict[str, Rows]] = {}
    for row in rows:
        if row["rank"] <= 5:
            groups.setdefault(row["cluster"], {}).setdefault(row["view"], []).append(row)
    sizes = {row["cluster"]: row["size"] for row in run.clusters}
    columns = list(rows[0])
    return html(
        """<p>Features by effect: how far the mean of the cluster lies from that of all other
observations, in standard deviations (Cohen's d). From about 0.8 on an effect is large. Bars to the
right: higher in the cluster; to the left, striped: lower. The features were picked because they
differ, so these numbers describe the clusters and prove nothing: no p-value can be had from them.</p>
{% for k, views in groups.items() %}<details{% if loop.index <= open %} open{% endif %}>
<summary>Cluster {{ k }} <span class="faint">({{ sizes[k] }} observations)</span></summary>
<div class="cards">{% for view, found in views.items() %}<div class="card"><h4>{{ view }}</h4><ol>
{% for row in found %}<li><span class="name">{{ row.feature }}</span><span class="effect"><span
 class="bar {{ 'up' if row.effect > 0 else 'down' }}" style="width: {{
 (48 * row.effect|abs / largest)|round(1) }}%"></span></span><span class="value">{{
 '%+.2f'|format(row.effect) }}</span></li>
{% endfor %}</ol></div>{% endfor %}</div></details>
{% endfor %}{{ table }}""",
        groups=groups,
        sizes=sizes,
        largest=largest,
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


# --- certainty --------------------------------------------------------------------------------


def sure(run: Any) -> Any:
    stability = run.about.get("stability")
    text = (
        f"The model was fitted {stability['runs']} more times, each time on 80% of the observations. "
        "A cluster's stability is how much of it came back on average (Jaccard index): above 0.85 it "
        "is very stable, below 0.6 it should not be trusted."
        if stability
        else "Stability was not computed (it refits the model several times)."
    )
    return html(
        '<div class="pair">{{ silhouettes }}{{ bars }}</div><p><b>Silhouette</b>: how much closer an '
        "observation lies to its own cluster than to the nearest other, over the z-scored features of "
        "all views with every view counting the same. 1 is far inside, 0 on the border, below 0 "
        "closer to another cluster. Clusters that are not round blobs in these features have low "
        "values and can still be right.</p><p><b>Stability.</b> {{ text }}</p>{{ table }}",
        silhouettes=_silhouettes(run),
        bars=_stability(run) if stability else "",
        text=text,
        table=_sure_table(run),
    )


def _sure_table(run: Any) -> Any:
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
        caption="Observations, the least sure first. Stability: the share of its cluster's other "
        "members found with it again.",
        formats={"silhouette": ".3f", "stability": ".3f"},
        shown=8,
    )


def _silhouettes(run: Any) -> Any:
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
                "x": [_short(row["silhouette"]) for row in own],
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


def _stability(run: Any) -> Any:
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


# --- baseline, convergence, data --------------------------------------------------------------

SCORES = ("acc", "nmi", "ari", "f_score", "precision", "recall")


def baseline(run: Any) -> Any:
    rows = run.tables["baseline"]
    if not rows:
        return html(
            "<p>Not computed: it needs at least two clusters, and is left out of large data.</p>"
        )
    known = [score for score in SCORES if score in rows[0]]
    ari = rows[0]["ari_with_other"]
    columns = ["clustering", "clusters", "silhouette", *known]
    return html(
        "<p>A multi-view method should earn its place. The plain rival puts the z-scored features of "
        "all views side by side and clusters their nearest-neighbour graph; it weighs no view and no "
        "observation, and fills what is missing with the mean. The two clusterings agree with an "
        "adjusted Rand index of <b>{{ ari }}</b> (1: the same, 0: as by chance). {{ verdict }}</p>"
        "{{ table }}",
        ari=f"{ari:.2f}",
        verdict=(
            "The columns of scores compare with the known classes, which no method saw. "
            if known
            else "Which is right cannot be told without known classes. The silhouette is measured "
            "where the rival works and favours it a little. "
        ),
        table=table(
            [column.replace("_", " ") for column in columns],
            [[row[column] for column in columns] for row in rows],
            name="baseline",
            formats={column.replace("_", " "): ".3f" for column in columns[2:]},
        ),
    )


TERMS = {
    "objective": "Objective (the sum)",
    "reconstruction": "Reconstruction",
    "consensus": "Consensus",
    "regularizer": "Regulariser",
}
ROBUST_TERMS = {**TERMS, "regularizer": "Distance to cluster centres"}


def convergence(run: Any) -> Any:
    rows = run.tables["history"]
    robust = run.about["method"] == "RobustWMNMF"
    steps = list(range(len(rows)))
    plots = [
        figure(
            [
                {
                    "type": "scatter",
                    "mode": "lines+markers" if len(rows) < 60 else "lines",
                    "x": steps,
                    "y": [row[term] for row in rows],
                    "line": {"color": PALETTE[j]},
                    "hovertemplate": "step %{x}: %{y:.5g}<extra></extra>",
                }
            ],
            {
                "title": {"text": title, "font": {"size": 13}},
                "margin": {"l": 10, "r": 10, "t": 34, "b": 36},
                "xaxis": {"title": {"text": "step"}},
                "yaxis": {"exponentformat": "power"},
            },
            label=f"{title} over the steps of the fit",
            height=230,
        )
        for j, (term, title) in enumerate((ROBUST_TERMS if robust else TERMS).items())
    ]
    text = (
        "The objective never rises; single terms may. A low objective is no sign of good clusters, "
        "and different data cannot be compared by it."
        if robust
        else "Jumps come from the rescaling after each view and from the new weights after each "
        "round. A low objective is no sign of good clusters: more rounds lower it and often worsen "
        "them."
    )
    columns = list(rows[0]) if rows else []
    return html(
        "<p>{{ n }} iteration{{ 's' if n != 1 }}; it ended because {{ why }}. {{ text }}</p>"
        '<div class="pair">{% for plot in plots %}{{ plot }}{% endfor %}</div>{{ table }}',
        n=run.about["iterations"],
        why=run.about["stop_reason"],
        text=text,
        plots=plots,
        table=table(
            columns,
            [list(row.values()) for row in rows[:EMBEDDED]],
            name="history",
            caption="Terms of the objective at every step.",
            shown=5,
        ),
    )


def data(run: Any) -> Any:
    about = run.about
    alignment = about.get("alignment") or []
    if isinstance(alignment, str):
        alignment = [alignment]
    elif isinstance(alignment, dict):
        alignment = [f"{key}: {value}" for key, value in alignment.items()]
    counted = {row["view"]: row["observations"] for row in run.tables["view_weights"]}
    inputs = [
        [v["name"], v["features"], counted.get(v["name"]), about["n_samples"], v["sha256"]]
        for v in about["views"]
    ]
    chosen = [
        [key, _text(value)]
        for group in ("settings", "parameters")
        for key, value in about.get(group, {}).items()
    ]
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return html(
        "{% if alignment %}<ul>{% for line in alignment %}<li>{{ line }}</li>{% endfor %}</ul>"
        "{% endif %}{{ inputs }}{{ files }}{% if command %}<p>The command:</p><pre>{{ command }}"
        "</pre>{% endif %}<p>Seed {{ seed }}; {{ versions }}.</p><details><summary>All settings"
        "</summary>{{ chosen }}</details>",
        alignment=alignment,
        inputs=table(
            [
                "view",
                "features",
                "observations with it",
                "all observations",
                "sha256 of the values",
            ],
            inputs,
            name="data",
            caption="The data as the model saw them.",
        ),
        files=_input_files(about.get("inputs") or []),
        command=about.get("command") or "",
        seed=about["seed"],
        versions=versions,
        chosen=table(["setting", "value"], chosen, name="settings"),
    )


def _input_files(inputs: Any) -> Any:
    rows = [item for item in inputs if isinstance(item, dict)]
    if not rows:
        return ""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return table(
        columns,
        [
            [_text(row.get(key)) if row.get(key) is not None else None for key in columns]
            for row in rows
        ],
        name="inputs",
        caption="The files it came from.",
    )


def _text(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else str(value)


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0%}"
