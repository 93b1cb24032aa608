"""How many parts a nonnegative factorisation of a view needs: four classical criteria.

They answer for the *rank*, which equals the number of clusters only where every cluster has one
part of its own. Each is computed on random blocks of a view (so its cost does not grow with N), on
a path of factorisations: rank K starts from rank K−1 and what that leaves unexplained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd

from manyview._types import Array
from manyview.engines.numpy.distances import Geometry
from manyview.maths.equations import nonnegative_half
from manyview.maths.solvers import coordinate_sweep

#: Largest block of a view that is factorised; sweeps of coordinate descent at every rank.
ROWS, COLUMNS, SWEEPS = 300, 150, 15
#: Groups of rows and columns in bi-cross-validation; share of entries hidden for imputation.
GROUPS, HIDDEN = 3, 0.1
#: Block, observed entries, growing ranks, randomness → one value per rank, lower is better.
Criterion = Callable[[Array, Array, list[int], np.random.Generator], Array]


def rank_curves(
    views: list[Geometry],
    alpha: Array,
    ranks: list[int],
    method: str,
    n_runs: int,
    rng: np.random.Generator,
) -> Array:
    """The criterion (lower is better), runs × ranks, α-weighted mean over views."""
    criterion = {"bicv": bicv, "imputation": imputation, "mdl": mdl, "sure": sure}[method]
    total, weight = np.zeros((n_runs, len(ranks))), 0.0
    for a, view in zip(alpha, views, strict=True):
        if a <= 1e-3 or largest_rank(view) < 2:
            continue
        total += a * np.array([_one(view, criterion, ranks, rng) for _ in range(n_runs)])
        weight += a
    return total / weight if weight else np.full_like(total, np.nan)


def largest_rank(view: Geometry) -> int:
    """What the smallest block of bi-cross-validation can hold."""
    return min(int(view.present.sum()), view.n_features, ROWS, COLUMNS) * (GROUPS - 1) // GROUPS


def _one(view: Geometry, criterion: Criterion, ranks: list[int], rng: np.random.Generator) -> Array:
    X, observed = block(view, rng)
    limit = largest_rank(view)
    known = sorted({min(K, limit) for K in ranks})
    # Beyond what the block can hold a higher rank changes nothing.
    found = dict(zip(known, criterion(X, observed, known, rng), strict=True))
    return np.array([found[min(K, limit)] for K in ranks])


def block(view: Geometry, rng: np.random.Generator) -> tuple[Array, Array]:
    """Random rows and columns of the scaled view with unit variance, and which entries are observed.

    Unobserved entries hold their feature's mean; negative ones (signed counts) are cut at 0.
    """
    rows = np.sort(rng.permutation(np.flatnonzero(view.present))[:ROWS])
    columns = np.sort(rng.permutation(view.n_features)[:COLUMNS])
    X = view.Z[rows]
    X = X.tocsc()[:, columns].toarray() if sp.issparse(X) else X[:, columns]
    known = np.ones(X.shape, bool)
    if view.observed is not None:
        known = view.observed[rows][:, columns]
        mean = np.where(known, X, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        X = np.where(known, X, mean)
    X = np.maximum(X, 0)
    return X / max(float(np.sqrt(X.var(axis=0).mean())), 1e-12), known


# --- nonnegative factorisations of growing rank ------------------------------------------------


def nmf_path(
    X: Array, ranks: list[int], rng: np.random.Generator, observed: Array | None = None
) -> Iterator[tuple[Array, Array]]:
    """V, U with X ≈ VUᵀ for each of the growing ranks; entries not observed are refilled by VUᵀ."""
    V, U = np.zeros((X.shape[0], 0)), np.zeros((X.shape[1], 0))
    for K in ranks:
        filled = X if observed is None else np.where(observed, X, V @ U.T)
        more_V, more_U = positive_parts(filled - V @ U.T, K - V.shape[1], rng)
        V, U = np.hstack([V, more_V]), np.hstack([U, more_U])
        V, U = descend(X, V, U, SWEEPS, observed)
        yield V, U


def descend(
    X: Array, V: Array, U: Array, sweeps: int, observed: Array | None = None
) -> tuple[Array, Array]:
    V, U = V.copy(), U.copy()
    for _ in range(sweeps):
        filled = X if observed is None else np.where(observed, X, V @ U.T)
        coordinate_sweep(V, filled @ U, U.T @ U)
        coordinate_sweep(U, filled.T @ V, V.T @ V)
    return V, U


def solve(X: Array, U: Array, sweeps: int = 25) -> Array:
    """V ≥ 0 with X ≈ VUᵀ for given U."""
    V = np.full((X.shape[0], U.shape[1]), X.mean() / max(U.sum(axis=1).mean(), 1e-12))
    XU, H = X @ U, U.T @ U
    for _ in range(sweeps):
        coordinate_sweep(V, XU, H)
    return V


def positive_parts(R: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The larger nonnegative half of the leading singular pairs of R (as in NNDSVD), never quite 0."""
    left, values, right = randomized_svd(R, count, random_state=int(rng.integers(2**31)))
    V, U = np.empty((R.shape[0], count)), np.empty((R.shape[1], count))
    for k in range(count):
        v, u = nonnegative_half(left[:, k], right[k])
        root = np.sqrt(values[k])
        V[:, k], U[:, k] = root * v + 1e-3 * root, root * u + 1e-3 * root
    return V, U


# --- the four criteria -------------------------------------------------------------------------


def bicv(X: Array, observed: Array, ranks: list[int], rng: np.random.Generator) -> Array:
    """Bi-cross-validation (Owen & Perry 2009): mean squared error on left-out blocks.

    With X = [[A, B], [C, D]] and D ≈ V Uᵀ: rows B ≈ V_B Uᵀ and columns C ≈ V U_Cᵀ by nonnegative
    least squares, Â = V_B U_Cᵀ. Rows and columns are dealt into 3 groups each; the blocks on the
    diagonal are left out in turn.
    """
    rows = rng.permutation(X.shape[0]) % GROUPS
    columns = rng.permutation(X.shape[1]) % GROUPS
    errors, count = np.zeros(len(ranks)), 0
    for g in range(GROUPS):
        i, j = rows == g, columns == g
        if not j.any():
            continue
        A, known = X[i][:, j], observed[i][:, j]
        for r, (V, U) in enumerate(nmf_path(X[~i][:, ~j], ranks, rng)):
            predicted = solve(X[i][:, ~j], U) @ solve(X[~i][:, j].T, V).T
            errors[r] += ((A - predicted) ** 2)[known].sum()
        count += int(known.sum())
    return errors / max(count, 1)


def imputation(X: Array, observed: Array, ranks: list[int], rng: np.random.Generator) -> Array:
    """Mean squared error on a tenth of the entries, hidden from the factorisation."""
    hidden = (rng.random(X.shape) < HIDDEN) & observed
    seen = observed & ~hidden
    mean = np.where(seen, X, 0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    X_seen = np.where(seen, X, mean)
    path = nmf_path(X_seen, ranks, rng, seen)
    return np.array([((X - V @ U.T) ** 2)[hidden].mean() for V, U in path])


def mdl(X: Array, observed: Array, ranks: list[int], rng: np.random.Generator) -> Array:
    """Bits per entry to write down the residual and both factors (after Squires et al. 2017).

    v_ik is rounded to steps of √12 σ/‖u_k‖, the coarsest that add no more than σ² to its row's
    error, and u_mk likewise; both are written as rounded exponential variables of their column's
    mean, which takes H bits; residuals as a Gaussian of variance σ², rounding included::

        (NM/2) log₂(2πe σ²(1 + K/N + K/M)) + Σ_ik H(v̄_k ‖u_k‖/(√12 σ)) + Σ_mk H(ū_k ‖v_k‖/(√12 σ))

    H(a) = [−q log₂ q − (1−q) log₂(1−q)]/q with q = 1 − exp(−1/a). The precision of the data is a
    constant and left out.
    """
    bits = []
    for V, U in nmf_path(X, ranks, rng):
        # A floor, for data that some rank explains exactly: no precision is infinite.
        sigma = max(float(np.sqrt(((X - V @ U.T) ** 2).mean())), 1e-4)
        rounding = 1 + U.shape[1] / len(U) + V.shape[1] / len(V)
        total = X.size * np.log2(2 * np.pi * np.e * sigma**2 * rounding) / 2
        for one, other in ((V, U), (U, V)):
            steps = one.mean(axis=0) * np.linalg.norm(other, axis=0) / (np.sqrt(12) * sigma)
            total += len(one) * _geometric_bits(steps).sum()
        bits.append(total / X.size)
    return np.array(bits)


def _geometric_bits(mean: Array) -> Array:
    """Entropy of an exponential variable of this mean, rounded down to whole numbers."""
    q = np.clip(-np.expm1(-1 / np.maximum(mean, 1e-3)), 1e-12, 1 - 1e-12)
    return -(q * np.log2(q) + (1 - q) * np.log2(1 - q)) / q


def sure(X: Array, observed: Array, ranks: list[int], rng: np.random.Generator) -> Array:
    """Stein's unbiased estimate of the risk of X̂, per entry (Ulfarsson & Solo 2013)::

        ‖X − X̂‖² − NMσ² + 2σ² div X̂,    div X̂ ≈ ⟨b, X̂(X + εb) − X̂(X)⟩/ε, b random signs

    σ² is what a singular value decomposition of a generous rank leaves, in units of what it leaves
    of pure noise of that size (which loses more than its degrees of freedom). Both fits of the
    divergence go on equally long from the same factors.
    """
    generous = min(2 * max(ranks), min(X.shape) // 2)
    left, noise = (
        float((np.linalg.svd(matrix, compute_uv=False)[generous:] ** 2).sum())
        for matrix in (X, rng.standard_normal(X.shape))
    )
    variance = left / noise
    sign = rng.choice([-1.0, 1.0], X.shape)
    step = 0.1 * max(np.sqrt(variance), 1e-6)
    risks = []
    for V, U in nmf_path(X, ranks, rng):
        plain, moved = (
            np.matmul(v, u.T)
            for v, u in (descend(X, V, U, 2 * SWEEPS), descend(X + step * sign, V, U, 2 * SWEEPS))
        )
        divergence = float((sign * (moved - plain)).sum()) / step
        risks.append(((X - plain) ** 2).sum() + 2 * variance * divergence - X.size * variance)
    return np.array(risks) / X.size
