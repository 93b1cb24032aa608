"""How relations become coordinates of observations, and what halves of a graph are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix, storable
from manyview.maths.relations import (
    closed_neighbourhoods,
    discounts,
    own_links,
    principal_coordinates,
)

from .distances import Geometry
from .relations import Dissimilarity, GraphView, KernelView, Relation

#: Of the random rotation of principal coordinates: the same for the same distances.
ROTATION = 0


class Linked(NamedTuple):
    """Coordinates of fitted observations, and the links they come from (itself included)."""

    Z: Matrix
    closed: sp.csr_array
    own: Array
    discount: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.Z.shape


@storable
@dataclass(frozen=True)
class LinkScaling:
    """Links to observations → closed neighbourhoods with unit rows, discounted for hubs."""

    discount: Array

    @property
    def low(self) -> None:
        return None

    @property
    def kind(self) -> str:
        return "links"

    @property
    def because(self) -> str:
        return ""

    @classmethod
    def fit(cls, X: GraphView) -> LinkScaling:
        A = X.links()
        return cls(discounts(sp.csr_array(A + sp.diags_array(own_links(A)))))

    def apply(self, X: GraphView) -> Matrix | Linked:
        if X.unseen:
            return closed_neighbourhoods(X.matrix, self.discount)
        A = X.links()
        own = own_links(A)
        closed = sp.csr_array(A + sp.diags_array(own))
        closed.sort_indices()
        return Linked(closed_neighbourhoods(closed, self.discount), closed, own, self.discount)

    def undo(self, Z: Array) -> Array:
        raise ValueError("links are not filled in")


@storable
@dataclass(frozen=True)
class CoordinateScaling:
    """Squared distances to observations → principal coordinates that start at 0."""

    #: Which observations have distances, and how those to them become coordinates.
    known: Array
    map: Array
    means: Array
    origin: Array
    #: s_ii of a kernel; None for distances.
    diagonal: Array | None = None

    @property
    def low(self) -> Array:
        return self.origin

    @property
    def kind(self) -> str:
        return "distances" if self.diagonal is None else "kernel"

    @property
    def because(self) -> str:
        return ""

    @classmethod
    def fit(cls, X: Dissimilarity) -> CoordinateScaling:
        known = X.present()
        squared = X.squared()[np.ix_(known, known)]
        if len(squared) == 0:
            return cls(known, np.zeros((0, 1)), np.zeros(0), np.zeros(1))
        own = X.matrix.diagonal()[known].copy() if isinstance(X, KernelView) else None
        rng = np.random.default_rng(ROTATION)
        return cls(known, *principal_coordinates(squared, rng), own)

    def apply(self, X: Dissimilarity) -> Array:
        if isinstance(X, KernelView) and X.unseen and self.diagonal is not None:
            own = X.own_similarity(self.diagonal)
            S = X.matrix[:, self.known]
            squared = np.maximum(own[:, None] + self.diagonal[None] - 2 * S, 0)
        else:
            squared = X.squared()[:, self.known]
        return np.maximum(-0.5 * (squared - self.means) @ self.map + self.origin, 0)

    def undo(self, Z: Array) -> Array:
        raise ValueError("distances are not filled in")


def fit_relation(X: Relation) -> LinkScaling | CoordinateScaling:
    """How a relation becomes coordinates."""
    if isinstance(X, GraphView):
        return LinkScaling.fit(X)
    assert isinstance(X, Dissimilarity)
    return CoordinateScaling.fit(X)


def relation_rows(
    X: Relation, scaling: LinkScaling | CoordinateScaling, present: Array, dtype: np.dtype
) -> Matrix | Linked:
    """Coordinates of the rows; those missing there are zero."""
    found = scaling.apply(X)  # type: ignore[arg-type]
    Z = (found.Z if isinstance(found, Linked) else found).astype(dtype)
    if not sp.issparse(Z):
        Z[~present] = 0
    return found._replace(Z=Z) if isinstance(found, Linked) else Z


@storable
class LinkGeometry(Geometry):
    """A graph as a space of distances, whose halves are halves of its links.

    Halves of the columns would share each link: i has j in one half, j has i in the other, and a
    random graph would seem reliable.
    """

    def __init__(self, rows: Linked, present: Array, mass: Array | None = None):
        super().__init__(rows.Z, present, False, mass)
        self.closed, self.own, self.discount = rows.closed, rows.own, rows.discount
        #: The column of every row.
        self.place = np.arange(self.n_samples)

    def distinct(self, first: Array, mass: Array | None) -> LinkGeometry:
        new = super().distinct(first, mass)
        assert isinstance(new, LinkGeometry)
        new.closed, new.own, new.place = self.closed[first], self.own[first], self.place[first]
        return new

    def rows(self, chosen: Array) -> LinkGeometry:
        return self.distinct(np.arange(self.n_samples)[chosen], self.mass_of(chosen))

    def half(self, columns: Array) -> Geometry:
        """The same rows with those links {i, j} for which (i + j) mod M is among ``columns``."""
        n, M = self.closed.shape
        chosen = np.zeros(M, dtype=bool)
        chosen[columns] = True
        links = self.closed.tocoo()
        i, j = self.place[links.row], links.col
        kept = chosen[(i + j) % M] | (i == j)
        half = sp.csr_array((links.data[kept], (links.row[kept], j[kept])), shape=(n, M))
        linked = np.bincount(links.row[kept & (i != j)], minlength=n) > 0
        Z = closed_neighbourhoods(half, self.discount).astype(self.Z.dtype)
        return Geometry(Z, self.present & linked, False, self.mass)
