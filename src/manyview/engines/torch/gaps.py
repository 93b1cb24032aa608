"""Squared distances of pairs of rows on a device."""

from __future__ import annotations

from typing import Any

import torch

from manyview._warn import warn_user
from manyview.engines.optional import engine_part

from .fused import fused

#: Numbers that are compared from which a compilation pays.
WORTH_COMPILING = 2**24
#: Entries gathered at a time for distances of pairs.
GATHERED = 2**27


class Broken:
    """Whether the kernel has failed here: it is not tried again."""

    kernel = False


def squared_gaps(Z: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
    """‖z_i − z_j‖² of pairs of rows."""
    whole = Z.is_cuda and Z.dtype == torch.float32 and Z.is_contiguous()
    if whole and 0 < len(i) * Z.shape[1] >= WORTH_COMPILING and not Broken.kernel:
        found = _by_kernel(Z, i, j)
        if found is not None:
            return found
    squared = torch.empty(len(i), dtype=Z.dtype, device=Z.device)
    step = max(1, GATHERED // max(1, Z.shape[1]))
    for start in range(0, len(i), step):
        pairs = slice(start, start + step)
        squared[pairs] = (Z[i[pairs]] - Z[j[pairs]]).square_().sum(1)
    return squared


def _by_kernel(Z: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor | None:
    if fused() is None:
        return None
    try:
        module: Any = engine_part("torch", "triton_pairs")
        return module.squared_gaps(Z, i, j)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # no compiler here, say
        Broken.kernel = True
        warn_user(
            f"the kernel for distances cannot run here ({error}); going on with plain PyTorch, slower"
        )
        return None
