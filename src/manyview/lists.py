"""Neighbour lists under the distances of `geometry`: exact in blocks, approximate when N is large.

No N×N array is made. The approximate lists come from an index of nearest Euclidean neighbours
(pynndescent, extra "fast"), re-ranked by the exact distance and improved once by looking at the
neighbours of neighbours.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._types import Array
from .geometry import Geometry

#: Up to this many rows every pair is looked at.
EXACT = 30_000
#: Candidates asked of an index, per neighbour wanted.
WIDER = 3


def view_lists(view: Geometry, k: int, seed: int) -> tuple[Array, Array, Array]:
    """The k nearest rows of every comparable row: (rows, indices, d), nearest first."""
    rows = np.flatnonzero(view.comparable)
    k = min(k, len(rows) - 1)
    if k < 1:
        return rows[:0], np.empty((0, 1), dtype=int), np.empty((0, 1))
    if use_index(len(rows)):
        near = index_neighbors(view.Z[rows], min(WIDER * k, len(rows) - 1), seed)
        indices, distances = ranked(view.pairs, rows, rows[near], k)
        return rows, indices, distances
    indices, distances = np.empty((view.n_samples, k), dtype=int), np.empty((view.n_samples, k))
    for block, d in view.blocks():
        d[:, ~view.comparable] = np.inf
        indices[block], distances[block] = smallest(d, k, block)
    return rows, indices[rows], distances[rows]


def fused_lists(
    views: list[Geometry], alpha: Array, k: int, view_neighbors: list[Array], seed: int
) -> tuple[Array, Array]:
    """The k nearest rows of every row under F = Σ α_s d^s, nearest first."""
    n = views[0].n_samples
    k = min(k, n - 1)
    if not use_index(n):
        indices, distances = np.empty((n, k), dtype=int), np.empty((n, k))
        for parts in zip(*(view.blocks() for view in views), strict=True):
            block = parts[0][0]
            d = sum(a * part for a, (_, part) in zip(alpha, parts, strict=True))
            indices[block], distances[block] = smallest(d, k, block)
        return indices, distances

    def F(i: Array, j: Array) -> Array:
        return sum(a * view.pairs(i, j) for a, view in zip(alpha, views, strict=True))

    joint = index_neighbors(joint_space(views, alpha, seed), min(WIDER * k, n - 1), seed)
    rows = np.arange(n)
    # Neighbours in single views first: where one view is far more certain they are the ones.
    indices, _ = ranked(F, rows, np.hstack([joint, *view_neighbors]), k)
    return improved(F, indices)


def smallest(d: Array, k: int, block: slice) -> tuple[Array, Array]:
    """Columns and values of the k smallest entries per row, the row itself apart, in order."""
    d[np.arange(len(d)), np.arange(block.start, block.stop)] = np.inf
    nearest = np.argpartition(d, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(d, nearest, axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(nearest, order, axis=1), np.take_along_axis(values, order, axis=1)


# --- approximate -------------------------------------------------------------------------------


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
    """k approximate Euclidean neighbours of every row of Z, itself left out."""
    from pynndescent import NNDescent

    data = Z.astype(np.float32)
    data = sp.csr_matrix(data) if sp.issparse(data) else np.ascontiguousarray(data)
    index = NNDescent(data, n_neighbors=k + 1, metric="euclidean", random_state=seed, n_jobs=1)
    found, _ = index.neighbor_graph
    others = found != np.arange(len(found))[:, None]
    others[others.all(axis=1), -1] = False  # a duplicate took the row's own place
    return found[others].reshape(len(found), k)


def joint_space(views: list[Geometry], alpha: Array, seed: int) -> Array:
    """Coordinates whose squared Euclidean distances are nearly F: [√(α_s/mean μ_s) z_s].

    A missing row gets the view's mean and, in extra coordinates, a random vector of squared length
    α_s/2, so that it is about α_s from everything there.
    """
    rng = np.random.default_rng(seed)
    parts, extra = [], np.zeros((views[0].n_samples, 16), dtype=np.float32)
    for a, view in zip(alpha, views, strict=True):
        if not view.comparable.any() or a <= 0:
            continue
        Z = view.Z.toarray() if sp.issparse(view.Z) else view.Z
        scale = np.sqrt(a / np.mean(view.root_mu[view.comparable] ** 2))
        part = (scale * Z).astype(np.float32)
        absent = ~view.comparable
        if absent.any():
            part[absent] = part[view.comparable].mean(axis=0)
            lengths = rng.standard_normal((int(absent.sum()), 16))
            lengths *= np.sqrt(a / 2) / np.linalg.norm(lengths, axis=1, keepdims=True)
            extra[absent] += lengths.astype(np.float32)
        parts.append(part)
    return np.hstack([*parts, extra]) if extra.any() else np.hstack(parts)


def ranked(
    distance: Callable[[Array, Array], Array], rows: Array, candidates: Array, k: int
) -> tuple[Array, Array]:
    """The k best candidates of every row by the exact distance, repeats and the row itself removed."""
    indices, distances = np.empty((len(rows), k), dtype=int), np.empty((len(rows), k))
    step = max(1, 2**18 // candidates.shape[1])
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        indices[part], distances[part] = _best(distance, rows[part], candidates[part], k)
    return indices, distances


def improved(distance: Callable[[Array, Array], Array], lists: Array) -> tuple[Array, Array]:
    """One pass over neighbours of neighbours: the best of them and of the lists themselves."""
    n, k = lists.shape
    indices, distances = np.empty((n, k), dtype=int), np.empty((n, k))
    step = max(1, 2**18 // (k * k))
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        near = lists[rows]
        candidates = np.hstack([near, lists[near].reshape(len(rows), -1)])
        indices[rows], distances[rows] = _best(distance, rows, candidates, k)
    return indices, distances


def _best(
    distance: Callable[[Array, Array], Array], rows: Array, candidates: Array, k: int
) -> tuple[Array, Array]:
    found = np.sort(candidates, axis=1)
    useful = found != rows[:, None]
    useful[:, 1:] &= found[:, 1:] != found[:, :-1]
    d = np.full(found.shape, np.inf)
    d[useful] = distance(np.broadcast_to(rows[:, None], found.shape)[useful], found[useful])
    order = np.argpartition(d, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(d, order, axis=1)
    order = np.take_along_axis(order, np.argsort(values, axis=1, kind="stable"), axis=1)
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(d, order, axis=1)
