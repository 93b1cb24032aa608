"""The engines by name: a new one is a folder, and a line here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from .dask.spec import SPEC as DASK
from .numpy.engine import SPEC as NUMPY
from .protocols import Engine, EngineSpec
from .torch.spec import SPEC as TORCH

ENGINES: dict[str, EngineSpec] = {
    "numpy": NUMPY,
    "torch": TORCH,
    "dask": DASK,
}


def opened(name: str, device: str, forget: Callable[[], None]) -> AbstractContextManager[Engine]:
    """The engine of this name for the length of a fit.

    Parameters
    ----------
    name : str
        One of `ENGINES`.
    device : str
        Where tensors of the engine "torch" live.
    forget : callable
        Drops what a fit has stored, if it runs out of the engine's memory.
    """
    return ENGINES[name].opened(device, forget)
