"""How the result came about: a plain rival, the fit, data and settings."""

from __future__ import annotations

from typing import Any

from manyview._colors import PALETTE
from manyview.app.report.page import figure, html, table
from manyview.app.report.run_files import Run

from .shared import EMBEDDED

SCORES = ("acc", "nmi", "ari", "f_score", "precision", "recall")


def baseline(run: Run) -> Any:
    rows = run.tables["baseline"]
    if not rows:
        return html(
            "<p>Not computed: it needs at least two clusters, and is left out of large data.</p>"
        )
    known = [score for score in SCORES if score in rows[0]]
    ari = rows[0]["ari_with_other"]
    columns = ["clustering", "clusters", *known]
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
            else "Which is right cannot be told without known classes. "
        ),
        table=table(
            [column.replace("_", " ") for column in columns],
            [[row[column] for column in columns] for row in rows],
            name="baseline",
            formats={column.replace("_", " "): ".3f" for column in columns[2:]},
        ),
    )


def chosen(run: Run) -> Any:
    """Why this many clusters, where the number was not given."""
    about, rows = run.about["selection"], run.tables["selection"]
    plots = []
    for j, method in enumerate(about["votes"]):
        own = [row for row in rows if row["method"] == method]
        plots.append(
            figure(
                [
                    {
                        "type": "scatter",
                        "mode": "lines+markers",
                        "x": [row["n_clusters"] for row in own],
                        "y": [row["score"] for row in own],
                        "line": {"color": PALETTE[j % len(PALETTE)]},
                        "hovertemplate": "%{x} clusters: %{y:.3f}<extra></extra>",
                    }
                ],
                {
                    "title": {"text": f"Score by {method}", "font": {"size": 13}},
                    "margin": {"l": 10, "r": 10, "t": 34, "b": 36},
                    "xaxis": {"title": {"text": "clusters"}},
                },
                label=f"Score of every number of clusters by {method}",
                height=260,
            )
        )
    columns = list(rows[0]) if rows else []
    return html(
        "<p>The number of clusters was not given but chosen: <b>{{ answer }}</b>.</p>"
        "<ul>{% for line in reasons %}<li>{{ line }}</li>{% endfor %}</ul>"
        '<div class="pair">{% for plot in plots %}{{ plot }}{% endfor %}</div>{{ table }}',
        answer=_answer(about),
        reasons=about["reasons"],
        plots=plots,
        table=table(
            [column.replace("_", " ") for column in columns],
            [list(row.values()) for row in rows],
            name="selection",
            caption="Every number of clusters that was tried.",
            formats=dict.fromkeys(
                ("score", "error", "reference", "ari", "pac", "cophenetic"), ".3f"
            ),
            shown=8,
        ),
    )


def _answer(about: dict[str, Any]) -> str:
    """The number, or that there is none, with the runner-up; runs of before know of no runner-up."""
    text = str(about["n_clusters"]) if about["found"] else "none stands out, so all are in one"
    if about.get("runner_up"):
        text += f"; also {about['runner_up']}"
    return text + (" (doubtful)" if about.get("doubtful") else "")


TERMS = {
    "objective": "Objective (the sum)",
    "reconstruction": "Reconstruction",
    "consensus": "Consensus",
    "regularizer": "Regulariser",
}
ROBUST_TERMS = {**TERMS, "regularizer": "Distance to cluster centres"}


def convergence(run: Run) -> Any:
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
        "{% if told %}<p>It said:</p><ul>{% for line in told %}<li>{{ line }}</li>{% endfor %}</ul>"
        "{% endif %}"
        '<div class="pair">{% for plot in plots %}{{ plot }}{% endfor %}</div>{{ table }}',
        n=run.about["iterations"],
        why=run.about["stop_reason"],
        text=text,
        told=list(dict.fromkeys(run.about.get("fit_warnings", []))),
        plots=plots,
        table=table(
            columns,
            [list(row.values()) for row in rows[:EMBEDDED]],
            name="history",
            caption="Terms of the objective at every step.",
            shown=5,
        ),
    )


def data(run: Run) -> Any:
    about = run.about
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
        "{{ inputs }}{{ files }}{% if command %}<p>The command:</p><pre>{{ command }}"
        "</pre>{% endif %}<p>Seed {{ seed }}; {{ versions }}.</p><details><summary>All settings"
        "</summary>{{ chosen }}</details>",
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
