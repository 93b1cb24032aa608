"""Neighbour lists under the distances of `geometry`: exact in blocks, approximate when N is large.

No N×N array is made. The approximate lists come from an index of nearest Euclidean neighbours
(`neighbors`), re-ranked by the exact distance and improved once by looking at the neighbours of
neighbours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from manyview._arrays import on_host
from manyview._types import Array, Matrix
from manyview.engines.protocols import Distances, Lists
from manyview.engines.threads import Threads

from .neighbors import index_neighbors, use_index
from .ranking import improved, pair_distances, ranked
from .repeats import Crowds, crowds_of
from .ties import equal_share, nearest

if TYPE_CHECKING:
    from .distances import Geometry

#: Candidates asked of an index, per neighbour wanted.
WIDER = 1.5
#: Share of the neighbours in the joint space that is enough: the lists are improved by F itself.
ROUGHLY = 0.75
#: Coordinates of a sparse view in the joint space in which candidates are looked for.
PROJECTED = 128


def view_lists(view: Geometry, k: int, seed: int, threads: Threads | None = None) -> Lists:
    """The k nearest rows of every comparable row."""
    rows = np.flatnonzero(view.comparable)
    k = min(k, len(rows) - 1)
    if k < 1:
        return Lists(rows[:0], np.empty((0, 1), dtype=np.int64), np.empty((0, 1)))
    crowds = crowds_of(view, rows, k)
    if use_index(len(rows)):
        wide = min(int(WIDER * k), len(rows) - 1)
        near = rows[view.candidates(rows, wide, seed, threads)]
        lists = for_all_rows(rows, near, view.n_samples)
        indices, d = improved([view], np.ones(1), lists, k, threads)
    else:
        indices, d = _all_pairs(view, k, crowds)
    if crowds is not None:
        indices[crowds.rows], d[crowds.rows] = crowds.near, 0
    return Lists(rows, indices[rows], d[rows], masses(view, rows, indices[rows], crowds))


def _all_pairs(view: Geometry, k: int, crowds: Crowds | None) -> tuple[Array, Array]:
    indices, d = np.empty((view.n_samples, k), dtype=int), np.empty((view.n_samples, k))
    slack = view.slack()
    slack[~view.comparable] = -np.inf  # they get no list
    if crowds is not None:
        if len(crowds.rows) == view.comparable.sum():
            return indices, d
        slack[crowds.rows] = -np.inf  # they need not be sure: their lists are known
    for block, distances in view.blocks():
        distances[:, ~view.comparable] = np.inf
        indices[block], d[block] = settled([view], np.ones(1), distances, k, block, slack)
    return indices, d


def masses(view: Distances, rows: Array, indices: Array, crowds: Crowds | None) -> Array | None:
    """What the pairs of lists count; None where all count alike."""
    if view.mass is None and crowds is None:
        return None
    own = np.ones(view.n_samples) if view.mass is None else view.mass
    theirs = own[on_host(indices)]
    if crowds is not None:
        theirs[np.searchsorted(rows, crowds.rows)] = crowds.stands_for
    return own[rows][:, None] * theirs


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
    if not use_index(n):
        indices, distances = np.empty((n, k), dtype=int), np.empty((n, k))
        slack: Array = sum(a * view.slack() for a, view in zip(alpha, views, strict=True))
        for parts in zip(*(view.blocks() for view in views), strict=True):
            block = parts[0][0]
            d: Array = sum(a * part for a, (_, part) in zip(alpha, parts, strict=True))
            indices[block], distances[block] = settled(views, alpha, d, k, block, slack)
        return indices, distances

    space = joint_space(views, alpha, seed)
    joint = index_neighbors(space, min(int(WIDER * k), n - 1), seed, threads, ROUGHLY)
    return best_of(views, alpha, k, [joint, *view_neighbors], threads)


def best_of(
    views: list[Geometry], alpha: Array, k: int, candidates: list[Array], threads: Threads | None
) -> tuple[Array, Array]:
    """The k nearest under F among lists of candidates and the neighbours of these.

    Neighbours in single views are among them: where one view is far more certain they are the ones.
    """
    first, _ = ranked(views, alpha, np.hstack(candidates), 0, k, threads)
    return improved(views, alpha, first, k, threads)


def settled(
    views: list[Geometry], alpha: Array, d: Array, k: int, block: slice, slack: Array
) -> tuple[Array, Array]:
    """The k nearest rows of the rows of a block under Σ α_s d^s, in order, ties by row."""

    def exact(i: Array, j: Array) -> Array:
        return pair_distances(views, alpha, i + block.start, j)

    return nearest(d, k, block.start, slack[block], exact, equal_share(views[0].Z.dtype))


# --- approximate -------------------------------------------------------------------------------


def joint_space(views: list[Geometry], alpha: Array, seed: int) -> Matrix:
    """Coordinates whose squared Euclidean distances are nearly F: [√(α_s/mean μ_s) z_s].

    A missing row gets the view's mean and, in extra coordinates, a random vector of squared length
    α_s/2, so that it is about α_s from everything there. Sparse views alone stay sparse, and a missing
    row is zero there.
    """
    heard = [(a, view) for a, view in zip(alpha, views, strict=True) if a > 0]
    heard = [(a, view) for a, view in heard if view.comparable.any()]
    scales = [np.sqrt(a / np.mean(view.root_mu[view.comparable] ** 2)) for a, view in heard]
    if all(sp.issparse(view.Z) for _, view in heard):
        sides = [c * view.Z for c, (_, view) in zip(scales, heard, strict=True)]
        return sp.csr_array(sp.hstack(sides, dtype=np.float32))
    rng = np.random.default_rng(seed)
    parts, extra = [], np.zeros((views[0].n_samples, 16), dtype=np.float32)
    for scale, (a, view) in zip(scales, heard, strict=True):
        Z = projected(view.Z, rng) if sp.issparse(view.Z) else view.Z
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


def for_all_rows(rows: Array, indices: Array, n: int) -> Array:
    """Lists of some rows as lists of all; a row without one lists itself (which counts for nothing)."""
    if len(rows) == n:
        return indices
    full = np.repeat(np.arange(n)[:, None], indices.shape[1], axis=1)
    full[rows] = indices
    return full
