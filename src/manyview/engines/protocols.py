"""What rows offer, wherever they live, and the work of one iteration on them.

A `RowSource` knows where rows live. A `Pass` does one iteration on one view. Sources that can do
more than read (work where the rows are, make a pass of their own) say so by one of the small protocols
below. How near rows of one view are, says a `engines.numpy.distances.Geometry`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix, Number, Sums
from manyview.maths.solvers import Solver
from manyview.maths.terms import Term

Found = TypeVar("Found")


#: Entries of a block that is only looked at: 8 MiB in double precision.
LOOK = 2**20


def looking_rows(n_features: int) -> int:
    """Rows per block of what is only looked at."""
    return min(max(LOOK // max(1, n_features), 1), 4096)


class RowSource:
    """Rows of a view that are read when they are needed, never all at once: derive your own from it.

    Set ``shape``, ``dtype`` (float32 or float64) and, for SciPy matrices, ``sparse``; write ``read``.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    sparse = False
    #: Rows are never read all at once.
    on_disk, keep = True, True
    ndim = 2
    #: The name of the view, for messages.
    view = ""

    def read(self, rows: slice) -> Matrix:
        """Read some rows, one after the other.

        Parameters
        ----------
        rows : slice

        Returns
        -------
        ndarray or CSR matrix (n_rows, n_features)
            In the precision ``dtype``; a CSR matrix where ``sparse``.
        """
        raise NotImplementedError(f"{type(self).__name__} must define read(rows)")

    def take(self, rows: Array) -> Matrix:
        """The requested rows in their order; the source is read once, in its own order.

        Parameters
        ----------
        rows : ndarray of int

        Returns
        -------
        ndarray or CSR matrix (n_rows, n_features)
        """
        order = np.argsort(rows, kind="stable")
        ordered, step = np.asarray(rows)[order], self._piece()
        edges = np.flatnonzero(np.diff(ordered // step)) + 1
        parts = [
            self.read(slice(int(some[0]), int(some[-1]) + 1))[some - some[0]]
            for some in (np.split(ordered, edges) if len(ordered) else [])
        ]
        if not parts:
            return self.read(slice(0, 0))
        taken = sp.csr_array(sp.vstack(parts)) if self.sparse else np.concatenate(parts)
        return taken[np.argsort(order, kind="stable")]

    def _piece(self) -> int:
        """How many rows are best read together."""
        return looking_rows(self.shape[1])

    def load(self) -> Matrix:
        """All rows, for what cannot be done in blocks.

        Returns
        -------
        ndarray or CSR matrix (n_samples, n_features)
        """
        return self.read(slice(0, self.shape[0]))

    def __getitem__(self, rows: Any) -> Matrix:
        if isinstance(rows, slice) and rows.step in (None, 1):
            return self.read(slice(*rows.indices(self.shape[0])))
        if isinstance(rows, np.ndarray):
            return self.take(np.flatnonzero(rows) if rows.dtype == bool else rows)
        raise TypeError(
            f"{self.label} is read by rows; for single columns or entries load it into memory"
        )

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize

    @property
    def label(self) -> str:
        return f"view {self.view!r}" if self.view else f"a {type(self).__name__}"


@runtime_checkable
class Remote(Protocol):
    """Rows on other machines, worked on there."""

    def each(self, work: Callable[..., Found], *args: object) -> list[Found]:
        """work(block, *args) of all blocks, in their order."""


@runtime_checkable
class DeviceView(Protocol):
    """Rows on a device, whose factors and weights belong there, too."""

    def placed(self, array: Array) -> Array:
        """An array of the host where the rows are."""

    def dense(self, rows: slice) -> Array:
        """Some rows on the device, zeros and all."""

    def leading_svd(self, rank: int, seed: int) -> tuple[Array, Array, Array]:
        """The largest singular values and vectors, for the host."""


class Pass(Protocol):
    """The work of one iteration on one view, and what it found on the way."""

    shape: tuple[int, int]
    dtype: np.dtype
    #: ‖x_i‖² of every row.
    x_sq: Array
    #: Sums over all rows at the current V, from which U steps; None where they are not kept.
    sums: Sums
    #: The regularizer at the current V.
    penalty: Number
    #: ‖x_i − Uv_i‖² of every row, after a step with ``residuals``.
    residuals: Array

    def begin(
        self, V: Array, consensus: Array, fit_weight: Array, sum_weight: Array, g: Term, basis: bool
    ) -> None:
        """Start iterations with these weights: w² in the step on V, and w² (or w) in the sums.

        ``basis`` says whether U will move, and so whether steps on V need to keep sums.
        """

    def sum(self, V: Array) -> None:
        """Find the sums of a V that no step has made."""

    def step_U(self, U: Array, a: float) -> Array:
        """U after one step on the current sums."""

    def step_V(self, U: Array, V: Array, a: float, beta: float, residuals: bool = False) -> Array:
        """V after one step; ``residuals`` also returns those of every row."""

    def error(self, U: Array) -> Number:
        """Σ_i w_i² ‖x_i − Uv_i‖² at the current V."""

    def gap(self, U: Array, V: Array) -> Number:
        """‖VQ − V*‖² to the consensus that iterations began with."""

    def gap_to(self, consensus: Array, U: Array, V: Array) -> Number:
        """‖VQ − V*‖² to another consensus."""

    def all_residuals(self, U: Array, V: Array) -> Array:
        """‖x_i − Uv_i‖² of every row, in a pass of its own."""

    def collect(self, V: Array) -> Array:
        """V at the end of iterations, where all of it can be seen."""

    def release(self) -> None:
        """Let go of what only iterations need, while other views have their turn."""


@runtime_checkable
class MakesPass(Protocol):
    """Rows that bring the pass over them along."""

    def as_rows(self, solver: Solver) -> Pass:
        """The pass over these rows with the steps of a solver."""


class Lists(NamedTuple):
    """The k nearest rows of some rows, nearest first; and, where they differ, what each pair counts."""

    rows: Array
    indices: Array
    d: Array
    mass: Array | None = None


@runtime_checkable
class ScaledThere(Protocol):
    """Rows that are scaled where they are."""

    def scaled(self, scaling: Any, present: Array, dtype: np.dtype) -> Matrix:
        """z of these rows; those that are not present are zero."""


def engine_part(engine: str, module: str) -> ModuleType:
    """A module of an engine; whoever asks has checked that its package is here.

    Parameters
    ----------
    engine : {"torch", "dask"}
        A folder next to this file.
    module : str
        The name of a file in it.
    """
    return import_module(f"manyview.engines.{engine}.{module}")
