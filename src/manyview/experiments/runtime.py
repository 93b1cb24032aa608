"""Seconds against the number of observations and of views, beside plain NumPy with a dense graph."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..assign import assign
from ..base import generator
from ..datasets import make_synthetic
from ..fit import run
from ..initialize import starting_factors
from ..regularizers import Graph
from ..scaling import fit_scaling
from ..solvers import Multiplicative
from ..views import as_views
from . import plain
from .cells import ALONE, Cell, Experiment, Options, Tables
from .rounds import BETA, INNER, P

N_SAMPLES = (3000, 5000, 7000, 9000, 11000)
N_VIEWS = (2, 3, 4, 5, 6)
#: What stays while the other varies.
DEFAULT_N, DEFAULT_VIEWS = 5000, 4
FEATURES, CLUSTERS, ROUNDS = 100, 10, 2
#: Iterations of plain NumPy that are timed, of the 60 a fit does.
TIMED = 4


def _data(n_samples: int, n_views: int) -> list[Any]:
    made = make_synthetic(n_samples, CLUSTERS, FEATURES, (), n_views=n_views, random_state=0)
    data = as_views(made.views, allow_negative=False, caller="reproduce")
    pairs = zip(data.matrices, fit_scaling(data, "sum"), strict=True)
    return [scaling.apply(X) for X, scaling in pairs]


class _Clock:
    """CPU seconds of this one-threaded process, which other programs on the machine do not lengthen."""

    def __init__(self) -> None:
        self.since = time.process_time()

    def lap(self) -> float:
        before, self.since = self.since, time.process_time()
        return self.since - before


def ours(n_samples: int, n_views: int, seed: int) -> Tables:
    """Seconds of the four parts of a fit with the defaults."""
    Xs = _data(n_samples, n_views)
    rng, solver, clock = generator(seed), Multiplicative(), _Clock()
    terms: list[Any] = [Graph().prepare(X) for X in Xs]
    parts = {"graph": clock.lap()}
    start = starting_factors(Xs, "gnmf", CLUSTERS, terms, solver, P, rng)
    parts["start"] = clock.lap()
    fit = run(Xs, start, terms, solver, p=P, beta=BETA, max_iter=ROUNDS, inner_iter=INNER)
    parts["loop"] = clock.lap()
    assign(fit.factors.consensus, CLUSTERS, "spectral", rng)
    parts["labels"] = clock.lap()
    return {"": [{f"seconds_{name}": value for name, value in parts.items()}]}


def numpy(n_samples: int, n_views: int, seed: int) -> Tables:
    """Seconds of the loop in plain NumPy, from the same start: a few iterations, scaled to all."""
    Xs = _data(n_samples, n_views)
    terms: list[Any] = [Graph().prepare(X) for X in Xs]
    start = starting_factors(Xs, "gnmf", CLUSTERS, terms, Multiplicative(), P, generator(seed))
    seconds = 0.0
    for s, X in enumerate(Xs):
        A = terms[s].A.toarray()
        degrees = A.sum(axis=1)
        U, V = start.U[s], start.V[s]
        clock = _Clock()
        for _ in range(TIMED):
            a = float(start.alpha[s] ** P)
            U, V = plain.iterate(X, U, V, A, degrees, start.consensus, start.w[:, s], a, BETA)
        seconds += clock.lap() * ROUNDS * INNER / TIMED
        assert np.isfinite(V).all()
        del A
    return {"": [{"seconds_loop": seconds}]}


def cells(options: Options) -> list[Cell]:
    # Repeats only smooth out the machine: three say as much as twenty.
    repeats = options.seeds(1 if options.quick else 3)
    grid = [("N", n, (n, DEFAULT_VIEWS)) for n in N_SAMPLES]
    grid += [("n_v", n, (DEFAULT_N, n)) for n in N_VIEWS]
    found = []
    for axis, value, (n, n_views) in grid:
        for method, task in (("manyview", "ours"), ("plain NumPy", "numpy")):
            for run_, seed in repeats if task == "ours" else repeats[:1]:
                labels = {"axis": axis, "value": value, "method": method, "run": run_, "seed": seed}
                settings = {"n_samples": n, "n_views": n_views, "seed": seed}
                cost = n_views * n / 5000 * (0.8 if task == "ours" else 1.0 * n / 5000)
                found.append(Cell(f"runtime.{task}", settings, labels, cost, phase=ALONE))
    return found


RUNTIME = Experiment(
    "runtime",
    "Running time against observations and views",
    "Synthetic views of 100 features, K=10; N=5000 or 4 views where the other varies; CPU seconds of one "
    "thread, one process at a time. manyview: the whole fit and its parts. Plain NumPy: the paper's "
    "formulas with a dense graph, the loop only, 4 iterations timed and scaled to the 60 of a fit.",
    cells,
)
