"""The rows of a view as tensors, and the pass over them: the interface of `engines.numpy.rows.Rows`.

Rows are on a device, or in pinned host memory and copied there block by block while the block before is
computed with. The formulas are those of `equations` and `solvers`, on tensors.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch

from manyview._types import Array, Split, Sums, Views
from manyview.engines.numpy.rows import CANCELLED
from manyview.engines.numpy.sources import Scaled, as_source
from manyview.engines.protocols import Pass
from manyview.engines.threads import blocks
from manyview.maths import equations as eq
from manyview.maths.solvers import Solver, own_name
from manyview.maths.terms import Term

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
        return TorchRows(self, solver)

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


def device_views(
    views: Views, fit: Callable[[Views], list[Any]], device: Any, dtype: np.dtype
) -> tuple[list[TorchView], list[Any]]:
    """Views moved to the device as they are and scaled there; sparse and too large ones on the host.

    ``fit`` finds the scaling of each view, of arrays or of tensors.
    """
    size = sum(int(np.prod(X.shape)) for X in views.matrices) * 8
    if any(sp.issparse(X) for X in views.matrices) or not fits(2 * size, device):
        scalings = fit(views)
        pairs = zip(views.matrices, scalings, strict=True)
        return [TorchView(Scaled(X, s, dtype), device, dtype) for X, s in pairs], scalings
    raw = [put(X, device) for X in views.matrices]
    scalings = fit(views.with_matrices(raw))
    found = []
    for X, scaling in zip(raw, scalings, strict=True):
        scaled = torch.empty(X.shape, dtype=torch_dtype(dtype), device=device)
        for b in blocks(slice(0, len(X)), max(1, STREAMED_BLOCK // X.shape[1])):
            scaled[b] = scaling.apply(X[b].double()).to(scaled.dtype)
        found.append(TorchView(scaled, device))
    return found, scalings


class TorchRows:
    """A pass on one view, computed on its device without waiting."""

    def __init__(self, view: TorchView, solver: Solver):
        self.view, self.solver, self.shape = view, solver, view.shape
        self.dtype = view.dtype
        self.x_sq = torch.cat([_row_squares(part) for _, part in view.blocks()])
        self.residuals = self.x_sq
        self._buffers: dict[str, torch.Tensor] = {}
        self.sums: Any = None
        self.penalty: Any = 0.0
        self._update_U = update_U_on(view.device, solver)

    def begin(
        self, V: Any, consensus: Any, fit_weight: Any, sum_weight: Any, g: Term, basis: bool
    ) -> None:
        self.g, self.basis = g, basis
        self.consensus = self.view.placed(consensus)
        self.fit_weight = self.view.placed(fit_weight).reshape(-1, 1)
        self.sum_weight = self.view.placed(sum_weight).reshape(-1, 1)
        self.weighted_sq = (self.sum_weight[:, 0].double() * self.x_sq).sum()
        self.consensus_sq = (self.consensus.double() ** 2).sum()
        self._evaluate_term(V)

    def sum(self, V: torch.Tensor) -> None:
        """The sums of a V that no pass has made."""
        parts = [self._sums(b, X, V[b]) for b, X in self.view.blocks()]
        self.sums = _total(parts)

    def step_U(self, U: torch.Tensor, a: float) -> torch.Tensor:
        return self._update_U(U.double(), self.sums, a).to(U.dtype).contiguous()

    def step_V(
        self, U: torch.Tensor, V: torch.Tensor, a: float, beta: float, residuals: bool = False
    ) -> torch.Tensor:
        """V after one step; ``residuals`` also returns those of every row."""
        H, q, out = U.T @ U, U.sum(axis=0), self._new_V(V)
        residuals = residuals or not self.basis
        found = []
        for b, X in self.view.blocks():
            given = (H, q, self.consensus[b], self.fit_weight[b], a, beta, self.split.rows(b))
            out[b] = self.solver.update_V(V[b], X @ U, *given)
            if self.basis:
                found.append(self._sums(b, X, out[b]))
        if self.basis:
            self.sums = _total(found)
        if residuals:
            self.residuals = self.all_residuals(U, out)
        self._evaluate_term(out)
        return out

    def collect(self, V: torch.Tensor) -> torch.Tensor:
        return V

    def release(self) -> None:
        """Nothing here is kept for iterations alone."""

    def error(self, U: torch.Tensor) -> torch.Tensor:
        """Σ_i w_i² ‖x_i − Uv_i‖² at the current V."""
        if self.basis:
            return eq.reconstruction_from(self.sums, self.weighted_sq, U.double())
        return (self.sum_weight[:, 0] * self.residuals).sum(dtype=torch.float64)

    def gap(self, U: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        if self.basis:
            return eq.gap_from(self.sums, U.double().sum(axis=0), self.consensus_sq)
        return eq.consensus_gap(V, U.sum(axis=0), self.consensus)

    def gap_to(self, consensus: Any, U: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return eq.consensus_gap(V, U.sum(axis=0), consensus)

    def all_residuals(self, U: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        H = U.T @ U
        parts = [_residuals(X, X @ U, U, V[b], self.x_sq[b], H) for b, X in self.view.blocks()]
        return torch.cat(parts)

    def _sums(self, b: slice, X: torch.Tensor, V: torch.Tensor) -> Sums:
        part = (V, self.consensus[b], self.sum_weight[b])
        if self.view.transposed is None:
            sums: Any = eq.sums_over_rows(X, *part)
        else:  # a product with the transpose of a CSR matrix wants that transpose in CSR form
            sums = eq.sums_over_rows(X, *part, XWV=self.view.transposed @ (part[2] * V))
        return Sums(*(piece.double() for piece in sums))

    def _evaluate_term(self, V: torch.Tensor) -> None:
        """The regularizer at V."""
        curvature = self.g.curvature(V) if "curvature" in self.solver.needs else 0.0  # type: ignore[attr-defined]
        self.penalty = self.g.value(V)
        self.split = Split(*self.g.split(V), curvature)

    def _new_V(self, V: torch.Tensor) -> torch.Tensor:
        """Somewhere for the new V: one of two tensors, whichever does not hold the old one."""
        for name in ("V", "other V"):
            kept = self._buffer(name, V)
            if kept.data_ptr() != V.data_ptr():
                return kept
        raise AssertionError("two buffers cannot both be the old V")

    def _buffer(self, name: str, like: torch.Tensor) -> torch.Tensor:
        kept = self._buffers.get(name)
        if kept is None or kept.shape != like.shape:
            kept = self._buffers[name] = torch.empty_like(like)
        return kept


def update_U_on(device: Any, solver: Solver) -> Any:
    """The solver's step on U; the hundreds of tiny launches of HALS are recorded once and replayed.

    Only of the library's own rule is it known that nothing but U and the sums enters the recording.
    """
    replayed = device.type == "cuda" and own_name(solver) == "hals"
    return Replayed(solver) if replayed else solver.update_U


class Replayed:
    """`SimplexHALS.update_U` as a CUDA graph: a does not enter it, shapes stay as they are."""

    def __init__(self, solver: Solver):
        self.solver, self.graph = solver, torch.cuda.CUDAGraph()
        self.inputs: list[torch.Tensor] = []

    def __call__(self, U: torch.Tensor, sums: Sums, a: float) -> torch.Tensor:
        if not self.inputs:
            self._record(U, sums, a)
        for kept, given in zip(self.inputs, (U, *sums), strict=True):
            kept.copy_(given)
        self.graph.replay()
        return self.moved

    def _record(self, U: torch.Tensor, sums: Sums, a: float) -> None:
        inputs = [torch.clone(part) for part in (U, *sums)]
        given = inputs[0], Sums(*inputs[1:]), a
        aside = stream_aside(U.device)
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):  # a first run outside, as recording requires
            self.solver.update_U(*given)
        torch.cuda.current_stream().wait_stream(aside)
        # On this card's own stream: PyTorch's default one belongs to the card that recorded first.
        with torch.cuda.graph(self.graph, stream=aside, capture_error_mode="thread_local"):
            self.moved = self.solver.update_U(*given)
        self.inputs = inputs


def _row_squares(X: torch.Tensor) -> torch.Tensor:
    if X.layout == torch.sparse_csr:
        squares = torch.segment_reduce(X.values() ** 2, "sum", offsets=X.crow_indices().long())
        return squares
    return (X * X).sum(axis=1)


def _residuals(
    X: torch.Tensor, XU: torch.Tensor, U: torch.Tensor, V: torch.Tensor, x_sq: Any, H: Any
) -> torch.Tensor:
    """‖x_i − Uv_i‖² from products, directly where the difference cancels."""
    r = eq.squared_residuals(x_sq, XU, V, H)
    if X.layout == torch.sparse_csr:
        return r
    limit = CANCELLED[np.dtype(str(r.dtype).removeprefix("torch."))]
    cancelled = torch.nonzero(r < limit * x_sq)[:, 0]
    step = max(1, 2**24 // X.shape[1])
    for i in range(0, len(cancelled), step):
        rows = cancelled[i : i + step]
        r[rows] = ((X[rows] - V[rows] @ U.T) ** 2).sum(axis=1)
    return r


def _total(parts: list[Sums]) -> Sums:
    first, *rest = parts
    for part in rest:
        first = Sums(*(whole + piece for whole, piece in zip(first, part, strict=True)))
    return first
