"""Neighbour lists under the distances of `geometry`: exact in blocks, approximate when N is large.

No N×N array is made. The approximate lists come from an index of nearest Euclidean neighbours
(`neighbors`), re-ranked by the exact distance and improved once by looking at the neighbours of
neighbours.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from manyview._arrays import on_host
from manyview._types import Array
from manyview.engines.protocols import Distances, Lists
from manyview.engines.threads import Threads, blocks

from .neighbors import index_neighbors, use_index
from .repeats import Crowds, crowds_of
from .ties import equal_share, nearest

if TYPE_CHECKING:
    from .distances import Geometry

#: Candidates asked of an index, per neighbour wanted.
WIDER = 1.5
#: Coordinates of a sparse view in the joint space in which candidates are looked for.
PROJECTED = 128
#: Members of a neighbour's own list that are looked at when lists are improved.
DEPTH = 8


def view_lists(view: Geometry, k: int, seed: int, threads: Threads | None = None) -> Lists:
    """The k nearest rows of every comparable row."""
    rows = np.flatnonzero(view.comparable)
    k = min(k, len(rows) - 1)
    if k < 1:
        return Lists(rows[:0], np.empty((0, 1), dtype=np.int64), np.empty((0, 1)))
    crowds = crowds_of(view, rows, k)
    if use_index(len(rows)):
        near = rows[index_neighbors(view.Z[rows], min(int(WIDER * k), len(rows) - 1), seed)]
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

    joint = index_neighbors(joint_space(views, alpha, seed), min(int(WIDER * k), n - 1), seed)
    # Neighbours in single views too: where one view is far more certain they are the ones.
    lists = np.hstack([joint, *view_neighbors])
    first, _ = ranked(views, alpha, lists, 0, k, threads)
    return improved(views, alpha, first, k, threads)


def settled(
    views: list[Geometry], alpha: Array, d: Array, k: int, block: slice, slack: Array
) -> tuple[Array, Array]:
    """The k nearest rows of the rows of a block under Σ α_s d^s, in order, ties by row."""

    def exact(i: Array, j: Array) -> Array:
        return pair_distances(views, alpha, i + block.start, j)

    return nearest(d, k, block.start, slack[block], exact, equal_share(views[0].Z.dtype))


def pair_distances(views: list[Geometry], alpha: Array, i: Array, j: Array) -> Array:
    """Σ α_s d^s of the pairs (i, j)."""
    each = (a * view.pairs(i, j) for a, view in zip(alpha, views, strict=True) if a > 0)
    return sum(each, start=np.zeros(len(i)))


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
    indices, distances, none = np.empty((n, k), dtype=np.int64), np.empty((n, k)), np.zeros(n)
    step, share = max(1, 2**18 // (width * (1 + depth))), equal_share(views[0].Z.dtype)

    def work(rows: slice) -> None:
        for b in blocks(rows, step):
            here = np.arange(b.start, b.stop)
            members = lists[here]
            reached = lists[members, :depth].reshape(len(here), -1)
            candidates = _distinct(here, np.hstack([members, reached]))
            d = _distances(views, alpha, here, candidates)
            # Measured pair by pair already; candidates are in the order of the rows.
            order, distances[b] = nearest(d, k, None, none[: len(d)], partial(_entries, d), share)
            indices[b] = np.take_along_axis(candidates, order, axis=1)

    (threads or Threads(1)).map(work, n)
    return indices, distances


def _entries(d: Array, i: Array, j: Array) -> Array:
    return d[i, j]


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
    d[useful] = pair_distances(views, alpha, i, j)
    return d


def for_all_rows(rows: Array, indices: Array, n: int) -> Array:
    """Lists of some rows as lists of all; a row without one lists itself (which counts for nothing)."""
    if len(rows) == n:
        return indices
    full = np.repeat(np.arange(n)[:, None], indices.shape[1], axis=1)
    full[rows] = indices
    return full
