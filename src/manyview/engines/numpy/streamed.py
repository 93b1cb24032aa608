"""Views that are read by rows (from a file, from workers): their scaled rows, and their distances."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._arrays import on_host
from manyview._types import Array, Matrix, storable
from manyview.engines.protocols import Remote, Scaling
from manyview.engines.threads import blocks

from .distances import Geometry
from .presence import present_rows
from .robust_scaling import RobustScaling
from .sources import Source, UnitRows, leading_directions, looking_rows, over, project

#: Entries of a sample of rows: what it tells (percentiles, agreement of halves) needs no more.
SAMPLE = 2**22
#: Fewest rows of a sample.
FEWEST = 500


@storable
class ScaledFile:
    """z of a view in a file, row by row when read; rows missing there are zero."""

    on_disk = True

    def __init__(self, X: Any, scaling: Scaling | None, present: Array, dtype: np.dtype):
        self.X, self.scaling, self.present = X, scaling, present
        self.shape, self.dtype, self.sparse = X.shape, np.dtype(dtype), X.sparse

    def read(self, rows: slice) -> Matrix:
        return scaled_rows(self.X.read(rows), self.scaling, self.present[rows], self.dtype)

    def recipe(self, rows: slice) -> Callable[[Matrix], Matrix]:
        """What makes z of these rows of the data; it holds no data."""
        present = self.present[rows]
        return partial(scaled_rows, scaling=self.scaling, present=present, dtype=self.dtype)

    def take(self, rows: Array) -> Matrix:
        return scaled_rows(self.X.take(rows), self.scaling, self.present[rows], self.dtype)


def scaled_rows(X: Matrix, scaling: Scaling | None, present: Array, dtype: np.dtype) -> Matrix:
    """z of some rows; those missing there are zero.

    Scaled in float64 a block at a time, then cast: float32 could not tell raw numbers of 10⁸ apart.
    """
    if scaling is None:
        Z = X.astype(dtype)
    elif sp.issparse(X):
        Z = scaling.apply(X.astype(np.float64, copy=False)).astype(dtype, copy=False)
    else:
        Z = np.empty(X.shape, dtype=dtype)
        for b in blocks(slice(0, X.shape[0]), looking_rows(X.shape[1])):
            Z[b] = scaling.apply(X[b].astype(np.float64, copy=False))
    if not sp.issparse(Z):
        Z[~present] = 0
    return Z


@storable
class FileGeometry(Geometry):
    """Distances of rows in a file along the directions in which they vary most; exact up to 64 features.

    Only these coordinates are in memory. Halves of the features are compared on a sample of rows.
    """

    #: Where the rows are in the file; None: in order.
    places: Array | None = None
    takes_holes = False

    def __init__(self, Z: Any, present: Array, unit_rows: bool = False):
        self.source, self.directions = Z, leading_directions(Z)
        along = self.projected()
        self.centre = along.mean(axis=0)
        along -= self.centre
        super().__init__(along, present, unit_rows)
        self.n_features = Z.shape[1]

    def projected(self) -> Array:
        """All rows along the directions."""
        return project(self.source, self.directions)

    def coordinates(self, Z: Any) -> Array:
        return project(Z, self.directions) - self.centre

    def distinct(self, first: Array, mass: Array | None) -> Geometry:
        new: Any = super().distinct(first, mass)
        new.places = first
        return new

    def rows(self, chosen: Array) -> Geometry:
        chosen = chosen[sampled(len(chosen), self.source.shape[1])]
        places = chosen if self.places is None else self.places[chosen]
        mass = self.mass_of(chosen)
        return Geometry(self.source.take(places), self.present[chosen], self.unit_rows, mass)

    def half(self, columns: Array) -> Geometry:
        return self.rows(np.arange(self.n_samples)).half(columns)

    def unit_sums(self) -> UnitRows:
        return unit_rows_of_file(self.source)

    def for_model(self, sparse: bool) -> FileGeometry:
        new: Any = copy(self)
        if isinstance(self.source, Remote):
            new.source = None  # a model outlives the cluster
        return new


def sampled(n: int, n_features: int, size: int | None = None) -> Array:
    """Evenly spaced row numbers, as many as a sample of this many entries may have."""
    most = max(FEWEST, (SAMPLE if size is None else size) // max(1, n_features))
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(int)


def fit_scaling(X: Any, present: Array, name: str, kind: str = "auto") -> RobustScaling:
    """Percentiles of a sample of the rows that are present.

    Of features that are constant there, the smallest and largest value of all rows.
    """
    here = np.flatnonzero(present)
    rows = here[sampled(len(here), X.shape[1], getattr(X, "sample", None))]
    found = RobustScaling.fit(X.take(rows), np.ones(len(rows), dtype=bool), name, kind)
    if found.low is None or found.gain is None or len(rows) == len(here):
        return found
    flat = np.flatnonzero(found.gain == 0)
    if len(flat) == 0:
        return found
    lows, highs = zip(*over(X, _extremes, flat, bool(present.all())), strict=True)
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    spread = high - low
    found.low[flat] = low
    found.gain[flat] = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
    return found


def _extremes(block: Matrix, columns: Array, complete: bool) -> tuple[Array, Array]:
    """Smallest and largest value of some features in the rows of a block that are present."""
    part = (block if complete else block[present_rows(block)])[:, columns]
    part = part.toarray() if sp.issparse(part) else on_host(part)
    return part.min(axis=0, initial=np.inf), part.max(axis=0, initial=-np.inf)


def _row_sums(block: Matrix) -> Array:
    return np.ravel(abs(block).sum(axis=1))


def unit_rows_of_file(Z: Source) -> UnitRows:
    total = np.concatenate(over(Z, _row_sums))
    return UnitRows(Z, np.divide(1, total, out=np.zeros_like(total), where=total > 0))
