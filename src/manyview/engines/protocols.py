"""What an engine offers: rows, the work of one iteration on them, and the distances between them.

A `Source` knows where rows live. A `Pass` does on one view what an iteration asks for. `Distances` say how
near rows of one view are; an `Engine` makes these and joins those of several views. Sources that can do
more than read (work where the rows are, find neighbours, make a pass of their own) say so by one of the
small protocols below. Stages and estimators know these protocols and no class behind them: a new place
for rows is one folder, and one line in `manyview.engines.table`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from manyview._types import Array, Matrix, Number, Sums, Views
from manyview.maths.solvers import Solver
from manyview.maths.terms import Term

from .threads import Threads

Own = TypeVar("Own", bound="Graph")
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
class Streamable(Protocol):
    """Rows that say whether they must never be asked for all at once."""

    on_disk: bool


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
    #: The regulariser at the current V.
    penalty: Number
    #: ‖x_i − Uv_i‖² of every row, after a step that was asked for them.
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
        """V after one step; ``residuals`` also asks for those of every row."""

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


@runtime_checkable
class Observed(Protocol):
    """A view of which not every entry is observed, with its masks, made once."""

    shape: tuple[int, int]
    #: Which entries are observed (N×M), how many of every row, and of which rows enough.
    observed: Array
    counts: Array
    here: Array


class Lists(NamedTuple):
    """The k nearest rows of some rows, nearest first; and, where they differ, what each pair counts."""

    rows: Array
    indices: Array
    d: Array
    mass: Array | None = None


class Graph(Protocol):
    """A square sparse matrix: SciPy's on the host, an engine's own on a device."""

    shape: tuple[int, int]

    def __add__(self: Own, other: Own) -> Own: ...
    def __rmul__(self: Own, factor: float) -> Own: ...
    def __truediv__(self: Own, divisor: float) -> Own: ...
    def __matmul__(self, Y: Array) -> Array: ...


class Scaling(Protocol):
    """How the features of a view were made comparable; ``low`` is None for counts."""

    @property
    def low(self) -> Array | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def because(self) -> str: ...
    def apply(self, X: Matrix) -> Matrix: ...
    def undo(self, Z: Array) -> Array: ...


@runtime_checkable
class ScaledThere(Protocol):
    """Rows that are scaled where they are."""

    def scaled(self, scaling: Scaling | None, present: Array, dtype: np.dtype) -> Matrix:
        """z of these rows; those that are not present are zero."""


class Distances(Protocol):
    """One scaled view as a space of distances d; d = 1 is "no closer than a random pair"."""

    #: Rows the view has, and rows with distances to speak of (present, in a view that is not constant).
    present: Array
    comparable: Array
    #: Which entries are known; None: all.
    observed: Array | None
    #: How often every row counts; None: all alike.
    mass: Array | None
    #: Whether unseen rows may have unobserved entries.
    takes_holes: bool
    n_samples: int
    n_features: int

    def pairs(self, i: Array, j: Array) -> Array:
        """d of the pairs (i, j) of rows; 1 where a member is missing."""

    def nearest(self, k: int, seed: int = 0, threads: Threads | None = None) -> Lists:
        """The k nearest rows of every comparable row."""

    def fused_nearest(
        self,
        views: list[Any],
        weights: Array,
        k: int,
        neighbors: list[Array],
        seed: int,
        threads: Threads | None = None,
    ) -> tuple[Array, Array]:
        """The k nearest rows of every row under the weighted sum of the distances of such views.

        ``neighbors`` holds the lists of every view, among which a large search looks as well.
        """

    def rows(self, chosen: Array) -> Distances:
        """The same view of some of the rows."""

    def half(self, columns: Array) -> Distances:
        """The same rows seen through some of the features."""

    def halves(self, columns: Array, others: Array) -> tuple[Distances, Distances]:
        """`half` of these and of all other features."""

    def distinct(self, first: Array, mass: Array | None) -> Distances:
        """The same view of some of the rows, each of which counts as often as ``mass`` says."""

    def codes(self) -> Array:
        """A number for every row; rows that are identical in this view have the same."""

    def to_new(self, Z: Matrix, observed: Array | None, step: int) -> Iterator[tuple[Array, Array]]:
        """d from unseen rows to every row, ``step`` rows at a time, and bounds of its rounding errors."""

    def unit_sums(self) -> Matrix:
        """The rows with unit L1 norm, as a pass of the factorisation reads them."""

    def for_model(self, sparse: bool) -> Distances:
        """What a fitted model keeps: on the host (sparse where the view came so), tied to no engine."""


class Engine(Protocol):
    """Where a fit computes: it brings the views there. What it makes of them knows where it is."""

    def loop_views(
        self,
        views: Views,
        fit: Callable[[Views], list[Found]],
        scaled: Callable[[list[Found]], list[Matrix]],
        asked: npt.DTypeLike | None,
        dtype: np.dtype,
    ) -> tuple[list[Matrix], list[Matrix], list[Found]]:
        """Scaled views for the loop of WMNMF, the same on the host for its model, and their scalings.

        ``fit`` finds how each view is scaled, ``scaled`` does it on the host.
        """

    def bring(
        self, views: Views, asked: npt.DTypeLike | None, dtype: np.dtype
    ) -> tuple[Views, np.dtype]:
        """The views where this engine computes, and its precision (``asked`` is the user's wish)."""

    def distances(self, Z: Matrix, present: Array, unit_rows: bool) -> Distances:
        """The distances between rows of z; halves of views with ``unit_rows`` get unit rows again."""

    def factor_rows(self, view: Distances) -> Matrix:
        """`Distances.unit_sums` where the factorisation runs."""


@dataclass(frozen=True)
class EngineSpec:
    """How an engine is opened, and what it takes; a spec needs none of the engine's packages."""

    #: The engine for the length of a fit, from the device asked for and from what drops the results of
    #: a fit that the memory of the engine had no room for.
    opened: Callable[[str, Callable[[], None]], AbstractContextManager[Engine]]
    #: Whether RobustWMNMF takes views with unobserved entries (NaN inside rows).
    takes_holes: bool = False
    #: Whether views may be graphs, kernels or distances.
    takes_relations: bool = False
    #: Whether the state of a fit can be written while it runs.
    checkpoints: bool = True
    #: Whether rows in files or on other machines are worked on there.
    leaves_rows: bool = False
    #: Whether tensors may live on another device than the processor.
    takes_devices: bool = False
