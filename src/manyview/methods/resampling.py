"""Random parts of the observations, and how much clusterings of them agree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.optimize import linear_sum_assignment

from manyview._arrays import one_hot
from manyview._types import Array
from manyview.maths import equations as eq

from .assign import kmeans

#: Halves that are clustered for `clusters_of_halves`, starts of each, and most rows of one.
HALVES, STARTS, MOST_ROWS = 20, 3, 5_000


def resamples(n: int, fraction: float, n_runs: int, rng: np.random.Generator) -> Iterator[Array]:
    """``n_runs`` sorted subsets of a share of range(n), each row left out equally often (±1)."""
    n_out = n - part_size(n, fraction)
    waiting = np.empty(0, dtype=int)
    for _ in range(n_runs):
        if len(waiting) < n_out:
            # The next round. Rows still waiting from the last must not come twice in this run.
            fresh = rng.permutation(n)
            late = np.isin(fresh, waiting)
            now, later = fresh[~late][:n_out], np.append(fresh[~late][n_out:], fresh[late])
            waiting = np.concatenate([waiting, now, rng.permutation(later)])
        out, waiting = waiting[:n_out], waiting[n_out:]
        yield np.setdiff1d(np.arange(n), out)


def part_size(n: int, fraction: float) -> int:
    """Rows in a run."""
    return max(2, round(fraction * n))


def pairwise_ari(runs: Array) -> Array:
    """Adjusted Rand index of every two rows of labels, on the entries that both have (≥ 0)."""
    return np.array([shared_ari(runs[a], runs[b]) for a in range(len(runs)) for b in range(a)])


def shared_ari(one: Array, other: Array) -> float:
    """Adjusted Rand index (Hubert & Arabie) over the entries labelled in both.

    With n_kl the table of shared members and C(x) = x(x−1)/2 ::

        (Σ C(n_kl) − E) / (½(Σ C(n_k.) + Σ C(n_.l)) − E),   E = Σ C(n_k.) Σ C(n_.l) / C(n)
    """
    both = (one >= 0) & (other >= 0)
    a, b = one[both], other[both]
    if len(a) < 2:  # nothing to compare; but who labels nothing agrees with nobody
        return float((one >= 0).any() and (other >= 0).any())
    table = contingency(a, b, int(a.max()) + 1, int(b.max()) + 1)

    def pairs(counts: Array) -> float:
        return float((counts * (counts - 1.0)).sum() / 2)

    rows, columns = pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    expected = rows * columns / (len(a) * (len(a) - 1) / 2)
    ceiling = (rows + columns) / 2
    return 1.0 if ceiling == expected else (pairs(table) - expected) / (ceiling - expected)


def contingency(a: Array, b: Array, n_a: int, n_b: int) -> Array:
    return np.bincount(a * n_b + b, minlength=n_a * n_b).reshape(n_a, n_b)


def matched(own: Array, other: Array, n_clusters: int) -> Array:
    """For each cluster of ``other`` the one of ``own`` it stands for, one to one, most members shared."""
    theirs, ours = linear_sum_assignment(
        contingency(other, own, n_clusters, n_clusters), maximize=True
    )
    return ours[np.argsort(theirs)]


def clusters_of_halves(
    P: Array, labels: Array, repeats: tuple[Array, Array | None] | None, n_clusters: int
) -> tuple[Array, Array]:
    """How a refit could place the clusters: k-means of the embedding on random halves of the rows.

    A half differs from all rows as much as another sample of the same size would: without replacement
    the mean of n/2 of n rows has the variance around theirs that theirs has around the truth.

    Parameters
    ----------
    P : ndarray (N, dim)
    labels : ndarray (N,), −1 for rows that are not looked at
    repeats : first rows of distinct observations and how often they count, if any repeat
    n_clusters : int

    Returns
    -------
    Centres in each half (n_halves×K×dim), in the order of ``labels``; their mean squared distances.
    """
    rows, mass = (np.arange(len(P)), None) if repeats is None else repeats
    here = labels[rows] >= 0
    if here.sum() < n_clusters:  # copies are clusters of their own
        rows, here, mass = np.arange(len(P)), labels >= 0, None
    rows, mass = rows[here], None if mass is None else mass[here]
    size = min(len(rows), max(min(len(rows) // 2, MOST_ROWS), 2 * n_clusters))
    rng = np.random.default_rng(0)
    centres = np.empty((HALVES, n_clusters, P.shape[1]), dtype=P.dtype)
    widths = np.empty(HALVES)
    for b in range(HALVES):
        some = np.sort(rng.permutation(len(rows))[:size])
        share = np.ones(size) if mass is None else mass[some]
        X = P[rows[some]]
        found = kmeans(X, n_clusters, rng, STARTS, share)
        found = matched(labels[rows[some]], found, n_clusters)[found]
        centres[b] = eq.cluster_centres(X, share[:, None] * one_hot(found, n_clusters))
        own = ((X - centres[b][found]) ** 2).sum(axis=1)
        widths[b] = max(float(share @ own / share.sum()), np.finfo(float).eps)
    return centres, widths
