"""The stages of RobustWMNMF: views → present → scaled → distances → agreement → embedding → start.

A stage is a function of the results of those before. `RobustWMNMF`, the choice of the number of
clusters and reports share them; `agree` and `embed` are in `manyview.fuse`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from manyview._arrays import beside, converted, is_tensor, namespace, on_host
from manyview._types import Array, Matrix, Views
from manyview._warn import warn_user
from manyview.base import (
    ByView,
    fixed_view_weights,
    kept_views,
    observed_columns,
    observed_part,
    of_view,
    working_dtype,
)
from manyview.engines.affinity import nearest_neighbors
from manyview.engines.numpy import graph as graphs
from manyview.engines.numpy.batches import Batches, BatchGeometry, aligned
from manyview.engines.numpy.distances import Geometry
from manyview.engines.numpy.engine import HOST, Engine
from manyview.engines.numpy.masked import FEWEST_SHARE
from manyview.engines.numpy.neighbors import for_all_rows, masses
from manyview.engines.numpy.presence import (
    absence,
    is_table,
    observed_rows,
    present_rows,
    separable,
    survey,
    unobserved,
)
from manyview.engines.numpy.repeats import Repeats, distinct
from manyview.engines.numpy.scaling import RobustScaling, Scaling, fit_scaling
from manyview.engines.numpy.scaling import scaled as scaled_view
from manyview.engines.numpy.sources import is_streamed, over
from manyview.engines.protocols import LOOK, Lists
from manyview.engines.threads import Threads
from manyview.labels import kmeans, pairwise_ari
from manyview.maths import agreement as ag
from manyview.maths.agreement import Agreement, agreement_matrix
from manyview.maths.spectrum import (
    PLACING,
    Graph,
    Sketch,
    diffused,
    diffusion_weights,
    leading_eigenvectors,
    normalized,
)
from manyview.maths.tails import bent
from manyview.nonnegative import largest

#: A row with a larger share of its features unobserved is treated as missing in that view.
MAX_UNOBSERVED = 0.5
#: Views with less weight than this in sum cannot place a sample.
NO_WEIGHT = 1e-3
#: Distant groups with fewer samples than an average cluster divided by this get one of their own.
SMALL_GROUP = 4
#: Starts of k-means: one in twenty fits of the digits met a poor local minimum with 10.
STARTS = 30


# --- present -----------------------------------------------------------------------------------


def presence(views: Views, zero_rows: ByView) -> tuple[list[Array], dict[str, str]]:
    """Which rows of each view are present, and what a row of zeros is in each view.

    Warn of what is left out.
    """
    present, zeros = [], {}
    for X, name in zip(views.matrices, views.names, strict=True):
        asked = of_view(zero_rows, name, "auto")
        if asked == "auto":
            here, values = survey(X)
            asked = "observed" if values and name not in views.filled else "missing"
            here = observed_rows(X) if asked == "observed" else here
        else:
            here = observed_rows(X) if asked == "observed" else present_rows(X)
        zeros[name] = asked
        share, words = unobserved(X), absence(X, name, asked == "observed")
        # Rows of samples that the view does not list are no news.
        lacking = int((~here & (share < 1)).sum()) - views.filled.get(name, 0)
        if not here.any():
            warn_user(f"view {name!r} {words.empty}; it gets no weight")
        elif lacking > 0:
            warn_user(
                f"view {name!r}: {lacking} samples {words.lacking} "
                f"and are treated as missing there{words.remedy}"
            )
        mostly = here & (share > MAX_UNOBSERVED)
        if mostly.any():
            warn_user(
                f"view {name!r}: {int(mostly.sum())} samples have over "
                f"{MAX_UNOBSERVED:.0%} of their features unobserved and are treated as missing there"
            )
        enough = here & ~mostly
        if here.any() and enough.mean() < FEWEST_SHARE:
            warn_user(
                f"view {name!r} is observed for {int(enough.sum())} of {len(enough)} samples: "
                "too few to learn much from the view"
            )
        present.append(enough)
    return present, zeros


def quiet_presence(views: Views, zero_rows: ByView = "auto") -> list[Array]:
    """Which rows are present, without warnings, which the fit gives."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return presence(views, zero_rows)[0]


def settled_zeros(views: Views, zero_rows: ByView) -> dict[str, str]:
    """What a row of zeros is in each view: refits of some of the rows take it as the whole fit does."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return presence(views, zero_rows)[1]


def described(views: Views, present: list[Array]) -> Array | None:
    """Samples that some view has, if not all: the others are no neighbors.

    Rows of files stay: none can be taken out. So do those of relations, whose columns they are.
    """
    rows = np.any(present, axis=0)
    return rows if all(map(separable, views.matrices)) and rows.any() and not rows.all() else None


def only(views: Views, present: list[Array], rows: Array | None) -> tuple[Views, list[Array]]:
    """Some of the samples (a mask or places); all of them for None."""
    if rows is None:
        return views, present
    batch = None if views.batch is None else views.batch[rows]
    some = replace(views.with_matrices([X[rows] for X in views.matrices]), batch=batch)
    return some, [here[rows] for here in present]


def counted(present: list[Array], alpha: Array) -> Array:
    """Samples that some view with weight describes; the others get the label −1."""
    return np.column_stack(present) @ alpha > NO_WEIGHT


# --- scaled, and distances ---------------------------------------------------------------------


def fit_scalings(views: Views, present: list[Array], scale: ByView) -> list[Scaling]:
    """How the features of every view are made comparable."""
    found: list[Scaling] = []
    for X, here, name in zip(views.matrices, present, views.names, strict=True):
        kind = of_view(scale, name, "auto") if is_table(X) else "auto"
        size = largest(X) if kind is None else 1.0
        if size and not 1e-150 < size < 1e150:
            raise ValueError(
                f"view {name!r} has a largest entry of {size:g}, whose square is no number to "
                "compute with; divide the view by a constant, or use scale='auto'"
            )
        found.append(fit_scaling(X, here, name, kind))
    return found


def scaled(
    views: Views, present: list[Array], scalings: list[Scaling], dtype: np.dtype
) -> list[Matrix]:
    """z of every view; rows missing there are zero."""
    return [
        scaled_view(X, scaling, here, dtype)
        for X, here, scaling in zip(views.matrices, present, scalings, strict=True)
    ]


def measure(
    views: Views,
    present: list[Array],
    scalings: list[Scaling],
    dtype: np.dtype,
    engine: Engine = HOST,
) -> list[Geometry]:
    """The distances between the scaled rows of every view."""
    Zs = scaled(views, present, scalings, dtype)
    return [
        engine.distances(Z, here, scaling.unit_rows)
        for Z, here, scaling in zip(Zs, present, scalings, strict=True)
    ]


def measure_batches(
    views: Views, present: list[Array], scalings: list[Scaling], dtype: np.dtype
) -> tuple[Batches, list[Geometry]]:
    """The distances between rows whose batches lie side by side, and what aligns unseen rows."""
    for X, name in zip(views.matrices, views.names, strict=True):
        if not is_table(X) or is_streamed(X):
            kind = "read from its file by rows" if is_table(X) else "no table of features"
            raise ValueError(
                f"view {name!r} is {kind}, and batch= aligns features in memory; load it, leave the view "
                "out, or leave batch out"
            )
    Zs, batch = scaled(views, present, scalings, dtype), np.asarray(views.batch)
    batches, coordinates, rows = aligned(Zs, present, batch)
    spaces: list[Geometry] = [
        BatchGeometry(Y.astype(dtype), here, Z, batch)
        for Y, here, Z in zip(coordinates, present, rows, strict=True)
    ]
    return batches, spaces


def measure_some(
    views: Views,
    present: list[Array],
    scalings: list[Scaling],
    dtype: np.dtype,
    rows: Array,
) -> list[Geometry]:
    """The distances between some of the rows; in a relation these keep what links them to others."""
    if views.batch is not None:
        return measure_batches(*only(views, present, rows), scalings, dtype)[1]
    found: list[Geometry] = []
    for X, here, scaling in zip(views.matrices, present, scalings, strict=True):
        apart = is_table(X)
        part, there = (X[rows], here[rows]) if apart else (X, here)
        Z = scaled_view(part, scaling, there, dtype)
        space = HOST.distances(Z, there, scaling.unit_rows)
        found.append(space if apart else space.rows(rows))
    return found


# --- start -------------------------------------------------------------------------------------


def start_labels(
    P: Array,
    anywhere: Array,
    n_clusters: int,
    rng: np.random.Generator,
    repeats: Repeats | None,
    distant: Sequence[Array],
) -> Array:
    """k-means of the embedding P of distinct samples; 0 for those that are nowhere.

    ``anywhere`` tells of all samples, copies included. Groups far from all others (``distant``) that are
    much smaller than an average cluster have clusters of their own where k-means, for which a few samples
    count little, would give them to others.
    """
    here = anywhere if repeats is None else anywhere[repeats.first]
    start = namespace(P).zeros_like(P[:, 0], dtype=namespace(P).int64)
    mass = None if repeats is None or repeats.mass is None else repeats.mass[here]
    if repeats is not None and (is_tensor(P) or here.sum() < n_clusters):
        # All copies take part.
        found = kmeans(P[repeats.of[anywhere]], n_clusters, rng, n_init=STARTS)
        start[repeats.of[anywhere]] = found
        return start
    found = kmeans(P[here], n_clusters, rng, STARTS, mass)
    rows, labels = np.flatnonzero(here), on_host(found)
    small = [g for g in distant if len(g) < len(rows) / (SMALL_GROUP * n_clusters)]
    merged = False
    for g in small:
        own = np.bincount(labels[np.isin(rows, g)], minlength=n_clusters)
        merged |= own.max() * 2 <= np.count_nonzero(labels == own.argmax())
    if merged and len(small) < n_clusters:
        apart = np.full(len(here), -1)
        for number, g in enumerate(small):
            apart[g] = number
        labels, rest = apart[rows], apart[rows] < 0
        share = None if mass is None else mass[rest]
        others = kmeans(P[here][rest], n_clusters - len(small), rng, STARTS, share)
        labels[rest] = len(small) + on_host(others)
        found = converted(beside(labels, P), namespace(P).int64)
    start[here] = found
    return start


# --- results -----------------------------------------------------------------------------------


def view_agreement(views: Views) -> tuple[Array, Array, Array]:
    """How much views agree (n_views×n_views), halves of each view, and how much views repeat each
    other (n_views×n_views), with the default settings.

    A view without any value has zeros.
    """
    columns, settings = observed_columns(views), Settings()
    kept = list(range(len(views))) if columns is None else kept_views(columns)
    part = views if columns is None else observed_part(views, columns)
    present = quiet_presence(part)
    scalings = fit_scalings(part, present, "auto")
    spaces, _ = distinct(measure(part, present, scalings, working_dtype(part, None)))
    found = evidence_of(spaces, settings, 0)
    matrix, redundancy = np.zeros((2, len(views), len(views)))
    all_halves = np.zeros(len(views))
    matrix[np.ix_(kept, kept)] = agreement_matrix(found.rows, found.split_half, spaces[0].mass)
    redundancy[np.ix_(kept, kept)] = found.redundancy
    all_halves[kept] = found.split_half
    return matrix, all_halves, redundancy


# --- compare, weigh, fuse, embed ----------------------------------------------------------------

#: Split-half reliability is estimated on at most this many rows.
SPLIT_HALF_ROWS = 4000
#: Communities whose number the structure of the views needs are counted in at most this many rows.
COUNT_ROWS = 10_000
#: Rows whose neighbors are looked at to compare the distances of views.
PAIR_ROWS = 1000
#: Pairs within each cluster, and of its members with others, that are compared.
CLUSTER_PAIRS = 2000
#: Random halves of the samples from which a view's clusters are learned, and most samples that are looked
#: at for that, in all or for each cluster.
STRUCTURE_HALVES, STRUCTURE_ROWS, STRUCTURE_SHARE = 8, 2000, 20
#: Starts of k-means in each half at most, and times clusters: among many a poor one counts little.
STRUCTURE_STARTS, STARTS_TIMES_CLUSTERS = 10, 100


@dataclass(frozen=True)
class Settings:
    """The parameters of `RobustWMNMF` that this stage uses."""

    n_neighbors: int = 10
    reliability_weight: float = 0.05
    learn_sample_weights: bool = True
    #: α where it is given; None: learned.
    view_weights: Array | None = None

    @classmethod
    def of(cls, model: Any, names: Sequence[str], kept: Sequence[int] | None = None) -> Settings:
        """Those of an estimator, for views of these names of which some are ``kept``."""
        return cls(
            model.n_neighbors,
            model.reliability_weight,
            model.learn_sample_weights,
            fixed_view_weights(model.view_weights, names, kept),
        )


def agree(
    views: list[Geometry],
    settings: Settings,
    n_clusters: int | Callable[[Agreement, Array | None], int],
    rng: np.random.Generator,
    threads: Threads | None = None,
) -> Agreement:
    """Weights and graphs of several views of the same rows, no two of which are identical in all views.

    Where the number of clusters is not known, ``n_clusters`` reads it off the views weighed without
    their cluster structure, of some rows if there are many, and off how many samples each row stands
    for; the structure is then that at this number.
    """
    seed = int(rng.integers(2**31))
    found = evidence_of(views, settings, seed, threads)
    if len(views) > 1:
        if callable(n_clusters):
            some, of_some = views, found
            if views[0].n_samples > COUNT_ROWS:
                rows = _some_rows(views[0].n_samples, COUNT_ROWS, seed)
                some = [view.distinct(rows, view.mass_of(rows)) for view in views]
                of_some = evidence_of(some, settings, seed, threads)
            weighed = weigh_views(some, of_some, settings, seed, threads)
            n_clusters = n_clusters(weighed, some[0].mass)
        structure = cluster_structure(views, found.graphs, n_clusters, settings, seed)
        found = replace(found, structure=structure)
    return weigh_views(views, found, settings, seed, threads)


@dataclass(frozen=True)
class Evidence:
    """What views say one by one and in pairs, before anything is weighed."""

    graphs: list[Graph]
    rows: Array
    split_half: Array
    #: Standard deviations of the distances, and their means over random pairs.
    spread: Array
    typical: Array
    #: ρ: correlations of the distances of two views between neighbors.
    redundancy: Array
    #: How near the neighbors of every row are within each view.
    own: Array | None = None
    #: Cluster structure of the views and its standard errors, where it was measured.
    structure: tuple[Array, Array] | None = None


def evidence_of(
    views: list[Geometry],
    settings: Settings,
    seed: int,
    threads: Threads | None = None,
) -> Evidence:
    """What several views say one by one and in pairs."""
    n = views[0].n_samples
    k = ag.in_proportion(settings.n_neighbors, n)
    lists = [view.nearest(k, seed, threads) for view in views]
    view_graphs = [list_graph(near, n) for near in lists]
    neighbors = [for_all_rows(near.rows, on_host(near.indices), n) for near in lists]
    spread, typical, redundancy = compare_distances(views, neighbors, seed)
    if views[0].batch is not None:
        rows, halves, own = evidence_within(views, settings, seed, threads)
    else:
        rows = 1 - (1 - graphs.row_contrasts(views, view_graphs, threads)) / typical[:, None, None]
        halves = split_half(views, k, seed)
        own = closeness(lists, typical, n)
    return Evidence(view_graphs, rows, halves, spread, typical, redundancy, own)


def evidence_within(
    views: list[Geometry], settings: Settings, seed: int, threads: Threads | None
) -> tuple[Array, Array, Array]:
    """How rows agree, halves agree, and own evidence, each among the rows of one batch.

    What is left of a batch in two views is no agreement of them. Batches of few rows are taken together.
    """
    batch, n = np.asarray(views[0].batch), views[0].n_samples
    _, codes, sizes = np.unique(batch, return_inverse=True, return_counts=True)
    small = sizes[codes] < ag.FEW_OBSERVATIONS
    parts = [
        np.flatnonzero(~small & (codes == b)) for b in np.flatnonzero(sizes >= ag.FEW_OBSERVATIONS)
    ]
    parts += [np.flatnonzero(small)] if small.sum() > 1 else []
    rows = np.full((len(views), len(views), n), np.nan)
    halves, own = np.zeros(len(views)), np.zeros((len(views), n))
    for part in parts:
        found = evidence_of([view.rows(part) for view in views], settings, seed, threads)
        rows[:, :, part] = found.rows
        halves += len(part) / n * found.split_half
        own[:, part] = found.own
    return rows, halves, own


def weigh_views(
    views: list[Geometry],
    found: Evidence,
    settings: Settings,
    seed: int,
    threads: Threads | None = None,
) -> Agreement:
    """α, w and the fused graph from what was measured."""
    rows, halves, spread, redundancy = found.rows, found.split_half, found.spread, found.redundancy
    n, mass, delta = views[0].n_samples, views[0].mass, settings.reliability_weight
    present = np.column_stack([view.present for view in views])
    unknown = np.full(len(views), np.nan)
    structure, error = (unknown, unknown) if found.structure is None else found.structure
    weight: Any = 1.0
    if found.structure is not None:
        weight = ag.structure_for_weights(structure, error)
    # Half contrasts are means over n rows, of which a view tells some apart, of distances with spread 1.
    chance = np.sqrt([view.comparable.sum() for view in views]) / n
    unit = spread / found.typical
    agreed = ag.effects(rows, unit, mass)
    learned = ag.view_weights(agreed, halves / unit, redundancy, delta, chance, weight)
    alpha = learned if settings.view_weights is None else settings.view_weights
    w, levels, on_samples, of_own = ag.sample_weights(
        rows, present, alpha, redundancy, mass, found.own
    )
    if not settings.learn_sample_weights:
        w = present.astype(float)
    weights = ag.distance_weights(alpha, spread)
    near = fused_near(views, weights, seed, threads)
    fused, single = scale_graphs(near, n, mass)
    distant = distant_groups(near, n, ag.in_proportion(ag.SCALES[0], n))
    M = ag.agreement_matrix(rows, delta * halves, mass)
    return Agreement(
        M,
        halves,
        redundancy,
        spread,
        found.typical,
        structure,
        error,
        alpha,
        w,
        on_samples,
        levels,
        found.graphs,
        fused,
        single,
        learned,
        distant,
        of_own,
    )


def embed(
    agreement: Agreement,
    n_clusters: int,
    rng: np.random.Generator,
    threads: Threads | None = None,
) -> Array:
    """P: diffusion maps of the fused graph and of the fused graph plus the α-weighted view graphs."""
    fused, n = agreement.fused, agreement.fused.shape[0]
    if n <= n_clusters:  # each distinct sample is a cluster, also where the graph joins all
        apart = np.hstack([np.eye(n), np.eye(n)]) / 2**0.5
        return apart if sp.issparse(fused) else fused.placed(apart)
    n_vectors = min(int(ag.VECTORS * n_clusters), n)
    step_of = partial(graphs.block_step, threads) if sp.issparse(fused) else None
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


def view_graph(view: Geometry, k: int, seed: int = 0) -> Graph:
    """Self-tuned graph of the k nearest rows of every row that is present."""
    return list_graph(view.nearest(k, seed), view.n_samples)


def list_graph(near: Lists, n: int) -> Graph:
    """(A + Aᵀ)/2 of neighbor lists with self-tuned weights A."""
    weights = ag.self_tuned(near.indices, near.d, n, near.rows, near.mass)
    return graphs.symmetric(near.rows, near.indices, weights, n)


def fused_near(
    views: list[Geometry],
    weights: Array,
    seed: int,
    threads: Threads | None = None,
) -> Lists:
    """The nearest rows of every row under F = Σ weights_s d^s, as many as the graphs need."""
    largest = ag.in_proportion(max(*ag.SCALES, ag.NEIGHBORS), views[0].n_samples)
    indices, F = views[0].fused_nearest(views, weights, largest, seed, threads)
    everyone = np.arange(views[0].n_samples)
    return Lists(everyone, indices, F, masses(views[0], everyone, indices, None))


def fused_graphs(views: list[Geometry], weights: Array, seed: int) -> tuple[Graph, Graph]:
    """The fused graph, and the one of its scales that the second diffusion map takes.

    Normalized self-tuned graphs of F; the fused graph is their mean over the scales.
    """
    near = fused_near(views, weights, seed)
    return scale_graphs(near, views[0].n_samples, views[0].mass)


def scale_graphs(near: Lists, n: int, mass: Array | None) -> tuple[Graph, Graph]:
    """The mean of the graphs of all scales, and that of one scale, from lists of n rows."""
    *sizes, single = (ag.in_proportion(k, n) for k in (*ag.SCALES, ag.NEIGHBORS))
    scales: dict[int, Graph] = {}
    for k in {*sizes, single}:
        count = None if near.mass is None else near.mass[:, :k]
        nearest = Lists(near.rows, near.indices[:, :k], near.d[:, :k], count)
        scales[k] = normalized(list_graph(with_copies(nearest, mass), n))
    fused = scales[sizes[0]]
    for k in sizes[1:]:
        fused = fused + scales[k]
    return fused / len(sizes), scales[single]


def with_copies(near: Lists, mass: Array | None) -> Lists:
    """Lists of distinct samples to which their own copies belong, too, `NEIGHBORS` at most.

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


def split_half(views: list[Geometry], k: int, seed: int) -> Array:
    """h_s: the contrast between two random halves of view s's features."""
    h = np.zeros(len(views))
    for s, view in enumerate(views):
        if view.n_samples > SPLIT_HALF_ROWS:
            # Density matters little for a contrast; a sample of rows is enough.
            view = view.rows(_some_rows(view.n_samples, SPLIT_HALF_ROWS, seed))
        if view.n_features < 2:
            continue
        # The same draw whatever the order of the views; in their own order features are read in a row.
        order = np.random.default_rng(seed).permutation(view.n_features)
        halves = view.halves(np.sort(order[0::2]), np.sort(order[1::2]))
        across, contrasts = [view_graph(half, k) for half in halves], []
        for one, graph in zip(halves, across[::-1], strict=True):
            close = graphs.mean_distance(one, graph)
            if close is not None:
                i, j = ag.random_pairs(one.n_samples, seed)
                typical = _mean_distance(one, i, j, _known_distances(one, i, j))
                contrasts.append(max(0.0, 1 - close / typical))
        h[s] = np.sqrt(contrasts[0] * contrasts[1]) if len(contrasts) == 2 else 0
    return h


def closeness(lists: list[Lists], typical: Array, n: int) -> Array:
    """r_is: how close sample i's neighbors in view s are there; the median where it has none."""
    own = np.zeros((len(lists), n))
    for r, near, mean in zip(own, lists, typical, strict=True):
        if len(near.rows):
            found = 1 - on_host(near.d).mean(axis=1) / mean
            r[:] = np.median(found)
            r[near.rows] = found
    return own


def _some_rows(n: int, count: int, seed: int) -> Array:
    return np.sort(np.random.default_rng(seed).permutation(n)[:count])


def _mean_distance(view: Geometry, i: Array, j: Array, d: Array) -> float:
    """Of random pairs: 1 in wide views, less in narrow ones."""
    weight = ~np.isnan(d) * (1.0 if view.mass is None else view.mass[i] * view.mass[j])
    mean = float((weight * np.nan_to_num(d)).sum() / max(weight.sum(), 1e-300))
    return mean if mean > 0 else 1.0


def cluster_structure(
    views: list[Geometry],
    view_graphs: list[Graph],
    n_clusters: int,
    settings: Settings,
    seed: int,
) -> tuple[Array, Array]:
    """c_s, how well K clusters of view s alone are found again in other samples, and its standard error.

    The mean adjusted Rand index between clusterings of the view's own diffusion map, each learned from
    a random half of the samples (of some thousands, if there are more): 1 for clusters far from each
    other, little where a view has noise, continuous factors, or another number of clusters.
    """
    n = views[0].n_samples
    most = max(STRUCTURE_ROWS, STRUCTURE_SHARE * n_clusters)
    n_init = max(1, min(STRUCTURE_STARTS, STARTS_TIMES_CLUSTERS // n_clusters))
    c, error = np.ones(len(views)), np.zeros(len(views))
    for s, (view, graph) in enumerate(zip(views, view_graphs, strict=True)):
        if n > most:
            part = view.rows(_some_rows(n, most, seed))
            graph = view_graph(part, ag.in_proportion(settings.n_neighbors, most), seed)
        A = graphs.on_host(graph)
        here = np.flatnonzero(np.ravel(A.sum(axis=1)) > 0)
        if len(here) // 2 < n_clusters:
            continue  # too few samples to tell
        A = normalized(A[here][:, here] if len(here) < A.shape[0] else A)
        rng, n_vectors = np.random.default_rng(seed), min(int(ag.VECTORS * n_clusters), len(here))
        P = diffused(*leading_eigenvectors(A, n_vectors, np.random.default_rng(seed)))
        runs = []
        for _ in range(STRUCTURE_HALVES):
            half = np.sort(rng.permutation(len(P))[: len(P) // 2])
            start = int(rng.integers(2**31))
            model = KMeans(n_clusters, n_init=n_init, random_state=start)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
                runs.append(model.fit(P[half]).predict(P))
        ari = np.zeros((STRUCTURE_HALVES, STRUCTURE_HALVES))
        ari[np.tril_indices(STRUCTURE_HALVES, -1)] = pairwise_ari(np.array(runs))
        of_half = (ari + ari.T).sum(axis=1) / (STRUCTURE_HALVES - 1)
        # Halves drawn without replacement vary as much as all samples do: a delete-half jackknife.
        c[s], error[s] = max(0.0, of_half.mean()), of_half.std(ddof=1)
    return c, error


def cluster_view_weights(
    views: list[Geometry], labels: Array, agreement: Agreement, n_clusters: int
) -> Array:
    """How much each view sets each cluster apart (K×n_views); rows sum to 1.

    α times how much closer members of the cluster are to each other than to other samples, in units of
    the spread of the view's distances; α where no view sets the cluster apart.
    """
    found = np.zeros((n_clusters, len(views)))
    rng, rest = np.random.default_rng(0), np.flatnonzero(labels >= 0)
    for k in range(n_clusters):
        members, others = np.flatnonzero(labels == k), rest[labels[rest] != k]
        if len(members) < 2 or len(others) == 0:
            continue
        i, j = (rng.choice(members, CLUSTER_PAIRS) for _ in range(2))
        far = rng.choice(others, CLUSTER_PAIRS)
        for s, view in enumerate(views):
            within, between = _known_distances(view, i, j), _known_distances(view, i, far)
            if np.isfinite(within).any() and np.isfinite(between).any():
                gap = np.nanmean(between) - np.nanmean(within)
                found[k, s] = max(0.0, gap) / agreement.spread[s]
    weights = agreement.alpha * found
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, agreement.alpha)
    return weights / weights.sum(axis=1, keepdims=True)


def compare_distances(
    views: list[Geometry], neighbors: list[Array], seed: int
) -> tuple[Array, Array, Array]:
    """Spread and mean of the distances of each view, and how much those of two views repeat each other.

    The mean is of random pairs, the spread of as many neighbors as random pairs. Redundancy is of
    neighbors only: over random pairs, views correlate because they tell the same clusters apart.
    """
    n, n_views = views[0].n_samples, len(views)
    rows = np.unique(np.linspace(0, n - 1, PAIR_ROWS).astype(int))
    random = ag.random_pairs(n, seed)
    ends = [(np.repeat(rows, lists.shape[1]), lists[rows].ravel()) for lists in neighbors]
    far = [_known_distances(view, *random) for view in views]
    # near[v][s]: distances in v between neighbors in s
    near = [[_known_distances(view, *pairs) for pairs in ends] for view in views]
    spread = np.array([ag.pooled_spread(far[s], near[s][s]) for s in range(n_views)])
    typical = np.array([_mean_distance(views[s], *random, far[s]) for s in range(n_views)])
    redundancy = np.eye(n_views)
    for s in range(n_views):
        for t in range(s):
            found = ag.correlation(*(np.concatenate([near[v][s], near[v][t]]) for v in (s, t)))
            if found is None:  # all near pairs are alike in both views: only far ones can tell
                found = ag.correlation(far[s], far[t])
            redundancy[s, t] = redundancy[t, s] = max(0.0, found or 0.0)
    return spread, typical, redundancy


def _known_distances(view: Geometry, i: Array, j: Array) -> Array:
    """d of pairs; NaN where a member is missing, or both are one."""
    known = view.comparable[i] & view.comparable[j] & (i != j)
    return np.where(known, view.pairs(i, j), np.nan)


# --- groups far from all others -----------------------------------------------------------------

#: A group is distant if the nearest other sample is this many times as far (in squared distance) as the
#: group's neighbors are from each other, and as neighbors are in general. Merged groups of 24 real data
#: sets have 1.1 at most, groups 15 standard deviations away in one of six features 2.4 at least.
DISTANT = 1.5
#: A sample is outlying if it is this many times as far from the middle as 95% of the samples.
OUTLYING, MOST = 3.0, 0.95
#: Values further from the median than this many interquartile ranges are taken as that far.
FARTHEST = 100.0
#: Fewest rows that tell quartiles, and how many other rows outlying ones are compared with.
SOME, OTHERS = 500, 5000
#: Samples named in a warning.
NAMED = 5


def distant_groups(near: Lists, n: int, k: int) -> list[Array]:
    """Groups of ``near.rows`` (places among n rows) whose k nearest rows are all of the group."""
    rows, indices, d = (on_host(part) for part in (near.rows, near.indices, near.d))
    k = min(k, indices.shape[1])
    if k == 0 or len(rows) == 0:
        return []
    ends = np.repeat(rows, k), indices[:, :k].ravel()
    links = sp.csr_array((np.ones(len(rows) * k), ends), shape=(n, n))
    count, part = connected_components(links, directed=False)
    sizes, own = np.bincount(part), part[rows]
    if count == 1:
        return []
    crossing = part[indices] != own[:, None]
    gap = np.full(count, np.inf)  # of a group that no list leaves or enters
    for side in (np.repeat(own, crossing.sum(axis=1)), part[indices[crossing]]):
        np.minimum.at(gap, side, d[crossing])
    typical = np.median(d[:, k - 1])
    closed = (np.bincount(own, minlength=count) == sizes) & (sizes <= n / 2)
    found = []
    for g in np.flatnonzero(closed & (gap > DISTANT * typical)):
        inner = np.median(d[own == g, k - 1])
        if gap[g] > DISTANT * inner:
            found.append(rows[own == g])
    return found


def hidden_groups(
    matrices: Sequence[Any], scalings: Sequence[Scaling], present: Sequence[Array]
) -> list[Array]:
    """Groups that lie beyond the percentiles at which the scaling ends, in dense views in memory."""
    n = len(present[0])
    spaces, outlying = [], np.zeros(n, dtype=bool)
    for X, scaling, here in zip(matrices, scalings, present, strict=True):
        if (
            not isinstance(X, np.ndarray)
            or not isinstance(scaling, RobustScaling)
            or not here.any()
        ):
            continue
        z = np.sort(_unlimited(X[_evenly(n, max(SOME, LOOK // X.shape[1]))], scaling), axis=0)
        last, columns = np.maximum((~np.isnan(z)).sum(axis=0) - 1, 0), np.arange(X.shape[1])
        low, middle, high = (z[(q * last / 4).astype(int), columns] for q in (1, 2, 3))
        width = np.where(high > low, high - low, np.inf)
        squared = np.concatenate(
            over(X, lambda *of: (_from(*of) ** 2).sum(axis=1), scaling, middle, width)
        )
        level = np.quantile(squared[here], MOST)
        if level > 0:
            outlying |= here & (squared > OUTLYING**2 * level)
            spaces.append((X, scaling, middle, width * np.sqrt(level)))
    rows = np.flatnonzero(outlying)
    k = ag.in_proportion(ag.SCALES[0], n)
    if not k < len(rows) <= (1 - MOST) * n:
        return []
    rest = np.flatnonzero(~outlying)
    chosen = np.concatenate([rows, rest[_evenly(len(rest), OTHERS)]])
    points = np.hstack([_from(X[chosen], *of) for X, *of in spaces])
    indices, d = nearest_neighbors(points, k + 1, points[: len(rows)])
    own = indices == np.arange(len(rows))[:, None]
    own[~own.any(axis=1), -1] = True  # of many at distance 0 the row itself may not be listed
    near = Lists(np.arange(len(rows)), *(part[~own].reshape(-1, k) for part in (indices, d)))
    found = []
    for group in distant_groups(near, len(points), k):
        _, gap = nearest_neighbors(np.delete(points, group, axis=0), 1, points[group])
        if gap.min() > DISTANT * np.median(near.d[group, -1]):
            found.append(rows[group])
    return found


def _evenly(n: int, count: int) -> Array:
    return np.unique(np.linspace(0, n - 1, min(n, count)).astype(int))


def _unlimited(X: Array, scaling: Any) -> Array:
    """Scaled features without their limits."""
    t = (X - scaling.low) * scaling.gain
    return t if scaling.bend is None else bent(t.clip(0), scaling.bend)


def _from(X: Array, scaling: Any, middle: Array, width: Array) -> Array:
    """How far from the middle, in units of ``width``; unobserved entries are in the middle."""
    return np.nan_to_num((_unlimited(X, scaling) - middle) / width).clip(-FARTHEST, FARTHEST)


def tell_merged(
    groups: list[Array], labels: Array, n_clusters: int, names: Array | None, remedy: str
) -> None:
    """Say which distant groups make up less than half of the cluster they are in."""
    sizes = np.bincount(labels[labels >= 0], minlength=1)
    merged = []
    for group in groups:
        known = labels[group][labels[group] >= 0]
        counts = np.bincount(known, minlength=len(sizes))
        cluster = int(counts.argmax())
        if 0 < 2 * counts[cluster] <= sizes[cluster]:
            merged.append((len(group), cluster, int(sizes[cluster] - counts[cluster]), group))
    if not merged:
        return
    size, cluster, others, group = min(merged, key=lambda found: found[:2])
    shown = [str(i if names is None else names[i]) for i in group[:NAMED]]
    more = f" and {size - len(shown)} more" if size > len(shown) else ""
    several = f"; there are {len(merged)} such groups, of which this is the smallest" * (
        len(merged) > 1
    )
    warn_user(
        f"{size} samples ({'rows' if names is None else 'samples'} {', '.join(shown)}{more}) lie far from "
        f"all others but are in cluster {cluster} together with {others} others{several}. "
        f"{n_clusters} clusters do not separate them. Check these samples for errors; {remedy}"
    )
