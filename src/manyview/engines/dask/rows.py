"""The pass over a view whose row blocks lie on Dask workers.

The blocks of X and of the graph stay on the workers. In an iteration every block makes its step on V
and its sums; the rows of V that other blocks have edges to are picked where they are and sent; the
sums are added in the order of the blocks, so that their bits do not depend on the workers. Between
the iterations on one view and those on the next V is in the driver's memory: there ends what Dask
must do again when a worker is lost. All formulas are those of `rows.Rows`, run on every block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Sums
from manyview.engines.numpy.rows import Rows, add_sums, no_sums
from manyview.maths.solvers import Solver
from manyview.maths.terms import GraphPart, GraphTerm, Term

from .view import Block, DaskView, aligned

#: After so many iterations V passes through the driver: a lost worker costs no more than these again.
ANCHOR = 50


class BlockState(NamedTuple):
    """A block's V, and what the task that made it found on the way."""

    V: Array
    sums: Sums | None = None
    residuals: Array | None = None


@dataclass(frozen=True)
class VOnWorkers:
    """V on the workers: the future of a `BlockState` for every block."""

    states: list[Any]


@dataclass(frozen=True)
class Edges:
    """A regularizer cut by blocks: futures of its rows and of the rows of V that others ask for."""

    of: Term
    terms: list[Any]
    asked: list[Any]
    #: For every block: how many rows of V it needs from which others.
    needed: list[dict[int, int]]


class DaskRows(Rows):
    """`Rows` on workers. V goes out with `begin`, stays there, and comes back by `collect`."""

    def __init__(self, view: DaskView, solver: Solver):
        self.view, self.cluster = view, view.cluster
        self.dtype, self.shape = view.dtype, view.shape
        self._use(solver)
        self.sums, self.penalty = None, 0.0
        self.x_sq = view.squared_norms()
        self.residuals = self.x_sq

    def begin(
        self, V: Array, consensus: Array, fit_weight: Array, sum_weight: Array, g: Term, basis: bool
    ) -> None:
        self.basis, self.iterations = basis, 0
        self.view.find_homes()
        columns = (consensus, fit_weight.reshape(-1, 1), sum_weight.reshape(-1, 1))
        whole = [np.ascontiguousarray(column, dtype=self.dtype) for column in columns]
        given = [tuple(column[rows] for column in whole) for rows in self.view.rows]
        self.weighted_sq = float(np.dot(sum_weight.ravel().astype(float), self.x_sq))
        self.consensus_sq = float(np.vdot(consensus, consensus))
        if self.view.edges is None or self.view.edges.of is not g:
            self.view.edges = cut_term(g, self.view)
        self.edges = self.view.edges
        (self.given,) = self.cluster.begin(self.view.keep(given))
        self._advance(self._sent(V))

    def sum(self, V: Any) -> None:
        """The sums of the V that iterations began with."""
        parts = zip(self.view.blocks, self.V.states, self.given, strict=True)
        self._advance(self.view.at_home(_sum, [(*part, self.solver) for part in parts]))

    def step_V(self, U: Array, V: Any, a: float, beta: float, residuals: bool = False) -> Any:
        """The V that follows the last one; both are on the workers."""
        self.iterations += 1
        if self.iterations % ANCHOR == 0:
            self._advance(self._sent(self.collect(self.V)))
        rest = (self.cluster.keep(U), a, beta, self.solver, self.basis, residuals)
        parts = zip(self.view.blocks, self.V.states, self.given, self.linked, strict=True)
        self._advance(self.view.at_home(_step, [(*part, *rest) for part in parts]))
        if residuals:
            self.residuals = self._field("residuals", self.V.states)
        return self.V

    def all_residuals(self, U: Array, V: Any) -> Array:
        states = V.states if isinstance(V, VOnWorkers) else self._sent(V)
        rest = (self.cluster.keep(U), self.solver)
        parts = zip(self.view.blocks, states, strict=True)
        tasks = self.view.at_home(_all_residuals, [(*part, *rest) for part in parts])
        return np.concatenate(self.cluster.results(tasks))

    def collect(self, V: Any) -> Array:
        return self._field("V", V.states) if isinstance(V, VOnWorkers) else V

    def release(self) -> None:
        """Nothing here is kept for iterations alone."""

    def _field(self, name: str, states: list[Any]) -> Array:
        tasks = self.view.at_home(getattr, [(state, name) for state in states])
        return np.concatenate(self.cluster.results(tasks))

    def _sent(self, V: Array) -> list[Any]:
        V = np.ascontiguousarray(V, dtype=self.dtype)
        return self.view.keep([BlockState(V[rows]) for rows in self.view.rows])

    def _advance(self, states: list[Any]) -> None:
        """Go on to a new V: its states, the term at it, and the sums over all blocks."""
        edges, homes = self.edges, self.view.homes
        received = [
            [
                self.cluster.task(homes[c], _pick, states[c], edges.asked[c], b)
                for c in sorted(needs)
            ]
            for b, needs in enumerate(edges.needed)
        ]
        linked = self.view.at_home(_term_at, list(zip(states, edges.terms, received, strict=True)))
        small = self.view.at_home(_small, list(zip(states, linked, strict=True)))
        states, self.linked, (total,) = self.cluster.begin(
            states, linked, [self.cluster.task(None, _add_up, small)]
        )
        self.V = VOnWorkers(states)
        sums, self.penalty = self.cluster.result(total)
        if sums is not None:
            self.sums = Sums(*aligned(*sums))


def cut_term(g: Term, view: DaskView) -> Edges:
    """A graph's rows to the blocks they belong to; a term that is a sum over rows to all of them."""
    if not isinstance(g, GraphTerm):
        none: list[dict] = [{} for _ in view.rows]
        (terms,) = view.cluster.begin(view.keep([(g, None)] * len(view.rows)))
        return Edges(g, terms, none, none)
    starts = np.array([rows.start for rows in view.rows])
    terms, needed = [], []
    asked: list[dict[int, Array]] = [{} for _ in view.rows]
    for b, rows in enumerate(view.rows):
        A, wanted = neighborhood(g.A[rows], starts, b)
        terms.append((A, g.degrees[rows]))
        needed.append({c: len(which) for c, which in wanted.items()})
        for c, which in wanted.items():
            asked[c][b] = which
    sent, picks = view.cluster.begin(view.keep(terms), view.keep(asked))
    return Edges(g, sent, picks, needed)


def neighborhood(A: sp.csr_array, starts: Array, b: int) -> tuple[sp.csr_array, dict[int, Array]]:
    """The rows of A of block b with its own columns first, then the others it has edges to.

    Also which rows of which other blocks these are, in the order of the blocks.
    """
    n, columns = A.shape[0], np.unique(A.indices)
    owner = np.searchsorted(starts, columns, side="right") - 1
    others, owner = columns[owner != b], owner[owner != b]
    own = (A.indices >= starts[b]) & (A.indices < starts[b] + n)
    places = np.where(own, A.indices - starts[b], n + np.searchsorted(others, A.indices))
    local = sp.csr_array((A.data, places, A.indptr), shape=(n, n + len(others)))
    return local, {int(c): others[owner == c] - starts[c] for c in np.unique(owner)}


# --- what runs on workers ----------------------------------------------------------------------


def _rows(block: Block, solver: Solver) -> Rows:
    return Rows(block.X, solver, x_sq=block.x_sq)


def _sum(block: Block, state: BlockState, given: tuple, solver: Solver) -> BlockState:
    rows = _rows(block, solver)
    rows.consensus, _, rows.sum_weight = aligned(*given)
    (V,) = aligned(state.V)
    rows.sum(V)
    return BlockState(V, rows.sums)


def _step(
    block: Block,
    state: BlockState,
    given: tuple,
    linked: Term,
    U: Array,
    a: float,
    beta: float,
    solver: Solver,
    basis: bool,
    residuals: bool,
) -> BlockState:
    rows = _rows(block, solver)
    U, V, consensus, fit_weight, sum_weight = aligned(U, state.V, *given)
    if isinstance(linked, GraphPart):
        linked = GraphPart(*aligned(linked.pull, linked.degrees))
    rows.begin(V, consensus, fit_weight, sum_weight, linked, basis)
    V = rows.step_V(U, V, a, beta, residuals)
    return BlockState(V, rows.sums if basis else None, rows.residuals if residuals else None)


def _all_residuals(block: Block, state: BlockState, U: Array, solver: Solver) -> Array:
    return _rows(block, solver).all_residuals(*aligned(U, state.V))


def _pick(state: BlockState, asked: dict[int, Array], b: int) -> Array:
    return state.V[asked[b]]


def _term_at(state: BlockState, term: tuple, received: list[Array]) -> Term:
    g, degrees = term
    if degrees is None:
        return g
    return GraphPart(g @ np.vstack([state.V, *received]), degrees.astype(state.V.dtype, copy=False))


def _small(state: BlockState, linked: Term) -> tuple[Sums | None, float]:
    return state.sums, linked.value(*aligned(state.V))


def _add_up(parts: list[tuple[Any, float]]) -> tuple[Sums | None, float]:
    value = float(sum(value for _, value in parts))
    first = parts[0][0]
    if first is None:
        return None, value
    total = no_sums(*first.P.shape)
    for sums, _ in parts:
        add_sums(total, sums)
    return total, value
