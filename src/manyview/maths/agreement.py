"""Agreement of views: formulas of view weights α, sample weights w and weights of graphs.

All are in closed form; nothing here iterates, so nothing collapses. `manyview.fuse` measures
the distances that go in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.stats import rankdata

from manyview._arrays import like, namespace
from manyview._types import Array, storable

#: Neighbors in a view's graph, and in the graphs whose mean is the fused one.
NEIGHBORS, SCALES = 10, (5, 10, 20)
#: Below this many samples neighborhoods shrink with their number.
FEW_OBSERVATIONS = 60
#: Eigenvectors per cluster in each diffusion map.
VECTORS = 3
#: Pairs of samples drawn at random.
RANDOM_PAIRS = 20_000
#: A contrast this many times its standard error counts by half; chance alone reaches one or two.
STANDARD_ERRORS = 2.0
#: Views as redundant as this give a warning: they repeat each other.
REPEATED = 0.95
#: A sample as well supported as this share of all has weight 1.
FULL_SUPPORT = 0.9


@storable
@dataclass(frozen=True)
class Agreement:
    """Everything the views say: M (view by view), split halves, redundancy, spread and mean of the
    distances, cluster structure and its standard error, α, w, how much the views agree on each
    sample, levels of the votes g, graphs; the α learned, where another one was given; groups of rows
    that are far from all others; and, of two views, `own_levels`."""

    matrix: Array
    split_half: Array
    redundancy: Array
    spread: Array
    typical: Array
    structure: Array
    structure_error: Array
    alpha: Array
    w: Array
    sample_agreement: Array
    levels: Array
    view_graphs: list[sp.csr_array]
    fused: sp.csr_array
    fused_single: sp.csr_array
    learned: Array
    distant: Sequence[Array] = ()
    own_levels: Array | None = None

    @property
    def distance_weights(self) -> Array:
        """The weights of the distances d^s in F."""
        return distance_weights(self.alpha, self.spread)


def in_proportion(k: int, n: int) -> int:
    """k neighbors, fewer where there are few samples: 20 of 24 others would be nearly all."""
    return max(2, min(k, round(k * n / FEW_OBSERVATIONS)))


def self_tuned(
    indices: Array, d: Array, n: int, rows: Array | None = None, mass: Array | None = None
) -> Array:
    """Weights exp(−d_ij/(σ_i σ_j)) of neighbor lists, σ_i² the distance to the last neighbor listed.

    The lists are those of ``rows``, by default all n. ``mass`` is how much each pair counts.
    """
    xp, rows = namespace(d), np.arange(n) if rows is None else rows
    if 0 in d.shape:  # no rows, or no other rows
        return d
    variance = xp.amax(d, axis=1)
    # Duplicates have σ = 0: a small share of the median keeps their weights finite.
    typical = float(xp.median(variance))
    if typical == 0 and bool((variance > 0).any()):
        typical = float(xp.median(variance[variance > 0]))
    variance = variance.clip(max(1e-6 * typical, float(xp.finfo(d.dtype).tiny)))
    sigma = xp.ones_like(variance[:1]).repeat(n)
    sigma[rows] = variance**0.5
    weights = xp.exp(-d / (sigma[rows][:, None] * sigma[indices]))
    return weights if mass is None else weights * like(mass, weights)


# --- contrasts --------------------------------------------------------------------------------


def contrasts(distance: Array, weight: Array, typical: float = 1.0) -> Array:
    """1 − the mean distance of every row to its neighbors, from sums of distances and of weights.

    In units of the ``typical`` distance; NaN, which is no vote, where no neighbor is known.
    """
    xp = namespace(distance)
    mean = distance / xp.where(weight > 0, weight, 1)
    return xp.where(weight > 0, 1 - mean / typical, xp.nan)


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


# --- how views' distances compare --------------------------------------------------------------


def random_pairs(n: int, seed: int) -> tuple[Array, Array]:
    """Pairs of n samples at random, all of them if they are few."""
    if n * (n - 1) // 2 <= RANDOM_PAIRS:
        return np.triu_indices(n, 1)
    i, j = np.random.default_rng(seed).integers(n, size=(2, RANDOM_PAIRS))
    return i, j


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


def correlation(x: Array, y: Array) -> float | None:
    """Correlation over pairs known in both: 0 where one of them is constant, None where both are."""
    known = ~(np.isnan(x) | np.isnan(y))
    if known.sum() < 3:
        return None
    x, y = x[known] - x[known].mean(), y[known] - y[known].mean()
    constant = [z @ z <= 1e-12 * known.sum() for z in (x, y)]
    if any(constant):
        return None if all(constant) else 0.0
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


# --- view weights ------------------------------------------------------------------------------


def effects(rows: Array, unit: Array, mass: Array | None = None) -> Array:
    """Agreement of views as effect sizes: mean contrasts in ``unit``, the spread of the distances.

    A contrast counts by t²/(t² + 4), t being its size in standard errors, so that what chance gives
    counts little.
    """
    mean, error = mean_contrasts(rows, mass)
    square = np.maximum(mean, 0) ** 2
    doubt = (STANDARD_ERRORS * error) ** 2
    certain = np.divide(square, square + doubt, out=np.zeros_like(mean), where=square > 0)
    contrast = np.maximum(mean, 0) * certain / unit[:, None]
    M = np.sqrt(contrast * contrast.T)
    np.fill_diagonal(M, 0)
    return M


def view_weights(
    M: Array,
    reliability: Array,
    redundancy: Array,
    delta: float,
    chance: Array | float = 0.0,
    structure: Array | float = 1.0,
) -> Array:
    """α: how much independent evidence supports each view, and whether the view has clusters.

    Two views support each other by the part of their agreement that shared data do not explain, M_st (1
    − ρ_st). A view supports itself, and redundant views support each other, a little by their own
    clusters, if its ``reliability`` exceeds ``chance``. A small constant support, a quarter of chance,
    makes weights nearly equal if nothing agrees and nothing is reliable, because noise must decide
    nothing. A view's vote is one over the number of views that repeat it. Support is summed twice, the
    second time with votes in proportion to their own support, and multiplied by ``structure``, from 0
    to 1. Redundant views share one weight; the better supported get more of it.
    Every step is a sum or a ratio of sums, so small changes of the input make small changes of α:
    the leading eigenvector, the limit of further counts, jumps between groups of views.
    """
    n_views = len(M)
    chance, structure = (np.broadcast_to(x, n_views) for x in (chance, structure))
    if not structure.any():
        structure = np.ones(n_views)
    doubt = np.hypot(reliability, STANDARD_ERRORS * chance)
    certain = np.divide(reliability, doubt, out=np.zeros(n_views), where=doubt > 0)
    own = structure * np.sqrt(certain)
    largest = np.hypot(reliability, chance).max(initial=0)
    prior = largest * redundancy * np.outer(own, own)
    prior += np.outer(chance, chance) / (4 * largest if largest > 0 else 1)
    support = M * (1 - redundancy) + delta * prior
    voice = 1 / redundancy.sum(axis=1)
    supported = support @ voice
    if not supported.sum() > 0:
        return np.full(n_views, 1 / n_views)
    supported = structure * (support @ (voice * supported / supported.sum()))
    shared = redundancy @ supported
    alpha = np.divide(supported**2, shared, out=np.zeros(n_views), where=shared > 0)
    return alpha / alpha.sum() if alpha.sum() > 0 else np.full(n_views, 1 / n_views)


def structure_for_weights(structure: Array, error: Array) -> Array:
    """Cluster structure as it weighs the views: their differences, as far as they exceed the errors."""
    mean, doubt = structure.mean(), (STANDARD_ERRORS * error) ** 2
    spread = structure.var()
    share = spread / (spread + doubt.mean()) if spread > 0 else 0.0
    return mean + share * (structure - mean)


def distance_weights(alpha: Array, spread: Array) -> Array:
    """Weights of the distances d^s in F: α of distances that all have the same spread."""
    weights = alpha / spread
    return weights / weights.sum()


def repeated_views(redundancy: Array) -> list[Array]:
    """Groups of views, by position, of which each repeats another one."""
    _, group = connected_components(redundancy >= REPEATED, directed=False)
    return [np.flatnonzero(group == g) for g in np.flatnonzero(np.bincount(group) > 1)]


# --- sample weights ----------------------------------------------------------------------------


def sample_weights(
    rows: Array,
    present: Array,
    alpha: Array,
    redundancy: Array,
    mass: Array | None = None,
    own: Array | None = None,
) -> tuple[Array, Array, Array, Array | None]:
    """w, the levels of the votes, how much the views agree on each sample, and those of ``own``.

    A sample's support in a view is clip(g_is/level_s, 0, 1), level_s the 90th percentile of g; a view
    has no vote for itself. g_is is the mean, over the other views t, of how close i's neighbors in t
    are in s, and i's neighbors in s are in t. View t has the weight α_t (1 − ρ_st), so a copy of s has
    none. ``rows`` are the row contrasts, ``present`` (N×n_views) says who is present in which view.

    w is this support. With two views, the support is the same for both: ``own`` (n_views×N), distances
    within each view, then decides by `blamed` which weight falls. The agreement on a sample is its mean
    support over its views, weighted by α; NaN with fewer than two views.
    """
    n_views, _, n = rows.shape
    support, levels = np.zeros((n, n_views)), np.zeros(n_views)
    g = np.zeros(n)
    for s, here in enumerate(present.T):
        g = votes(rows[s], rows[:, s], alpha * (1 - redundancy[s]))
        if n_views > 1 and here.any():
            levels[s] = _quantile(g[here], FULL_SUPPORT, None if mass is None else mass[here])
        support[here, s] = weigh(g, levels[s])[here]
    known = present.sum(axis=1) > 1
    weights = present * np.maximum(alpha, np.finfo(float).tiny)
    agreement = np.full(n, np.nan)
    agreement[known] = ((weights * support).sum(axis=1)[known]) / weights.sum(axis=1)[known]
    if own is None or n_views != 2 or not known.any():
        return support, levels, agreement, None
    of_own = np.array([own_levels(r[known], g[known]) for r in own])
    w = support.copy()
    w[known] = blamed(support[known], own[:, known], of_own)
    return w, levels, agreement, of_own


def own_levels(r: Array, g: Array) -> tuple[float, float]:
    """The median of a view's own evidence, and by how much a difference from it counts.

    In units of its quartiles, as far as samples with little of it are those on which the views disagree
    (rank correlation): 0 where it says nothing.
    """
    low, middle, high = np.quantile(r, [0.25, 0.5, 0.75])
    telling = max(0.0, correlation(rankdata(r), rankdata(g)) or 0.0) if high > low else 0.0
    return middle, 2 * telling / (high - low) if telling else 0.0


def blamed(support: Array, own: Array, of_own: Array) -> Array:
    """w of samples in two views (N×2): disagreement lowers the weight where there is less own evidence."""
    first, second = ((r - middle) * slope for r, (middle, slope) in zip(own, of_own, strict=True))
    share = 1 / (1 + np.exp((first - second).clip(-50, 50)))
    w: Array = 1 - 2 * (1 - support) * np.column_stack([share, 1 - share])
    return w.clip(0, 1)


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


def reliance(alpha: Array, w: Array, described: Array) -> Array:
    """Which view each sample relies on: α_s w_is, normalized over views (N×n_views).

    A sample relies only on views that describe it, and wholly on one that alone does. Where all
    of these have no weight, it relies on them by α, and if that is 0 too, alike. One that no view
    describes has zeros.
    """
    weights = alpha.astype(w.dtype)
    product = np.where(described, w * weights, 0)
    for fallback in (described * weights, described.astype(w.dtype)):
        product = np.where(product.any(axis=1, keepdims=True), product, fallback)
    total = product.sum(axis=1, keepdims=True)
    return np.divide(product, total, out=np.zeros_like(product), where=total > 0)
