"""The heat map of clusters as oncologists draw it: a block for each view, bars above, keys next to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from manyview._labels import as_list
from manyview._types import Array, Clustering
from manyview.views.views import as_views

from ._draw import (
    UNKNOWN,
    axes,
    boundaries,
    colors_of,
    is_numeric,
    levels_of,
    pyplot,
    short,
    text_of,
)

#: What the values of a block are: 0 and 1; losses and gains from −2 to 2; other numbers.
BINARY, CALLS, NUMBERS = "binary", "calls", "numbers"
#: Standard deviations beyond which a value is drawn like this one.
LIMIT = 2.5
#: Share by which keys in one column may make the figure higher.
MORE_FOR_KEYS = 1.4
#: Samples drawn; levels with a color of their own; correlation from which features are one row.
MOST_COLUMNS, MOST_LEVELS, SAME = 2000, 7, 0.8
#: Color maps of the blocks of numbers, of the bars of numbers, and of those of ordered levels.
BLOCKS = ("RdBu_r", "PuOr_r", "PRGn_r", "BrBG_r", "PiYG_r")
SCALES = ("viridis", "YlOrBr", "YlGnBu", "PuRd", "cividis")
ORDERED = ("Greys", "Purples", "bone_r", "copper_r")
#: Colors of categories and of two levels, another row for each bar; none is near the first clusters' own.
CATEGORIES = (
    ("#393b79", "#cedb9c", "#843c39", "#9c9ede", "#8c6d31", "#637939", "#7b4173"),
    ("#8dd3c7", "#bebada", "#fb8072", "#b3de69", "#fdb462", "#fccde5", "#d9b38c"),
    ("#b3cde3", "#fbb4ae", "#ccebc5", "#decbe4", "#fed9a6", "#ffffcc", "#e5d8bd"),
)
PAIRS = (
    ("#e3e3e3", "#333333"),
    ("#d7ccc8", "#6d4c41"),
    ("#d1c4e9", "#4527a0"),
    ("#cfd8dc", "#455a64"),
)
LOSS_TO_GAIN = ("#01665e", "#80cdc1", "#f3f3f1", "#d8b365", "#8c510a")
CALL_NAMES = ("deep loss", "loss", "neutral", "gain", "amplification")
ALTERED, PLAIN, MISSING = "#2d3a4a", "#eef0f2", "#c4c9cf"
#: Inches of the names of features, of the names of views, and of a column of keys.
LEFT, SIDE, KEYS = 1.45, 0.28, 1.5


class Block(NamedTuple):
    """The rows of one view: values are features × samples."""

    view: str
    kind: str
    features: Sequence[str]
    values: Array


class Bar(NamedTuple):
    """A line above the blocks: a value for each sample, levels in order for categories."""

    name: str
    values: Sequence[Any]
    levels: Sequence[Any] | None = None
    ordered: bool = False


def kind_of(values: Array) -> str:
    """How values are drawn and worded."""
    seen = np.unique(values[~np.isnan(values)])
    if set(seen) <= {0.0, 1.0}:
        return BINARY
    return CALLS if seen.min() < 0 and set(seen) <= {-2.0, -1.0, 0.0, 1.0, 2.0} else NUMBERS


def heatmap(
    labels: Any,
    views: Any,
    found: Any,
    ax: Any = None,
    *,
    n: int = 3,
    annotations: Mapping[str, Sequence[Any]] | None = None,
    colors: Any = None,
    names: Mapping[Any, str] | None = None,
) -> Any:
    """Plot the leading features of every cluster: a block of rows for each view, samples by cluster.

    Numbers are in standard deviations of their feature, cut at ±2.5; zeros and ones are drawn as an
    oncoprint, losses and gains (−2 to 2) in steps. A feature that correlates by 0.8 or more with one
    above it in its view is left out.

    Parameters
    ----------
    labels : fitted model, or array-like
        One label per sample; −1 is left out.
    views : as `as_views` takes them
        In the order of the labels.
    found : Markers
        Result of `manyview.outcomes.markers`.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one. It should be about 9 inches wide.
    n : int, default=3
        Features per cluster and view.
    annotations : dict of name → values, optional
        A value per sample: numbers are drawn on a scale, others in colors.
    colors : dict of cluster → color, or sequence, optional
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
    blocks = []
    leading = found.top(10 * n, max_q=None)
    for view in found.views:
        X = given.matrices[given.names.index(view.view)]
        place = {feature: j for j, feature in enumerate(view.features)}
        features: list[str] = []
        drawn: list[Array] = []
        for _, own in leading[leading["view"] == view.view].groupby("cluster", sort=True):
            fresh = 0
            for feature in own["feature"]:
                j = place[feature]
                x = np.ravel(X[:, [j]].toarray() if sp.issparse(X) else X[:, j]).astype(float)
                z = (x - np.nanmean(x)) / (np.nanstd(x) or 1)
                if fresh == n or any(abs(np.nanmean(z * other)) >= SAME for other in drawn):
                    continue
                fresh += 1
                features.append(feature)
                drawn.append(z)
        values = X[:, [place[f] for f in features]]
        values = (values.toarray() if sp.issparse(values) else np.asarray(values)).astype(float)
        kind = kind_of(values) if features else NUMBERS
        shown = np.array(drawn).reshape(len(features), -1) if kind == NUMBERS else values.T
        blocks.append(Block(view.view, kind, features, shown[:, rows]))
    columns = {name: as_list(column) for name, column in (annotations or {}).items()}
    bars = [Bar(name, [column[i] for i in rows]) for name, column in columns.items()]
    draw_heatmap(ax, blocks, codes[rows], bars, colors, names)
    return ax


def height_of(blocks: Sequence[Block], bars: Sequence[Bar]) -> float:
    """Lines of the figure: of its rows, or of the keys if these need a little more."""
    rows = sum(len(block.features) + 0.5 for block in blocks if len(block.features))
    lines = 2.4 + 1.05 * len(bars) + rows
    keys = [_key_of(bar, k) for k, bar in enumerate(bars)] + _keys_of_blocks(blocks)
    needs = sum(len(entries) + 1.5 for _, entries in keys)
    return needs if lines < needs <= MORE_FOR_KEYS * lines else lines


def draw_heatmap(
    ax: Any,
    blocks: Sequence[Block],
    codes: Array,
    bars: Sequence[Bar],
    colors: Any = None,
    names: Mapping[Any, str] | None = None,
    sizes: Mapping[Any, int] | None = None,
) -> None:
    """Blocks of samples sorted by cluster, and bars above; ``sizes`` where not all are drawn.

    Coordinates of ``ax`` are inches from the left, lines from the top, so that
    names, rows and keys cannot overlap.
    """
    ax.set_axis_off()
    blocks = [block for block in blocks if len(block.features)]
    if not blocks:
        ax.text(0.5, 0.5, "no feature to show", ha="center", transform=ax.transAxes)
        return
    box = ax.get_window_extent()
    wide, high = (size / ax.figure.dpi for size in (box.width, box.height))
    keys = [_key_of(bar, k) for k, bar in enumerate(bars)]
    keys += _keys_of_blocks(blocks)
    columns, lines = _flowed(keys, height_of(blocks, bars))
    scale = min(1.0, wide / 7.5)
    size = min(8.0, 0.68 * 72 * high / lines)
    key_width = KEYS * scale
    texts = [text_of(f, names) for block in blocks for f in block.features] + [b.name for b in bars]
    longest = max(7, *(min(26, len(text)) for text in texts))
    left = min(LEFT * scale, 0.12 + longest * size * 0.62 / 72)
    right = wide - SIDE * scale - key_width * len(columns)
    write = _Writer(ax, lines, size)

    starts, _, clusters = boundaries(codes)
    ends = np.r_[starts[1:], len(codes)]
    edges = left + (right - left) * np.r_[starts, len(codes)] / len(codes)
    color = colors_of(clusters.tolist(), colors)
    for k, start, end in zip(clusters.tolist(), starts, ends, strict=True):
        middle = left + (right - left) * (start + end) / 2 / len(codes)
        room = (right - left) * (end - start) / len(codes)
        size_of = (sizes or {}).get(k, end - start)
        headings = (f"{text_of(k, names)} ({size_of})", text_of(k, names), str(k))
        fits = [text for text in headings if (len(text) + 1) * size * 0.6 / 72 < room]
        if fits:
            write(middle, 0.5, short(fits[0], 40), ha="center", weight="bold")
    write(left - 0.06, 1.5, "cluster", ha="right")
    shades = np.array([_rgb(color[k]) for k in codes.tolist()])[None]
    write.image(shades, left, right, 1.05, 1.95)
    line = 2.2
    for k, bar in enumerate(bars):
        write(left - 0.06, line + 0.42, short(bar.name, 24), ha="right")
        write.image(_shades(bar, k)[None], left, right, line, line + 0.85)
        line += 1.05
    numbers = 0
    for block in blocks:
        line += 0.3
        m = len(block.features)
        how, numbers = _block_colors(block.kind, numbers)
        write.image(block.values, left, right, line, line + m, **how)
        for i, feature in enumerate(block.features):
            write(left - 0.06, line + i + 0.5, short(text_of(feature, names), 26), ha="right")
        if block.kind != NUMBERS:
            write.rules(left, right, line + np.arange(1, m))
        longest = max(8, int(2.1 * m))
        write(
            right + 0.16 * scale,
            line + m / 2,
            short(block.view, longest),
            rotation=270,
            ha="center",
        )
        line += m + 0.2
    ax.vlines(edges[1:-1], 0, lines - 1.05, color="white", linewidth=1.6, zorder=3)
    for c, column in enumerate(columns):
        write.keys(column, right + SIDE * scale + 0.1 + c * key_width, key_width)
    ax.set(xlim=(0, wide), ylim=(0, lines))


def _block_colors(kind: str, numbers: int) -> tuple[dict[str, Any], int]:
    """How a block is shaded, and how many blocks of numbers there are so far."""
    from matplotlib.colors import ListedColormap

    if kind == NUMBERS:
        shades = pyplot().get_cmap(BLOCKS[numbers % len(BLOCKS)]).with_extremes(bad=MISSING)
        return {"cmap": shades, "vmin": -LIMIT, "vmax": LIMIT}, numbers + 1
    steps = ListedColormap(LOSS_TO_GAIN if kind == CALLS else (PLAIN, ALTERED))
    shades = steps.with_extremes(bad=MISSING)
    low, high = (-2.5, 2.5) if kind == CALLS else (0, 1)
    return {"cmap": shades, "vmin": low, "vmax": high}, numbers


class _Writer:
    """Texts, images and keys by inches from the left and lines from the top."""

    def __init__(self, ax: Any, lines: float, size: float):
        self.ax, self.lines, self.size = ax, lines, size

    def __call__(self, x: float, line: float, text: str, **how: Any) -> None:
        how = {"fontsize": self.size, "va": "center", "parse_math": False} | how
        self.ax.text(x, self.lines - line, text, **how)

    def image(
        self, values: Array, left: float, right: float, top: float, low: float, **how: Any
    ) -> None:
        extent = (left, right, self.lines - low, self.lines - top)
        self.ax.imshow(values, extent=extent, aspect="auto", interpolation="nearest", **how)

    def rules(self, left: float, right: float, lines: Array) -> None:
        self.ax.hlines(self.lines - lines, left, right, color="white", linewidth=1, zorder=2)

    def keys(self, column: list[tuple[str, list[tuple[Any, str]]]], x: float, width: float) -> None:
        """Titles, and a patch or a scale with a text below each other."""
        from matplotlib.patches import Rectangle

        line = 0.0
        most = max(6, int((width - 0.3) * 72 / self.size / 0.55))
        for name, entries in column:
            self(x, line + 0.5, short(name, most), weight="bold")
            line += 1
            for shade, text in entries:
                if isinstance(shade, str) and not shade.startswith("#"):
                    ramp = np.linspace(0, 1, 64)[None]
                    self.image(ramp, x, x + 0.42, line + 0.15, line + 0.85, cmap=shade)
                    self(x + 0.48, line + 0.5, short(text, most))
                else:
                    corner = (x, self.lines - line - 0.85)
                    self.ax.add_patch(Rectangle(corner, 0.14, 0.7, color=shade, linewidth=0))
                    self(x + 0.2, line + 0.5, short(text, most))
                line += 1
            line += 0.5


def _flowed(
    keys: list[tuple[str, list[tuple[Any, str]]]], lines: float
) -> tuple[list[list[tuple[str, list[tuple[Any, str]]]]], float]:
    """Keys in columns of limited length, and the lines that the longest needs."""
    columns: list[list[tuple[str, list[tuple[Any, str]]]]] = [[]]
    used, longest = 0.0, lines
    for key in keys:
        needs = len(key[1]) + 1.5
        if columns[-1] and used + needs > lines and len(columns) < 2:
            columns.append([])
            used = 0.0
        columns[-1].append(key)
        used += needs
        longest = max(longest, used)
    return columns, longest


def _keys_of_blocks(blocks: Sequence[Block]) -> list[tuple[str, list[tuple[Any, str]]]]:
    found: list[tuple[str, list[tuple[Any, str]]]] = []
    numbers = 0
    for block in blocks:
        if block.kind == NUMBERS:
            scale = BLOCKS[numbers % len(BLOCKS)]
            found.append((block.view, [(scale, f"−{LIMIT:g} to {LIMIT:g} sd")]))
            numbers += 1
        elif block.kind == CALLS:
            here = set(np.unique(block.values[~np.isnan(block.values)]))
            entries = [(LOSS_TO_GAIN[k], CALL_NAMES[k]) for k in (4, 3, 2, 1, 0) if k - 2 in here]
            found.append((block.view, entries))
        else:
            found.append((block.view, [(ALTERED, "altered (1)"), (PLAIN, "not (0)")]))
    if any(np.isnan(block.values).any() for block in blocks):
        found.append(("no data", [(MISSING, "missing")]))
    return found


def _levels(bar: Bar) -> list[Any]:
    """Levels with a color of their own: all, or the commonest in order."""
    levels = levels_of(bar.values) if bar.levels is None else list(bar.levels)
    values = list(bar.values)
    levels = [level for level in levels if level in values]
    if len(levels) > MOST_LEVELS:
        common = sorted(levels, key=lambda level: -values.count(level))[: MOST_LEVELS - 1]
        levels = [level for level in levels if level in common]
    return levels


def _is_scale(bar: Bar) -> bool:
    return bar.levels is None and is_numeric(bar.values)


def _colors_of(bar: Bar, k: int) -> dict[Any, str]:
    """A color for each level of the k-th bar."""
    from matplotlib.colors import to_hex

    levels = _levels(bar)
    if bar.ordered and len(levels) > 2:
        shades = pyplot().get_cmap(ORDERED[k % len(ORDERED)])(np.linspace(0.2, 0.95, len(levels)))
        return {level: to_hex(shade) for level, shade in zip(levels, shades, strict=True)}
    rows = PAIRS if len(levels) <= 2 else CATEGORIES
    row = rows[k % len(rows)]
    return {level: row[j % len(row)] for j, level in enumerate(levels)}


def _key_of(bar: Bar, k: int) -> tuple[str, list[tuple[Any, str]]]:
    if _is_scale(bar):
        there = [float(v) for v in bar.values if v is not None and v == v]
        return bar.name, [(SCALES[k % len(SCALES)], f"{min(there):.3g} to {max(there):.3g}")]
    color = _colors_of(bar, k)
    entries: list[tuple[Any, str]] = [(shade, str(level)) for level, shade in color.items()]
    known = [value for value in bar.values if value is not None and value == value]
    others = len(set(known) - set(color))
    if others:
        entries.append((UNKNOWN, f"{others} more levels"))
    elif len(known) < len(bar.values):
        entries.append((UNKNOWN, "not known"))
    return bar.name, entries


def _shades(bar: Bar, k: int) -> Array:
    """A color for each sample."""
    if _is_scale(bar):
        x = np.array([np.nan if v is None else v for v in bar.values], dtype=float)
        span = np.nanmax(x) - np.nanmin(x)
        found = pyplot().get_cmap(SCALES[k % len(SCALES)])((x - np.nanmin(x)) / (span or 1))[:, :3]
        found[np.isnan(x)] = _rgb(UNKNOWN)
        return found
    color = _colors_of(bar, k)
    return np.array([_rgb(color.get(value, UNKNOWN)) for value in bar.values])


def _rgb(color: Any) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(color)
