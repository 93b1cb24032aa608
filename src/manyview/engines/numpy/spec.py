"""How the engine of NumPy is opened, and what it takes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from manyview.engines.protocols import Engine
from manyview.engines.spec import EngineSpec

from .engine import HOST


def opened(device: str, forget: Callable[[], None]) -> AbstractContextManager[Engine]:
    return nullcontext(HOST)


SPEC = EngineSpec(opened, takes_holes=True, takes_relations=True)
