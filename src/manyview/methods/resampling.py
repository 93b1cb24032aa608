"""Random parts of the observations, and how much clusterings of them agree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from manyview._types import Array


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
