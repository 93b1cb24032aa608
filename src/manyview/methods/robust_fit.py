"""The loop of RobustWMNMF: per view V then U, then V*, then the centres; J never rises."""

from __future__ import annotations

from typing import Any

from manyview._arrays import Question, constant, converted, copied, is_tensor, namespace, one_hot
from manyview._types import Array, Callback, Factors, FitResult, Stop
from manyview.engines.numpy.masked import MaskedView
from manyview.engines.numpy.rows import rows_of
from manyview.engines.threads import Threads
from manyview.maths import equations as eq
from manyview.maths.solvers import SimplexHALS
from manyview.regularizers import NoPenalty
from manyview.storage.checkpoint import Checkpoint

from .fit import Progress

SOLVER, NO_PENALTY = SimplexHALS(), NoPenalty()
#: Iterations between two looks at J on a GPU; the answer is read at the next look.
CHECK_EVERY = 4


class RobustView:
    """One view's rows x (L1-normalised), their spread τ, and the steps on them."""

    def __init__(self, X: Any, present: Array, threads: Threads | None = None):
        self.masked = X if isinstance(X, MaskedView) else None
        self.rows = rows_of(X.X if isinstance(X, MaskedView) else X, SOLVER, threads)
        here, n = present.astype(self.rows.dtype)[:, None], max(1, int(present.sum()))
        here = X.placed(here) if hasattr(X, "placed") else here
        mean = self._products(here, namespace(here).ones_like(here))[:, 0] / n
        self.tau = eq.spread(self.rows.x_sq[present], mean)

    def _products(self, V: Array, w: Array) -> Array:
        """XᵀWV."""
        self.rows.begin(V, V, w, w, NO_PENALTY, basis=True)
        self.rows.sum(V)
        return self.rows.sums.P

    def start_U(self, V: Array, w: Array) -> Array:
        U = self._products(V, w).clip(0)  # count data may be signed; parts are not
        total, xp = U.sum(axis=0), namespace(U)
        U = xp.where(total > 0, U / xp.where(total > 0, total, 1), 1 / len(U))
        return converted(U, V.dtype)

    def step(
        self, U: Array, V: Array, consensus: Array, w: Array, lam: float
    ) -> tuple[Array, Array]:
        """V then U: two sweeps of coordinate descent each; α and w cancel row by row in V."""
        if self.masked is not None:
            V = self.masked.update_V(U, V, consensus, 1 / self.tau, lam)
            U = self.masked.update_U(U, V, w)
            self.error = w @ self.residuals(U, V)
        else:
            V = self.update_V(U, V, consensus, w, lam, basis=True)
            U = self.rows.step_U(U, 0.0)
            self.error = self.rows.error(U)
        return U, V

    def update_V(
        self, U: Array, V: Array, consensus: Array, w: Array, lam: float, basis: bool = False
    ) -> Array:
        if self.masked is not None:
            return self.masked.update_V(U, V, consensus, 1 / self.tau, lam)
        precision = constant(1 / self.tau, V)
        self.rows.begin(V, consensus, precision, w, NO_PENALTY, basis)
        return self.rows.collect(self.rows.step_V(U, V, lam, 0.0))

    def residuals(self, U: Array, V: Array) -> Array:
        return (self.masked or self.rows).all_residuals(U, V)


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
    checkpoint: Checkpoint | None = None,
) -> tuple[FitResult, Array]:
    """Minimise J from hard ``labels``; returns the fit and the centres."""
    V_star = converted(soft_start(labels, n_clusters), P.dtype)
    V = [copied(V_star) for _ in views]
    U = [view.start_U(V[s], w[:, s]) for s, view in enumerate(views)]
    for s, view in enumerate(views):
        view.error = w[:, s] @ view.residuals(U[s], V[s])
    centres = eq.cluster_centres(P, V_star)
    distances = eq.cluster_distances(P, centres)
    progress = Progress(max_iter, 1, 1, callback)

    def record(iteration: int) -> bool:
        errors = [view.error / view.tau for view in views]
        terms = eq.robust_objective(errors, V, V_star, alpha, w, distances, lam, beta)
        return progress.record(iteration, 0, 1, terms)

    patience = CHECK_EVERY if is_tensor(P) and P.is_cuda else 1  # type: ignore[attr-defined]
    settled = Question()
    saved = None if checkpoint is None else checkpoint.loop()
    if saved is None:
        record(0)
    stop, previous, first = Stop.MAX_ITER, progress.last, 1
    if saved is not None:
        V_star, centres, first = saved["consensus"], saved["centres"], saved["iteration"]
        U, V, previous = saved["U"], saved["V"], saved["previous"]
        distances = eq.cluster_distances(P, centres)
        progress.resume(saved["history"])

    def now() -> dict[str, Any]:
        """Everything the rest of the loop depends on, before an iteration."""
        return {
            "iteration": iteration,
            "U": list(U),
            "V": list(V),
            "consensus": V_star,
            "centres": centres,
            "previous": previous,
            "history": progress.history(),
        }

    for iteration in range(first, max_iter + 1):
        if checkpoint is not None:
            checkpoint.offer(now)
        for s, view in enumerate(views):
            U[s], V[s] = view.step(U[s], V[s], V_star, w[:, s], lam)
        V_star = eq.simplex_consensus(V, alpha, w, distances, lam, beta)
        centres = eq.cluster_centres(P, V_star)
        distances = eq.cluster_distances(P, centres)
        if record(iteration):
            stop = Stop.CALLBACK
            break
        gain = previous - progress.last
        if iteration % patience == 0 and settled.ask(gain <= tol * abs(previous)):
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
    V_star = converted(soft_start(distances.argmin(axis=1), len(centres)), P.dtype)
    V = [copied(V_star) for _ in views]
    for _ in range(20):
        V = [
            view.update_V(U, Vs, V_star, w[:, s], lam)
            for s, (view, U, Vs) in enumerate(zip(views, factors.U, V, strict=True))
        ]
        V_star = eq.simplex_consensus(V, factors.alpha, w, distances, lam, beta)
    return V, V_star


def soft_start(labels: Array, n_clusters: int) -> Array:
    """.8 one-hot + .2/K: columns mean the same cluster in every view."""
    return 0.8 * one_hot(labels, n_clusters) + 0.2 / n_clusters
