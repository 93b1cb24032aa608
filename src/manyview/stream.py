"""Fit batches over time (`partial_fit`): earlier batches are sums over their rows, with decreasing weight.

The step on U needs of the rows no more than P = XᵀW²V, G = VᵀW²V, Σv∘v* and Σv∘v. For a new batch
V, V* and w are found with U kept; its sums are added to those of earlier batches, times `FORGET` for
every batch since, and U takes steps on the total, as in online matrix factorization (Mairal et al.).
The rows of earlier batches are not fitted again to the new U: that is the approximation. Some rows of
every cluster are remembered as they were: new rows find their neighbors, and the names of the clusters,
among them. (Fitted again to the new U these rows told the clusters apart less well.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Factors, Matrix, Sums
from manyview.engines.numpy.rows import basis_update
from manyview.engines.numpy.sources import Scaled, is_streamed
from manyview.maths import equations as eq
from manyview.maths.solvers import Solver
from manyview.regularizers import NoPenalty

#: What the sums of earlier batches are multiplied by for every new one.
FORGET = 0.9
#: Steps on U per batch.
STEPS = 30
#: Rows remembered of every cluster. A batch replaces half of them, if it has as many of that cluster.
REMEMBERED = 200


def which_to_remember(new: Array, old: Array) -> tuple[Array, Array]:
    """Places in the batch and in memory, given their labels: a cluster the batch lacks stays whole."""
    from_new, from_old = [], []
    for cluster in np.union1d(new, old):
        came, known = np.flatnonzero(new == cluster), np.flatnonzero(old == cluster)
        n = min(len(came), max(REMEMBERED // 2, REMEMBERED - len(known)))
        from_new.append(_evenly(came, n))
        from_old.append(_evenly(known, min(len(known), REMEMBERED - n)))
    return np.concatenate(from_new), np.concatenate(from_old)


def _evenly(places: Array, n: int) -> Array:
    return places[np.arange(n) * len(places) // max(1, n)]


def chosen_views(Xs: list[Any], known: list[Any], chosen: tuple[Array, Array]) -> list[Matrix]:
    """The chosen rows of a batch, and those of the rows known before."""
    found = []
    for pair in zip(Xs, known, strict=True):
        parts = [
            X.take(rows) if isinstance(X, Scaled) or is_streamed(X) else X[rows]
            for X, rows in zip(pair, chosen, strict=True)
        ]
        if any(sp.issparse(part) for part in parts):
            found.append(sp.csr_array(sp.vstack(parts)))
        else:
            found.append(np.concatenate(parts))
    return found


def chosen_factors(
    new: Factors, old: Factors, scales: list[Array], chosen: tuple[Array, Array]
) -> Factors:
    """U and α of now, and of the chosen rows V (at the scale of this U), V* and w."""
    of_new, of_old = chosen
    V = tuple(
        np.concatenate([now[of_new], past[of_old] * q])
        for now, past, q in zip(new.V, old.V, scales, strict=True)
    )
    consensus = np.concatenate([new.consensus[of_new], old.consensus[of_old]])
    return Factors(new.U, V, consensus, new.alpha, np.concatenate([new.w[of_new], old.w[of_old]]))


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
) -> tuple[Factors, list[Sums], list[Array]]:
    """U after steps on the sums of all batches; V and the sums are brought to its scale, also given."""
    pairs, scaled, scales = [], [], []
    update_U = basis_update(solver)
    for s, (U, V, total) in enumerate(zip(factors.U, factors.V, sums, strict=True)):
        for _ in range(STEPS):
            U = update_U(U, total, float(factors.alpha[s] ** p))
        q = np.ones(U.shape[1], dtype=U.dtype)
        if rescale and not solver.unit_sums:
            q = np.where(U.sum(axis=0) > 0, U.sum(axis=0), 1)
            U, V = eq.rescale(U, V)
            total = Sums(total.P * q, total.G * np.outer(q, q), total.vc * q, total.vv * q * q)
        pairs.append((U, V))
        scaled.append(total)
        scales.append(q)
    Us, Vs = (tuple(side) for side in zip(*pairs, strict=True))
    return Factors(Us, Vs, factors.consensus, factors.alpha, factors.w), scaled, scales


def batch_history(rows: list[Any], factors: Factors, p: float, number: int) -> dict[str, Array]:
    """The objective on a batch without its regularizer, in the form of a history of one line."""
    errors = [
        eq.reconstruction(view.all_residuals(U, V), factors.w[:, s])
        for s, (view, U, V) in enumerate(zip(rows, factors.U, factors.V, strict=True))
    ]
    none = [0.0] * len(rows)
    terms = eq.objective(errors, list(batch_gaps(factors)), factors.alpha, p, none, 0.0)
    line = {"round": number, "view": -1, "iteration": 0, **terms}
    return {name: np.array([value]) for name, value in line.items()}
