"""Modules that need an optional package, loaded when an engine asks for them and nowhere else."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def engine_part(engine: str, module: str) -> ModuleType:
    """A module of an engine; whoever asks has checked that its package is here.

    Parameters
    ----------
    engine : {"torch", "dask"}
        A folder beside this file.
    module : str
        The name of a file in it.
    """
    return import_module(f"manyview.engines.{engine}.{module}")
