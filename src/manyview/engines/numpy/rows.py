"""The pass over the rows of a view: X is read once per iteration, a block at a time.

For a block: X_bU, the step on V_b, and at once the sums (XᵀW²V, VᵀW²V, …) that the next step on U
needs. Blocks run on threads; their sums are added in a fixed order.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np
from sklearn.utils.extmath import row_norms

from manyview._types import Array, Matrix, Split, Sums
from manyview.engines.protocols import MakesPass, Pass
from manyview.engines.threads import Threads, blocks
from manyview.maths import equations as eq
from manyview.maths.solvers import Solver
from manyview.maths.terms import GraphTerm, Term

from .compiled import basis_update, compiled, compiled_forms, row_update
from .sources import (
    Source,
    UnitRows,
    as_source,
    block_rows,
    looking_rows,
    squared_norms,
)

#: Below this share of ‖x‖², a residual taken as a difference of products is mostly rounding.
CANCELLED = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-2}
#: Rows handed to a compiled pass at a time: rows scaled when read should still be in the cache then.
PIECE = 2048


def rows_of(X: Any, solver: Solver, threads: Threads | None = None) -> Pass:
    """The pass over a view: the one it brings along, or `Rows`."""
    return X.as_rows(solver) if isinstance(X, MakesPass) else Rows(X, solver, threads)


class Rows:
    """One fully observed view: its rows, and what the last pass over them found."""

    def __init__(
        self, X: Any, solver: Solver, threads: Threads | None = None, x_sq: Array | None = None
    ):
        self.source: Source = as_source(X)
        self.solver, self.dtype, self.shape = solver, self.source.dtype, self.source.shape
        self.threads = threads or Threads(1)
        self.x_sq: Array = squared_norms(self.source, self.threads) if x_sq is None else x_sq
        self.residuals: Array = self.x_sq
        self.sums: Any = None
        self.penalty: Any = 0.0
        self._buffers: dict[str, Array] = {}
        self._update_V, self._update_U = row_update(solver), basis_update(solver)
        self._forms = compiled_forms(solver)
        self._pass = None if self.source.sparse or self._forms is None else compiled().rows_pass
        #: What rows of this memory are multiplied by, where they can be read as they are.
        self._scale = self.source.row_scale if is_resident(self.source) else None
        scaled = self._scale is None
        self._piece = min(PIECE, looking_rows(self.shape[1])) if scaled else PIECE

    def begin(
        self, V: Array, consensus: Array, fit_weight: Array, sum_weight: Array, g: Term, basis: bool
    ) -> None:
        """Start iterations with these weights: w² in the step on V, and w² (or w) in the sums.

        ``basis`` says whether U will move, and so whether passes need to keep sums.
        """
        self.g, self.basis = g, basis
        self.consensus = np.ascontiguousarray(consensus, dtype=self.dtype)
        self.fit_weight = np.ascontiguousarray(fit_weight, dtype=self.dtype).reshape(-1, 1)
        self.sum_weight = np.ascontiguousarray(sum_weight, dtype=self.dtype).reshape(-1, 1)
        self.weighted_sq = float(np.dot(self.sum_weight[:, 0].astype(float), self.x_sq))
        self.consensus_sq = float(np.vdot(consensus, consensus))
        self.penalty, self.split = self._regularizer(V)

    def sum(self, V: Array) -> None:
        """The sums of a V that no pass has made."""
        size = block_rows(self.source, V.shape[1])

        def work(rows: slice) -> Sums:
            total = no_sums(self.shape[1], V.shape[1])
            for b in blocks(rows, size):
                part = (self.source.read(b), V[b], self.consensus[b], self.sum_weight[b])
                add_sums(total, eq.sums_over_rows(*part))
            return total

        self.sums = _total(self.threads.map(work, len(V)))

    def step_U(self, U: Array, a: float) -> Array:
        return np.ascontiguousarray(self._update_U(U, self.sums, a), dtype=U.dtype)

    def step_V(self, U: Array, V: Array, a: float, beta: float, residuals: bool = False) -> Array:
        """V after one step; ``residuals`` also asks for those of every row."""
        # A model may be coarser than the rows, and its arrays may lie column by column.
        U, V = (np.ascontiguousarray(part, dtype=self.dtype) for part in (U, V))
        H, q, kind = U.T @ U, U.sum(axis=0), self.dtype.type
        out, size = self._new_V(V), block_rows(self.source, V.shape[1])
        residuals = residuals or not self.basis
        if residuals:
            self.residuals = np.empty_like(self.x_sq)

        def given(rows: slice) -> tuple[Any, ...]:
            part = (self.consensus[rows], self.fit_weight[rows], kind(a), kind(beta))
            return (H, q, *part, self.split.rows(rows))

        def in_blocks(rows: slice) -> Sums:
            total = no_sums(self.shape[1], V.shape[1])
            for b in blocks(rows, size):
                X = self.source.read(b)
                XU = X @ U
                self._update_V(V[b], XU, *given(b), out[b])
                if self.basis:
                    part = (X, out[b], self.consensus[b], self.sum_weight[b])
                    add_sums(total, eq.sums_over_rows(*part))
                if residuals:
                    self.residuals[b] = residual_rows(X, XU, U, out[b], self.x_sq[b], H)
            return total

        def in_pieces(rows: slice) -> Sums:
            total = no_sums(self.shape[1], V.shape[1])
            sums, hals = (total.P.T, *total[1:]), self._forms.hals  # type: ignore[union-attr]
            for b in blocks(rows, self._piece):
                *products, split = given(b)
                step = (U, V[b], *products, *split, self.sum_weight[b], out[b], *sums)
                if hals and V.shape[1] >= compiled().MANY:
                    compiled().many_rows_pass(*self._unscaled(b), *step)
                else:
                    self._pass(*self._unscaled(b), *step, hals)  # type: ignore[misc]
            return total

        whole = self._pass is not None and self.basis and not residuals
        found = self.threads.map(in_pieces if whole else in_blocks, len(V))
        self.penalty, self.split = self._regularizer(out)
        if self.basis:
            self.sums = _total(found)
        return out

    def _unscaled(self, rows: slice) -> tuple[Array, Array]:
        """Some rows but for the number that each is to be multiplied by, and these numbers."""
        if self._scale is not None:
            return self.source.X[rows], self._scale[rows]  # type: ignore[attr-defined]
        X = np.ascontiguousarray(self.source.read(rows))
        return X, np.ones((len(X), 1), dtype=self.dtype)

    def collect(self, V: Array) -> Array:
        """V at the end of iterations, where all of it can be seen; here it always can."""
        return V

    def release(self) -> None:
        """Let go of what only iterations need, while other views have their turn."""
        self._buffers.clear()
        self.split = Split(*[np.empty(0)] * 3)

    def error(self, U: Array) -> float:
        """Σ_i w_i² ‖x_i − Uv_i‖² at the current V."""
        if self.basis:
            return eq.reconstruction_from(self.sums, self.weighted_sq, U)
        return np.dot(self.sum_weight[:, 0], self.residuals)

    def gap(self, U: Array, V: Array) -> float:
        if self.basis:
            return eq.gap_from(self.sums, U.sum(axis=0), self.consensus_sq)
        return eq.consensus_gap(V, U.sum(axis=0), self.consensus)

    def gap_to(self, consensus: Array, U: Array, V: Array) -> float:
        return eq.consensus_gap(V, U.sum(axis=0), consensus)

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

    def _new_V(self, V: Array) -> Array:
        """Somewhere for the new V: one of two arrays, whichever does not hold the old one."""
        first = self._buffer("V", V)
        return self._buffer("other V", V) if first is V else first

    def _buffer(self, name: str, like: Array) -> Array:
        """An array kept from one iteration to the next."""
        if name not in self._buffers or self._buffers[name].shape != like.shape:
            self._buffers[name] = np.empty(like.shape, dtype=self.dtype)
        return self._buffers[name]

    def _regularizer(self, V: Array) -> tuple[float, Split]:
        """g(V), and its parts as whole arrays: compiled loops want no special cases."""
        if isinstance(self.g, GraphTerm) and compiled() is not None:
            return self._graph(self.g, V)
        curvature = self.g.curvature(V) if "curvature" in self.solver.needs else 0.0  # type: ignore[attr-defined]
        parts = []
        for name, part in zip(Split._fields, (*self.g.split(V), curvature), strict=True):
            whole = self._buffer(name, V)
            whole[...] = part
            parts.append(whole)
        return self.g.value(V), Split(*parts)

    def _graph(self, g: GraphTerm, V: Array) -> tuple[float, Split]:
        """A V, D V and Tr(VᵀLV) in one go, into buffers."""
        negative, positive = self._buffer("negative", V), self._buffer("positive", V)
        degrees, A = g.degrees.astype(V.dtype, copy=False), g.A
        data = A.data.astype(V.dtype, copy=False)

        def work(rows: slice) -> float:
            edges = (A.indptr, A.indices, data, degrees, V, rows.start, rows.stop)
            return compiled().graph_rows(*edges, negative, positive)

        value = sum(self.threads.map(work, len(V)))
        if "curvature" not in self.solver.needs:
            return float(value), Split(negative, positive, positive)  # no curvature is asked for
        curvature = self._buffer("curvature", V)
        curvature[...] = g.curvature(V)
        return float(value), Split(negative, positive, curvature)


def is_resident(source: Any) -> TypeGuard[UnitRows]:
    """Whether rows lie one after the other in this memory, and want a number each to be multiplied by."""
    if not isinstance(source, UnitRows) or not isinstance(source.X, np.ndarray):
        return False
    return bool(source.X.flags.c_contiguous)


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


def no_sums(n_features: int, K: int) -> Sums:
    # In float64 whatever the data: many float32 blocks are added. P in Fortran order, as products
    # come out that have the long side of X last.
    return Sums(np.zeros((n_features, K), order="F"), np.zeros((K, K)), np.zeros(K), np.zeros(K))


def add_sums(total: Sums, part: Sums) -> None:
    for whole, piece in zip(total, part, strict=True):
        whole += piece


def _total(parts: list[Sums]) -> Sums:
    first = parts[0]
    for part in parts[1:]:
        add_sums(first, part)
    return first
