"""The loop of `WMNMF` as values: its settings, what it minimises, and where it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from manyview._types import Array, Factors, storable
from manyview.engines.numpy.masked import Fill
from manyview.engines.threads import Threads
from manyview.maths.solvers import Solver
from manyview.maths.terms import Term


@dataclass(frozen=True)
class Settings:
    """The numbers and switches of the loop; `WMNMF` describes them."""

    p: float
    beta: float
    max_iter: int
    inner_iter: int
    tol: float = 0.0
    #: The share of the objective below which an iteration on a view is the last one.
    inner_tol: float = 0.0
    rescale: bool = True
    #: Whether U moves; placing unseen rows keeps it.
    learn_basis: bool = True
    learn_view_weights: bool = True
    learn_sample_weights: bool = True


@dataclass(frozen=True)
class Problem:
    """The views of one fit, their terms, and the steps on them."""

    views: Sequence[Any]
    terms: Sequence[Term]
    solver: Solver
    #: ``fill(s, V)`` gives rows that view s hardly observes the coefficients of their stand-ins.
    fill: Fill | None = None
    threads: Threads | None = None
    #: The mean error of an entry of each view, where that is known from the fitted rows.
    entry_errors: Sequence[float] | None = None


@dataclass(frozen=True)
class LoopState:
    """What moves in the loops of both methods: parts U, coefficients V, and their consensus V*."""

    U: tuple[Array, ...]
    V: tuple[Array, ...]
    consensus: Array


class Report(dict[str, Any]):
    """An iteration as a callback gets it: its numbers by name, and the state of the loop.

    A callback may keep reports: they let go of the state when it returns.
    """

    state: LoopState | None = None


@storable
@dataclass(frozen=True)
class State(LoopState):
    """Where the loop is before an inner iteration: everything that follows depends on this alone."""

    alpha: Array
    w: Array
    #: ‖x_i − Uv_i‖² of the rows of every view, after its last iteration.
    residuals: tuple[Array, ...]
    #: The terms of the objective by view: weighted error, gap to the consensus, regulariser.
    errors: tuple[Any, ...]
    gaps: tuple[Any, ...]
    penalties: tuple[Any, ...]
    #: The round, view and iteration that come next.
    round: int = 1
    view: int = 0
    iteration: int = 1
    #: The objective at the end of the round before.
    previous: Any = None
    #: The sums over rows of the view whose turn it is, in a state that is saved.
    sums: tuple[Array, ...] | None = None
    #: The lines recorded so far, in a state that is saved.
    history: dict[str, Array] = field(default_factory=dict)

    @property
    def factors(self) -> Factors:
        return Factors(self.U, self.V, self.consensus, self.alpha, self.w)


def replaced(parts: tuple[Any, ...], s: int, new: Any) -> tuple[Any, ...]:
    """The same tuple with another part for view s."""
    return (*parts[:s], new, *parts[s + 1 :])
