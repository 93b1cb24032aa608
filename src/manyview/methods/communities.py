"""Communities of the fused graph (Leiden, modularity): clusters whose number is not given.

The Leiden algorithm is that of graspologic-native (extra "communities"): its licence is MIT, and a seed
decides everything. (scikit-network's refinement draws from the C library's generator, which no seed of
a caller reaches; igraph and leidenalg are under the GPL.)
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, storable
from manyview._warn import warn_user

PACKAGE = "graspologic_native"
#: Runs from different seeds, of which the one of the highest modularity counts, and rounds of each.
TRIALS, ROUNDS = 10, 3
#: Communities of fewer observations are joined to others; of fewer than 100 observations, 5% of them.
SMALLEST, SMALLEST_SHARE = 5, 0.05
#: Digits of the strengths by which vertices are ordered: further ones are rounding.
DIGITS = 9


@storable
@dataclass(frozen=True)
class Communities:
    """Labels from the largest community to the smallest, and what became of tiny ones."""

    labels: Array
    least: int
    n_joined: int = 0
    n_apart: int = 0

    @property
    def count(self) -> int:
        return int(self.labels.max()) + 1


def installed() -> bool:
    """Whether the extra "communities" is there."""
    return find_spec(PACKAGE) is not None


def check_installed() -> None:
    """Refuse, before anything is computed, what needs the extra."""
    if not installed():
        raise ModuleNotFoundError(
            "communities need the package graspologic-native: pip install 'manyview[communities]'; "
            "or give a number of clusters",
            name=PACKAGE,
        )


def communities(
    graph: sp.csr_array,
    resolution: float,
    seed: int,
    count: Array | None = None,
    trials: int = TRIALS,
) -> Communities:
    """Communities of a graph; those with fewer than a few observations join their nearest.

    Parameters
    ----------
    graph : sparse array (n, n), symmetric
    resolution : float
        γ of the modularity: more, more communities.
    seed : int
    count : ndarray (n,), optional
        How many observations each vertex stands for.
    trials : int
        Runs, of which the best counts.

    Returns
    -------
    Communities
    """
    count = np.ones(graph.shape[0]) if count is None else count
    labels = leiden(graph, resolution, seed, trials)
    least = int(max(1, min(SMALLEST, np.ceil(SMALLEST_SHARE * count.sum()))))
    joined, n_joined = _without_tiny(graph, labels, count, least)
    labels = _largest_first(joined, count)
    n_apart = int((np.bincount(labels, count) < least).sum())
    return Communities(labels, least, n_joined, n_apart)


def leiden(graph: sp.csr_array, resolution: float, seed: int, trials: int = TRIALS) -> Array:
    """Labels of the vertices by the best of several runs.

    Vertices are visited in the order of their strengths, which does not depend on the order of the rows.
    """
    check_installed()
    n = graph.shape[0]
    strength = np.asarray(graph.sum(axis=1)).ravel()
    order = np.argsort(np.round(strength, DIGITS), kind="stable")
    ordered = sp.csr_array(graph[order][:, order])
    ordered.sort_indices()
    _, found = import_module(PACKAGE).leiden_csr(
        ordered.indptr.astype(np.int64),
        ordered.indices.astype(np.int32),
        ordered.data.astype(np.float64),
        n,
        resolution=float(resolution),
        seed=seed,
        iterations=ROUNDS,
        trials=trials,
    )
    labels = np.empty(n, dtype=np.int64)
    labels[order] = [found[i] for i in range(n)]
    return labels


def tell_tiny(found: Communities) -> None:
    """Say once what became of communities of very few observations."""
    if found.n_joined:
        warn_user(
            f"{found.n_joined} communities of fewer than {found.least} observations were joined to the "
            "community they share most links with"
        )
    if found.n_apart:
        warn_user(
            f"{found.n_apart} communities have fewer than {found.least} observations and no link to "
            "others; they stay clusters of their own"
        )


def _without_tiny(
    graph: sp.csr_array, labels: Array, count: Array, least: int
) -> tuple[Array, int]:
    """The smallest community joins the one it shares most edge weight with, until none is tiny."""
    members = sp.csr_array((np.ones(len(labels)), (np.arange(len(labels)), labels)))
    between = sp.coo_array(members.T @ graph @ members)
    links: list[dict[int, float]] = [{} for _ in range(between.shape[0])]
    for a, b, weight in zip(*(x.tolist() for x in (*between.coords, between.data)), strict=True):
        if a != b and weight > 0:
            links[a][b] = weight
    sizes = np.bincount(labels, count).tolist()
    home = np.arange(len(sizes))
    waiting = [(size, c) for c, size in enumerate(sizes) if size < least]
    heapify(waiting)
    n_joined = 0
    while waiting:
        size, smallest = heappop(waiting)
        if size != sizes[smallest] or not links[smallest]:  # it has grown or gone, or has no link
            continue
        nearest = max(links[smallest], key=lambda c: (links[smallest][c], -c))
        for other, weight in links[smallest].items():
            del links[other][smallest]
            if other != nearest:
                links[other][nearest] = links[nearest][other] = (
                    links[nearest].get(other, 0) + weight
                )
        links[smallest] = {}
        home[home == smallest] = nearest
        sizes[nearest] += sizes[smallest]
        sizes[smallest] = 0
        n_joined += 1
        if sizes[nearest] < least:
            heappush(waiting, (sizes[nearest], nearest))
    return home[labels], n_joined


def _largest_first(labels: Array, count: Array) -> Array:
    """Labels 0, 1, … by size; of equal ones by the first member."""
    _, first, own = np.unique(labels, return_index=True, return_inverse=True)
    order = np.lexsort((first, -np.bincount(own, count)))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[own]
