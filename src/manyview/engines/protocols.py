"""What rows offer, wherever they live, and the work of one iteration on them.

A `Source` knows where rows live. A `Pass` does one iteration on one view. Sources that can do
more than read (work where the rows are, find neighbors, make a pass of their own) say so by one of the
small protocols below. How near rows of one view are, says a `engines.numpy.distances.Geometry`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from manyview._types import Array, Matrix, Number, Sums
from manyview.maths.solvers import Solver
from manyview.maths.terms import Term

Found = TypeVar("Found")


@runtime_checkable
class Readable(Protocol):
    """Rows that can be read a block at a time."""

    shape: tuple[int, int]

    def read(self, rows: slice) -> Matrix:
        """These rows, in memory."""


class Source(Readable, Protocol):
    """The rows of one view, wherever they live."""

    dtype: np.dtype
    #: Whether rows are read as SciPy CSR matrices.
    sparse: bool


@runtime_checkable
class Remote(Protocol):
    """Rows on other machines, worked on there."""

    def each(self, work: Callable[..., Found], *args: object) -> list[Found]:
        """work(block, *args) of all blocks, in their order."""


@runtime_checkable
class Derived(Protocol):
    """Rows made of those of ``X``."""

    X: Matrix

    def recipe(self, rows: slice) -> Callable[[Matrix], Matrix]:
        """What makes these rows of the data those of this view; it holds no data."""


@runtime_checkable
class FindsNeighbors(Protocol):
    """Rows that find their nearest among themselves."""

    def neighbors(self, k: int) -> tuple[Array, Array]:
        """Indices and squared distances (N×k) of every row's nearest other rows."""


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
