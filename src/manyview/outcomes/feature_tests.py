"""Tests of many features at once: each cluster against all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.stats import norm

from manyview._types import Array


@dataclass(frozen=True, eq=False)
class FeatureTests:
    """Clusters × features.

    Attributes
    ----------
    effect : ndarray
        Rank-biserial correlation in [−1, 1]: the chance that a member exceeds an outsider, less the
        reverse. Of a binary feature the difference of the two shares.
    p_value : ndarray
        Two-sided; NaN where not tested.
    inside, outside : ndarray
        Mean of the members and of all others.
    """

    effect: Array
    p_value: Array
    inside: Array
    outside: Array


def rank_tests(X: Array, codes: Array, k: int) -> FeatureTests:
    """Mann–Whitney tests (normal approximation, corrected for ties and continuity) of X (n, M)."""
    Z = np.ascontiguousarray(X.T, dtype=float)
    there = ~np.isnan(Z)
    ranks, ties = _ranks(Z, there)
    member = (codes[:, None] == np.arange(k)).astype(float)
    n = there.sum(axis=1)[:, None].astype(float)
    n_in = (there @ member) if not there.all() else np.broadcast_to(member.sum(axis=0), (len(Z), k))
    effect, p = _compared(ranks @ member, ties, n, n_in)
    inside, outside = means(np.where(there, Z, 0.0), there, member)
    return FeatureTests(effect.T, p.T, inside, outside)


def sparse_rank_tests(X: sp.csc_array, codes: Array, k: int) -> FeatureTests:
    """The same of a sparse X without NaN: only what is not zero is ranked."""
    n, m = X.shape
    X = sp.csc_array(X, dtype=float, copy=True)
    X.eliminate_zeros()
    feature = np.repeat(np.arange(m), np.diff(X.indptr))
    order = np.lexsort((X.data, feature))
    values, cell = X.data[order], codes[X.indices[order]]
    new = np.ones(len(values), dtype=bool)
    new[1:] = (values[1:] != values[:-1]) | (feature[1:] != feature[:-1])
    starts = np.flatnonzero(new)
    lengths = np.diff(np.r_[starts, len(values)])
    zeros = n - np.diff(X.indptr).astype(float)
    # Zeros lie between what is below and what is above them.
    ranks = np.repeat(starts - X.indptr[feature[starts]] + (lengths + 1) / 2, lengths)
    ranks += np.where(values > 0, zeros[feature], 0)
    of_zero = np.bincount(feature[values < 0], minlength=m) + (zeros + 1) / 2
    ties = np.bincount(feature[starts], lengths.astype(float) ** 3 - lengths, m)
    ties = ties + zeros**3 - zeros
    known = cell >= 0

    def by_cluster(what: Array) -> Array:
        place = feature[known] * k + cell[known]
        return np.bincount(place, what[known], m * k).reshape(m, k)

    size = np.bincount(codes[codes >= 0], minlength=k).astype(float)
    here, sums = by_cluster(np.ones(len(values))), by_cluster(values)
    total = by_cluster(ranks) + (size - here) * of_zero[:, None]
    effect, p = _compared(total, ties, np.full((m, 1), float(n)), np.broadcast_to(size, (m, k)))
    rest = np.bincount(feature, values, m)[:, None] - sums
    with np.errstate(divide="ignore", invalid="ignore"):
        inside, outside = sums / size, rest / (n - size)
    return FeatureTests(effect.T, p.T, inside.T, outside.T)


def _compared(rank_sums: Array, ties: Array, n: Array, n_in: Array) -> tuple[Array, Array]:
    """Effects and p-values (features × clusters) from the sums of the members' ranks."""
    n_out = n - n_in
    with np.errstate(divide="ignore", invalid="ignore"):
        U = rank_sums - n_in * (n_in + 1) / 2
        effect = 2 * U / (n_in * n_out) - 1
        spread = np.sqrt(n_in * n_out / 12 * (n + 1 - ties[:, None] / (n * (n - 1))))
        gap = np.maximum(np.abs(U - n_in * n_out / 2) - 0.5, 0)
        p = 2 * norm.sf(gap / spread)
    p[~(spread > 0)] = np.nan
    return effect, np.minimum(p, 1.0)


def means(filled: Array, there: Array, member: Array) -> tuple[Array, Array]:
    """Return the means of members and of others, clusters × features."""
    sums, counts = filled @ member, there @ member
    rest = filled.sum(axis=1)[:, None] - sums, there.sum(axis=1)[:, None] - counts
    with np.errstate(divide="ignore", invalid="ignore"):
        return (sums / counts).T, (rest[0] / rest[1]).T


def _ranks(Z: Array, there: Array) -> tuple[Array, Array]:
    """Return average ranks within rows (0 where missing) and Σ(t³ − t) over the ties of a row."""
    m, n = Z.shape
    order = np.argsort(Z, axis=1, kind="stable")  # NaN last
    ordered = np.take_along_axis(Z, order, axis=1)
    new = np.ones((m, n), dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    # Runs of equal values over all rows laid end to end; a row always begins a new one.
    starts = np.flatnonzero(new)
    lengths = np.diff(np.r_[starts, m * n])
    middle = starts % n + (lengths + 1) / 2
    ranks = np.empty((m, n))
    np.put_along_axis(ranks, order, np.repeat(middle, lengths).reshape(m, n), axis=1)
    cubes = lengths.astype(float) ** 3 - lengths
    # NaN differs from itself, so that missing values make runs of one, which add nothing.
    ties = np.bincount(starts // n, cubes, minlength=m)
    ranks[~there] = 0.0
    return ranks, ties


def binary_tests(X: Array, codes: Array, k: int) -> FeatureTests:
    """Fisher's exact tests of features that are 0 or 1 (NaN where missing)."""
    Z = np.ascontiguousarray(X.T, dtype=float)
    there = ~np.isnan(Z)
    filled = np.where(there, Z, 0.0)
    member = (codes[:, None] == np.arange(k)).astype(float)
    inside, outside = means(filled, there, member)
    ones, n_in = np.rint(filled @ member), np.rint(there @ member)
    n, total = there.sum(axis=1), np.rint(filled.sum(axis=1)).astype(np.int64)
    p = np.full((k, len(Z)), np.nan)
    for c in range(k):
        # Margins repeat: one distribution serves all features that share them.
        keys = np.column_stack([n, total, n_in[:, c].astype(np.int64)])
        kinds, which = np.unique(keys, axis=0, return_inverse=True)
        for j, (all_, marked, size) in enumerate(kinds.tolist()):
            if 0 < marked < all_ and 0 < size < all_:
                rows = np.flatnonzero(which.ravel() == j)
                p[c, rows] = _fisher(all_, marked, size)[ones[rows, c].astype(np.int64)]
    return FeatureTests(inside - outside, p, inside, outside)


def _fisher(n: int, marked: int, size: int) -> Array:
    """Return the two-sided p-value for every number of marked members from 0 to ``size``."""
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
