"""What graphs, kernels and distances as views share, and what is refused of them.

A relation is square at a fit: rows and columns are the same observations. For unseen observations it
has a row for each, and a column for every fitted one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix

Own = TypeVar("Own", bound="Relation")
#: Entries above and below the diagonal may differ by this share of the largest.
ASYMMETRY = 1e-6


class Relation(ABC):
    """Rows and columns are observations; see `GraphView`, `KernelView` and `DistanceView`."""

    kind: ClassVar[str]
    #: What a row without an entry lacks, in a sentence.
    entries: ClassVar[str]
    matrix: Matrix
    ids: Array | None
    columns: Array | None
    #: Whether rows are unseen observations, and columns the fitted ones.
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
        """The same with a matrix of its own.

        Returns
        -------
        Relation
        """
        return self._with(self.matrix.copy())

    def _with(self: Own, matrix: Matrix) -> Own:
        new = copy(self)
        new.matrix, new.ids, new.columns = matrix, None, None
        return new

    def __getitem__(self: Own, rows: Any) -> Own:
        """The relation among some of the observations."""
        places = np.arange(self.shape[0])[rows]
        if len(places) == self.shape[0] and (places == np.arange(len(places))).all():
            return self._with(self.matrix)
        part = self.matrix[places]
        if not self.unseen:
            part = part.tocsc()[:, places].tocsr() if sp.issparse(part) else part[:, places]
        return self._with(part)

    def take(self: Own, places: Array) -> Own:
        """Observations in another order.

        Parameters
        ----------
        places : ndarray of int
            The place of each; −1 for one that the relation lacks.

        Returns
        -------
        Relation
        """
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
        """Rows of unseen observations, with columns in the order of the fitted ones.

        Parameters
        ----------
        columns : ndarray or None
            Ids of the fitted observations, if they have any.

        Returns
        -------
        Relation
        """
        new = copy(self)
        new.unseen = True
        if columns is not None and self.columns is not None:
            place = {str(name): j for j, name in enumerate(self.columns)}
            absent = [name for name in columns if str(name) not in place]
            if absent:
                raise ValueError(
                    f"{type(self).__name__} lacks {len(absent)} of the {len(columns)} fitted "
                    f"observations in its columns, the first being {absent[0]!r}"
                )
            order = [place[str(name)] for name in columns]
            matrix = self.matrix.tocsc() if sp.issparse(self.matrix) else self.matrix
            part = matrix[:, order]
            new.matrix = part.tocsr() if sp.issparse(part) else part
        return new

    def check(self, name: str) -> None:
        """Refuse what cannot relate the observations of a fit; rows of unseen ones are as they are.

        Parameters
        ----------
        name : str
            Of the view, for the message.
        """
        n, m = self.shape
        if not self.unseen and n != m:
            raise ValueError(
                f"view {name!r} is a {self.kind} of shape {self.shape}; for a fit its rows and columns "
                "are the same observations. Of unseen ones, predict takes (unseen, fitted)"
            )

    def present(self) -> Array:
        """Rows with an entry that is not zero; of a graph, with a link to another one.

        Returns
        -------
        ndarray of bool
        """
        if sp.issparse(self.matrix):
            counts = np.diff(self.matrix.indptr)
            own = 0 if self.unseen or len(counts) != self.shape[1] else self.matrix.diagonal() != 0
            return counts - own > 0
        return (self.matrix != 0).any(axis=1)

    @abstractmethod
    def as_features(self) -> Matrix:
        """A nonnegative table that methods of features take.

        Returns
        -------
        array (N, N)
        """


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
    """Zeros for observations whose whole row (and column) is NaN; NaN elsewhere is refused."""
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
            f"{j}) of observations that are there; an observation is known to all others or to none"
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
            f"{cls} is sparse, and its zeros would count as entries; a matrix of neighbours only is a "
            "GraphView, with weights that grow with similarity"
        )
    return data
