"""Graphs, kernels and distances between samples as views: `GraphView`, `KernelView` and `DistanceView`.

A relation is square at a fit: rows and columns are the same samples. For unseen samples it has a row for
each, and a column for every fitted one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix, storable
from manyview.maths.coordinates import (
    closed_neighborhoods,
    discounts,
    own_links,
    squared_from_kernel,
)

Own = TypeVar("Own", bound="Relation")
#: Entries above and below the diagonal may differ by this share of the largest.
ASYMMETRY = 1e-6


class Relation(ABC):
    """Rows and columns are samples; see `GraphView`, `KernelView` and `DistanceView`."""

    kind: ClassVar[str]
    #: What a row without an entry lacks, in a sentence.
    entries: ClassVar[str]
    matrix: Matrix
    ids: Array | None
    columns: Array | None
    #: Whether rows are unseen samples, and columns the fitted ones.
    unseen: bool = False

    def _name(self, matrix: Matrix, ids: Any, columns: Any, frame: Any) -> None:
        """Set the matrix and its names; a table of pandas brings names along."""
        if frame is not None:
            ids = frame.index if ids is None else ids
            same = list(frame.index) == list(frame.columns)
            columns = frame.columns if columns is None and not same else columns
        self.matrix = matrix
        self.ids = None if ids is None else np.array(ids)
        self.columns = None if columns is None else np.array(columns)
        for named, n, what in (
            (self.ids, matrix.shape[0], "ids"),
            (self.columns, matrix.shape[1], "columns"),
        ):
            if named is not None and len(named) != n:
                raise ValueError(
                    f"{type(self).__name__} has shape {matrix.shape} and {len(named)} {what}; give "
                    "one for each"
                )

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    @property
    def ndim(self) -> int:
        return 2

    @property
    def dtype(self) -> np.dtype:
        return self.matrix.dtype

    @property
    def nbytes(self) -> int:
        return self.matrix.data.nbytes if sp.issparse(self.matrix) else self.matrix.nbytes

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of shape {self.shape}>"

    def copy(self: Own) -> Own:
        """The same with a matrix of its own."""
        return self._with(self.matrix.copy())

    def _with(self: Own, matrix: Matrix) -> Own:
        new = copy(self)
        new.matrix, new.ids, new.columns = matrix, None, None
        return new

    def __getitem__(self: Own, rows: Any) -> Own:
        """The relation among some of the samples."""
        places = np.arange(self.shape[0])[rows]
        if len(places) == self.shape[0] and (places == np.arange(len(places))).all():
            return self._with(self.matrix)
        part = self.matrix[places]
        if not self.unseen:
            part = part.tocsc()[:, places].tocsr() if sp.issparse(part) else part[:, places]
        return self._with(part)

    def take(self: Own, places: Array) -> Own:
        """Samples in another order.

        Parameters
        ----------
        places : ndarray of int
            The place of each; −1 for one that the relation lacks."""
        known = places >= 0
        part = self[places[known]].matrix
        if known.all():
            return self._with(part)
        n, where = len(places), np.flatnonzero(known)
        there = np.arange(part.shape[1]) if self.unseen else where
        shape = (n, part.shape[1] if self.unseen else n)
        if sp.issparse(part):
            edges = part.tocoo()
            i, j = where[edges.row], there[edges.col]
            return self._with(sp.csr_array((edges.data, (i, j)), shape=shape))
        whole = np.zeros(shape, dtype=part.dtype)
        whole[np.ix_(where, there)] = part
        return self._with(whole)

    def for_unseen(self: Own, columns: Array | None) -> Own:
        """Rows of unseen samples, with columns in the order of the fitted ones.

        Parameters
        ----------
        columns : ndarray or None
            Ids of the fitted samples, if they have any."""
        new = copy(self)
        new.unseen = True
        if columns is not None and self.columns is not None:
            place = {str(name): j for j, name in enumerate(self.columns)}
            absent = [name for name in columns if str(name) not in place]
            if absent:
                raise ValueError(
                    f"{type(self).__name__} lacks {len(absent)} of the {len(columns)} fitted "
                    f"samples in its columns, the first being {absent[0]!r}"
                )
            order = [place[str(name)] for name in columns]
            matrix = self.matrix.tocsc() if sp.issparse(self.matrix) else self.matrix
            part = matrix[:, order]
            new.matrix = part.tocsr() if sp.issparse(part) else part
        return new

    def check(self, name: str) -> None:
        """Refuse what cannot relate the samples of a fit; rows of unseen ones are as they are."""
        n, m = self.shape
        if not self.unseen and n != m:
            raise ValueError(
                f"view {name!r} is a {self.kind} of shape {self.shape}; a fit needs the same samples in "
                "rows and columns, and predict new samples in rows, fitted samples in columns"
            )

    def present(self) -> Array:
        """Rows with an entry that is not zero; of a graph, with a link to another one."""
        if sp.issparse(self.matrix):
            counts = np.diff(self.matrix.indptr)
            own = 0 if self.unseen or len(counts) != self.shape[1] else self.matrix.diagonal() != 0
            return counts - own > 0
        return (self.matrix != 0).any(axis=1)

    @abstractmethod
    def as_features(self) -> Matrix:
        """A nonnegative table that methods of features take."""


def numbers(data: Any, cls: str) -> tuple[Matrix, Any]:
    """A float CSR or dense matrix, and the table of pandas that it came from, if it did."""
    frame = data if type(data).__name__ == "DataFrame" else None  # pandas is not imported
    if sp.issparse(data):
        matrix: Matrix = sp.csr_array(data, copy=True)
        matrix = matrix.astype(np.result_type(matrix.dtype, np.float32))
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        values = matrix.data
    else:
        try:
            matrix = np.array(data if frame is None else frame.to_numpy(), dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{cls} takes a table of numbers: {error}") from error
        values = matrix
    if matrix.ndim != 2:
        raise ValueError(f"{cls} takes a matrix, got {matrix.ndim} dimension(s)")
    if values.dtype.kind == "c":
        raise ValueError(f"{cls} takes real numbers, got {values.dtype}")
    if np.isinf(values).any() or (sp.issparse(matrix) and np.isnan(values).any()):
        raise ValueError(
            f"{cls} has {int((~np.isfinite(values)).sum())} NaN or infinite entries; leave out what is "
            "unknown"
        )
    return matrix, frame


def refuse_negative(values: Array, cls: str, remedy: str) -> None:
    if values.size and np.nanmin(values) < 0:
        raise ValueError(
            f"{cls} has {int((values < 0).sum())} negative entries (min {np.nanmin(values):g}); {remedy}"
        )


def without_missing(matrix: Array, cls: str) -> Array:
    """Zeros for samples whose whole row (and column) is NaN; NaN elsewhere is refused."""
    unknown = np.isnan(matrix)
    if not unknown.any():
        return matrix
    n, m = matrix.shape
    own = np.eye(n, m, dtype=bool) & (n == m)
    missing = np.array([row.all() for row in unknown | own], dtype=bool)
    columns = missing if n == m else np.zeros(m, dtype=bool)
    expected = missing[:, None] | columns[None]
    if (unknown & ~expected).any():
        i, j = np.argwhere(unknown & ~expected)[0]
        raise ValueError(
            f"{cls} has {int((unknown & ~expected).sum())} NaN entries (the first at row {i}, column "
            f"{j}) in rows with other values; a missing sample is NaN in its whole row and column"
        )
    return np.where(expected | unknown, 0, matrix)


def refuse_asymmetric(matrix: Array, label: str) -> None:
    gap = np.abs(matrix - matrix.T)
    if gap.max(initial=0) > ASYMMETRY * np.abs(matrix).max(initial=0):
        i, j = np.unravel_index(gap.argmax(), gap.shape)
        raise ValueError(
            f"{label} is not symmetric (entry {i}, {j} is {matrix[i, j]:g}, and {j}, {i} is "
            f"{matrix[j, i]:g}); pass (M + M.T) / 2, or a GraphView, which may be directed"
        )


def refuse_sparse(data: Any, cls: str) -> Any:
    if sp.issparse(data):
        raise ValueError(
            f"{cls} is sparse, and its zeros would be treated as values; pass a matrix of "
            "nearest neighbors as a GraphView, with weights that grow with similarity"
        )
    return data


__all__ = ["DistanceView", "GraphView", "KernelView", "Relation", "kind_of", "no_relation"]


@storable
class GraphView(Relation):
    """Links between the samples as a view, for `RobustWMNMF`.

    Parameters
    ----------
    A : sparse or dense array, or DataFrame (N, N)
        Weights of the links, 0 for none. A row has the links that go out from a sample. If links are
        directed, ``A + A.T`` uses both directions. Links of a sample to itself are ignored. For new
        samples: (new, N).
    ids : sequence, optional
        Names of the rows; by default the index of a DataFrame.
    columns : sequence, optional
        For new samples: names of the columns, if the fitted samples are in another order.

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
        """Links between the fitted samples, none to itself."""
        A = sp.csr_array(self.matrix - sp.diags_array(self.matrix.diagonal(), format="csr"))
        A.eliminate_zeros()
        A.sort_indices()
        return A

    def as_features(self) -> Matrix:
        """Links of every sample, itself included, hubs discounted.

        Returns
        -------
        array (N, N)
            Nonnegative, rows of unit length; sparse unless the graph is dense.
        """
        self.check("graph")
        A = self.links()
        closed = sp.csr_array(A + sp.diags_array(own_links(A)))
        return closed_neighborhoods(closed, discounts(closed))


class Dissimilarity(Relation):
    """A relation with a distance between any two samples."""

    def check(self, name: str) -> None:
        """Refuse what cannot relate the samples of a fit, also what is not symmetric."""
        super().check(name)
        if not self.unseen:
            refuse_asymmetric(self.matrix, f"view {name!r}, a {self.kind},")

    @abstractmethod
    def squared(self) -> Array:
        """Squared distances of rows to columns."""


@storable
class DistanceView(Dissimilarity):
    """Distances between the samples as a view, for `RobustWMNMF`.

    Parameters
    ----------
    D : array or DataFrame (N, N)
        Distances, not squared; symmetric. A row and column of NaN: the sample lacks this view. For new
        samples: (new, N).
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
        """Refuse what cannot relate the samples of a fit, also a diagonal that is not 0."""
        super().check(name)
        own = np.zeros(0) if self.unseen else self.matrix.diagonal()
        if (own > ASYMMETRY * self.matrix.max(initial=0)).any():
            i = int(own.argmax())
            raise ValueError(
                f"view {name!r} is a distance matrix with {own[i]:g} on its diagonal (row {i}); "
                "a sample has distance 0 to itself. Similarities are a KernelView"
            )

    def squared(self) -> Array:
        """Squared distances of rows to columns."""
        return self.matrix.astype(float) ** 2

    def as_features(self) -> Matrix:
        """exp(−d²/2m²), m the median distance: how near every other sample is."""
        known = self.matrix[self.matrix > 0]
        width = float(np.median(known)) if known.size else 1.0
        return np.exp(-self.squared() / (2 * width**2)) * self.present()[:, None]


@storable
class KernelView(Dissimilarity):
    """Similarities between the samples as a view, for `RobustWMNMF`.

    Parameters
    ----------
    S : array or DataFrame (N, N)
        A kernel: symmetric, s_ii + s_jj − 2 s_ij is a squared distance. A row and column of NaN: the
        sample lacks this view. For new samples: (new, N).
    ids, columns : sequence, optional
        As in `GraphView`.
    diagonal : sequence of float, optional
        For new samples: the similarity of each to itself. Not needed if it is the same for all, as in
        Gaussian and cosine kernels.

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
        """Squared distances of rows to columns."""
        own = self.matrix.diagonal() if self.diagonal is None else self.diagonal
        return squared_from_kernel(self.matrix.astype(float), own, own)

    def __getitem__(self, rows: Any) -> KernelView:
        part = super().__getitem__(rows)
        if self.diagonal is not None:
            part.diagonal = self.diagonal[rows]
        return part

    def take(self, places: Array) -> KernelView:
        """Samples in another order.

        Parameters
        ----------
        places : ndarray of int
            The place of each; −1 for one that the kernel lacks."""
        taken = super().take(places)
        if self.diagonal is not None:
            taken.diagonal = np.where(places >= 0, self.diagonal[places], 0)
        return taken

    def own_similarity(self, fitted: Array) -> Array:
        """s_ii of unseen rows.

        Parameters
        ----------
        fitted : ndarray
            Those of the fitted samples."""
        if self.diagonal is not None:
            return self.diagonal
        if not self.present().any():
            return np.zeros(self.shape[0])
        spread = float(np.ptp(fitted)) if len(fitted) else 0.0
        if spread > ASYMMETRY * float(np.abs(fitted).max(initial=0)):
            raise ValueError(
                "new rows of a KernelView need diagonal=[...], the similarity of each new sample to "
                f"itself: those of the fit range from {fitted.min():g} to {fitted.max():g}"
            )
        return np.full(self.shape[0], fitted.mean() if len(fitted) else 0.0)

    def as_features(self) -> Matrix:
        """Similarities to every sample, shifted to start at 0."""
        return (self.matrix - min(0.0, float(self.matrix.min(initial=0)))) * self.present()[:, None]


#: The public classes by the kind of relation they are.
KINDS: dict[str, type[Relation]] = {cls.kind: cls for cls in (GraphView, DistanceView, KernelView)}


def kind_of(X: Any) -> str | None:
    """What kind of relation a view is; None for a table of features."""
    return X.kind if isinstance(X, Relation) else None


def no_relation(kind: str, shape: tuple[int, int]) -> Relation:
    """A relation that none of some unseen samples has."""
    cls = KINDS[kind]
    found = cls(sp.csr_array(shape) if cls is GraphView else np.zeros(shape))  # type: ignore[call-arg]
    return found.for_unseen(None)
