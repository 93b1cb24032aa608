"""The engine of Dask workers: views as blocks of rows, and the pass of an iteration over them.

The blocks of X and of the graph stay on the workers. In an iteration every block makes its step on V
and its sums; the rows of V that other blocks have edges to are picked where they are and sent; the
sums are added in the order of the blocks, so that their bits do not depend on the workers. Between
the iterations on one view and those on the next V is in the driver's memory: there ends what Dask
must do again when a worker is lost. All formulas are those of `rows.Rows`, run on every block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import getitem, matmul
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from manyview._types import Array, Matrix, Sums, Views
from manyview.engines.numpy.distances import Geometry
from manyview.engines.numpy.engine import Engine
from manyview.engines.numpy.neighbors import (
    equal_share,
    lists_in_block,
    streamed_neighbors,
    use_index,
)
from manyview.engines.numpy.neighbors import merged as in_order
from manyview.engines.numpy.presence import refuse_holes
from manyview.engines.numpy.rows import Rows, add_sums, no_sums
from manyview.engines.numpy.sources import UnitRows, as_source, is_streamed
from manyview.engines.protocols import Found, Pass, RowSource
from manyview.engines.threads import CHUNK_ROWS, Threads, blocks
from manyview.maths.solvers import Solver
from manyview.maths.terms import GraphPart, GraphTerm, Term

from .cluster import Cluster
from .source import DaskMatrix, as_block, together


class DaskEngine(Engine):
    """The host's engine with rows of the factorization on the workers of a cluster."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster

    def loop_views(
        self,
        views: Views,
        fit: Callable[[Views], list[Found]],
        scaled: Callable[[list[Found]], list[Matrix]],
        asked: npt.DTypeLike | None,
        dtype: np.dtype,
    ) -> tuple[list[Matrix], list[Matrix], list[Found]]:
        _, fitted, scalings = super().loop_views(views, fit, scaled, asked, dtype)
        refuse_holes(fitted, views.names)
        return [DaskView.of(self.cluster, X) for X in fitted], fitted, scalings

    def factor_rows(self, view: Geometry) -> Any:
        rows = view.unit_sums()
        # A view with unobserved entries is factorized in this process.
        return DaskView.of(self.cluster, rows) if isinstance(rows, UnitRows) else rows


#: An iteration has a task for every pair of blocks. This many blocks are enough for a view of less than
#: `LARGE` bytes, and this many for one of more: by its size alone, so that sums over blocks have the
#: same bits for any number of workers.
FEW, MANY, LARGE = 16, 64, 2**32


class RowBlock:
    """Some rows of a view on a worker, with their squared norms."""

    def __init__(self, X: Matrix):
        # One kind of memory wherever the rows come from: read-only ones would be compiled for again.
        self.X = X if sp.issparse(X) else np.require(X, requirements=["C", "A", "W"])
        self.x_sq = row_norms(self.X, squared=True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """From another worker."""
        X = state["X"]
        if sp.issparse(X):
            X = sp.csr_array(tuple(aligned(X.data, X.indices, X.indptr)), shape=X.shape)
            self.X, (self.x_sq,) = X, aligned(state["x_sq"])
        else:
            self.X, self.x_sq = aligned(X, state["x_sq"])

    def __sizeof__(self) -> int:
        """What Dask reads: it keeps work where the large values are."""
        parts = (self.X.data, self.X.indices) if sp.issparse(self.X) else (self.X,)
        return int(sum(part.nbytes for part in parts))


def aligned(*arrays: Array) -> list[Array]:
    """Arrays as this process would have made them.

    Those that came over the network may start at any byte. NumPy adds such numbers in other groups
    (sums then round differently); and they are read-only, so that loops would be compiled once more.
    """
    return [np.require(array, requirements=["A", "W"]) for array in arrays]


def _dask_rows(X: Any) -> DaskMatrix | None:
    """The user's dask array that a scaled view is made of."""
    while hasattr(X, "recipe"):
        X = X.X
    return X if isinstance(X, DaskMatrix) else None


class DaskView(RowSource):
    """A scaled view whose blocks of rows are futures on the workers of a cluster."""

    on_disk = True  # not read as a whole

    def __init__(self, cluster: Cluster, blocks: list[Any], rows: list[slice], like: Any):
        """``like`` has the view's shape and dtype."""
        self.cluster, self.blocks, self.rows = cluster, blocks, rows
        self.shape, self.dtype = like.shape, np.dtype(like.dtype)
        self.homes = cluster.homes(len(rows))
        #: The regularizer last used, cut by blocks.
        self.edges: Any = None

    @classmethod
    def of(cls, cluster: Cluster, X: Any) -> DaskView:
        """A view of any kind: a user's dask array, files that workers open, or rows of this process.

        The last are written to files first, so that a lost worker loses no data.
        """
        source, held = as_source(X), _dask_rows(X)
        if held is not None:
            parts, groups = held.blocks(), merged(held.rows, most_blocks(X))
            rows = [slice(held.rows[g[0]].start, held.rows[g[-1]].stop) for g in groups]
            tasks = [
                cluster.task(None, _scaled_block, [parts[b] for b in g], held.dtype, X.recipe(r))
                for g, r in zip(groups, rows, strict=True)
            ]
            return cls(cluster, cluster.begin(tasks)[0], rows, X)
        rows = cut(source)
        homes = cluster.homes(len(rows))
        if is_streamed(X):
            tasks = [
                cluster.task(h, _read_block, X, part) for h, part in zip(homes, rows, strict=True)
            ]
        else:
            folder = cluster.new_folder()
            paths = [write_block(source.read(part), folder / str(part.start)) for part in rows]
            tasks = [
                cluster.task(h, _open_block, path) for h, path in zip(homes, paths, strict=True)
            ]
        return cls(cluster, cluster.begin(tasks)[0], rows, source)

    def as_rows(self, solver: Solver) -> Pass:
        return DaskRows(self, solver)

    def find_homes(self) -> None:
        """Work goes where the blocks are, which changes when a worker is lost."""
        self.homes = self.cluster.where(self.blocks, self.homes)

    def at_home(self, work: Callable, args: list[tuple]) -> list[Any]:
        """Tasks work(*args[b]), each for the worker that has block b."""
        pairs = zip(self.homes, args, strict=True)
        return [self.cluster.task(home, work, *given) for home, given in pairs]

    def held(self, values: list[Any]) -> list[Any]:
        """Tasks whose values are these, one for each block."""
        return [self.cluster.keep(v, home) for v, home in zip(values, self.homes, strict=True)]

    def each(self, work: Callable, *args: Any) -> list[Any]:
        """work(X_b, *args) of every block, in their order."""
        tasks = [(block, work, *args) for block in self.blocks]
        return self.cluster.results(self.at_home(_on_matrix, tasks))

    def sum(self) -> float:
        return float(sum(self.each(_total)))

    def squared_norms(self) -> Array:
        """‖x_i‖² of every row, found when the blocks were made."""
        tasks = self.at_home(getattr, [(block, "x_sq") for block in self.blocks])
        return np.concatenate(self.cluster.results(tasks))

    def __matmul__(self, vector: Array) -> Array:
        return np.concatenate(self.each(matmul, vector))

    def take(self, chosen: Array) -> Matrix:
        """Some rows, ``chosen`` in ascending order, in this process."""
        parts = [chosen[(chosen >= r.start) & (chosen < r.stop)] - r.start for r in self.rows]
        tasks = [(block, getitem, part) for block, part in zip(self.blocks, parts, strict=True)]
        found = self.cluster.results(self.at_home(_on_matrix, tasks))
        return together(found)

    def read(self, rows: slice) -> Matrix:
        start, stop, _ = rows.indices(self.shape[0])
        return self.take(np.arange(start, stop))

    def neighbors(self, k: int) -> tuple[Array, Array]:
        """Indices and squared distances (N×k) of every row's nearest other rows.

        Every block is compared with every other, the best k of all are kept, and blocks travel once
        to each worker. Of many rows the coordinates along their leading directions are searched here.
        """
        k = min(k, self.shape[0] - 1)
        if use_index(self.shape[0]):
            return streamed_neighbors(self, k, threads=Threads(None))
        merged, share = [], equal_share(self.dtype)
        for b, block in enumerate(self.blocks):
            found = [
                self.cluster.task(home, _exact, held, block, k, self.rows[c].start, b == c)
                for c, (home, held) in enumerate(zip(self.homes, self.blocks, strict=True))
            ]
            merged.append(self.cluster.task(self.homes[b], in_order, found, k, share))
        indices, squared = zip(*self.cluster.results(merged), strict=True)
        return np.concatenate(indices), np.concatenate(squared)


def most_blocks(like: Any) -> int:
    n_bytes = int(np.prod(like.shape)) * np.dtype(like.dtype).itemsize
    return FEW if n_bytes < LARGE else MANY


def cut(source: Any) -> list[slice]:
    """Blocks of rows that are not cut yet."""
    n = source.shape[0]
    return list(blocks(slice(0, n), max(CHUNK_ROWS, -(-n // most_blocks(source)))))


def merged(rows: list[slice], most: int) -> list[list[int]]:
    """Consecutive blocks put together where there are more than ``most``."""
    if len(rows) <= most:
        return [[b] for b in range(len(rows))]
    groups: dict[int, list[int]] = {}
    for b, part in enumerate(rows):
        groups.setdefault(part.start * most // rows[-1].stop, []).append(b)
    return list(groups.values())


def write_block(X: Matrix, path: Path) -> Path:
    if sp.issparse(X):
        path = path.with_suffix(".npz")
        sp.save_npz(path, X, compressed=False)
        return path
    path = path.with_suffix(".npy")
    np.save(path, X)
    return path


# --- what runs on workers ----------------------------------------------------------------------


def _scaled_block(parts: list[Any], own: np.dtype, recipe: Callable[[Matrix], Matrix]) -> RowBlock:
    return RowBlock(recipe(together([as_block(part, own) for part in parts])))


def _read_block(source: Any, rows: slice) -> RowBlock:
    return RowBlock(source.read(rows))


def _open_block(path: Path) -> RowBlock:
    if path.suffix == ".npz":
        return RowBlock(sp.csr_array(sp.load_npz(path)))
    return RowBlock(np.load(path, allow_pickle=False))


def _on_matrix(block: RowBlock, work: Callable, *args: Any) -> Any:
    return work(block.X, *args)


def _total(X: Matrix) -> float:
    return float(X.sum(dtype=float))


def _exact(
    held: RowBlock, queries: RowBlock, k: int, first: int, same: bool
) -> tuple[Array, Array]:
    """The k rows of ``held`` nearest to each query, by their places in the view."""
    return lists_in_block(held.X, queries.X, k, first, first if same else None)


#: After this many iterations V passes through the driver: a lost worker costs no more than these again.
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
        (self.given,) = self.cluster.begin(self.view.held(given))
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
        return self.view.held([BlockState(V[rows]) for rows in self.view.rows])

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
        (terms,) = view.cluster.begin(view.held([(g, None)] * len(view.rows)))
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
    sent, picks = view.cluster.begin(view.held(terms), view.held(asked))
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


def _rows(block: RowBlock, solver: Solver) -> Rows:
    return Rows(block.X, solver, x_sq=block.x_sq)


def _sum(block: RowBlock, state: BlockState, given: tuple, solver: Solver) -> BlockState:
    rows = _rows(block, solver)
    rows.consensus, _, rows.sum_weight = aligned(*given)
    (V,) = aligned(state.V)
    rows.sum(V)
    return BlockState(V, rows.sums)


def _step(
    block: RowBlock,
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


def _all_residuals(block: RowBlock, state: BlockState, U: Array, solver: Solver) -> Array:
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
