"""Views as features: each on a comparable scale, all side by side, and how tight clusters are there."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import silhouette_score
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from manyview._types import Array, Matrix, Views
from manyview.scaling import fit_scaling

#: Above this many observations the silhouette is taken on a random sample: its cost is quadratic.
SILHOUETTE_SAMPLE = 5000


def scaled(views: Views, scale: str | None) -> list[Matrix]:
    """Every feature on its own scale, or every view on its own (see `manyview.scaling`)."""
    if scale is None:
        return list(views.matrices)
    if scale in ("standard", "minmax"):
        return [_by_feature(X, scale) for X in views.matrices]
    scalings = fit_scaling(views, scale)
    return [s.apply(X) for s, X in zip(scalings, views.matrices, strict=True)]


def side_by_side(matrices: list[Matrix]) -> Matrix:
    if any(sp.issparse(X) for X in matrices):
        return sp.csr_array(sp.hstack(matrices, format="csr"))
    return np.hstack(matrices)


def silhouette(X: Matrix, labels: Array, sample: int = SILHOUETTE_SAMPLE) -> float | None:
    """Mean silhouette, of a large dataset on a sample of so many rows, the same for all labels.

    None where it is not defined: one cluster, or only singletons.
    """
    n = X.shape[0]
    if n > sample:
        chosen = np.random.default_rng(0).permutation(n)[:sample]
        X, labels = X[chosen], labels[chosen]
    if not 2 <= len(np.unique(labels)) < len(labels):
        return None
    return float(silhouette_score(X, labels))


def _by_feature(X: Matrix, scale: str) -> Matrix:
    if not sp.issparse(X):
        return (StandardScaler() if scale == "standard" else MinMaxScaler()).fit_transform(X)
    if scale == "standard":
        return StandardScaler(with_mean=False).fit_transform(X)
    spread = (X.max(axis=0) - X.min(axis=0)).toarray().ravel()
    return sp.csr_array(X.multiply(1 / np.where(spread > 0, spread, 1)))
