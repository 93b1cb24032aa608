"""Whether the communities of the fused graph come back in parts of it, beyond those of clouds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from manyview._types import Array
from manyview.methods.communities import communities
from manyview.methods.resampling import pairwise_ari, resamples

from .graph import FRACTION, REFERENCE_RUNS

#: Runs of the algorithm in every part of the graph.
PART_TRIALS = 2


@dataclass(frozen=True)
class Groups:
    """How many communities there are, and how well they come back in the graph and in the clouds."""

    count: int
    ari: float
    error: float
    reference_ari: float

    @property
    def score(self) -> float:
        """As the score of "stability": 0 as reproducible as in a cloud without clusters, 1 perfectly."""
        return (self.ari - self.reference_ari) / max(1 - self.reference_ari, 0.05)


def reproduced(
    graph: sp.csr_array,
    references: list[sp.csr_array],
    resolution: float,
    n_runs: int,
    rng: np.random.Generator,
) -> Groups:
    """The communities of the graph, and the mean adjusted Rand index between those of its parts."""
    whole = communities(graph, resolution, int(rng.integers(2**31)))
    own = pairwise_ari(_parts(graph, resolution, n_runs, rng))
    others = [pairwise_ari(_parts(S, resolution, REFERENCE_RUNS, rng)).mean() for S in references]
    error = float(own.std(ddof=1) / np.sqrt(n_runs))
    return Groups(whole.count, float(own.mean()), error, float(np.mean(others)))


def _parts(graph: sp.csr_array, resolution: float, n_runs: int, rng: np.random.Generator) -> Array:
    """Communities (n_runs, N) of random parts of the graph, −1 outside."""
    labels = np.full((n_runs, graph.shape[0]), -1)
    for run, rows in enumerate(resamples(graph.shape[0], FRACTION, n_runs, rng)):
        seed = int(rng.integers(2**31))
        part = graph[rows][:, rows]
        labels[run, rows] = communities(part, resolution, seed, trials=PART_TRIALS).labels
    return labels
