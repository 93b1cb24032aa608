"""The one loop: rounds of inner iterations per view, then weights; its stop test and its history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from manyview._arrays import is_tensor, namespace, on_host
from manyview._types import Array, Callback, Factors, FitResult, Stop, Sums
from manyview.engines.numpy.masked import (
    expected_gap,
    expected_residuals,
    mean_error,
    reaches,
    views_that_tell,
)
from manyview.engines.numpy.rows import rows_of
from manyview.maths import equations as eq
from manyview.maths.solvers import check_needs
from manyview.storage.checkpoint import Checkpoint

from .state import LoopState, Problem, Report, Settings, State, replaced


def run(
    problem: Problem,
    start: Factors,
    settings: Settings,
    callback: Callback | None = None,
    checkpoint: Checkpoint | None = None,
) -> FitResult:
    """Minimise O from ``start``.

    Where entries are unobserved, α compares the gaps of observed rows and w the errors of observed
    entries, those of unseen rows with the problem's ``entry_errors``. A loop that ``checkpoint`` has
    seen broken off goes on where it was, to the same bits.
    """
    for g in problem.terms:
        check_needs(problem.solver, g)
    loop = Loop(problem, settings, callback, checkpoint)
    saved = None if checkpoint is None else checkpoint.loop()
    state = loop.first(start) if saved is None else loop.resumed(saved)
    stop: Stop | None = None
    while stop is None:
        for s in range(state.view, len(loop.passes)):
            state = loop.iterate(state, s)
            if loop.progress.stopped:
                break
        state = loop.weigh(state)
        stop = loop.verdict(state)
        state = replace(
            state, round=state.round + 1, view=0, iteration=1, previous=loop.progress.last
        )
    found = [mean_error(*of) for of in zip(problem.views, state.residuals, strict=True)]
    return FitResult(state.factors, loop.progress.history(), state.round - 1, stop, found)


def run_starts(
    problem: Problem,
    make_start: Callable[[int], Factors],
    n_init: int,
    settings: Settings,
    callback: Callback | None,
    checkpoint: Checkpoint,
) -> list[FitResult]:
    """The loop from every start; fewer if the callback asks to stop."""
    fits: list[FitResult] = []

    def start_and_run() -> FitResult:
        return run(problem, make_start(len(fits)), settings, callback, checkpoint)

    for i in range(n_init):
        fits.append(checkpoint.keep(f"fit {i}", start_and_run))
        checkpoint.forget(f"start {i} ")
        if fits[-1].stop is Stop.CALLBACK:
            break
    return fits


class Loop:
    """The steps from one `State` to the next."""

    def __init__(
        self,
        problem: Problem,
        settings: Settings,
        callback: Callback | None,
        checkpoint: Checkpoint | None,
    ):
        self.problem, self.settings, self.checkpoint = problem, settings, checkpoint
        self.passes = [rows_of(X, problem.solver, problem.threads) for X in problem.views]
        self.observed = views_that_tell(list(problem.views))
        n_views = len(self.passes)
        self.progress = Progress(settings.max_iter, settings.inner_iter, n_views, callback)

    def first(self, start: Factors) -> State:
        """The state of the factors a fit starts with."""
        state = State(
            start.U,
            start.V,
            start.consensus,
            start.alpha,
            start.w,
            tuple(p.all_residuals(*f) for p, *f in zip(self.passes, start.U, start.V, strict=True)),
            errors=(),
            gaps=(),
            penalties=tuple(g.value(V) for g, V in zip(self.problem.terms, start.V, strict=True)),
        )
        state = replace(state, errors=self._errors(state), gaps=self._gaps(state))
        self._record(state, 0, -1, 0)
        return replace(state, previous=self.progress.last)

    def resumed(self, saved: State) -> State:
        """A saved state, and what had been recorded by then."""
        self.progress.resume(saved.history)
        return saved

    def iterate(self, state: State, s: int) -> State:
        """All inner iterations on view s: U, then V, with the weights and the consensus kept."""
        view, settings = self.passes[s], self.settings
        w2, a = state.w[:, s] ** 2, float(state.alpha[s] ** settings.p)
        view.begin(state.V[s], state.consensus, w2, w2, self.problem.terms[s], settings.learn_basis)
        if settings.learn_basis and state.sums is not None:
            view.sums = Sums(*state.sums)  # a pass that adds them anew may differ in the last bit
        elif settings.learn_basis:
            view.sum(state.V[s])
        state = replace(state, view=s, sums=None, history={})
        for inner in range(state.iteration, settings.inner_iter + 1):
            state = replace(state, iteration=inner)
            if self.checkpoint is not None:
                self.checkpoint.offer(partial(self._saved, state))
            before = self.progress.last
            state = self._step(state, a)
            if self._record(state, state.round, s, inner) or self._settled(before):
                break
        return replace(self._end_of_view(state), iteration=1)

    def _step(self, state: State, a: float) -> State:
        """One inner iteration on the view whose turn it is."""
        s, view, last = state.view, self.passes[state.view], self.settings.inner_iter
        U, V = state.U[s], state.V[s]
        if self.settings.learn_basis:
            U = view.step_U(U, a)
        V = view.step_V(U, V, a, self.settings.beta, residuals=state.iteration == last)
        return replace(
            state,
            U=replaced(state.U, s, U),
            V=replaced(state.V, s, V),
            errors=replaced(state.errors, s, view.error(U)),
            gaps=replaced(state.gaps, s, view.gap(U, V)),
            penalties=replaced(state.penalties, s, view.penalty),
        )

    def _settled(self, before: Any) -> bool:
        """Whether the last iteration changed the objective by less than ``inner_tol`` of it."""
        least = self.settings.inner_tol
        return least > 0 and abs(float(before - self.progress.last)) <= least * abs(float(before))

    def _end_of_view(self, state: State) -> State:
        """Residuals, stand-ins and the scale of U, once the iterations on a view are done."""
        s, view, settings = state.view, self.passes[state.view], self.settings
        U, V, term = state.U[s], state.V[s], self.problem.terms[s]
        early = state.iteration < settings.inner_iter
        residuals = view.all_residuals(U, V) if early else view.residuals
        V = view.collect(V)
        view.release()
        new = V if self.problem.fill is None else self.problem.fill(s, V)
        if settings.rescale and settings.learn_basis and not self.problem.solver.unit_sums:
            U, new = eq.rescale(U, new)
        penalty = state.penalties[s] if new is V else term.value(new)
        return replace(
            state,
            U=replaced(state.U, s, U),
            V=replaced(state.V, s, new),
            residuals=replaced(state.residuals, s, residuals),
            penalties=replaced(state.penalties, s, penalty),
        )

    def weigh(self, state: State) -> State:
        """α, then V*, then w, in closed form."""
        views, settings = self.problem.views, self.settings
        if settings.learn_view_weights:
            gaps = [
                float(expected_gap(X, gap)) for X, gap in zip(views, self._gaps(state), strict=True)
            ]
            reach = reaches(list(views), state.consensus.shape[1])
            state = replace(state, alpha=eq.view_weights(np.array(gaps), settings.p, reach))
        q = [U.sum(axis=0) for U in state.U]
        V_star = eq.consensus(list(state.V), q, state.alpha, settings.p)
        state = replace(state, consensus=V_star)
        state = replace(state, gaps=self._gaps(state))
        if settings.learn_sample_weights:
            known: Any = self.problem.entry_errors or [None] * len(views)
            whole = [
                expected_residuals(*of) for of in zip(views, state.residuals, known, strict=True)
            ]
            state = replace(state, w=eq.sample_weights(_observed_only(whole, self.observed)))
        state = replace(state, errors=self._errors(state))
        self._record(state, state.round, -1, 0)
        return state

    def verdict(self, state: State) -> Stop | None:
        """Whether the loop ends after this round, and why."""
        settings, last = self.settings, self.progress.last
        if self.progress.stopped:
            return Stop.CALLBACK
        if settings.tol > 0 and abs(state.previous - last) <= settings.tol * abs(state.previous):
            return Stop.CONVERGED
        if state.round < settings.max_iter:
            return None
        return Stop.MAX_ITER if settings.tol > 0 else Stop.ROUNDS

    def _gaps(self, state: State) -> tuple[Any, ...]:
        return tuple(
            view.gap_to(state.consensus, U, V)
            for view, U, V in zip(self.passes, state.U, state.V, strict=True)
        )

    def _errors(self, state: State) -> tuple[Any, ...]:
        return tuple(eq.reconstruction(r, state.w[:, s]) for s, r in enumerate(state.residuals))

    def _record(self, state: State, round_: int, view: int, iteration: int) -> bool:
        """Keep a line of the history; True if the callback asks to stop."""
        settings = self.settings
        terms = eq.objective(
            state.errors, state.gaps, state.alpha, settings.p, state.penalties, settings.beta
        )
        return self.progress.record(round_, view, iteration, terms, state)

    def _saved(self, state: State) -> State:
        """The state with all that only the passes and the record hold."""
        sums = self.passes[state.view].sums if self.settings.learn_basis else None
        return replace(
            state,
            V=tuple(view.collect(V) for view, V in zip(self.passes, state.V, strict=True)),
            sums=None if sums is None else tuple(sums),
            history=self.progress.history(),
        )


def _observed_only(residuals: list[Array], observed: Array | None) -> Array:
    """Residuals N×n_v; a row wholly unobserved in a view has none: no weight for that view there."""
    R = namespace(residuals[0]).column_stack(residuals)
    R = R.astype(float) if isinstance(R, np.ndarray) else R
    if observed is not None:
        R[~observed] = np.inf
    return R


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

    def record(
        self,
        round_: int,
        view: int,
        iteration: int,
        terms: dict[str, float],
        state: LoopState | None = None,
    ) -> bool:
        """Keep a line; True if the callback, which is told of it and of the state, asks to stop."""
        row = (round_, view, iteration, *terms.values())
        self.rows.append(row)
        self.last = terms["objective"]
        if not is_tensor(self.last):  # of a GPU it is not waited for
            _check_finite(self.last, round_, iteration)
        if self.callback is not None and view >= 0:
            values = (round_, view, iteration, *(float(term) for term in terms.values()))
            report = Report(zip(self.columns, values, strict=True), total=self.total)
            report.state = state
            self.stopped = bool(self.callback(report)) or self.stopped
            report.state = None
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
