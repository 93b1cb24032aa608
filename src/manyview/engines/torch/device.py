"""Tensors: which device, what fits there, and how arrays get there and back (extra "torch")."""

from __future__ import annotations

import gc
import re
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from manyview._types import Array

#: With fewer entries than this in all views, a GPU waits for its launches longer than a CPU computes.
WORTH_A_GPU = 200_000
#: Share of the card's free memory that data may take; the rest is for factors, graphs and distances.
SHARE_FOR_DATA = 0.5
DEVICES = re.compile(r"auto|cpu|cuda(:\d+)?")


def torch_or_sentence() -> Any:
    try:
        import torch
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "engine='torch' needs PyTorch: pip install 'manyview[torch]', or use engine='numpy'"
        ) from None
    return torch


def choose(device: str, n_entries: int) -> Any:
    """The torch device for views of this many entries; "auto" takes a GPU where it pays."""
    torch = check(device)
    if device == "auto":
        there = torch.cuda.is_available()
        device = "cuda" if there and n_entries >= WORTH_A_GPU else "cpu"
    return torch.device(device)


def check(device: str) -> Any:
    """PyTorch, if it is here and has this device."""
    torch = torch_or_sentence()
    if not DEVICES.fullmatch(device):
        raise ValueError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:1', …, got {device!r}")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise RuntimeError(
            f"device={device!r} was requested, but PyTorch {torch.__version__} sees no GPU here; use "
            "device='auto' or 'cpu', or install a PyTorch built for your card"
        )
    if device.startswith("cuda:") and int(device[5:]) >= torch.cuda.device_count():
        raise RuntimeError(
            f"device={device!r} was requested, but PyTorch sees {torch.cuda.device_count()} GPU(s), "
            "counted from 0; use device='cuda' for the current one"
        )
    return torch


def precision(device: Any, asked: Any, otherwise: np.dtype) -> np.dtype:
    """float32 on a GPU unless float64 is requested; elsewhere what NumPy would use."""
    return np.dtype(np.float32) if device.type == "cuda" and asked is None else otherwise


def put(array: Any, device: Any, dtype: Any = None) -> Any:
    """``array`` as a tensor on ``device``, moved once."""
    import torch

    tensor = array if isinstance(array, torch.Tensor) else torch.from_numpy(_writable(array))
    return tensor.to(device=device, dtype=None if dtype is None else torch_dtype(dtype))


def torch_dtype(dtype: Any) -> Any:
    import torch

    return dtype if isinstance(dtype, torch.dtype) else getattr(torch, np.dtype(dtype).name)


def _writable(array: Any) -> Array:
    # PyTorch warns about arrays it may not write to (memory maps); nothing here writes to its input.
    array = np.ascontiguousarray(array)
    if array.flags.writeable:
        return array
    view = array.view()
    try:
        view.flags.writeable = True
    except ValueError:
        return array.copy()
    return view


def fits(n_bytes: int, device: Any) -> bool:
    """Whether data of this size can live on the device during a fit."""

    if device.type != "cuda":
        return True  # it is in this memory already
    return n_bytes <= SHARE_FOR_DATA * free_memory(device)


def free_memory(device: Any) -> int:
    """Bytes of a card that a fit can have: those PyTorch keeps for later are free to it, too."""
    import torch

    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + kept


@contextmanager
def memory_guard(device: str, forget: Callable[[], None]) -> Iterator[None]:
    """Work on this device; running out of its memory becomes a sentence, and frees what was taken.

    ``forget`` drops what the fit has stored by then.
    """
    torch = check(device)
    there, full = torch.cuda.is_available(), False
    chosen = torch.cuda.device(device) if there and device.startswith("cuda") else nullcontext()
    with chosen:
        before = torch.cuda.memory_allocated() if there else 0
        try:
            yield
        except (torch.OutOfMemoryError, RuntimeError, MemoryError) as error:
            if not _out_of_memory(torch, error):
                raise
            full = True
            forget()
            traceback.clear_frames(error.__traceback__)  # they hold the tensors
        finally:
            if there:
                if torch.cuda.memory_allocated() > before:  # held by what refers to itself
                    gc.collect()
                torch.cuda.empty_cache()
        if full:
            raise MemoryError(_full(torch, device))


def _out_of_memory(torch: Any, error: Exception) -> bool:
    told = ("out of memory", "ALLOC_FAILED", "not enough memory")
    kinds = (torch.OutOfMemoryError, MemoryError)
    return isinstance(error, kinds) or any(part in str(error) for part in told)


def _full(torch: Any, device: str) -> str:
    room = ""
    if torch.cuda.is_available():
        free, total = torch.cuda.mem_get_info()
        room = f" (the card has {total / 2**30:.0f} GiB, {free / 2**30:.1f} free without this fit)"
    return (
        f"device={device!r} ran out of memory{room}; use fewer samples or features, or "
        "engine='numpy'. The estimator is left unfitted"
    )
