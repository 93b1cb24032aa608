"""Graphs of neighbor lists, and the distances of views along their edges.

On the host a graph is a SciPy array; of tensors, a `engines.torch.graph.DeviceGraph`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from manyview._arrays import is_tensor
from manyview._types import Array
from manyview.engines.protocols import engine_part
from manyview.engines.threads import Threads, blocks
from manyview.maths.agreement import contrasts

from .compiled import compiled

if TYPE_CHECKING:
    from .distances import Geometry

#: Pairs that are measured at a time.
PAIRS = 2**18


def symmetric(rows: Array, indices: Array, weights: Array, n: int) -> Any:
    """(A + Aᵀ)/2 of the neighbor lists of some of n rows."""
    if is_tensor(weights):
        return engine_part("torch", "graph").symmetric(rows, indices, weights, n)
    # SciPy keeps the integers it is given: half as long, they take half the room and are read faster.
    integer = np.int32 if 2 * indices.size < 2**31 and n < 2**31 else np.int64
    i, j = np.repeat(rows.astype(integer), indices.shape[1]), indices.ravel().astype(integer)
    A = sp.csr_array((weights.ravel(), (i, j)), shape=(n, n))
    return sp.csr_array((A + A.T) / 2)


def on_host(graph: Any) -> sp.csr_array:
    """The same graph as a SciPy array."""
    return graph if sp.issparse(graph) else graph.to_scipy()


def row_contrasts(
    views: list[Geometry], graphs: list[Any], threads: Threads | None = None
) -> Array:
    """1 − (mean d^s of i to its neighbors in view t), (n_views, n_views, N); NaN where unknown.

    Do t's neighbors look close in s? Pairs with a member missing in s are skipped.
    """
    n_views, n = len(views), views[0].n_samples
    rows = np.full((n_views, n_views, n), np.nan)
    for t, graph in enumerate(graphs):
        if not sp.issparse(graph):
            for s, view in enumerate(views):
                if s != t:
                    rows[s, t] = graph.contrast(view)
            continue
        upper = sp.triu(graph, 1, format="coo")
        for s, view in enumerate(views):
            if s == t or upper.nnz == 0:
                continue
            i, j = upper.coords
            weight = upper.data * (view.comparable[i] & view.comparable[j])
            parts = list(blocks(slice(0, len(i)), PAIRS))
            d = (threads or Threads(1)).each(partial(_pairs, view, i, j), parts)
            close = weight * np.concatenate(d)
            total = np.bincount(i, weight, n) + np.bincount(j, weight, n)
            distance = np.bincount(i, close, n) + np.bincount(j, close, n)
            total += graph.diagonal() * view.comparable  # its own copies, at no distance
            rows[s, t] = contrasts(distance, total)
    return rows


def _pairs(view: Geometry, i: Array, j: Array, part: slice) -> Array:
    return view.pairs(i[part], j[part])


def mean_distance(view: Geometry, graph: Any) -> float | None:
    """Mean d over the edges of a graph, by their weights; None if it has no edge."""
    if not sp.issparse(graph):
        return graph.mean_distance(view)
    upper = sp.triu(graph, 1, format="coo")
    i, j = upper.coords
    weights, own = upper.data, graph.diagonal() / 2  # half, as of all others
    rows = np.flatnonzero(own)
    if len(rows):
        i, j = np.append(i, rows), np.append(j, rows)
        weights = np.append(weights, own[rows])
    if len(i) == 0:
        return None
    return float((weights * view.pairs(i, j)).sum() / weights.sum())


def block_step(threads: Threads | None, S: sp.csr_array) -> Callable[..., Array]:
    """p·S now + q·now + r·before for blocks of vectors, in single precision, by rows on threads.

    Every row is a sum of its own: the same bits for any number of threads.
    """
    weights, kernels = S.data.astype(np.float32), compiled()
    S = sp.csr_array((weights, S.indices, S.indptr), shape=S.shape)

    def step(now: Array, before: Array, p: float, q: float, r: float) -> Array:
        now, before = (np.ascontiguousarray(part, dtype=np.float32) for part in (now, before))
        factors = (np.float32(p), np.float32(q), np.float32(r))
        if kernels is None:
            return factors[0] * (S @ now) + factors[1] * now + factors[2] * before
        out = np.empty_like(now)

        def work(rows: slice) -> None:
            graph = (S.indptr, S.indices, S.data)
            kernels.graph_step(graph, now, before, *factors, rows.start, rows.stop, out)

        (threads or Threads(1)).map(work, len(now))
        return out

    return step
