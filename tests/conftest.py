import os
import sys
from pathlib import Path

import numpy as np
import pytest

try:  # the tests of an engine do without
    from hypothesis import HealthCheck, settings
except ModuleNotFoundError:
    pass
else:
    # `make test` draws the same examples everywhere; `make fuzz` draws new and many more.
    quiet = {"deadline": None, "suppress_health_check": list(HealthCheck)}
    settings.register_profile("test", derandomize=True, **quiet)
    settings.register_profile("fuzz", max_examples=3000, **quiet)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "test"))

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def blobs(n=60, features=(8, 5, 6), clusters=3, seed=0, noise=0.3):
    """Nonnegative views of well separated groups, and the groups."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % clusters
    views = [
        np.abs(rng.uniform(0, 4, (clusters, m))[y] + noise * rng.standard_normal((n, m)))
        for m in features
    ]
    return views, y
