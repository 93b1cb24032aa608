"""What estimators of users and of the library can do, where that makes a difference to judging them."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from manyview._types import Array, Seed


@runtime_checkable
class Clusterer(Protocol):
    """An estimator that gives observations labels."""

    def fit_predict(self, X: Any) -> Array: ...


@runtime_checkable
class HasSettings(Protocol):
    """An object whose settings can be read and changed, as scikit-learn's."""

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def set_params(self, **params: Any) -> HasSettings: ...


@runtime_checkable
class TellsCost(Protocol):
    """A method that may be too slow or too large, and says so before."""

    def estimate_cost(self, n_samples: int, n_views: int) -> dict[str, float]: ...


@runtime_checkable
class Relabels(Protocol):
    """A method whose runs differ in their last step only: one fit serves all."""

    def relabel(self, random_state: Seed = None) -> Array: ...
