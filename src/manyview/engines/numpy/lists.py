"""Neighbour lists under the distances of `distances`: exact, or approximate where N is large.

No N×N array is made. Where products of two sides tell distances (`sides`), candidates come from these in
single precision, of all pairs or of those in the nearest cells (`search`), and are measured pair by pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from manyview._arrays import on_host
from manyview._types import Array
from manyview.engines.protocols import Distances, Lists
from manyview.engines.threads import Threads, blocks

from .neighbors import CHECKED_ROWS, RECALL, searched, tell_rough, use_index
from .ranking import improved, pair_distances, ranked
from .repeats import Crowds, crowds_of
from .search import ENOUGH, Sample, smallest_products
from .sides import Sides, parts_of
from .ties import equal_share, merged, nearest, smallest

if TYPE_CHECKING:
    from .distances import Geometry

#: Candidates by products beyond the neighbours wanted, when all pairs are looked at.
EXTRA = 8
#: Rows that answer at a time when a sample of rows looks at all, and entries of long ones.
ANSWERING, ENTRIES = 2**14, 2**22
#: Entries of a temporary block of distances, and fewest rows of it.
BLOCK, FEWEST = 2**19, 64


def view_lists(view: Geometry, k: int, seed: int, threads: Threads | None = None) -> Lists:
    """The k nearest rows of every comparable row."""
    rows = np.flatnonzero(view.comparable)
    k = min(k, len(rows) - 1)
    if k < 1:
        return Lists(rows[:0], np.empty((0, 1), dtype=np.int64), np.empty((0, 1)))
    crowds = crowds_of(view, rows, k)
    asking = rows if crowds is None else np.setdiff1d(rows, crowds.behind)
    if use_index(len(asking)):
        indices, d = view.search(asking, k, seed, threads)
    else:
        known = rows[:0] if crowds is None else np.setdiff1d(crowds.rows, crowds.behind)
        indices, d = all_pairs([view], np.ones(1), asking, k, known, threads)
    if crowds is not None:
        found, at = (indices, d), np.searchsorted(rows, asking)
        indices, d = np.empty((len(rows), k), dtype=np.int64), np.zeros((len(rows), k))
        indices[at], d[at] = found
        at = np.searchsorted(rows, crowds.rows)
        indices[at], d[at] = crowds.near, 0
    return Lists(rows, indices, d, masses(view, rows, indices, crowds))


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
    seed: int,
    threads: Threads | None = None,
) -> tuple[Array, Array]:
    """The k nearest rows of every row under F = Σ α_s d^s, nearest first."""
    n = views[0].n_samples
    k, everyone = min(k, n - 1), np.arange(n)
    if not use_index(n):
        return all_pairs(views, alpha, everyone, k, everyone[:0], threads)
    return approximate(views, alpha, everyone, k, seed, threads)


# --- some of the pairs -------------------------------------------------------------------------


def approximate(
    views: list[Geometry],
    alpha: Array,
    rows: Array,
    k: int,
    seed: int,
    threads: Threads | None,
    enough: float = ENOUGH,
) -> tuple[Array, Array]:
    """The k nearest of ``rows`` for each of them under Σ α_s d^s, but for a few that are missed."""
    threads, n = threads or Threads(1), views[0].n_samples
    checked = min(CHECKED_ROWS, len(rows))
    asking = np.random.default_rng(seed).choice(len(rows), checked, replace=False)
    sample = Sample(asking, *sample_lists(views, alpha, asking, rows, k, threads), enough)
    near = searched(parts_of(views, alpha, rows), k, sample, seed, threads)
    lists = near if len(rows) == n else for_all_rows(rows, rows[near], n)
    share = equal_share(views[0].Z.dtype)
    indices, d = ranked(views, alpha, lists, 0, k, threads)
    if sample.reached(d[rows], share) < RECALL:
        indices, d = improved(views, alpha, indices, k, threads)
        recall = sample.reached(d[rows], share)
        if recall < RECALL:
            tell_rough(recall, k)
    return indices[rows], d[rows]


def sample_lists(
    views: list[Geometry], alpha: Array, asking: Array, rows: Array, k: int, threads: Threads
) -> tuple[Array, Array]:
    """The k nearest of ``rows`` for some of them, by their places there, and how far the last one is.

    Some rows at a time answer: distances of even a few rows to all of a million take much room.
    """
    heard = [(float(a), view) for a, view in zip(alpha, views, strict=True) if a > 0]

    def look(part: slice) -> tuple[Array, Array]:
        d: Any = sum(a * view.across(rows[asking], rows[part]) for a, view in heard)
        own = np.flatnonzero((asking >= part.start) & (asking < part.stop))
        d[own, asking[own] - part.start] = np.inf
        near, values = smallest(d, min(k, d.shape[1]), None)
        return near + part.start, values

    widest = max(view.n_features for _, view in heard)
    step = min(ANSWERING, max(k + 1, ENTRIES // widest))
    found = threads.each(look, list(blocks(slice(0, len(rows)), step)))
    near, _ = merged(found, k, equal_share(views[0].Z.dtype))
    i, j = np.repeat(rows[asking], k), rows[near.ravel()]
    return near, pair_distances(views, alpha, i, j).reshape(near.shape).max(axis=1)


# --- all pairs ---------------------------------------------------------------------------------


def all_pairs(
    views: list[Geometry], alpha: Array, rows: Array, k: int, known: Array, threads: Threads | None
) -> tuple[Array, Array]:
    """The k nearest of ``rows`` for each of them under Σ α_s d^s; of no matter whom where ``known``.

    Products in single precision tell which rows may be among them. Where these are too many, distances
    from products in the precision of the views are looked at, as they are where nothing else is at hand.
    """
    n, threads = len(rows), threads or Threads(1)
    indices, d = np.empty((n, k), dtype=np.int64), np.empty((n, k))
    unsure = np.ones(n, dtype=bool)
    if all(view.products_tell() for a, view in zip(alpha, views, strict=True) if a > 0):
        indices, d, unsure = by_products(views, alpha, rows, k, threads)
    unsure[np.searchsorted(rows, known)] = False
    rest = np.flatnonzero(unsure)
    if len(rest):
        indices[rest], d[rest] = looked_at(views, alpha, rows[rest], rows, k, threads)
    return indices, d


def by_products(
    views: list[Geometry], alpha: Array, rows: Array, k: int, threads: Threads
) -> tuple[Array, Array, Array]:
    """Lists from the smallest products, and which of them may not be the nearest."""
    sides = Sides.of(parts_of(views, alpha, rows))
    wide = min(k + EXTRA, len(rows) - 1)
    near, values = smallest_products(sides, wide, threads)
    lists = for_all_rows(rows, rows[near], views[0].n_samples)
    indices, d = (part[rows] for part in ranked(views, alpha, lists, 0, k, threads))
    if wide == len(rows) - 1:  # all are candidates, but for products too large for single precision
        return indices, d, np.asarray((near < 0).any(axis=1))
    # Whoever is no candidate is no nearer than the last of them.
    nearer = values[:, -1] + sides.constant - sides.slack()
    return indices, d, ~(d[:, -1] * (1 + equal_share(views[0].Z.dtype)) < nearer)


def looked_at(
    views: list[Geometry], alpha: Array, asking: Array, rows: Array, k: int, threads: Threads
) -> tuple[Array, Array]:
    """The k nearest of ``rows`` for some rows ``asking``, from their distances to all, ties by row."""
    heard = [(float(a), view) for a, view in zip(alpha, views, strict=True) if a > 0]
    # A right side is larger than its view: for few rows, that of one view after the other.
    many = len(asking) > CHECKED_ROWS
    rights = [view.right_side() if many and view.needs_right() else None for _, view in heard]
    n = views[0].n_samples
    others = np.ones(n, dtype=bool)
    others[rows] = False
    slack: Any = sum(a * view.slack() for a, view in heard)
    share, hidden = equal_share(views[0].Z.dtype), bool(others.any())

    def look(b: slice) -> tuple[Array, Array]:
        here = asking[b]
        d: Any = sum(
            a * view.between(here, right) for (a, view), right in zip(heard, rights, strict=True)
        )
        d[np.arange(len(here)), here] = np.inf
        if hidden:
            d[:, others] = np.inf

        def exact(i: Array, j: Array) -> Array:
            return pair_distances(views, alpha, here[i], j)

        return nearest(d, k, None, slack[here], exact, share)

    found = threads.each(look, list(blocks(slice(0, len(asking)), max(FEWEST, BLOCK // n))))
    indices, d = (np.concatenate(part) for part in zip(*found, strict=True))
    return indices, d


def for_all_rows(rows: Array, indices: Array, n: int) -> Array:
    """Lists of some rows as lists of all; a row without one lists itself (which counts for nothing)."""
    if len(rows) == n:
        return indices
    full = np.repeat(np.arange(n)[:, None], indices.shape[1], axis=1)
    full[rows] = indices
    return full
