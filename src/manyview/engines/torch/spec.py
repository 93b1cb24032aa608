"""How the engine of PyTorch is opened, and what it takes; PyTorch is imported when it is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from manyview.engines.optional import engine_part
from manyview.engines.protocols import Engine, EngineSpec

from .device import memory_guard


@contextmanager
def opened(device: str, forget: Callable[[], None]) -> Iterator[Engine]:
    with memory_guard(device, forget):
        yield engine_part("torch", "engine").TorchEngine(device)


# Its state is on the device, where no file is written from.
SPEC = EngineSpec(opened, checkpoints=False, takes_devices=True)
