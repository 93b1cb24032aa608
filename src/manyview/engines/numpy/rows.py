"""The pass over the rows of a view: X is read once per iteration, a block at a time.

For a block: X_bU, the step on V_b, and at once the sums (XᵀW²V, VᵀW²V, …) that the next step on U
needs. Blocks run on threads; their sums are added in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from manyview._arrays import copied
from manyview._types import Array, Matrix, Split, Sums
from manyview.engines.protocols import MakesPass, Pass
from manyview.engines.threads import Threads, blocks
from manyview.maths import equations as eq
from manyview.maths.solvers import Solver, least_diagonal, own_name
from manyview.maths.terms import GraphTerm, Term

from .compiled import compiled
from .sources import (
    InMemory,
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


def compiled_rule(solver: Solver) -> str | None:
    """The name of the library's rule of which there is a compiled form; None without numba."""
    return None if compiled() is None else own_name(solver)


def basis_update(solver: Solver) -> Callable[[Array, Sums, float], Array]:
    """The solver's step on U, compiled where there is such a form."""
    return _hals_update_U if compiled_rule(solver) == "hals" else solver.update_U


def _hals_update_U(U: Array, sums: Sums, a: float) -> Array:
    """`SimplexHALS.update_U` by the compiled loop."""
    P, G = sums.P, sums.G
    columns = copied(U.T).astype(P.dtype, copy=False)
    compiled().hals_columns(columns, P, G, least_diagonal(U, G))
    return columns.T


class Rows:
    """One fully observed view: its rows, and what the last pass over them found."""

    def __init__(
        self, X: Any, solver: Solver, threads: Threads | None = None, x_sq: Array | None = None
    ):
        self.source: Any = as_source(X)
        self.dtype, self.shape = self.source.dtype, self.source.shape
        self.threads = threads or Threads(1)
        self.x_sq: Array = squared_norms(self.source, self.threads) if x_sq is None else x_sq
        self.residuals: Array = self.x_sq
        self.sums: Any = None
        self.penalty: Any = 0.0
        self._buffers: dict[str, Array] = {}
        self._use(solver)
        #: What rows of this memory are multiplied by, where they can be read as they are.
        self._scale: Array | None = None
        #: Rows in CSR form that the compiled pass reads where they are.
        self._entries: tuple[Array, Array, Array] | None = None
        unit = isinstance(self.source, UnitRows)
        known = unit or isinstance(self.source, InMemory)
        Z: Any = self.source.X if known else None
        if isinstance(Z, np.ndarray) and Z.flags.c_contiguous and unit:
            self._scale = self.source.row_scale
        if sp.issparse(Z) and Z.format == "csr" and Z.dtype == self.dtype:
            self._entries = Z.indptr, Z.indices, Z.data
            ones = np.ones((self.shape[0], 1), dtype=self.dtype)
            self._scale = self.source.row_scale if unit else ones
        self._piece = PIECE if self._scale is not None else min(PIECE, looking_rows(self.shape[1]))

    def _use(self, solver: Solver) -> None:
        self.solver, self._rule = solver, compiled_rule(solver)
        self._update_U = basis_update(solver)

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

        self.sums = total_sums(self.threads.map(work, len(V)))

    def step_U(self, U: Array, a: float) -> Array:
        return np.ascontiguousarray(self._update_U(U, self.sums, a), dtype=U.dtype)

    def step_V(self, U: Array, V: Array, a: float, beta: float, residuals: bool = False) -> Array:
        """V after one step; ``residuals`` also returns those of every row."""
        # A model may be coarser than the rows, and its arrays may lie column by column.
        U, V = (np.ascontiguousarray(part, dtype=self.dtype) for part in (U, V))
        H, q, K, kind = U.T @ U, U.sum(axis=0), V.shape[1], self.dtype.type
        residuals = residuals or not self.basis
        if residuals:
            self.residuals = np.empty_like(self.x_sq)
        # One of two arrays, whichever does not hold the old V.
        out = self._buffer("V", V)
        out = self._buffer("other V", V) if out is V else out
        at_once = self._rule is not None and not residuals
        at_once &= self._entries is not None or not self.source.sparse
        size = self._piece if at_once else block_rows(self.source, K)

        def work(rows: slice) -> Sums:
            total = no_sums(self.shape[1], K, "C" if at_once and self.source.sparse else "F")
            for b in blocks(rows, size):
                weights = self.consensus[b], self.fit_weight[b], kind(a), kind(beta)
                split, new = self.split.rows(b), out[b]
                if at_once:
                    X, scale = self._in_place(b)
                    given = (X, scale, U, V[b], H, q, *weights, split, self.sum_weight[b], new)
                    sparse, kernels = self.source.sparse, compiled()
                    make = kernels.sparse_rows_pass if sparse else kernels.rows_pass
                    sums = Sums(total.P if sparse else total.P.T, *total[1:])
                    make(*given, sums, True if self._rule == "hals" else None)
                    continue
                X = self.source.read(b)
                XU = X @ U
                step = (V[b], XU, H, q, *weights, split)
                if self._rule is None:
                    new[...] = self.solver.update_V(*step)
                else:
                    getattr(compiled(), f"{self._rule}_rows")(*step, new)
                if self.basis:
                    part = (X, new, self.consensus[b], self.sum_weight[b])
                    add_sums(total, eq.sums_over_rows(*part))
                if residuals:
                    self.residuals[b] = residual_rows(X, XU, U, new, self.x_sq[b], H)
            return total

        found = self.threads.map(work, len(V))
        self.penalty, self.split = self._regularizer(out)
        if self.basis:
            self.sums = total_sums(found)
            self.sums = self.sums._replace(P=np.asfortranarray(self.sums.P))
        return out

    def _in_place(self, b: slice) -> tuple[Any, Array]:
        """Rows as a compiled pass reads them (of CSR: indptr, indices, data), and what they are to be
        multiplied by."""
        if self._entries is not None and self._scale is not None:
            ends, indices, data = self._entries
            return (ends[b.start : b.stop + 1], indices, data), self._scale[b]
        if self._scale is not None:
            return self.source.X[b], self._scale[b]
        X = np.ascontiguousarray(self.source.read(b))
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

    def _buffer(self, name: str, like: Array) -> Array:
        """An array reused from one iteration to the next."""
        if name not in self._buffers or self._buffers[name].shape != like.shape:
            self._buffers[name] = np.empty(like.shape, dtype=self.dtype)
        return self._buffers[name]

    def _regularizer(self, V: Array) -> tuple[float, Split]:
        """g(V), and its parts as whole arrays: compiled loops want no special cases."""
        g, negative, positive = self.g, self._buffer("negative", V), self._buffer("positive", V)
        curvature = positive  # which no step reads
        if "curvature" in self.solver.needs:
            curvature = self._buffer("curvature", V)
            curvature[...] = g.curvature(V)  # type: ignore[attr-defined]
        split = Split(negative, positive, curvature)
        if not isinstance(g, GraphTerm) or compiled() is None:
            negative[...], positive[...] = g.split(V)
            return g.value(V), split
        degrees, data = (part.astype(V.dtype, copy=False) for part in (g.degrees, g.A.data))
        graph = (g.A.indptr, g.A.indices, data)

        def work(rows: slice) -> float:
            given = (graph, degrees, V, rows.start, rows.stop, negative, positive)
            return compiled().graph_rows(*given)

        return float(sum(self.threads.map(work, len(V)))), split


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


def no_sums(n_features: int, K: int, order: Literal["C", "F"] = "F") -> Sums:
    # In float64 whatever the data: many float32 blocks are added. P in Fortran order, as products
    # come out that have the long side of X last.
    return Sums(np.zeros((n_features, K), order=order), np.zeros((K, K)), np.zeros(K), np.zeros(K))


def add_sums(total: Sums, part: Sums) -> None:
    for whole, piece in zip(total, part, strict=True):
        whole += piece


def total_sums(parts: list[Sums]) -> Sums:
    """The sums of all parts, added in their order to the first."""
    first = parts[0]
    for part in parts[1:]:
        add_sums(first, part)
    return first
