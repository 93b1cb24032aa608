"""An index of nearest neighbours for many observations (pynndescent, extra "fast"), checked on a sample."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from ._types import Array

#: Up to this many rows every pair is looked at.
EXACT = 30_000
#: The index is compared with exact neighbours of this many rows, and should find this share of them.
CHECKED_ROWS, RECALL = 200, 0.9


def use_index(n: int) -> bool:
    """Whether to search approximately; large data without the package is slow, and says so once."""
    if n <= EXACT:
        return False
    try:
        import pynndescent  # noqa: F401
    except ModuleNotFoundError:
        warnings.warn(
            f"exact neighbours of {n} observations take time quadratic in their number; "
            "pip install 'manyview[fast]' for an approximate index",
            UserWarning,
            stacklevel=2,
        )
        return False
    return True


def index_neighbors(Z: Any, k: int, seed: int) -> Array:
    """k approximate Euclidean neighbours of every row of Z, nearest first, itself left out.

    Searched again more widely if a sample of rows shows that too many neighbours were missed.
    """
    data = Z.astype(np.float32, copy=False)
    data = sp.csr_matrix(data) if sp.issparse(data) else np.ascontiguousarray(data)
    rows = np.random.default_rng(seed).choice(data.shape[0], CHECKED_ROWS, replace=False)
    exact = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(data)
    expected = exact.kneighbors(data[rows], return_distance=False)
    recall = 0.0
    for wider in (1, 2):
        found = _descend(data, k, wider, seed)
        hits = [
            np.isin(e[e != r][:k], found[r]).mean() for r, e in zip(rows, expected, strict=True)
        ]
        recall = float(np.mean(hits))
        if recall >= RECALL:
            return found
    warnings.warn(
        f"the neighbour index finds only {recall:.0%} of the {k} nearest neighbours of a sample of "
        "rows; the graph is rough. Fewer, more telling features (a PCA of the view) would help",
        UserWarning,
        stacklevel=2,
    )
    return found


def _descend(data: Any, k: int, wider: int, seed: int) -> Array:
    from pynndescent import NNDescent

    # One job: with more, the lists depend on how many.
    index = NNDescent(data, n_neighbors=wider * k + 1, random_state=seed, n_jobs=1)
    found, _ = index.neighbor_graph
    others = found != np.arange(len(found))[:, None]
    others[others.all(axis=1), -1] = False  # a duplicate took the row's own place
    return found[others].reshape(len(found), wider * k)[:, :k]
