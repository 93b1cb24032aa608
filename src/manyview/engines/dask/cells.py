"""Neighbors of rows that lie on Dask workers, found there.

Landmarks cut the space into cells, and every row belongs to the cells of its few nearest landmarks. The
rows of a cell come together on one worker, which looks for neighbors among them; the lists of a row's
cells are merged where the row is. So a row travels a few times, whatever the number of workers, and the
driver gets one list per row. Cells depend on the rows alone, and so do the lists.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from manyview._types import Array
from manyview.engines.numpy.neighbors import (
    CHECKED_ROWS,
    RECALL,
    SquaredGaps,
    equal_share,
    index_neighbors,
    lists_in_block,
    tell_rough,
    without_own,
)
from manyview.engines.numpy.neighbors import merged as in_order
from manyview.engines.threads import Threads

from .coordinates import Coordinates

#: Cells a row belongs to, rows of a cell wanted, and the fewest and most cells.
EACH, CELL, FEWEST, MOST = 3, 2**17, 8, 256
#: Rows per landmark from which landmarks are found.
LOOKED_AT = 256
#: Other landmarks are tried at most so often in all, until enough neighbors of a sample are found.
TURNS = 2
#: In smaller cells every pair is looked at.
SMALL = 2000
#: Share of the neighbors in a cell that is looked for. Two rows in three are guests at its border: those
#: near them there are scattered, and their neighbors are in another cell.
IN_CELL = 0.9


def nearest_on_workers(
    held: Coordinates, k: int, seed: int, enough: float = RECALL
) -> tuple[Array, Array]:
    """Indices and squared distances (N×k) of rows near every row, nearest first, itself left out."""
    n = held.shape[0]
    sample = np.sort(np.random.default_rng(seed).choice(n, min(CHECKED_ROWS, n), replace=False))
    expected = exact_lists(held, sample, k)
    found: list[Any] = []
    recall = 0.0
    for turn in range(TURNS):
        found = _in_cells(held, k, seed + turn, found)
        lists = held.cluster.results(
            [
                held.cluster.task(None, _rows_of, task, sample, rows.start)
                for task, rows in zip(found, held.rows, strict=True)
            ]
        )
        met = zip(expected, np.concatenate(lists), strict=True)
        recall = float(np.mean([np.isin(e, near).mean() for e, near in met]))
        if recall >= enough:
            break
    else:
        tell_rough(recall, k)
    parts = [held.cluster.result(future) for future in found]
    indices, squared = (np.concatenate(part) for part in zip(*parts, strict=True))
    return indices.astype(np.int64), squared.astype(float)


def exact_lists(held: Coordinates, rows: Array, k: int) -> Array:
    """The k nearest rows of some rows, every pair looked at where the rows are."""
    found = held.each_from(_nearest_here, held.take(rows), k + 1)
    share = equal_share(np.float32)
    return without_own(*in_order(found, k + 1, share), rows)[0]


def _in_cells(held: Coordinates, k: int, seed: int, before: list[Any]) -> list[Any]:
    """Futures of the lists of every block, merged with those found ``before``."""
    cluster, centres = held.cluster, landmarks(held, seed)
    told, n_cells = cluster.keep(centres), len(centres)
    (assigned,) = cluster.begin(held.tasks(_assigned, [(told,)] * len(held.rows)))
    members = [
        held.tasks(
            _members, [(a, c, rows.start) for a, rows in zip(assigned, held.rows, strict=True)]
        )
        for c in range(n_cells)
    ]
    homes = cluster.homes(n_cells)
    lists = [
        cluster.task(home, _cell_lists, parts, k, seed)
        for home, parts in zip(homes, members, strict=True)
    ]
    shares = [
        [
            cluster.task(home, _share, cell, rows.start, rows.stop)
            for home, cell in zip(homes, lists, strict=True)
        ]
        for rows in held.rows
    ]
    rest = before or [None] * len(held.rows)
    tasks = [
        (parts, k, rows.start, old)
        for parts, rows, old in zip(shares, held.rows, rest, strict=True)
    ]
    return cluster.begin(held.tasks(_merged, tasks))[0]


def landmarks(held: Coordinates, seed: int) -> Array:
    """Means of a sample of the rows: as many as there are to be cells."""
    n = held.shape[0]
    n_cells = min(MOST, max(FEWEST, -(-EACH * n // CELL)))
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(n, min(n, LOOKED_AT * n_cells), replace=False))
    model = KMeans(n_cells, n_init=1, max_iter=10, random_state=seed)
    return model.fit(held.take(rows)).cluster_centers_.astype(np.float32)


# --- what runs on workers ----------------------------------------------------------------------


def _nearest_here(block: Array, first: int, queries: Array, k: int) -> tuple[Array, Array]:
    return lists_in_block(block, queries, k, first, None)


def _assigned(block: Array, centres: Array) -> tuple[Array, Array]:
    """The rows of every cell, one cell after the other, and where cells begin."""
    each = min(EACH, len(centres))
    d = (centres * centres).sum(axis=1) - 2 * (block @ centres.T)
    cells = np.argpartition(d, each - 1, axis=1)[:, :each].ravel()
    order = np.argsort(cells, kind="stable")
    starts = np.searchsorted(cells[order], np.arange(len(centres) + 1))
    return order // each, starts


def _members(
    block: Array, assigned: tuple[Array, Array], cell: int, first: int
) -> tuple[Array, Array]:
    """The rows of a block that belong to a cell, by their numbers."""
    order, starts = assigned
    rows = order[starts[cell] : starts[cell + 1]]
    return rows + first, block[rows]


def _cell_lists(parts: list[tuple[Array, Array]], k: int, seed: int) -> tuple[Array, Array, Array]:
    """The rows of a cell, their nearest in it (−1: there are less than k), and the squared distances."""
    rows, Z = (np.concatenate(part) for part in zip(*parts, strict=True))
    n = len(rows)
    near = np.full((n, k), -1, dtype=np.int64)
    squared = np.full((n, k), np.inf, dtype=np.float32)
    found = min(k, n - 1)
    if found < 1:
        return rows, near, squared
    if n <= SMALL:
        inside = without_own(*lists_in_block(Z, Z, found + 1, 0, None), np.arange(n))[0]
    else:
        inside = index_neighbors(Z, found, seed, Threads(1), 0, IN_CELL)
    i, j = np.repeat(np.arange(n), found), inside.ravel()
    near[:, :found] = rows[inside]
    squared[:, :found] = SquaredGaps(Z).pairs(i, j).reshape(n, found)
    return rows, near, squared


def _share(cell: tuple[Array, Array, Array], first: int, last: int) -> tuple[Array, Array, Array]:
    """What a cell found for the rows of a block; numbers as short as they can be, for the journey."""
    rows, near, squared = cell
    some = slice(*np.searchsorted(rows, [first, last]))
    return rows[some], near[some].astype(np.int32), squared[some]


def _merged(
    block: Array,
    parts: list[tuple[Array, Array, Array]],
    k: int,
    first: int,
    before: tuple[Array, Array] | None,
) -> tuple[Array, Array]:
    """The k nearest of all lists of every row of a block, each neighbor once, ties by index.

    A row that met fewer lists itself, infinitely far: that counts for nothing.
    """
    n = len(block)
    rows, near, squared = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(rows, kind="stable")  # every row is in as many cells
    near, squared = near[order].reshape(n, -1), squared[order].reshape(n, -1)
    if before is not None:
        near, squared = np.hstack([near, before[0]]), np.hstack([squared, before[1]])
    order = np.argsort(near, axis=1, kind="stable")
    near, squared = (np.take_along_axis(part, order, axis=1) for part in (near, squared))
    squared[:, 1:][near[:, 1:] == near[:, :-1]] = np.inf
    best = np.argsort(squared, axis=1, kind="stable")[:, :k]
    near, squared = (np.take_along_axis(part, best, axis=1) for part in (near, squared))
    own = np.arange(first, first + n, dtype=near.dtype)[:, None]
    return np.where(np.isfinite(squared), near, own), squared


def _rows_of(lists: tuple[Array, Array], rows: Array, first: int) -> Array:
    """The lists of some rows of a block."""
    return lists[0][rows[(rows >= first) & (rows < first + len(lists[0]))] - first]
