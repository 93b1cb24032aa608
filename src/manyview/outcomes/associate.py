"""Tests of one clinical column against clusters, each with an effect size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, fisher_exact, random_table, rankdata

from manyview._types import Array

from .chance import batches, permuted_p

#: The χ² approximation serves from this expected count on (Cochran's rule, without its exceptions).
LEAST_EXPECTED = 5.0
#: The approximation of Kruskal and Wallis serves from this many members of every cluster on.
LEAST_MEMBERS = 10


@dataclass(frozen=True)
class Association:
    """A test of independence.

    Attributes
    ----------
    test : str
        Its name, empty if none was made.
    statistic, p_value : float
        NaN if none was made.
    permutations : int
        0 where the p-value is exact or asymptotic.
    effect : float
        From 0 (none) to 1, corrected for what chance alone gives.
    effect_name : str
    reason : str
        Why no test was made, or empty.
    """

    test: str
    statistic: float
    p_value: float
    permutations: int
    effect: float
    effect_name: str
    reason: str = ""


def untested(reason: str) -> Association:
    """Return the association of a column that cannot be tested."""
    return Association("", np.nan, np.nan, 0, np.nan, "", reason)


def of_counts(counts: Array, permutations: int, rng: np.random.Generator) -> Association:
    """Test a table of clusters × levels: Fisher's exact test of 2 × 2, else Pearson's χ².

    The χ² is compared with random tables of the same margins where an expected count is below 5.
    """
    table = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if reason := _too_little(*table.shape):
        return untested(reason)
    expected = table.sum(axis=1)[:, None] * table.sum(axis=0) / table.sum()
    statistic = float(((table - expected) ** 2 / expected).sum())
    effect = _cramer(statistic, table)
    name = "Cramér's V"
    if table.shape == (2, 2):
        p = float(fisher_exact(table).pvalue)
        return Association("Fisher's exact", statistic, p, 0, effect, name)
    if expected.min() >= LEAST_EXPECTED or not permutations:
        degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
        p = float(chi2.sf(statistic, degrees))
        return Association("χ²", statistic, p, 0, effect, name)
    margins = random_table(table.sum(axis=1), table.sum(axis=0))
    drawn = [
        ((margins.rvs(size=b, random_state=rng) - expected) ** 2 / expected).sum(axis=(1, 2))
        for b in batches(permutations, table.size)
    ]
    p = permuted_p(statistic, np.concatenate(drawn))
    return Association("χ², permuted", statistic, p, permutations, effect, name)


def of_numbers(
    values: Array, codes: Array, permutations: int, rng: np.random.Generator
) -> Association:
    """Test numbers or ordered levels by Kruskal and Wallis: do the clusters differ in rank?

    Labels are permuted where a cluster has fewer than 10 members.
    """
    codes = np.unique(codes, return_inverse=True)[1]
    sizes = np.bincount(codes)
    if reason := _too_little(len(sizes), len(np.unique(values))):
        return untested(reason)
    n, k = len(values), len(sizes)
    ranks = rankdata(values) - (n + 1) / 2
    scale = (n - 1) / np.sum(ranks**2)  # corrects for ties as well
    statistic = float(scale * np.sum(np.bincount(codes, ranks) ** 2 / sizes))
    # The share of the ranks' variance between clusters, less what K clusters take by chance.
    effect = max(0.0, (statistic - k + 1) / (n - k)) if n > k else np.nan
    name = "rank η²"
    if sizes.min() >= LEAST_MEMBERS or not permutations:
        p = float(chi2.sf(statistic, k - 1))
        return Association("Kruskal–Wallis", statistic, p, 0, effect, name)
    drawn = []
    for b in batches(permutations, n):
        shuffled = rng.permuted(np.repeat(ranks[None], b, axis=0), axis=1)
        # Members of a cluster are any so many of the shuffled ranks: take them in a row.
        sums = np.add.reduceat(shuffled, np.r_[0, np.cumsum(sizes)[:-1]], axis=1)
        drawn.append(scale * np.sum(sums**2 / sizes, axis=1))
    p = permuted_p(statistic, np.concatenate(drawn))
    return Association("Kruskal–Wallis, permuted", statistic, p, permutations, effect, name)


def residuals(counts: Array) -> Array:
    """Return (observed − expected) in units of their deviation under independence (Haberman)."""
    total = counts.sum()
    rows, columns = counts.sum(axis=1)[:, None], counts.sum(axis=0)[None]
    expected = rows * columns / total
    spread = np.sqrt(expected * (1 - rows / total) * (1 - columns / total))
    return np.divide(counts - expected, spread, out=np.zeros(counts.shape), where=spread > 0)


def rank_residuals(values: Array, codes: Array, k: int) -> Array:
    """Return the mean rank of every cluster less that of all, in units of its deviation."""
    n, sizes = len(values), np.bincount(codes, minlength=k)
    ranks = rankdata(values) - (n + 1) / 2
    sums = np.bincount(codes, ranks, minlength=k)
    spread = np.sqrt(np.sum(ranks**2) / max(n - 1, 1) * sizes * (1 - sizes / max(n, 1)))
    return np.divide(sums, spread, out=np.zeros(k), where=spread > 0)


def _too_little(n_clusters: int, n_values: int) -> str:
    if n_values < 2:
        return "not tested: every value is the same"
    return "not tested: fewer than two clusters have values" if n_clusters < 2 else ""


def _cramer(statistic: float, table: Array) -> float:
    """Cramér's V, corrected for bias (Bergsma 2013)."""
    n = table.sum()
    r, c = table.shape
    phi = max(0.0, statistic / n - (r - 1) * (c - 1) / (n - 1))
    least = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
    return float(min(1.0, np.sqrt(phi / least))) if least > 0 else np.nan
