"""Figures of a fitted model (matplotlib, from the extra "app")."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._types import Array
from .embed2d import coordinates, embed2d

#: Colour-blind safe (Okabe & Ito, then Tol), in an order that keeps neighbours apart.
COLORS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#882255",
    "#999933",
    "#332288",
    "#777777",
)


def overview(model: Any, images: Array, image_shape: tuple[int, int]) -> Any:
    """One figure for image data: the embedded consensus, members of each cluster, view weights."""
    plt = _pyplot()
    figure = plt.figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.25))
    embedding(model, ax=left.subplots())
    top, bottom = right.subfigures(2, 1, height_ratios=(2.2, 1))
    _members(model, images, image_shape, top.subplots())
    view_weights(model, ax=bottom.subplots())
    return figure


def embedding(model: Any, ax: Any = None) -> Any:
    """The consensus in two dimensions (t-SNE of its rows), coloured by cluster."""
    ax = ax or _pyplot().gca()
    V = coordinates(model)
    Z = embed2d(V)
    for k in np.unique(model.labels_):
        rows = model.labels_ == k
        ax.scatter(*Z[rows].T, s=5, color=COLORS[k % len(COLORS)], linewidths=0)
        ax.annotate(str(k), np.median(Z[rows], axis=0), fontsize=12, weight="bold", ha="center")
    ax.set(
        xticks=[],
        yticks=[],
        title=f"{len(V)} observations, {len(np.unique(model.labels_))} clusters",
    )
    return ax


def view_weights(model: Any, ax: Any = None) -> Any:
    """How much each view contributes to the consensus."""
    ax = ax or _pyplot().gca()
    names = [str(name) for name in model.view_names_in_]
    bars = ax.barh(names, model.view_weights_, color=COLORS[0])
    ax.bar_label(bars, fmt="%.2f", padding=3)
    ax.invert_yaxis()
    ax.set(title="View weights", xlim=(0, 1.15 * model.view_weights_.max()), xticks=[])
    ax.spines[["top", "right", "bottom"]].set_visible(False)
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


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "plotting needs matplotlib: pip install 'manyview[app]'", name="matplotlib"
        ) from error
    return plt
