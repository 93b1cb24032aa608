"""What the baselines share: the input contract of `WMNMF`, negative data allowed, and scales."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClusterMixin
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from threadpoolctl import threadpool_limits

from manyview._types import Array, Matrix, Views
from manyview._warn import warn_user
from manyview.base import MultiViewEstimator
from manyview.engines.numpy.presence import has_nan, observed_rows
from manyview.labels import largest_first
from manyview.nonnegative import SCALES, SHIFTING, fit_nonnegative

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
    """Base class of baselines: checks parameters and views before the fit."""

    labels_: Array
    #: Whether the method accepts samples that lack views (rows of NaN).
    _takes_missing: ClassVar[bool] = False

    def _n_clusters(self) -> int | None:
        """The requested number of clusters; ``None`` if the method decides."""
        return getattr(self, "n_clusters", None)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the samples.

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

    def _allows_missing(self, name: str = "") -> bool:
        return self._takes_missing

    def _allows_negative(self, name: str = "") -> bool:
        """Scales that shift take negative entries, and so does none at all."""
        scale = getattr(self, "scale", None)
        return scale is None or scale in SHIFTING

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._takes_missing
        tags.input_tags.positive_only = not self._allows_negative()
        return tags


def set_seeds(estimator: Any, rng: np.random.Generator) -> None:
    """Give every part of an estimator that takes a seed one of its own, in the order of the names."""
    names = [name for name in estimator.get_params() if name.split("__")[-1] == "random_state"]
    estimator.set_params(**{name: int(rng.integers(2**31)) for name in sorted(names)})


def scaled(views: Views, scale: str | None) -> list[Matrix]:
    """Every feature on its own scale, or every view on its own (see `manyview.nonnegative`)."""
    if scale is None:
        return list(views.matrices)
    if scale in ("standard", "minmax"):
        return [_by_feature(X, scale) for X in views.matrices]
    scalings = fit_nonnegative(views, scale)
    return [s.apply(X) for s, X in zip(scalings, views.matrices, strict=True)]


def _by_feature(X: Matrix, scale: str) -> Matrix:
    if not sp.issparse(X):
        return (StandardScaler() if scale == "standard" else MinMaxScaler()).fit_transform(X)
    if scale == "standard":
        return StandardScaler(with_mean=False).fit_transform(X)
    spread = (X.max(axis=0) - X.min(axis=0)).toarray().ravel()
    return sp.csr_array(X.multiply(1 / np.where(spread > 0, spread, 1)))


def observed(views: Views) -> tuple[list[Views], list[Array]]:
    """Each view of the samples that have it, and their rows.

    Where single values are missing, they are replaced by the mean of their feature, with a warning.
    """
    rows = [np.flatnonzero(observed_rows(X)) for X in views.matrices]
    check_covered(rows, views.n_samples)
    found = []
    for X, name, present in zip(views.matrices, views.names, rows, strict=True):
        if len(present) < 2:
            raise ValueError(
                f"view {name!r} has values for {len(present)} of {views.n_samples} samples; leave the "
                "view out"
            )
        part = X if len(present) == views.n_samples else X[present]
        if has_nan(part):
            holes = np.isnan(part)
            warn_user(
                f"view {name!r}: {int(holes.sum())} missing values were replaced by the mean of their "
                "feature"
            )
            part = np.where(holes, np.nanmean(part, axis=0), part)
        found.append(Views((part,), (name,), (None,)))
    return found, rows


def check_covered(rows: list[Array], n_samples: int) -> None:
    """Refuse samples that no view has: there is nothing to cluster them by."""
    lacking = np.setdiff1d(np.arange(n_samples), np.concatenate(rows))
    if len(lacking):
        raise ValueError(
            f"{len(lacking)} of {n_samples} samples have no view (the first is row {lacking[0]}); "
            "remove them"
        )


def concatenated(views: Views, scale: str | None) -> Matrix:
    """All views in one matrix; a missing view gets the mean of every feature, with a warning."""
    parts, rows = observed(views)
    matrices = [scaled(part, scale)[0] for part in parts]
    lacking = [
        f"{name!r} ({views.n_samples - len(present)} samples)"
        for name, present in zip(views.names, rows, strict=True)
        if len(present) < views.n_samples
    ]
    if lacking:
        warn_user(f"missing views were replaced by the feature means: {', '.join(lacking)}")
    for s, (X, present) in enumerate(zip(matrices, rows, strict=True)):
        if len(present) < views.n_samples:
            matrices[s] = np.tile(X.mean(axis=0), (views.n_samples, 1))
            matrices[s][present] = X
    return side_by_side(matrices)


def side_by_side(matrices: list[Matrix]) -> Matrix:
    if any(sp.issparse(X) for X in matrices):
        return sp.csr_array(sp.hstack(matrices, format="csr"))
    return np.hstack(matrices)
