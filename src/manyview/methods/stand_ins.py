"""Coefficients of rows that a view hardly observes, from rows that other views find near."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array
from manyview.engines.affinity import nearest_neighbors
from manyview.engines.numpy.masked import Fill, least_entries
from manyview.engines.numpy.presence import has_nan

#: About how many rows stand in for one that nothing links to the view.
STRANGERS = 100


def filling(
    Xs: Sequence[Any],
    fitted: Sequence[Any],
    n_neighbors: int,
    n_components: int,
    known: Sequence[Array] | None = None,
) -> Fill | None:
    """How rows a view does not observe get coefficients: from their neighbours in other views.

    ``known`` holds the coefficients of the fitted rows when ``Xs`` are unseen ones.
    """
    if not any(has_nan(X) for X in Xs):
        return None
    stands = stand_ins(list(Xs), list(fitted), n_neighbors, n_components)

    def fill(s: int, V: Array) -> Array:
        B = stands[s]
        if B is None:
            return V
        rows = np.diff(B.indptr) > 0
        return np.where(rows[:, None], B @ (V if known is None else known[s]), V)

    return fill


def stand_ins(
    Xs: list[Any], fitted: list[Any], k: int, n_components: int
) -> list[sp.csr_array | None]:
    """Who stands in for a row in a view that hardly observes it: B_s, rows × fitted rows, or None.

    The row's k nearest fitted rows in each view that has it, among those the lacking view observes;
    their mean coefficients there are the row's. Where no view links the row to such rows, rows from all
    over the lacking view stand in alike.
    """
    absent = [~_rows_with_enough(X, n_components) for X in Xs]
    seen = [_rows_with_enough(X, n_components) for X in fitted]
    stands: list[sp.csr_array | None] = []
    for s, lacking in enumerate(absent):
        if not lacking.any():
            stands.append(None)
            continue
        shape, entries = (len(lacking), len(seen[s])), []
        for t, X in enumerate(Xs):
            rows = np.flatnonzero(lacking & ~absent[t])
            among = np.flatnonzero(seen[s] & seen[t])
            if t == s or len(rows) == 0 or len(among) == 0:
                continue
            near, _ = nearest_neighbors(fitted[t][among], k, X[rows])
            entries.append((np.repeat(rows, near.shape[1]), among[near].ravel()))
        i, j = np.hstack(entries) if entries else np.empty((2, 0), dtype=int)
        alone = np.setdiff1d(np.flatnonzero(lacking & np.isnan(Xs[s]).all(axis=1)), i)
        everybody = np.flatnonzero(seen[s])
        everybody = everybody[:: max(1, len(everybody) // STRANGERS)]
        i = np.concatenate([i, np.repeat(alone, len(everybody))])
        j = np.concatenate([j, np.tile(everybody, len(alone))])
        B = sp.csr_array((np.ones(len(i)), (i, j)), shape=shape)
        total = np.maximum(B.sum(axis=1), 1)
        stands.append(sp.csr_array(B.multiply(1 / total[:, None])))
    return stands


def _rows_with_enough(X: Any, n_components: int) -> Array:
    """Rows of which enough is observed to tell where they are."""
    if isinstance(X, np.ndarray):
        return np.count_nonzero(~np.isnan(X), axis=1) >= least_entries(X.shape[1], n_components)
    return np.ones(X.shape[0], dtype=bool)
