"""Before a process's first cell: small fits, so that no cell pays for loading or compiling anything."""

from __future__ import annotations

import warnings
from functools import lru_cache

import numpy as np

from ..estimators import WMNMF
from ..robust import RobustWMNMF


@lru_cache(maxsize=1)
def warm_up() -> None:
    """Fit both methods to a handful of numbers, once per process."""
    rng = np.random.default_rng(0)
    views = [rng.random((60, n_features)) for n_features in (8, 5)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in (WMNMF, RobustWMNMF):
            method(2, random_state=0).fit(views)
