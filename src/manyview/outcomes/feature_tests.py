"""Tests of many features at once: each cluster against all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array

from .rank_sums import fisher, on_grid, rank_sum_p


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
    """Compare the ranks of members and others, for every column of X (n, M)."""
    Z = np.ascontiguousarray(X.T, dtype=float)
    there = ~np.isnan(Z)
    ranks, lowest, gap = _ranks(Z, there)
    n = there.sum(axis=1)[:, None].astype(float)
    grid = np.where(there, on_grid(ranks, lowest[:, None], gap[:, None], n), 0).astype(np.int64)
    points = int(grid.max(initial=0)) + 1
    place = (np.arange(len(Z))[:, None] * points + grid)[there]
    counts = np.bincount(place, minlength=len(Z) * points).reshape(len(Z), points)
    member = (codes[:, None] == np.arange(k)).astype(float)
    n_in = (there @ member) if not there.all() else np.broadcast_to(member.sum(axis=0), (len(Z), k))
    p = rank_sum_p(counts, n_in, grid @ member)
    inside, outside = means(np.where(there, Z, 0.0), there, member)
    return FeatureTests(_effect(ranks @ member, n, n_in).T, p.T, inside, outside)


def sparse_rank_tests(X: sp.csc_array, codes: Array, k: int) -> FeatureTests:
    """The same of a sparse X without NaN: only what is not zero is ranked."""
    n, m = X.shape
    X = sp.csc_array(X, dtype=float, copy=True)
    X.eliminate_zeros()
    feature = np.repeat(np.arange(m), np.diff(X.indptr))
    order = np.lexsort((X.data, feature))
    values, cell = X.data[order], codes[X.indices[order]]
    # One entry stands for all zeros of a feature, in its place among the others.
    zeros = n - np.diff(X.indptr)
    some = np.flatnonzero(zeros)
    at = np.lexsort((np.r_[values, np.zeros(len(some))], np.r_[feature, some]))
    values = np.r_[values, np.zeros(len(some))][at]
    feature = np.r_[feature, some][at]
    cell = np.r_[cell, np.full(len(some), -1)][at]
    weight = np.r_[np.ones(len(order)), zeros[some]][at]
    new = np.ones(len(values), dtype=bool)
    new[1:] = (values[1:] != values[:-1]) | (feature[1:] != feature[:-1])
    starts = np.flatnonzero(new)
    run = np.cumsum(new) - 1
    lengths = np.add.reduceat(weight, starts) if len(starts) else np.empty(0)
    own = feature[starts]
    middle = np.cumsum(lengths) - n * own - (lengths - 1) / 2
    lowest, gap = _lowest_and_gap(own, middle, m)
    grid = on_grid(middle, lowest[own], gap[own], n)
    points = int(grid.max(initial=0)) + 1
    counts = np.bincount(own * points + grid.astype(np.int64), lengths, m * points)
    size = np.bincount(codes[codes >= 0], minlength=k).astype(float)
    place, known = feature * k + cell, cell >= 0

    def by_cluster(what: Array) -> Array:
        return np.bincount(place[known], what[known], m * k).reshape(m, k)

    here, sums = by_cluster(np.ones(len(values))), by_cluster(values)
    rank_of_zero, grid_of_zero = np.zeros((2, m, 1))
    zero = values[starts] == 0
    rank_of_zero[own[zero], 0], grid_of_zero[own[zero], 0] = middle[zero], grid[zero]
    ranks = by_cluster(middle[run]) + (size - here) * rank_of_zero
    total = by_cluster(grid[run]) + (size - here) * grid_of_zero
    n_in = np.broadcast_to(size, (m, k))
    p = rank_sum_p(counts.reshape(m, points), n_in, total)
    rest = np.bincount(feature, values, m)[:, None] - sums
    with np.errstate(divide="ignore", invalid="ignore"):
        inside, outside = sums / size, rest / (n - size)
    return FeatureTests(_effect(ranks, n, n_in).T, p.T, inside.T, outside.T)


def _effect(rank_sums: Array, n: Any, n_in: Array) -> Array:
    """Return rank-biserial correlations (features × clusters) from the sums of the members' ranks."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return 2 * (rank_sums - n_in * (n_in + 1) / 2) / (n_in * (n - n_in)) - 1


def _lowest_and_gap(row: Array, middle: Array, m: int) -> tuple[Array, Array]:
    """Return the lowest rank of each row and the largest step between neighbors, from runs of ties."""
    lowest, gap = np.ones(m), np.zeros(m)
    same = row[1:] == row[:-1]
    np.maximum.at(gap, row[1:][same], np.diff(middle)[same])
    first = np.r_[True, ~same][: len(row)]
    lowest[row[first]] = middle[first]
    return lowest, gap


def means(filled: Array, there: Array, member: Array) -> tuple[Array, Array]:
    """Return the means of members and of others, clusters × features."""
    sums, counts = filled @ member, there @ member
    rest = filled.sum(axis=1)[:, None] - sums, there.sum(axis=1)[:, None] - counts
    with np.errstate(divide="ignore", invalid="ignore"):
        return (sums / counts).T, (rest[0] / rest[1]).T


def _ranks(Z: Array, there: Array) -> tuple[Array, Array, Array]:
    """Return average ranks within rows (0 where missing), the lowest, and the largest step."""
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
    ranks[~there] = 0.0
    seen = starts % n < there.sum(axis=1)[starts // n]
    return ranks, *_lowest_and_gap(starts[seen] // n, middle[seen], m)


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
                p[c, rows] = fisher(all_, marked, size)[ones[rows, c].astype(np.int64)]
    return FeatureTests(inside - outside, p, inside, outside)
