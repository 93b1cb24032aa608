"""Figures of what clusters mean: survival, clinical columns, classes, views left out, leading features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._labels import as_list
from manyview._types import Array
from manyview.views.views import as_views

from ._draw import (
    MOST_LEVELS,
    PALETTE,
    UNKNOWN,
    Clustering,
    axes,
    boundaries,
    colours_of,
    is_numeric,
    levels_of,
    name_ticks,
    p_text,
    plain,
    short,
    text_of,
    title,
    write_cells,
)
from .model import draw_bars

#: Points between two lines of the table of numbers at risk, and above its first.
LINE, ABOVE = 12, 40
#: Beyond so many deviations a residual is drawn in the fullest colour.
FULL = 6
#: Lines of the figure of clinical columns.
MOST_LINES = 40


def survival(
    found: Any,
    ax: Any = None,
    *,
    colors: Any = None,
    labels: Mapping[Any, str] | None = None,
    band: bool = True,
    at_risk: bool = True,
    time_label: str = "time",
) -> Any:
    """Kaplan–Meier curves of the clusters, with bands, p-value and the numbers at risk below.

    Parameters
    ----------
    found : Survival
        What `manyview.outcomes.survival` gave.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    colors : dict of cluster → colour, or sequence, optional
    labels : dict of cluster → text, optional
    band : bool, default=True
        Draw the confidence bands.
    at_risk : bool, default=True
        Write how many members are still observed below the axis.
    time_label : str, default="time"

    Returns
    -------
    matplotlib Axes
    """
    ax = axes(ax)
    colour = colours_of(found.clusters, colors)
    for curve in found.curves:
        shade, corners = colour[curve.cluster], curve.steps()
        text = f"{text_of(curve.cluster, labels)} ({curve.n_events} of {curve.n})"
        ax.plot(corners["time"], corners["survival"], color=shade, label=short(text), linewidth=1.8)
        ax.plot(*curve.censor_marks(), "|", color=shade, markersize=6)
        if band:
            drawn = ~np.isnan(corners["lower"])
            time, low, high = (corners[name][drawn] for name in ("time", "lower", "upper"))
            ax.fill_between(time, low, high, color=shade, alpha=0.13, linewidth=0)
    ax.set(ylim=(0, 1.03), xlabel=time_label, ylabel="survival")
    ax.set_xlim(left=0)
    ax.yaxis.set_major_formatter("{x:.0%}")
    box = ax.legend(title="cluster (events)", frameon=False, fontsize="small")
    for text in box.get_texts():
        text.set_parse_math(False)
    plain(ax)
    # Above the axes, where no curve passes; the middle stays free for the user's title.
    p = p_text(found.p_value, found.test.permutations)
    ax.set_title(p if p[0] == "n" else f"log-rank p {p}", loc="left", fontsize="medium")
    if at_risk:
        table = found.at_risk()
        headings = [heading for heading in table.columns if heading != "cluster"]
        times = [float(heading) for heading in headings]
        ax.set_xticks(times)
        counts = {row["cluster"]: [row[h] for h in headings] for row in table.to_dict("records")}
        _write_at_risk(ax, times, counts, colour, labels)
    return ax


def _write_at_risk(
    ax: Any, times: Any, counts: Mapping[Any, Any], colour: Mapping[Any, Any], labels: Any
) -> None:
    """A line of numbers per cluster, under the times of the axis."""
    offset = {"textcoords": "offset points", "fontsize": "small"}
    for k, (cluster, numbers) in enumerate(counts.items()):
        low = -ABOVE - LINE * (k + 1)
        for time, number in zip(times, numbers, strict=True):
            ax.annotate(str(number), (time, 0), (0, low), xycoords=("data", "axes fraction"),
                        ha="center", **offset)  # fmt: skip
        name = short(text_of(cluster, labels), 16)
        ax.annotate(name, (0, 0), (-14, low), xycoords="axes fraction", ha="right", weight="bold",
                    color=colour[cluster], parse_math=False, **offset)  # fmt: skip
    ax.annotate("at risk", (0, 0), (-14, -ABOVE), xycoords="axes fraction", ha="right", **offset)


def crosstab(
    found: Any,
    ax: Any = None,
    *,
    cmap: str = "cividis",
    labels: Mapping[Any, str] | None = None,
) -> Any:
    """Known classes by cluster: numbers of observations, coloured by their share of the cluster.

    Parameters
    ----------
    found : Crosstab
        What `manyview.outcomes.crosstab` gave.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    cmap : str, default="cividis"
        A matplotlib colour map.
    labels : dict of cluster or class → text, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = axes(ax)
    counts, clusters, classes = found.counts, found.clusters, found.classes
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = ax.imshow(shares, cmap=cmap, vmin=0, vmax=1, aspect="auto")
    if counts.size <= 400:
        write_cells(ax, image, shares, counts.astype(str))
    how = {"rotation": 45, "ha": "right"} if len(classes) > 5 else {}
    name_ticks(ax, "x", range(len(classes)), [text_of(c, labels) for c in classes], **how)
    name_ticks(ax, "y", range(len(clusters)), [text_of(k, labels) for k in clusters])
    ax.set(xlabel="known class", ylabel="cluster")
    ax.figure.colorbar(image, ax=ax, pad=0.02, format="{x:.0%}", label="share of the cluster")
    title(ax, f"ARI {found.ari:.2f}, NMI {found.nmi:.2f}")
    return ax


def enrichment(
    found: Any,
    ax: Any = None,
    *,
    max_q: float | None = None,
    cmap: str = "RdBu_r",
    labels: Mapping[Any, str] | None = None,
) -> Any:
    """Clinical columns by cluster: more than expected in red, less in blue.

    A cell holds the share of the cluster (categories and ordered levels) or its median (numbers);
    the colour says how far that lies from what all observations have, in deviations (standardised
    residuals; beyond ±3 is marked).

    Parameters
    ----------
    found : Enrichment
        What `manyview.outcomes.enrichment` gave.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    max_q : float, optional
        Only columns with a q-value of at most this.
    cmap : str, default="RdBu_r"
        A matplotlib colour map.
    labels : dict of cluster or column → text, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = axes(ax)
    q = found.table.set_index("column")["q_value"].to_dict()
    rows = found.cells.to_dict("records")
    cells = [row for row in rows if max_q is None or q[row["column"]] <= max_q]
    draw_enrichment(ax, cells, q, cmap, labels)
    return ax


def draw_enrichment(
    ax: Any,
    cells: Sequence[Mapping[str, Any]],
    q: Mapping[str, float | None],
    cmap: str = "RdBu_r",
    labels: Any = None,
) -> None:
    """A line for every level, or column of numbers, of rows as `Enrichment.cells` has them."""
    lines: dict[tuple[str, Any], list[Mapping[str, Any]]] = {}
    for row in cells:
        lines.setdefault((row["column"], row["level"]), []).append(row)
    if not lines:
        ax.text(0.5, 0.5, "no clinical column to show", ha="center", transform=ax.transAxes)
        ax.set_axis_off()
        return
    names, last = [], None
    for column, level in lines:
        name = text_of(column, labels) + (f" (q = {q[column]:.2g})" if _known(q[column]) else "")
        of_numbers = level is None or level == ""
        names.append(name if of_numbers else f"{name}: {level}" if column != last else str(level))
        last = column
    shown = list(lines.values())[:MOST_LINES]
    residuals = np.array([[row["residual"] for row in rows] for rows in shown], dtype=float)
    image = ax.imshow(residuals, cmap=cmap, vmin=-FULL, vmax=FULL, aspect="auto")
    for i, rows in enumerate(shown):
        for k, row in enumerate(rows):
            share, median = row["share"], row["median"]
            text = f"{share:.0%}" if _known(share) else f"{median:.3g}" if _known(median) else ""
            strong = abs(residuals[i, k]) > 0.6 * FULL
            ax.text(k, i, text, ha="center", va="center", fontsize="small",
                    color="white" if strong else "black")  # fmt: skip
    name_ticks(ax, "y", range(len(shown)), names[:MOST_LINES])
    ax.figure.colorbar(image, ax=ax, pad=0.02, label="deviations from expected")
    name_ticks(ax, "x", range(len(shown[0])), [text_of(r["cluster"], labels) for r in shown[0]])
    ax.set_xlabel("cluster")
    left_out = len(names) - len(shown)
    title(ax, "Clinical columns" + (f" ({left_out} lines more)" if left_out else ""))


def _known(value: Any) -> bool:
    return value is not None and value == value


def gene_sets(
    found: Any,
    ax: Any = None,
    *,
    n: int = 4,
    max_q: float | None = 0.05,
    cmap: str = "RdBu_r",
    labels: Mapping[Any, str] | None = None,
) -> Any:
    """Gene sets by cluster: red where the set is higher in the cluster, blue where it is lower.

    The area of a dot grows with −log10 of q, and a ring marks q ≤ .05.

    Parameters
    ----------
    found : GeneSets
        What `manyview.outcomes.gene_sets` gave.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    n : int, default=4
        Leading sets of every cluster and view; each is shown for all clusters.
    max_q : float, optional
        Only sets with a q-value of at most this in some cluster.
    cmap : str, default="RdBu_r"
        A matplotlib colour map.
    labels : dict of cluster or set → text, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = axes(ax)
    draw_gene_sets(ax, found.full_table.to_dict("records"), n, max_q, cmap, labels)
    return ax


def draw_gene_sets(
    ax: Any,
    rows: Sequence[Mapping[str, Any]],
    n: int = 4,
    max_q: float | None = 0.05,
    cmap: str = "RdBu_r",
    labels: Any = None,
) -> None:
    """A dot for every cluster and leading set, of rows as `GeneSets.full_table` has them."""
    q_of = {id(row): row["q_value"] if "q_value" in row else row["q_descriptive"] for row in rows}
    groups: dict[tuple[Any, Any], list[Mapping[str, Any]]] = {}
    for row in rows:
        if _known(q_of[id(row)]) and (max_q is None or q_of[id(row)] <= max_q):
            groups.setdefault((row["view"], row["cluster"]), []).append(row)
    lines: list[tuple[Any, Any]] = []
    for own in groups.values():
        own.sort(key=lambda row: (q_of[id(row)], -abs(row["effect"])))
        lines += [(row["view"], row["set"]) for row in own[:n]]
    lines = list(dict.fromkeys(lines))
    if not lines:
        ax.text(0.5, 0.5, "no gene set to show", ha="center", transform=ax.transAxes)
        ax.set_axis_off()
        return
    clusters = list(dict.fromkeys(row["cluster"] for row in rows))
    place = {line: i for i, line in enumerate(lines)}
    shown = [r for r in rows if (r["view"], r["set"]) in place and _known(q_of[id(r)])]
    x = [clusters.index(row["cluster"]) for row in shown]
    y = [place[row["view"], row["set"]] for row in shown]
    q = np.array([q_of[id(row)] for row in shown])
    strength = np.minimum(-np.log10(np.maximum(q, 1e-10)), 10)
    effect = [row["effect"] for row in shown]
    limit = max(0.1, float(np.max(np.abs(effect))))
    rings = np.where(q <= 0.05, "black", "none")
    dots = ax.scatter(x, y, 12 + 22 * strength, effect, cmap=cmap, vmin=-limit, vmax=limit,
                      edgecolors=rings, linewidths=0.8)  # fmt: skip
    several = len({view for view, _ in lines}) > 1
    texts = [text_of(own, labels, f"{view}: " if several else "") for view, own in lines]
    name_ticks(ax, "y", range(len(lines)), [text.replace("_", " ") for text in texts])
    name_ticks(ax, "x", range(len(clusters)), [text_of(k, labels) for k in clusters])
    ax.set(xlabel="cluster", xlim=(-0.6, len(clusters) - 0.4), ylim=(len(lines) - 0.5, -0.5))
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    plain(ax, "top", "right", "left", "bottom")
    ax.figure.colorbar(dots, ax=ax, pad=0.02, label="effect (rank correlation)")
    sizes = [s for s in (1.3, 4, 8) if s <= max(strength.max(), 1.3)]
    handles = [
        ax.scatter([], [], 12 + 22 * s, color="white", edgecolors="black", linewidths=0.8,
                   label=f"q = {10**-s:.2g}") for s in sizes
    ]  # fmt: skip
    ax.legend(handles=handles, frameon=False, fontsize="small", ncols=3, loc="lower center",
              bbox_to_anchor=(0.5, 1.0))  # fmt: skip


def leave_view_out(
    found: Any,
    ax: Any = None,
    *,
    color: Any = None,
    labels: Mapping[Any, str] | None = None,
) -> Any:
    """Agreement of the clusters with those found without each view (adjusted Rand index).

    Parameters
    ----------
    found : Markers
        What ``manyview.outcomes.markers(model, views, leave_view_out=True)`` gave.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    color : matplotlib colour, optional
    labels : dict of view → text, optional

    Returns
    -------
    matplotlib Axes
    """
    if not found.left_view_out:
        raise ValueError(
            "these markers were found with all views; pass leave_view_out=True to markers"
        )
    ax = axes(ax)
    names = [text_of(view.view, labels) for view in found.views]
    draw_left_out(ax, names, [view.agreement for view in found.views], color)
    return ax


def draw_left_out(
    ax: Any, names: Sequence[str], agreement: Sequence[float], color: Any = None
) -> None:
    """A bar for every view that was left out."""
    text = "Agreement with clusters found without the view"
    draw_bars(ax, names, {"": agreement}, text, [color or PALETTE[2]])
    ax.set_xlim(min(0, *agreement), 1.15)
    ax.set_xlabel("adjusted Rand index")
    plain(ax)


# --- leading features -------------------------------------------------------------------------------

#: Standard deviations beyond which a value is drawn like this one.
LIMIT = 2.5
#: Height of an annotation bar as a share of a feature's row, and observations drawn.
BAR, MOST_COLUMNS = 1.2, 2000


def heatmap(
    labels: Any,
    views: Any,
    found: Any,
    ax: Any = None,
    *,
    n: int = 3,
    annotations: Mapping[str, Sequence[Any]] | None = None,
    colors: Any = None,
    cmap: str = "RdBu_r",
    names: Mapping[Any, str] | None = None,
) -> Any:
    """Leading features of every cluster and view; observations ordered by cluster.

    Rows are features, columns observations; a value is in standard deviations of its feature, cut
    at ±2.5. Bars above say the cluster and what is given as annotations.

    Parameters
    ----------
    labels : fitted model, or array-like
        One label per observation; −1 is left out.
    views : as `as_views` takes them
        In the order of the labels.
    found : Markers
        What `manyview.outcomes.markers` gave.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    n : int, default=3
        Features per cluster and view.
    annotations : dict of name → values, optional
        A value per observation: numbers are drawn on a scale, others in colours with a legend.
    colors : dict of cluster → colour, or sequence, optional
    cmap : str, default="RdBu_r"
        A matplotlib colour map.
    names : dict of cluster or feature → text, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = axes(ax)
    codes = np.asarray(labels.labels_ if isinstance(labels, Clustering) else labels)
    given = as_views(views, allow_negative=True, allow_missing=True, caller="heatmap")
    if len(codes) != given.n_samples:
        raise ValueError(
            f"labels has {len(codes)} entries and the views have {given.n_samples} rows"
        )
    rows = np.flatnonzero(np.array([label not in (-1, None) for label in codes.tolist()]))
    rows = rows[np.argsort(codes[rows], kind="stable")]
    if len(rows) > MOST_COLUMNS:
        rows = rows[np.linspace(0, len(rows) - 1, MOST_COLUMNS).astype(int)]
    values, features = [], []
    place = {view.view: {f: j for j, f in enumerate(view.features)} for view in found.views}
    seen: set[tuple[str, str]] = set()
    for row in found.top(n, max_q=None).to_dict("records"):
        key = (row["view"], row["feature"])
        if key not in seen:
            seen.add(key)
            values.append(_z_scores(given, row["view"], place[row["view"]][row["feature"]])[rows])
            features.append(row["feature"])
    columns = {name: as_list(column) for name, column in (annotations or {}).items()}
    bars = {name: [column[i] for i in rows] for name, column in columns.items()}
    draw_heatmap(ax, np.array(values), features, codes[rows], bars, colors, cmap, names)
    return ax


def _z_scores(views: Any, name: str, j: int) -> Array:
    X = views.matrices[views.names.index(name)]
    column = np.ravel(X[:, [j]].toarray() if sp.issparse(X) else X[:, j]).astype(float)
    spread = np.nanstd(column)
    return (column - np.nanmean(column)) / (spread if spread > 0 else 1)


def draw_heatmap(
    ax: Any,
    values: Array,
    features: Sequence[str],
    codes: Array,
    bars: Mapping[str, Sequence[Any]],
    colors: Any = None,
    cmap: str = "RdBu_r",
    names: Mapping[Any, str] | None = None,
) -> None:
    """Values (features × observations, sorted by cluster), and bars above."""
    if not len(features):
        ax.text(0.5, 0.5, "no feature to show", ha="center", transform=ax.transAxes)
        ax.set_axis_off()
        return
    image = ax.imshow(
        values, cmap=cmap, vmin=-LIMIT, vmax=LIMIT, aspect="auto", interpolation="nearest"
    )
    ax.set_facecolor(UNKNOWN)
    texts = [text_of(feature, names) for feature in features]
    name_ticks(ax, "y", range(len(features)), texts, fontsize="x-small")
    starts, middles, clusters = boundaries(codes)
    for start in starts[1:]:
        ax.axvline(start - 0.5, color="black", linewidth=0.8)
    name_ticks(ax, "x", middles, [text_of(k, names) for k in clusters.tolist()])
    ax.set_xlabel("observations, by cluster")
    ax.figure.colorbar(image, ax=ax, pad=0.02, shrink=0.6, label="standard deviations")
    height = BAR / max(len(features), 8)
    strips = [
        ax.inset_axes((0, 1.01 + (len(bars) - k) * height, 1, height * 0.85))
        for k in range(len(bars) + 1)
    ]
    _strip(strips[0], "cluster", codes.tolist(), colors, groups=True)
    keys: list[tuple[str, Any, str]] = []
    for strip, (name, column) in zip(strips[1:], bars.items(), strict=True):
        keys += _strip(strip, name, column)
    if keys:
        _legend(ax, keys)


def _strip(
    ax: Any, name: str, column: Sequence[Any], colors: Any = None, groups: bool = False
) -> list[tuple[str, Any, str]]:
    """One bar, and the keys of its colours (none for numbers, unless they are ``groups``)."""
    if not groups and is_numeric(column):
        numbers = np.array([np.nan if v is None else v for v in column], dtype=float)
        ax.imshow(numbers[None], aspect="auto", cmap="cividis", interpolation="nearest")
        keys: list[tuple[str, Any, str]] = []
    else:
        levels = levels_of(column)
        colour = colours_of(levels, colors)
        shown = levels if groups else levels[:MOST_LEVELS]
        mapped = [_rgb(colour[v] if v in shown else UNKNOWN) for v in column]
        ax.imshow(np.array(mapped)[None], aspect="auto", interpolation="nearest")
        keys = [(name, colour[v], str(v)) for v in shown]
    ax.set(xticks=[])
    ax.tick_params(length=0)
    name_ticks(ax, "y", [0], [short(name, 24)], fontsize="x-small")
    ax.spines[:].set_visible(False)
    return keys


def _rgb(colour: Any) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(colour)


def _legend(ax: Any, keys: list[tuple[str, Any, str]]) -> None:
    from matplotlib.patches import Patch
    from matplotlib.transforms import ScaledTranslation

    # So far below the axes, in inches, that the names of the clusters have room, however tall they are.
    below = ax.transAxes + ScaledTranslation(0, -0.55, ax.figure.dpi_scale_trans)
    patches = [Patch(color=c, label=short(f"{name}: {text}", 28)) for name, c, text in keys]
    columns = min(4, len(patches))
    box = ax.legend(handles=patches, fontsize="x-small", frameon=False, ncols=columns,
                    loc="upper center", bbox_to_anchor=(0.5, 0), bbox_transform=below)  # fmt: skip
    for text in box.get_texts():
        text.set_parse_math(False)
