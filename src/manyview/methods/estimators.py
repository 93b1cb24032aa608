"""The two estimators as one type, for what takes either."""

from __future__ import annotations

from typing import TypeAlias

from .robust import RobustWMNMF
from .wmnmf import WMNMF

Estimator: TypeAlias = RobustWMNMF | WMNMF


def number_of_clusters(model: Estimator) -> int:
    """How many clusters a fitted estimator has."""
    return int(model.n_clusters_ if isinstance(model, RobustWMNMF) else model.n_clusters)
