"""What the views say about each other: view weights α, observation weights w, the fused graph.

All are estimated in closed form from neighbour lists; nothing here iterates, so nothing collapses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from manyview._arrays import is_tensor, like, namespace, on_host
from manyview._types import Array, storable
from manyview.engines.numpy.distances import Geometry
from manyview.engines.numpy.lists import for_all_rows, fused_lists, masses, view_lists
from manyview.engines.numpy.ties import equal_share, farthest, nearest
from manyview.engines.threads import Threads

from .spectrum import diffusion_map, normalized

#: Neighbours in a view's graph, and in the graphs whose mean is the fused one.
NEIGHBORS, SCALES = 10, (5, 10, 20)
#: Below this many observations neighbourhoods shrink with their number.
FEW_OBSERVATIONS = 60
#: Split-half reliability is estimated on at most this many rows.
SPLIT_HALF_ROWS = 4000
#: Eigenvectors per cluster in each diffusion map.
VECTORS = 3
#: Pairs at random, and rows whose neighbours are looked at, to compare the distances of views.
RANDOM_PAIRS, PAIR_ROWS = 20_000, 1000
#: A contrast this many times its standard error counts by half; chance alone reaches one or two.
STANDARD_ERRORS = 2.0
#: Views as redundant as this are told to the user: they repeat each other.
REPEATED = 0.95
#: How fast the weight of a neighbour falls with its distance when an unseen row is placed.
SHARPNESS = 4.0
#: An observation as well supported as this share of all has weight 1.
FULL_SUPPORT = 0.9


@storable
@dataclass(frozen=True)
class Agreement:
    """Everything the views say: M (view by view), split halves, redundancy, spread of the distances,
    α, w, levels of the votes g, graphs."""

    matrix: Array
    split_half: Array
    redundancy: Array
    spread: Array
    alpha: Array
    w: Array
    levels: Array
    view_graphs: list[sp.csr_array]
    fused: sp.csr_array
    fused_single: sp.csr_array

    @property
    def distance_weights(self) -> Array:
        """The weights of the distances d^s in F."""
        return distance_weights(self.alpha, self.spread)

    def __getattr__(self, name: str) -> Any:
        """What files of older models lack: they told groups of near-duplicates, and F had α itself."""
        held = vars(self)
        if name == "spread" and "alpha" in held:
            return np.ones(len(held["alpha"]))
        if name == "redundancy" and "groups" in held:
            return np.equal.outer(held["groups"], held["groups"]).astype(float)
        raise AttributeError(f"{type(self).__name__} has no {name!r}")


def agree(
    views: list[Geometry],
    n_neighbors: int,
    delta: float,
    rng: np.random.Generator,
    learn_view_weights: bool = True,
    learn_sample_weights: bool = True,
    threads: Threads | None = None,
) -> Agreement:
    """Weights and graphs of several views of the same distinct rows (steps 2 to 6)."""
    seed = int(rng.integers(2**31))
    n = views[0].n_samples
    n_neighbors = in_proportion(n_neighbors, n)
    lists = [view_lists(view, n_neighbors, seed, threads) for view in views]
    graphs = [self_tuned(near.indices, near.d, n, near.rows, near.mass) for near in lists]
    rows = row_contrasts(views, graphs)
    halves = split_half(views, n_neighbors, seed)
    M = agreement_matrix(rows, delta * halves, views[0].mass)
    neighbors = [for_all_rows(near.rows, on_host(near.indices), n) for near in lists]
    spread, redundancy = compare_distances(views, neighbors, seed)
    if learn_view_weights:
        agreed = effects(rows, spread, views[0].mass)
        alpha = view_weights(agreed, halves / spread, redundancy, delta)
    else:
        alpha = np.full(len(views), 1 / len(views))
    w, levels = observation_weights(views, rows, alpha, redundancy)
    if not learn_sample_weights:
        w = np.column_stack([view.present for view in views]).astype(float)
    sizes = [in_proportion(k, n) for k in (*SCALES, NEIGHBORS)]
    weights = distance_weights(alpha, spread)
    indices, F = fused_lists(views, weights, max(sizes), neighbors, seed, threads)
    mass = masses(views[0], np.arange(n), indices, None)
    scales = {}
    for k in set(sizes):
        count = None if mass is None else mass[:, :k]
        scales[k] = normalized(self_tuned(indices[:, :k], F[:, :k], n, None, count))
    fused = sum(scales[k] for k in sizes[:-1]) / len(SCALES)
    single = scales[sizes[-1]]
    return Agreement(M, halves, redundancy, spread, alpha, w, levels, graphs, fused, single)


def in_proportion(k: int, n: int) -> int:
    """k neighbours, fewer where there are few observations: 20 of 24 others would be everybody."""
    return max(2, min(k, round(k * n / FEW_OBSERVATIONS)))


def embed(agreement: Agreement, n_clusters: int, rng: np.random.Generator) -> Array:
    """P: diffusion maps of the fused graph and of the fused graph plus the α-weighted view graphs."""
    fused, n = agreement.fused, agreement.fused.shape[0]
    if (
        n <= n_clusters
    ):  # every distinct observation is a cluster; a graph in which all meet hides that
        apart = np.hstack([np.eye(n), np.eye(n)]) / 2**0.5
        return apart if sp.issparse(fused) else fused.placed(apart)
    n_vectors = int(VECTORS * n_clusters)
    first = diffusion_map(fused, n_vectors, rng)
    mixed = agreement.fused_single
    for a, graph in zip(agreement.alpha, agreement.view_graphs, strict=True):
        mixed = mixed + a * normalized(graph)
    second = diffusion_map(mixed, n_vectors, rng)
    return namespace(first).hstack([first, second]) / 2**0.5


# --- graphs ---------------------------------------------------------------------------


def view_graph(view: Geometry, k: int, seed: int = 0) -> sp.csr_array:
    """Self-tuned graph of the k nearest rows of every row that is present."""
    near = view_lists(view, k, seed)
    return self_tuned(near.indices, near.d, view.n_samples, near.rows, near.mass)


def self_tuned(
    indices: Array, d: Array, n: int, rows: Array | None = None, mass: Array | None = None
) -> sp.csr_array:
    """(A + Aᵀ)/2 with A_ij = exp(−d_ij/(σ_i σ_j)), σ_i² the distance to the last neighbour listed.

    The lists are those of ``rows``, by default all n. ``mass`` is how much each pair counts.
    """
    xp, rows = namespace(d), np.arange(n) if rows is None else rows
    if len(rows) == 0 or indices.shape[1] == 0:
        return sp.csr_array((n, n)) if xp is np else _empty_on(d, n)
    variance = xp.amax(d, axis=1)
    # Duplicates have σ = 0: a small share of the median keeps their weights finite.
    typical = float(xp.median(variance))
    if typical == 0 and bool((variance > 0).any()):
        typical = float(xp.median(variance[variance > 0]))
    variance = variance.clip(max(1e-6 * typical, float(xp.finfo(d.dtype).tiny)))
    sigma = xp.ones_like(variance[:1]).repeat(n)
    sigma[rows] = variance**0.5
    weights = xp.exp(-d / (sigma[rows][:, None] * sigma[indices]))
    weights = weights if mass is None else weights * like(mass, weights)
    if is_tensor(d):
        from manyview.engines.torch.graph import symmetric

        return symmetric(xp.as_tensor(rows, device=d.device), indices, weights, n)
    i = np.repeat(rows, indices.shape[1])
    A = sp.csr_array((weights.ravel(), (i, indices.ravel())), shape=(n, n))
    return sp.csr_array((A + A.T) / 2)


def _empty_on(like: Any, n: int) -> Any:
    """A graph without edges where ``like`` lives."""
    from manyview.engines.torch.graph import DeviceGraph

    return DeviceGraph(like.new_zeros(n + 1).long(), like.new_zeros(0).long(), like.new_zeros(0))


# --- contrasts and weights ---------------------------------------------------------------------


def row_contrasts(views: list[Geometry], graphs: list[sp.csr_array]) -> Array:
    """1 − (mean d^s of i to its neighbours in view t), shape (n_views, n_views, N); NaN where unknown.

    Do t's neighbours look close in s? Pairs with a member missing in s are skipped.
    """
    if is_tensor(views[0].Z):
        from manyview.engines.torch.distances import row_contrasts

        return row_contrasts(views, graphs)  # type: ignore[arg-type]
    n_views, n = len(views), views[0].n_samples
    rows = np.full((n_views, n_views, n), np.nan)
    for t, graph in enumerate(graphs):
        upper = sp.triu(graph, 1, format="coo")
        for s, view in enumerate(views):
            if s == t or upper.nnz == 0:
                continue
            i, j = upper.coords
            weight = upper.data * (view.comparable[i] & view.comparable[j])
            close = weight * view.pairs(i, j)
            total = np.bincount(i, weight, n) + np.bincount(j, weight, n)
            distance = np.bincount(i, close, n) + np.bincount(j, close, n)
            total += graph.diagonal() * view.comparable  # its own copies, at no distance
            known = total > 0
            rows[s, t, known] = 1 - distance[known] / total[known]
    return rows


def agreement_matrix(rows: Array, diagonal: Array, mass: Array | None = None) -> Array:
    """M_st = √([1 − c_st]₊ [1 − c_ts]₊) off the diagonal, c averaged over rows."""
    contrast = np.maximum(mean_contrasts(rows, mass)[0], 0)
    M = np.sqrt(contrast * contrast.T)
    np.fill_diagonal(M, diagonal)
    return M


def mean_contrasts(rows: Array, mass: Array | None = None) -> tuple[Array, Array]:
    """Means of the row contrasts over rows, and their standard errors.

    With ``mass`` a row stands for several identical ones, which are no further evidence.
    """
    known = ~np.isnan(rows)
    share = known if mass is None else known * mass
    n = np.maximum(share.sum(axis=2), 1)
    mean = (share * np.where(known, rows, 0)).sum(axis=2) / n
    squares = (share**2 * np.where(known, (rows - mean[:, :, None]) ** 2, 0)).sum(axis=2)
    return mean, np.sqrt(squares) / n


def split_half(views: list[Geometry], k: int, seed: int) -> Array:
    """h_s: the same contrast between two random halves of view s's features."""
    h = np.zeros(len(views))
    for s, view in enumerate(views):
        if view.n_features < 2:
            continue
        # The same draw whatever the order of the views.
        order = np.random.default_rng(seed).permutation(view.n_features)
        h[s] = half_contrast(view, order, k, seed)
    return h


def half_contrast(view: Geometry, order: Array, k: int, seed: int = 0) -> float:
    """Geometric mean of the two contrasts between the views of two halves of the features."""
    if view.n_samples > SPLIT_HALF_ROWS:
        # Density matters little for a contrast; a sample of rows is enough for a diagonal entry.
        chosen = np.sort(np.random.default_rng(seed).permutation(view.n_samples)[:SPLIT_HALF_ROWS])
        view = view.rows(chosen)
    halves = [view.half(order[0::2]), view.half(order[1::2])]
    contrasts = []
    for one, other in (halves, halves[::-1]):
        i, j, weights = _edges(view_graph(other, k))
        if len(i) == 0:
            return 0.0
        close = (weights * one.pairs(i, j)).sum() / weights.sum()
        contrasts.append(max(0.0, 1 - float(close)))
    return float(np.sqrt(contrasts[0] * contrasts[1]))


def _edges(graph: Any) -> tuple[Any, Any, Any]:
    """Ends and weights of the edges, each once (on a device: in both directions)."""
    if not sp.issparse(graph):
        return graph.edges()
    upper = sp.triu(graph, 1, format="coo")
    i, j = upper.coords
    weights, own = upper.data, graph.diagonal() / 2  # half, as of all others
    rows = np.flatnonzero(own)
    if len(rows):
        i, j = np.append(i, rows), np.append(j, rows)
        weights = np.append(weights, own[rows])
    return i, j, weights


def perron(M: Array) -> Array:
    """The leading eigenvector of M, nonnegative, summing to 1; equal weights if M is nearly zero."""
    if len(M) == 1:
        return np.ones(1)
    if M.max() < 1e-8:
        return np.full(len(M), 1 / len(M))
    vector = np.abs(np.linalg.eigh(M)[1][:, -1])
    return vector / vector.sum()


# --- how views' distances compare --------------------------------------------------------------


def compare_distances(
    views: list[Geometry], neighbors: list[Array], seed: int
) -> tuple[Array, Array]:
    """How far the distances of each view spread, and how much those of two views repeat each other.

    Both look at pairs of neighbours in the views and at random pairs.
    """
    n, n_views = views[0].n_samples, len(views)
    i, j = random_pairs(n, seed)
    rows = np.unique(np.linspace(0, n - 1, PAIR_ROWS).astype(int))
    near = [(np.repeat(rows, lists.shape[1]), lists[rows].ravel()) for lists in neighbors]
    pairs = [(i, j), *near]
    d = [[_known_distances(view, *ends) for ends in pairs] for view in views]
    spread = np.array([pooled_spread(d[s][0], d[s][1 + s]) for s in range(n_views)])
    redundancy = np.eye(n_views)
    for s in range(n_views):
        for t in range(s):
            both = [np.concatenate([d[v][1 + s], d[v][1 + t]]) for v in (s, t)]
            found = _correlation(*both)
            if found is None:  # no near pair differs from another: only far ones can tell
                found = _correlation(d[s][0], d[t][0])
            redundancy[s, t] = redundancy[t, s] = max(0.0, found or 0.0)
    return spread, redundancy


def random_pairs(n: int, seed: int) -> tuple[Array, Array]:
    """Pairs of n observations at random, all of them if they are few."""
    if n * (n - 1) // 2 <= RANDOM_PAIRS:
        return np.triu_indices(n, 1)
    i, j = np.random.default_rng(seed).integers(n, size=(2, RANDOM_PAIRS))
    return i, j


def _known_distances(view: Geometry, i: Array, j: Array) -> Array:
    """d of pairs; NaN where a member is missing, or both are one."""
    known = view.comparable[i] & view.comparable[j] & (i != j)
    return np.where(known, view.pairs(i, j), np.nan)


def pooled_spread(random: Array, near: Array) -> float:
    """Standard deviation of d over as many near as random pairs; 1 if there is nothing to compare.

    Contrasts in this unit are effect sizes: the distances of a wide view hardly differ, and those of
    a narrow one differ much, but a share of this spread means the same in both.
    """
    random, near = random[~np.isnan(random)], near[~np.isnan(near)]
    if len(random) == 0 or len(near) == 0:
        return 1.0
    gap = random.mean() - near.mean()
    spread = np.sqrt(random.var() / 2 + near.var() / 2 + gap**2 / 4)
    return float(spread) if spread > 1e-9 else 1.0


def _correlation(x: Array, y: Array) -> float | None:
    """Correlation over pairs known in both; None where one of them is constant."""
    known = ~(np.isnan(x) | np.isnan(y))
    if known.sum() < 3:
        return None
    x, y = x[known] - x[known].mean(), y[known] - y[known].mean()
    scale = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / scale) if scale > 1e-12 * known.sum() else None


# --- view weights ------------------------------------------------------------------------------


def effects(rows: Array, spread: Array, mass: Array | None = None) -> Array:
    """Agreement of views as effect sizes: mean contrasts in units of the spread of the distances.

    A contrast counts by t²/(t² + 4), t being its size in standard errors, so that what chance gives
    counts little.
    """
    mean, error = mean_contrasts(rows, mass)
    square = np.maximum(mean, 0) ** 2
    doubt = (STANDARD_ERRORS * error) ** 2
    certain = np.divide(square, square + doubt, out=np.zeros_like(mean), where=square > 0)
    contrast = np.maximum(mean, 0) * certain / spread[:, None]
    M = np.sqrt(contrast * contrast.T)
    np.fill_diagonal(M, 0)
    return M


def view_weights(M: Array, reliability: Array, redundancy: Array, delta: float) -> Array:
    """α: how much independent evidence supports each view.

    Two views support each other by the part of their agreement that no shared data explain, M_st
    (1 − ρ_st), and a little by being reliable. A view's voice counts as one over the number of views
    that repeat it. Support is counted twice, the second time with voices in proportion to their own
    support. Views that repeat each other share one weight, the better supported get more of it.
    Every step is a sum or a ratio of sums, so small changes of the input make small changes of α:
    the leading eigenvector, the limit of further counts, jumps between groups of views.
    """
    n_views = len(M)
    largest = reliability.max(initial=0)
    prior = np.outer(reliability, reliability) * (delta / largest if largest > 0 else 0)
    support = M * (1 - redundancy) + prior
    voice = 1 / redundancy.sum(axis=1)
    supported = support @ voice
    if not supported.sum() > 0:
        return np.full(n_views, 1 / n_views)
    supported = support @ (voice * supported / supported.sum())
    shared = redundancy @ supported
    alpha = np.divide(supported**2, shared, out=np.zeros(n_views), where=shared > 0)
    return alpha / alpha.sum()


def distance_weights(alpha: Array, spread: Array) -> Array:
    """Weights of the distances d^s in F: α of distances that all have the same spread."""
    weights = alpha / spread
    return weights / weights.sum()


def repeated_views(redundancy: Array) -> list[Array]:
    """Groups of views, by position, of which each repeats another one."""
    _, group = connected_components(redundancy >= REPEATED, directed=False)
    return [np.flatnonzero(group == g) for g in np.flatnonzero(np.bincount(group) > 1)]


# --- observation weights -----------------------------------------------------------------------


def observation_weights(
    views: list[Geometry], rows: Array, alpha: Array, redundancy: Array
) -> tuple[Array, Array]:
    """w_is = clip(g_is/level_s, 0, 1), level_s the 90th percentile of g; a view has no vote for itself.

    g_is is the mean, over the other views t, of how close i's neighbours in t are in s, and i's
    neighbours in s are in t. Voter t counts by α_t (1 − ρ_st): a copy of s is no witness.
    """
    n_views, _, n = rows.shape
    w, levels = np.zeros((n, n_views)), np.zeros(n_views)
    for s, view in enumerate(views):
        g = votes(rows[s], rows[:, s], alpha * (1 - redundancy[s]))
        if n_views > 1 and view.present.any():
            levels[s] = _quantile(g[view.present], FULL_SUPPORT, view.mass_of(view.present))
        w[view.present, s] = weigh(g, levels[s])[view.present]
    return w, levels


def _quantile(values: Array, q: float, mass: Array | None) -> float:
    """The value below which a share q of the mass lies."""
    if mass is None:
        return float(np.quantile(values, q))
    order = np.argsort(values, kind="stable")
    mass = mass[order]
    return float(np.interp(q, (np.cumsum(mass) - mass / 2) / mass.sum(), values[order]))


def votes(theirs: Array, mine: Array, alpha: Array) -> Array:
    """Weighted mean over voters of the row contrasts of both directions, unknown ones left out."""
    both = np.concatenate([theirs, mine])
    known = ~np.isnan(both)
    weights = np.concatenate([alpha, alpha])
    total = weights @ known
    g = weights @ np.where(known, both, 0)
    return np.divide(g, total, out=np.zeros_like(g), where=total > 0)


def weigh(g: Array, level: float) -> Array:
    return np.clip(g / level, 0, 1) if level > 0 else np.ones_like(g)


# --- unseen rows -------------------------------------------------------------------------------


def place(
    views: list[Geometry],
    Zs: list,
    observed: list[Array | None],
    present: list[Array],
    agreement: Agreement,
    P: Array,
    k: int,
) -> tuple[Array, Array]:
    """Embedding and observation weights of unseen rows, from their neighbours among the fitted rows."""
    n_new, n_views, dim = len(present[0]), len(views), P.shape[1] // 2
    k, n_nearest = in_proportion(k, len(P)), in_proportion(max(SCALES), len(P))
    sides, weights = [view.right_side() for view in views], agreement.distance_weights
    placed, w = np.empty((n_new, P.shape[1])), np.zeros((n_new, n_views))
    step = max(1, 2**21 // views[0].n_samples)
    for start in range(0, n_new, step):
        rows = slice(start, start + step)
        ds, slack = [], []
        for view, Z, known, here, side in zip(views, Zs, observed, present, sides, strict=True):
            some = None if known is None else known[rows]
            root_mu = view.new_root_mu(Z[rows], some)
            d = view.to_all(Z[rows], some, root_mu, side)
            d[~here[rows]] = 1
            ds.append(d)
            slack.append(view.slack(view.lengths(Z[rows], root_mu)))
        F: Array = sum(a * d for a, d in zip(weights, ds, strict=True))
        error: Array = sum(a * e for a, e in zip(weights, slack, strict=True))
        placed[rows] = _neighbour_mean(F, n_nearest, P, error)
        here = np.column_stack([p[rows] for p in present])
        w[rows] = _new_weights(views, ds, slack, here, agreement, k)
    for half in (slice(0, dim), slice(dim, 2 * dim)):
        norms = np.linalg.norm(placed[:, half], axis=1, keepdims=True) * np.sqrt(2)
        placed[:, half] = np.divide(placed[:, half], norms, out=placed[:, half], where=norms > 0)
    return placed, w


def _nearest(d: Array, k: int, slack: Array) -> tuple[Array, Array]:
    """The k nearest rows to unseen ones, ties by row, and their distances."""
    d = d.astype(float)
    return nearest(d, k, None, slack, lambda i, j: d[i, j], equal_share(d.dtype))


def _neighbour_mean(d: Array, k: int, P: Array, slack: Array) -> Array:
    """Mean of P over the k nearest rows, weighted by exp(−4 d/median d): the very near ones count."""
    near_rows, near = _nearest(d, min(k, d.shape[1]), slack)
    scale = np.maximum(np.median(near, axis=1, keepdims=True), np.finfo(float).tiny)
    weights = np.exp(-SHARPNESS * near / scale)
    return np.einsum("ik,ikd->id", weights, P[near_rows]) / weights.sum(axis=1, keepdims=True)


def _new_weights(
    views: list[Geometry],
    ds: list[Array],
    slack: list[Array],
    here: Array,
    agreement: Agreement,
    k: int,
) -> Array:
    """w of unseen rows: do their neighbours in the other views look close in this one?"""
    n_views, n_new = len(views), len(here)
    if n_views == 1:
        return here.astype(float)
    rows = np.full((n_views, n_views, n_new), np.nan)
    for t, view in enumerate(views):
        count = min(k, int(view.present.sum()))
        if count == 0:
            continue
        candidates = np.where(view.present, ds[t], np.inf)
        near, d = _nearest(candidates, count, slack[t])
        limit = farthest(d[:, 0], slack[t], equal_share(float))
        crowded = np.flatnonzero(d[:, -1] <= limit)
        crowd = candidates[crowded] <= limit[crowded, None]
        for s in range(n_views):
            if s != t:
                known = (here[:, [s]] & here[:, [t]] & views[s].present[near]).astype(float)
                mean, total = _mean(np.take_along_axis(ds[s], near, axis=1), known)
                # As near as can be are more than k: all of them are asked.
                known = (crowd & here[crowded][:, [s]] & here[crowded][:, [t]]) * views[s].present
                known = known * (1.0 if view.mass is None else view.mass)
                mean[crowded], total[crowded] = _mean(ds[s][crowded], known)
                rows[s, t] = np.where(total > 0, 1 - mean, np.nan)
    w = np.zeros((n_new, n_views))
    for s in range(n_views):
        g = votes(rows[s], rows[:, s], agreement.alpha * (1 - agreement.redundancy[s]))
        w[:, s] = weigh(g, agreement.levels[s])
    return w * here


def _mean(values: Array, weight: Array) -> tuple[Array, Array]:
    """Weighted means of rows, 1 where nothing has weight; and the weights' sums."""
    total = weight.sum(axis=1)
    mean = np.ones(len(values))
    return np.divide((values * weight).sum(axis=1), total, out=mean, where=total > 0), total
