"""PIntMF: one nonnegative matrix of weights for all views, and sparse profiles for each."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import fcluster, ward
from sklearn.metrics import adjusted_rand_score
from sklearn.utils._param_validation import Interval

from manyview._types import Array, Seed, Views
from manyview.base import generator

from ._base import COUNT, SCALED, Baseline, observed, scaled
from .fusion import SNF

#: Penalties tried, as shares of the smallest one that leaves nothing, and parts of the rows left out.
PATH = np.geomspace(0.5, 0.005, 8)
N_FOLDS = 5
#: Clusterings of two rounds with this agreement are treated as the same, as the authors do.
SAME = 0.99
SWEEPS = 50


def descend(gram: Array, cross: Array, penalty: float, nonnegative: bool) -> Array:
    """Minimize ½ tr(AᵀGA) − tr(CᵀA) + penalty Σ|A|, row after row of A (p, m); A ≥ 0 if asked.

    With G = WᵀW and C = WᵀX this is the lasso of every column of X on W.
    """
    A = np.zeros_like(cross)
    diagonal = np.maximum(np.diag(gram), np.finfo(float).tiny)
    for _ in range(SWEEPS):
        before = A.copy()
        for j in range(len(A)):
            rest = cross[j] - gram[j] @ A + gram[j, j] * A[j]
            size = np.maximum(rest - penalty, 0)
            if not nonnegative:
                size -= np.maximum(-rest - penalty, 0)
            A[j] = size / diagonal[j]
        if np.abs(A - before).max() <= 1e-6 * max(1e-12, np.abs(A).max()):
            break
    return A


def chosen_penalty(X: Array, W: Array, folds: Array) -> float:
    """The largest penalty whose error on rows left out is within one standard error of the least."""
    largest = float(np.abs(W.T @ X).max())
    kinds = np.unique(folds)
    errors = np.empty((len(kinds), len(PATH)))
    for f, kind in enumerate(kinds):
        out = folds == kind
        gram, cross = W[~out].T @ W[~out], W[~out].T @ X[~out]
        for i, share in enumerate(PATH):
            H = descend(gram, cross, share * largest * (~out).mean(), False)
            errors[f, i] = np.mean((X[out] - W[out] @ H) ** 2)
    mean, spread = errors.mean(axis=0), errors.std(axis=0, ddof=1) / np.sqrt(len(kinds))
    within = mean <= mean.min() + spread[mean.argmin()]
    return float(PATH[np.flatnonzero(within)[0]] * largest)


@dataclass(eq=False, repr=False)
class PIntMF(Baseline):
    """Penalized integrative matrix factorization (Pierre-Jean et al.).

    X_s ≈ W H_s, with one nonnegative W for all views, whose rows add up to 1, and H_s made sparse by a
    lasso. The start is SNF; the fit ends when the clusters of W do not change. The penalty of each view
    is chosen by cross-validation over the samples. Differences from the R package: profiles are not
    rounded, W is computed without a small ridge, and missing views are allowed.

    Parameters
    ----------
    n_clusters : int, default=8
    n_components : int, optional
        Columns of W; ``n_clusters`` if not given.
    max_iter : int, default=20
    penalty : float or None, default=None
        Share of the penalty that leaves nothing, the same for every view; ``None`` chooses.
    scale : {"standard", "minmax", "sum", "tfidf", "sqrt"} or None, default="standard"
        As in `ConcatViews`.
    views : sequence or dict, optional
        If the input is one 2-D array: the number of columns of each view.
    random_state : int, RandomState, Generator or None
        Of the start and of the cross-validation.

    Attributes
    ----------
    labels_ : ndarray (N,)
        Ward's clusters of the rows of W.
    consensus_ : ndarray (N, K), W
    components_ : list of ndarray (K, M_s), the H_s
    explained_ : float
        Explained share of the variation.
    n_iter_ : int

    References
    ----------
    M. Pierre-Jean, F. Mauger, J.-F. Deleuze and E. Le Floch, PIntMF: penalized integrative matrix
    factorization method for multi-omics data, Bioinformatics 38, 2022.
    """

    _takes_missing: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict] = SCALED | {
        "n_components": [COUNT, None],
        "max_iter": [COUNT],
        "penalty": [Interval(Real, 0, 1, closed="both"), None],
    }

    n_clusters: int = 8
    _: KW_ONLY
    n_components: int | None = None
    max_iter: int = 20
    penalty: float | None = None
    scale: str | None = "standard"
    views: Any = None
    random_state: Seed = None

    def _cluster(self, views: Views) -> None:
        rng = generator(self.random_state)
        k = self.n_components or self.n_clusters
        parts, rows = observed(views)
        given = [scaled(part, self.scale)[0] for part in parts]
        Xs = [np.asarray(M.toarray() if sp.issparse(M) else M, dtype=float) for M in given]
        wide = [np.full((views.n_samples, X.shape[1]), np.nan) for X in Xs]
        for whole, X, present in zip(wide, Xs, rows, strict=True):
            whole[present] = X
        start = SNF(k, scale=None, random_state=int(rng.integers(2**31))).fit(dict(enumerate(wide)))
        W = np.eye(k)[start.labels_]
        folds = rng.permutation(np.arange(views.n_samples) % N_FOLDS)
        labels = start.labels_
        n_iter, settled = 0, False
        while n_iter < self.max_iter and not settled:
            n_iter += 1
            H = [self._profiles(M, W[r], folds[r]) for M, r in zip(Xs, rows, strict=True)]
            W = _weights(Xs, H, rows)
            before, labels = labels, _ward(W, self.n_clusters)
            settled = bool(adjusted_rand_score(before, labels) > SAME)
        self.labels_, self.consensus_, self.components_, self.n_iter_ = labels, W, H, n_iter
        left = sum(
            ((M - W[r] @ h) ** 2).sum() / M.size for M, h, r in zip(Xs, H, rows, strict=True)
        )
        whole = sum(((M - M.mean(axis=0)) ** 2).sum() / M.size for M in Xs)
        self.explained_ = float(1 - left / whole) if whole > 0 else 0.0

    def _profiles(self, X: Array, W: Array, folds: Array) -> Array:
        if self.penalty is None:
            penalty = chosen_penalty(X, W, folds)
        else:
            penalty = self.penalty * float(np.abs(W.T @ X).max())
        return descend(W.T @ W, W.T @ X, penalty, False)


def _weights(Xs: list[Array], H: list[Array], rows: list[Array]) -> Array:
    """W ≥ 0 by least squares, every view counting the same, and its rows made to add up to 1.

    Samples that have the same views are solved together.
    """
    n = 1 + max(int(r.max()) for r in rows)
    has = np.column_stack([np.isin(np.arange(n), r) for r in rows])
    W = np.empty((n, len(H[0])))
    for pattern in np.unique(has, axis=0):
        same = np.flatnonzero((has == pattern).all(axis=1))
        there = [
            (X[np.searchsorted(r, same)], h)
            for X, h, r, there in zip(Xs, H, rows, pattern, strict=True)
            if there
        ]
        gram = sum(h @ h.T / h.shape[1] for _, h in there)
        cross = sum(h @ X.T / h.shape[1] for X, h in there)
        W[same] = descend(np.asarray(gram), np.asarray(cross), 0.0, True).T
    total = W.sum(axis=1, keepdims=True)
    return np.where(total > 0, W / np.where(total > 0, total, 1), 1 / W.shape[1])


def _ward(W: Array, n_clusters: int) -> Array:
    if len(W) < 2:
        return np.zeros(len(W), dtype=np.int64)
    return fcluster(ward(W), n_clusters, "maxclust") - 1
