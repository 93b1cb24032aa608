"""The engines by name. Rooms that need an optional package are loaded here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from .dask.cluster import cluster_for
from .dask.engine import DaskEngine
from .host import HOST
from .protocols import Engine
from .torch.device import torch_or_sentence

NAMES = ("numpy", "torch", "dask")


@contextmanager
def opened(name: str, device: str = "auto") -> Iterator[Engine]:
    """The engine of this name for the length of a fit.

    Parameters
    ----------
    name : {"numpy", "torch", "dask"}
    device : str
        Where tensors of the engine "torch" live.
    """
    if name == "torch":
        torch_or_sentence()
        yield import_module("manyview.engines.torch.engine").TorchEngine(device)
        return
    with cluster_for(name) as cluster:
        yield HOST if cluster is None else DaskEngine(cluster)
