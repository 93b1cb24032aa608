"""Every term of the objective against the iteration."""

from __future__ import annotations

from typing import Any

from .cells import (
    Cell,
    Experiment,
    Options,
    Row,
    Tables,
)
from .data import load
from .rounds import Rounds

TERMS = ("reconstruction", "consensus", "regularizer", "objective")
#: Rounds × iterations per view and round. The paper's figure counts updates of everything once.
SCHEMES = {"recipe": (2, 30), "one at a time": (100, 1)}
RUNS = 3


def terms(dataset: str, scheme: str, seed: int, data: str = "") -> Tables:
    """Terms after every inner iteration (recipe), or after every round of one iteration per view."""
    known = load(dataset)
    n_rounds, inner = SCHEMES[scheme]
    fit = Rounds(known.views, known.n_clusters, seed)
    rows: list[Row] = []
    for round_, result in enumerate(fit.each(n_rounds, inner), start=1):
        history = result.history
        # Entry 0 is where the round before ended; a round's last entry follows the weights.
        entries = range(int(bool(rows)), len(history["round"])) if scheme == "recipe" else (-1,)
        for i in entries:
            view = int(history["view"][i])
            rows.append(
                {
                    "iteration": len(rows) if scheme == "recipe" else round_,
                    "round": round_,
                    "step": "weights" if view < 0 else list(known.views)[view],
                    **{term: float(history[term][i]) for term in TERMS},
                }
            )
    return {"": rows}


def cells(options: Options) -> list[Cell]:
    found = []
    for dataset, cost in (("digits", 1.5), ("synthetic", 6.0), ("lihc", 0.5)):
        if dataset == "lihc" and not options.lihc:
            continue
        for scheme in SCHEMES:
            for run, seed in options.seeds(1 if options.quick else RUNS):
                settings: dict[str, Any] = {"dataset": dataset, "scheme": scheme, "seed": seed}
                settings |= {"data": options.lihc} if dataset == "lihc" else {}
                labels = {"dataset": dataset, "scheme": scheme, "run": run, "seed": seed}
                found.append(Cell("convergence.terms", settings, labels, cost))
    return found


CONVERGENCE = Experiment(
    "convergence",
    "Convergence of every term of the objective",
    "WM-NMF with its defaults; 'recipe' is 2 rounds of 30 iterations per view, 'one at a time' 100 rounds "
    "of one iteration per view; at most 3 seeds.",
    cells,
)
