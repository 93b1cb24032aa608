"""An index of nearest neighbours for many observations (pynndescent, extra "fast"), checked on a sample."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from ._types import Array, Matrix
from .engines.code_cache import import_compiled
from .engines.sources import as_source, is_streamed, over, reading
from .engines.threads import blocks

#: Up to this many rows every pair is looked at.
EXACT = 30_000
#: The index is compared with exact neighbours of this many rows, and should find this share of them.
CHECKED_ROWS, RECALL = 200, 0.9
#: Large views in files are searched by their leading directions, this many, found in so many passes.
DIRECTIONS, PASSES = 64, 3
#: Rows that ask at a time, when all rows of a file are compared with them.
ASKING = 2**22


def use_index(n: int) -> bool:
    """Whether to search approximately; large data without the package is slow, and says so once."""
    if n <= EXACT:
        return False
    try:
        import_compiled("pynndescent")
    except ImportError:
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
    # One job: with more, the lists depend on how many.
    index = import_compiled("pynndescent").NNDescent(
        data, n_neighbors=wider * k + 1, random_state=seed, n_jobs=1
    )
    found, _ = index.neighbor_graph
    others = found != np.arange(len(found))[:, None]
    others[others.all(axis=1), -1] = False  # a duplicate took the row's own place
    return found[others].reshape(len(found), wider * k)[:, :k]


# --- views in files ----------------------------------------------------------------------------


def streamed_neighbors(X: Any, k: int, queries: Any = None) -> tuple[Array, Array]:
    """Nearest rows of a view in a file (indices and squared distances), by reading it in blocks.

    Up to `EXACT` rows, and for unseen rows, every pair is looked at. Above, the rows of X are
    searched by an index of their `DIRECTIONS` leading directions, and distances are in these.
    """
    available = X.shape[0] - (queries is None)
    k = min(k, available)
    if queries is None and use_index(available):
        sketch = project(X, leading_directions(X))
        near = index_neighbors(sketch, k, seed=0)
        squared = np.empty(near.shape)
        for b in blocks(slice(0, len(near)), 4096):
            gap = sketch[near[b]] - sketch[b][:, None]
            squared[b] = np.einsum("ikm,ikm->ik", gap, gap)
        order = np.argsort(squared, axis=1, kind="stable")
        return np.take_along_axis(near, order, axis=1), np.take_along_axis(squared, order, axis=1)
    asking = X if queries is None else as_source(queries)
    found = [
        _nearest_of(X, asking.read(rows), k, rows.start if queries is None else None)
        for rows in blocks(slice(0, asking.shape[0]), max(1, ASKING // X.shape[1]))
    ]
    indices, distances = (np.concatenate(part) for part in zip(*found, strict=True))
    return indices, distances**2


def _nearest_of(X: Any, rows: Matrix, k: int, own: int | None) -> tuple[Array, Array]:
    """The k rows of X nearest to ``rows``; their own places in X, from ``own`` on, do not count."""
    n = rows.shape[0]
    indices, distances = np.empty((n, 0), dtype=np.int64), np.empty((n, 0))
    start = 0
    for block in reading(as_source(X)):
        model = NearestNeighbors(n_neighbors=min(k + 1, block.shape[0]), algorithm="brute")
        d, near = model.fit(block).kneighbors(rows)
        near = near + start
        if own is not None:
            d = np.where(near == np.arange(own, own + n)[:, None], np.inf, d)
        indices, distances = np.hstack([indices, near]), np.hstack([distances, d])
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        indices = np.take_along_axis(indices, order, axis=1)
        distances = np.take_along_axis(distances, order, axis=1)
        start += block.shape[0]
    return indices, distances


def leading_directions(X: Any, n_directions: int = DIRECTIONS) -> Array:
    """The directions of feature space along which rows vary most (M×d), by subspace iteration.

    Only sums over rows are kept, of the features times ``n_directions``.
    """
    m = X.shape[1]
    if m <= n_directions:
        return np.eye(m)
    mean = sum(over(X, _feature_sums)) / X.shape[0]
    directions = np.linalg.qr(np.random.default_rng(0).standard_normal((m, n_directions)))[0]
    for _ in range(PASSES):
        directions = np.linalg.qr(sum(over(X, _image, directions, mean)))[0]
    return directions


def _feature_sums(block: Matrix) -> Array:
    return np.ravel(block.sum(axis=0, dtype=float))


def _image(block: Matrix, directions: Array, mean: Array) -> Array:
    """(X − mean)ᵀ(X − mean) times the directions, of some rows."""
    along = block @ directions - mean @ directions
    return block.T @ along - np.outer(mean, along.sum(axis=0))


def project(X: Any, directions: Array) -> Array:
    """Rows of X along ``directions``, in float32."""
    return np.concatenate(over(X, _along, directions))


def _along(block: Matrix, directions: Array) -> Array:
    return (block @ directions).astype(np.float32)


def take_rows(X: Any, rows: Array) -> Matrix:
    """Chosen rows of a view, in memory or in a file."""
    if not is_streamed(X):
        return X[rows]
    return X.take(rows)
