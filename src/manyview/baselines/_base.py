"""What the baselines share: the input contract of `WMNMF`, negative data allowed, and scales."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClusterMixin
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from threadpoolctl import threadpool_limits

from manyview._types import Array, Matrix, Views
from manyview.base import MultiViewEstimator
from manyview.labels import largest_first
from manyview.scaling import SCALES, SHIFTING, fit_scaling

#: Constraints of parameters, and those that nearly every baseline has.
COUNT = Interval(Integral, 1, None, closed="left")
COUNT_OR_ZERO = Interval(Integral, 0, None, closed="left")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
COMMON: dict[str, Any] = {
    "n_clusters": [COUNT],
    "views": ["array-like", dict, None],
    "random_state": ["random_state", np.random.Generator],
}
SCALED: dict[str, Any] = COMMON | {"scale": [StrOptions(set(SCALES)), None]}


class Baseline(ClusterMixin, MultiViewEstimator):
    """A multi-view clusterer whose parameters and views are checked before anything is computed."""

    labels_: Array

    def _n_clusters(self) -> int | None:
        """How many clusters will be asked for; ``None`` where the method decides."""
        return getattr(self, "n_clusters", None)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the observations.

        Parameters
        ----------
        X : list, dict or array
            The views, as for `WMNMF`.
        y : ignored

        Returns
        -------
        estimator
            Itself, fitted.
        """
        views = self._checked(X)
        with threadpool_limits(1):
            self._cluster(views)
        self.labels_ = largest_first(self.labels_)
        return self

    @abstractmethod
    def _cluster(self, views: Views) -> None:
        """Set ``labels_`` and the other fitted attributes."""

    def _checked(self, X: Any) -> Views:
        self._validate_params()
        views = self._read(X, reset=True)
        n_clusters = self._n_clusters()
        if n_clusters is not None:
            self._check_n_clusters(n_clusters, views.n_samples)
        return views

    def _allows_negative(self, name: str = "") -> bool:
        """Scales that shift take negative entries, and so does none at all."""
        scale = getattr(self, "scale", None)
        return scale is None or scale in SHIFTING

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = not self._allows_negative()
        return tags


def set_seeds(estimator: Any, rng: np.random.Generator) -> None:
    """Give every part of an estimator that takes a seed one of its own, in the order of the names."""
    names = [name for name in estimator.get_params() if name.split("__")[-1] == "random_state"]
    estimator.set_params(**{name: int(rng.integers(2**31)) for name in sorted(names)})


def scaled(views: Views, scale: str | None) -> list[Matrix]:
    """Every feature on its own scale, or every view on its own (see `manyview.scaling`)."""
    if scale is None:
        return list(views.matrices)
    if scale in ("standard", "minmax"):
        return [_by_feature(X, scale) for X in views.matrices]
    scalings = fit_scaling(views, scale)
    return [s.apply(X) for s, X in zip(scalings, views.matrices, strict=True)]


def _by_feature(X: Matrix, scale: str) -> Matrix:
    if not sp.issparse(X):
        return (StandardScaler() if scale == "standard" else MinMaxScaler()).fit_transform(X)
    if scale == "standard":
        return StandardScaler(with_mean=False).fit_transform(X)
    spread = (X.max(axis=0) - X.min(axis=0)).toarray().ravel()
    return sp.csr_array(X.multiply(1 / np.where(spread > 0, spread, 1)))


def side_by_side(matrices: list[Matrix]) -> Matrix:
    if any(sp.issparse(X) for X in matrices):
        return sp.csr_array(sp.hstack(matrices, format="csr"))
    return np.hstack(matrices)
