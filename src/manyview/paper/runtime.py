"""Seconds against the number of observations and of views, beside plain NumPy with a dense graph."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from manyview._types import Array
from manyview.base import generator
from manyview.datasets import make_synthetic
from manyview.initialize import starting_factors
from manyview.labels import assign
from manyview.maths.solvers import Multiplicative
from manyview.regularizers import Graph
from manyview.scaling import fit_scaling
from manyview.views.views import as_views
from manyview.wmnmf import WMNMF, Problem, Settings, run

from .cells import (
    ALONE,
    Cell,
    Experiment,
    Options,
    Tables,
)
from .rounds import BETA, INNER, P

N_SAMPLES = (3000, 5000, 7000, 9000, 11000)
N_VIEWS = (2, 3, 4, 5, 6)
#: What stays while the other varies.
DEFAULT_N, DEFAULT_VIEWS = 5000, 4
FEATURES, CLUSTERS, ROUNDS = 100, 10, 2
#: Fits, or iterations of plain NumPy, of which the reader sees the median.
REPEATS = 3


def _data(n_samples: int, n_views: int, n_features: int) -> list[Any]:
    made = make_synthetic(n_samples, CLUSTERS, n_features, (), n_views=n_views, random_state=0)
    data = as_views(made.views, allow_negative=False, caller="reproduce")
    pairs = zip(data.matrices, fit_scaling(data, "sum"), strict=True)
    return [scaling.apply(X) for X, scaling in pairs]


@lru_cache(maxsize=1)
def warm_up() -> None:
    """A small fit, once per process, so that no cell pays for loading or compiling anything."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
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
    fit = run(Problem(Xs, terms, solver), start, Settings(P, BETA, ROUNDS, INNER))
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


def cells(options: Options) -> list[Cell]:
    # Repeats only smooth out the machine: three say as much as twenty, and fewer say little.
    repeats = replace(options, replications=REPEATS).seeds()
    step = 2 if options.quick else 1  # for a first look every second point, the ends among them
    grid = [("N", n, (n, DEFAULT_VIEWS)) for n in N_SAMPLES[::step]]
    grid += [("n_v", n, (DEFAULT_N, n)) for n in N_VIEWS[::step]]
    found = []
    for axis, value, (n, n_views) in grid:
        for method, task in (("manyview", "ours"), ("plain NumPy", "numpy")):
            for run_, seed in repeats if task == "ours" else repeats[:1]:
                labels = {"axis": axis, "value": value, "method": method, "run": run_, "seed": seed}
                settings = {"n_samples": n, "n_views": n_views, "n_features": FEATURES}
                settings |= {"seed": seed}
                cost = n_views * n / 5000 * (0.5 if task == "ours" else 0.5 * n / 5000)
                found.append(Cell(f"runtime.{task}", settings, labels, cost, phase=ALONE))
    return found


RUNTIME = Experiment(
    "runtime",
    "Running time against observations and views",
    "Synthetic views of 100 features, K=10; N=5000 or 4 views where the other varies; CPU seconds of one "
    "thread, one process at a time. manyview: the whole fit and its parts, 3 times, in a process that has "
    "made a small fit before. Plain NumPy: the paper's formulas with a dense graph, the loop only: the "
    "median of 3 iterations after one that is not counted, times the 60 of a fit. With fewer than 10 "
    "replications, every second point.",
    cells,
)
