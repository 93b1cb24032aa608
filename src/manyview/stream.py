"""Fitting a stream: of earlier batches only sums over their rows are remembered, and slowly forgotten.

The step on U needs of the rows no more than P = XᵀW²V, G = VᵀW²V, Σv∘v* and Σv∘v. For a new batch
V, V* and w are found with U kept; its sums are added to those of earlier batches, times `FORGET` for
every batch since, and U takes steps on the total, as in online matrix factorisation (Mairal et al.).
The rows of earlier batches are not fitted again to the new U: that is the approximation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import equations as eq
from ._types import Array, Factors, Sums
from .regularizers import NoPenalty
from .solvers import Solver

#: What the sums of earlier batches are multiplied by for every new one.
FORGET = 0.9
#: Steps on U per batch.
STEPS = 30


def batch_sums(rows: list[Any], factors: Factors) -> list[Sums]:
    """What U needs to know of the rows of a batch, for every view."""
    for s, view in enumerate(rows):
        w2 = factors.w[:, s] ** 2
        view.begin(factors.V[s], factors.consensus, w2, w2, NoPenalty(), True)
        view.sum(factors.V[s])
    return [view.sums for view in rows]


def batch_gaps(factors: Factors) -> Array:
    """‖V_s Q_s − V*‖² of every view."""
    pairs = zip(factors.U, factors.V, strict=True)
    gaps = [eq.consensus_gap(V, U.sum(axis=0), factors.consensus) for U, V in pairs]
    return np.array([float(gap) for gap in gaps])


def added(past: Sums, new: Sums) -> Sums:
    """Old sums, a little forgotten, and new ones."""
    return Sums(*(FORGET * old + part for old, part in zip(past, new, strict=True)))


def updated_basis(
    factors: Factors, sums: list[Sums], solver: Solver, p: float, rescale: bool
) -> tuple[Factors, list[Sums]]:
    """U after steps on the sums of all batches; V and the sums are brought to its scale."""
    pairs, scaled = [], []
    for s, (U, V, total) in enumerate(zip(factors.U, factors.V, sums, strict=True)):
        for _ in range(STEPS):
            U = solver.update_U(U, total, float(factors.alpha[s] ** p))
        if rescale and not solver.unit_sums:
            q = np.where(U.sum(axis=0) > 0, U.sum(axis=0), 1)
            U, V = eq.rescale(U, V)
            total = Sums(total.P * q, total.G * np.outer(q, q), total.vc * q, total.vv * q * q)
        pairs.append((U, V))
        scaled.append(total)
    Us, Vs = (tuple(side) for side in zip(*pairs, strict=True))
    return Factors(Us, Vs, factors.consensus, factors.alpha, factors.w), scaled


def reweighted(factors: Factors, gaps: Array, p: float) -> Factors:
    """α from the gaps of all batches, and the batch's consensus with it."""
    alpha = eq.view_weights(gaps, p)
    q = [U.sum(axis=0) for U in factors.U]
    V_star = eq.consensus(list(factors.V), q, alpha, p)
    return Factors(factors.U, factors.V, V_star, alpha, factors.w)


def batch_history(rows: list[Any], factors: Factors, p: float, number: int) -> dict[str, Array]:
    """The objective on a batch without its regulariser, in the form of a history of one line."""
    errors = [
        eq.reconstruction(view.all_residuals(U, V), factors.w[:, s])
        for s, (view, U, V) in enumerate(zip(rows, factors.U, factors.V, strict=True))
    ]
    none = [0.0] * len(rows)
    terms = eq.objective(errors, list(batch_gaps(factors)), factors.alpha, p, none, 0.0)
    line = {"round": number, "view": -1, "iteration": 0, **terms}
    return {name: np.array([value]) for name, value in line.items()}
