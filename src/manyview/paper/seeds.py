"""Why some runs fail: clusters read from the same consensus in several ways, and the parts of its graph."""

from __future__ import annotations

import numpy as np

from manyview.engines.affinity import affinity
from manyview.labels import n_neighbors
from manyview.maths.spectrum import part_sizes
from manyview.metrics import scores

from .cells import (
    Cell,
    Experiment,
    Options,
    Tables,
)
from .data import load
from .fitting import SECONDS
from .rounds import Rounds

#: How clusters are read from V*: the estimator's ``assign_labels`` and ``connect``.
READINGS = {
    "spectral": ("spectral", False),
    "njw": ("njw", False),
    "spectral, connected": ("spectral", True),
    "njw, connected": ("njw", True),
}
ROUNDS = 2


def readings(dataset: str, seed: int) -> Tables:
    """The scores of every reading of one fit, and into which parts the graph of its V* falls."""
    known = load(dataset)
    fit = Rounds(known.views, known.n_clusters, seed)
    *_, last = fit.each(ROUNDS)
    V = last.factors.consensus
    sizes = part_sizes(affinity(V, n_neighbors(len(V)), "binary"))
    parts = {"parts": round(float((1 / sizes).sum())), "smallest_part": int(np.min(sizes))}
    return {
        "": [
            {"reading": name, **scores(known.labels, fit.labels(last.factors, *how)), **parts}
            for name, how in READINGS.items()
        ]
    }


def cells(options: Options) -> list[Cell]:
    return [
        Cell(
            "seeds.readings",
            {"dataset": "digits", "seed": seed},
            {"dataset": "digits", "run": run, "seed": seed},
            2 * SECONDS["WM-NMF"][0],
        )
        for run, seed in options.pooled()
    ]


SEEDS = Experiment(
    "seeds",
    "WM-NMF from seed to seed",
    "WM-NMF on the digits with four times the seeds of the other methods: the runs of the tables, and "
    "three other ways to read clusters from the same consensus V*: spectral clustering with unit rows "
    "(njw), and both with the small parts of V*'s neighbour graph connected to the rest. A part is small "
    "with fewer observations than a quarter of an average cluster.",
    cells,
)
