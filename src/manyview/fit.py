"""The one loop: rounds of inner iterations per view, then weights; its stop test and its history."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import row_norms

from . import equations as eq
from ._types import Array, Callback, CollapseWarning, Factors, FitResult, Matrix, Stop
from .masked import Fill, MaskedView, observed_rows
from .regularizers import Term
from .solvers import Solver

#: Below this share of ‖x‖², a residual taken as a difference of products is mostly rounding.
CANCELLED = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-2}
COLLAPSE = 0.9


def run(
    Xs: list[Matrix],
    start: Factors,
    terms: list[Term],
    solver: Solver,
    *,
    p: float,
    beta: float,
    max_iter: int,
    inner_iter: int,
    tol: float = 0.0,
    rescale: bool = True,
    learn_basis: bool = True,
    learn_view_weights: bool = True,
    learn_sample_weights: bool = True,
    callback: Callback | None = None,
    fill: Fill | None = None,
) -> FitResult:
    """Minimise O from ``start``; ``learn_basis=False`` keeps U (placing unseen rows).

    ``fill(s, V)`` gives rows that view s does not observe at all their stand-in coefficients.
    """
    for g in terms:
        solver.check(g)
    views = [X if isinstance(X, MaskedView) else PlainView(X, solver) for X in Xs]
    observed = observed_rows(Xs)
    fill = fill or (lambda s, V: V)
    U, V = list(start.U), list(start.V)
    alpha, w, V_star = start.alpha, start.w, start.consensus
    state = Progress(max_iter, inner_iter, len(Xs), callback)
    residuals = [view.residuals(U[s], V[s]) for s, view in enumerate(views)]
    gaps = np.array([eq.consensus_gap(V[s], U[s].sum(axis=0), V_star) for s in range(len(Xs))])
    penalties = np.array([g.value(V[s]) for s, g in enumerate(terms)])

    def terms_now() -> dict[str, float]:
        return eq.objective(residuals, w, gaps, alpha, p, penalties, beta)

    state.record(0, -1, 0, terms_now())
    previous, stop = state.last, Stop.MAX_ITER if tol > 0 else Stop.ROUNDS
    for round_ in range(1, max_iter + 1):
        for s, view in enumerate(views):
            w2, a = (w[:, [s]] ** 2).astype(view.dtype), view.dtype.type(alpha[s] ** p)
            for inner in range(1, inner_iter + 1):
                if learn_basis:
                    U[s] = view.step_U(U[s], V[s], V_star, w2, a)
                V[s] = view.step_V(U[s], V[s], V_star, w2, a, beta, terms[s])
                residuals[s] = view.residuals(U[s], V[s], quick=True)
                gaps[s] = eq.consensus_gap(V[s], U[s].sum(axis=0), V_star)
                penalties[s] = terms[s].value(V[s])
                if state.record(round_, s, inner, terms_now()):
                    break
            residuals[s] = view.residuals(U[s], V[s])
            V[s] = fill(s, V[s])
            if rescale and learn_basis and not solver.unit_sums:
                U[s], V[s] = eq.rescale(U[s], V[s])
            penalties[s] = terms[s].value(V[s])
            if state.stopped:
                break
        q = [Us.sum(axis=0) for Us in U]
        if learn_view_weights:
            gaps = np.array([eq.consensus_gap(V[s], q[s], V_star) for s in range(len(Xs))])
            alpha = eq.view_weights(gaps, p)
        V_star = eq.consensus(V, q, alpha, p)
        gaps = np.array([eq.consensus_gap(V[s], q[s], V_star) for s in range(len(Xs))])
        if learn_sample_weights:
            w = eq.sample_weights(_told(residuals, observed))
        state.record(round_, -1, 0, terms_now())
        if state.stopped:
            stop = Stop.CALLBACK
            break
        if tol > 0 and abs(previous - state.last) <= tol * abs(previous):
            stop = Stop.CONVERGED
            break
        previous = state.last
    factors = Factors(tuple(U), tuple(V), V_star, alpha, w)
    return FitResult(factors, state.history(), round_, stop)


class PlainView:
    """A fully observed view: its steps are the solver's, from two products with X."""

    def __init__(self, X: Matrix, solver: Solver):
        self.X, self.solver, self.dtype = X, solver, X.dtype
        self.x_sq = row_norms(X, squared=True)

    def step_U(self, U: Array, V: Array, consensus: Array, w2: Array, a: float) -> Array:
        WV = w2 * V
        return self.solver.update_U(U, self.X.T @ WV, V.T @ WV, V, consensus, a)

    def step_V(
        self, U: Array, V: Array, consensus: Array, w2: Array, a: float, beta: float, g: Term
    ) -> Array:
        self._XU = self.X @ U
        return self.solver.update_V(V, self._XU, U, consensus, w2, a, beta, g)

    def residuals(self, U: Array, V: Array, quick: bool = False) -> Array:
        """Squared row residuals; ``quick`` reuses the product of the last `step_V` with this U."""
        if quick:
            return eq.squared_residuals(self.x_sq, self._XU, V, U.T @ U)
        return residual_rows(self.X, self.X @ U, U, V, self.x_sq)


def _told(residuals: list[Array], observed: Array | None) -> Array:
    """Residuals N×n_v; a row wholly unobserved in a view has none: no weight for that view there."""
    R = np.column_stack(residuals).astype(float)
    if observed is not None:
        R[~observed] = np.inf
    return R


def residual_rows(X: Matrix, XU: Array, U: Array, V: Array, x_sq: Array) -> Array:
    """‖x_i − Uv_i‖² from products, recomputed directly (in row blocks) where the difference cancels."""
    r = eq.squared_residuals(x_sq, XU, V, U.T @ U)
    cancelled = np.flatnonzero(r < CANCELLED[np.dtype(r.dtype)] * x_sq)
    block = max(1, 2**20 // X.shape[1])
    for i in range(0, len(cancelled), block):
        rows = cancelled[i : i + block]
        x = X[rows] if isinstance(X, np.ndarray) else X[rows].toarray()
        r[rows] = row_norms(x - V[rows] @ U.T, squared=True)
    return r


def warn_about(result: FitResult, view_names: tuple[str, ...], tol: float) -> None:
    """Say once what a user should know: not converged, or one view has taken over."""
    if result.stop is Stop.MAX_ITER:
        warnings.warn(
            f"WM-NMF stopped after {result.n_iter} rounds before the objective settled to "
            f"tol={tol:g}; raise max_iter, or set tol=0 to ask for a fixed number of rounds",
            ConvergenceWarning,
            stacklevel=4,
        )
    if not result.factors.consensus.any():
        warnings.warn(
            "the regulariser has driven the consensus to zero: its clusters mean nothing; lower beta",
            CollapseWarning,
            stacklevel=4,
        )
    alpha = result.factors.alpha
    if len(alpha) > 1 and alpha.max() > COLLAPSE:
        warnings.warn(
            f"view {view_names[int(alpha.argmax())]!r} holds {alpha.max():.0%} of the view weight: "
            "the consensus has collapsed onto it; use fewer rounds (max_iter) or a larger p",
            CollapseWarning,
            stacklevel=4,
        )


class Progress:
    """History rows, the last objective, and the callback's wish to stop."""

    columns = (
        "round",
        "view",
        "iteration",
        "reconstruction",
        "consensus",
        "regularizer",
        "objective",
    )

    def __init__(self, max_iter: int, inner_iter: int, n_views: int, callback: Callback | None):
        self.rows: list[tuple[Any, ...]] = []
        self.total = max_iter * inner_iter * n_views
        self.callback, self.stopped, self.last = callback, False, np.inf

    def record(self, round_: int, view: int, iteration: int, terms: dict[str, float]) -> bool:
        row = (round_, view, iteration, *terms.values())
        self.rows.append(row)
        self.last = terms["objective"]
        if self.callback is not None and view >= 0:
            info = dict(zip(self.columns, row, strict=True)) | {"total": self.total}
            self.stopped = bool(self.callback(info)) or self.stopped
        return self.stopped

    def history(self) -> dict[str, Array]:
        columns = zip(*self.rows, strict=True)
        return {name: np.array(c) for name, c in zip(self.columns, columns, strict=True)}
