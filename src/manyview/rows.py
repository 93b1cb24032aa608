"""The pass over the rows of a view: X is read once per iteration, a block at a time.

For a block: X_bU, the step on V_b, and at once the sums (XᵀW²V, VᵀW²V, …) that the next step on U
needs. Blocks run on threads; their sums are added in a fixed order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.extmath import row_norms

from . import equations as eq
from ._types import Array, Matrix, Split, Sums
from .engines.compiled import compiled
from .engines.sources import Source, as_source, block_rows, squared_norms
from .engines.threads import Threads, blocks
from .regularizers import GraphTerm, Term
from .solvers import Solver

#: Below this share of ‖x‖², a residual taken as a difference of products is mostly rounding.
CANCELLED = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-2}


class Rows:
    """One fully observed view: its rows, and what the last pass over them found."""

    def __init__(self, X: Any, solver: Solver, threads: Threads | None = None):
        self.source: Source = as_source(X)
        self.solver, self.dtype, self.shape = solver, self.source.dtype, self.source.shape
        self.threads = threads or Threads(1)
        self.x_sq = squared_norms(self.source, self.threads)
        self.update = row_update(solver)
        self.residuals: Array = self.x_sq
        self._buffers: list[Array] = []
        self._parts: list[Array] = []

    def begin(
        self, V: Array, consensus: Array, fit_weight: Array, sum_weight: Array, g: Term, basis: bool
    ) -> None:
        """Start iterations with these weights: w² in the step on V, and w² (or w) in the sums.

        ``basis`` says whether U will move, and so whether passes need to keep sums.
        """
        self.consensus, self.g, self.basis = consensus, g, basis
        self.fit_weight = np.ascontiguousarray(fit_weight, dtype=self.dtype).reshape(-1, 1)
        self.sum_weight = np.ascontiguousarray(sum_weight, dtype=self.dtype).reshape(-1, 1)
        self.weighted_sq = float(np.dot(self.sum_weight[:, 0].astype(float), self.x_sq))
        self.consensus_sq = float(np.vdot(consensus, consensus))
        self.penalty, self.split = self._regularizer(V)

    def sum(self, V: Array) -> None:
        """The sums of a V that no pass has made."""
        size = block_rows(self.source, V.shape[1])

        def work(rows: slice) -> Sums:
            total = _no_sums(self.shape[1], V.shape[1])
            for b in blocks(rows, size):
                part = (self.source.read(b), V[b], self.consensus[b], self.sum_weight[b])
                _add(total, eq.sums_over_rows(*part))
            return total

        self.sums = _total(self.threads.map(work, len(V)))

    def step_U(self, U: Array, a: float) -> Array:
        return self.solver.update_U(U, self.sums, a)

    def step_V(self, U: Array, V: Array, a: float, beta: float, residuals: bool = False) -> Array:
        """V after one step; ``residuals`` also asks for those of every row."""
        H, q = U.T @ U, U.sum(axis=0)
        a, beta = self.dtype.type(a), self.dtype.type(beta)
        out, size = self._buffer(V), block_rows(self.source, V.shape[1])
        parts = Split(*(np.broadcast_to(np.asarray(g, V.dtype), V.shape) for g in self.split))
        residuals = residuals or not self.basis
        if residuals:
            self.residuals = np.empty_like(self.x_sq)

        def work(rows: slice) -> Sums:
            total = _no_sums(self.shape[1], V.shape[1])
            for b in blocks(rows, size):
                X = self.source.read(b)
                XU = X @ U
                weights = self.fit_weight[b]
                V_b = out[b]
                self.update(V[b], XU, H, q, self.consensus[b], weights, a, beta, parts.rows(b), V_b)
                if self.basis:
                    _add(total, eq.sums_over_rows(X, V_b, self.consensus[b], self.sum_weight[b]))
                if residuals:
                    self.residuals[b] = residual_rows(X, XU, U, V_b, self.x_sq[b], H)
            return total

        found = self.threads.map(work, len(V))
        self.penalty, self.split = self._regularizer(out)
        if self.basis:
            self.sums = _total(found)
        return out

    def error(self, U: Array) -> float:
        """Σ_i w_i² ‖x_i − Uv_i‖² at the current V."""
        if self.basis:
            return eq.reconstruction_from(self.sums, self.weighted_sq, U)
        return float(np.dot(self.sum_weight[:, 0], self.residuals))

    def gap(self, U: Array, V: Array) -> float:
        if self.basis:
            return eq.gap_from(self.sums, U.sum(axis=0), self.consensus_sq)
        return eq.consensus_gap(V, U.sum(axis=0), self.consensus)

    def all_residuals(self, U: Array, V: Array) -> Array:
        """‖x_i − Uv_i‖² of every row, in a pass of its own."""
        H, size = U.T @ U, block_rows(self.source, V.shape[1])

        def work(rows: slice) -> list[Array]:
            found = []
            for b in blocks(rows, size):
                X = self.source.read(b)
                found.append(residual_rows(X, X @ U, U, V[b], self.x_sq[b], H))
            return found

        return np.concatenate([r for chunk in self.threads.map(work, len(V)) for r in chunk])

    def _buffer(self, V: Array) -> Array:
        """Somewhere for the new V: one of two arrays, whichever does not hold the old one."""
        if not self._buffers or self._buffers[0].shape != V.shape:
            self._buffers = [np.empty_like(V), np.empty_like(V)]
        return self._buffers[1] if self._buffers[0] is V else self._buffers[0]

    def _regularizer(self, V: Array) -> tuple[float, Split]:
        kernels = compiled()
        if isinstance(self.g, GraphTerm) and kernels is not None:
            return self._graph(self.g, V, kernels)
        curvature = self.g.curvature(V) if self.solver.unit_sums else 0.0  # type: ignore[attr-defined]
        return self.g.value(V), Split(*self.g.split(V), curvature)

    def _graph(self, g: GraphTerm, V: Array, kernels: Any) -> tuple[float, Split]:
        """A V, D V and Tr(VᵀLV) in one go, into buffers."""
        if not self._parts or self._parts[0].shape != V.shape:
            self._parts = [np.empty_like(V), np.empty_like(V)]
        negative, positive = self._parts
        degrees, A = g.degrees.astype(V.dtype, copy=False), g.A
        data = A.data.astype(V.dtype, copy=False)

        def work(rows: slice) -> float:
            edges = (A.indptr, A.indices, data, degrees, V, rows.start, rows.stop)
            return kernels.graph_rows(*edges, negative, positive)

        value = sum(self.threads.map(work, len(V)))
        return float(value), Split(negative, positive, 2 * degrees)


def row_update(solver: Solver) -> Any:
    """The solver's step on rows of V, writing into its last argument; compiled where numba is there."""
    kernels = compiled()
    if kernels is not None:
        kernel = getattr(kernels, solver.kernel)

        def fast(V: Array, *args: Any) -> None:
            *products, split, out = args
            kernel(V, *products, *split, np.finfo(V.dtype).tiny, out)

        return fast

    def plain(*args: Any) -> None:
        args[-1][...] = solver.update_V(*args[:-1])

    return plain


def residual_rows(X: Matrix, XU: Array, U: Array, V: Array, x_sq: Array, H: Array) -> Array:
    """‖x_i − Uv_i‖² from products, recomputed directly where the difference cancels."""
    r = eq.squared_residuals(x_sq, XU, V, H)
    cancelled = np.flatnonzero(r < CANCELLED[np.dtype(r.dtype)] * x_sq)
    step = max(1, 2**20 // X.shape[1])
    for i in range(0, len(cancelled), step):
        rows = cancelled[i : i + step]
        x = X[rows] if isinstance(X, np.ndarray) else X[rows].toarray()
        r[rows] = row_norms(x - V[rows] @ U.T, squared=True)
    return r


def _no_sums(n_features: int, K: int) -> Sums:
    # In float64 whatever the data: many float32 blocks are added.
    return Sums(*(np.zeros(shape) for shape in ((n_features, K), (K, K), K, K)))


def _add(total: Sums, part: Sums) -> None:
    for whole, piece in zip(total, part, strict=True):
        whole += piece


def _total(parts: list[Sums]) -> Sums:
    first = parts[0]
    for part in parts[1:]:
        _add(first, part)
    return first
