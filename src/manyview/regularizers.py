"""What is asked of the coefficients V besides fitting: graph smoothness, sparsity, orthogonality.

A regulariser is any object with ``prepare(X)``, called once per view, which returns a term with

- ``value(V)``: g(V);
- ``split(V)``: (negative, positive) parts of half its gradient, both nonnegative;
- ``curvature(V)`` (needed by the HALS solver only): h ≥ 0 with
  g(V + Δ) ≤ g(V) + 2⟨positive − negative, Δ⟩ + Σ h Δ², broadcastable to V;
- ``link(X_new, V)`` (optional): the term for unseen rows, tied to the rows it was prepared on, whose
  coefficients are ``V``. Without it the term itself serves unseen rows, which is right where g is a
  sum over rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import scipy.sparse as sp

from manyview.engines.affinity import affinity, automatic_width, links
from manyview.engines.numpy.sources import resident
from manyview.maths.terms import GraphTerm, LinkedTerm, NoPenalty, Term

from ._types import Array, Matrix, storable


class Regularizer(Protocol):
    def prepare(self, X: Matrix) -> Term: ...


@storable
@dataclass(frozen=True)
class Graph:
    """Laplacian of the view's k-nearest-neighbour graph (see `manyview.engines.affinity.affinity`)."""

    n_neighbors: int = 5
    affinity: str = "binary"
    width: float | None = None
    mutual: bool = False

    def prepare(self, X: Matrix) -> GraphTerm:
        return self.term(X, *self.edges(X))

    def edges(self, X: Matrix) -> tuple[sp.csr_array, float | None]:
        """The affinity of the rows of X, and the width of its weights."""
        width = self.width
        if self.affinity == "heat" and width is None:
            width = automatic_width(X)
        A = affinity(X, self.n_neighbors, self.affinity, width, self.mutual)
        return (A.astype(X.dtype) if sp.issparse(A) else A), width

    def term(self, X: Matrix, A: Any, width: float | None) -> GraphTerm:
        degrees = None if sp.issparse(A) else A.row_sums()
        return _FittedGraphTerm(A, X, replace(self, width=width), degrees)


@storable
class _FittedGraphTerm(GraphTerm):
    """A graph term that remembers the rows it was built on, so that unseen rows can be linked."""

    def __init__(self, A: sp.csr_array, X: Matrix, settings: Graph, degrees: Array | None = None):
        super().__init__(A, degrees)
        self.X, self.settings = X, settings

    def to_host(self, X: Matrix) -> _FittedGraphTerm:
        """The same term of a view on the host."""
        return _FittedGraphTerm(self.A.to_scipy().astype(X.dtype), X, self.settings)

    def link(self, X_new: Matrix, known: Array) -> LinkedTerm:
        s = self.settings
        A = links(X_new, resident(self.X), s.n_neighbors, s.affinity, s.width)
        return LinkedTerm(A.astype(X_new.dtype), known)


@storable
@dataclass(frozen=True)
class Sparse:
    """g(V) = Σ v_ik: the L1 norm of nonnegative coefficients."""

    def prepare(self, X: Matrix) -> Sparse:
        return self

    def value(self, V: Array) -> float:
        return V.sum()

    def split(self, V: Array) -> tuple[float, float]:
        return 0.0, 0.5

    def curvature(self, V: Array) -> float:
        return 0.0


@storable
@dataclass(frozen=True)
class Orthogonal:
    """g(V) = Σ_{k≠l} v_kᵀ v_l: each observation should use few components.

    Unlike ‖VᵀV − I‖² it is monotone under the multiplicative rule.
    """

    def prepare(self, X: Matrix) -> Orthogonal:
        return self

    def value(self, V: Array) -> float:
        rows = V.sum(axis=1)
        return rows @ rows - (V * V).sum()

    def split(self, V: Array) -> tuple[float, Array]:
        return 0.0, V.sum(axis=1, keepdims=True) - V

    def curvature(self, V: Array) -> float:
        # Largest eigenvalue of 11ᵀ − I on K components.
        return float(V.shape[1] - 1)


def make_regularizer(choice: Any, n_neighbors: int, affinity: str) -> Regularizer:
    """The regulariser a parameter names: "graph", "sparse", "orthogonal", None, or an object."""
    if choice is None:
        return NoPenalty()
    if isinstance(choice, str):
        named: dict[str, Regularizer] = {
            "graph": Graph(n_neighbors, affinity),
            "sparse": Sparse(),
            "orthogonal": Orthogonal(),
        }
        if choice in named:
            return named[choice]
    elif callable(getattr(choice, "prepare", None)):
        return choice
    raise ValueError(
        "regularizer must be 'graph', 'sparse', 'orthogonal', None or an object with "
        f"prepare(X), value(V) and split(V); got {choice!r}"
    )
