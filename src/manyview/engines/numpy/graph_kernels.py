"""Compiled products with sparse graphs, row by row (numba, extra "fast")."""

from __future__ import annotations

import numpy as np

from manyview._types import Array

from .ahead import ask_for
from .jit import fast, inlined

#: Neighbours lie anywhere in V: their rows are asked for so many edges ahead.
AHEAD = 16


@fast
def graph_rows(
    indptr: Array,
    indices: Array,
    data: Array,
    degrees: Array,
    V: Array,
    start: int,
    stop: int,
    negative: Array,
    positive: Array,
) -> float:
    """Rows of A V and D V, and their share of Tr(VᵀLV)."""
    # Two loops: as one it is twice as slow, the compiler being unsure what the stores touch.
    _graph_product(indptr, indices, data, V, start, stop, negative)
    return _graph_value(degrees, V, start, stop, negative, positive)


@inlined
def _graph_product(
    indptr: Array, indices: Array, data: Array, V: Array, start: int, stop: int, negative: Array
) -> None:
    K, last = V.shape[1], len(indices) - 1
    for i in range(start, stop):
        for k in range(K):
            negative[i, k] = 0
        for e in range(indptr[i], indptr[i + 1]):
            coming = indices[min(e + AHEAD, last)]
            ask_for(V, coming, 0)
            ask_for(V, coming, K - 1)
            # Unsigned: otherwise every access asks whether the index counts from the end.
            j, weight = np.uint64(indices[e]), data[e]
            for k in range(K):
                negative[i, k] += weight * V[j, k]


@fast
def graph_step(
    indptr: Array,
    indices: Array,
    data: Array,
    now: Array,
    before: Array,
    p: float,
    q: float,
    r: float,
    start: int,
    stop: int,
    out: Array,
) -> None:
    """Rows of p·S now + q·now + r·before."""
    K, last = now.shape[1], len(indices) - 1
    for i in range(start, stop):
        for k in range(K):
            out[i, k] = q * now[i, k] + r * before[i, k]
        for e in range(indptr[i], indptr[i + 1]):
            coming = indices[min(e + AHEAD, last)]
            ask_for(now, coming, 0)
            ask_for(now, coming, K - 1)
            j, weight = np.uint64(indices[e]), p * data[e]
            for k in range(K):
                out[i, k] += weight * now[j, k]


@inlined
def _graph_value(
    degrees: Array, V: Array, start: int, stop: int, negative: Array, positive: Array
) -> float:
    value = 0.0
    for i in range(start, stop):
        for k in range(V.shape[1]):
            own = degrees[i, 0] * V[i, k]
            positive[i, k] = own
            value += V[i, k] * (own - negative[i, k])
    return value
