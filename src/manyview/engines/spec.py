"""What is known of an engine before it is opened."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from .protocols import Engine


@dataclass(frozen=True)
class EngineSpec:
    """How an engine is opened, and what it takes; a spec needs none of the engine's packages."""

    #: The engine for the length of a fit, from the device asked for and from what drops the results of
    #: a fit that the memory of the engine had no room for.
    opened: Callable[[str, Callable[[], None]], AbstractContextManager[Engine]]
    #: Whether RobustWMNMF takes views with unobserved entries (NaN inside rows).
    takes_holes: bool = False
    #: Whether views may be graphs, kernels or distances.
    takes_relations: bool = False
    #: Whether the state of a fit can be written while it runs.
    checkpoints: bool = True
    #: Whether rows in files or on other machines are worked on there.
    leaves_rows: bool = False
    #: Whether tensors may live on another device than the processor.
    takes_devices: bool = False
