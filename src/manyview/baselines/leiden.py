"""Leiden communities of the neighbour graph of all views side by side, as many as asked for."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import kneighbors_graph
from sklearn.utils._param_validation import Interval, StrOptions
from threadpoolctl import threadpool_limits

from manyview._types import Array, Seed, Views
from manyview._warn import warn_user
from manyview.base import generator
from manyview.labels import leiden
from manyview.scaling import SCALES

from ._base import RANDOM_STATE, Baseline, takes_negative
from ._features import scaled, side_by_side

#: Resolutions between which the one with the wanted number of communities is looked for, and how often.
LOWEST, HIGHEST, TRIES = 1e-3, 1e3, 30


class ConcatLeiden(Baseline):
    """Leiden communities of the nearest-neighbour graph of all views side by side.

    What single-cell work does with one view, on all of them. The algorithm knows no number of clusters:
    the resolution is halved and doubled until there are as many as asked for, or as nearly as it gets.

    Parameters
    ----------
    n_clusters : int, default=8
    n_neighbors : int, default=10
        Of the graph, which is the union of both directions.
    scale : {"standard", "minmax", "sum", "tfidf", "sqrt"} or None, default="standard"
        As in `ConcatViews`.
    views : sequence of int, optional
        If the input is one 2-D array: the number of columns of each view.
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    labels_ : ndarray (N,)
    resolution_ : float, the one that was found

    References
    ----------
    V. A. Traag, L. Waltman and N. J. van Eck, From Louvain to Leiden: guaranteeing well-connected
    communities, Scientific Reports 9, 2019.
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "scale": [StrOptions(set(SCALES)), None],
        "views": ["array-like", None],
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 10,
        scale: str | None = "standard",
        views: Any = None,
        random_state: Seed = None,
    ):
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.views = views
        self.random_state = random_state

    def _cluster(self, views: Views) -> None:
        """Build the graph and look for the resolution."""
        seed = int(generator(self.random_state).integers(2**31))
        with threadpool_limits(1):
            wide = side_by_side(scaled(views, self.scale))
            near = min(self.n_neighbors, views.n_samples - 1)
            graph = sp.csr_array(kneighbors_graph(wide, near)) if near else None
        if graph is None:
            self.labels_, self.resolution_ = np.zeros(views.n_samples, dtype=np.int64), 1.0
            return
        self.labels_, self.resolution_ = as_many_as(
            sp.csr_array(graph.maximum(graph.T)), self.n_clusters, seed
        )
        found = int(self.labels_.max()) + 1
        if found != self.n_clusters:
            warn_user(
                f"ConcatLeiden found {found} communities and not the {self.n_clusters} asked for: no "
                "resolution gives as many (a graph in several pieces has at least as many communities)"
            )

    def _allows_negative(self) -> bool:
        return takes_negative(self.scale)


def as_many_as(graph: sp.csr_array, wanted: int, seed: int) -> tuple[Array, float]:
    """Communities, as nearly as many as ``wanted``, and the resolution: more of it, more of them."""
    low, high = LOWEST, HIGHEST
    best: tuple[int, Array, float] | None = None
    for _ in range(TRIES):
        middle = float(np.sqrt(low * high))
        labels = np.unique(leiden(graph, middle, seed), return_inverse=True)[1]
        found = int(labels.max()) + 1
        if best is None or abs(found - wanted) < best[0]:
            best = abs(found - wanted), labels, middle
        if found == wanted:
            break
        low, high = (middle, high) if found < wanted else (low, middle)
    assert best is not None
    return best[1], best[2]
