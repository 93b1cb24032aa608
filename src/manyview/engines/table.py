"""The engines by name: a new one is a folder, and its entry here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from .numpy.engine import HOST, Engine
from .protocols import engine_part

#: How an engine is opened for the length of a fit, from the requested device and from what drops
#: the results of a fit that the memory of the engine had no room for.
Opened = Callable[[str, Callable[[], None]], AbstractContextManager[Engine]]


@contextmanager
def _torch(device: str, forget: Callable[[], None]) -> Iterator[Engine]:
    with engine_part("torch", "device").memory_guard(device, forget):
        yield engine_part("torch", "engine").TorchEngine(device)


@contextmanager
def _dask(device: str, forget: Callable[[], None]) -> Iterator[Engine]:
    with engine_part("dask", "cluster").Cluster() as cluster:
        yield engine_part("dask", "engine").DaskEngine(cluster)


@dataclass(frozen=True)
class EngineSpec:
    """How an engine is opened, and what it takes; its packages are imported when it is opened."""

    opened: Opened
    #: Whether RobustWMNMF takes views with unobserved entries (NaN inside rows).
    takes_holes: bool = False
    #: Whether views may be graphs, kernels or distances.
    takes_relations: bool = False
    #: Whether the state of a fit can be written while it runs: not of a device, from which none is written.
    checkpoints: bool = True
    #: Whether rows in files or on other machines are worked on there.
    leaves_rows: bool = False
    #: Whether solvers and regularizers get tensors, which may live on another device than the processor.
    takes_devices: bool = False


ENGINES = {
    "numpy": EngineSpec(lambda *_: nullcontext(HOST), takes_holes=True, takes_relations=True),
    "torch": EngineSpec(_torch, checkpoints=False, takes_devices=True),
    "dask": EngineSpec(_dask, leaves_rows=True),
}
