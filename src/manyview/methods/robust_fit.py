"""The loop of RobustWMNMF: per view V then U, then V*, then the centres; J never rises."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from manyview._arrays import (
    DeviceFlag,
    beside,
    constant,
    converted,
    copied,
    is_tensor,
    namespace,
    one_hot,
)
from manyview._types import Array, Callback, Factors, FitResult, Stop, storable
from manyview.engines.numpy.masked import MaskedView
from manyview.engines.numpy.rows import rows_of
from manyview.engines.threads import Threads
from manyview.maths import equations as eq
from manyview.maths.solvers import SimplexHALS
from manyview.regularizers import NoPenalty
from manyview.storage.checkpoint import Checkpoint

from .fit import Progress
from .state import LoopState

SOLVER, NO_PENALTY = SimplexHALS(), NoPenalty()
#: Iterations between two looks at J on a GPU; the answer is read at the next look.
CHECK_EVERY = 4
#: Steps on V and V* of unseen rows, with everything else kept.
PLACING_STEPS = 20


class Weights(NamedTuple):
    """λ, how strongly views follow the consensus, and β, how strongly that follows the clusters."""

    consensus: float
    cluster: float


@dataclass(frozen=True)
class LoopSettings:
    """When the loop ends, and who is told of every iteration."""

    weights: Weights
    max_iter: int
    tol: float
    callback: Callback | None = None


@dataclass(frozen=True)
class Start:
    """What the stages before hand to the loop: weights α and w, the embedding P, first labels."""

    alpha: Array
    w: Array
    P: Array
    labels: Array
    n_clusters: int


@storable
@dataclass(frozen=True)
class RobustState(LoopState):
    """Everything the rest of the loop depends on, after an iteration.

    ``distances`` are those of the embedding to ``centres``, ``errors`` the weighted reconstruction
    errors of the views in units of τ.
    """

    centres: Array
    distances: Array
    errors: tuple[Any, ...]
    iteration: int = 0
    objective: Any = None
    history: dict[str, Array] = field(default_factory=dict)


class RobustView:
    """One view's rows x (L1-normalised), their spread τ, and the steps on them."""

    def __init__(
        self, X: Any, present: Array, threads: Threads | None = None, tau: float | None = None
    ):
        self.masked = X if isinstance(X, MaskedView) else None
        self.rows = rows_of(X.X if isinstance(X, MaskedView) else X, SOLVER, threads)
        self.tau = self._spread(present) if tau is None else tau

    def _spread(self, present: Array) -> float:
        n = max(1, int(present.sum()))
        here = beside(present.astype(self.rows.dtype)[:, None], self.rows.x_sq)
        mean = self._products(here, namespace(here).ones_like(here))[:, 0] / n
        return eq.spread(self.rows.x_sq[present], mean)

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
    ) -> tuple[Array, Array, Any]:
        """V then U, two sweeps of coordinate descent each, and Σ_i w_i ‖x_i − Uv_i‖².

        α and w cancel row by row in V.
        """
        if self.masked is not None:
            V = self.masked.update_V(U, V, consensus, 1 / self.tau, lam)
            U = self.masked.update_U(U, V, w)
            return U, V, w @ self.residuals(U, V)
        V = self.update_V(U, V, consensus, w, lam, basis=True)
        U = self.rows.step_U(U, 0.0)
        return U, V, self.rows.error(U)

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
    start: Start,
    settings: LoopSettings,
    checkpoint: Checkpoint | None = None,
) -> tuple[FitResult, Array]:
    """Minimise J from hard labels.

    Parameters
    ----------
    views : list of RobustView
    start : Start
    settings : LoopSettings
    checkpoint : Checkpoint, optional
        Where the state is offered before every iteration, and a broken-off loop goes on from.

    Returns
    -------
    FitResult, and the centres of the clusters in the embedding
    """
    progress = Progress(settings.max_iter, 1, 1, settings.callback)
    saved: Any = None if checkpoint is None else checkpoint.loop()
    if saved is None:
        state = first_state(views, start)
        state, _ = _recorded(state, start, settings.weights, progress)
    else:
        state = saved
        progress.resume(saved.history)
    on_card = is_tensor(start.P) and start.P.is_cuda  # type: ignore[attr-defined]
    patience, settled, stop = CHECK_EVERY if on_card else 1, DeviceFlag(), Stop.MAX_ITER
    while state.iteration < settings.max_iter:
        if checkpoint is not None:
            with_history: Any = partial(_with_history, state, progress)
            checkpoint.offer(with_history)
        before = state.objective
        state = next_state(views, start, settings.weights, state)
        state, stopped = _recorded(state, start, settings.weights, progress)
        if stopped:
            stop = Stop.CALLBACK
            break
        if state.iteration % patience == 0 and settled.latest(
            before - state.objective <= settings.tol * abs(before)
        ):
            stop = Stop.CONVERGED
            break
    factors = Factors(state.U, state.V, state.consensus, start.alpha, start.w)
    return FitResult(factors, progress.history(), state.iteration, stop), state.centres


def first_state(views: list[RobustView], start: Start) -> RobustState:
    """V* and all V from the labels, U from the rows."""
    V_star = converted(soft_start(start.labels, start.n_clusters), start.P.dtype)
    V = tuple(copied(V_star) for _ in views)
    U = tuple(view.start_U(V[s], start.w[:, s]) for s, view in enumerate(views))
    errors = tuple(
        start.w[:, s] @ view.residuals(U[s], V[s]) / view.tau for s, view in enumerate(views)
    )
    centres = eq.cluster_centres(start.P, V_star)
    return RobustState(U, V, V_star, centres, eq.cluster_distances(start.P, centres), errors)


def next_state(
    views: list[RobustView], start: Start, weights: Weights, state: RobustState
) -> RobustState:
    """One iteration: V and U of every view, then V*, then the centres."""
    steps = [
        view.step(state.U[s], state.V[s], state.consensus, start.w[:, s], weights.consensus)
        for s, view in enumerate(views)
    ]
    U, V, errors = (tuple(part) for part in zip(*steps, strict=True))
    V_star = eq.simplex_consensus(list(V), start.alpha, start.w, state.distances, *weights)
    centres = eq.cluster_centres(start.P, V_star)
    distances = eq.cluster_distances(start.P, centres)
    errors = tuple(error / view.tau for error, view in zip(errors, views, strict=True))
    return RobustState(U, V, V_star, centres, distances, errors, state.iteration + 1)


def _recorded(
    state: RobustState, start: Start, weights: Weights, progress: Progress
) -> tuple[RobustState, bool]:
    """The state with its objective, which goes into the history; and whether the callback says stop."""
    terms = eq.robust_objective(
        list(state.errors),
        list(state.V),
        state.consensus,
        start.alpha,
        start.w,
        state.distances,
        *weights,
    )
    state = replace(state, objective=terms["objective"])
    return state, progress.record(state.iteration, 0, 1, terms, state)


def _with_history(state: RobustState, progress: Progress) -> RobustState:
    return replace(state, history=progress.history())


def place_robust(
    views: list[RobustView],
    factors: Factors,
    centres: Array,
    w: Array,
    P: Array,
    weights: Weights,
) -> tuple[list[Array], Array]:
    """V and V* of unseen rows: the same steps with U and the centres kept."""
    distances = eq.cluster_distances(P, centres)
    V_star = converted(soft_start(distances.argmin(axis=1), len(centres)), P.dtype)
    V = [copied(V_star) for _ in views]
    for _ in range(PLACING_STEPS):
        V = [
            view.update_V(U, Vs, V_star, w[:, s], weights.consensus)
            for s, (view, U, Vs) in enumerate(zip(views, factors.U, V, strict=True))
        ]
        V_star = eq.simplex_consensus(V, factors.alpha, w, distances, *weights)
    return V, V_star


def soft_start(labels: Array, n_clusters: int) -> Array:
    """.8 one-hot + .2/K: columns mean the same cluster in every view."""
    return 0.8 * one_hot(labels, n_clusters) + 0.2 / n_clusters
