"""Regularizers of the coefficients V: graph smoothness, sparsity, orthogonality.

A regularizer is any object with ``prepare(X, view)``, called once per view, which returns a term with

- ``value(V)``: g(V);
- ``split(V)``: (negative, positive) parts of half its gradient, both nonnegative;
- ``curvature(V)`` (needed by the HALS solver only): h ≥ 0 with
  g(V + Δ) ≤ g(V) + 2⟨positive − negative, Δ⟩ + Σ h Δ², broadcastable to V;
- ``link(X_new, V)`` (needed unless g is a sum over rows, whose term holds for new rows as it is): the
  term of new rows, tied to the rows it was prepared on, whose coefficients are ``V``; None for no term.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import scipy.sparse as sp

from manyview.engines.affinity import affinity, automatic_width, links
from manyview.engines.numpy.sources import resident
from manyview.maths.terms import GraphTerm, LinkedTerm, NoPenalty, Term

from ._types import Array, Matrix, storable

__all__ = ["Graph", "Orthogonal", "Regularizer", "Sparse", "TakesTensors", "make_regularizer"]


class Regularizer(Protocol):
    """What ``regularizer=`` takes besides names."""

    def prepare(self, X: Matrix, view: str) -> Term:
        """Read a view once, before its fit.

        Parameters
        ----------
        X : matrix (n_samples, n_features)
            The scaled view.
        view : str
            Its name.

        Returns
        -------
        Term
            The term of the objective for this view.
        """


@runtime_checkable
class TakesTensors(Protocol):
    """A regularizer that says whether it can be handed PyTorch tensors."""

    takes_tensors: bool


@storable
@dataclass(frozen=True)
class Graph:
    """Laplacian of the view's k-nearest-neighbor graph (see `manyview.engines.affinity.affinity`).

    Parameters
    ----------
    n_neighbors : int, default=5
    affinity : {"binary", "heat"}, default="binary"
        Weights of the edges.
    width : float, optional
        Of the heat kernel; by default twice the squared mean distance between rows.
    mutual : bool, default=False
        Whether both ends must be among the other's neighbors.
    """

    n_neighbors: int = 5
    affinity: str = "binary"
    width: float | None = None
    mutual: bool = False

    takes_tensors = True

    def prepare(self, X: Matrix, view: str = "") -> GraphTerm:
        return self.term(X, *self.edges(X))

    def edges(self, X: Matrix) -> tuple[sp.csr_array, float | None]:
        """The affinity of the rows of X, and the width of its weights.

        Parameters
        ----------
        X : matrix (n_samples, n_features)

        Returns
        -------
        A : sparse matrix (n_samples, n_samples)
        width : float or None
        """
        width = self.width
        if self.affinity == "heat" and width is None:
            width = automatic_width(X)
        A = affinity(X, self.n_neighbors, self.affinity, width, self.mutual)
        return (A.astype(X.dtype) if sp.issparse(A) else A), width

    def term(self, X: Matrix, A: Any, width: float | None) -> GraphTerm:
        """The term of a graph that is known already.

        Parameters
        ----------
        X : matrix (n_samples, n_features)
            The view it was built from.
        A : sparse matrix (n_samples, n_samples)
        width : float or None
            What `edges` returned.

        Returns
        -------
        Term
        """
        degrees = None if sp.issparse(A) else A.row_sums()
        return _FittedGraphTerm(A, X, replace(self, width=width), degrees)


@storable
class _FittedGraphTerm(GraphTerm):
    """A graph term that remembers the rows it was built on, so that unseen rows can be linked."""

    def __init__(self, A: sp.csr_array, X: Matrix, settings: Graph, degrees: Array | None = None):
        super().__init__(A, degrees)
        self.X, self.settings = X, settings

    def link(self, X_new: Matrix, known: Array) -> LinkedTerm:
        s = self.settings
        A = links(X_new, resident(self.X), s.n_neighbors, s.affinity, s.width)
        return LinkedTerm(A.astype(X_new.dtype), known)


@storable
@dataclass(frozen=True)
class Sparse:
    """g(V) = Σ v_ik: the L1 norm of nonnegative coefficients."""

    takes_tensors = True

    def prepare(self, X: Matrix, view: str = "") -> Sparse:
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
    """g(V) = Σ_{k≠l} v_kᵀ v_l: each sample should use few components.

    Unlike ‖VᵀV − I‖² it is monotone under the multiplicative rule.
    """

    takes_tensors = True

    def prepare(self, X: Matrix, view: str = "") -> Orthogonal:
        return self

    def value(self, V: Array) -> float:
        rows = V.sum(axis=1)
        return rows @ rows - (V * V).sum()

    def split(self, V: Array) -> tuple[float, Array]:
        return 0.0, V.sum(axis=1, keepdims=True) - V

    def curvature(self, V: Array) -> float:
        # Largest eigenvalue of 11ᵀ − I on K components.
        return float(V.shape[1] - 1)


#: The library's own, by the names that parameters take; the settings of a graph are parameters, too.
NAMED: dict[str, type[Graph | Sparse | Orthogonal]] = {
    "graph": Graph,
    "sparse": Sparse,
    "orthogonal": Orthogonal,
}


def make_regularizer(choice: Any, graph: Graph) -> Regularizer:
    """The regularizer that a parameter names, or the object it is; None asks nothing of V.

    Parameters
    ----------
    choice : str, object or None
        One of `NAMED`, None, or an object with ``prepare``.
    graph : Graph
        What "graph" means.

    Returns
    -------
    Regularizer
    """
    if choice is None:
        return NoPenalty()
    if isinstance(choice, str) and choice in NAMED:
        return graph if choice == "graph" else NAMED[choice]()
    if callable(getattr(choice, "prepare", None)):
        return choice
    raise ValueError(
        f"regularizer must be {', '.join(map(repr, NAMED))}, None or an object with prepare(X, view), "
        f"which returns a term with value(V) and split(V), or a dict of these by view; got {choice!r}"
    )


def prepared_term(
    regularizer: Any,
    X: Any,
    view: str,
    s: int,
    keep: Callable[[str, Callable[[], Any]], Any],
    tensors: bool = False,
) -> Any:
    """The term of view ``s``; ``keep(name, compute)`` may remember the graph of an earlier fit."""
    if tensors and not (isinstance(regularizer, TakesTensors) and regularizer.takes_tensors):
        raise ValueError(
            f"engine='torch' would pass tensors to the regularizer {type(regularizer).__name__}; set "
            "takes_tensors = True on it if it accepts them, or use engine='numpy'"
        )
    if not isinstance(regularizer, Graph):
        return regularizer.prepare(resident(X), view)
    # The term holds the view as it is read, not a scaled copy of a large one.
    return regularizer.term(X, *keep(f"graph {s}", lambda: regularizer.edges(resident(X))))


def kept_term(term: Any, X: Matrix) -> Any:
    """What a fitted model keeps of a term: a graph as SciPy has it, with its view ``X`` on the host."""
    if not isinstance(term, _FittedGraphTerm):
        return term
    if sp.issparse(term.A):
        return _FittedGraphTerm(term.A, X, term.settings, term.degrees)
    return _FittedGraphTerm(term.A.to_scipy().astype(X.dtype), X, term.settings)


def without_edges(term: Any, X: Matrix) -> Any:
    """The same term for rows ``X`` that others are to be linked to, and that need no edges themselves."""
    if not isinstance(term, _FittedGraphTerm):
        return term
    return term.settings.term(X, sp.csr_array((X.shape[0],) * 2), term.settings.width)
