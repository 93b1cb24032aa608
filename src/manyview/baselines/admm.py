"""The alternating directions of MLRSSC: one step of one view, and the loop over views.

Every view's samples are written by each other, Xᵀ ≈ Xᵀ A (X is N×M), by copies of A that are
low-rank (C1), sparse with empty diagonal (C2) and near the other views (C3); the multipliers L2, L3
and L4 make the copies agree, L1 makes the writing exact. Everything but X and L1 is N×N.

Where the writing is exact, the residuals at a large mu are of the size of rounding errors, and whether
the loop stops depends on them: the solve is the plain one, and singular values are thresholded by the
eigenvectors of MᵀM only where that is as precise as the SVD.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from manyview._types import Array, Matrix

#: Error of the short way to threshold singular values that is accepted, in units of rounding.
LOSS = 1000
RESIDUALS = ("low_rank", "sparse", "consensus", "change")


@dataclass(frozen=True)
class Penalties:
    """l1 of the low rank, l2 of the sparsity, l3 of the agreement between views."""

    low_rank: float
    sparse: float
    consensus: float


@dataclass(frozen=True)
class AdmmState:
    """Variables of one view; L1 (M×N) is ``None`` where noise is allowed for."""

    A: Array
    C1: Array
    C2: Array
    C3: Array
    L1: Array | None
    L2: Array
    L3: Array
    L4: Array


def zero_state(n_samples: int, n_features: int | None) -> AdmmState:
    n = n_samples
    zero = np.zeros((n, n))
    L1 = None if n_features is None else np.zeros((n_features, n))
    # One array serves all: states are never changed in place.
    return AdmmState(zero, zero, zero, zero, L1, zero, zero, zero)


def soft(M: Array, t: float) -> Array:
    """Entries drawn towards 0 by t."""
    return np.sign(M) * np.maximum(np.abs(M) - t, 0)


def soft_singular(M: Array, t: float, loss: float = LOSS) -> Array:
    """Singular values drawn towards 0 by t.

    With MᵀM = V s² Vᵀ this is M − M V min(1, t/s) Vᵀ, twice as fast as an SVD. It takes away what
    is small instead of adding up what is large, so that the error of s², eps·max s², harms only
    min(s, t): by at most eps·t·max s²/max(t, s)². Where that is not of the size of an SVD's own error,
    eps·max s times ``loss``, an SVD is taken.
    """
    if t == 0:
        return M
    gram = M.T @ M
    highest = math.sqrt(float(np.linalg.norm(gram)))  # at least the largest s
    if _all_above(gram, t, t * highest / loss):
        squares, V = np.linalg.eigh(gram)
        taken = t / np.sqrt(np.maximum(squares, t * t))
        return M - M @ ((V * taken) @ V.T)
    left, values, right = np.linalg.svd(M, full_matrices=False)
    rank = np.count_nonzero(values > t)
    return (left[:, :rank] * (values[:rank] - t)) @ right[:rank]


def _all_above(gram: Array, t: float, bound: float) -> bool:
    """Whether max(t, s)² ≥ bound for all eigenvalues s²: a Cholesky factor is much cheaper."""
    if t * t >= bound:
        return True
    try:
        np.linalg.cholesky(gram - bound * np.eye(len(gram)))
    except np.linalg.LinAlgError:
        return False
    return True


def step(
    K: Array,
    X: Matrix | None,
    state: AdmmState,
    target: Array,
    n_targets: int,
    mu: float,
    weights: Penalties,
) -> AdmmState:
    """One step of one view with kernel K (N×N).

    ``target`` is what C3 is drawn to: the sum of ``n_targets`` = n_v − 1 other views' C2, or one
    centroid. With X the writing is exact, without it noise is allowed for.::

        A  = (κK + 3μI)⁻¹ (κK + μ(C1+C2+C3) − L2 − L3 − L4 [+ X L1]),  κ = μ if exact, else 1
        C2 = soft(A + L2/μ, l2/μ) off the diagonal,   C1 = soft_singular(A + L3/μ, l1/μ)
        C3 = (2 l3 target + μA + L4)/(2 l3 n_targets + μ)
        L1 += μ(Xᵀ − XᵀA),  L2, L3, L4 += μ(A − C2), μ(A − C1), μ(A − C3)
    """
    L1 = state.L1
    system = K.copy() if L1 is None else mu * K
    right = system + mu * (state.C1 + state.C2 + state.C3) - state.L2 - state.L3 - state.L4
    if X is not None and L1 is not None:
        right += X @ L1
    system[np.diag_indices_from(system)] += 3 * mu
    A = np.linalg.solve(system, right)
    del system, right
    C2 = soft(A + state.L2 / mu, weights.sparse / mu)
    np.fill_diagonal(C2, 0)
    C1 = soft_singular(A + state.L3 / mu, weights.low_rank / mu)
    pull = 2 * weights.consensus
    C3 = (pull * target + mu * A + state.L4) / (pull * n_targets + mu)
    if X is not None and L1 is not None:
        L1 = L1 + mu * (X.T - X.T @ A)
    return AdmmState(
        A,
        C1,
        C2,
        C3,
        L1,
        state.L2 + mu * (A - C2),
        state.L3 + mu * (A - C1),
        state.L4 + mu * (A - C3),
    )


def residuals(new: AdmmState, old: AdmmState) -> tuple[float, ...]:
    """Largest entries of A − C1, A − C2, A − C3 and of the change of A."""
    others = (new.C1, new.C2, new.C3, old.A)
    return tuple(float(np.abs(new.A - other).max()) for other in others)


@dataclass(frozen=True)
class Outcome:
    """Joint representation C (N×N), residuals per iteration, and whether all fell below thr."""

    C: Array
    history: dict[str, Array]
    converged: bool


def solve(
    Ks: list[Array],
    Xs: list[Matrix | None],
    weights: Penalties,
    *,
    centroid: bool,
    mu: float,
    rho: float,
    mu_max: float,
    thr: float,
    max_iter: int,
    accumulate: bool = False,
    report: Callable[[int, float, tuple[float, ...]], None] | None = None,
) -> Outcome:
    """All views in turn until their residuals are at most ``thr``; mu grows by rho, to mu_max.

    Pairwise, views use the C2 the others had when the iteration began, and C is the mean C2.
    With ``centroid`` they use C*, the mean C2, which is also C. ``accumulate`` adds to C* as
    the published program does, C* ← C*/(n_v l3) + mean, instead of starting it anew.
    """
    n, n_views = len(Ks[0]), len(Ks)
    states = [zero_state(n, None if X is None else X.shape[1]) for X in Xs]
    center: Array = np.zeros((n, n))
    rows: list[tuple[float, ...]] = []
    converged = False
    for iteration in range(1, max_iter + 1):
        total = None if centroid else _sum_C2(states)
        worst: tuple[float, ...] = (0.0,) * len(RESIDUALS)
        for v in range(n_views):
            old = states[v]
            target, count = (center, 1) if total is None else (total - old.C2, n_views - 1)
            states[v] = step(Ks[v], Xs[v], old, target, count, mu, weights)
            worst = tuple(max(p) for p in zip(worst, residuals(states[v], old), strict=True))
        if centroid:
            carried = center / (n_views * weights.consensus) if accumulate else np.zeros(1)
            center = carried + _sum_C2(states) / n_views
        rows.append((mu, *worst))
        if report is not None:
            report(iteration, mu, worst)
        mu = min(rho * mu, mu_max)
        if max(worst) <= thr:
            converged = True
            break
    C = center if centroid else _sum_C2(states) / n_views
    columns = np.array(rows).T
    history = dict(zip(("mu", *RESIDUALS), columns, strict=True))
    return Outcome(C, {"iteration": np.arange(1, len(rows) + 1)} | history, converged)


def _sum_C2(states: list[AdmmState]) -> Array:
    return reduce(np.add, [state.C2 for state in states])
