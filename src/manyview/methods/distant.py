"""Groups of samples far from all others that share a cluster with them: they were too small to be found.

Two kinds: groups that the fused graph sees, and those that no distance sees because the scaling limits
every feature to its 1st to 99th percentile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from manyview._arrays import on_host
from manyview._types import Array
from manyview._warn import warn_user
from manyview.engines.affinity import nearest_neighbors
from manyview.engines.numpy.sources import LOOK, over
from manyview.engines.protocols import Lists, Scaling
from manyview.maths import agreement as ag
from manyview.maths.tails import bent

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
    matrices: Sequence[Any], scalings: Sequence[Scaling | None], present: Sequence[Array]
) -> list[Array]:
    """Groups that lie beyond the percentiles at which the scaling ends, in dense views in memory."""
    n = len(present[0])
    spaces, outlying = [], np.zeros(n, dtype=bool)
    for X, scaling, here in zip(matrices, scalings, present, strict=True):
        if (
            not isinstance(X, np.ndarray)
            or scaling is None
            or scaling.low is None
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
        f"all others, but share cluster {cluster} with {others} of them{several}: with {n_clusters} "
        f"clusters such a group is not found. Check these samples for errors; {remedy}"
    )
