"""One figure for a first look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from manyview._embed2d import coordinates
from manyview._types import Array

from ._draw import name_ticks, pyplot, text_of, title
from .model import embedding, sample_weights, view_weights

#: Images of a cluster.
IMAGES = 16


def overview(
    model: Any,
    images: Array | None = None,
    image_shape: tuple[int, int] | None = None,
    *,
    colors: Any = None,
    labels: Mapping[Any, str] | None = None,
) -> Any:
    """One figure for a first look: the embedded consensus, reliance on the views, view weights.

    For data of images, members of each cluster stand in the place of the reliance.

    Parameters
    ----------
    model : fitted RobustWMNMF or WMNMF
    images : ndarray (n_samples, n_pixels), optional
        One image per observation, the pixels in a row.
    image_shape : tuple of int, optional
        Height and width of an image; needed with ``images``.
    colors : dict of cluster → colour, or sequence, optional
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
    title(ax, "Each cluster from its centre (left) to its edge (right)")
