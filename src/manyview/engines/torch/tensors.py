"""The rows of a view as tensors: on a device, or in host memory and copied there block by block.

Views larger than the card stay in pinned host memory, and their blocks are copied while the block
before is computed with.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from functools import cache
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch

from manyview._types import Array
from manyview.engines.numpy.sources import as_source
from manyview.engines.optional import engine_part
from manyview.engines.protocols import Pass
from manyview.engines.threads import blocks
from manyview.maths.solvers import Solver

from .device import fits, put, torch_dtype
from .graph import csr

#: Entries of X per block: enough to fill the card, few enough that temporaries stay small.
RESIDENT_BLOCK, STREAMED_BLOCK = 2**28, 2**25


class TorchView:
    """One scaled view on a device: dense rows, or a CSR matrix and its transpose."""

    def __init__(
        self, X: Any, device: Any, dtype: np.dtype | None = None, resident: bool | None = None
    ):
        if isinstance(X, torch.Tensor):
            self.X, self.device, self.shape = X, device, X.shape
            self.dtype = np.dtype(str(X.dtype).removeprefix("torch."))
            self.sparse, self.transposed, self.resident = False, None, True
            return
        source = as_source(X)
        self.device, self.dtype, self.shape = device, np.dtype(dtype), source.shape
        self.sparse, self.transposed = source.sparse, None
        everything = slice(0, self.shape[0])
        if self.sparse:
            self.matrix = sp.csr_matrix(source.read(everything))
            self.X = csr_tensor(self.matrix, device, dtype)
            self.transposed = csr_tensor(self.matrix.T.tocsr(), device, dtype)
            self.resident = True
            return
        size = self.shape[0] * self.shape[1] * self.dtype.itemsize
        self.resident = fits(size, device) if resident is None else resident
        where = device if self.resident else torch.device("cpu")
        self.X = torch.empty(self.shape, dtype=torch_dtype(dtype), device=where)
        if not self.resident and torch.cuda.is_available():
            self._pin()
        step = max(1, STREAMED_BLOCK // max(1, self.shape[1]))
        for b in blocks(everything, step):
            self.X[b] = put(source.read(b), where, dtype)

    def _pin(self) -> None:
        """Let the card read the host's memory directly; where that is refused, copies are slower.

        PyTorch's own pinned memory is rounded up to a power of two, and kept after the fit.
        """
        card, place = torch.cuda.cudart(), self.X.data_ptr()
        if int(card.cudaHostRegister(place, self.X.numel() * self.X.element_size(), 0)) == 0:
            weakref.finalize(self, card.cudaHostUnregister, place).atexit = False

    def placed(self, array: Array) -> torch.Tensor:
        """Something of the host (a random start, weights) to where the view is."""
        return put(array, self.device, self.dtype)

    def sum(self) -> float:
        return float(sum(part.sum(dtype=torch.float64) for _, part in self.blocks()))

    def dense(self, rows: slice) -> torch.Tensor:
        """Some rows on the device, zeros and all."""
        if self.sparse:
            return put(self.matrix[rows].toarray(), self.device, self.dtype)
        return self.X[rows].to(self.device)

    def gathered(self, rows: torch.Tensor) -> torch.Tensor:
        """These rows on the device, wherever the view is."""
        if self.sparse:
            return put(self.matrix[rows.cpu().numpy()].toarray(), self.device, self.dtype)
        return self.X[rows.to(self.X.device)].to(self.device)

    def as_rows(self, solver: Solver) -> Pass:
        """The pass over these rows."""
        return engine_part("torch", "rows").TorchRows(self, solver)

    def take(self, rows: Array) -> torch.Tensor:
        return self.gathered(torch.as_tensor(rows))

    def give_rows_unit_sums(self) -> Self:
        """Divide its rows by their L1 norm, in place: there is no room for them twice."""
        everything = slice(0, self.shape[0])
        for b in blocks(everything, max(1, STREAMED_BLOCK // max(1, self.shape[1]))):
            total = self.X[b].abs().sum(1, keepdim=True)
            self.X[b] /= total + (total <= 0)
        return self

    def leading_svd(self, rank: int, seed: int) -> tuple[Array, Array, Array]:
        """The largest singular values and vectors, for the host."""
        block = self.leading_block(rank, seed)
        Q, R = torch.linalg.qr(self._times(block))
        left, values, right = torch.linalg.svd(R)
        kept = (Q @ left[:, :rank], values[:rank], right[:rank] @ block.T)
        return tuple(part.cpu().numpy() for part in kept)

    def leading_block(self, rank: int, seed: int) -> torch.Tensor:
        """Orthogonal columns that nearly span the leading directions: a random block, four powers."""
        start = np.random.default_rng(seed).standard_normal((self.shape[1], rank + 10))
        block = self.placed(start[:, : min(self.shape)])
        for _ in range(4):
            block = torch.linalg.qr(self.gram(block))[0]
        return block

    def __matmul__(self, vector: Array) -> torch.Tensor:
        return self._times(self.placed(vector[:, None]))[:, 0]

    def _times(self, block: torch.Tensor) -> torch.Tensor:
        return torch.cat([X @ block for _, X in self.blocks()])

    def gram(self, block: torch.Tensor) -> torch.Tensor:
        """XᵀX times a block."""
        if self.transposed is not None:
            return self.transposed @ (self.X @ block)
        return sum(X.T @ (X @ block) for _, X in self.blocks())

    def blocks(self) -> Iterator[tuple[slice, torch.Tensor]]:
        """Rows on the device, a block at a time; the next block travels meanwhile."""
        everything = slice(0, self.shape[0])
        if self.sparse:
            yield everything, self.X
        elif self.resident:
            for b in blocks(everything, max(1, RESIDENT_BLOCK // max(1, self.shape[1]))):
                yield b, self.X[b]
        else:
            yield from self._streamed(everything)

    def _streamed(self, everything: slice) -> Iterator[tuple[slice, torch.Tensor]]:
        copying, computing = stream_aside(self.device), torch.cuda.current_stream(self.device)

        def fetch(b: slice) -> tuple[slice, torch.Tensor, torch.cuda.Event]:
            with torch.cuda.stream(copying):
                part = self.X[b].to(self.device, non_blocking=True)
            return b, part, copying.record_event()

        parts = blocks(everything, max(1, STREAMED_BLOCK // max(1, self.shape[1])))
        waiting: Any = fetch(next(parts))
        while waiting is not None:
            b, part, arrived = waiting
            following = next(parts, None)
            waiting = None if following is None else fetch(following)
            computing.wait_event(arrived)
            part.record_stream(computing)
            yield b, part


@cache
def stream_aside(device: Any) -> Any:
    """One for all fits: matrix products keep tens of MiB of the card for every stream they saw."""
    return torch.cuda.Stream(device)


def csr_tensor(matrix: Any, device: Any, dtype: Any) -> torch.Tensor:
    starts, columns = (put(part, device) for part in (matrix.indptr, matrix.indices))
    return csr(starts, columns, put(matrix.data, device, dtype), matrix.shape)
