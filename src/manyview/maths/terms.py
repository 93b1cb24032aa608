"""Terms of the objective in the coefficients V alone: value, split gradient, curvature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix, Number, storable


@runtime_checkable
class Term(Protocol):
    """g(V), and the negative and positive part of half its gradient."""

    def value(self, V: Array) -> float: ...
    def split(self, V: Array) -> tuple[Number, Number]: ...


@runtime_checkable
class Curved(Term, Protocol):
    """A term with h ≥ 0 such that g(V + Δ) ≤ g(V) + 2⟨positive − negative, Δ⟩ + Σ h Δ²."""

    def curvature(self, V: Array) -> Number: ...


@runtime_checkable
class Linkable(Term, Protocol):
    """A term that ties unseen rows to those it was prepared on, whose coefficients are ``known``.

    None: new rows have no term.
    """

    def link(self, X_new: Matrix, known: Array) -> Term | None: ...


@storable
class GraphTerm:
    """g(V) = Tr(Vᵀ L V), L = D − A: neighbors should have like coefficients."""

    def __init__(self, A: sp.csr_array, degrees: Array | None = None):
        self.A = A
        degrees = np.asarray(A.sum(axis=1), dtype=A.dtype) if degrees is None else degrees
        self.degrees = degrees.reshape(-1, 1)

    def value(self, V: Array) -> float:
        return (V * (self.degrees * V - self.A @ V)).sum()

    def split(self, V: Array) -> tuple[Array, Array]:
        return self.A @ V, self.degrees * V

    def curvature(self, V: Array) -> Array:
        # L ⪯ 2D, since D + A ⪰ 0: with this bound all rows may move at once.
        return 2 * self.degrees


class GraphPart:
    """Some rows of a graph term, given what their neighbors wherever pull them to: A V (n×K)."""

    def __init__(self, pull: Array, degrees: Array):
        self.pull, self.degrees = pull, degrees

    def value(self, V: Array) -> float:
        return float(np.vdot(V, self.degrees * V - self.pull))

    def split(self, V: Array) -> tuple[Array, Array]:
        return self.pull, self.degrees * V

    def curvature(self, V: Array) -> Array:
        return 2 * self.degrees


class LinkedTerm:
    """The graph term of unseen rows whose neighbors' coefficients are known: Σ A_ij ‖v_i − v_j‖²."""

    def __init__(self, A: sp.csr_array, known: Array):
        self.pull = A @ known
        self.degrees = A.sum(axis=1).reshape(-1, 1)
        self.constant = float(A.sum(axis=0) @ np.einsum("ik,ik->i", known, known))

    def value(self, V: Array) -> float:
        return (V * (self.degrees * V - 2 * self.pull)).sum() + self.constant

    def split(self, V: Array) -> tuple[Array, Array]:
        return self.pull, self.degrees * V

    def curvature(self, V: Array) -> Array:
        return self.degrees


@storable
@dataclass(frozen=True)
class NoPenalty:
    """g(V) = 0."""

    takes_tensors = True

    def prepare(self, X: Matrix, view: str = "") -> NoPenalty:
        return self

    def value(self, V: Array) -> float:
        return 0.0

    def split(self, V: Array) -> tuple[float, float]:
        return 0.0, 0.0

    def curvature(self, V: Array) -> float:
        return 0.0
