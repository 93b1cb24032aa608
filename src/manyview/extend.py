"""Your own regularizers, solvers and data sources for `WMNMF` and `RobustWMNMF`.

`check_regularizer` and `check_solver` test them on small random problems for what `WMNMF` relies on:
gradients that are those of the value, nonnegative factors, and an objective that never rises.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from manyview._types import Array, Split
from manyview.engines.protocols import RowSource
from manyview.maths import equations as eq
from manyview.maths.solvers import (
    SOLVERS,
    Multiplicative,
    SimplexHALS,
    Solver,
    check_needs,
    make_solver,
)
from manyview.maths.terms import Curved, Linkable, NoPenalty, Term
from manyview.regularizers import NAMED, Graph, Orthogonal, Regularizer, Sparse, make_regularizer
from manyview.wmnmf import WMNMF

__all__ = [
    "Graph",
    "Multiplicative",
    "Orthogonal",
    "Regularizer",
    "RowSource",
    "SimplexHALS",
    "Solver",
    "Sparse",
    "Term",
    "check_regularizer",
    "check_solver",
]

#: Rows, features and components of the problems.
ROWS, FEATURES, COMPONENTS = 24, 7, 3
#: What rounding may do to an objective, and finite differences to a gradient, as a share.
ROUNDING, DIFFERENCES = 1e-9, 1e-4
#: The weights of the consensus and of the regularizer in single steps.
CONSENSUS_WEIGHT, PENALTY_WEIGHT = 0.3, 0.2


@dataclass(frozen=True)
class Problem:
    """One view with factors, a consensus and the squared weights of its rows (N×1)."""

    X: Array
    U: Array
    V: Array
    consensus: Array
    w2: Array

    def objective(self, U: Array, V: Array, term: Term) -> float:
        """What one view adds to the objective."""
        error = float((self.w2 * (self.X - V @ U.T) ** 2).sum())
        gap = float(eq.consensus_gap(V, U.sum(axis=0), self.consensus))
        return error + CONSENSUS_WEIGHT * gap + PENALTY_WEIGHT * float(term.value(V))


def _problem(random_state: int) -> Problem:
    rng = np.random.default_rng(random_state)
    U, V = 0.1 + rng.random((FEATURES, COMPONENTS)), 0.1 + rng.random((ROWS, COMPONENTS))
    U /= U.sum(axis=0)
    X = V @ U.T * rng.uniform(0.5, 1.5, (ROWS, FEATURES))
    return Problem(X, U, V, rng.random((ROWS, COMPONENTS)), rng.random((ROWS, 1)))


def check_regularizer(
    regularizer: Any, *, X: Any = None, view: str = "view0", random_state: int = 0
) -> None:
    """Check a regularizer for ``WMNMF(regularizer=...)``.

    The parts of ``split(V)`` must be nonnegative and their difference half the gradient of
    ``value(V)`` (by finite differences); ``curvature(V)``, if there is one, must bound the value from
    above; the same holds for the term that ``link`` returns, if there is one. Without ``link`` the value
    must be a sum over rows, because the term then holds for new rows as it is. In a fit the objective must
    never rise.

    Parameters
    ----------
    regularizer : object
        An object with ``prepare(X, view)``, see `Regularizer` and `Term`.
    X : array (n_samples, n_features), optional
        A view to prepare it for, if the regularizer fits only your data, such as a graph of your
        samples. Use a small view, because differences are computed for every entry of V; no fit is
        made. By default a random problem.
    view : str, default="view0"
        The name of this view.
    random_state : int, default=0
        Seed of the random problems.

    Raises
    ------
    AssertionError
        With a sentence that says what is wrong.

    Examples
    --------
    >>> from manyview.extend import Sparse, check_regularizer
    >>> check_regularizer(Sparse())
    """
    name = type(regularizer).__name__
    if not callable(getattr(regularizer, "prepare", None)):
        raise AssertionError(f"{name} has no prepare(X, view), which returns the term of one view")
    given = _problem(random_state).X if X is None else np.asarray(X, dtype=float)
    if given.ndim != 2:
        raise AssertionError(f"X must be one view, samples × features; it has shape {given.shape}")
    V = 0.1 + np.random.default_rng(random_state).random((len(given), COMPONENTS))
    term, label = regularizer.prepare(given, view), f"{name}.prepare(X, view)"
    _check_term(term, V, label)
    if not isinstance(term, Linkable):
        _check_rows(term, V, label)
    elif (linked := term.link(given[:5] * 1.1, V)) is not None:
        _check_term(linked, V[:5], f"{label}.link(X_new, V)")
    if X is not None:
        return
    for solver in SOLVERS:
        if isinstance(term, Curved) or "curvature" not in SOLVERS[solver].needs:
            _check_fit(solver, regularizer, f"{name} with solver={solver!r}", random_state)


def check_solver(
    solver: Any, *, regularizers: Sequence[Any] | None = None, random_state: int = 0
) -> None:
    """Check a solver for ``WMNMF(solver=...)``.

    Its steps must return new, finite, nonnegative factors (with unit column sums of U where it says
    ``unit_sums``), leave their arguments as they are, treat every row of V for itself, and never
    raise the objective: step by step, and in a fit.

    Parameters
    ----------
    solver : object
        An object of a class derived from `Solver`.
    regularizers : sequence of objects, optional
        What to check it with; by default the library's own, as far as they have what it needs.
    random_state : int, default=0
        Seed of the random problems.

    Raises
    ------
    AssertionError
        With a sentence that says what is wrong.

    Examples
    --------
    >>> from manyview.extend import SimplexHALS, check_solver
    >>> check_solver(SimplexHALS(sweeps=3))
    """
    with _as_failure():
        steps = make_solver(solver)
    name, problem = type(steps).__name__, _problem(random_state)
    chosen = _suitable(steps) if regularizers is None else list(regularizers)
    if not chosen:
        raise AssertionError(
            f"{name} needs {', '.join(steps.needs)}, which no regularizer of the library has; pass "
            "regularizers= that have it"
        )
    U, V = steps.start(problem.U.copy(), problem.V.copy())
    _check_factor(U, problem.U, f"the U of {name}.start")
    _check_factor(V, problem.V, f"the V of {name}.start")
    _check_unit_sums(steps, U, f"{name}.start")
    for regularizer in chosen:
        term = regularizer.prepare(problem.X, "view0")
        with _as_failure():
            check_needs(steps, term)
        label = f"{name} with {type(regularizer).__name__}"
        _check_step_on_V(steps, problem, U, V, term, label)
    _check_step_on_U(steps, problem, U, V, name)
    for regularizer in chosen:
        _check_fit(steps, regularizer, f"{name} with {type(regularizer).__name__}", random_state)


def _suitable(solver: Solver) -> list[Any]:
    """The library's regularizers that have what the solver needs."""
    own = (make_regularizer(name, Graph(3)) for name in (None, *NAMED))
    # All of them have a curvature and no other optional method.
    return list(own) if set(solver.needs) <= {"curvature"} else []


@contextmanager
def _as_failure() -> Iterator[None]:
    """A refusal of the library as a failed check."""
    try:
        yield
    except ValueError as error:
        raise AssertionError(str(error)) from None


def _check_term(term: Any, V: Array, label: str) -> None:
    if not isinstance(term, Term):
        raise AssertionError(
            f"{label} returned a {type(term).__name__}, which lacks value(V) or split(V)"
        )
    given = V.copy()
    value, parts = term.value(V), term.split(V)
    if np.ndim(value) != 0 or not np.isfinite(float(value)):
        raise AssertionError(f"{label}: value(V) must be one finite number, got {value!r}")
    if len(parts) != 2:
        raise AssertionError(f"{label}: split(V) must be a pair, got {len(parts)} parts")
    negative, positive = (
        _broadcast(part, V, f"the {side} part of split(V)", label)
        for part, side in zip(parts, ("negative", "positive"), strict=True)
    )
    found, expected = 2 * (positive - negative), _gradient(term, V)
    scale = max(1e-12, float(np.abs(expected).max()), float(np.abs(found).max()))
    worst = np.unravel_index(int(np.abs(found - expected).argmax()), V.shape)
    if np.abs(found - expected)[worst] > DIFFERENCES * scale:
        raise AssertionError(
            f"{label}: split(V) is not half the gradient of value(V): at row {worst[0]}, column "
            f"{worst[1]} twice (positive − negative) is {found[worst]:.6g}, and finite differences give "
            f"{expected[worst]:.6g}"
        )
    if isinstance(term, Curved):
        _check_curvature(term, V, found, label)
    if not np.array_equal(V, given):
        raise AssertionError(f"{label}: value, split or curvature wrote into V; work on a copy")


def _check_rows(term: Any, V: Array, label: str) -> None:
    """Whether a term that is not linked is a sum over rows."""
    half, whole = len(V) // 2, float(term.value(V))
    try:
        parts = float(term.value(V[:half])) + float(term.value(V[half:]))
        why = f"of all rows it is {whole:.6g}, of two halves {parts:.6g} together"
    except Exception as error:
        parts, why = np.inf, f"of half the rows: {error}"
    if not abs(parts - whole) <= DIFFERENCES * abs(whole) + 1e-12:
        raise AssertionError(
            f"{label}: value(V) is not a sum over rows ({why}), so that it says nothing of new rows; add "
            "link(X_new, V), which returns their term, or None for no term"
        )


def _broadcast(part: Any, V: Array, what: str, label: str) -> Array:
    try:
        whole = np.broadcast_to(np.asarray(part, dtype=float), V.shape)
    except ValueError:
        raise AssertionError(
            f"{label}: {what} has the shape {np.shape(part)}, which does not fit V {V.shape}"
        ) from None
    if not np.isfinite(whole).all() or whole.min() < 0:
        raise AssertionError(
            f"{label}: {what} must be finite and nonnegative, its smallest entry is {whole.min():.6g}"
        )
    return whole


def _gradient(term: Any, V: Array) -> Array:
    """Central differences of the value."""
    gradient = np.empty_like(V)
    for place in np.ndindex(V.shape):
        step = 1e-5 * max(1.0, abs(float(V[place])))
        up, down = V.copy(), V.copy()
        up[place] += step
        down[place] -= step
        gradient[place] = (float(term.value(up)) - float(term.value(down))) / (2 * step)
    return gradient


def _check_curvature(term: Any, V: Array, gradient: Array, label: str) -> None:
    h = _broadcast(term.curvature(V), V, "curvature(V)", label)
    rng, value = np.random.default_rng(0), float(term.value(V))
    for size in (0.01, 0.1, 1.0):
        new = np.maximum(0, V + size * rng.standard_normal(V.shape))
        step = new - V
        bound = value + float((gradient * step).sum()) + float((h * step * step).sum())
        reached = float(term.value(new))
        if reached > bound + DIFFERENCES * max(abs(value), abs(bound), 1e-12) * size:
            raise AssertionError(
                f"{label}: curvature(V) is too small: after a step of about {size} the value is "
                f"{reached:.6g}, above the bound {bound:.6g} of g(V) + 2⟨g⁺ − g⁻, Δ⟩ + Σ h Δ²"
            )


def _check_factor(found: Any, like: Array, what: str) -> None:
    if np.shape(found) != like.shape:
        raise AssertionError(f"{what} has the shape {np.shape(found)} instead of {like.shape}")
    if not np.isfinite(found).all() or np.min(found) < 0:
        raise AssertionError(
            f"{what} must be finite and nonnegative, its smallest entry is {np.min(found):.6g}"
        )


def _check_unit_sums(solver: Solver, U: Array, what: str) -> None:
    sums = U.sum(axis=0)
    if solver.unit_sums and not np.allclose(sums, 1, rtol=1e-6):
        raise AssertionError(
            f"{what}: the columns of U must sum to 1, as unit_sums says; they sum to {sums.round(6)}"
        )


def _check_step_on_V(
    solver: Solver, problem: Problem, U: Array, V: Array, term: Any, label: str
) -> None:
    h = term.curvature(V) if "curvature" in solver.needs else 0.0
    split = Split(*(np.broadcast_to(part, V.shape) for part in (*term.split(V), h)))
    products = (U.T @ U, U.sum(axis=0))

    def step(rows: slice) -> Array:
        given = (V[rows], (problem.X @ U)[rows], *products, problem.consensus[rows])
        weights = (problem.w2[rows], CONSENSUS_WEIGHT, PENALTY_WEIGHT)
        return solver.update_V(*given, *weights, split.rows(rows))

    before, everything, half = V.copy(), slice(0, ROWS), ROWS // 2
    new = np.array(step(everything))
    if not np.array_equal(V, before):
        raise AssertionError(f"{label}: update_V wrote into V; return a new array")
    _check_factor(new, V, f"{label}: the V of update_V")
    parts = np.concatenate([step(slice(0, half)), step(slice(half, ROWS))])
    if not np.allclose(new, parts, rtol=1e-8, atol=1e-12):
        raise AssertionError(
            f"{label}: update_V gives other coefficients for two halves of the rows than for all rows; "
            "the step on a row may use nothing of other rows, since rows come in blocks"
        )
    _check_descent(
        [problem.objective(U, V, term), problem.objective(U, new, term)], f"{label}: update_V"
    )


def _check_step_on_U(solver: Solver, problem: Problem, U: Array, V: Array, name: str) -> None:
    sums = eq.sums_over_rows(problem.X, V, problem.consensus, problem.w2)
    before = U.copy()
    new = np.array(solver.update_U(U, sums, CONSENSUS_WEIGHT))
    if not np.array_equal(U, before):
        raise AssertionError(f"{name}: update_U wrote into U; return a new array")
    _check_factor(new, U, f"{name}: the U of update_U")
    _check_unit_sums(solver, new, f"{name}.update_U")
    none = NoPenalty()
    _check_descent(
        [problem.objective(U, V, none), problem.objective(new, V, none)], f"{name}: update_U"
    )


def _check_fit(solver: Any, regularizer: Any, label: str, random_state: int) -> None:
    views = [_problem(random_state + s).X for s in (1, 2)]
    model = WMNMF(
        COMPONENTS,
        solver=solver,
        regularizer=regularizer,
        beta=0.01,
        n_neighbors=3,
        init="random",
        rescale=False,
        max_iter=4,
        inner_iter=8,
        assign_labels="argmax",
        random_state=random_state,
    )
    with warnings.catch_warnings(action="ignore"):
        # of a problem this small, clusters may well be empty
        model.fit(views)
    for factor in (*model.components_, *model.coefficients_):
        _check_factor(factor, factor, f"{label}: a factor of a fit")
    _check_descent(model.history_["objective"], f"{label}: a fit")


def _check_descent(objective: Any, label: str) -> None:
    values = np.asarray(objective, dtype=float)
    rises = np.diff(values) - ROUNDING * np.abs(values[:-1])
    if rises.max() > 0:
        i = int(rises.argmax())
        raise AssertionError(
            f"{label} raises the objective from {values[i]:.9g} to {values[i + 1]:.9g} (step {i + 1})"
        )
