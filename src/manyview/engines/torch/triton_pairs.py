# mypy: ignore-errors
"""Squared distances of pairs of rows, on CUDA cards with Triton: rows are read, nothing else is."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

#: Pairs and columns of a tile.
PAIRS, COLUMNS = 32, 64


@triton.jit(do_not_specialize=["n_pairs", "m"])
def _kernel(Z, i, j, found, n_pairs, m, PAIRS: tl.constexpr, COLUMNS: tl.constexpr):
    p = tl.program_id(0).to(tl.int64) * PAIRS + tl.arange(0, PAIRS)
    here = p < n_pairs
    a = tl.load(i + p, mask=here, other=0)[:, None] * m
    b = tl.load(j + p, mask=here, other=0)[:, None] * m
    total = tl.zeros((PAIRS, COLUMNS), dtype=tl.float32)
    for first in range(0, m, COLUMNS):
        c = first + tl.arange(0, COLUMNS)[None, :]
        inside = here[:, None] & (c < m)
        gap = tl.load(Z + a + c, mask=inside, other=0) - tl.load(Z + b + c, mask=inside, other=0)
        total += gap * gap
    tl.store(found + p, tl.sum(total, 1), mask=here)


def squared_gaps(Z: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
    """‖z_i − z_j‖² of pairs of rows of a contiguous float32 tensor, which int64 tensors name."""
    found = torch.empty(len(i), dtype=Z.dtype, device=Z.device)
    given = (Z, i.contiguous(), j.contiguous(), found, len(i), Z.shape[1])
    _kernel[(triton.cdiv(len(i), PAIRS),)](*given, PAIRS=PAIRS, COLUMNS=COLUMNS)
    return found
