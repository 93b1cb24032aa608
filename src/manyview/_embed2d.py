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


def embed2d(V: Array) -> Array:
    """t-SNE of the rows of V (N×2); where there is too little for it, the two leading directions."""
    from sklearn.manifold import TSNE

    V = np.asarray(V, dtype=float)
    if len(V) < 5 or V.shape[1] < 3 or np.ptp(V, axis=0).max() == 0:
        centred = V - V.mean(axis=0)
        U, size, _ = np.linalg.svd(centred, full_matrices=False)
        flat = U[:, :2] * size[:2]
        return np.pad(flat, ((0, 0), (0, 2 - flat.shape[1])))
    perplexity = min(30, (len(V) - 1) / 3)
    # 500 iterations: the picture is settled, and people wait for it.
    tsne = TSNE(perplexity=perplexity, init="pca", max_iter=500, random_state=0)
    with threadpool_limits(1):
        return tsne.fit_transform(V)
