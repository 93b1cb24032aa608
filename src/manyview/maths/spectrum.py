"""Leading eigenvectors of a sparse graph: normalization, repeated eigenvalues, diffusion maps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh, lobpcg

from manyview._arrays import converted, namespace, on_host
from manyview._types import Array

from .block_iteration import EXACT, Sketch, filtered_subspace

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
        # A part of a large graph on a device is found as exactly as the whole: as it counts.
        above = 0 if there and S.shape[0] > blocks_above else blocks_above
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
