"""Figures of a fitted model (matplotlib, from the extra "app").

Every function but `overview` draws into the Axes given as ``ax`` (by default the current one) and
returns it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manyview._colors import PALETTE as COLORS
from manyview._embed2d import coordinates, embed2d

from ._types import Array

#: Observations drawn in an embedding.
MOST_DRAWN = 20_000


def overview(model: Any, images: Array, image_shape: tuple[int, int]) -> Any:
    """One figure for image data: the embedded consensus, members of each cluster, view weights.

    Parameters
    ----------
    model : fitted RobustWMNMF or WMNMF
    images : ndarray (n_samples, n_pixels)
        One image per observation, the pixels in a row.
    image_shape : tuple of int
        Height and width of an image.

    Returns
    -------
    matplotlib Figure
    """
    plt = _pyplot()
    figure = plt.figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.25))
    embedding(model, ax=left.subplots())
    top, bottom = right.subfigures(2, 1, height_ratios=(2.2, 1))
    _members(model, images, image_shape, top.subplots())
    view_weights(model, ax=bottom.subplots())
    return figure


def embedding(model: Any, ax: Any = None) -> Any:
    """The consensus in two dimensions (t-SNE of its rows), coloured by cluster.

    Observations without a cluster (label −1) are left out; of more than 20,000, a random part is
    drawn.

    Parameters
    ----------
    model : fitted RobustWMNMF or WMNMF
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.

    Returns
    -------
    matplotlib Axes
    """
    ax = _axes(ax)
    rows = np.flatnonzero(model.labels_ >= 0)
    if len(rows) > MOST_DRAWN:
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_DRAWN, replace=False))
    Z, labels = embed2d(coordinates(model)[rows]), model.labels_[rows]
    for k in np.unique(labels):
        own = Z[labels == k]
        ax.scatter(
            *own.T, s=5 if len(rows) > 300 else 20, color=COLORS[k % len(COLORS)], linewidths=0
        )
        ax.annotate(str(k), np.median(own, axis=0), fontsize=12, weight="bold", ha="center")
    ax.set(
        xticks=[],
        yticks=[],
        title=f"{len(rows)} observations, {len(np.unique(labels))} clusters",
    )
    return ax


def view_weights(model: Any, ax: Any = None) -> Any:
    """How much each view contributes to the consensus.

    Parameters
    ----------
    model : fitted RobustWMNMF or WMNMF
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.

    Returns
    -------
    matplotlib Axes
    """
    ax = _axes(ax)
    bars = ax.barh(range(len(model.view_weights_)), model.view_weights_, color=COLORS[0])
    _name_rows(ax, model.view_names_in_)
    ax.bar_label(bars, fmt="%.2f", padding=3)
    ax.invert_yaxis()
    ax.set(title="View weights", xlim=(0, 1.15 * model.view_weights_.max()), xticks=[])
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    return ax


def sample_weights(model: Any, kind: str = "reliance", ax: Any = None) -> Any:
    """Heat map of views by observations, sorted by cluster and within it by the strongest view.

    Parameters
    ----------
    model : fitted RobustWMNMF or WMNMF
    kind : {"reliance", "weight"}, default="reliance"
        α_s w_is, every observation adding up to 1; or w_is.
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.

    Returns
    -------
    matplotlib Axes
    """
    if kind not in ("reliance", "weight"):
        raise ValueError(f"kind must be 'reliance' or 'weight', got {kind!r}")
    ax = _axes(ax)
    values = model.reliance_ if kind == "reliance" else model.sample_weights_
    main = values.argmax(axis=1)
    order = np.lexsort((-values.max(axis=1), main, model.labels_))
    image = ax.imshow(
        values[order].T, aspect="auto", cmap="cividis", vmin=0, interpolation="nearest"
    )
    _name_rows(ax, model.view_names_in_)
    labels = model.labels_[order]
    starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    for start in starts[1:]:
        ax.axvline(start - 0.5, color="white", linewidth=1)
    middles = (starts + np.r_[starts[1:], len(labels)] - 1) / 2
    ax.set_xticks(middles, [str(k) for k in labels[starts]])
    what = "Reliance on each view" if kind == "reliance" else "Weight in each view"
    ax.set(xlabel="observations, by cluster", title=what)
    ax.figure.colorbar(image, ax=ax, pad=0.02)
    return ax


def convergence(model: Any, ax: Any = None) -> Any:
    """Every term of the objective over the steps of the fit, on a logarithmic axis.

    Parameters
    ----------
    model : fitted RobustWMNMF or WMNMF
    ax : matplotlib Axes, optional
        Where to draw; by default the current one.

    Returns
    -------
    matplotlib Axes
    """
    ax = _axes(ax)
    terms = [name for name in model.history_ if name not in ("round", "view", "iteration")]
    for color, name in zip(COLORS, reversed(terms), strict=False):
        values = np.asarray(model.history_[name], dtype=float)
        values = np.where(values > 0, values, np.nan)  # a term of exactly 0 has no logarithm
        ax.plot(values, color=color, label=name, linewidth=2 if name == "objective" else 1.2)
    ax.set(yscale="log", xlabel="step", title="Terms of the objective")
    ax.legend(frameon=False)
    return ax


def top_features(model: Any, view: str | int, component: int, n: int = 10, ax: Any = None) -> Any:
    """Features of a view that stand out in a component, beside their mean in all others (a tick).

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
    ax = _axes(ax)
    others = np.delete(U, component, axis=0).mean(axis=0) if len(U) > 1 else np.zeros(U.shape[1])
    top = np.argsort(others - U[component], kind="stable")[:n]
    known = model.view_feature_names_in_[names[s]]
    ax.barh(range(len(top)), U[component, top], color=COLORS[component % len(COLORS)])
    ax.scatter(others[top], range(len(top)), marker="|", color="black", s=120, zorder=3)
    _name_rows(ax, [f"{names[s]}_{j}" if known is None else known[j] for j in top])
    ax.invert_yaxis()
    ax.set_title(f"{_short(names[s])}: component {component}", parse_math=False)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _members(model: Any, images: Array, shape: tuple[int, int], ax: Any) -> None:
    """A row of images per cluster, from the most typical (largest share of its own consensus) on."""
    clusters, n_columns = np.unique(model.labels_), 16
    mosaic = np.zeros((len(clusters) * shape[0], n_columns * shape[1]))
    for r, k in enumerate(clusters):
        rows = np.flatnonzero(model.labels_ == k)
        V = coordinates(model)[rows]
        near = rows[np.argsort(((V - V.mean(axis=0)) ** 2).sum(axis=1))]
        picks = near[np.linspace(0, len(near) - 1, n_columns).astype(int)]
        for c, i in enumerate(picks):
            block = np.reshape(images[i], shape)
            mosaic[r * shape[0] : (r + 1) * shape[0], c * shape[1] : (c + 1) * shape[1]] = (
                block / max(block.max(), 1)
            )
    ax.imshow(mosaic, cmap="gray_r", aspect="auto")
    ax.set_yticks((np.arange(len(clusters)) + 0.5) * shape[0], [str(k) for k in clusters])
    ax.set(xticks=[], title="Each cluster from its centre (left) to its edge (right)")


def _axes(ax: Any) -> Any:
    return _pyplot().gca() if ax is None else ax


def _name_rows(ax: Any, names: Any) -> None:
    """Names as they are: dollars are no formulas, and long ones are cut."""
    ax.set_yticks(range(len(names)), [_short(name) for name in names])
    for tick in ax.get_yticklabels():
        tick.set_parse_math(False)


def _short(name: Any, longest: int = 40) -> str:
    text = " ".join(str(name).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "plotting needs matplotlib: pip install 'manyview[app]'", name="matplotlib"
        ) from error
    return plt
