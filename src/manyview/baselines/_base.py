"""What the baselines share: the input contract of `WMNMF`, without its demand for nonnegative data."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import ClusterMixin
from sklearn.utils import Tags

from manyview._types import Views
from manyview.base import MultiViewEstimator
from manyview.scaling import SHIFTING

#: Constraint of every parameter that takes a seed.
RANDOM_STATE = ["random_state", np.random.Generator]


class Baseline(ClusterMixin, MultiViewEstimator):
    """A multi-view clusterer whose parameters and views are checked before anything is computed."""

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
        self._cluster(self._checked(X))
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

    def _allows_negative(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = not self._allows_negative()
        return tags


def set_seeds(estimator: Any, rng: np.random.Generator) -> None:
    """Give every part of an estimator that takes a seed one of its own, in the order of the names."""
    names = [name for name in estimator.get_params() if name.split("__")[-1] == "random_state"]
    estimator.set_params(**{name: int(rng.integers(2**31)) for name in sorted(names)})


def takes_negative(scale: str | None) -> bool:
    """Whether a scale takes negative entries: those that shift do, and so does none at all."""
    return scale is None or scale in SHIFTING
