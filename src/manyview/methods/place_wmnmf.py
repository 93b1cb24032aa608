"""Unseen rows among the fitted ones of `WMNMF`: the loop with U and α kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from manyview._types import Array, Factors, Matrix, Views
from manyview.engines.affinity import nearest_neighbors
from manyview.engines.numpy.sources import resident
from manyview.engines.threads import Threads
from manyview.maths import equations as eq
from manyview.maths.solvers import Solver
from manyview.maths.terms import Linkable, LinkedTerm, Term

from .fit import run
from .initialize import starting_weights
from .stand_ins import filling
from .state import Problem, Settings
from .working_views import masked


@dataclass(frozen=True)
class Fitted:
    """What placing needs of a fit: its views and terms, and the factors of every start."""

    views: Sequence[Any]
    terms: Sequence[Term]
    starts: Sequence[Factors]
    #: Mean squared error of an entry of every view, for each start.
    entry_errors: Sequence[Sequence[float] | None]
    solver: Solver
    settings: Settings
    n_neighbors: int
    threads: Threads


def place(fitted: Fitted, Xs: list[Any], views: Views) -> list[Factors]:
    """V, V* and w of the new rows ``Xs`` (the scaled ``views``), for every start."""
    settings = fitted.settings
    # Where rescaling lets U absorb a penalty on V (it does not for a graph, whose links pull towards
    # known rows), the same penalty with U fixed would crush the coefficients.
    linked = all(isinstance(g, Linkable) for g in fitted.terms)
    counts = linked or fitted.solver.unit_sums or not settings.rescale
    settings = replace(
        settings,
        beta=settings.beta if counts else 0.0,
        learn_basis=False,
        learn_view_weights=False,
        tol=0.0,
    )
    placed = []
    for factors, entry_errors in zip(fitted.starts, fitted.entry_errors, strict=True):
        terms, V0 = [], []
        for X, seen, g, V in zip(Xs, fitted.views, fitted.terms, factors.V, strict=True):
            term = g.link(resident(X), V) if isinstance(g, Linkable) else g
            terms.append(term)
            V0.append(first_coefficients(resident(X), resident(seen), V, term, fitted.n_neighbors))
        n_components = factors.consensus.shape[1]
        fill = filling(Xs, fitted.views, fitted.n_neighbors, n_components, factors.V)
        if fill is not None:
            V0 = [fill(s, V) for s, V in enumerate(V0)]
        q = [U.sum(axis=0) for U in factors.U]
        V_star = eq.consensus(V0, q, factors.alpha, settings.p)
        rows = masked(Xs, views.names, fitted.solver, n_components)
        start = Factors(factors.U, tuple(V0), V_star, factors.alpha, starting_weights(rows))
        problem = Problem(rows, terms, fitted.solver, fill, fitted.threads, entry_errors)
        placed.append(run(problem, start, settings).factors)
    return placed


def first_coefficients(X: Matrix, fitted: Matrix, V: Array, term: Any, n_neighbors: int) -> Array:
    """Where unseen rows start: the mean coefficients of their nearest fitted rows."""
    if isinstance(term, LinkedTerm) and (term.degrees > 0).all():
        return term.pull / term.degrees
    # Also where every edge weight underflowed: from V = 0 the multiplicative rule never leaves.
    indices, _ = nearest_neighbors(fitted, n_neighbors, X)
    return V[indices].mean(axis=1)
