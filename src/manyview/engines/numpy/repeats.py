"""Samples that repeat, and values that repeat within a view.

A sample whose copies are identical in every view counts once, with a mass: a hundred copies are
no more neighbors of each other than one row is of itself, and links among them alone would cut the
graph into pieces. Different samples that are identical in one view (a category) are as near there
as can be; where they are more than the neighbors wanted, a list takes every so-many-th of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from manyview._arrays import converted, is_tensor, namespace, on_host
from manyview._types import Array
from manyview.engines.threads import blocks

from .compiled import compiled

if TYPE_CHECKING:
    from .distances import Geometry

#: Entries mixed at a time: as many as the cache holds, or as keep a card busy.
MIXED, MIXED_ON_CARD = 2**20, 2**26
#: Odd numbers with well-spread bits, as signed integers of 64 bits.
FIRST, SECOND, PLACE = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15


@dataclass(frozen=True)
class Repeats:
    """The first row of every distinct sample, which of them each row is, how often each occurs.

    ``mass`` is in units of the least frequent; None where all occur equally often.
    """

    first: Array
    of: Array
    mass: Array | None


def repeats_of(views: list[Geometry]) -> Repeats | None:
    """Rows that are identical in every view; None if there are none."""
    codes = np.zeros(views[0].n_samples, dtype=np.int64)
    for s, view in enumerate(views):
        codes += _mixed(view.codes() + view.present, np.array([s]))
    if _all_differ(codes):
        return None
    _, first, of, count = np.unique(
        codes, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)  # distinct samples keep their order
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    mass = count[order] / count.min()
    return Repeats(first[order], place[of], None if (mass == 1).all() else mass)


def _all_differ(codes: Array) -> bool:
    """Sorted alone, numbers take a fifth of the time they take with their places."""
    ordered = np.sort(codes)
    return not (ordered[1:] == ordered[:-1]).any()


def distinct(
    views: list[Geometry], telling: list[Geometry] | None = None
) -> tuple[list[Geometry], Repeats | None]:
    """The views of the distinct samples, which ``telling`` views (by default all) tell apart."""
    repeats = repeats_of(views if telling is None else telling)
    if repeats is None:
        return views, None
    return [view.distinct(repeats.first, repeats.mass) for view in views], repeats


def fewest_copies(X: Any) -> Any:
    """Rows in which everything is as frequent, relatively, as in all, but no more copies than needed.

    Percentiles lie between two rows: if every row occurred k times, they would be others.
    """
    codes = row_codes(X)
    if _all_differ(codes):
        return slice(None)
    _, of, count = np.unique(codes, return_inverse=True, return_counts=True)
    common = int(np.gcd.reduce(count))
    if common == 1:
        return slice(None)
    order = np.argsort(of, kind="stable")
    starts = np.cumsum(count) - count
    which = np.arange(len(of)) - np.repeat(starts, count)  # the how-manieth copy
    return np.sort(order[which < np.repeat(count // common, count)])


def expanded_graph(graph: sp.csr_array, repeats: Repeats | None) -> sp.csr_array:
    """A graph of distinct samples for all: first copies have the edges, others hang on them."""
    if repeats is None:
        return graph
    n, first = len(repeats.of), repeats.first.astype(graph.indices.dtype)
    edges = sp.coo_array(graph - sp.diags_array(graph.diagonal()))
    edges.eliminate_zeros()
    copies = np.setdiff1d(np.arange(n, dtype=first.dtype), first)
    i = np.concatenate([first[edges.row], copies, first[repeats.of[copies]]])
    j = np.concatenate([first[edges.col], first[repeats.of[copies]], copies])
    values = np.concatenate([edges.data, np.ones(2 * len(copies), dtype=edges.data.dtype)])
    return sp.csr_array((values, (i, j)), shape=(n, n))


@dataclass(frozen=True)
class Crowds:
    """Rows that are identical, in one view, to more others than the neighbors wanted."""

    rows: Array
    near: Array
    #: How much mass a listed neighbor stands for.
    stands_for: Array
    #: Rows behind the first k + 1 of their crowd. No list has them: those before them are as near.
    behind: Array


def crowds_of(view: Geometry, rows: Array, k: int) -> Crowds | None:
    """The lists of rows in crowds: neighbors evenly spread over the crowd, counted by mass.

    A row may meet its own copies there. Copies of one sample alone are no crowd.
    """
    codes = view.codes()[rows]
    if _all_differ(codes):
        return None
    _, of, members = np.unique(codes, return_inverse=True, return_counts=True)
    own = np.ones(len(rows)) if view.mass is None else view.mass[rows]
    mass = np.bincount(of, own)
    crowded = np.flatnonzero(((members > 1) & (mass - 1 >= k))[of])
    if len(crowded) == 0:
        return None
    order = crowded[np.argsort(of[crowded], kind="stable")]  # crowd by crowd, in the order of rows
    ends = np.cumsum(own[order])
    size = mass[of[order]]
    first = np.searchsorted(of[order], of[order])
    begins = (ends - own[order])[first]
    middle = ends - own[order] / 2 - begins
    steps = np.arange(1, k + 1) / (k + 1)
    met = begins[:, None] + (middle[:, None] + size[:, None] * steps) % size[:, None]
    near = np.searchsorted(ends, met, side="right").clip(0, len(order) - 1)
    stands_for, behind = np.repeat(size[:, None] / k, k, axis=1), np.arange(len(order)) - first > k
    return Crowds(rows[order], rows[order[near]], stands_for, rows[order[behind]])


def copies_behind(codes: Array, k: int) -> tuple[Array, Array]:
    """Rows behind the first k + 1 of those with the same code, and the first k for each of them."""
    order = np.argsort(codes, kind="stable")
    first = np.searchsorted(codes[order], codes[order])
    behind = np.arange(len(order)) - first > k
    return order[behind], order[first[behind][:, None] + np.arange(k)]


def row_codes(Z: Any) -> Array:
    """A number of 64 bits for every row: equal rows, equal numbers, wherever the rows are.

    Whole numbers are added, so the order of the sum does not matter. That different rows get the same
    number is possible, with a chance of 10⁻⁷ among a million rows.
    """
    known = not is_tensor(Z) and Z.dtype in (np.float32, np.float64) and 0 not in Z.shape
    kernels = compiled() if known else None
    if kernels is not None:
        whole = np.int32 if Z.dtype == np.float32 else np.int64
        codes, odd = np.empty(Z.shape[0], dtype=np.int64), np.array([FIRST, SECOND, PLACE])
        if sp.issparse(Z):
            Z = sp.csr_array(Z)
            bits = np.ascontiguousarray(Z.data).view(whole)
            kernels.sparse_row_codes((Z.indptr, Z.indices, Z.data), bits, odd, codes)
        else:
            Z = np.ascontiguousarray(Z)
            kernels.row_codes(Z, Z.view(whole), odd, codes)
        return codes
    if sp.issparse(Z):
        Z = sp.csr_array(Z)
        mixed = _mixed(_bits(Z.data + 0.0), Z.indices.astype(np.int64))
        mixed[Z.data == 0] = 0  # written down or not
        total = np.concatenate([[0], np.cumsum(mixed)])  # whole numbers wrap around, and back
        return total[Z.indptr[1:]] - total[Z.indptr[:-1]]
    columns, mixed = np.arange(Z.shape[1]), MIXED_ON_CARD if is_tensor(Z) else MIXED
    columns = namespace(Z).as_tensor(columns, device=Z.device) if is_tensor(Z) else columns
    parts = [
        on_host(_mixed(_bits(Z[b] + 0.0), columns).sum(axis=1))  # −0 is 0
        for b in blocks(slice(0, Z.shape[0]), max(1, mixed // max(1, Z.shape[1])))
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _bits(x: Any) -> Any:
    """Numbers as whole numbers with the same bits; NaN has many, of which one is taken."""
    xp = namespace(x)
    whole = xp.int32 if x.dtype == xp.float32 else xp.int64
    bits = x.view(whole) if is_tensor(x) else np.ascontiguousarray(x).view(whole)
    return converted(xp.where(xp.isnan(x), 1, bits), xp.int64)


def _mixed(bits: Any, columns: Any) -> Any:
    """Every bit of a number spread over all 64, differently in every column."""
    x = (bits + PLACE * (columns + 1)) * FIRST
    x = (x ^ (x >> 31)) * SECOND
    return x ^ (x >> 29)
