"""How the engine of Dask is opened, and what it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from manyview.engines.protocols import Engine, EngineSpec

from .cluster import Cluster
from .engine import DaskEngine


@contextmanager
def opened(device: str, forget: Callable[[], None]) -> Iterator[Engine]:
    with Cluster() as cluster:
        yield DaskEngine(cluster)


SPEC = EngineSpec(opened, leaves_rows=True)
