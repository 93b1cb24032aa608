"""The number of clusters where the data decide it: chosen by evidence, or communities of a graph."""

from __future__ import annotations

import numpy as np

from manyview._types import Array, Seed, Views
from manyview.engines.numpy.repeats import Repeats
from manyview.engines.protocols import Engine, Scaling
from manyview.maths.agreement import Agreement
from manyview.storage.checkpoint import Checkpoint

from . import selection
from .agree import Settings
from .communities import Communities, communities, tell_tiny
from .given import with_weight
from .seeds import generator


def chosen_number(
    views: Views,
    present: list[Array],
    scalings: list[Scaling | None],
    settings: Settings,
    checkpoint: Checkpoint,
    random_state: Seed,
    dtype: np.dtype | None,
    resolution: float,
) -> selection.Selection:
    """What the evidence for some numbers of clusters recommends."""
    # Nobody can tell the cluster of an observation that is nowhere present.
    n = int(np.any(with_weight(present, settings.view_weights), axis=0).sum())
    candidates, rng = selection.usual_candidates(n), generator(random_state)

    def choose() -> selection.Selection:
        evidence = selection.gather(
            views,
            present,
            scalings,
            settings,
            rng,
            n_values=max(candidates) + 1,
            dtype=dtype,
            resolution=resolution,
        )
        return selection.choose(evidence, candidates, selection.DEFAULT, rng)

    return checkpoint.keep("selection", choose)


def fused_communities(
    agreement: Agreement,
    anywhere: Array,
    repeats: Repeats | None,
    resolution: float,
    rng: np.random.Generator,
    checkpoint: Checkpoint,
    engine: Engine,
) -> tuple[Array, int]:
    """Communities of the distinct observations that are somewhere, 0 for the others; how many."""
    here = anywhere if repeats is None else anywhere[repeats.first]
    count = np.ones(len(here)) if repeats is None else np.bincount(repeats.of)

    def find() -> Communities:
        graph = engine.graph_on_host(agreement.fused)
        seed = int(rng.integers(2**31))
        return communities(graph[here][:, here], resolution, seed, count[here])

    if not here.any():
        raise ValueError(
            "communities need an observation that some view describes; all are missing"
        )
    found = checkpoint.keep("communities", find)
    tell_tiny(found)
    labels = np.zeros(len(here), dtype=np.int64)
    labels[here] = found.labels
    return labels, found.count
