"""The pass over the rows of a view that lives on a GPU (or as tensors): the interface of `rows.Rows`.

The formulas are those of `equations` and `solvers`, on tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from manyview._types import Split, Sums, Views
from manyview.engines.numpy.rows import CANCELLED
from manyview.engines.numpy.sources import Scaled
from manyview.engines.threads import blocks
from manyview.maths import equations as eq
from manyview.maths.solvers import Solver, own_name
from manyview.maths.terms import Term

from .device import fits, put, torch_dtype
from .tensors import STREAMED_BLOCK, TorchView, stream_aside


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
    """What the loop asks of a view, answered on its device without waiting for it."""

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
        """V after one step; ``residuals`` also asks for those of every row."""
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
        with torch.cuda.stream(aside):  # a first run outside, as recording asks for
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
