"""Tests of one clinical column against clusters, each with an effect size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, random_table, rankdata

from manyview._types import Array

from .chance import batches, staged_p
from .feature_tests import rank_tests
from .rank_sums import fisher, on_grid


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
    """Test a table of clusters × levels: Fisher's exact test of 2 × 2, else Pearson's χ², permuted."""
    table = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if reason := _too_little(*table.shape):
        return untested(reason)
    expected = table.sum(axis=1)[:, None] * table.sum(axis=0) / table.sum()

    def chi_square(tables: Array) -> Array:
        return ((tables - expected) ** 2 / expected).sum(axis=(-2, -1))

    statistic = float(chi_square(table))
    effect = _cramer(statistic, table)
    name = "Cramér's V"
    if table.shape == (2, 2):
        size, marked = int(table[0].sum()), int(table[:, 0].sum())
        p = float(fisher(int(table.sum()), marked, size)[table[0, 0]])
        return Association("Fisher's exact", statistic, p, 0, effect, name)
    if not permutations:
        degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
        p = float(chi2.sf(statistic, degrees))
        return Association("χ²", statistic, p, 0, effect, name)
    p, drawn = _among_tables(table, chi_square, permutations, rng)
    return Association("χ², permuted", statistic, p, drawn, effect, name)


def of_numbers(
    values: Array, codes: Array, permutations: int, rng: np.random.Generator
) -> Association:
    """Test numbers or ordered levels by ranks: Mann–Whitney of two clusters, else Kruskal–Wallis.

    The p-value of two clusters is that of `markers`; of more it comes from permuted labels. Ranks
    are put on the same grid for both, so that one draw is one table of clusters × grid points.
    """
    codes = np.unique(codes, return_inverse=True)[1]
    sizes = np.bincount(codes)
    if reason := _too_little(len(sizes), len(np.unique(values))):
        return untested(reason)
    n, k = len(values), len(sizes)
    ranks = rankdata(values)
    own = np.unique(ranks)
    grid = on_grid(ranks, own[0], np.diff(own).max(), n).astype(np.intp)

    def kruskal(sums: Array, spread: float) -> Array:
        return (n - 1) / spread * np.sum(sums**2 / sizes, axis=-1)

    centered = ranks - (n + 1) / 2
    statistic = float(kruskal(np.bincount(codes, centered), np.sum(centered**2)))
    # The share of the ranks' variance between clusters, less what K clusters take by chance.
    effect = max(0.0, (statistic - k + 1) / (n - k)) if n > k else np.nan
    name = "rank η²"
    if k == 2:
        p = float(rank_tests(values[:, None], codes, 2).p_value[0, 0])
        return Association("Mann–Whitney", statistic, p, 0, effect, name)
    if not permutations:
        p = float(chi2.sf(statistic, k - 1))
        return Association("Kruskal–Wallis", statistic, p, 0, effect, name)
    points = np.arange(grid.max() + 1.0) - grid.mean()
    table = np.zeros((k, len(points)), dtype=np.int64)
    np.add.at(table, (codes, grid), 1)
    spread = float(table.sum(axis=0) @ points**2)
    p, drawn = _among_tables(
        table, lambda tables: kruskal(tables @ points, spread), permutations, rng
    )
    return Association("Kruskal–Wallis, permuted", statistic, p, drawn, effect, name)


def _among_tables(
    table: Array,
    statistic: Callable[[Array], Array],
    permutations: int,
    rng: np.random.Generator,
) -> tuple[float, int]:
    """Compare a table with those of shuffled labels: random tables of the same margins."""
    margins = random_table(table.sum(axis=1), table.sum(axis=0))

    def draw(total: int) -> Array:
        parts = [
            statistic(margins.rvs(size=b, random_state=rng)) for b in batches(total, table.size)
        ]
        return np.concatenate(parts)

    return staged_p(float(statistic(table)), draw, permutations)


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
