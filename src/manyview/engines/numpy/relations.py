"""Views that relate observations to each other: `GraphView`, `KernelView` and `DistanceView`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix, storable
from manyview.maths.relations import (
    closed_neighbourhoods,
    discounts,
    own_links,
    squared_from_kernel,
)

from .relation_base import (
    ASYMMETRY,
    Relation,
    numbers,
    refuse_asymmetric,
    refuse_negative,
    refuse_sparse,
    without_missing,
)

__all__ = ["DistanceView", "GraphView", "KernelView", "Relation", "kind_of", "no_relation"]


@storable
class GraphView(Relation):
    """Links between the observations as a view, for `RobustWMNMF`.

    Parameters
    ----------
    A : sparse or dense array, or DataFrame (N, N)
        Weights of the links, 0 for none. A row holds the links that go out from an observation: of
        directed ones ``A`` and ``A.T`` are two views, ``A + A.T`` counts both ways. Links of an
        observation to itself do not count. To place unseen observations: (unseen, N).
    ids : sequence, optional
        Names of the rows; the index of a DataFrame is taken.
    columns : sequence, optional
        Names of the columns, where they are the fitted observations in another order.

    Examples
    --------
    >>> import numpy as np, manyview as mv
    >>> mv.GraphView(np.ones((3, 3)))
    <GraphView of shape (3, 3)>
    """

    kind = "graph"
    entries = "have no link"

    def __init__(self, A: Any, ids: Any = None, columns: Any = None):
        matrix, frame = numbers(A, "GraphView")
        values = matrix.data if sp.issparse(matrix) else matrix
        if np.isnan(values).any():
            raise ValueError(
                f"GraphView has {int(np.isnan(values).sum())} NaN entries; 0 says that there is no link"
            )
        refuse_negative(values, "GraphView", "weights say how strong a link is, 0 or more")
        self._name(sp.csr_array(matrix), ids, columns, frame)

    def links(self) -> sp.csr_array:
        """Links between the fitted observations, none to itself.

        Returns
        -------
        csr_array (N, N)
        """
        A = sp.csr_array(self.matrix - sp.diags_array(self.matrix.diagonal(), format="csr"))
        A.eliminate_zeros()
        A.sort_indices()
        return A

    def as_features(self) -> Matrix:
        """Whom every observation is linked to, itself included, hubs discounted.

        Returns
        -------
        array (N, N)
            Nonnegative, rows of unit length; sparse unless the graph is dense.
        """
        self.check("graph")
        A = self.links()
        closed = sp.csr_array(A + sp.diags_array(own_links(A)))
        return closed_neighbourhoods(closed, discounts(closed))


class Dissimilarity(Relation):
    """A relation with a distance between any two observations."""

    def check(self, name: str) -> None:
        """Refuse what cannot relate the observations of a fit, also what is not symmetric.

        Parameters
        ----------
        name : str
            Of the view, for the message.
        """
        super().check(name)
        if not self.unseen:
            refuse_asymmetric(self.matrix, f"view {name!r}, a {self.kind},")

    @abstractmethod
    def squared(self) -> Array:
        """Squared distances of rows to columns.

        Returns
        -------
        ndarray
        """


@storable
class DistanceView(Dissimilarity):
    """Distances between the observations as a view, for `RobustWMNMF`.

    Parameters
    ----------
    D : array or DataFrame (N, N)
        Distances, not squared; symmetric. A row and column of NaN: the observation is missing in this
        view. To place unseen observations: (unseen, N).
    ids, columns : sequence, optional
        As in `GraphView`.

    Examples
    --------
    >>> import numpy as np, manyview as mv
    >>> x = np.array([[0.0], [1.0], [5.0]])
    >>> mv.DistanceView(abs(x - x.T), ids=["a", "b", "c"])
    <DistanceView of shape (3, 3)>
    """

    kind = "distance matrix"
    entries = "have no distance above 0"

    def __init__(self, D: Any, ids: Any = None, columns: Any = None):
        matrix, frame = numbers(refuse_sparse(D, "DistanceView"), "DistanceView")
        refuse_negative(matrix, "DistanceView", "distances are 0 or more")
        matrix = without_missing(matrix, "DistanceView")
        self._name(matrix, ids, columns, frame)

    def check(self, name: str) -> None:
        """Refuse what cannot relate the observations of a fit, also a diagonal that is not 0.

        Parameters
        ----------
        name : str
            Of the view, for the message.
        """
        super().check(name)
        own = np.zeros(0) if self.unseen else self.matrix.diagonal()
        if (own > ASYMMETRY * self.matrix.max(initial=0)).any():
            i = int(own.argmax())
            raise ValueError(
                f"view {name!r} is a distance matrix with {own[i]:g} on its diagonal (row {i}); an "
                "observation is at 0 from itself. Similarities are a KernelView"
            )

    def squared(self) -> Array:
        """Squared distances of rows to columns.

        Returns
        -------
        ndarray
        """
        return self.matrix.astype(float) ** 2

    def as_features(self) -> Matrix:
        """exp(−d²/2m²), m the median distance: how near every other observation is.

        Returns
        -------
        ndarray (N, N)
        """
        known = self.matrix[self.matrix > 0]
        width = float(np.median(known)) if known.size else 1.0
        return np.exp(-self.squared() / (2 * width**2)) * self.present()[:, None]


@storable
class KernelView(Dissimilarity):
    """Similarities between the observations as a view, for `RobustWMNMF`.

    Parameters
    ----------
    S : array or DataFrame (N, N)
        A kernel: symmetric, s_ii + s_jj − 2 s_ij is a squared distance. A row and column of NaN: the
        observation is missing in this view. To place unseen observations: (unseen, N).
    ids, columns : sequence, optional
        As in `GraphView`.
    diagonal : sequence of float, optional
        For unseen observations: how similar each is to itself. Not needed for kernels that are
        constant there, as the Gaussian and the cosine are.

    Examples
    --------
    >>> import numpy as np, manyview as mv
    >>> x = np.array([[0.0], [1.0], [5.0]])
    >>> mv.KernelView(x @ x.T)
    <KernelView of shape (3, 3)>
    """

    kind = "kernel"
    entries = "have no similarity other than 0"
    diagonal: Array | None

    def __init__(self, S: Any, ids: Any = None, columns: Any = None, diagonal: Any = None):
        matrix, frame = numbers(refuse_sparse(S, "KernelView"), "KernelView")
        matrix = without_missing(matrix, "KernelView")
        self.diagonal = None if diagonal is None else np.array(diagonal, dtype=float)
        if self.diagonal is not None and self.diagonal.shape != (matrix.shape[0],):
            raise ValueError(
                f"KernelView has {matrix.shape[0]} rows and a diagonal of shape "
                f"{self.diagonal.shape}; give one number for each row"
            )
        self._name(matrix, ids, columns, frame)

    def squared(self) -> Array:
        """Squared distances of rows to columns.

        Returns
        -------
        ndarray
        """
        own = self.matrix.diagonal() if self.diagonal is None else self.diagonal
        return squared_from_kernel(self.matrix.astype(float), own, own)

    def __getitem__(self, rows: Any) -> KernelView:
        part = super().__getitem__(rows)
        if self.diagonal is not None:
            part.diagonal = self.diagonal[rows]
        return part

    def take(self, places: Array) -> KernelView:
        """Observations in another order.

        Parameters
        ----------
        places : ndarray of int
            The place of each; −1 for one that the kernel lacks.

        Returns
        -------
        KernelView
        """
        taken = super().take(places)
        if self.diagonal is not None:
            taken.diagonal = np.where(places >= 0, self.diagonal[places], 0)
        return taken

    def own_similarity(self, fitted: Array) -> Array:
        """s_ii of unseen rows.

        Parameters
        ----------
        fitted : ndarray
            Those of the fitted observations.

        Returns
        -------
        ndarray
        """
        if self.diagonal is not None:
            return self.diagonal
        if not self.present().any():
            return np.zeros(self.shape[0])
        spread = float(np.ptp(fitted)) if len(fitted) else 0.0
        if spread > ASYMMETRY * float(np.abs(fitted).max(initial=0)):
            raise ValueError(
                "unseen rows of a KernelView need diagonal=[...], how similar each is to itself: the "
                f"fitted ones differ in that (from {fitted.min():g} to {fitted.max():g})"
            )
        return np.full(self.shape[0], fitted.mean() if len(fitted) else 0.0)

    def as_features(self) -> Matrix:
        """Similarities to every observation, shifted to start at 0.

        Returns
        -------
        ndarray (N, N)
        """
        return (self.matrix - min(0.0, float(self.matrix.min(initial=0)))) * self.present()[:, None]


#: The public classes by the kind of relation they are.
KINDS: dict[str, type[Relation]] = {cls.kind: cls for cls in (GraphView, DistanceView, KernelView)}


def kind_of(X: Any) -> str | None:
    """What kind of relation a view is; None for a table of features."""
    return X.kind if isinstance(X, Relation) else None


def no_relation(kind: str, shape: tuple[int, int]) -> Relation:
    """A relation that none of some unseen observations has."""
    cls = KINDS[kind]
    found = cls(sp.csr_array(shape) if cls is GraphView else np.zeros(shape))  # type: ignore[call-arg]
    return found.for_unseen(None)
