"""The stage at which views are compared: distances in; view weights, observation weights, graphs out.

The formulas are in `manyview.maths.agreement`; here is what is measured for them, and in which order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._arrays import namespace, on_host
from manyview._types import Array
from manyview.engines.numpy.engine import HOST
from manyview.engines.numpy.neighbors import for_all_rows, masses
from manyview.engines.protocols import Distances, Engine, Graph, Lists
from manyview.engines.threads import Threads
from manyview.maths import agreement as ag
from manyview.maths.agreement import Agreement
from manyview.maths.spectrum import (
    PLACING,
    Sketch,
    diffused,
    diffusion_weights,
    leading_eigenvectors,
    normalized,
)

from .distant import distant_groups
from .given import fixed_view_weights, with_weight

#: Split-half reliability is estimated on at most this many rows.
SPLIT_HALF_ROWS = 4000
#: Rows whose neighbours are looked at to compare the distances of views.
PAIR_ROWS = 1000


@dataclass(frozen=True)
class Settings:
    """The parameters of `RobustWMNMF` that this stage heeds."""

    n_neighbors: int = 10
    reliability_weight: float = 0.05
    learn_sample_weights: bool = True
    #: α where it is given; None: learned.
    view_weights: Array | None = None

    @classmethod
    def of(cls, model: Any, names: Sequence[str], kept: Sequence[int] | None = None) -> Settings:
        """Those of an estimator, for views of these names of which some are ``kept``."""
        asked = model.view_weights
        if isinstance(asked, str) and asked == "learned" and not model.learn_view_weights:
            asked = "equal"
        return cls(
            model.n_neighbors,
            model.reliability_weight,
            model.learn_sample_weights,
            fixed_view_weights(asked, names, kept),
        )


def agree(
    views: list[Distances],
    settings: Settings,
    rng: np.random.Generator,
    engine: Engine = HOST,
    threads: Threads | None = None,
) -> Agreement:
    """Weights and graphs of several views of the same distinct rows.

    Parameters
    ----------
    views : list of Distances
        Of the same rows, no two of which are identical in all views.
    settings : Settings
    rng : Generator
    engine : Engine
        The one that made ``views``.
    threads : Threads, optional

    Returns
    -------
    Agreement
    """
    seed = int(rng.integers(2**31))
    return weigh_views(
        views, evidence_of(views, settings, seed, engine, threads), settings, seed, engine, threads
    )


@dataclass(frozen=True)
class Evidence:
    """What views say one by one and in pairs, before anything is weighed."""

    graphs: list[Graph]
    rows: Array
    split_half: Array
    spread: Array
    redundancy: Array
    #: Neighbours of every row in each view; none where they are not at hand.
    neighbors: list[Array] = field(default_factory=list)


def evidence_of(
    views: list[Distances],
    settings: Settings,
    seed: int,
    engine: Engine = HOST,
    threads: Threads | None = None,
) -> Evidence:
    """Neighbours, row contrasts, split halves, spread and redundancy of several views."""
    n = views[0].n_samples
    k = ag.in_proportion(settings.n_neighbors, n)
    lists = [view.nearest(k, seed, threads) for view in views]
    graphs = [list_graph(near, n, engine) for near in lists]
    rows = engine.row_contrasts(views, graphs, threads)
    halves = split_half(views, k, seed, engine)
    neighbors = [for_all_rows(near.rows, on_host(near.indices), n) for near in lists]
    spread, redundancy = compare_distances(views, neighbors, seed)
    return Evidence(graphs, rows, halves, spread, redundancy, neighbors)


def weigh_views(
    views: list[Distances],
    found: Evidence,
    settings: Settings,
    seed: int,
    engine: Engine = HOST,
    threads: Threads | None = None,
) -> Agreement:
    """α, w and the fused graph from what was measured."""
    rows, halves, spread, redundancy = found.rows, found.split_half, found.spread, found.redundancy
    n, mass, delta = views[0].n_samples, views[0].mass, settings.reliability_weight
    present = np.column_stack([view.present for view in views])
    # Half contrasts are means over n rows, of which a view tells some apart, of distances with spread 1.
    chance = np.sqrt([view.comparable.sum() for view in views]) / n
    agreed = ag.effects(rows, spread, mass)
    learned = ag.view_weights(agreed, halves / spread, redundancy, delta, chance)
    alpha = learned if settings.view_weights is None else settings.view_weights
    w, levels = ag.observation_weights(rows, present, alpha, redundancy, mass)
    if not settings.learn_sample_weights:
        w = present.astype(float)
    weights = ag.distance_weights(alpha, spread)
    # A view without weight proposes nobody.
    neighbors = found.neighbors and with_weight(found.neighbors, settings.view_weights)
    near = fused_near(views, weights, neighbors, seed, engine, threads)
    fused, single = scale_graphs(near, n, mass, engine)
    distant = distant_groups(near, n, ag.in_proportion(ag.SCALES[0], n))
    M = ag.agreement_matrix(rows, delta * halves, mass)
    return Agreement(
        M,
        halves,
        redundancy,
        spread,
        alpha,
        w,
        levels,
        found.graphs,
        fused,
        single,
        learned,
        distant,
    )


def embed(
    agreement: Agreement,
    n_clusters: int,
    rng: np.random.Generator,
    engine: Engine = HOST,
    threads: Threads | None = None,
) -> Array:
    """P: diffusion maps of the fused graph and of the fused graph plus the α-weighted view graphs."""
    fused, n = agreement.fused, agreement.fused.shape[0]
    if n <= n_clusters:  # each distinct observation is a cluster, also where the graph joins all
        apart = np.hstack([np.eye(n), np.eye(n)]) / 2**0.5
        return apart if sp.issparse(fused) else fused.placed(apart)
    n_vectors = min(int(ag.VECTORS * n_clusters), n)
    step_of = engine.block_step(threads)
    sketch = Sketch(step_of, diffusion_weights, PLACING)
    first = leading_eigenvectors(normalized(fused), n_vectors, rng, sketch)
    mixed = agreement.fused_single
    for a, graph in zip(agreement.alpha, agreement.view_graphs, strict=True):
        if a > 0:
            mixed = mixed + a * normalized(graph)
    mixed = normalized(mixed)
    near = replace(sketch, start=first[1])  # the graphs are nearly the same
    second = leading_eigenvectors(mixed, n_vectors, rng, near)
    maps = [diffused(*first), diffused(*second)]
    return namespace(maps[0]).hstack(maps) / 2**0.5


# --- graphs ------------------------------------------------------------------------------------


def view_graph(view: Distances, k: int, seed: int = 0, engine: Engine = HOST) -> Graph:
    """Self-tuned graph of the k nearest rows of every row that is present."""
    return list_graph(view.nearest(k, seed), view.n_samples, engine)


def list_graph(near: Lists, n: int, engine: Engine = HOST) -> Graph:
    """(A + Aᵀ)/2 of neighbour lists with self-tuned weights A."""
    weights = ag.self_tuned(near.indices, near.d, n, near.rows, near.mass)
    return engine.graph(near.rows, near.indices, weights, n)


def fused_near(
    views: list[Distances],
    weights: Array,
    neighbors: list[Array],
    seed: int,
    engine: Engine = HOST,
    threads: Threads | None = None,
) -> Lists:
    """The nearest rows of every row under F = Σ weights_s d^s, as many as the graphs need.

    ``neighbors`` holds the lists of every view, if there are any.
    """
    largest = ag.in_proportion(max(*ag.SCALES, ag.NEIGHBORS), views[0].n_samples)
    indices, F = engine.fused_nearest(views, weights, largest, neighbors, seed, threads)
    everyone = np.arange(views[0].n_samples)
    return Lists(everyone, indices, F, masses(views[0], everyone, indices, None))


def fused_graphs(
    views: list[Distances], weights: Array, neighbors: list[Array], seed: int
) -> tuple[Graph, Graph]:
    """The fused graph, and the one of its scales that the second diffusion map takes.

    Normalised self-tuned graphs of F; the fused graph is their mean over the scales.
    """
    near = fused_near(views, weights, neighbors, seed)
    return scale_graphs(near, views[0].n_samples, views[0].mass)


def scale_graphs(
    near: Lists, n: int, mass: Array | None, engine: Engine = HOST
) -> tuple[Graph, Graph]:
    """The mean of the graphs of all scales, and that of one scale, from lists of n rows."""
    *sizes, single = (ag.in_proportion(k, n) for k in (*ag.SCALES, ag.NEIGHBORS))
    scales: dict[int, Graph] = {}
    for k in {*sizes, single}:
        count = None if near.mass is None else near.mass[:, :k]
        nearest = Lists(near.rows, near.indices[:, :k], near.d[:, :k], count)
        scales[k] = normalized(list_graph(with_copies(nearest, mass), n, engine))
    fused = scales[sizes[0]]
    for k in sizes[1:]:
        fused = fused + scales[k]
    return fused / len(sizes), scales[single]


def with_copies(near: Lists, mass: Array | None) -> Lists:
    """Lists of distinct observations to which their own copies belong, too, `NEIGHBORS` at most.

    ``mass`` says how often each occurs, in units of the rarest: where all are as frequent, no copies
    count.
    """
    if mass is None or near.mass is None:
        return near
    xp, own = namespace(near.d), near.rows[:, None]
    own = own if xp is np else xp.as_tensor(own, device=near.d.device)
    return Lists(
        near.rows,
        xp.hstack([near.indices, own]),
        xp.hstack([near.d, xp.zeros_like(near.d[:, :1])]),
        np.column_stack([near.mass, mass * np.minimum(mass - 1, ag.NEIGHBORS)]),
    )


# --- how views compare -------------------------------------------------------------------------


def split_half(views: list[Distances], k: int, seed: int, engine: Engine = HOST) -> Array:
    """h_s: the contrast between two random halves of view s's features."""
    h = np.zeros(len(views))
    for s, view in enumerate(views):
        if view.n_features < 2:
            continue
        # The same draw whatever the order of the views.
        order = np.random.default_rng(seed).permutation(view.n_features)
        h[s] = half_contrast(view, order, k, seed, engine)
    return h


def half_contrast(
    view: Distances, order: Array, k: int, seed: int = 0, engine: Engine = HOST
) -> float:
    """Geometric mean of the two contrasts between the views of two halves of the features."""
    if view.n_samples > SPLIT_HALF_ROWS:
        # Density matters little for a contrast; a sample of rows is enough for a diagonal entry.
        chosen = np.sort(np.random.default_rng(seed).permutation(view.n_samples)[:SPLIT_HALF_ROWS])
        view = view.rows(chosen)
    # In their own order features are read one after the other.
    halves = view.halves(np.sort(order[0::2]), np.sort(order[1::2]))
    contrasts = []
    for one, other in (halves, halves[::-1]):
        close = engine.mean_distance(one, view_graph(other, k, engine=engine))
        if close is None:
            return 0.0
        contrasts.append(max(0.0, 1 - close))
    return float(np.sqrt(contrasts[0] * contrasts[1]))


def compare_distances(
    views: list[Distances], neighbors: list[Array], seed: int
) -> tuple[Array, Array]:
    """How far the distances of each view spread, and how much those of two views repeat each other.

    Both look at pairs of neighbours in the views and at random pairs.
    """
    n, n_views = views[0].n_samples, len(views)
    rows = np.unique(np.linspace(0, n - 1, PAIR_ROWS).astype(int))
    near = [(np.repeat(rows, lists.shape[1]), lists[rows].ravel()) for lists in neighbors]
    pairs = [ag.random_pairs(n, seed), *near]
    d = [[_known_distances(view, *ends) for ends in pairs] for view in views]
    spread = np.array([ag.pooled_spread(d[s][0], d[s][1 + s]) for s in range(n_views)])
    redundancy = np.eye(n_views)
    for s in range(n_views):
        for t in range(s):
            both = [np.concatenate([d[v][1 + s], d[v][1 + t]]) for v in (s, t)]
            found = ag.correlation(*both)
            if found is None:  # no near pair differs from another: only far ones can tell
                found = ag.correlation(d[s][0], d[t][0])
            redundancy[s, t] = redundancy[t, s] = max(0.0, found or 0.0)
    return spread, redundancy


def _known_distances(view: Distances, i: Array, j: Array) -> Array:
    """d of pairs; NaN where a member is missing, or both are one."""
    known = view.comparable[i] & view.comparable[j] & (i != j)
    return np.where(known, view.pairs(i, j), np.nan)
