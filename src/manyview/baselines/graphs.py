"""Communities of graphs: spectral clustering as MATLAB does it, of the views' summed graphs, and Leiden."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.neighbors import kneighbors_graph
from sklearn.utils import Tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_limits

from manyview._types import Array, Seed, Views
from manyview._warn import warn_user
from manyview.base import generator
from manyview.engines.affinity import AFFINITIES, affinity
from manyview.labels import largest_first, leiden, spectral_from_graph
from manyview.labels import n_neighbors as customary_neighbors

from ._base import COMMON, COUNT, POSITIVE, SCALED, Baseline, concatenated, observed, scaled

#: Resolutions between which the one with the wanted number of communities is looked for, and how often.
LOWEST, HIGHEST, TRIES = 1e-3, 1e3, 30
#: How rows of the eigenvectors are read.
ROWS = [StrOptions({"spectral", "njw"})]


@dataclass(eq=False, repr=False)
class KNNSpectral(ClusterMixin, BaseEstimator):
    """Spectral clustering of one matrix with the defaults of MATLAB's ``spectralcluster``.

    A union k-nearest-neighbor graph weighted by exp(−(d/σ)²), the leading eigenvectors of its
    random-walk Laplacian, k-means on them. **Not a method to recommend on raw features**: with
    σ = 1 and distances above about 27 every weight underflows to 0 and the graph is empty. Rows without
    any edge are counted in ``n_isolated_`` and get the same coordinates.

    Parameters
    ----------
    n_clusters : int, default=8
    n_neighbors : int, optional
        ``None``: ceil(ln N).
    kernel_scale : float, default=1
        σ.
    assign_labels : {"spectral", "njw"}, default="spectral"
        "njw" scales the rows of the eigenvectors to unit length.
    n_init : int, default=5
        Starts of k-means.
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    labels_ : ndarray (N,)
    affinity_matrix_ : sparse (N, N)
    n_isolated_ : int, rows whose every weight is 0
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).random((40, 2)) + np.repeat([[0], [3]], 20, axis=0)
    >>> len(set(KNNSpectral(2, random_state=0).fit_predict(X)))
    2
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [COUNT],
        "n_neighbors": [COUNT, None],
        "kernel_scale": [POSITIVE],
        "assign_labels": ROWS,
        "n_init": [COUNT],
        "random_state": COMMON["random_state"],
    }

    n_clusters: int = 8
    _: KW_ONLY
    n_neighbors: int | None = None
    kernel_scale: float = 1.0
    assign_labels: str = "spectral"
    n_init: int = 5
    random_state: Seed = None

    def fit(self, X: Any, y: object = None) -> KNNSpectral:
        """Cluster the rows of one matrix.

        Parameters
        ----------
        X : array or sparse matrix (n_samples, n_features)
        y : ignored

        Returns
        -------
        KNNSpectral
            The estimator itself, fitted.
        """
        self._validate_params()
        listed = isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) == 2
        if listed or (isinstance(X, dict) and not sp.issparse(X)):
            raise ValueError(
                f"KNNSpectral clusters one matrix, got {len(X)} views; use "
                "ConcatViews(KNNSpectral(...)) or SumOfGraphs"
            )
        X = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2
        )
        n = X.shape[0]
        if self.n_clusters > n:
            raise ValueError(
                f"n_clusters={self.n_clusters} is more than the number of samples "
                f"(n_samples={n}); choose fewer clusters"
            )
        k = self.n_neighbors or customary_neighbors(n)
        with threadpool_limits(1):
            A = affinity(X, k, "heat", float(self.kernel_scale) ** 2)
            self.affinity_matrix_ = A
            self.n_isolated_ = int(np.count_nonzero(A.sum(axis=1) == 0))
            rng = generator(self.random_state)
            unit_rows = self.assign_labels == "njw"
            labels = spectral_from_graph(A, self.n_clusters, rng, unit_rows, self.n_init)
            self.labels_ = largest_first(labels)
        if self.n_isolated_:
            warn_user(
                f"{self.n_isolated_} of {n} rows have no neighbor of nonzero weight: "
                f"exp(-(d/{self.kernel_scale:g})^2) underflows at their distances. Scale the "
                "features, or raise kernel_scale"
            )
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(eq=False, repr=False)
class SumOfGraphs(Baseline):
    """Spectral clustering of the sum of the views' nearest-neighbor graphs.

    The weight of an edge is the number of views whose graph has it. Where
    views are missing, it is the share of votes among the views that both samples have, times the number
    of views.

    Parameters
    ----------
    n_clusters : int, default=8
    n_neighbors : int, default=10
        Neighbors of a sample in each view.
    affinity : {"binary", "heat", "cosine"}, default="binary"
        Weight of an edge in its view.
    scale : {"minmax", "standard", "sum", "tfidf", "sqrt"} or None, default="minmax"
        Scaling before distances; "minmax", "standard" and None accept negative values.
    assign_labels : {"spectral", "njw"}, default="spectral"
        "njw" scales the rows of the eigenvectors to unit length.
    n_init : int, default=5
        Starts of k-means.
    views : sequence or dict, optional
        If the input is one 2-D array: the number of columns of each view.
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    labels_ : ndarray (N,)
    affinity_matrix_ : sparse (N, N), the summed graph
    """

    _takes_missing: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict] = SCALED | {
        "n_neighbors": [COUNT],
        "affinity": [StrOptions(set(AFFINITIES))],
        "assign_labels": ROWS,
        "n_init": [COUNT],
    }

    n_clusters: int = 8
    _: KW_ONLY
    n_neighbors: int = 10
    affinity: str = "binary"
    scale: str | None = "minmax"
    assign_labels: str = "spectral"
    n_init: int = 5
    views: Any = None
    random_state: Seed = None

    def _cluster(self, views: Views) -> None:
        parts, rows = observed(views)
        graphs = [
            affinity(scaled(p, self.scale)[0], self.n_neighbors, self.affinity) for p in parts
        ]
        has = np.zeros((views.n_samples, len(rows)))
        for s, (graph, present) in enumerate(zip(graphs, rows, strict=True)):
            has[present, s] = 1
            at = graph.tocoo()
            places = present[at.row], present[at.col]
            graphs[s] = sp.csr_array((at.data, places), (views.n_samples, views.n_samples))
        edges = sp.coo_array(sum(graphs[1:], graphs[0]))
        shared = (has[edges.row] * has[edges.col]).sum(axis=1)
        edges.data = edges.data * (len(rows) / shared)
        total = sp.csr_array(edges)
        rng = generator(self.random_state)
        self.labels_ = spectral_from_graph(
            total, self.n_clusters, rng, self.assign_labels == "njw", self.n_init
        )
        self.affinity_matrix_ = total


@dataclass(eq=False, repr=False)
class ConcatLeiden(Baseline):
    """Leiden communities of the nearest-neighbor graph of all views side by side.

    This is the usual clustering of single cells, on all views. The resolution is searched for that gives
    the requested number of clusters, or the nearest number. Missing views and values are replaced by the
    mean of each feature, with a warning.

    Parameters
    ----------
    n_clusters : int, default=8
    n_neighbors : int, default=10
        Of the graph, which is the union of both directions.
    scale : {"standard", "minmax", "sum", "tfidf", "sqrt"} or None, default="standard"
        As in `ConcatViews`.
    views : sequence or dict, optional
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

    _takes_missing: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict] = SCALED | {
        "n_neighbors": [COUNT],
    }

    n_clusters: int = 8
    _: KW_ONLY
    n_neighbors: int = 10
    scale: str | None = "standard"
    views: Any = None
    random_state: Seed = None

    def _cluster(self, views: Views) -> None:
        seed = int(generator(self.random_state).integers(2**31))
        near = min(self.n_neighbors, views.n_samples - 1)
        if not near:
            self.labels_, self.resolution_ = np.zeros(views.n_samples, dtype=np.int64), 1.0
            return
        graph = sp.csr_array(kneighbors_graph(concatenated(views, self.scale), near))
        self.labels_, self.resolution_ = as_many_as(
            sp.csr_array(graph.maximum(graph.T)), self.n_clusters, seed
        )
        found = int(self.labels_.max()) + 1
        if found != self.n_clusters:
            warn_user(
                f"ConcatLeiden found {found} communities instead of the requested {self.n_clusters}: no "
                "resolution gives this number (a graph in several pieces has at least as many communities)"
            )


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
