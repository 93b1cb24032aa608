"""Figures of a fitted model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from manyview._labels import as_list
from manyview._types import Array

from ._draw import (
    MOST_LEVELS,
    PALETTE,
    UNKNOWN,
    axes,
    boundaries,
    colors_of,
    is_numeric,
    levels_of,
    name_ticks,
    plain,
    pyplot,
    short,
    text_of,
    title,
    write_cells,
)

#: Samples drawn in an embedding.
MOST_DRAWN = 20_000
#: Images of a cluster.
IMAGES = 16
#: Rows that t-SNE lays out, of more a random part; its steps, and how roughly far rows are summed up.
LANDMARKS, STEPS, ANGLE = 2000, 300, 0.8
#: Laid out rows between which another one is placed.
NEAREST = 3


def embedding(
    model: Any,
    ax: Any = None,
    *,
    color: Sequence[Any] | None = None,
    colors: Any = None,
    labels: Mapping[Any, str] | None = None,
    name: str = "",
) -> Any:
    """Plot the consensus in two dimensions, colored by cluster or another variable.

    Rows of the fused embedding are drawn in two dimensions by t-SNE. Samples without a cluster (label −1)
    are left out. If there are more than 20,000 samples, a random part is drawn.

    Parameters
    ----------
    model : fitted RobustWMNMF or WMNMF
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    color : sequence, optional
        A value per sample: numbers are drawn on a scale, others as groups with a legend. By
        default the clusters.
    colors : dict or sequence, optional
        Colors of the groups, by name or in order; for numbers the name of a matplotlib color map.
    labels : dict of group → text, optional
    name : str, optional
        What ``color`` is, for the legend.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes(ax)
    rows = np.flatnonzero(model.labels_ >= 0)
    if color is not None and len(color) != len(model.labels_):
        raise ValueError(
            f"color has {len(color)} values for {len(model.labels_)} samples; give one each"
        )
    if len(rows) > MOST_DRAWN:
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_DRAWN, replace=False))
    V = coordinates(model)[rows]
    listed = None if color is None else as_list(color)
    values = None if listed is None else [listed[i] for i in rows]
    draw_points(ax, embed2d(V), model.labels_[rows], values, colors, labels, name)
    ax.set_xlabel(projection(V).split(" (")[0], fontsize="small")
    return ax


def draw_points(
    ax: Any,
    points: Array,
    clusters: Array,
    values: Sequence[Any] | None = None,
    colors: Any = None,
    labels: Mapping[Any, str] | None = None,
    name: str = "",
) -> None:
    """Points colored by cluster or by values, with the clusters' names among them."""
    size = 5 if len(points) > 300 else 20
    if values is None:
        _groups(ax, points, list(clusters), colors, labels, size, legend=None)
    elif is_numeric(values):
        numbers = np.array([np.nan if v is None else v for v in values], dtype=float)
        ax.scatter(*points[np.isnan(numbers)].T, s=size, color=UNKNOWN, linewidths=0)
        known = ~np.isnan(numbers)
        shade = colors if isinstance(colors, str) else "cividis"
        drawn = ax.scatter(*points[known].T, s=size, c=numbers[known], cmap=shade, linewidths=0)
        ax.figure.colorbar(drawn, ax=ax, pad=0.02, label=short(name))
    else:
        _groups(ax, points, list(values), colors, labels, size, legend=name)
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=3, foreground="white")]
    for k, (place, middle) in label_places(points, clusters).items():
        text = text_of(k, labels if values is None else None)
        if (place != middle).any():
            ax.plot(*zip(place, middle, strict=True), color="#555555", linewidth=0.6, zorder=3)
        ax.annotate(short(text, 24), place, fontsize=11, weight="bold", ha="center", va="center",
                    parse_math=False, color="black", path_effects=halo)  # fmt: skip
    n = len(np.unique(clusters))
    title(ax, f"{len(points)} samples, {n} cluster{'s' * (n != 1)}")
    ax.set(xticks=[], yticks=[])


def label_places(points: Array, clusters: Array) -> dict[Any, tuple[Array, Array]]:
    """Where to write the name of each cluster, near its middle but over as few dots as can be; the middle.

    Tried are the middle and places around it, further and further away, less those near other names.
    """
    span = max(float(np.ptp(points, axis=0).max()), 1e-12)
    turns = np.exp(1j * np.linspace(0, 2 * np.pi, 16, endpoint=False))
    rings = np.r_[0, np.concatenate([r * turns for r in (0.04, 0.08, 0.12, 0.16, 0.2)])] * span
    around = np.column_stack([rings.real, rings.imag])
    low, high = points.min(axis=0) - 0.03 * span, points.max(axis=0) + 0.03 * span
    box = np.array([0.03, 0.022]) * span
    found: dict[Any, tuple[Array, Array]] = {}
    for k in np.unique(clusters).tolist():
        own = points[clusters == k]
        near = ((own - np.median(own, axis=0)) ** 2).sum(axis=1).argmin()
        middle = own[near]
        places = np.clip(middle + around, low, high)
        hides = (np.abs(points[None] - places[:, None]) < box).all(axis=2).sum(axis=1).astype(float)
        for other, _ in found.values():
            hides += len(points) * (np.abs(other - places) < 2 * box).all(axis=1)
        best = int(np.lexsort((np.abs(rings), hides))[0])
        found[k] = places[best], middle
    return found


def _groups(
    ax: Any, points: Array, values: list[Any], colors: Any, labels: Any, size: int, legend: Any
) -> None:
    groups = levels_of(values)
    shown = groups if legend is None else groups[:MOST_LEVELS]
    color = colors_of(groups, colors)
    rest = np.array([v is None or v != v or v not in shown for v in values])
    if rest.any():
        ax.scatter(*points[rest].T, s=size, color=UNKNOWN, linewidths=0, label="others, not known")
    for group in shown:
        own = np.array([v == group for v in values])
        text = short(text_of(group, labels), 24)
        ax.scatter(*points[own].T, s=size, color=[color[group]], linewidths=0, label=text)
    if legend is not None:
        box = ax.legend(title=short(legend), frameon=False, fontsize="small", loc="best")
        for text in box.get_texts():
            text.set_parse_math(False)


# --- the consensus laid flat: the same rows give the same picture --------------------------------


def coordinates(model: Any) -> Array:
    """What the clusters were read from: the fused embedding if there is one, else shares of V*."""
    if hasattr(model, "embedding_"):
        return model.embedding_
    return model.consensus_ / np.maximum(model.consensus_.sum(axis=1, keepdims=True), 1e-300)


def projection(V: Array) -> str:
    """What `embed2d` makes of V, in words."""
    if _is_flat(V):
        return "principal components (the two directions of largest spread)"
    placed = f", of {LANDMARKS} samples; others lie between their nearest of these"
    return (
        f"t-SNE (perplexity {_perplexity(len(V)):.3g}, started from principal components"
        f"{placed if len(V) > LANDMARKS else ''})"
    )


def embed2d(V: Array) -> Array:
    """t-SNE of the rows of V (N×2); where there is too little for it, the two leading directions.

    Of many rows a random part is laid out, and the others are placed between their nearest of these.
    """
    V = np.asarray(V, dtype=float)
    if _is_flat(V):
        centered = V - V.mean(axis=0)
        U, size, _ = np.linalg.svd(centered, full_matrices=False)
        flat = U[:, :2] * size[:2]
        return np.pad(flat, ((0, 0), (0, 2 - flat.shape[1])))
    with threadpool_limits(1):
        if len(V) <= LANDMARKS:
            return _laid_out(V)
        chosen = np.sort(np.random.default_rng(0).choice(len(V), LANDMARKS, replace=False))
        return _placed(V, chosen, _laid_out(V[chosen]))


def _laid_out(V: Array) -> Array:
    from sklearn.manifold import TSNE

    # Few steps, not very exact ones: the picture is settled (see benchmarks/report.py), and people wait.
    return TSNE(
        perplexity=_perplexity(len(V)), init="pca", max_iter=STEPS, angle=ANGLE, random_state=0
    ).fit_transform(V)


def _placed(V: Array, chosen: Array, Z: Array) -> Array:
    """Coordinates of all rows: those of the chosen, and means of the nearest chosen for the others."""
    from sklearn.neighbors import NearestNeighbors

    index = NearestNeighbors(n_neighbors=NEAREST).fit(V[chosen])
    d, near = index.kneighbors(V)
    closeness = 1 / np.maximum(d, 1e-9 * max(float(d.max()), 1e-300))
    found = (closeness[:, :, None] * Z[near]).sum(axis=1) / closeness.sum(axis=1)[:, None]
    found[chosen] = Z
    return found


def _is_flat(V: Array) -> bool:
    """Whether there is too little for t-SNE."""
    return len(V) < 5 or V.shape[1] < 3 or bool(np.ptp(V, axis=0).max() == 0)


def _perplexity(n: int) -> float:
    return min(30, (min(n, LANDMARKS) - 1) / 3)


# --- views, samples and refits -----------------------------------------------------------------------


def view_weights(
    model: Any,
    ax: Any = None,
    *,
    color: Any = None,
    labels: Mapping[Any, str] | None = None,
) -> Any:
    """Plot the weight of each view.

    Parameters
    ----------
    model : fitted RobustWMNMF or WMNMF
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    color : matplotlib color, optional
    labels : dict of view → text, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = axes(ax)
    names = [text_of(str(name), labels) for name in model.view_names_in_]
    draw_bars(
        ax, names, {"": model.view_weights_}, "View weights", [color or PALETTE[0]], axis=False
    )
    return ax


def draw_bars(
    ax: Any,
    names: Sequence[Any],
    series: Mapping[str, Any],
    text: str,
    colors: Sequence[Any] = PALETTE,
    form: str = "{:.2f}",
    axis: bool = True,
) -> None:
    """A bar for every name and series, the value at its end."""
    height = 0.8 / len(series)
    for j, (label, values) in enumerate(series.items()):
        at = np.arange(len(values)) + (j - (len(series) - 1) / 2) * height
        bars = ax.barh(at, values, height, color=colors[j], label=label)
        ax.bar_label(bars, [form.format(value) for value in values], padding=3)
    name_ticks(ax, "y", range(len(names)), names)
    ax.invert_yaxis()
    ends = np.array([*series.values()], dtype=float)
    ax.set_xlim(1.15 * min(0, ends.min()), 1.15 * max(ends.max(), 1e-12))
    title(ax, text)
    if not axis:
        ax.set_xticks([])
        plain(ax, "top", "right", "bottom")
    if len(series) > 1:
        ax.legend(frameon=False)


def sample_weights(
    model: Any,
    kind: str = "reliance",
    ax: Any = None,
    *,
    cmap: str = "cividis",
    labels: Mapping[Any, str] | None = None,
) -> Any:
    """Plot a heat map of views by samples, sorted by cluster and within it by the strongest view.

    Parameters
    ----------
    model : fitted RobustWMNMF or WMNMF
    kind : {"reliance", "weight"}, default="reliance"
        α_s w_is, every sample adding up to 1; or w_is.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    cmap : str, default="cividis"
        A matplotlib color map.
    labels : dict of cluster or view → text, optional

    Returns
    -------
    matplotlib Axes
    """
    if kind not in ("reliance", "weight"):
        raise ValueError(f"kind must be 'reliance' or 'weight', got {kind!r}")
    ax = axes(ax)
    values = model.reliance_ if kind == "reliance" else model.sample_weights_
    views = [text_of(str(name), labels) for name in model.view_names_in_]
    draw_weights(ax, np.asarray(values), np.asarray(model.labels_), views, cmap, labels)
    title(ax, "Reliance on each view" if kind == "reliance" else "Weight in each view")
    return ax


def draw_weights(
    ax: Any,
    values: Array,
    clusters: Array,
    views: Sequence[str],
    cmap: str = "cividis",
    labels: Mapping[Any, str] | None = None,
    order: Array | None = None,
) -> None:
    """Views by samples, blank where ``values`` (samples × views) are NaN.

    ``order`` sorts the samples by cluster; by default within it by their strongest view.
    """
    filled = np.nan_to_num(values, nan=0.0)
    if order is None:
        order = np.lexsort((-filled.max(axis=1), filled.argmax(axis=1), clusters))
    # The few samples that rely on one view alone must not hide all else.
    high = float(np.quantile(filled, 0.99)) or 1
    image = ax.imshow(
        values[order].T, aspect="auto", cmap=cmap, vmin=0, vmax=high, interpolation="nearest"
    )
    name_ticks(ax, "y", range(len(views)), views)
    starts, middles, codes = boundaries(clusters[order])
    for start in starts[1:]:
        ax.axvline(start - 0.5, color="white", linewidth=1)
    name_ticks(ax, "x", middles, [text_of(k, labels) for k in codes])
    ax.set_xlabel("samples, by cluster")
    ax.figure.colorbar(image, ax=ax, pad=0.02)


def missing_views(table: Any, ax: Any = None, *, color: str = PALETTE[0]) -> Any:
    """Which views samples have: a row per combination of views, the most frequent at the top.

    Parameters
    ----------
    table : DataFrame
        Result of `manyview.datasets.missing_views`.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    color : str
        Of the views that samples have.

    Returns
    -------
    matplotlib Axes
    """
    from matplotlib.colors import ListedColormap

    ax = axes(ax)
    has = table.drop(columns=["samples", "missing"])
    colors = ListedColormap([UNKNOWN, color])
    ax.pcolormesh(has.to_numpy(float), cmap=colors, vmin=0, vmax=1, edgecolors="white", lw=2)
    ax.invert_yaxis()
    how = {"rotation": 45, "ha": "right"} if has.shape[1] > 5 else {}
    name_ticks(ax, "x", np.arange(has.shape[1]) + 0.5, list(has), **how)
    name_ticks(ax, "y", np.arange(len(has)) + 0.5, table["samples"])
    ax.set_ylabel("samples with these views")
    complete = int(table.loc[table["missing"] == 0, "samples"].sum())
    title(ax, f"{complete} of {int(table['samples'].sum())} samples have all views")
    plain(ax, "left", "bottom")
    return ax


def consensus(
    found: Any,
    ax: Any = None,
    *,
    most: int = 500,
    cmap: str = "cividis",
    labels: Mapping[Any, str] | None = None,
) -> Any:
    """Plot how often two samples were in one cluster, over the refits that saw both.

    Parameters
    ----------
    found : Stability
        Result of `manyview.stability`.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    most : int, default=500
        Samples drawn, evenly taken from those sorted by cluster.
    cmap : str, default="cividis"
        A matplotlib color map.
    labels : dict of cluster → text, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = axes(ax)
    rows = np.flatnonzero(found.labels >= 0)
    rows = rows[np.lexsort((-found.samples[rows], found.labels[rows]))]
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
    """Plot the agreement of every two views; the diagonal has random halves of the same view.

    Parameters
    ----------
    model : fitted RobustWMNMF
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    cmap : str, default="cividis"
        A matplotlib color map.
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
    rows: Sequence[str] | None = None,
) -> None:
    """A table of numbers from 0 to 1, a square unless its rows have names of their own."""
    aspect = "equal" if rows is None else "auto"
    image = ax.imshow(matrix, cmap=cmap, vmin=0, vmax=1, aspect=aspect)
    if len(names) <= 12:
        write_cells(ax, image, matrix, np.vectorize("{:.2f}".format)(matrix))
    name_ticks(ax, "x", range(len(names)), names, rotation=45, ha="right")
    name_ticks(ax, "y", range(len(matrix)), names if rows is None else rows)
    title(ax, text)
    ax.figure.colorbar(image, ax=ax, pad=0.02)


def convergence(model: Any, ax: Any = None, *, colors: Any = None) -> Any:
    """Plot every term of the objective over the iterations, on a logarithmic axis.

    Parameters
    ----------
    model : fitted RobustWMNMF or WMNMF
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    colors : dict of term → color, or sequence, optional

    Returns
    -------
    matplotlib Axes
    """
    ax = axes(ax)
    draw_terms(ax, model.history_, colors)
    return ax


def draw_terms(ax: Any, history: Mapping[str, Any], colors: Any = None) -> None:
    """A line for every term of the objective."""
    terms = [name for name in history if name not in ("round", "view", "iteration")]
    terms.reverse()
    for name, color in colors_of(terms, colors).items():
        values = np.asarray(history[name], dtype=float)
        values = np.where(values > 0, values, np.nan)  # a term of exactly 0 has no logarithm
        ax.plot(values, color=color, label=name, linewidth=2 if name == "objective" else 1.2)
    ax.set(yscale="log", xlabel="step", title="Terms of the objective")
    ax.legend(frameon=False)


def top_features(
    model: Any,
    view: str | int,
    component: int,
    n: int = 10,
    ax: Any = None,
    *,
    color: Any = None,
    labels: Mapping[Any, str] | None = None,
) -> Any:
    """Plot features of a view that stand out in a component, with their mean in all others (a tick).

    In RobustWMNMF component k describes cluster k.

    Parameters
    ----------
    model : fitted RobustWMNMF or WMNMF
    view : str or int
        Its name, or its position from 0.
    component : int
        Its position from 0.
    n : int, default=10
        How many features to draw.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.
    color : matplotlib color, optional
    labels : dict of feature → text, optional

    Returns
    -------
    matplotlib Axes
    """
    names = [str(name) for name in model.view_names_in_]
    s = names.index(view) if view in names else view
    if not isinstance(s, int | np.integer) or not 0 <= s < len(names):
        raise ValueError(f"view must be one of {names} or its position, got {view!r}")
    U = np.asarray(model.components_[s], dtype=float)
    if not 0 <= component < len(U):
        raise ValueError(f"component must be from 0 to {len(U) - 1}, got {component!r}")
    ax = axes(ax)
    others = np.delete(U, component, axis=0).mean(axis=0) if len(U) > 1 else np.zeros(U.shape[1])
    top = np.argsort(others - U[component], kind="stable")[:n]
    known = model.view_feature_names_in_[names[s]]
    shade = PALETTE[component % len(PALETTE)] if color is None else color
    ax.barh(range(len(top)), U[component, top], color=shade)
    ax.scatter(others[top], range(len(top)), marker="|", color="black", s=120, zorder=3)
    features = [f"{names[s]}_{j}" if known is None else known[j] for j in top]
    name_ticks(ax, "y", range(len(top)), [text_of(f, labels) for f in features])
    ax.invert_yaxis()
    title(ax, f"{short(names[s])}: component {component}")
    plain(ax)
    return ax


def overview(
    model: Any,
    images: Array | None = None,
    image_shape: tuple[int, int] | None = None,
    *,
    colors: Any = None,
    labels: Mapping[Any, str] | None = None,
) -> Any:
    """Plot the embedded consensus, reliance on the views and view weights in one figure.

    For data of images, members of each cluster replace the reliance.

    Parameters
    ----------
    model : fitted RobustWMNMF or WMNMF
    images : ndarray (n_samples, n_pixels), optional
        One image per sample, the pixels in a row.
    image_shape : tuple of int, optional
        Height and width of an image; needed with ``images``.
    colors : dict of cluster → color, or sequence, optional
    labels : dict of cluster → text, optional

    Returns
    -------
    matplotlib Figure
    """
    if (images is None) != (image_shape is None):
        raise ValueError("images and image_shape belong together; give both or neither")
    figure = pyplot().figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.25))
    embedding(model, ax=left.subplots(), colors=colors, labels=labels)
    top, bottom = right.subfigures(2, 1, height_ratios=(2.2, 1))
    if images is None or image_shape is None:
        sample_weights(model, ax=top.subplots(), labels=labels)
    else:
        _members(model, images, image_shape, top.subplots(), labels)
    view_weights(model, ax=bottom.subplots())
    return figure


def _members(
    model: Any, images: Array, shape: tuple[int, int], ax: Any, labels: Mapping[Any, str] | None
) -> None:
    """A row of images per cluster, from the most typical (largest share of its own consensus) on."""
    clusters = np.unique(model.labels_[model.labels_ >= 0])
    mosaic = np.zeros((len(clusters) * shape[0], IMAGES * shape[1]))
    for r, k in enumerate(clusters):
        rows = np.flatnonzero(model.labels_ == k)
        V = coordinates(model)[rows]
        near = rows[np.argsort(((V - V.mean(axis=0)) ** 2).sum(axis=1))]
        picks = near[np.linspace(0, len(near) - 1, IMAGES).astype(int)]
        for c, i in enumerate(picks):
            block = np.reshape(images[i], shape)
            mosaic[r * shape[0] : (r + 1) * shape[0], c * shape[1] : (c + 1) * shape[1]] = (
                block / max(block.max(), 1)
            )
    ax.imshow(mosaic, cmap="gray_r", aspect="auto")
    texts = [text_of(k, labels) for k in clusters.tolist()]
    name_ticks(ax, "y", (np.arange(len(clusters)) + 0.5) * shape[0], texts)
    ax.set_xticks([])
    title(ax, "Each cluster from its center (left) to its edge (right)")


def draw_scores(ax: Any, table: Mapping[str, Any], chosen: int | None, title: str = "") -> None:
    """Draw the scores of numbers of clusters, and those of data without clusters where they are known."""
    K, score = (np.asarray(table[name], dtype=float) for name in ("n_clusters", "score"))
    ranks = "error" in table
    error = np.nan_to_num(np.asarray(table["error"], dtype=float)) if ranks else None
    ax.errorbar(K, score, error, color=PALETTE[0], marker="o", ms=3.5, lw=1.2)
    if "clouds" in table:
        clouds = np.asarray(table["clouds"], dtype=float)
        ax.plot(K, clouds, "--", color="#888888", lw=1, label="data without clusters")
        ax.legend(frameon=False, fontsize=8)
    if chosen is not None:
        ax.axvline(chosen, color=PALETTE[5], lw=1, zorder=0)
    if K.max() > 20:
        ticks = [k for k in (2, 5, 10, 20, 50, 100, 200) if K.min() <= k <= K.max()]
        ax.set_xscale("log")
        ax.set_xticks(ticks, [str(k) for k in ticks], minor=False)
        ax.set_xticks([], minor=True)
    ax.set(xlabel="clusters", ylabel="error on unseen entries" if ranks else "score", title=title)
    plain(ax)
