"""How much each view counts, how much the views agree, and how much they repeat each other."""

from __future__ import annotations

from typing import Any

from manyview._colors import PALETTE, SCALE
from manyview.app.report.page import figure, html, table
from manyview.app.report.run_files import Run

from .refits import leave_view_out
from .shared import axis_labels

MEANING = {
    "RobustWMNMF": (
        "A view's weight says how well it agrees with the other views: whether observations close to "
        "each other in it are close in the others as well. Weights add up to 100%, and a view nobody "
        "agrees with gets about none.",
        "A weight does not say how well something was measured, nor how important it is. A view can "
        "be excellent and stand alone. Views that repeat each other agree by that alone: such "
        "agreement does not count, and they share one weight.",
    ),
    "WMNMF": (
        "A view's weight says how close its own factorisation lies to the consensus. Weights add up "
        "to 100%.",
        "A weight is not a measure of quality: a view of pure noise can receive the largest, and "
        "with many rounds one view tends to take all. RobustWMNMF has weights made for that "
        "question; the agreement below does not depend on the weights.",
    ),
}
GIVEN = {
    "given": "The weights were given with the request, and made to add up to 100%. A view of weight 0 "
    "took no part in the clusters.",
    "equal": "All views were asked to count the same.",
}


def views(run: Run) -> Any:
    does, does_not = _meaning(run)
    return html(
        '{{ bars }}<div class="pair">{{ agreement }}{{ redundancy }}</div>'
        "<p><b>What it means.</b> {{ does }}</p>"
        "<p><b>What it does not mean.</b> {{ does_not }}</p>"
        "<p><b>Agreement</b> of two views is 1 if neighbours in one are identical in the other, 0 if "
        "they are no closer there than any two observations. On the diagonal stands the agreement "
        "of two random halves of the view's own features: low values there say that a view is "
        "noisy or that its features have little in common.</p>{{ repeats }}{{ logarithms }}"
        "{{ tables }}{{ left_out }}",
        bars=_bars(run),
        agreement=_map(run, "agreement", "Agreement between views"),
        redundancy=_map(run, "redundancy", "Redundancy of views"),
        does=does,
        does_not=does_not,
        repeats=_about_redundancy(run),
        logarithms=_about_logarithms(run),
        tables=_tables(run),
        left_out=leave_view_out(run),
    )


def _meaning(run: Run) -> tuple[str, str]:
    """What weights of this origin say, and what they do not."""
    does, does_not = MEANING.get(run.about["method"], MEANING["RobustWMNMF"])
    origin = GIVEN.get(run.about.get("weights_are", "learned"))
    if origin is None:
        return does, does_not
    if not _learned(run):
        return origin, "These weights say nothing about the views: they were not learned."
    return (
        f"{origin} The bars of learned weights show what the data would have given. "
        + does.replace("A view's weight says", "A learned weight says"),
        does_not.replace("A weight", "A learned weight", 1),
    )


def _learned(run: Run) -> list[float]:
    """The weights learned, where others were used."""
    rows = run.tables["view_weights"]
    if run.about.get("weights_are", "learned") == "learned" or "learned_weight" not in rows[0]:
        return []
    return [row["learned_weight"] for row in rows]


def _bars(run: Run) -> Any:
    used = [row["weight"] for row in run.tables["view_weights"]]
    learned = _learned(run)
    traces = [_bar(run, used, "used", PALETTE[0])]
    if learned:
        traces.append(_bar(run, learned, "learned", PALETTE[1]))
    return figure(
        traces,
        {
            "xaxis": {
                "range": [0, 1.2 * max([*used, *learned])],
                "tickformat": ".0%",
                "rangemode": "tozero",
            },
            "yaxis": {"autorange": "reversed", "type": "category"},
            "title": {"text": "View weights", "font": {"size": 14}},
            "showlegend": bool(learned),
            "margin": {"l": 10, "r": 30, "t": 40, "b": 30},
        },
        label="Bar chart of view weights",
        height=130 + (60 if learned else 36) * len(run.views),
    )


def _bar(run: Run, weights: list[float], name: str, color: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": axis_labels(run.views),
        "x": weights,
        "text": [f"{weight:.0%}" for weight in weights],
        "textposition": "outside",
        "cliponaxis": False,
        "hovertemplate": f"%{{y}}, {name}: %{{x:.1%}}<extra></extra>",
        "marker": {"color": color},
    }


def _about_redundancy(run: Run) -> Any:
    if not _matrix(run, "redundancy"):
        return ""
    return html(
        "<p><b>Redundancy</b> of two views is the correlation of their distances between neighbours. "
        "Views that see the same groups independently have about 0, however well they agree; views "
        "computed from the same measurements have more. What is redundant is no second "
        "witness.</p>"
    )


def _about_logarithms(run: Run) -> Any:
    """The decision of scale="auto", with its reason."""
    reasons = run.about.get("logarithms") or {}
    return html(
        "{% if reasons %}<p><b>Logarithms</b> were taken of {% for view, why in reasons.items() %}"
        "{{ '' if loop.first else ' and ' if loop.last else ', ' }}“{{ view }}” ({{ why }})"
        "{% endfor %}, so that a few large values do not decide who is near whom. If "
        "that is not wanted: <code>scale={view: 'quantile'}</code>, or on the command line "
        "<code>--scale VIEW=quantile</code>.</p>{% endif %}",
        reasons=reasons,
    )


def _tables(run: Run) -> Any:
    rows, names = run.tables["view_weights"], run.views
    columns = list(rows[0])
    weights = table(
        [column.replace("_", " ") for column in columns],
        [list(row.values()) for row in rows],
        name="view_weights",
        caption="Views. Observations: those that have the view.",
        formats=dict.fromkeys(("weight", "learned weight", "mean reliance"), ".3f"),
    )
    pairs = [
        table(
            ["view", *names],
            [[row["view"], *[row[f"with:{name}"] for name in names]] for row in run.tables[file]],
            name=file,
            caption=caption,
            formats=dict.fromkeys(names, ".2f"),
        )
        for file, caption in (
            ("agreement", "Agreement of views; on the diagonal that of random halves of one view."),
            ("redundancy", "Redundancy of views: 1 for a view and its copy."),
        )
        if run.tables[file]
    ]
    return html("{{ a }}{% for b in pairs %}{{ b }}{% endfor %}", a=weights, pairs=pairs)


def _matrix(run: Run, file: str) -> list[list[float]]:
    """A table of views by views; none if the run has no such file, or one view only."""
    rows = run.tables[file] if len(run.views) > 1 or file == "agreement" else []
    return [[row[f"with:{name}"] for name in run.views] for row in rows]


def _map(run: Run, file: str, title: str) -> Any:
    z, names = _matrix(run, file), run.views
    if not z:
        return ""
    labels = axis_labels(names)
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
            "yaxis": {"autorange": "reversed", "type": "category", "showgrid": False},
            "xaxis": {"type": "category", "showgrid": False},
            "title": {"text": title, "font": {"size": 14}},
            "margin": {"l": 10, "r": 10, "t": 40, "b": 40},
        },
        label=f"Heat map: {title.lower()}",
        height=max(260, 130 + 36 * len(names)),
    )
