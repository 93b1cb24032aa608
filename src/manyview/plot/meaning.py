"""Figures of what clusters mean: survival, clinical columns, known classes, views left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from manyview._colors import PALETTE

from ._draw import axes, colours_of, name_ticks, p_text, plain, short, text_of, title
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
    curves = [(c.cluster, c.steps(), c.censor_marks(), c.n_events, c.n) for c in found.curves]
    draw_survival(ax, curves, colour, labels, band)
    ax.set_xlabel(time_label)
    name_test(ax, found.p_value, found.test.permutations)
    if at_risk:
        times = [t for t in ax.get_xticks() if 0 <= t <= ax.get_xlim()[1]]
        table = found.at_risk(times)
        numbers = [name for name in table.columns if name != "cluster"]
        counts = {
            cluster: [str(table[heading][k]) for heading in numbers]
            for k, cluster in enumerate(found.clusters)
        }
        draw_at_risk(ax, times, counts, colour, labels)
    return ax


def draw_survival(
    ax: Any, curves: Any, colour: Mapping[Any, Any], labels: Any = None, band: bool = True
) -> None:
    """Curves, each a cluster, its corners, its censored members, its events and its size."""
    for cluster, steps, marks, events, n in curves:
        shade = colour[cluster]
        text = f"{text_of(cluster, labels)} ({events} of {n})"
        ax.plot(steps["time"], steps["survival"], color=shade, label=short(text), linewidth=1.8)
        ax.plot(*marks, "|", color=shade, markersize=6)
        if band:
            drawn = ~np.isnan(steps["lower"])
            ax.fill_between(
                steps["time"][drawn],
                steps["lower"][drawn],
                steps["upper"][drawn],
                color=shade,
                alpha=0.13,
                linewidth=0,
            )
    ax.set(ylim=(0, 1.03), ylabel="survival")
    ax.set_xlim(left=0)
    ax.yaxis.set_major_formatter("{x:.0%}")
    box = ax.legend(title="cluster (events)", frameon=False, fontsize="small")
    for text in box.get_texts():
        text.set_parse_math(False)
    plain(ax)


def name_test(ax: Any, p: float | None, permutations: int) -> None:
    """The p-value above the axes, where no curve passes; the middle stays free for the user's title."""
    text = p_text(p, permutations)
    ax.set_title(text if text[0] == "n" else f"log-rank p {text}", loc="left", fontsize="medium")


def draw_at_risk(
    ax: Any,
    times: Any,
    counts: Mapping[Any, list[str]],
    colour: Mapping[Any, Any],
    labels: Any = None,
) -> None:
    """A line of numbers per cluster, under the times of the axis."""
    for k, (cluster, numbers) in enumerate(counts.items()):
        low = -ABOVE - LINE * (k + 1)
        for time, number in zip(times, numbers, strict=True):
            ax.annotate(
                number,
                (time, 0),
                (0, low),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="center",
                fontsize="small",
            )
        ax.annotate(
            short(text_of(cluster, labels), 16),
            (0, 0),
            (-14, low),
            xycoords="axes fraction",
            textcoords="offset points",
            ha="right",
            fontsize="small",
            color=colour[cluster],
            weight="bold",
            parse_math=False,
        )
    how = {"xycoords": "axes fraction", "textcoords": "offset points", "fontsize": "small"}
    ax.annotate("at risk", (0, 0), (-14, -ABOVE), ha="right", **how)


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
    draw_crosstab(
        ax,
        found.counts,
        [text_of(k, labels) for k in found.clusters],
        [text_of(c, labels) for c in found.classes],
        cmap,
    )
    title(ax, f"ARI {found.ari:.2f}, NMI {found.nmi:.2f}")
    return ax


def draw_crosstab(
    ax: Any, counts: Any, clusters: list[Any], classes: list[Any], cmap: str = "cividis"
) -> None:
    """Numbers of observations, coloured by their share of the row."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = ax.imshow(shares, cmap=cmap, vmin=0, vmax=1, aspect="auto")
    if counts.size <= 400:
        for (k, j), n in np.ndenumerate(counts):
            dark = image.cmap(shares[k, j])[:3]
            ax.text(j, k, str(n), ha="center", va="center",
                    color="black" if sum(dark) > 1.5 else "white")  # fmt: skip
    how = {"rotation": 45, "ha": "right"} if len(classes) > 5 else {}
    name_ticks(ax, "x", range(len(classes)), classes, **how)
    name_ticks(ax, "y", range(len(clusters)), clusters)
    ax.set(xlabel="known class", ylabel="cluster")
    ax.figure.colorbar(image, ax=ax, pad=0.02, format="{x:.0%}", label="share of the cluster")


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
    names: list[str] = []
    values: list[Any] = []
    texts: list[list[str]] = []
    for column, q in zip(found.columns, found.q_value.tolist(), strict=True):
        if column.residual is None or (max_q is not None and not q <= max_q):
            continue
        name = text_of(column.name, labels)
        told = f"{name} (q = {q:.2g})" if q == q else name
        if column.counts is None:
            names.append(told)
            values.append(column.residual)
            texts.append([f"{middle:.3g}" for middle in column.quartiles[:-1, 1]])
            continue
        shares = column.counts / np.maximum(column.counts.sum(axis=1, keepdims=True), 1)
        for j, level in enumerate(column.levels):
            names.append(f"{told}: {level}" if j == 0 else f"{level}")
            values.append(column.residual[:, j])
            texts.append([f"{share:.0%}" for share in shares[:, j]])
    clusters = [text_of(k, labels) for k in found.clusters]
    draw_enrichment(ax, names, values, texts, clusters, cmap)
    return ax


def draw_enrichment(
    ax: Any,
    names: list[str],
    values: list[Any],
    texts: list[list[str]],
    clusters: list[Any],
    cmap: str = "RdBu_r",
) -> None:
    """A line for every level or column: a text per cluster, coloured by its residual."""
    if not names:
        ax.text(0.5, 0.5, "no clinical column to show", ha="center", transform=ax.transAxes)
        ax.set_axis_off()
        return
    left_out = len(names) - MOST_LINES
    names, cells = names[:MOST_LINES], np.array(values[:MOST_LINES], dtype=float)
    image = ax.imshow(cells, cmap=cmap, vmin=-FULL, vmax=FULL, aspect="auto")
    for i in range(len(names)):
        for k, text in enumerate(texts[i]):
            strong = abs(cells[i, k]) > 0.6 * FULL
            ax.text(k, i, text, ha="center", va="center", fontsize="small",
                    color="white" if strong else "black")  # fmt: skip
    name_ticks(ax, "y", range(len(names)), names)
    ax.figure.colorbar(image, ax=ax, pad=0.02, label="deviations from expected")
    name_ticks(ax, "x", range(len(clusters)), clusters)
    ax.set_xlabel("cluster")
    title(ax, "Clinical columns" + (f" ({left_out} lines more)" if left_out > 0 else ""))


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
    values = np.array([view.agreement for view in found.views])
    draw_bars(
        ax, names, values, "Agreement with clusters found without the view", color or PALETTE[2]
    )
    ax.set_xlim(min(0, float(values.min())), 1.15)
    ax.set_xlabel("adjusted Rand index")
    plain(ax)
    return ax
