"""The charts of a run, drawn by `manyview.plot` from its tables: inline in the page, and as files."""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from manyview import plot
from manyview.outcomes.enrich import Crosstab
from manyview.outcomes.survive import Curve, LogRank, Survival
from manyview.plot._draw import PALETTE, name_ticks, plain
from manyview.plot._draw import title as name_axes
from manyview.plot.meaning import draw_enrichment, draw_heatmap, draw_left_out
from manyview.plot.model import (
    draw_agreement,
    draw_bars,
    draw_consensus,
    draw_points,
    draw_scores,
    draw_terms,
    draw_weights,
)

from .page import clean, plot_text
from .run_files import Rows, Run

KINDS = ("svg", "png", "pdf")
#: Charts that show what is known beside the views; a later comparison draws these anew.
MEANING_CHARTS = ("survival", "clinical", "classes", "heatmap")
MODEL_CHARTS = ("map", "view_weights", "convergence", "reliance", "agreement", "redundancy",
                "cluster_view_weights", "leave_view_out", "stability", "consensus")  # fmt: skip
#: Inches.
WIDE, SQUARE = (7.5, 4.5), (6.0, 5.2)
#: Text of a chart in the page takes the page's own color, light or dark.
INK = "#010203"
#: Most observations of the reliance chart, classes of a chart, and bars above a heat map.
DRAWN, CLASSES, BARS = 5000, 30, 6
#: Levels with a color of their own on the map; the rarer ones share grey.
MOST_LEVELS, OTHER, UNKNOWN = 20, "#b0b0b0", "#d5d5d5"
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star")


class Chart(NamedTuple):
    """What a chart shows, for those who cannot see it; its size in inches; how it is drawn."""

    label: str
    size: tuple[float, float]
    draw: Callable[[Any], Any]


def charts_of(run: Run) -> dict[str, Chart]:
    """Every static chart that the tables of a run have values for, by name."""
    tables, about = run.tables, run.about
    found: dict[str, Chart] = {}

    def add(name: str, label: str, size: tuple[float, float], draw: Any, *values: Any) -> None:
        found[name] = Chart(label, size, lambda ax: draw(ax, *values))

    if points := tables["embedding"]:
        xy, codes = _columns(points, ["x", "y"]), _codes(points)
        add("map", "Observations in two dimensions", SQUARE, _map, xy, codes, about["projection"])
    add(
        "view_weights",
        "Bar chart of view weights",
        (7.5, 1.0 + 0.35 * len(run.views)),
        _weights,
        run,
    )
    add("convergence", "Terms of the objective over the steps of the fit", (7.5, 3.6), _terms,
        tables["history"])  # fmt: skip
    rows = [row for row in tables["sample_weights"] if row["cluster"] >= 0]
    if rows and len(run.views) > 1:
        rows.sort(key=lambda r: (r["cluster"], 2 if r["departure"] is None else r["departure"]))
        rows = rows[:: -(-len(rows) // DRAWN)]
        values = _columns(rows, [f"reliance:{view}" for view in run.views])
        add("reliance", "Heat map: reliance of every observation on every view",
            (7.5, 1.4 + 0.45 * len(run.views)), _reliance, values, _codes(rows), run.views)  # fmt: skip
    for name, text in (("agreement", "Agreement between views"),
                       ("redundancy", "Redundancy of views")):  # fmt: skip
        if tables[name] and (len(run.views) > 1 or name == "agreement"):
            matrix = _columns(tables[name], [f"with:{view}" for view in run.views])
            add(name, f"Heat map: {text.lower()}", SQUARE, draw_agreement, matrix, run.views,
                "cividis", text)  # fmt: skip
    if len(run.views) > 1 and (own := tables["cluster_view_weights"]):
        add("cluster_view_weights", "Heat map: how much each view sets each cluster apart",
            (6.0, 3.4 + 0.3 * len(own)), _cluster_views, own, run.views)  # fmt: skip
    if left_out := tables["leave_view_out"]:
        add("leave_view_out", "Bar chart: agreement of the clusters with those found without each view",
            (7.5, 1.3 + 0.35 * len(left_out)), draw_left_out, [row["view"] for row in left_out],
            [row["agreement"] for row in left_out])  # fmt: skip
    if about.get("stability"):
        add("stability", "Stability of every cluster", (7.5, 3.6), _stability, run.clusters)
    if pairs := tables["consensus"]:
        shares = np.array([list(row.values())[2:] for row in pairs], dtype=float)
        add("consensus", "Heat map: how often two observations were in one cluster over the refits",
            SQUARE, draw_consensus, shares, _codes(pairs))  # fmt: skip
    if tried := tables["selection"]:
        scores = {name: _columns(tried, [name]).ravel() for name in tried[0] if name != "chosen"}
        picked = about["selection"]["n_clusters"] if about["selection"]["found"] else None
        add("selection", "Score of every number of clusters", (5, 3), draw_scores, scores, picked)
    if tables["heatmap"] and about.get("heatmap"):
        chosen = chosen_bars(run)
        size = (8.0, 2.0 + 0.16 * (len(about["heatmap"]) + len(chosen)))
        add("heatmap", "Heat map of the leading features, observations ordered by cluster", size,
            _heatmap, run, chosen)  # fmt: skip
    if tables["survival_curves"]:
        add("survival", "Survival of the clusters (Kaplan–Meier) with numbers at risk", WIDE,
            _survival, run)  # fmt: skip
    if cells := tables["clinical_cells"]:
        q = {row["column"]: row["q_value"] for row in tables["clinical_tests"]}
        lines = len({(row["column"], row["level"]) for row in cells})
        add("clinical", "Clinical columns by cluster, as deviations from all observations",
            (7.5, max(3.0, 1.2 + 0.24 * min(40, lines))), draw_enrichment, cells, q)  # fmt: skip
    if classes := tables["classes"]:
        names = class_names(classes)
        if len(names) <= CLASSES:
            add("classes", "Heat map of known classes by cluster",
                (7.5, max(2.6, 1.6 + 0.35 * len(classes))), _classes, run, names)  # fmt: skip
    return found


def chart_files(names: Any) -> list[str]:
    """Files that charts of these names are saved as."""
    return [f"figures/{name}.{kind}" for name in names for kind in KINDS]


def drawn_files(run: Run, names: Any) -> dict[str, bytes]:
    """File name → content, of those charts of these names that the run has values for."""
    found = charts_of(run)
    return {
        f"figures/{name}.{kind}": content
        for name in names
        if name in found
        for kind, content in _saved(name, found[name], KINDS, "black").items()
    }


def chart_svg(name: str, chart: Chart) -> str:
    """The <svg> element of a chart."""
    text = _saved(name, chart, ("svg",), INK)["svg"].decode()
    text = re.sub(r'<g id="[^"]*"', "<g", text[text.index("<svg") :])  # they repeat in a page
    return clean(text).replace(INK, "currentColor")


def _saved(name: str, chart: Chart, kinds: tuple[str, ...], ink: str) -> dict[str, bytes]:
    plt = plot.pyplot()
    files = {}
    colors = dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor", "axes.edgecolor",
                            "xtick.color", "ytick.color"), ink)  # fmt: skip
    # Text stays text in the files; the same chart has the same bytes.
    how = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": name, **colors}
    how["axes.facecolor"] = "none" if ink == INK else "white"
    with plt.rc_context(how), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph")  # a font without a user's letters
        figure = plt.figure(figsize=chart.size, layout="constrained")
        try:
            chart.draw(figure.subplots())
            for kind in kinds:
                content = io.BytesIO()
                meta = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
                face = "none" if ink == INK else "white"
                figure.savefig(content, format=kind, dpi=100 if ink == INK else 300, facecolor=face,
                               bbox_inches="tight", metadata=meta)  # fmt: skip
                files[kind] = content.getvalue()
        finally:
            plt.close(figure)
    return files


def _columns(rows: Rows, names: list[str]) -> Any:
    """Columns of a table as numbers; NaN where a cell is empty."""
    return np.array([[row[name] for name in names] for row in rows], dtype=float)


def _codes(rows: Rows) -> Any:
    return np.array([row["cluster"] for row in rows])


def _map(ax: Any, points: Any, codes: Any, projection: str) -> None:
    draw_points(ax, points, codes)
    ax.set_xlabel(projection, fontsize="small")


def _weights(ax: Any, run: Run) -> None:
    """The weights used; where these were not learned, those that the data would have given."""
    rows = run.tables["view_weights"]
    series = {"used": [row["weight"] for row in rows]}
    if run.about.get("weights_are", "learned") != "learned" and "learned_weight" in rows[0]:
        series["learned"] = [row["learned_weight"] for row in rows]
    draw_bars(ax, run.views, series, "View weights", form="{:.0%}", axis=False)


def _terms(ax: Any, rows: Rows) -> None:
    draw_terms(ax, {name: [row[name] for row in rows] for name in (rows[0] if rows else ())})


def _reliance(ax: Any, values: Any, codes: Any, views: list[str]) -> None:
    draw_weights(ax, values, codes, views, order=np.arange(len(codes)))
    name_axes(ax, "Reliance on each view")


def _cluster_views(ax: Any, rows: Rows, views: list[str]) -> None:
    matrix = _columns(rows, [f"view:{view}" for view in views])
    names = [f"cluster {row['cluster']}" for row in rows]
    draw_agreement(ax, matrix, views, "cividis", "Weight of each view for each cluster", names)


def _stability(ax: Any, rows: Rows) -> None:
    names = [row["cluster"] for row in rows]
    colors = [PALETTE[k % len(PALETTE)] for k in names]
    drawn = ax.bar(range(len(rows)), _columns(rows, ["stability"]).ravel(), color=colors)
    ax.bar_label(drawn, fmt="%.2f", fontsize="small")
    for level in (0.6, 0.85):
        ax.axhline(level, color="#888888", linestyle=":")
    name_ticks(ax, "x", range(len(rows)), names)
    ax.set(ylim=(0, 1.08), xlabel="cluster", title="Stability of every cluster")
    plain(ax)


def _heatmap(ax: Any, run: Run, chosen: list[Coloring]) -> None:
    rows, features = run.tables["heatmap"], run.about["heatmap"]
    bars: dict[str, list[Any]] = {}
    for item in chosen:
        name = f"{item.name} (clinical)" if item.name in bars else item.name
        bars[name] = [item.values.get(row["id"]) for row in rows]
    values = _columns(rows, [item["heading"] for item in features]).T
    draw_heatmap(ax, values, [str(item["feature"]) for item in features], _codes(rows), bars)


def _survival(ax: Any, run: Run) -> None:
    about, curves = run.about["survival"], []
    for row in run.tables["survival"]:
        own = [r for r in run.tables["survival_curves"] if r["cluster"] == row["cluster"]]
        parts = {name: _columns(own, [name]).ravel() for name in own[0] if name != "cluster"}
        parts |= {name: parts[name].astype(int) for name in ("at_risk", "events", "censored")}
        medians = {name: row[name] for name in ("median", "median_lower", "median_upper")}
        curves.append(Curve(row["cluster"], **parts, **medians, level=about["level"]))
    p = np.nan if about["p_value"] is None else about["p_value"]
    test = LogRank(about["statistic"], about["degrees"], p, np.nan, about["permutations"])
    none = np.full(len(curves), np.nan)
    found = Survival(tuple(curves), test, {}, about["horizon"], none, none, None, ())
    plot.survival(found, ax, time_label=f"time ({about['unit']})" if about["unit"] else "time")


def class_names(rows: Rows) -> list[str]:
    """The columns of the table of classes that are classes."""
    own = ("cluster", "n", "majority", "majority_share")
    return [heading for heading in rows[0] if heading not in own]


def _classes(ax: Any, run: Run, names: list[str]) -> None:
    rows, about = run.tables["classes"], run.about["classes"]
    clusters = tuple(row["cluster"] for row in rows)
    counts = _columns(rows, names).astype(int)
    found = Crosstab(clusters, tuple(names), counts, about["ari"], about["nmi"], None, ())
    plot.crosstab(found, ax)


# --- the map, which readers explore, and what its dots and the bars of the heat map are colored by ---


class Coloring(NamedTuple):
    """A property of observations by id: levels in order for categories, None for numbers."""

    name: str
    values: Mapping[str, Any]
    levels: list[str] | None = None
    percent: bool = False


def _known(run: Run) -> list[Coloring]:
    """What the annotations of the run say: the class first, then the clinical columns."""
    found = []
    for about in run.about.get("annotations") or []:
        heading, levels = about["heading"], about.get("levels")
        texts = {row["id"]: row[heading] for row in run.tables["annotations"] if row.get(heading)}
        values = texts if levels is not None else {i: float(text) for i, text in texts.items()}
        found.append(Coloring(about["name"], values, levels))
    return found


def _relied(run: Run) -> list[Coloring]:
    rows = run.tables["sample_weights"] if len(run.views) > 1 else []
    return [
        Coloring(f"reliance on {v}", {r["id"]: r[f"reliance:{v}"] for r in rows}, percent=True)
        for v in (run.views if rows else ())
    ]


def chosen_bars(run: Run) -> list[Coloring]:
    """Known properties first, columns that differ between clusters before others; then reliance."""
    marked = (run.about.get("clinical") or {}).get("significant", [])
    known = sorted(_known(run), key=lambda c: (c.name != "class", c.name not in marked))
    return [*known[: BARS - 2], *_relied(run)][:BARS]


def map_of(run: Run) -> dict[str, Any]:
    """The map as plotly draws it: points, and the traces of every coloring."""
    points = run.tables["embedding"]
    ids = [row["id"] for row in points]
    sure = {row["id"]: row["confidence"] for row in run.tables["labels"]}
    clusters = sorted({row["cluster"] for row in points})
    bare = {"showticklabels": False, "showgrid": False, "zeroline": False, "title": {"text": ""}}
    by_cluster = Coloring("cluster", {r["id"]: r["cluster"] for r in points}, clusters)
    colorings = [
        by_cluster,
        *_known(run),
        Coloring("confidence", sure, percent=True),
        *_relied(run),
    ]
    return {
        "data": [],
        "layout": {
            "xaxis": bare,
            "yaxis": {**bare, "scaleanchor": "x"},
            "annotations": [_number(points, k) for k in clusters],
            "legend": {"itemsizing": "constant"},
            "hovermode": "closest",
            "showlegend": True,
        },
        "choices": {
            "points": {
                "x": [round(row["x"], 4) for row in points],
                "y": [round(row["y"], 4) for row in points],
                "text": [
                    f"{plot_text(i)}<br>cluster {row['cluster']}, confidence "
                    + ("unknown" if sure.get(i) is None else f"{sure[i]:.0%}")
                    for i, row in zip(ids, points, strict=True)
                ],
            },
            "trace": {
                "type": "scatter",
                "mode": "markers",
                "hovertemplate": "%{text}<extra></extra>",
                "marker": {"size": 9 if len(points) < 300 else 5, "opacity": 0.85},
            },
            "by": [{"name": item.name, "traces": _traces(item, ids)} for item in colorings],
        },
    }


def _number(points: Rows, k: int) -> dict[str, Any]:
    """The cluster's name at the point nearest to its median: never between two clouds."""
    own = [row for row in points if row["cluster"] == k]
    xy = _columns(own, ["x", "y"])
    at = own[int(((xy - np.median(xy, axis=0)) ** 2).sum(axis=1).argmin())]
    place = {"x": at["x"], "y": at["y"], "showarrow": False}
    return {**place, "text": f"<b>{k}</b>", "font": {"size": 16}}


def _traces(item: Coloring, ids: list[str]) -> list[dict[str, Any]]:
    """One trace per level, or one with a scale; grey for what is not known."""
    values = [item.values.get(i) for i in ids]

    def rows_of(group: Callable[[Any], bool]) -> list[int]:
        return [r for r, value in enumerate(values) if group(value)]

    def grey(name: str, color: str, rows: list[int]) -> list[dict[str, Any]]:
        trace = {"name": f"{name} ({len(rows)})", "marker": {"color": color}}
        return [{"rows": rows, "trace": trace}] if rows else []

    found = grey("not known", UNKNOWN, rows_of(lambda v: v is None))
    if item.levels is None:
        rows = rows_of(lambda v: v is not None)
        form = "{:.0%}" if item.percent else "{:.4g}"
        bar = {"thickness": 12, "title": {"text": plot_text(item.name, 24)},
               **({"tickformat": ".0%"} if item.percent else {})}  # fmt: skip
        marker = {"color": [float(f"{values[r]:.4g}") for r in rows], "colorscale": "Cividis",
                  "showscale": True, "colorbar": bar}  # fmt: skip
        words = [form.format(values[r]) for r in rows]
        trace = {"marker": marker, "showlegend": False}
        return [*found, {"rows": rows, "words": words, "trace": trace}]
    here = Counter(value for value in values if value is not None)
    levels = [level for level in item.levels if here[level]]
    if len(levels) > MOST_LEVELS and isinstance(levels[0], str):
        common = {level for level, _ in here.most_common(MOST_LEVELS - 1)}
        levels = [level for level in levels if level in common]
    for k, level in enumerate(levels):
        at = level if isinstance(level, int) else k
        symbol = SYMBOLS[at // len(PALETTE) % len(SYMBOLS)]
        marker = {"color": PALETTE[at % len(PALETTE)], "symbol": symbol}
        rows = [r for r, value in enumerate(values) if value == level]
        trace = {"name": f"{plot_text(level, 24)} ({len(rows)})", "marker": marker}
        found.append({"rows": rows, "trace": trace})
        if not isinstance(level, int):
            found[-1]["words"] = [plot_text(level)] * len(rows)
    rare = grey("others", OTHER, rows_of(lambda v: v is not None and v not in levels))
    for part in rare:
        part["words"] = [plot_text(values[r]) for r in part["rows"]]
    return [*found, *rare]
