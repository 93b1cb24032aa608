"""The one loop: rounds of inner iterations per view, then weights; its stop test and its history."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from manyview._arrays import is_tensor, namespace, on_host
from manyview._types import Array, Callback, CollapseWarning, Factors, FitResult, Stop, Sums
from manyview.engines.numpy.masked import (
    Fill,
    MaskedView,
    expected_gap,
    expected_residuals,
    mean_error,
    observed_rows,
    reaches,
)
from manyview.engines.numpy.rows import rows_of
from manyview.engines.threads import Threads
from manyview.maths import equations as eq
from manyview.maths.solvers import Solver
from manyview.regularizers import Term
from manyview.storage.checkpoint import Checkpoint

COLLAPSE = 0.9


def run(
    Xs: list[Any],
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
    threads: Threads | None = None,
    checkpoint: Checkpoint | None = None,
    entry_errors: list[float] | None = None,
) -> FitResult:
    """Minimise O from ``start``; ``learn_basis=False`` keeps U (placing unseen rows).

    Where entries are unobserved, α compares the gaps of observed rows and w the errors of observed
    entries, those of unseen rows with ``entry_errors``, the mean error of an entry of each view.

    ``fill(s, V)`` gives rows that view s does not observe at all their stand-in coefficients.
    A loop that ``checkpoint`` has seen broken off goes on where it was, to the same bits.
    """
    for g in terms:
        solver.check(g)
    views = [rows_of(X, solver, threads) for X in Xs]
    observed = observed_rows(Xs)
    fill = fill or (lambda s, V: V)
    saved = None if checkpoint is None else checkpoint.loop()
    start = start if saved is None else saved["factors"]
    U, V = list(start.U), list(start.V)
    alpha, w, V_star = start.alpha, start.w, start.consensus
    state = Progress(max_iter, inner_iter, len(Xs), callback)
    residuals = (
        saved["residuals"]
        if saved
        else [view.all_residuals(U[s], V[s]) for s, view in enumerate(views)]
    )
    penalties = [g.value(V[s]) for s, g in enumerate(terms)]

    reach = reaches(Xs, start.consensus.shape[1])

    def all_gaps() -> list:
        return [
            X.gap_to(V_star, Us, Vs)
            if isinstance(X, MaskedView)
            else eq.consensus_gap(Vs, Us.sum(axis=0), V_star)
            for X, Us, Vs in zip(Xs, U, V, strict=True)
        ]

    def all_errors() -> list:
        return [eq.reconstruction(r, w[:, s]) for s, r in enumerate(residuals)]

    def terms_now() -> dict[str, float]:
        return eq.objective(errors, gaps, alpha, p, penalties, beta)

    errors, gaps = all_errors(), all_gaps()
    state.record(0, -1, 0, terms_now())
    previous, stop = state.last, Stop.MAX_ITER if tol > 0 else Stop.ROUNDS
    at = (1, 0, 1)
    sums: Any = None
    if saved is not None:
        errors, gaps, penalties = saved["errors"], saved["gaps"], saved["penalties"]
        previous, sums, at = saved["previous"], saved["sums"], saved["at"]
        state.resume(saved["history"])

    def whole_V() -> tuple[Array, ...]:
        return tuple(view.collect(Vs) for view, Vs in zip(views, V, strict=True))

    def now() -> dict[str, Any]:
        """Everything the rest of the loop depends on, before an inner iteration."""
        return {
            "at": (round_, s, inner),
            "factors": Factors(tuple(U), whole_V(), V_star, alpha, w),
            "sums": tuple(view.sums) if learn_basis and hasattr(view, "sums") else None,
            "residuals": list(residuals),
            "errors": list(errors),
            "gaps": list(gaps),
            "penalties": list(penalties),
            "previous": previous,
            "history": state.history(),
        }

    for round_ in range(at[0], max_iter + 1):
        for s in range(at[1], len(views)):
            view = views[s]
            w2, a = w[:, s] ** 2, float(alpha[s] ** p)
            view.begin(V[s], V_star, w2, w2, terms[s], learn_basis)
            if learn_basis and sums is not None:
                view.sums = Sums(*sums)  # a pass that adds them anew may differ in the last bit
            elif learn_basis:
                view.sum(V[s])
            for inner in range(at[2], inner_iter + 1):
                if checkpoint is not None:
                    checkpoint.offer(now)
                if learn_basis:
                    U[s] = view.step_U(U[s], a)
                V[s] = view.step_V(U[s], V[s], a, beta, residuals=inner == inner_iter)
                errors[s], gaps[s] = view.error(U[s]), view.gap(U[s], V[s])
                penalties[s] = view.penalty
                if state.record(round_, s, inner, terms_now()):
                    break
            at, sums = (0, 0, 1), None
            stopped_early = state.stopped and inner < inner_iter
            residuals[s] = view.all_residuals(U[s], V[s]) if stopped_early else view.residuals
            V[s] = view.collect(V[s])
            view.rest()
            filled = fill(s, V[s])
            if rescale and learn_basis and not solver.unit_sums:
                U[s], filled = eq.rescale(U[s], filled)
            if filled is not V[s]:
                V[s], penalties[s] = filled, terms[s].value(filled)
            if state.stopped:
                break
        if learn_view_weights:
            whole = [float(expected_gap(X, gap)) for X, gap in zip(Xs, all_gaps(), strict=True)]
            alpha = eq.view_weights(np.array(whole), p, reach)
        V_star = eq.consensus(V, [Us.sum(axis=0) for Us in U], alpha, p)
        gaps = all_gaps()
        if learn_sample_weights:
            known: Any = entry_errors or [None] * len(Xs)
            whole_rows = [expected_residuals(*of) for of in zip(Xs, residuals, known, strict=True)]
            w = eq.sample_weights(_told(whole_rows, observed))
        errors = all_errors()
        state.record(round_, -1, 0, terms_now())
        if state.stopped:
            stop = Stop.CALLBACK
            break
        if tol > 0 and abs(previous - state.last) <= tol * abs(previous):
            stop = Stop.CONVERGED
            break
        previous = state.last
    factors = Factors(tuple(U), tuple(V), V_star, alpha, w)
    found = [mean_error(X, r) for X, r in zip(Xs, residuals, strict=True)]
    return FitResult(factors, state.history(), round_, stop, found)


def _told(residuals: list[Array], observed: Array | None) -> Array:
    """Residuals N×n_v; a row wholly unobserved in a view has none: no weight for that view there."""
    R = namespace(residuals[0]).column_stack(residuals)
    R = R.astype(float) if isinstance(R, np.ndarray) else R
    if observed is not None:
        R[~observed] = np.inf
    return R


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
    """History rows, the last objective, and the callback's wish to stop.

    Terms are kept as they come and read at the end: a number on a GPU is not waited for.
    """

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
        if not is_tensor(self.last):  # of a GPU it is not waited for
            _check_finite(self.last, round_, iteration)
        if self.callback is not None and view >= 0:
            values = (round_, view, iteration, *(float(term) for term in terms.values()))
            info = dict(zip(self.columns, values, strict=True)) | {"total": self.total}
            self.stopped = bool(self.callback(info)) or self.stopped
        return self.stopped

    def resume(self, history: dict[str, Array]) -> None:
        self.rows = list(zip(*(history[name].tolist() for name in self.columns), strict=True))
        self.last = self.rows[-1][-1]

    def history(self) -> dict[str, Array]:
        columns = zip(*self.rows, strict=True)
        found = {name: _column(c) for name, c in zip(self.columns, columns, strict=True)}
        worst = int(np.argmin(np.isfinite(found["objective"])))
        _check_finite(*(found[name][worst] for name in ("objective", "round", "iteration")))
        return found


def _check_finite(objective: float, round_: int, iteration: int) -> None:
    if not np.isfinite(objective):
        raise ValueError(
            f"the objective is {objective} in round {round_}, iteration {iteration}: some numbers "
            "are too large or too small, or the data changed during the fit; scale the views"
        )


def _column(values: tuple[Any, ...]) -> Array:
    """One transfer for all values of a GPU."""
    if not any(is_tensor(value) for value in values):
        column = np.array(values)
        return column.astype(float) if column.dtype.kind == "f" else column
    device = next(value.device for value in values if is_tensor(value))
    xp = namespace(next(value for value in values if is_tensor(value)))
    kind = {"dtype": xp.float64, "device": device}
    return on_host(xp.stack([xp.as_tensor(value, **kind) for value in values]))
