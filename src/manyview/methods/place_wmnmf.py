"""Unseen rows among the fitted ones of `WMNMF`.

Their consensus is interpolated between fitted neighbors (`neighbor_consensus`). Solving for it with U
kept does not do: a fit stops long before V has settled, so that its own rows would move away from
their consensus, and out of their clusters. How well U reconstructs new rows, and what these say of U,
does need the solution (`solve`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Factors, Views
from manyview.engines.affinity import inverse_distances, nearest_neighbors
from manyview.engines.numpy.sources import resident
from manyview.engines.threads import Threads
from manyview.maths import equations as eq
from manyview.maths.solvers import Solver
from manyview.maths.terms import Linkable, Term

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


def neighbor_consensus(fitted: Fitted, Xs: list[Any]) -> Array:
    """V* of the new rows ``Xs`` (scaled): that of all starts, side by side.

    A row's coefficients in a view are the mean of those of its nearest fitted rows there, weighted by
    inverse squared distance: fitted rows get exactly their own.
    """
    consensus = [
        _consensus(factors, V, fitted.settings.p)
        for factors, V in zip(fitted.starts, _neighbor_coefficients(fitted, Xs), strict=True)
    ]
    return np.hstack(consensus)


def _neighbor_coefficients(fitted: Fitted, Xs: list[Any]) -> list[list[Array]]:
    """V of every view, for every start."""
    shares = []
    for X, seen in zip(Xs, fitted.views, strict=True):
        near, squared = nearest_neighbors(resident(seen), fitted.n_neighbors, resident(X))
        indptr = np.arange(0, near.size + 1, near.shape[1])
        parts = (inverse_distances(squared).ravel(), near.ravel(), indptr)
        shares.append(sp.csr_array(parts, shape=(len(near), seen.shape[0])))
    found = []
    for factors in fitted.starts:
        V = [(W @ known).astype(known.dtype) for W, known in zip(shares, factors.V, strict=True)]
        rank = factors.consensus.shape[1]
        fill = filling(Xs, fitted.views, fitted.n_neighbors, rank, factors.V)
        found.append(V if fill is None else [fill(s, Vs) for s, Vs in enumerate(V)])
    return found


def _consensus(factors: Factors, V: list[Array], p: float) -> Array:
    return eq.consensus(V, [U.sum(axis=0) for U in factors.U], factors.alpha, p)


def solve(fitted: Fitted, Xs: list[Any], views: Views) -> list[Factors]:
    """The loop with U and α kept: V, V* and w of the new rows ``Xs`` (the scaled ``views``), by start."""
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
    starts = zip(
        fitted.starts, fitted.entry_errors, _neighbor_coefficients(fitted, Xs), strict=True
    )
    for factors, entry_errors, V0 in starts:
        terms = [
            g.link(resident(X), V) if isinstance(g, Linkable) else g
            for X, g, V in zip(Xs, fitted.terms, factors.V, strict=True)
        ]
        n_components = factors.consensus.shape[1]
        fill = filling(Xs, fitted.views, fitted.n_neighbors, n_components, factors.V)
        V_star = _consensus(factors, V0, settings.p)
        rows = masked(Xs, views.names, fitted.solver, n_components)
        start = Factors(factors.U, tuple(V0), V_star, factors.alpha, starting_weights(rows))
        problem = Problem(rows, terms, fitted.solver, fill, fitted.threads, entry_errors)
        placed.append(run(problem, start, settings).factors)
    return placed
