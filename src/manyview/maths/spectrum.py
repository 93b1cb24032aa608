"""Leading eigenvectors of a sparse graph: normalisation, repeated eigenvalues, diffusion maps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh, lobpcg

from manyview._arrays import converted, namespace, on_host
from manyview._types import Array

from .block_iteration import EXACT, Sketch, block_size, filtered_subspace
from .subspaces import filtered_parts

#: Up to this many vertices (or 20 per eigenvector) a component is solved densely: exact and quick.
DENSE_COMPONENT, DENSE_LIMIT = 200, 4000
#: Above this many vertices eigenvectors come from a block iteration, not from Lanczos.
BLOCK_ITERATION = 20_000
#: So many vectors of more vertices than are solved densely are found by a block iteration, too.
MANY_VECTORS = 100
#: Residuals, times what their vectors count for, at which points of a diffusion map stay where they are.
PLACING = 3e-3


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
    n_parts, part = components(S)
    sizes = np.bincount(part)
    members = np.split(np.argsort(part, kind="stable"), np.cumsum(sizes)[:-1])
    chosen = [members[c] for c in np.argsort(-sizes, kind="stable")[:n_vectors]]
    if isinstance(S, GraphOnDevice):
        return _on_device(S, chosen, n_vectors, rng, sketch, dense_up_to, blocks_above)
    found: list[tuple[float, Array, Array]] = []
    for rows in chosen:
        own = sketch if n_parts == 1 else sketch.part(rows)
        block = S if n_parts == 1 else S[rows][:, rows]
        limits = (own, dense_up_to, blocks_above)
        values, vectors = _leading_pairs(block, min(n_vectors, len(rows)), rng, *limits)
        found += [(value, rows, vector) for value, vector in zip(values, vectors.T, strict=True)]
    order = _largest([value for value, _, _ in found], n_vectors)
    dtype = np.result_type(np.float32, *(vector.dtype for _, _, vector in found))
    vectors = np.zeros((S.shape[0], len(order)), dtype=dtype)
    for column, i in enumerate(order):
        _, rows, vector = found[i]
        vectors[rows, column] = vector
    return np.array([found[i][0] for i in order]), vectors


def _largest(values: Iterable[float], n_vectors: int) -> Array:
    """Places of the largest values of components that are in the order of their sizes."""
    # Rounded, so that the eigenvalue 1 of every component ties and larger components come first.
    return np.argsort([-round(value, 9) for value in values], kind="stable")[:n_vectors]


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


def _on_device(
    S: GraphOnDevice,
    members: list[Array],
    n_vectors: int,
    rng: np.random.Generator,
    sketch: Sketch,
    dense_up_to: int,
    blocks_above: int,
) -> tuple[Array, Array]:
    """`leading_eigenvectors` of a graph on a device, whose largest components have these members."""
    # Where the block of vectors would be nearly the whole space, too.
    dense = max(DENSE_COMPONENT, min(20 * n_vectors, dense_up_to), 3 * n_vectors)
    large = [rows for rows in members if len(rows) > dense]
    found = _large_parts(S, large, n_vectors, rng, sketch, blocks_above) if large else []
    for rows in members[len(large) :]:
        part = S.part(rows)
        matrix = part @ part.placed(np.eye(len(rows)))
        values, vectors = namespace(matrix).linalg.eigh(matrix)
        found.append((values[-n_vectors:], vectors[:, -n_vectors:]))
    values = np.concatenate([on_host(part)[::-1] for part, _ in found])
    order = _largest(values, n_vectors)
    whose = np.repeat(np.arange(len(found)), [len(part) for part, _ in found])[order]
    device = found[0][1].device
    xp = namespace(found[0][1])
    whole = xp.zeros((S.shape[0], len(order)), dtype=S.dtype, device=device)
    for p, (rows, (_, vectors)) in enumerate(zip(members, found, strict=True)):
        columns = np.flatnonzero(whose == p)  # a component's own come in its order, largest first
        largest_first = xp.flip(vectors, (1,))[:, : len(columns)]
        at = xp.as_tensor(rows, device=device)[:, None]
        whole[at, columns[None]] = converted(largest_first, S.dtype)
    return S.placed(values[order]), whole


def _large_parts(
    S: GraphOnDevice,
    members: list[Array],
    n_vectors: int,
    rng: np.random.Generator,
    sketch: Sketch,
    blocks_above: int,
) -> list[tuple[Array, Array]]:
    """Values (ascending) and vectors of components too large for a dense matrix, all at once."""
    exact = S.shape[0] <= blocks_above  # where the host, too, is exact
    if len(members) > 1 or len(members[0]) < S.shape[0]:
        S = S.part(np.concatenate(members))
    S = S.double() if exact else S
    block = S.random_block(block_size(n_vectors), int(rng.integers(2**31)))
    sizes, begin = [len(rows) for rows in members], 0
    for rows in members:
        near = sketch.part(rows).start
        if near is not None:
            part = block[begin : begin + len(rows)]
            part /= len(rows) ** 0.5
            part[:, : near.shape[1]] = near[:, : part.shape[1]]
        begin += len(rows)
    if exact:
        return filtered_parts(S, sizes, block, n_vectors, 1e-7, max_rounds=60)
    return filtered_parts(S, sizes, block, n_vectors, sketch.tol, sketch.weigh)


def diffusion_weights(rho: Array) -> Array:
    """ρ² + ρ⁵ + ρ¹⁰ + ρ²⁰: what an eigenvector counts after two, five, ten and twenty steps."""
    return rho**2 + rho**5 + rho**10 + rho**20


def diffusion_map(
    A: Graph, n_vectors: int, rng: np.random.Generator, sketch: Sketch | None = None
) -> Array:
    """Rows of unit length: eigenvectors of the normalised graph, weighted by several diffusion times.

    Each eigenvector is multiplied by the `diffusion_weights` of its eigenvalue (0 where negative).
    """
    sketch = Sketch(weigh=diffusion_weights) if sketch is None else sketch
    return diffused(*leading_eigenvectors(normalized(A), min(n_vectors, A.shape[0]), rng, sketch))


def diffused(values: Array, vectors: Array) -> Array:
    """The rows of a diffusion map from eigenvalues and eigenvectors."""
    Y = vectors * diffusion_weights(values.clip(0))
    norms = (Y * Y).sum(axis=1, keepdims=True) ** 0.5
    return Y / namespace(Y).where(norms > 0, norms, 1)
