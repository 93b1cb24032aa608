"""Neighbour lists under the distances of `geometry`: exact in blocks, approximate when N is large.

No N×N array is made. The approximate lists come from an index of nearest Euclidean neighbours
(`neighbors`), re-ranked by the exact distance and improved once by looking at the neighbours of
neighbours.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ._types import Array
from .engines.arrays import is_tensor
from .engines.compiled import compiled
from .engines.threads import Threads, blocks
from .geometry import Geometry
from .neighbors import index_neighbors, use_index

#: Candidates asked of an index, per neighbour wanted.
WIDER = 1.5
#: Up to this many columns NumPy selects as quickly as a compiled loop.
FEW = 500
#: Coordinates of a sparse view in the joint space in which candidates are looked for.
PROJECTED = 128
#: Members of a neighbour's own list that are looked at when lists are improved.
DEPTH = 8


def view_lists(
    view: Geometry, k: int, seed: int, threads: Threads | None = None
) -> tuple[Array, Array, Array]:
    """The k nearest rows of every comparable row: (rows, indices, d), nearest first."""
    if is_tensor(view.Z):
        return view.nearest(k)  # type: ignore[attr-defined]
    rows = np.flatnonzero(view.comparable)
    k = min(k, len(rows) - 1)
    if k < 1:
        return rows[:0], np.empty((0, 1), dtype=int), np.empty((0, 1))
    if use_index(len(rows)):
        near = rows[index_neighbors(view.Z[rows], min(int(WIDER * k), len(rows) - 1), seed)]
        lists = for_all_rows(rows, near, view.n_samples)
        indices, distances = improved([view], np.ones(1), lists, k, threads)
        return rows, indices[rows], distances[rows]
    indices, distances = np.empty((view.n_samples, k), dtype=int), np.empty((view.n_samples, k))
    for block, d in view.blocks():
        d[:, ~view.comparable] = np.inf
        indices[block], distances[block] = smallest(d, k, block)
    return rows, indices[rows], distances[rows]


def fused_lists(
    views: list[Geometry],
    alpha: Array,
    k: int,
    view_neighbors: list[Array],
    seed: int,
    threads: Threads | None = None,
) -> tuple[Array, Array]:
    """The k nearest rows of every row under F = Σ α_s d^s, nearest first."""
    n = views[0].n_samples
    k = min(k, n - 1)
    if is_tensor(views[0].Z):
        from .torch_geometry import fused_nearest

        return fused_nearest(views, alpha, k)  # type: ignore[arg-type]
    if not use_index(n):
        indices, distances = np.empty((n, k), dtype=int), np.empty((n, k))
        for parts in zip(*(view.blocks() for view in views), strict=True):
            block = parts[0][0]
            d = sum(a * part for a, (_, part) in zip(alpha, parts, strict=True))
            indices[block], distances[block] = smallest(d, k, block)
        return indices, distances

    joint = index_neighbors(joint_space(views, alpha, seed), min(int(WIDER * k), n - 1), seed)
    # Neighbours in single views too: where one view is far more certain they are the ones.
    lists = np.hstack([joint, *view_neighbors])
    first, _ = ranked(views, alpha, lists, 0, k, threads)
    return improved(views, alpha, first, k, threads)


def smallest(d: Array, k: int, block: slice) -> tuple[Array, Array]:
    """Columns and values of the k smallest entries per row, the row itself apart, in order."""
    kernels = compiled()
    if kernels is not None and d.shape[1] > FEW:
        indices, values = np.empty((len(d), k), dtype=np.int64), np.empty((len(d), k))
        kernels.smallest_rows(d, k, block.start, indices, values)
        return indices, values
    d[np.arange(len(d)), np.arange(block.start, block.stop)] = np.inf
    nearest = np.argpartition(d, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(d, nearest, axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(nearest, order, axis=1), np.take_along_axis(values, order, axis=1)


# --- approximate -------------------------------------------------------------------------------


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
        Z = projected(view.Z, rng) if sp.issparse(view.Z) else view.Z
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


def projected(Z: sp.csr_array, rng: np.random.Generator) -> Array:
    """A sparse view in a few dense coordinates that nearly keep its distances (Johnson–Lindenstrauss)."""
    if Z.shape[1] <= PROJECTED:
        return Z.toarray()
    directions = rng.standard_normal((Z.shape[1], PROJECTED)).astype(np.float32)
    return (Z @ directions) / np.float32(np.sqrt(PROJECTED))


def improved(
    views: list[Geometry], alpha: Array, lists: Array, k: int, threads: Threads | None
) -> tuple[Array, Array]:
    """One pass over neighbours of neighbours: the k best of them and of the lists themselves."""
    return ranked(views, alpha, lists, min(DEPTH, lists.shape[1]), k, threads)


def ranked(
    views: list[Geometry],
    alpha: Array,
    lists: Array,
    depth: int,
    k: int,
    threads: Threads | None,
) -> tuple[Array, Array]:
    """The k nearest under Σ α_s d^s among a row's list and the first ``depth`` of its members' lists."""
    n, width = lists.shape
    indices, distances = np.empty((n, k), dtype=np.int64), np.empty((n, k))
    step = max(1, 2**18 // (width * (1 + depth)))

    def work(rows: slice) -> None:
        for b in blocks(rows, step):
            here = np.arange(b.start, b.stop)
            members = lists[here]
            reached = lists[members, :depth].reshape(len(here), -1)
            candidates = _distinct(here, np.hstack([members, reached]))
            d = _distances(views, alpha, here, candidates)
            order = np.argpartition(d, k - 1, axis=1)[:, :k]
            values = np.take_along_axis(d, order, axis=1)
            order = np.take_along_axis(order, np.argsort(values, axis=1, kind="stable"), axis=1)
            indices[b] = np.take_along_axis(candidates, order, axis=1)
            distances[b] = np.take_along_axis(d, order, axis=1)

    (threads or Threads(1)).map(work, n)
    return indices, distances


def _distinct(rows: Array, candidates: Array) -> Array:
    """Every candidate once, in order; −1 in place of repeats and of the row itself."""
    found = np.sort(candidates, axis=1)
    useless = found == rows[:, None]
    useless[:, 1:] |= found[:, 1:] == found[:, :-1]
    found[useless] = -1
    return found


def _distances(views: list[Geometry], alpha: Array, rows: Array, candidates: Array) -> Array:
    """Σ α_s d^s to every candidate; infinite where there is none."""
    useful = candidates >= 0
    d = np.where(useful, 0.0, np.inf)
    i, j = np.nonzero(useful)[0] + rows[0], candidates[useful]
    for a, view in zip(alpha, views, strict=True):
        if a > 0:
            d[useful] += a * view.pairs(i, j)
    return d


def for_all_rows(rows: Array, indices: Array, n: int) -> Array:
    """Lists of some rows as lists of all; a row without one lists itself (which counts for nothing)."""
    if len(rows) == n:
        return indices
    full = np.repeat(np.arange(n)[:, None], indices.shape[1], axis=1)
    full[rows] = indices
    return full
