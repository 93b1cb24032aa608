"""What every multi-view estimator shares: input, names, seeds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from ._types import Array, Views
from .views import as_views, is_single


def generator(random_state: Any) -> np.random.Generator:
    """The one source of randomness of a fit, from whatever scikit-learn users pass."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


class MultiViewEstimator(BaseEstimator):
    """Validates views at fit, and holds later input to the same views and features."""

    views: Any

    #: Whether `_read` lets negative entries through; estimators that scale decide by their scale.
    def _allows_negative(self) -> bool:
        return False

    def _allows_missing(self) -> bool:
        return False

    def _read(self, X: Any, reset: bool) -> Views:
        """``X`` as Views; at fit (``reset``) its names are stored, afterwards compared."""
        if not reset:
            check_is_fitted(self)
        if not reset:
            X = self._in_fitted_order(X)
        given = as_views(
            X,
            getattr(self, "views", None),
            allow_negative=self._allows_negative(),
            allow_missing=self._allows_missing(),
            min_samples=2 if reset else 1,
            caller=type(self).__name__,
        )
        if is_single(X):
            # scikit-learn's own bookkeeping of n_features_in_ and feature_names_in_.
            validate_data(self, X, reset=reset, skip_check_array=True)
        if reset:
            if not is_single(X):
                self.n_features_in_ = given.n_features
                if hasattr(self, "feature_names_in_"):  # of an earlier fit on one DataFrame
                    del self.feature_names_in_
            self.view_names_in_ = np.array(given.names, dtype=object)
            self.view_feature_names_in_ = dict(zip(given.names, given.feature_names, strict=True))
            self.sample_names_in_ = given.sample_names
            self._view_widths, self._fitted_on_single = given.n_features, is_single(X)
        else:
            self._check_widths(given)
        return given

    def _in_fitted_order(self, X: Any) -> Any:
        """A dict may list the views in any order; DataFrames may list the features in any order."""
        names = list(self.view_names_in_)
        if is_single(X) != self._fitted_on_single:
            kinds = ("a collection of views", "one array")
            raise ValueError(
                f"{type(self).__name__} was fitted on {kinds[self._fitted_on_single]}, "
                f"got {kinds[is_single(X)]}; pass the same form"
            )
        if is_single(X):
            return X
        if isinstance(X, Mapping):
            X = {str(name): item for name, item in X.items()}
            absent = [name for name in names if name not in X]
            extra = [name for name in X if name not in names]
            if absent or extra:
                raise ValueError(
                    f"{type(self).__name__} was fitted on the views {names}; "
                    f"missing here: {absent}, unknown: {extra}"
                )
            X = {name: X[name] for name in names}
        elif len(X) != len(names):
            raise ValueError(
                f"{type(self).__name__} was fitted on {len(names)} views {names}, got {len(X)}"
            )
        items = list(X.values()) if isinstance(X, Mapping) else list(X)
        for s, (name, item) in enumerate(zip(names, items, strict=True)):
            features = self.view_feature_names_in_[name]
            if features is None or not hasattr(item, "columns"):
                continue
            columns = [str(column) for column in item.columns]
            if columns == list(features):
                continue
            if len(set(columns)) < len(columns):
                raise ValueError(
                    f"view {name!r} has repeated column names in another order than at fit; "
                    "give its features unique names"
                )
            lacking = [f for f in features if f not in columns]
            if lacking:
                raise ValueError(
                    f"view {name!r} lacks {len(lacking)} of its {len(features)} fitted features, "
                    f"the first being {lacking[0]!r}"
                )
            place = {column: j for j, column in enumerate(columns)}
            items[s] = item.iloc[:, [place[f] for f in features]]
        return dict(zip(names, items, strict=True))

    def _check_widths(self, given: Views) -> None:
        for name, fitted, seen in zip(
            self.view_names_in_, self._view_widths, given.n_features, strict=True
        ):
            if fitted != seen:
                raise ValueError(
                    f"view {name!r} has {seen} features, but {type(self).__name__} was fitted with "
                    f"{fitted}"
                )

    def save(self, path: str | Path) -> Path:
        """Write the fitted model to ``path`` (.npz, no pickle); `manyview.load` gives it back exactly.

        The file holds the training data that `predict` and `impute` need. A ``callback`` or a random
        generator is left out with a warning; a regulariser of your own class cannot be saved.
        """
        from .store import save

        return save(self, path)

    def _check_n_clusters(self, n_clusters: int, n_samples: int) -> None:
        if n_clusters > n_samples:
            raise ValueError(
                f"n_clusters={n_clusters} is more than the number of observations "
                f"(n_samples={n_samples}); ask for fewer clusters"
            )


def in_dtype(array: Array, dtype: np.dtype) -> Array:
    return np.ascontiguousarray(array, dtype=dtype)
