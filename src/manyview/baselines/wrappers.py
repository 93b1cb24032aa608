"""Clusterers of one matrix for several views: on the best view alone, or on all views side by side."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.metrics import silhouette_score
from sklearn.utils._param_validation import HasMethods
from threadpoolctl import threadpool_limits

from manyview._labels import class_codes
from manyview._types import Array, Matrix, Seed, Views
from manyview.base import generator
from manyview.labels import largest_first
from manyview.metrics import accuracy

from ._base import SCALED, Baseline, concatenated, set_seeds

#: Above this many samples the silhouette is taken on a random sample: its cost is quadratic.
SILHOUETTE_SAMPLE = 5000


class _Wrapper(Baseline):
    """Holds a clusterer of one matrix and seeds its copies."""

    estimator: Any
    _parameter_constraints: ClassVar[dict] = SCALED | {"estimator": [HasMethods("fit_predict")]}

    def _n_clusters(self) -> int | None:
        # A text such as "auto" is for the estimator to decide.
        number = getattr(self.estimator, "n_clusters", None)
        return None if isinstance(number, str) else number

    def _copy(self, rng: np.random.Generator) -> Any:
        """A fresh copy, seeded from ours; without a seed of ours the copy keeps its own."""
        copy = clone(self.estimator)
        if self.random_state is not None:
            set_seeds(copy, rng)
        return copy


@dataclass(eq=False, repr=False)
class BestSingleView(_Wrapper):
    """Cluster each view alone, and use the best result.

    Without known classes, the view with the highest silhouette in its own features is used. With
    ``fit(views, y)`` it is the view with the highest accuracy **against y**, as papers report a "best
    single view". This is an upper bound, not a method, because it needs the classes; ``chosen_by_`` says
    which of the two was done. Other clusterers of scikit-learn ignore ``y``.

    Parameters
    ----------
    estimator : clusterer
        Anything with ``fit_predict`` on one matrix, such as ``KMeans(10)``; it is copied.
    views : sequence or dict, optional
        If the input is one 2-D array: the number of columns of each view.
    random_state : int, RandomState, Generator or None
        Seed of the copies; ``None``: the seed of ``estimator``.

    Attributes
    ----------
    labels_ : ndarray (N,)
    best_view_ : str, the name of the chosen view
    chosen_by_ : "silhouette" or "truth"
    view_scores_ : dict of view name to silhouette, or accuracy
    estimators_ : dict of view name to fitted copy

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> clear = np.repeat([[0.0, 0.0], [5.0, 5.0]], 10, axis=0)
    >>> noise = np.random.default_rng(0).random((20, 2))
    >>> model = BestSingleView(KMeans(2), random_state=0).fit({"noise": noise, "clear": clear})
    >>> str(model.best_view_), model.chosen_by_
    ('clear', 'silhouette')
    """

    estimator: Any
    _: KW_ONLY
    views: Any = None
    random_state: Seed = None

    def fit(self, X: Any, y: Any = None) -> BestSingleView:
        """Cluster each view; choose by silhouette, or by accuracy if classes are given.

        Parameters
        ----------
        X : list, dict or array
            The views, as for `WMNMF`.
        y : sequence of labels, optional
            Known classes, to choose the view by.

        Returns
        -------
        BestSingleView
            The estimator itself, fitted.
        """
        views = self._checked(X)
        truth = None if y is None else class_codes(y, "y")
        if truth is not None and len(truth) != views.n_samples:
            raise ValueError(
                f"y has {len(truth)} labels for {views.n_samples} samples; give one each, or none"
            )
        rng = generator(self.random_state)
        self.estimators_, self.view_scores_, labels = {}, {}, {}
        with threadpool_limits(1):
            for name, matrix in zip(views.names, views.matrices, strict=True):
                copy = self._copy(rng)
                labels[name] = np.asarray(copy.fit_predict(matrix))
                self.estimators_[name] = copy
                self.view_scores_[name] = _score(matrix, labels[name], truth)
        self.chosen_by_ = "silhouette" if truth is None else "truth"
        self.best_view_ = max(self.view_scores_, key=self.view_scores_.__getitem__)
        self.labels_ = largest_first(labels[self.best_view_])
        return self

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> Array:
        """Labels of the view that is kept.

        Parameters
        ----------
        X : list, dict or array
            The views, as for `WMNMF`.
        y : sequence of labels, optional
            Known classes, to choose the view by.
        **kwargs : ignored

        Returns
        -------
        ndarray (n_samples,)
        """
        return self.fit(X, y).labels_


def _score(X: Matrix, labels: Array, truth: Array | None) -> float:
    """Accuracy, or the mean silhouette; −1 where it is not defined (one cluster, or only singletons)."""
    if truth is not None:
        return accuracy(truth, labels)
    if X.shape[0] > SILHOUETTE_SAMPLE:  # the same rows for all labels
        chosen = np.random.default_rng(0).permutation(X.shape[0])[:SILHOUETTE_SAMPLE]
        X, labels = X[chosen], labels[chosen]
    return float(silhouette_score(X, labels)) if 2 <= len(np.unique(labels)) < len(labels) else -1.0


@dataclass(eq=False, repr=False)
class ConcatViews(_Wrapper):
    """Cluster all views side by side, as one wide matrix.

    This is the simplest way to use several views, and with scaled features often a good one. With
    ``scale=None`` the view with the largest numbers dominates. Missing views and values are replaced by the
    mean of each feature, with a warning.

    Parameters
    ----------
    estimator : clusterer
        Anything with ``fit_predict`` on one matrix; it is copied.
    scale : {"standard", "minmax", "sum", "tfidf", "sqrt"} or None, default=None
        Per feature "standard" is the z-score and "minmax" maps to [0, 1]. Sparse views stay
        sparse: their features are divided by the spread but not shifted, which changes no
        distance. The others are those of `WMNMF` and need nonnegative data.
    views : sequence or dict, optional
        If the input is one 2-D array: the number of columns of each view.
    random_state : int, RandomState, Generator or None
        Seed of the copy; ``None``: the seed of ``estimator``.

    Attributes
    ----------
    labels_ : ndarray (N,)
    estimator_ : the fitted copy

    Examples
    --------
    >>> import manyview as mv
    >>> from sklearn.cluster import SpectralClustering
    >>> digits = mv.datasets.load_handwritten(views="paper")
    >>> spectral = SpectralClustering(10, affinity="nearest_neighbors", n_neighbors=10)
    >>> model = ConcatViews(spectral, scale="standard", random_state=0)
    >>> labels = model.fit_predict(digits.views)
    >>> bool(mv.metrics.accuracy(digits.labels, labels) > 0.96)
    True
    """

    _takes_missing: ClassVar[bool] = True

    estimator: Any
    _: KW_ONLY
    scale: str | None = None
    views: Any = None
    random_state: Seed = None

    def _cluster(self, views: Views) -> None:
        wide = concatenated(views, self.scale)
        self.estimator_ = self._copy(generator(self.random_state))
        self.labels_ = np.asarray(self.estimator_.fit_predict(wide))
