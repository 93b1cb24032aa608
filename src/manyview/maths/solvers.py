"""One step on one view, in two ways: the paper's multiplicative rule and simplex HALS.

A solver sees products with X, never X itself: the sums over rows for U, and XU for (some rows of) V.
"""

from __future__ import annotations

from typing import Any, Protocol

from manyview._arrays import copied, is_tensor, namespace
from manyview._types import Array, Split, Sums, storable
from manyview.engines.numpy.compiled import compiled

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


@storable
class Multiplicative:
    """U ← U ∘ negative/positive, then V likewise: never raises O, and keeps every entry positive."""

    unit_sums = False
    kernel = "multiplicative"

    def check(self, g: Any) -> None:
        """Any term with a split will do."""

    def start(self, U: Array, V: Array) -> tuple[Array, Array]:
        return U, V

    def update_U(self, U: Array, sums: Sums, a: float) -> Array:
        return ratio_step(U, *split_U(U, sums, a))

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


@storable
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
        xp, empty = namespace(U), U.sum(axis=0) == 0
        # A column with nothing in it cannot be scaled to sum 1.
        return rescale(xp.where(empty, 1, U), xp.where(empty, 0, V))

    def update_U(self, U: Array, sums: Sums, a: float) -> Array:
        """u_k ← simplex projection of (P_k − Σ_{l≠k} G_lk u_l)/G_kk. Q = I: no consensus term."""
        P, G = sums.P, sums.G
        xp, columns = namespace(P), copied(U.T)
        floor = xp.finfo(U.dtype).eps * xp.trace(G) / len(G)
        kernels = None if is_tensor(P) else compiled()
        if kernels is not None:
            columns = columns.astype(P.dtype, copy=False)
            kernels.hals_columns(columns, P, G, floor)
            return columns.T
        for _ in range(self.sweeps):
            for k in range(len(G)):
                known = G[k, k] > floor
                step = (P[:, k] - G[k] @ columns) / xp.where(known, G[k, k], 1)
                moved = simplex_rows((columns[k] + step)[None])[0]
                columns[k] = xp.where(known, moved, columns[k])
        return columns.T

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
        xp, h = namespace(V), g.curvature
        linear = w2 * XU + a * consensus + beta * (g.negative - g.positive + h * V)
        quadratic = w2 * xp.diag(H) + (a + beta * h)
        known = quadratic > 0
        quadratic = xp.where(known, quadratic, 1)
        V = copied(V)
        for _ in range(self.sweeps):
            for k in range(V.shape[1]):
                others = V @ H[:, k] - V[:, k] * H[k, k]
                target = (linear[:, k] - w2[:, 0] * others) / quadratic[:, k]
                V[:, k] = xp.where(known[:, k], target.clip(0), V[:, k])
        return V


SOLVERS: dict[str, type[Multiplicative] | type[SimplexHALS]] = {
    "multiplicative": Multiplicative,
    "hals": SimplexHALS,
}
