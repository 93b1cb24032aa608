"""P-values: permutations, exact rank sums, and the correction for many tests.

Sums of ranks: if labels do not depend on a feature, the members of a cluster are a random draw from its
values. The distribution of the sum of their ranks depends on ties: with 995 zeros among 1000 values it
depends on the few others, and is not normal.

Ranks are put on an even grid: as fine as `STEPS` allows, and as coarse as the largest step between
neighboring ranks. A value that most samples share is then one point of the grid, and the sum
moves on a lattice. Its distribution is hypergeometric on two points, is counted for small clusters,
and otherwise comes from a double saddlepoint approximation on the lattice (Skovgaard 1987). Above
p = 0.001 that falls short of the exact p-value by `SHORT` at most, and is raised by so much; further
out it keeps the order of magnitude.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import false_discovery_control, norm

from manyview._types import Array

#: Permutations by default, for this many samples at most; fewer for more of them.
PERMUTATIONS, FULL_UP_TO = 9_999, 5_000
#: Permutations are never fewer than this by themselves.
LEAST = 499
#: After `LEAST` draws, this many as large as the observed value end the drawing: p is above 0.05.
ENOUGH = 25


def rounds(permutations: int | None, n: int) -> int:
    """Return how many permutations to draw for ``n`` samples."""
    if permutations is None:
        return max(LEAST, min(PERMUTATIONS, PERMUTATIONS * FULL_UP_TO // max(n, 1)))
    if isinstance(permutations, bool) or int(permutations) != permutations or permutations < 0:
        raise ValueError(f"permutations must be 0 (none) or a positive number, got {permutations}")
    return int(permutations)


def permuted_p(observed: float, drawn: Array) -> float:
    """Return (1 + number of draws as large) / (1 + number of draws), Phipson & Smyth (2010).

    A draw that differs from the observed value by rounding only is treated as large.
    """
    reached = int((drawn >= observed - 1e-9 * max(1.0, abs(observed))).sum())
    return (1 + reached) / (1 + len(drawn))


def staged_p(observed: float, draw: Callable[[int], Array], permutations: int) -> tuple[float, int]:
    """Return `permuted_p` and how many values it is from; ``draw(b)`` draws b of them.

    Where the first draws give p > 0.05, they suffice. That keeps P(p ≤ a) ≤ a: for a ≤ 0.05 only p-values
    of all draws count, and above, whatever goes on had a p-value of at most 0.05 already.
    """
    drawn = draw(min(LEAST, permutations))
    p = permuted_p(observed, drawn)
    if len(drawn) < permutations and p <= ENOUGH / (1 + len(drawn)):
        drawn = np.concatenate([drawn, draw(permutations - len(drawn))])
        p = permuted_p(observed, drawn)
    return p, len(drawn)


def batches(total: int, width: int, limit: int = 100_000) -> list[int]:
    """Return batch sizes that add up to ``total``, so small that a batch stays in the cache."""
    size = max(1, limit // max(width, 1))
    return [min(size, total - start) for start in range(0, total, size)]


def adjusted(p: Array) -> Array:
    """Benjamini–Hochberg over the p-values that are there; NaN stays NaN."""
    p = np.asarray(p, dtype=float)
    q = np.full(p.shape, np.nan)
    tested = ~np.isnan(p)
    if tested.any():
        q[tested] = false_discovery_control(p[tested])
    return q


#: Steps of the grid from the lowest rank to the highest.
STEPS = 32
#: Up to this many members (or others, if they are fewer) the distribution is counted.
COUNTED = 12
#: Share by which the approximation may fall short (random designs, compared with counting).
SHORT = 0.06
#: Numbers held at a time.
BLOCK = 4_000_000


def on_grid(ranks: Array, lowest: Any, gap: Any, n: Any) -> Array:
    """Return the grid points (0, 1, …) of ``ranks``.

    Parameters
    ----------
    ranks : ndarray
    lowest, gap, n : float or ndarray, broadcast against ``ranks``
        Lowest rank, largest difference of neighboring ranks, and number of values of each feature.
    """
    # A hair wider, so that rounding leaves no point of the grid empty.
    step = np.maximum(gap, (n - 1) / STEPS) * (1 + 1e-9)
    return np.floor((ranks - lowest) / step + 0.5)


def rank_sum_p(counts: Array, drawn: Array, total: Array) -> Array:
    """Return two-sided p-values, features × clusters; NaN where there is nothing to compare.

    Parameters
    ----------
    counts : ndarray (features, points)
        Values of each feature on each point of its grid.
    drawn, total : ndarray (features, clusters)
        Members with a value, and the sum of their grid points.
    """
    counts = np.rint(counts).astype(np.int64)
    drawn, total = np.rint(drawn).astype(np.int64), np.rint(total).astype(np.int64)
    n, points = counts.sum(axis=1)[:, None], np.arange(counts.shape[1])
    # Those left over are as random a draw as the members: take the fewer.
    fewer = 2 * drawn <= n
    total = np.where(fewer, total, (counts @ points)[:, None] - total)
    drawn = np.where(fewer, drawn, n - drawn)
    tables, table = np.unique(counts, axis=0, return_inverse=True)
    valid = (drawn > 0) & ((counts > 0).sum(axis=1) > 1)[:, None]
    p = np.full(drawn.shape, np.nan)
    if not valid.any():
        return p
    cases = np.column_stack(
        [np.broadcast_to(table.reshape(-1, 1), drawn.shape)[valid], drawn[valid], total[valid]]
    )
    # The same table, draw and sum occur again and again where few values are tied.
    size, high = int(cases[:, 1].max()) + 1, int(cases[:, 2].max()) + 1
    _, first, which = np.unique(
        (cases[:, 0] * size + cases[:, 1]) * high + cases[:, 2],
        return_index=True,
        return_inverse=True,
    )
    p[valid] = _p_values(tables, *cases[first].T)[which.reshape(-1)]
    return p


def _p_values(tables: Array, table: Array, drawn: Array, total: Array) -> Array:
    """Return the p-value of every case: a row of ``tables``, a draw from it, its sum."""
    found = np.empty(len(table))
    two = ((tables > 0).sum(axis=1) == 2)[table]
    small = ~two & (drawn <= COUNTED)
    margins, which = np.unique(
        np.column_stack([tables.sum(axis=1)[table], tables[table, 1], drawn])[two],
        axis=0,
        return_inverse=True,
    )
    place = np.flatnonzero(two)
    for j, (n, marked, size) in enumerate(margins.tolist()):
        here = place[which.reshape(-1) == j]
        found[here] = fisher(n, marked, size)[total[here]]
    for size in np.unique(drawn[small]).tolist():
        here = np.flatnonzero(small & (drawn == size))
        found[here] = _counted(tables, table[here], size, total[here])
    rest = np.flatnonzero(~two & ~small)
    width = max(1, BLOCK // (4 * tables.shape[1]))
    for start in range(0, len(rest), width):
        here = rest[start : start + width]
        found[here] = _both_tails(tables[table[here]].astype(float), drawn[here], total[here])
    found[rest] *= 1 + SHORT
    return np.clip(found, np.finfo(float).tiny, 1.0)


def fisher(n: int, marked: int, size: int) -> Array:
    """Return the two-sided p-value of Fisher's exact test for 0 to ``size`` marked members."""
    low, high = max(0, marked + size - n), min(marked, size)
    # Each number is as likely as the one before times a ratio: a tenth of the time of SciPy's formula.
    x = np.arange(low, high, dtype=float)
    ratios = (marked - x) * (size - x) / ((x + 1) * (n - marked - size + x + 1))
    logs = np.concatenate([[0.0], np.cumsum(np.log(ratios))])
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    order = np.argsort(chances, kind="stable")
    total = np.cumsum(chances[order])
    # Tables as unlikely as the observed one count, up to rounding.
    last = np.searchsorted(chances[order], chances * (1 + 1e-7), side="right") - 1
    p = np.ones(size + 1)
    p[low : high + 1] = np.minimum(total[last], 1.0)
    return p


def _counted(tables: Array, table: Array, size: int, total: Array) -> Array:
    """Count the draws of ``size`` values whose sum lies as far from the mean."""
    found = np.empty(len(table))
    used, own = np.unique(table, return_inverse=True)
    own = own.reshape(-1)
    n_points = tables.shape[1]
    sums = np.arange(size * (n_points - 1) + 1)
    width = max(1, BLOCK // (4 * (size + 1) * len(sums)))
    for start in range(0, len(used), width):
        counts = tables[used[start : start + width]].astype(float)
        # ways[f, j, s]: draws of j of the values on the first points that sum to s
        ways = np.zeros((len(counts), size + 1, len(sums)))
        ways[:, 0, 0] = 1
        for point in np.flatnonzero(counts.any(axis=0)).tolist():
            more, chosen = ways.copy(), np.ones(len(counts))
            for j in range(1, size + 1):
                chosen = chosen * (counts[:, point] - j + 1) / j
                if not chosen.any():
                    break
                before = ways[:, : size + 1 - j, : len(sums) - j * point]
                more[:, j:, j * point :] += chosen[:, None, None] * before
            ways = more
        chances = ways[:, size] / ways[:, size].sum(axis=1, keepdims=True)
        mean = size * (counts @ np.arange(n_points)) / counts.sum(axis=1)
        here = np.flatnonzero((own >= start) & (own < start + width))
        for part in np.array_split(here, 1 + len(here) * len(sums) // BLOCK):
            row = own[part] - start
            far = np.abs(total[part] - mean[row])[:, None] - 1e-9
            as_far = np.abs(sums - mean[row, None]) >= far
            found[part] = np.where(as_far, chances[row], 0).sum(axis=1)
    return found


def _both_tails(counts: Array, drawn: Array, total: Array) -> Array:
    points = np.arange(counts.shape[1], dtype=float)
    n = counts.sum(axis=1)
    mean = counts @ points / n
    far = np.abs(total - drawn * mean) - 1e-9
    p = np.zeros(len(total))
    for sign in (1, -1):
        # The first point of the lattice as far out on this side; half a step before it.
        edge = np.ceil(sign * drawn * mean + far) - 0.5
        p += _tail(counts, sign * points, drawn, edge)
    return p


def _tail(counts: Array, points: Array, drawn: Array, edge: Array) -> Array:
    """Return the chance that a draw of ``drawn`` values sums to more than ``edge``.

    A draw of a fixed number is a draw of every value with chance π, given their number. K(a, b) =
    Σ counts log(1 − π + π exp(a + b x)) is the cumulant function of number and sum; its saddlepoint gives
    the tail by Lugannani and Rice, on a lattice with 2 sinh(b/2) in place of b (Daniels).
    """
    n = counts.sum(axis=1)
    pi = drawn / n
    mean = counts @ points / n
    x = points - mean[:, None]
    variance = n * pi * (1 - pi) * (counts * x * x).sum(axis=1) / (n - 1)
    y = edge - drawn * mean
    # At the mean the formula is 0/0: step a little away from it.
    y = np.where(np.abs(y) < 0.01 * np.sqrt(variance), 0.01 * np.sqrt(variance), y)
    top = np.cumsum(counts[:, ::-1] if points[-1] > 0 else counts, axis=1)
    top = np.diff(np.minimum(top, drawn[:, None]), axis=1, prepend=0.0)
    reach = (top * (x[:, ::-1] if points[-1] > 0 else x)).sum(axis=1)
    p = np.zeros(len(y))
    live = np.flatnonzero(y < reach)  # beyond, no draw is as far out
    counts, x, y, n, pi = counts[live], x[live], y[live], n[live], pi[live]
    size, base = drawn[live], np.log(pi / (1 - pi))

    def height(a: Array, b: Array) -> Array:
        u = a[:, None] + b[:, None] * x
        return (counts * np.logaddexp(0, u)).sum(axis=1) - a * size - b * y

    a, b = base.copy(), y / variance[live]
    at = height(a, b)
    start = height(base, np.zeros(len(b)))
    worse = at > start
    b[worse], at[worse] = 0.0, start[worse]
    open_ = np.ones(len(y), dtype=bool)
    for _ in range(100):
        chance = expit(a[:, None] + b[:, None] * x)
        q = counts * chance * (1 - chance)
        k0, k1, k2 = q.sum(axis=1), (q * x).sum(axis=1), (q * x * x).sum(axis=1)
        det = np.maximum(k0 * k2 - k1 * k1, np.finfo(float).tiny)
        off = (counts * chance).sum(axis=1) - size, (counts * chance * x).sum(axis=1) - y
        if not open_.any():
            break
        da, db = (k2 * off[0] - k1 * off[1]) / det, (k0 * off[1] - k1 * off[0]) / det
        gain = da * off[0] + db * off[1]  # twice what a step promises
        open_ &= gain > 1e-12
        step = open_.astype(float)
        for _ in range(40):
            new = height(a - step * da, b - step * db)
            worse = new > at - 0.1 * step * gain + 1e-13 * np.abs(at)
            worse &= step > 0
            if not worse.any():
                break
            step[worse] /= 2
        a, b, at = a - step * da, b - step * db, np.where(step > 0, new, at)
    r = np.sign(b) * np.sqrt(2 * np.maximum(start - at, 0))
    u = 2 * np.sinh(b / 2) * np.sqrt(det / (n * pi * (1 - pi)))
    with np.errstate(all="ignore"):
        p[live] = norm.sf(r) + norm.pdf(r) * (1 / u - 1 / r)
    return np.clip(p, 0.0, 1.0)
