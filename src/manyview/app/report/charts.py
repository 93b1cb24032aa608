"""The charts of a run, drawn by `manyview.plot` from its tables: inline in the page, and as files."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from manyview import plot
from manyview.outcomes.enrich import Crosstab
from manyview.outcomes.survive import Curve, LogRank, Survival
from manyview.plot._draw import INK, PALETTE, file_of, name_ticks, plain
from manyview.plot._draw import title as name_axes
from manyview.plot.heatmap import Bar, Block, draw_heatmap, height_of
from manyview.plot.meaning import MOST_LINES, draw_enrichment, draw_gene_sets, enrichment_lines
from manyview.plot.model import (
    draw_agreement,
    draw_bars,
    draw_consensus,
    draw_points,
    draw_scores,
    draw_terms,
    draw_weights,
    label_places,
)

from .page import clean, inline
from .run_files import Rows, Run

KINDS = ("svg", "png", "pdf")
#: Charts of clinical data and classes; a later comparison draws these again.
MEANING_CHARTS = ("survival", "hazards", "clinical", "classes", "heatmap", "gene_sets")
MODEL_CHARTS = ("map", "view_weights", "convergence", "reliance", "agreement", "redundancy",
                "cluster_view_weights", "stability", "consensus")  # fmt: skip
#: Inches.
WIDE, SQUARE = 6.2, (4.8, 4.2)
LIVES = (4.3, 3.7)
#: Most samples of the reliance chart, classes of a chart, and bars above a heat map.
DRAWN, CLASSES, BARS = 5000, 30, 6
#: Levels with a color of their own on the map; the rarer ones share gray.
MOST_LEVELS, OTHER, UNKNOWN = 20, "#b0b0b0", "#d5d5d5"


class Chart(NamedTuple):
    """What a chart shows, for those who cannot see it; its size in inches; how it is drawn."""

    label: str
    size: tuple[float, float]
    draw: Callable[[Any], Any]


def charts_of(run: Run) -> dict[str, Chart]:
    """Every static chart that the tables of a run have values for, by name."""
    tables, about = run.tables, run.about
    found: dict[str, Chart] = {}

    def add(name: str, label: str, size: tuple[float, float], draw: Callable[[Any], Any]) -> None:
        found[name] = Chart(label, size, draw)

    if points := tables["embedding"]:
        add("map", "Samples in two dimensions", SQUARE, partial(_map, run=run, points=points))
    high = 1.0 + 0.35 * len(run.views)
    add("view_weights", "Bar chart of view weights", (WIDE, high), partial(_weights, run=run))
    terms = {
        name: [row[name] for row in tables["history"]] for name in (tables["history"] or [{}])[0]
    }
    add("convergence", "Terms of the objective over the steps of the fit", (WIDE, 3.4),
        lambda ax: draw_terms(ax, terms))  # fmt: skip
    rows = [row for row in tables["sample_weights"] if row["cluster"] >= 0]
    if rows and len(run.views) > 1:
        rows.sort(key=lambda r: (r["cluster"], 2 if r["departure"] is None else r["departure"]))
        rows = rows[:: -(-len(rows) // DRAWN)]
        add("reliance", "Heat map: reliance of every sample on every view",
            (WIDE, 1.4 + 0.45 * len(run.views)), partial(_reliance, run=run, rows=rows))  # fmt: skip
    for name, text in (
        ("agreement", "Agreement between views"),
        ("redundancy", "Redundancy of views"),
    ):
        if tables[name] and (len(run.views) > 1 or name == "agreement"):
            matrix = _columns(tables[name], [f"with:{view}" for view in run.views])
            add(name, f"Heat map: {text.lower()}", SQUARE,
                partial(draw_agreement, matrix=matrix, names=run.views, text=text))  # fmt: skip
    if len(run.views) > 1 and (own := tables["cluster_view_weights"]):
        high = 1.0 + 0.27 * len(own) + 0.055 * min(40, max(map(len, run.views)))
        shares = _columns(own, [f"view:{view}" for view in run.views])
        names = [f"cluster {row['cluster']}" for row in own]
        add("cluster_view_weights", "Heat map: how much each view sets each cluster apart", (4.0, high),
            partial(draw_agreement, matrix=shares, names=run.views, cmap="Blues", text="",
                    rows=names))  # fmt: skip
    if about.get("stability"):
        add(
            "stability",
            "Stability of every cluster",
            (WIDE, 3.2),
            partial(_stability, rows=run.clusters),
        )
    if pairs := tables["consensus"]:
        together = np.array([list(row.values())[2:] for row in pairs], dtype=float)
        add("consensus", "Heat map: how often two samples were in one cluster over the refits",
            SQUARE, partial(draw_consensus, shares=together, codes=_codes(pairs)))  # fmt: skip
    if tried := tables["selection"]:
        scores = {name: _columns(tried, [name]).ravel() for name in tried[0] if name != "chosen"}
        picked = about["selection"]["n_clusters"] if about["selection"]["found"] else None
        add("selection", "Score of every number of clusters", (5, 3),
            partial(draw_scores, table=scores, chosen=picked))  # fmt: skip
    if tables["heatmap"] and about.get("heatmap"):
        blocks, bars = _blocks(run), _bars(run)
        add("heatmap", "Heat map of the leading features by view, samples ordered by cluster",
            (8.0, max(3.4, 0.162 * height_of(blocks, bars))),
            partial(_heatmap, run=run, blocks=blocks, bars=bars))  # fmt: skip
    if tables["survival_curves"]:
        high = LIVES[1] + 0.18 * max(0, len(tables["survival"]) - 4)  # a line at risk for each
        add("survival", "Survival of the clusters (Kaplan–Meier) with numbers at risk", (LIVES[0], high),
            partial(_survival, run=run))  # fmt: skip
    if ratios := run.hazards:
        add("hazards", "Forest plot: hazard ratio of every cluster, compared with the rest",
            (5.4, 1.1 + 0.3 * len(ratios)),
            lambda ax: plot.hazards(ratios, ax, labels=run.names))  # fmt: skip
    if sets := tables["gene_sets"]:
        add("gene_sets", "Gene sets by cluster", (7.0, 1.6 + 0.5 * len(run.clusters) * 2),
            partial(draw_gene_sets, rows=sets, labels=run.names))  # fmt: skip
    if cells := tables["clinical_cells"]:
        q = {row["column"]: row["q_value"] for row in tables["clinical_tests"]}
        lines = enrichment_lines(cells, q)
        sure = sum(q[line[0]] is not None and q[line[0]] <= 0.05 for line in lines)
        wide = max(WIDE, 3 + 0.42 * len(run.clusters))
        high = max(2.4, 1.2 + 0.24 * min(len(lines), max(MOST_LINES, sure)))
        add("clinical", "Clinical columns by cluster, as deviations from all samples", (wide, high),
            partial(draw_enrichment, cells=cells, q=q, labels=run.names))  # fmt: skip
    if (classes := tables["classes"]) and len(class_names(classes)) <= CLASSES:
        add("classes", "Heat map of known classes by cluster",
            (WIDE, max(2.6, 1.6 + 0.35 * len(classes))), partial(_classes, run=run))  # fmt: skip
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
    text = inline(_saved(name, chart, ("svg",), INK)["svg"])
    return re.sub(r'<g id="[^"]*"', "<g", text)  # they repeat in a page


def _saved(name: str, chart: Chart, kinds: tuple[str, ...], ink: str) -> dict[str, bytes]:
    plt = plot.pyplot()
    colors = dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor", "axes.edgecolor",
                            "xtick.color", "ytick.color"), ink)  # fmt: skip
    face, dpi = ("none", 100) if ink == INK else ("white", 300)
    with plt.rc_context({**colors, "axes.facecolor": face}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph")  # a font without a user's letters
        figure = plt.figure(figsize=chart.size, layout="constrained")
        try:
            chart.draw(figure.subplots())
            # The constrained layout fits the figure and leaves nothing to cut.
            cut = None if figure.get_constrained_layout() else "tight"
            how: dict[str, Any] = {"dpi": dpi, "facecolor": face, "bbox_inches": cut}
            return {kind: file_of(figure, kind, name, **how) for kind in kinds}
        finally:
            plt.close(figure)


def _columns(rows: Rows, names: list[str]) -> Any:
    """Columns of a table as numbers; NaN where a cell is empty."""
    return np.array([[row[name] for name in names] for row in rows], dtype=float)


def _codes(rows: Rows) -> Any:
    return np.array([row["cluster"] for row in rows])


def _map(ax: Any, run: Run, points: Rows) -> None:
    draw_points(ax, _columns(points, ["x", "y"]), _codes(points))
    ax.set_xlabel(run.about["projection"], fontsize="small")


def _weights(ax: Any, run: Run) -> None:
    """The weights used; where these were not learned, those that the data would have given."""
    rows = run.tables["view_weights"]
    series = {"used": [row["weight"] for row in rows]}
    if run.about.get("weights_are", "learned") != "learned" and "learned_weight" in rows[0]:
        series["learned"] = [row["learned_weight"] for row in rows]
    draw_bars(ax, run.views, series, "View weights", form="{:.0%}", axis=False)


def _reliance(ax: Any, run: Run, rows: Rows) -> None:
    values = _columns(rows, [f"reliance:{view}" for view in run.views])
    draw_weights(ax, values, _codes(rows), run.views, order=np.arange(len(rows)))
    name_axes(ax, "Reliance on each view")


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


def _blocks(run: Run) -> list[Block]:
    """The heat map by view: names carry how often a mutation is there, and how many features run along."""
    rows, found = run.tables["heatmap"], []
    for view in run.views:
        own = [item for item in run.about["heatmap"] if item["view"] == view]
        if not own:
            continue
        values = _columns(rows, [item["heading"] for item in own]).T
        texts = [
            f"{item['feature']} {item['share']:.0%}" if item["kind"] == "binary"
            else f"{item['feature']} +{item['parallel']}" if item["parallel"] else str(item["feature"])
            for item in own
        ]  # fmt: skip
        found.append(Block(view, own[0]["kind"], texts, values))
    return found


def _bars(run: Run) -> list[Bar]:
    """Known properties: the classes, then columns that differ between the clusters, then others."""
    marked = (run.about.get("clinical") or {}).get("significant", [])
    known = sorted(_known(run), key=lambda c: (c.name != "class", c.name not in marked))
    ids = [row["id"] for row in run.tables["heatmap"]]
    time = (run.about.get("survival") or {}).get("time")  # of those alive it is no time of survival
    bars = [
        Bar(item.name, [item.values.get(i) for i in ids], item.levels, item.ordered)
        for item in known
        if item.name != time
    ]
    return [bar for bar in bars if len({v for v in bar.values if v is not None}) > 1][:BARS]


def _heatmap(ax: Any, run: Run, blocks: list[Block], bars: list[Bar]) -> None:
    ax.figure.set_layout_engine("none")
    ax.set_position((0.005, 0.005, 0.99, 0.99))
    sizes = {row["cluster"]: row["size"] for row in run.clusters}
    draw_heatmap(ax, blocks, _codes(run.tables["heatmap"]), bars, names=run.names, sizes=sizes)


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
    apart = _columns(
        [{"p": row.get("p_value_against_others")} for row in run.tables["survival"]], ["p"]
    )
    rest = tuple(LogRank(p_value=p) for p in apart.ravel().tolist())
    found = Survival(tuple(curves), test, {}, about["horizon"], none, none, None, (), rest)
    unit = f"time ({about['unit']})" if about["unit"] else "time"
    plot.survival(found, ax, time_label=unit, labels=run.names)


def class_names(rows: Rows) -> list[str]:
    """The columns of the table of classes that are classes."""
    own = ("cluster", "n", "majority", "majority_share")
    return [heading for heading in rows[0] if heading not in own]


def _classes(ax: Any, run: Run) -> None:
    rows, about = run.tables["classes"], run.about["classes"]
    clusters, names = tuple(row["cluster"] for row in rows), class_names(rows)
    counts = _columns(rows, names).astype(int)
    found = Crosstab(clusters, tuple(names), counts, about["ari"], about["nmi"], None, ())
    plot.crosstab(found, ax, labels=run.names)


# --- the map, which readers explore, and what its dots and the bars of the heat map are colored by ---


class Coloring(NamedTuple):
    """A property of samples by id: levels in order for categories, None for numbers."""

    name: str
    values: Mapping[str, Any]
    levels: list[str] | None = None
    percent: bool = False
    ordered: bool = False


def _known(run: Run) -> list[Coloring]:
    """What the annotations of the run say: the class first, then the clinical columns."""
    found = []
    for about in run.about.get("annotations") or []:
        heading, levels = about["heading"], about.get("levels")
        texts = {row["id"]: row[heading] for row in run.tables["annotations"] if row.get(heading)}
        values = texts if levels is not None else {i: float(text) for i, text in texts.items()}
        ordered = about.get("kind") == "ordered"
        found.append(Coloring(about["name"], values, levels, ordered=ordered))
    return found


def _relied(run: Run) -> list[Coloring]:
    rows = run.tables["sample_weights"] if len(run.views) > 1 else []
    return [
        Coloring(f"reliance on {v}", {r["id"]: r[f"reliance:{v}"] for r in rows}, percent=True)
        for v in (run.views if rows else ())
    ]


def map_of(run: Run) -> dict[str, Any]:
    """The map as the page draws it: points in a square of 1000, and the groups of every coloring."""
    points = run.tables["embedding"]
    ids = [row["id"] for row in points]
    sure = {row["id"]: row["confidence"] for row in run.tables["labels"]}
    clusters = sorted({row["cluster"] for row in points})
    by_cluster = Coloring("cluster", {r["id"]: r["cluster"] for r in points}, clusters)
    confidence = Coloring("confidence", sure, percent=True)
    colorings = [by_cluster, *_known(run), confidence, *_relied(run)]
    xy = _columns(points, ["x", "y"])
    low, span = xy.min(axis=0), max(float(np.ptp(xy, axis=0).max()), 1e-9)
    xy = np.rint(1000 * (xy - low) / span).astype(int)
    return {
        "ids": [clean(i) for i in ids],
        "x": xy[:, 0].tolist(),
        "y": (xy[:, 1].max() - xy[:, 1]).tolist(),
        "clusters": [row["cluster"] for row in points],
        "confidence": [None if sure.get(i) is None else round(sure[i], 3) for i in ids],
        "names": {str(k): clean(run.name_of(k)) for k in clusters},
        "labels": _labels(xy * [1, -1] + [0, xy[:, 1].max()], _codes(points)),
        "by": [{"name": item.name, **_groups(item, ids, run)} for item in colorings],
    }


def _labels(xy: Any, codes: Any) -> list[dict[str, Any]]:
    """Where the numbers of the clusters stand: near their middles, where they hide the fewest dots."""
    found = []
    for k, (at, middle) in label_places(xy, codes).items():
        (x, y), (px, py) = np.rint(at).astype(int).tolist(), np.rint(middle).astype(int).tolist()
        found.append({"text": str(k), "x": x, "y": y, "px": px, "py": py})
    return found


def _groups(item: Coloring, ids: list[str], run: Run) -> dict[str, Any]:
    """Values of a scale; or a group number for each point, with names and colors of the groups."""
    values = [item.values.get(i) for i in ids]
    if item.levels is None:
        return {"values": values, "percent": item.percent}
    here = Counter(value for value in values if value is not None)
    levels = [level for level in item.levels if here[level]]
    if len(levels) > MOST_LEVELS and isinstance(levels[0], str):
        common = {level for level, _ in here.most_common(MOST_LEVELS - 1)}
        levels = [level for level in levels if level in common]
    at = [level if isinstance(level, int) else k for k, level in enumerate(levels)]
    names = [run.name_of(v) if isinstance(v, int) else clean(v) for v in levels]
    colors = [PALETTE[k % len(PALETTE)] for k in at]
    if any(value is not None and value not in levels for value in values):
        names, colors = [*names, "others"], [*colors, OTHER]
    if any(value is None for value in values):
        names, colors = [*names, "not known"], [*colors, UNKNOWN]
    place = {level: k for k, level in enumerate(levels)}
    rest = {True: names.index("not known") if None in values else -1, False: len(levels)}
    return {
        "groups": [rest[value is None] if value not in place else place[value] for value in values],
        "names": names,
        "colors": colors,
    }
