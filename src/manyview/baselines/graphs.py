"""Spectral clustering of one matrix as MATLAB does it by default, and of the views' summed graphs."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_limits

from manyview._types import Seed, Views
from manyview._warn import warn_user
from manyview.base import generator
from manyview.engines.affinity import AFFINITIES, affinity
from manyview.labels import n_neighbors as customary_neighbors
from manyview.labels import spectral_from_graph
from manyview.scaling import SCALES

from ._base import RANDOM_STATE, Baseline, takes_negative
from ._features import scaled


class KNNSpectral(ClusterMixin, BaseEstimator):
    """Spectral clustering of one matrix with the defaults of MATLAB's ``spectralcluster``.

    A union k-nearest-neighbour graph weighted by exp(−(d/σ)²), the leading eigenvectors of its
    random-walk Laplacian, k-means on them. **Not a method to recommend on raw features**: with
    σ = 1 and distances above about 27 every weight underflows to 0 and the graph is empty. Rows
    without any edge are counted in ``n_isolated_``, share one place and do not stop the fit.

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
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), None],
        "kernel_scale": [Interval(Real, 0, None, closed="neither")],
        "assign_labels": [StrOptions({"spectral", "njw"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int | None = None,
        kernel_scale: float = 1.0,
        assign_labels: str = "spectral",
        n_init: int = 5,
        random_state: Seed = None,
    ):
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.kernel_scale = kernel_scale
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.random_state = random_state

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
        X = validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2
        )
        n = X.shape[0]
        if self.n_clusters > n:
            raise ValueError(
                f"n_clusters={self.n_clusters} is more than the number of observations "
                f"(n_samples={n}); ask for fewer clusters"
            )
        k = self.n_neighbors or customary_neighbors(n)
        with threadpool_limits(1):
            A = affinity(X, k, "heat", float(self.kernel_scale) ** 2)
            self.affinity_matrix_ = A
            self.n_isolated_ = int(np.count_nonzero(A.sum(axis=1) == 0))
            rng = generator(self.random_state)
            self.labels_ = spectral_from_graph(
                A, self.n_clusters, rng, self.assign_labels == "njw", self.n_init
            )
        if self.n_isolated_:
            warn_user(
                f"{self.n_isolated_} of {n} rows have no neighbour of nonzero weight: "
                f"exp(-(d/{self.kernel_scale:g})^2) underflows at their distances. Scale the "
                "features, or raise kernel_scale"
            )
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class SumOfGraphs(Baseline):
    """Spectral clustering of the sum of the views' nearest-neighbour graphs.

    Each view votes on who is near whom; an edge weighs as much as there are views that have it.

    Parameters
    ----------
    n_clusters : int, default=8
    n_neighbors : int, default=10
        Neighbours of an observation in each view.
    affinity : {"binary", "heat", "cosine"}, default="binary"
        Weight of an edge in its view.
    scale : {"minmax", "standard", "sum", "tfidf", "sqrt"} or None, default="minmax"
        Scaling before distances; "minmax", "standard" and None accept negative values.
    assign_labels : {"spectral", "njw"}, default="spectral"
        "njw" scales the rows of the eigenvectors to unit length.
    n_init : int, default=5
        Starts of k-means.
    views : sequence of int, optional
        If the input is one 2-D array: the number of columns of each view.
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    labels_ : ndarray (N,)
    affinity_matrix_ : sparse (N, N), the summed graph
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "affinity": [StrOptions(set(AFFINITIES))],
        "scale": [StrOptions(set(SCALES)), None],
        "assign_labels": [StrOptions({"spectral", "njw"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "views": ["array-like", None],
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 10,
        affinity: str = "binary",
        scale: str | None = "minmax",
        assign_labels: str = "spectral",
        n_init: int = 5,
        views: Any = None,
        random_state: Seed = None,
    ):
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.affinity = affinity
        self.scale = scale
        self.assign_labels = assign_labels
        self.n_init = n_init
        self.views = views
        self.random_state = random_state

    def _cluster(self, views: Views) -> None:
        """Build, add and cut the graphs."""
        with threadpool_limits(1):
            matrices = scaled(views, self.scale)
            graphs = [affinity(M, self.n_neighbors, self.affinity) for M in matrices]
            total = sp.csr_array(sum(graphs[1:], graphs[0]))
            rng = generator(self.random_state)
            self.labels_ = spectral_from_graph(
                total, self.n_clusters, rng, self.assign_labels == "njw", self.n_init
            )
        self.affinity_matrix_ = total

    def _allows_negative(self) -> bool:
        return takes_negative(self.scale)
