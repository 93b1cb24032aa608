"""Heat maps: leading features by observation, who stays with whom, how much views agree."""

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
    UNKNOWN,
    Clustering,
    axes,
    boundaries,
    colours_of,
    is_numeric,
    levels_of,
    name_ticks,
    short,
    text_of,
    title,
    write_cells,
)

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


def consensus(
    found: Any,
    ax: Any = None,
    *,
    most: int = 500,
    cmap: str = "cividis",
    labels: Mapping[Any, str] | None = None,
) -> Any:
    """How often two observations were in one cluster, of the refits that saw both.

    Parameters
    ----------
    found : Stability
        What `manyview.reliability` gave.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    most : int, default=500
        Observations drawn, evenly taken from those sorted by cluster.
    cmap : str, default="cividis"
        A matplotlib colour map.
    labels : dict of cluster → text, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = axes(ax)
    rows = np.flatnonzero(found.labels >= 0)
    rows = rows[np.lexsort((-found.observations[rows], found.labels[rows]))]
    if len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).astype(int)]
    draw_consensus(ax, found.together(rows), found.labels[rows], cmap, labels)
    title(ax, f"Together over {found.n_runs} refits")
    return ax


def draw_consensus(
    ax: Any, shares: Array, codes: Array, cmap: str = "cividis", labels: Any = None
) -> None:
    """A symmetric matrix of shares, with frames around the clusters."""
    image = ax.imshow(shares, cmap=cmap, vmin=0, vmax=1, interpolation="nearest")
    starts, middles, clusters = boundaries(codes)
    for a, b in zip(starts, np.r_[starts[1:], len(codes)], strict=True):
        x, y = [a - 0.5, b - 0.5, b - 0.5, a - 0.5, a - 0.5], [a, a, b, b, a]
        ax.plot(x, np.array(y) - 0.5, color="#d55e00", linewidth=1.2)
    texts = [text_of(k, labels) for k in clusters.tolist()]
    name_ticks(ax, "x", middles, texts)
    name_ticks(ax, "y", middles, texts)
    ax.set(xlabel="cluster", ylabel="cluster")
    ax.figure.colorbar(image, ax=ax, pad=0.02, format="{x:.0%}", label="in one cluster")


def agreement(
    model: Any, ax: Any = None, *, cmap: str = "cividis", labels: Mapping[Any, str] | None = None
) -> Any:
    """How much every two views agree; on the diagonal, random halves of the same view.

    Parameters
    ----------
    model : fitted RobustWMNMF
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    cmap : str, default="cividis"
        A matplotlib colour map.
    labels : dict of view → text, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = axes(ax)
    matrix = np.array(model.agreement_, dtype=float)
    np.fill_diagonal(matrix, model.split_half_)
    draw_agreement(ax, matrix, [text_of(str(v), labels) for v in model.view_names_in_], cmap)
    return ax


def draw_agreement(
    ax: Any,
    matrix: Array,
    names: Sequence[str],
    cmap: str = "cividis",
    text: str = "Agreement between views",
) -> None:
    """A square of numbers from 0 to 1."""
    image = ax.imshow(matrix, cmap=cmap, vmin=0, vmax=1)
    if len(names) <= 12:
        write_cells(ax, image, matrix, np.vectorize("{:.2f}".format)(matrix))
    name_ticks(ax, "x", range(len(names)), names, rotation=45, ha="right")
    name_ticks(ax, "y", range(len(names)), names)
    title(ax, text)
    ax.figure.colorbar(image, ax=ax, pad=0.02)
