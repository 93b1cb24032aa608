"""Before a process's first cell: small fits, so that no cell pays for loading or compiling anything."""

from __future__ import annotations

import os
import sys
import warnings
from functools import lru_cache

import numpy as np

from ..engines.compiled import compiled
from ..estimators import WMNMF
from ..robust import RobustWMNMF

#: Set in the environment of a process that has begun again.
BEGUN_AGAIN = "MANYVIEW_BEGUN_AGAIN"


@lru_cache(maxsize=1)
def warm_up() -> None:
    """Fit both methods to a handful of numbers, once per process."""
    rng = np.random.default_rng(0)
    views = [rng.random((60, n_features)) for n_features in (8, 5)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for method in (WMNMF, RobustWMNMF):
            method(2, random_state=0).fit(views)


def begin_with_stored_loops() -> None:
    """Warm up, and begin this process again if that compiled anything.

    A loop compiled here may round otherwise than the same loop stored and loaded: without this, the
    cells of the very first process would differ from all others in their last digit.
    """
    warm_up()
    loops = vars(compiled()).values() if compiled() is not None else ()
    n_compiled = sum(sum(f.stats.cache_misses.values()) for f in loops if hasattr(f, "stats"))
    # Once only: where nothing can be stored, every process compiles, and all are alike again.
    if n_compiled and os.name == "posix" and BEGUN_AGAIN not in os.environ:
        os.environ[BEGUN_AGAIN] = "1"
        os.execv(sys.executable, sys.orig_argv)
