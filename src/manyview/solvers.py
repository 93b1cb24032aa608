"""One step on one view, in two ways: the paper's multiplicative rule and simplex HALS.

A solver sees products with X, never X itself: the sums over rows for U, and XU for (some rows of) V.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ._types import Array, Split, Sums
from .engines.compiled import compiled
from .equations import ratio_step, rescale, simplex_rows, split_U, split_V


class Solver(Protocol):
    #: Whether U keeps unit column sums throughout, so that Q = I.
    unit_sums: bool
    #: What its compiled forms in `kernels` are called.
    kernel: str

    def start(self, U: Array, V: Array) -> tuple[Array, Array]: ...
    def update_U(self, U: Array, sums: Sums, a: float) -> Array: ...
    def update_V(
        self,
        V: Array,
        XU: Array,
        H: Array,
        q: Array,
        consensus: Array,
        w2: Array,
        a: float,
        beta: float,
        g: Split,
    ) -> Array: ...
    def check(self, g: Any) -> None: ...


class Multiplicative:
    """U ← U ∘ negative/positive, then V likewise: never raises O, and keeps every entry positive."""

    unit_sums = False
    kernel = "multiplicative"

    def check(self, g: Any) -> None:
        """Any term with a split will do."""

    def start(self, U: Array, V: Array) -> tuple[Array, Array]:
        return U, V

    def update_U(self, U: Array, sums: Sums, a: float) -> Array:
        return ratio_step(U, *split_U(U, sums, a)).astype(U.dtype, copy=False)

    def update_V(
        self,
        V: Array,
        XU: Array,
        H: Array,
        q: Array,
        consensus: Array,
        w2: Array,
        a: float,
        beta: float,
        g: Split,
    ) -> Array:
        return ratio_step(V, *split_V(V, XU, H, q, consensus, w2, a, beta, g))


class SimplexHALS:
    """Exact coordinate steps on the well-posed form 1ᵀu_k = 1 (then Q = I and nothing escapes).

    Two sweeps over the columns of U and two over those of V per product with X.
    """

    unit_sums = True
    kernel = "hals"
    sweeps = 2

    def check(self, g: Any) -> None:
        if not callable(getattr(g, "curvature", None)):
            raise ValueError(
                f"solver='hals' needs a regulariser with curvature(V), and {type(g).__name__} has "
                "none; add it, or use solver='multiplicative'"
            )

    def start(self, U: Array, V: Array) -> tuple[Array, Array]:
        empty = U.sum(axis=0) == 0
        if empty.any():  # a column with nothing in it cannot be scaled to sum 1
            U, V = np.where(empty, 1, U), np.where(empty, 0, V)
        return rescale(U, V)

    def update_U(self, U: Array, sums: Sums, a: float) -> Array:
        """u_k ← simplex projection of (P_k − Σ_{l≠k} G_lk u_l)/G_kk. Q = I: no consensus term."""
        P, G = sums.P, sums.G
        columns = np.array(U.T, dtype=P.dtype, order="C")
        floor = np.finfo(U.dtype).eps * np.trace(G) / len(G)
        kernels = compiled()
        if kernels is not None:
            kernels.hals_columns(columns, P, G, floor)
            return np.ascontiguousarray(columns.T, dtype=U.dtype)
        for _ in range(self.sweeps):
            for k in np.flatnonzero(np.diag(G) > floor):
                step = (P[:, k] - G[k] @ columns) / G[k, k]
                columns[k] = simplex_rows((columns[k] + step)[None])[0]
        return np.ascontiguousarray(columns.T, dtype=U.dtype)

    def update_V(
        self,
        V: Array,
        XU: Array,
        H: Array,
        q: Array,
        consensus: Array,
        w2: Array,
        a: float,
        beta: float,
        g: Split,
    ) -> Array:
        """v_k ← max(0, linear_k / quadratic_k), the regulariser replaced by its bound at the start."""
        h = g.curvature
        linear = w2 * XU + a * consensus + beta * (g.negative - g.positive + h * V)
        rest = np.broadcast_to(a + beta * h, V.shape)
        V = V.copy()
        for _ in range(self.sweeps):
            for k in range(V.shape[1]):
                others = V @ H[:, k] - V[:, k] * H[k, k]
                quadratic = w2[:, 0] * H[k, k] + rest[:, k]
                target = linear[:, k] - w2[:, 0] * others
                np.divide(target, quadratic, out=target, where=quadratic > 0)
                V[:, k] = np.where(quadratic > 0, np.maximum(target, 0), V[:, k])
        return V


SOLVERS: dict[str, type[Multiplicative] | type[SimplexHALS]] = {
    "multiplicative": Multiplicative,
    "hals": SimplexHALS,
}
