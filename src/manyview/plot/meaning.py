"""Figures of what clusters mean: survival, hazards, clinical columns, classes, views left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._draw import (
    PALETTE,
    axes,
    colors_of,
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
#: Clusters up to which bands are drawn; more have lines of different dashes instead.
MOST_BANDS, DASHES = 4, ("-", (0, (5, 1.5)), (0, (1.5, 1.2)))
#: Beyond this many deviations a residual is drawn in the fullest color.
FULL = 6
#: Lines of the figure of clinical columns, unless more are significant.
MOST_LINES = 40
#: Levels of a smaller share are folded, unless a residual exceeds this.
RARE, STRIKING = 0.02, 3


def survival(
    found: Any,
    ax: Any = None,
    *,
    colors: Any = None,
    labels: Mapping[Any, str] | None = None,
    band: bool | None = None,
    at_risk: bool = True,
    time_label: str = "time",
) -> Any:
    """Plot Kaplan–Meier curves of the clusters, with bands, p-value and the numbers at risk below.

    Of more than four clusters those that differ from all others (q ≤ 0.05) have thicker lines.

    Parameters
    ----------
    found : Survival
        Result of `manyview.outcomes.survival`.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    colors : dict of cluster → color, or sequence, optional
    labels : dict of cluster → text, optional
    band : bool, optional
        Draw the confidence bands; by default up to four clusters, beyond which they hide the curves.
    at_risk : bool, default=True
        Write how many members are still observed below the axis.
    time_label : str, default="time"

    Returns
    -------
    matplotlib Axes
    """
    ax = axes(ax)
    color = colors_of(found.clusters, colors)
    band = len(found.curves) <= MOST_BANDS if band is None else band
    apart = np.flatnonzero(found.table["q_value_against_others"] <= 0.05)
    for k, curve in enumerate(found.curves):
        shade, corners = color[curve.cluster], curve.steps()
        text = f"{text_of(curve.cluster, labels)} ({curve.n_events} of {curve.n})"
        line: dict[str, Any] = {"linewidth": 1.8}
        if len(found.curves) > MOST_BANDS:
            line = {"linewidth": 2.6 if k in apart else 1.3, "linestyle": DASHES[k % len(DASHES)]}
        ax.plot(corners["time"], corners["survival"], color=shade, label=short(text), **line)
        ax.plot(*curve.censor_marks(), "|", color=shade, markersize=6)
        if band:
            drawn = ~np.isnan(corners["lower"])
            time, low, high = (corners[name][drawn] for name in ("time", "lower", "upper"))
            ax.fill_between(time, low, high, color=shade, alpha=0.13, linewidth=0)
    ends = [(curve.last, float(curve.survival[-1]), curve.cluster) for curve in found.curves]
    for x, height, cluster in _spread(ends):
        ax.annotate(str(cluster), (x, height), (4, 0), textcoords="offset points", va="center",
                    weight="bold", color=color[cluster], parse_math=False)  # fmt: skip
    ax.set(ylim=(0, 1.03), xlabel=time_label, ylabel="survival")
    ax.set_xlim(left=0)
    ax.yaxis.set_major_formatter("{x:.0%}")
    if not at_risk:  # else the lines below the axis name the curves
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
        events = {curve.cluster: f"{curve.n_events} of {curve.n}" for curve in found.curves}
        _write_at_risk(ax, times, counts, events, color, labels)
    return ax


def _spread(ends: Sequence[tuple[float, float, Any]]) -> list[tuple[float, float, Any]]:
    """Ends of curves (time, height, cluster), pushed up where the number of another would be hidden."""
    reach, placed = 0.07 * max(time for time, *_ in ends), list[tuple[float, float, Any]]()
    for time, height, cluster in sorted(ends, key=lambda end: end[1]):
        near = [other[1] for other in placed if abs(other[0] - time) < reach]
        placed.append((time, max([height, 0.03, *(y + 0.055 for y in near)]), cluster))
    return placed


def _write_at_risk(
    ax: Any,
    times: Any,
    counts: Mapping[Any, Any],
    events: Mapping[Any, str],
    color: Mapping[Any, Any],
    labels: Any,
) -> None:
    """A line for each cluster under the times of the axis: its name, numbers at risk, events."""
    offset = {"textcoords": "offset points", "fontsize": "small"}
    for k, (cluster, numbers) in enumerate(counts.items()):
        low = -ABOVE - LINE * (k + 1)
        for time, number in zip(times, numbers, strict=True):
            ax.annotate(str(number), (time, 0), (0, low), xycoords=("data", "axes fraction"),
                        ha="center", **offset)  # fmt: skip
        name = short(text_of(cluster, labels), 16)
        ax.annotate(name, (0, 0), (-14, low), xycoords="axes fraction", ha="right", weight="bold",
                    color=color[cluster], parse_math=False, **offset)  # fmt: skip
        ax.annotate(events[cluster], (1, 0), (14, low), xycoords="axes fraction", **offset)
    ax.annotate("events", (1, 0), (14, -ABOVE), xycoords="axes fraction", **offset)
    ax.annotate("at risk", (0, 0), (-14, -ABOVE), xycoords="axes fraction", ha="right", **offset)


def hazards(
    found: Any, ax: Any = None, *, colors: Any = None, labels: Mapping[Any, str] | None = None
) -> Any:
    """Plot the hazard ratio of every cluster against all others, with its interval (forest plot).

    Parameters
    ----------
    found : DataFrame, or list of dicts
        Rows with cluster, n, events, hazard_ratio, lower and upper.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    colors : dict of cluster → color, or sequence, optional
    labels : dict of cluster → text, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = axes(ax)
    rows = found if isinstance(found, list) else found.to_dict("records")
    color = colors_of([row["cluster"] for row in rows], colors)
    aside = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center",
             "fontsize": "small"}  # fmt: skip
    for i, row in enumerate(rows):
        text = "not estimated"
        if _known(row["hazard_ratio"]):
            ends = [row["hazard_ratio"], row["lower"], row["upper"]]
            ax.plot(ends[1:], [i, i], color=color[row["cluster"]], linewidth=2)
            ax.plot(ends[0], i, "s", color=color[row["cluster"]], markersize=7)
            text = "{:.2f} ({:.2f}–{:.2f})".format(*ends)
        ax.annotate(text, (1, i), (8, 0), **aside)
        ax.annotate(f"{row['events']} of {row['n']}", (1, i), (104, 0), **aside)
    for x, text in ((8, "ratio (95% interval)"), (104, "events")):
        ax.annotate(text, (1, -0.75), (x, 0), **aside, weight="bold")
    ax.axvline(1, color="#888888", linewidth=1, zorder=0)
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20) if low <= t <= high] or [1]
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.set_xticks([], minor=True)
    name_ticks(ax, "y", range(len(rows)), [text_of(row["cluster"], labels) for row in rows])
    ax.set(ylim=(len(rows) - 0.4, -0.6), xlabel="hazard ratio, cluster vs. the rest")
    plain(ax, "top", "right", "left")
    ax.tick_params(axis="y", length=0)
    return ax


def crosstab(
    found: Any,
    ax: Any = None,
    *,
    cmap: str = "cividis",
    labels: Mapping[Any, str] | None = None,
) -> Any:
    """Plot known classes by cluster: numbers of samples, colored by their share of the cluster.

    Parameters
    ----------
    found : Crosstab
        Result of `manyview.outcomes.crosstab`.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    cmap : str, default="cividis"
        A matplotlib color map.
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
    """Plot clinical columns by cluster: more than expected in red, less in blue.

    A cell holds the share of the cluster (categories and ordered levels) or its median (numbers);
    the color says how far that lies from what all samples have, in deviations (standardized
    residuals; beyond ±3 is marked).

    Parameters
    ----------
    found : Enrichment
        Result of `manyview.outcomes.enrichment`.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    max_q : float, optional
        Only columns with a q-value of at most this.
    cmap : str, default="RdBu_r"
        A matplotlib color map.
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
    """A line for every level, or column of numbers, of rows as `Enrichment.cells` has them.

    The surest columns come first; rare levels that stand out nowhere are one line.
    """
    lines = enrichment_lines(cells, q)
    if not lines:
        ax.text(0.5, 0.5, "no clinical column to show", ha="center", transform=ax.transAxes)
        ax.set_axis_off()
        return
    sure = sum((q[line[0]] or 1) <= 0.05 for line in lines)
    shown = lines[: max(MOST_LINES, sure)]
    residuals = np.array([[row["residual"] for row in rows] for *_, rows in shown], dtype=float)
    image = ax.imshow(residuals, cmap=cmap, vmin=-FULL, vmax=FULL, aspect="auto")
    names, last = [], None
    for i, (column, level, rows) in enumerate(shown):
        name = text_of(column, labels)
        names.append(name if not level else f"{name}: {level}" if column != last else level)
        if column != last and _known(q[column]):
            ax.annotate(f"q {p_text(q[column])}", (1, i), (6, 0), xycoords=("axes fraction", "data"),
                        textcoords="offset points", va="center", fontsize="small")  # fmt: skip
        if i and column != last:
            ax.axhline(i - 0.5, color="white", linewidth=3)
        last = column
        for k, row in enumerate(rows):
            share, median = row["share"], row["median"]
            text = f"{share:.0%}" if _known(share) else f"{median:.3g}" if _known(median) else ""
            strong = abs(residuals[i, k]) > 0.6 * FULL
            ax.text(k, i, text, ha="center", va="center", fontsize="small",
                    color="white" if strong else "black")  # fmt: skip
    name_ticks(ax, "y", range(len(shown)), names)
    ax.figure.colorbar(image, ax=ax, pad=0.14, shrink=min(1, 8 / len(shown)),
                       label="deviations from expected")  # fmt: skip
    name_ticks(
        ax, "x", range(len(shown[0][2])), [text_of(r["cluster"], labels) for r in shown[0][2]]
    )
    ax.tick_params(length=0)
    plain(ax, "top", "right", "bottom", "left")
    ax.set_xlabel("cluster")
    left_out = len(lines) - len(shown)
    if left_out:
        title(ax, f"{left_out} more lines, none with q ≤ 0.05")


def enrichment_lines(
    cells: Sequence[Mapping[str, Any]], q: Mapping[str, float | None]
) -> list[tuple[str, str, list[Mapping[str, Any]]]]:
    """Column, level and cells of every line: the surest columns first, rare levels folded."""
    columns: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for row in cells:
        level = "" if row["level"] is None or row["level"] != row["level"] else str(row["level"])
        columns.setdefault(row["column"], {}).setdefault(level, []).append(row)
    order = sorted(columns, key=lambda name: (not _known(q[name]), q[name] or 0))
    found = []
    for column in order:
        levels = columns[column]
        total = sum(row["count"] for rows in levels.values() for row in rows)
        rare = [
            level for level, rows in levels.items()
            if sum(row["count"] for row in rows) < max(5, RARE * total)
            and max(abs(row["residual"] or 0) for row in rows) < STRIKING
        ]  # fmt: skip
        rare = rare if len(rare) > 1 and len(levels) > 2 else []
        found += [(column, level, rows) for level, rows in levels.items() if level not in rare]
        if rare:
            found.append((column, f"{len(rare)} rare levels", _folded(levels, rare)))
    return found


def _folded(levels: Mapping[str, Sequence[Mapping[str, Any]]], rare: Sequence[str]) -> list[Any]:
    """The rare levels of a column as one."""
    sizes = np.sum([[row["count"] for row in rows] for rows in levels.values()], axis=0)
    counts = np.sum([[row["count"] for row in levels[level]] for level in rare], axis=0)
    share, total = counts.sum() / max(sizes.sum(), 1), max(sizes.sum(), 1)
    spread = np.sqrt(sizes * share * (1 - sizes / total) * (1 - share))
    both = np.divide(counts - sizes * share, spread, out=np.zeros(len(sizes)), where=spread > 0)
    return [
        {**row, "count": int(n), "share": n / max(size, 1), "residual": float(r)}
        for row, n, size, r in zip(levels[rare[0]], counts, sizes, both, strict=True)
    ]


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
    """Plot gene sets by cluster: red if the set is higher in the cluster, blue if it is lower.

    The area of a dot grows with −log10 of q, and a ring marks q ≤ .05.

    Parameters
    ----------
    found : GeneSets
        Result of `manyview.outcomes.gene_sets`.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    n : int, default=4
        Leading sets of every cluster and view; each is shown for all clusters.
    max_q : float, optional
        Only sets with a q-value of at most this in some cluster.
    cmap : str, default="RdBu_r"
        A matplotlib color map.
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
    """Plot the agreement of the clusters with those found without each view (adjusted Rand index).

    Parameters
    ----------
    found : Markers
        Result of ``manyview.outcomes.markers(model, views, leave_view_out=True)``.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    color : matplotlib color, optional
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
    agreement = [view.agreement for view in found.views]
    text = "Agreement with clusters found without the view"
    draw_bars(ax, names, {"": agreement}, text, [color or PALETTE[2]])
    ax.set_xlim(min(0, *agreement), 1.15)
    ax.set_xlabel("adjusted Rand index")
    plain(ax)
    return ax
