"""One step on one view, in two ways: the paper's multiplicative rule and simplex HALS.

A solver sees products with X, never X itself: the sums over rows for U, and XU for (some rows of) V.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from manyview._arrays import copied, namespace
from manyview._types import Array, Number, Split, Sums, storable

from .equations import ratio_step, rescale, simplex_rows, split_U, split_V


@runtime_checkable
class Solver(Protocol):
    """One step on U and one on some rows of V. Derive your own from it: the defaults are inherited.

    ``U`` is M×K, ``V`` n×K. A step returns a new array and leaves its arguments as they are.
    """

    #: Whether U keeps unit column sums throughout, so that Q = I.
    unit_sums: bool = False
    #: Methods of a regularizer's term that the steps need besides value and split: ("curvature",).
    needs: tuple[str, ...] = ()
    #: Whether the steps also work on PyTorch tensors (engine="torch").
    takes_tensors: bool = False

    def start(self, U: Array, V: Array) -> tuple[Array, Array]:
        """Starting factors that the steps can go on from.

        Parameters
        ----------
        U : ndarray (n_features, n_components)
        V : ndarray (n_samples, n_components)

        Returns
        -------
        U : ndarray (n_features, n_components)
        V : ndarray (n_samples, n_components)
        """
        return U, V

    def update_U(self, U: Array, sums: Sums, a: float) -> Array:
        """U after one step, from the sums over all rows.

        Parameters
        ----------
        U : ndarray (n_features, n_components)
        sums : Sums
            P = XᵀW²V, G = VᵀW²V, Σ v∘v* and Σ v∘v.
        a : float
            Weight of the consensus term of this view.

        Returns
        -------
        ndarray (n_features, n_components)
        """
        ...

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
        """V after one step, for some or all rows.

        Parameters
        ----------
        V : ndarray (n_rows, n_components)
        XU : ndarray (n_rows, n_components)
        H : ndarray (n_components, n_components)
            UᵀU.
        q : ndarray (n_components,)
            Column sums of U.
        consensus : ndarray (n_rows, n_components)
        w2 : ndarray (n_rows, 1)
            Squared weights of the rows.
        a : float
            Weight of the consensus term of this view.
        beta : float
            Weight of the regularizer.
        g : Split
            Of the regularizer at this V.

        Returns
        -------
        ndarray (n_rows, n_components)
        """
        ...


@storable
@dataclass(frozen=True)
class Multiplicative(Solver):
    """U ← U ∘ negative/positive, then V likewise: never raises O, and keeps every entry positive."""

    takes_tensors = True

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
@dataclass(frozen=True)
class SimplexHALS(Solver):
    """Exact coordinate steps on the well-posed form 1ᵀu_k = 1 (then Q = I and nothing escapes).

    ``sweeps`` over the columns of U and as many over those of V per product with X.
    """

    sweeps: int = 2

    unit_sums = True
    needs = ("curvature",)
    takes_tensors = True

    def start(self, U: Array, V: Array) -> tuple[Array, Array]:
        xp, empty = namespace(U), U.sum(axis=0) == 0
        # A column with nothing in it cannot be scaled to sum 1.
        return rescale(xp.where(empty, 1, U), xp.where(empty, 0, V))

    def update_U(self, U: Array, sums: Sums, a: float) -> Array:
        """u_k ← simplex projection of (P_k − Σ_{l≠k} G_lk u_l)/G_kk. Q = I: no consensus term."""
        P, G = sums.P, sums.G
        xp, columns = namespace(P), copied(U.T)
        floor = least_diagonal(U, G)
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
        """v_k ← max(0, linear_k / quadratic_k), the regularizer replaced by its bound at the start."""
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


def coordinate_sweep(V: Array, XU: Array, H: Array) -> None:
    """min ‖X − VUᵀ‖² over one column of V ≥ 0 after the other, in place: HALS without weights or terms."""
    for k in range(V.shape[1]):
        if H[k, k] > 1e-12:
            V[:, k] = np.maximum(0, V[:, k] + (XU[:, k] - V @ H[:, k]) / H[k, k])


def least_diagonal(U: Array, G: Array) -> Number:
    """Below this, a diagonal entry of G = VᵀW²V is rounding: nothing is known of that column of U."""
    xp = namespace(G)
    return xp.finfo(U.dtype).eps * xp.trace(G) / len(G)


SOLVERS: dict[str, type[Multiplicative] | type[SimplexHALS]] = {
    "multiplicative": Multiplicative,
    "hals": SimplexHALS,
}


def make_solver(choice: object) -> Solver:
    """The solver a parameter names, or the object it is."""
    if isinstance(choice, str) and choice in SOLVERS:
        return SOLVERS[choice]()
    if isinstance(choice, type):
        raise ValueError(
            f"solver={choice.__name__} is a class; pass an object, {choice.__name__}()"
        )
    if isinstance(choice, Solver):
        return choice
    raise ValueError(
        f"solver must be one of {', '.join(map(repr, SOLVERS))} or an object with update_U, update_V and "
        f"the rest of manyview.extend.Solver (derive its class from that); got {choice!r}"
    )


def own_name(solver: Solver) -> str | None:
    """The name under which the library has exactly this rule; None of any other.

    Compiled forms know the library's rules with their usual settings: whoever has such a form asks
    here, and otherwise runs the steps of the object itself.
    """
    names = (name for name, kind in SOLVERS.items() if type(solver) is kind and solver == kind())
    return next(names, None)


def check_needs(solver: Solver, term: object) -> None:
    """Refuse, with a sentence, a regularizer that lacks what the solver's steps need."""
    name = own_name(solver)
    label = f"solver={name!r}" if name else f"solver {type(solver).__name__}"
    for need in solver.needs:
        if not callable(getattr(term, need, None)):
            raise ValueError(
                f"{label} needs a regularizer with {need}(V), and {type(term).__name__} has none; "
                "add it, or use solver='multiplicative'"
            )
