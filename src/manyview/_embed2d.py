"""The consensus in two dimensions, for figures: the same rows give the same picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from manyview._types import Array

#: Rows that t-SNE lays out, of more a random part; its steps, and how roughly far rows are summed up.
LANDMARKS, STEPS, ANGLE = 2000, 300, 0.8
#: Laid out rows between which another one is placed.
NEAREST = 3


def coordinates(model: Any) -> Array:
    """What the clusters were read from: the fused embedding if there is one, else shares of V*."""
    if hasattr(model, "embedding_"):
        return model.embedding_
    return model.consensus_ / np.maximum(model.consensus_.sum(axis=1, keepdims=True), 1e-300)


def projection(V: Array) -> str:
    """What `embed2d` makes of V, in words."""
    if _is_flat(V):
        return "principal components (the two directions of largest spread)"
    placed = f", of {LANDMARKS} observations; others lie between their nearest of these"
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
        centred = V - V.mean(axis=0)
        U, size, _ = np.linalg.svd(centred, full_matrices=False)
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
