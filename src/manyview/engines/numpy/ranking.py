"""Neighbour lists made better: candidates, and neighbours of neighbours, by their exact distances."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from manyview._types import Array
from manyview.engines.threads import Threads, blocks

from .ties import equal_share, nearest

#: Members of a neighbour's own list that are looked at when lists are improved.
DEPTH = 8


class Measured(Protocol):
    """Rows Z of which pairs can be measured."""

    Z: Any

    def pairs(self, i: Array, j: Array) -> Array:
        """The distances of the pairs (i, j)."""


def pair_distances(views: Sequence[Measured], alpha: Array, i: Array, j: Array) -> Array:
    """Σ α_s d^s of the pairs (i, j)."""
    each = (a * view.pairs(i, j) for a, view in zip(alpha, views, strict=True) if a > 0)
    return sum(each, start=np.zeros(len(i)))


def improved(
    views: Sequence[Measured], alpha: Array, lists: Array, k: int, threads: Threads | None
) -> tuple[Array, Array]:
    """One pass over neighbours of neighbours: the k best of them and of the lists themselves."""
    return ranked(views, alpha, lists, min(DEPTH, lists.shape[1]), k, threads)


def ranked(
    views: Sequence[Measured],
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


def _distances(views: Sequence[Measured], alpha: Array, rows: Array, candidates: Array) -> Array:
    """Σ α_s d^s to every candidate; infinite where there is none."""
    useful = candidates >= 0
    d = np.where(useful, 0.0, np.inf)
    i, j = np.nonzero(useful)[0] + rows[0], candidates[useful]
    d[useful] = pair_distances(views, alpha, i, j)
    return d
