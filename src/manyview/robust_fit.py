"""The loop of RobustWMNMF: per view V then U, then V*, then the centres; J never rises."""

from __future__ import annotations

import numpy as np
from sklearn.utils.extmath import row_norms

from . import equations as eq
from ._types import Array, Callback, Factors, FitResult, Matrix, Stop
from .fit import Progress, residual_rows
from .masked import MaskedView
from .regularizers import NoPenalty
from .solvers import SimplexHALS

SOLVER = SimplexHALS()


class RobustView:
    """One view's rows x (L1-normalised), their spread τ, and the steps on them."""

    def __init__(self, X: Matrix | MaskedView, present: Array):
        self.X = X
        plain = X.X if isinstance(X, MaskedView) else X
        self.x_sq = row_norms(plain, squared=True)
        rows = plain[present]
        mean = np.ravel(rows.mean(axis=0)) if rows.shape[0] else np.zeros(plain.shape[1])
        self.tau = eq.spread(self.x_sq[present], mean)

    def start_U(self, V: Array, w: Array) -> Array:
        plain = self.X.X if isinstance(self.X, MaskedView) else self.X
        U = plain.T @ (w[:, None] * V)
        U = np.maximum(U, 0)  # count data may be signed; parts are not
        total = U.sum(axis=0)
        return np.where(total > 0, U / np.where(total > 0, total, 1), 1 / len(U))

    def update_V(self, U: Array, V: Array, consensus: Array, lam: float) -> Array:
        """Two sweeps of coordinate descent; α and w cancel row by row."""
        if isinstance(self.X, MaskedView):
            return self.X.update_V(U, V, consensus, 1 / self.tau, lam)
        precision = np.full((len(V), 1), 1 / self.tau)
        return SOLVER.update_V(V, self.X @ U, U, consensus, precision, lam, 0.0, NoPenalty())

    def update_U(self, U: Array, V: Array, w: Array) -> Array:
        if isinstance(self.X, MaskedView):
            return self.X.update_U(U, V, w)
        WV = w[:, None] * V
        return SOLVER.update_U(U, self.X.T @ WV, V.T @ WV, V, V, 0.0)

    def residuals(self, U: Array, V: Array) -> Array:
        if isinstance(self.X, MaskedView):
            return self.X.residuals(U, V)
        return residual_rows(self.X, self.X @ U, U, V, self.x_sq)


def run_robust(
    views: list[RobustView],
    alpha: Array,
    w: Array,
    P: Array,
    labels: Array,
    n_clusters: int,
    *,
    lam: float,
    beta: float,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
) -> tuple[FitResult, Array]:
    """Minimise J from hard ``labels``; returns the fit and the centres."""
    V_star = soft_start(labels, n_clusters)
    V = [V_star.copy() for _ in views]
    U = [view.start_U(V[s], w[:, s]) for s, view in enumerate(views)]
    centres = eq.cluster_centres(P, V_star)
    distances = eq.cluster_distances(P, centres)
    taus = [view.tau for view in views]
    progress = Progress(max_iter, 1, 1, callback)

    def record(iteration: int) -> bool:
        residuals = [view.residuals(U[s], V[s]) for s, view in enumerate(views)]
        terms = eq.robust_objective(residuals, taus, V, V_star, alpha, w, distances, lam, beta)
        return progress.record(iteration, 0, 1, terms)

    record(0)
    stop, previous = Stop.MAX_ITER, progress.last
    for iteration in range(1, max_iter + 1):
        for s, view in enumerate(views):
            V[s] = view.update_V(U[s], V[s], V_star, lam)
            U[s] = view.update_U(U[s], V[s], w[:, s])
        V_star = eq.simplex_consensus(V, alpha, w, distances, lam, beta)
        centres = eq.cluster_centres(P, V_star)
        distances = eq.cluster_distances(P, centres)
        if record(iteration):
            stop = Stop.CALLBACK
            break
        if previous - progress.last <= tol * abs(previous):
            stop = Stop.CONVERGED
            break
        previous = progress.last
    factors = Factors(tuple(U), tuple(V), V_star, alpha, w)
    return FitResult(factors, progress.history(), iteration, stop), centres


def place_robust(
    views: list[RobustView],
    factors: Factors,
    centres: Array,
    w: Array,
    P: Array,
    lam: float,
    beta: float,
) -> tuple[list[Array], Array]:
    """V and V* of unseen rows: the same steps with U and the centres kept."""
    distances = eq.cluster_distances(P, centres)
    V_star = soft_start(distances.argmin(axis=1), len(centres))
    V = [V_star.copy() for _ in views]
    for _ in range(20):
        V = [
            view.update_V(U, Vs, V_star, lam)
            for view, U, Vs in zip(views, factors.U, V, strict=True)
        ]
        V_star = eq.simplex_consensus(V, factors.alpha, w, distances, lam, beta)
    return V, V_star


def soft_start(labels: Array, n_clusters: int) -> Array:
    """.8 one-hot + .2/K: columns mean the same cluster in every view."""
    return 0.8 * np.eye(n_clusters)[labels] + 0.2 / n_clusters
