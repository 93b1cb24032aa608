import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import manyview as mv

try:  # the tests of an engine do without
    from hypothesis import HealthCheck, settings
except ModuleNotFoundError:
    pass
else:
    # `make test` draws the same examples everywhere; `make fuzz` draws new and many more.
    quiet = {"deadline": None, "suppress_health_check": list(HealthCheck)}
    settings.register_profile("test", max_examples=20, derandomize=True, **quiet)
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


class Place(NamedTuple):
    """Where the rows of views live, and the parameters of estimators that compute there."""

    name: str
    params: dict[str, Any]
    put: Callable[[np.ndarray], Any]

    def views(self, views):
        return [self.put(X) for X in views]


@pytest.fixture(scope="module")
def dask_client():
    """A cluster inside this process: what is asked of it is computed in another thread."""
    distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")
    settings = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(processes=False, **settings) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(params=["numpy", "files", "dask", "torch"])
def place(request, tmp_path):
    """Every place for rows that is installed: a law that takes this fixture holds wherever rows live."""
    if request.param == "numpy":
        return Place("numpy", {}, np.asarray)
    if request.param == "files":
        return Place("files", {}, lambda X: in_a_file(X, tmp_path))
    if request.param == "dask":
        request.getfixturevalue("dask_client")
        return Place("dask", {"engine": "dask"}, in_uneven_blocks)
    pytest.importorskip("torch", reason="needs the extra 'torch'")
    params = {"engine": "torch", "device": "cpu", "dtype": np.float64}
    return Place("torch", params, np.asarray)


def in_a_file(X, folder):
    path = folder / f"{len(list(folder.iterdir()))}.npy"
    np.save(path, X)
    return mv.on_disk(path)


def in_uneven_blocks(X):
    import dask.array as da

    return da.from_array(X, chunks=((13, len(X) - 13), -1))
