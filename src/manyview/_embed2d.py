"""The consensus in two dimensions, for figures: the same rows give the same picture."""

from __future__ import annotations

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from manyview._types import Array


def coordinates(model: Any) -> Array:
    """What the clusters were read from: the fused embedding if there is one, else shares of V*."""
    if hasattr(model, "embedding_"):
        return model.embedding_
    return model.consensus_ / np.maximum(model.consensus_.sum(axis=1, keepdims=True), 1e-300)


def projection(V: Array) -> str:
    """What `embed2d` makes of V, in words."""
    if _is_flat(V):
        return "principal components (the two directions of largest spread)"
    return f"t-SNE (perplexity {_perplexity(V):.3g}, started from principal components)"


def embed2d(V: Array) -> Array:
    """t-SNE of the rows of V (N×2); where there is too little for it, the two leading directions."""
    from sklearn.manifold import TSNE

    V = np.asarray(V, dtype=float)
    if _is_flat(V):
        centred = V - V.mean(axis=0)
        U, size, _ = np.linalg.svd(centred, full_matrices=False)
        flat = U[:, :2] * size[:2]
        return np.pad(flat, ((0, 0), (0, 2 - flat.shape[1])))
    # 500 iterations: the picture is settled, and people wait for it.
    tsne = TSNE(perplexity=_perplexity(V), init="pca", max_iter=500, random_state=0)
    with threadpool_limits(1):
        return tsne.fit_transform(V)


def _is_flat(V: Array) -> bool:
    """Whether there is too little for t-SNE."""
    return len(V) < 5 or V.shape[1] < 3 or bool(np.ptp(V, axis=0).max() == 0)


def _perplexity(V: Array) -> float:
    return min(30, (len(V) - 1) / 3)
