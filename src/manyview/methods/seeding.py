"""k-means++ for many starts on the same rows: their distances are measured once, for all starts."""

from __future__ import annotations

import numpy as np

from manyview._types import Array

#: Most pairs of rows whose distances are kept: 256 MiB in single precision.
SHARED_PAIRS = 2**26


class SharedSeeding:
    """Starts of `sklearn.cluster.KMeans` (its ``init``) by k-means++, as it draws them itself.

    Each centre is the best of a few candidates. All starts together look at nearly every row as a
    candidate, most of them many times: a table of all distances is less work.
    """

    def __init__(self, X: Array, weight: Array | None = None):
        self.weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
        own = np.einsum("im,im->i", X, X)
        self.squared = X @ X.T
        self.squared *= -2
        self.squared += own[:, None]
        self.squared += own
        np.maximum(self.squared, 0, out=self.squared)
        np.fill_diagonal(self.squared, 0)

    @staticmethod
    def fits(n_rows: int) -> bool:
        """Whether the distances of so many rows are few enough to be kept."""
        return n_rows**2 <= SHARED_PAIRS

    def __call__(self, X: Array, n_clusters: int, random_state: np.random.RandomState) -> Array:
        """The rows of X to start from."""
        return X[self.chosen(n_clusters, random_state)]

    def chosen(self, n_clusters: int, random_state: np.random.RandomState) -> Array:
        """The places of the rows, each likely by its squared distance to those chosen before."""
        n, weight, trials = len(self.weight), self.weight, 2 + int(np.log(n_clusters))
        chosen = np.empty(n_clusters, dtype=np.int64)
        chosen[0] = random_state.choice(n, p=weight / weight.sum())
        closest = self.squared[chosen[0]]
        for c in range(1, n_clusters):
            reached = np.cumsum(weight * closest)
            drawn = random_state.uniform(size=trials) * reached[-1]
            candidates = np.searchsorted(reached, drawn).clip(max=n - 1)
            left = np.minimum(closest, self.squared[candidates])
            best = int(np.argmin(left @ weight))
            chosen[c], closest = candidates[best], left[best]
        return chosen
