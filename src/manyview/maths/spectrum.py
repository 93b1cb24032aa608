"""Leading eigenvectors of a sparse graph: block iteration for large ones, normalization, diffusion maps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackNoConvergence, eigsh, lobpcg

from manyview._arrays import converted, is_tensor, like, namespace, on_host
from manyview._types import Array

#: Rows of a block of vectors that are in double precision at a time, on the host and on a device.
BLOCK_ROWS, DEVICE_ROWS = 2**13, 2**18
#: Most vectors a block has beyond those wanted.
MOST_MORE = 64
#: Times columns are made orthonormal from their products, before QR does it.
MOST_TURNS = 4
#: Directions with a smaller share of the length of the longest are hardly known in double precision.
HARDLY_THERE = 1e-10
#: One step of a block iteration: p·S now + q·now + r·before.
Step = Callable[[Array, Array, float, float, float], Array]


@dataclass(frozen=True)
class Sketch:
    """How eigenvectors are found that only have to place points: as exactly as they count.

    ``step_of`` makes the step of a graph, ``weigh`` says what a vector counts by its eigenvalue.
    ``start`` are vectors nearby, such as those of a graph that is nearly the same.
    """

    step_of: Callable[[Any], Step] | None = None
    weigh: Callable[[Array], Array] | None = None
    tol: float = 1e-4
    start: Array | None = None

    def part(self, rows: Array) -> Sketch:
        """For some of the vertices."""
        if self.start is None:
            return self
        near = self.start[rows]
        return replace(self, start=near[:, (near != 0).any(axis=0)])


EXACT = Sketch()


def filtered_subspace(
    S: Any,
    n_vectors: int,
    rng: np.random.Generator,
    degree: int = 10,
    max_rounds: int = 30,
    sketch: Sketch = EXACT,
) -> tuple[Array, Array]:
    """Leading eigenpairs of S (spectrum in [−1, 1]) by Chebyshev-filtered block iteration.

    Each round multiplies a block of vectors by a polynomial that is small on the unwanted part of
    the spectrum, [−1, cut], and large above it, then solves the small problem in their span. A
    block finds repeated eigenvalues, and reads the graph once for all vectors. S may be on a device: there
    are the vectors, too, and here the values.
    """
    rounds = (n_vectors, degree, max_rounds, sketch)
    if not sp.issparse(S):
        return _iterated(
            partial(_plain_step, S), _first_block(S, rng, sketch.start, n_vectors), *rounds
        )
    # With neighbors near each other in memory, too, a product takes half the time.
    order = reverse_cuthill_mckee(S, symmetric_mode=True)
    ordered = _in_order(S, order)
    step = partial(_plain_step, ordered) if sketch.step_of is None else sketch.step_of(ordered)
    del ordered  # the step has what it needs
    # No name for the first block, which would be kept all the time.
    start = sketch.part(order).start
    values, Y = _iterated(step, _first_block(S, rng, start, n_vectors), *rounds)
    return values, Y[np.argsort(order)]


def _in_order(S: sp.csr_array, order: Array) -> sp.csr_array:
    """The same graph of vertices in another order, with one copy of it."""
    place = np.empty(len(order), dtype=S.indices.dtype)
    place[order] = np.arange(len(order))
    rows = sp.csr_array(S[order])
    ordered = sp.csr_array((rows.data, place[rows.indices], rows.indptr), shape=S.shape)
    ordered.sort_indices()
    return ordered


def _iterated(
    step: Step, Y: Array, n_vectors: int, degree: int, max_rounds: int, sketch: Sketch
) -> tuple[Array, Array]:
    cut = 0.5
    for _ in range(max_rounds):
        center, half = (cut - 1) / 2, (cut + 1) / 2
        before, now = Y, step(Y, Y, 1 / half, -center / half, 0)
        for _ in range(degree - 1):
            before, now = now, step(now, before, 2 / half, -2 * center / half, -1)
        Y = _orthonormal(now)
        SY = step(Y, Y, 1, 0, 0)
        values, turn = np.linalg.eigh(on_host(Y.T @ SY).astype(float, copy=False))
        turn = like(turn, Y)
        Y, SY = Y @ turn, SY @ turn
        gaps = SY[:, -n_vectors:] - Y[:, -n_vectors:] * like(values[-n_vectors:], Y)
        if _settled(values[-n_vectors:], gaps, sketch):
            break
        cut = float(np.clip(float(values[0]), -0.5, 0.999))
    return values[-n_vectors:], Y[:, -n_vectors:]


def _first_block(S: Any, rng: np.random.Generator, near: Array | None, n_vectors: int) -> Array:
    """Random vectors, more than are wanted, and those nearby where there are any."""
    n, size = S.shape[0], n_vectors + min(max(8, n_vectors // 2), MOST_MORE)
    size += (
        -size % 8
    )  # whole registers of the processor: a step takes a quarter less than with one fewer
    near = None if near is None else near[:, :size]
    missing = size if near is None else size - near.shape[1]
    if sp.issparse(S):
        random = rng.standard_normal((n, missing))
    else:
        random = S.random_block(missing, int(rng.integers(2**31)))
    if near is None:
        return random
    dtype = random.dtype if is_tensor(random) else near.dtype
    return namespace(near).hstack([converted(part, dtype) for part in (near, random / n**0.5)])


def _plain_step(S: Any, now: Array, before: Array, p: float, q: float, r: float) -> Array:
    product = p * (S @ now)
    if q:
        product += q * now
    return product + r * before if r else product


def _orthonormal(Y: Array) -> Array:
    """An orthonormal basis of the columns, from their products: a tenth of the time of QR.

    Products are those of double precision, of some rows at a time.
    """
    xp, rows = namespace(Y), DEVICE_ROWS if is_tensor(Y) else BLOCK_ROWS
    parts = [slice(start, start + rows) for start in range(0, len(Y), rows)]
    for _ in range(MOST_TURNS):
        products = np.zeros((Y.shape[1],) * 2)
        for part in parts:
            block = converted(Y[part], xp.float64)
            products += on_host(block.T @ block)
        lengths = np.sqrt(np.diagonal(products))
        lengths = np.where(lengths > 0, lengths, 1)
        sizes, turn = np.linalg.eigh(products / np.outer(lengths, lengths))
        # Directions that are hardly there grow a little each time, without the rounding errors of all.
        turn /= np.sqrt(np.maximum(sizes, HARDLY_THERE * sizes[-1]))
        turned, turn = xp.empty_like(Y), turn / lengths[:, None]
        for part in parts:
            block = converted(Y[part], xp.float64)
            turned[part] = block @ like(turn, block)
        Y = turned
        if sizes[0] > 1e-4:
            return Y
    return xp.linalg.qr(Y)[0]


def _settled(values: Array, gaps: Array, sketch: Sketch) -> bool:
    """Whether S y = ρ y is true as far as it matters: gaps by what the vectors count."""
    residuals = on_host((gaps**2).sum(axis=0) ** 0.5)
    if sketch.weigh is not None:
        weight = sketch.weigh(values.clip(0))
        residuals = residuals * weight / (float(weight.max()) or 1)
    return float(residuals.max()) <= sketch.tol


#: Up to this many vertices (or 20 per eigenvector) a component is solved densely: exact and quick.
DENSE_COMPONENT, DENSE_LIMIT = 200, 4000
#: Above this many vertices eigenvectors come from a block iteration, not from Lanczos.
BLOCK_ITERATION = 20_000
#: This many vectors of more vertices than are solved densely are found by a block iteration, too.
MANY_VECTORS = 100
#: Residuals, times what their vectors count for, at which points of a diffusion map stay where they are.
PLACING = 1e-2


@runtime_checkable
class GraphOnDevice(Protocol):
    """A symmetric graph on a device, which does there what SciPy does on the host."""

    shape: tuple[int, int]
    dtype: np.dtype

    def __add__(self, other: Self) -> Self: ...
    def __rmul__(self, factor: float) -> Self: ...
    def __truediv__(self, divisor: float) -> Self: ...
    def __matmul__(self, Y: Array) -> Array: ...
    def inverse_root_degrees(self) -> Array: ...
    def normalized(self) -> GraphOnDevice: ...
    def double(self) -> GraphOnDevice: ...
    def part(self, rows: Array) -> GraphOnDevice: ...
    def components(self) -> tuple[int, Array]: ...
    def placed(self, array: Array) -> Array: ...
    def random_block(self, n_columns: int, seed: int) -> Array: ...


Graph: TypeAlias = "sp.csr_array | GraphOnDevice"


def inverse_root_degrees(A: Graph) -> Array:
    """Degrees to the power −1/2; 0 for a vertex whose every edge underflowed, not a division by 0."""
    if isinstance(A, GraphOnDevice):
        return A.inverse_root_degrees()
    degrees = np.ravel(A.sum(axis=1)).astype(float)
    return np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)


def normalized(A: Graph) -> Graph:
    """D^{-1/2} A D^{-1/2}."""
    if isinstance(A, GraphOnDevice):
        return A.normalized()
    A, scale = sp.csr_array(A), inverse_root_degrees(A)
    weights = A.data * np.repeat(scale, np.diff(A.indptr))
    weights *= scale[A.indices]
    return sp.csr_array((weights, A.indices, A.indptr), shape=A.shape)  # who has an edge stays


def modularity(A: sp.csr_array, labels: Array) -> float:
    """Newman's modularity: the share of edge weight within clusters, less that expected by degrees."""
    edges, degrees = A.tocoo(), np.ravel(A.sum(axis=1))
    total = max(float(degrees.sum()), np.finfo(float).tiny)
    i, j = edges.coords
    within = float(edges.data[labels[i] == labels[j]].sum()) / total
    return within - float(((np.bincount(labels, degrees) / total) ** 2).sum())


def part_sizes(A: Graph) -> Array:
    """For every vertex, how many there are in its connected component."""
    _, part = components(A)
    return np.bincount(part)[part]


def components(A: Graph) -> tuple[int, Array]:
    """How many connected components there are, and which of them every vertex belongs to."""
    there = isinstance(A, GraphOnDevice)
    return A.components() if there else connected_components(A, directed=False)


def leading_eigenvectors(
    S: Graph,
    n_vectors: int,
    rng: np.random.Generator,
    sketch: Sketch = EXACT,
    *,
    dense_up_to: int = DENSE_LIMIT,
    blocks_above: int = BLOCK_ITERATION,
) -> tuple[Array, Array]:
    """The largest eigenvalues of a symmetric matrix and their vectors, component by component.

    On a disconnected graph eigenvalue 1 repeats, and Lanczos finds a repeated eigenvalue once; the
    components each have it once. Where components outnumber ``n_vectors`` the largest are taken.
    Components of up to ``dense_up_to`` vertices may be solved densely; those of more than
    ``blocks_above`` by block iteration, as exactly as ``sketch`` says.
    """
    there = isinstance(S, GraphOnDevice)
    n_parts, part = components(S)
    sizes = np.bincount(part)
    members = np.split(np.argsort(part, kind="stable"), np.cumsum(sizes)[:-1])
    chosen = [members[c] for c in np.argsort(-sizes, kind="stable")[:n_vectors]]
    found: list[tuple[float, Array, Array]] = []
    for rows in chosen:
        own = sketch
        block: Any = S
        if n_parts > 1:
            own = sketch.part(rows)
            block = S.part(rows) if there else S[rows][:, rows]  # type: ignore[index]
        pairs = _pairs_on_device if there else _leading_pairs
        # A part of a large graph is found as exactly as the whole: as it counts.
        above = 0 if S.shape[0] > blocks_above else blocks_above
        limits = (own, dense_up_to, above)
        values, vectors = pairs(block, min(n_vectors, len(rows)), rng, *limits)
        found += [(value, rows, vector) for value, vector in zip(values, vectors.T, strict=True)]
    # Rounded, so that the eigenvalue 1 of every component ties and larger components come first.
    order = np.argsort([-round(float(value), 9) for value, _, _ in found], kind="stable")[
        :n_vectors
    ]
    values = np.array([found[i][0] for i in order])
    if there:
        whole = S.placed(np.zeros((S.shape[0], len(order))))
        values = S.placed(values)
    else:
        dtype = np.result_type(np.float32, *(vector.dtype for _, _, vector in found))
        whole = np.zeros((S.shape[0], len(order)), dtype=dtype)
    for column, i in enumerate(order):
        _, rows, vector = found[i]
        whole[rows, column] = converted(vector, whole.dtype)
    return values, whole


def _leading_pairs(
    S: sp.csr_array,
    n_vectors: int,
    rng: np.random.Generator,
    sketch: Sketch,
    dense_up_to: int,
    blocks_above: int,
) -> tuple[Array, Array]:
    n, only_places = S.shape[0], sketch.weigh is not None
    if (n <= max(DENSE_COMPONENT, 20 * n_vectors) and n <= dense_up_to) or n <= n_vectors + 1:
        values, vectors = eigh(S.toarray(), subset_by_index=[n - n_vectors, n - 1])
    elif n > blocks_above or (only_places and n_vectors > MANY_VECTORS):
        values, vectors = filtered_subspace(S, n_vectors, rng, sketch=sketch)
    else:
        start = rng.random(n) + 0.1
        try:
            values, vectors = eigsh(S, n_vectors, which="LA", v0=start, maxiter=20 * n, tol=1e-8)
        except ArpackNoConvergence:
            block = rng.standard_normal((n, n_vectors))
            values, vectors = lobpcg(S, block, largest=True, maxiter=500, tol=1e-6)
    order = np.argsort(-values)[:n_vectors]
    vectors = vectors[:, order]
    # Signs are arbitrary; fixing them makes results comparable between runs.
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(order))])
    return values[order], vectors * np.where(signs == 0, 1, signs)


def _pairs_on_device(
    S: GraphOnDevice,
    n_vectors: int,
    rng: np.random.Generator,
    sketch: Sketch,
    dense_up_to: int,
    blocks_above: int,
) -> tuple[Array, Array]:
    """The largest eigenvalues (on the host) and their vectors, largest first."""
    n = S.shape[0]
    # Also where the block of vectors would be nearly the whole space.
    if n <= max(DENSE_COMPONENT, min(20 * n_vectors, dense_up_to), 3 * n_vectors):
        values, vectors = namespace(S.placed(np.ones(1))).linalg.eigh(S @ S.placed(np.eye(n)))
        values, vectors = on_host(values)[-n_vectors:], vectors[:, -n_vectors:]
    elif n <= blocks_above:  # where the host, too, is exact
        exact = replace(sketch, weigh=None, tol=1e-7)
        values, vectors = filtered_subspace(S.double(), n_vectors, rng, max_rounds=60, sketch=exact)
    else:
        values, vectors = filtered_subspace(S, n_vectors, rng, sketch=sketch)
    return values[::-1], namespace(vectors).flip(vectors, (1,))


def diffusion_weights(rho: Array) -> Array:
    """ρ² + ρ⁵ + ρ¹⁰ + ρ²⁰: what an eigenvector counts after two, five, ten and twenty steps."""
    return rho**2 + rho**5 + rho**10 + rho**20


def diffused(values: Array, vectors: Array) -> Array:
    """Rows of unit length: eigenvectors weighted by several diffusion times.

    Each eigenvector is multiplied by the `diffusion_weights` of its eigenvalue (0 where negative).
    """
    Y = vectors * diffusion_weights(values.clip(0))
    norms = (Y * Y).sum(axis=1, keepdims=True) ** 0.5
    return Y / namespace(Y).where(norms > 0, norms, 1)
