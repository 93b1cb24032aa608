"""The engines by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .dask.cluster import Cluster
from .dask.engine import DaskEngine
from .numpy.engine import HOST
from .optional import engine_part
from .protocols import Engine
from .torch.device import torch_or_sentence


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
        yield engine_part("torch", "engine").TorchEngine(device)
    elif name == "dask":
        with Cluster() as cluster:
            yield DaskEngine(cluster)
    else:
        yield HOST
