"""What an iteration costs: seconds, also in plain NumPy with a dense graph, and operations (Appendix D)."""

from __future__ import annotations

import time
import warnings
from functools import lru_cache
from typing import Any

import numpy as np

from manyview._types import Array
from manyview.base import generator
from manyview.datasets import make_synthetic
from manyview.engines.affinity import affinity
from manyview.initialize import starting_factors
from manyview.labels import assign
from manyview.maths.solvers import Multiplicative
from manyview.nonnegative import fit_nonnegative
from manyview.regularizers import Graph
from manyview.views.views import as_views
from manyview.wmnmf import WMNMF, Loop

#: The estimator's defaults.
P, BETA, INNER, ROUNDS, NEIGHBORS = 5.0, 0.01, 30, 2, 5
FEATURES, CLUSTERS = 100, 10
#: Fits, or iterations of plain NumPy, of which the reader sees the median.
REPEATS = 3
KINDS = ("additions", "multiplications", "divisions")

Tables = dict[str, list[dict[str, Any]]]


def scaled(views: Any) -> list[Any]:
    """The matrices that the estimator factorizes."""
    data = as_views(views, allow_negative=False, caller="reproduce")
    pairs = zip(data.matrices, fit_nonnegative(data, "sum"), strict=True)
    return [scaling.apply(X.astype(np.float64)) for X, scaling in pairs]


def _data(n_samples: int, n_views: int, n_features: int) -> list[Any]:
    made = make_synthetic(n_samples, CLUSTERS, n_features, (), n_views=n_views, random_state=0)
    return scaled(made.views)


@lru_cache(maxsize=1)
def warm_up() -> None:
    """A small fit, once per process, so that no cell pays for loading or compiling anything."""
    with warnings.catch_warnings(action="ignore"):
        WMNMF(2, random_state=0).fit([*np.random.default_rng(0).random((2, 60, 8))])


class _Clock:
    """CPU seconds of this one-threaded process, which other programs on the machine do not lengthen."""

    def __init__(self) -> None:
        self.since = time.process_time()

    def lap(self) -> float:
        before, self.since = self.since, time.process_time()
        return self.since - before


def ours(n_samples: int, n_views: int, n_features: int, seed: int) -> Tables:
    """Seconds of the four parts of a fit with the defaults, in a process that has fitted before."""
    warm_up()
    Xs = _data(n_samples, n_views, n_features)
    rng, solver, clock = generator(seed), Multiplicative(), _Clock()
    terms: list[Any] = [Graph().prepare(X) for X in Xs]
    parts = {"graph": clock.lap()}
    start = starting_factors(Xs, "gnmf", CLUSTERS, terms, solver, P, rng)
    parts["start"] = clock.lap()
    fit = Loop(Xs, terms, solver, P, BETA, ROUNDS, INNER).run(start)
    parts["loop"] = clock.lap()
    assign(fit.factors.consensus, CLUSTERS, "spectral", rng)
    parts["labels"] = clock.lap()
    return {"": [{f"seconds_{name}": value for name, value in parts.items()}]}


def numpy(n_samples: int, n_views: int, n_features: int, seed: int) -> Tables:
    """Seconds of the loop in plain NumPy: for each view the median iteration, times all of a fit.

    From a random start: the values do not change what an iteration costs.
    """
    Xs = _data(n_samples, n_views, n_features)
    terms: list[Any] = [Graph().prepare(X) for X in Xs]
    start = starting_factors(Xs, "random", CLUSTERS, terms, Multiplicative(), P, generator(seed))
    seconds = 0.0
    for s, X in enumerate(Xs):
        A = terms[s].A.toarray()
        degrees = A.sum(axis=1)
        a = float(start.alpha[s] ** P)
        U, V = start.U[s], start.V[s]
        laps = []
        for _ in range(1 + REPEATS):  # the first is not counted: it meets all memory the first time
            clock = _Clock()
            U, V = plain_iteration(X, U, V, A, degrees, start.consensus, start.w[:, s], a, BETA)
            laps.append(clock.lap())
        seconds += float(np.median(laps[1:])) * ROUNDS * INNER
        assert np.isfinite(V).all()
        del A
    return {"": [{"seconds_loop": seconds}]}


def plain_iteration(
    X: Array, U: Array, V: Array, A: Array, d: Array, V_star: Array, w: Array, a: float, beta: float
) -> tuple[Array, Array]:
    """The paper's update of U, then of V: A dense (N×N), d its row sums, w the view's weights."""
    w2 = (w**2)[:, None]
    q = U.sum(axis=0)
    U = U * (
        (X.T @ (w2 * V) + a * (V * V_star).sum(axis=0))
        / np.maximum(U @ (V.T @ (w2 * V)) + a * q * (V * V).sum(axis=0), 1e-300)
    )
    q = U.sum(axis=0)
    V = V * (
        (w2 * (X @ U) + a * V_star * q + beta * (A @ V))
        / np.maximum(w2 * (V @ (U.T @ U)) + a * V * q**2 + beta * d[:, None] * V, 1e-300)
    )
    return U, V


def of_U(n: int, m: int, k: int) -> tuple[int, int, int]:
    """Additions, multiplications and divisions of the update of U.

    U ∘ [XᵀW²V + a·Σ(V∘V*)] / [U(VᵀW²V) + a·q∘Σ(V∘V)], from the left to the right.
    """
    squares, weighted = n, n * k  # w², and W²V once for each of the two products it is in
    product = (m * (n - 1) * k, m * n * k)
    gram = ((n - 1) * k * k, n * k * k)
    back = (m * k * (k - 1), m * k * k)
    pulls = 2 * (n - 1) * k, 2 * n * k + 3 * k
    sums = (m - 1) * k + 2 * m * k  # q, and the two sums of matrices
    additions = product[0] + gram[0] + back[0] + pulls[0] + sums
    last = m * k  # U times the ratio
    multiplications = squares + 2 * weighted + product[1] + gram[1] + back[1] + pulls[1] + last
    return additions, multiplications, m * k


def of_V(n: int, m: int, k: int, edges: int) -> tuple[int, int, int]:
    """The same of the update of V, with a graph of ``n_edges`` entries, whose row sums are known.

    V ∘ [W²XU + a·V*Q + β·AV] / [W²V(UᵀU) + a·VQ² + β·DV]; a dense graph has n² entries.
    """
    product = (n * (m - 1) * k, n * m * k)
    gram = ((m - 1) * k * k, m * k * k)
    back = (n * k * (k - 1), n * k * k)
    graph = ((edges - n) * k, edges * k)
    sums = (m - 1) * k + 4 * n * k  # q, and the four sums of matrices
    additions = product[0] + gram[0] + back[0] + graph[0] + sums
    # W² twice, a and q in both, β twice, the row sums, the ratio; q² and βd once.
    others = 2 * n * k + 4 * n * k + n * k + n * k + n * k + k + n
    return additions, product[1] + gram[1] + back[1] + graph[1] + others, n * k


def counts(views: Any) -> Tables:
    """Multiplications of each view: the paper's leading terms, and all of ours, counted."""
    rows, K = [], CLUSTERS
    for name, X in zip(views, scaled(views), strict=True):
        nnz = int(affinity(X, NEIGHBORS, "binary", None).nnz)
        n, m = X.shape
        row = {"view": name, "N": n, "M": m, "K": K, "nnz": nnz}
        row |= {"U_paper": 3 * m * n * K, "U_ours": of_U(n, m, K)[1]}
        row |= {"V_paper": 3 * m * n * K + n * n * K, "V_ours": of_V(n, m, K, nnz)[1]}
        rows.append(row | {"V_dense": of_V(n, m, K, n * n)[1]})
    return {"": rows}
