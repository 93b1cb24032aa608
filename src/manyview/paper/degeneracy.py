"""What is wrong with the objective: more rounds collapse the view weights, and scale escapes."""

from __future__ import annotations

import numpy as np

from manyview._types import Factors
from manyview.engines.numpy.rows import Rows
from manyview.maths import equations as eq
from manyview.maths.solvers import Multiplicative
from manyview.metrics import scores

from .cells import (
    Cell,
    Experiment,
    Options,
    Row,
    Tables,
)
from .data import load
from .rounds import BETA, P, Rounds

ROUNDS = 20
RUNS = 5
#: (tU, V/t) for these t.
SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


def collapse(dataset: str, seed: int) -> Tables:
    """α, scores and objective after every round of the recipe."""
    known = load(dataset)
    fit = Rounds(known.views, known.n_clusters, seed)
    rows: list[Row] = []
    weights: list[Row] = []
    for round_, result in enumerate(fit.each(ROUNDS), start=1):
        alpha = result.factors.alpha.tolist()
        found = scores(known.labels, fit.labels(result.factors))
        objective = float(result.history["objective"][-1])
        rows.append({"round": round_, **found, "objective": objective, "max_alpha": max(alpha)})
        weights += [
            {"round": round_, "view": view, "alpha": a}
            for view, a in zip(known.views, alpha, strict=True)
        ]
    return {"": rows, "weights": weights}


def escape(dataset: str, seed: int) -> Tables:
    """Without rescaling: the sizes of U and V by round; and O at (tU, V/t) for a fitted U, V."""
    known = load(dataset)
    fit = Rounds(known.views, known.n_clusters, seed)
    rows: list[Row] = []
    for rescale in (True, False):
        for round_, result in enumerate(fit.each(ROUNDS, rescale=rescale), start=1):
            U, V = result.factors.U, result.factors.V
            terms = {name: float(result.history[name][-1]) for name in ("regularizer", "objective")}
            rows.append(
                {
                    "rescale": rescale,
                    "round": round_,
                    "column_sum_of_U": float(np.mean([Us.sum(axis=0).mean() for Us in U])),
                    "size_of_V": float(np.mean([Vs.mean() for Vs in V])),
                    **terms,
                }
            )
    *_, last = fit.each(2)
    return {"sizes": rows, "scales": [_at(fit, last.factors, t) for t in SCALES]}


def _at(fit: Rounds, factors: Factors, t: float) -> Row:
    """Every term of O computed anew at (tU, V/t)."""
    U, V = [t * Us for Us in factors.U], [Vs / t for Vs in factors.V]
    errors = np.array(
        [
            eq.reconstruction(Rows(X, Multiplicative()).all_residuals(U[s], V[s]), factors.w[:, s])
            for s, X in enumerate(fit.Xs)
        ]
    )
    gaps = np.array(
        [
            eq.consensus_gap(Vs, Us.sum(axis=0), factors.consensus)
            for Us, Vs in zip(U, V, strict=True)
        ]
    )
    penalties = np.array([g.value(Vs) for g, Vs in zip(fit.terms, V, strict=True)])
    return {"t": t, **eq.objective(errors, gaps, factors.alpha, P, penalties, BETA)}


def cells(options: Options) -> list[Cell]:
    return [
        Cell(
            f"degeneracy.{task}",
            {"dataset": "digits", "seed": seed},
            {"dataset": "digits", "run": run, "seed": seed},
            cost,
        )
        for task, cost in (("collapse", 11.0), ("escape", 18.0))
        for run, seed in options.seeds(1 if task == "escape" else 2 if options.quick else RUNS)
    ]


DEGENERACY = Experiment(
    "degeneracy",
    "Two weaknesses of the objective",
    "WM-NMF on the digits: 20 rounds of 30 iterations per view, scores and α after each (at most 5 seeds); "
    "the same without rescaling U; and the objective at (tU, V/t) for the factors after 2 rounds (1 seed).",
    cells,
)
