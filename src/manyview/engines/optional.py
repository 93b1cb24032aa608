"""Rooms that need an optional package, loaded when an engine asks for them and nowhere else."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def torch_part(name: str) -> Any:
    """A module of `manyview.engines.torch`; whoever asks has checked that PyTorch is here.

    Parameters
    ----------
    name : str
        The name of the module in that folder.
    """
    return import_module(f"manyview.engines.torch.{name}")


def dask_part(name: str) -> Any:
    """A module of `manyview.engines.dask`.

    Parameters
    ----------
    name : str
        The name of the module in that folder.
    """
    return import_module(f"manyview.engines.dask.{name}")
