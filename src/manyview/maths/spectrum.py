"""Leading eigenvectors of a sparse graph: normalisation, repeated eigenvalues, diffusion maps."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh, lobpcg

from manyview._arrays import namespace, on_host
from manyview._types import Array

from .subspace import EXACT, Graph, GraphOnDevice, Sketch, filtered_subspace

#: Up to this many vertices (or 20 per eigenvector) a component is solved densely: exact and quick.
DENSE_COMPONENT, DENSE_LIMIT = 200, 4000
#: Above this many vertices eigenvectors come from a block iteration, not from Lanczos.
BLOCK_ITERATION = 20_000
#: So many vectors of more vertices than are solved densely are found by a block iteration, too.
MANY_VECTORS = 100
#: Residuals, times what their vectors count for, at which points of a diffusion map stay where they are.
PLACING = 3e-3


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
    scale = inverse_root_degrees(A)
    return sp.csr_array(A.multiply(scale[:, None]).multiply(scale[None]))


def part_sizes(A: Graph) -> Array:
    """For every vertex, how many there are in its connected component."""
    there = isinstance(A, GraphOnDevice)
    _, part = connected_components(A.pattern() if there else A, directed=False)
    return np.bincount(part)[part]


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
    n_parts, part = connected_components(S.pattern() if there else S, directed=False)
    sizes = np.bincount(part)
    members = np.split(np.argsort(part, kind="stable"), np.cumsum(sizes)[:-1])
    found: list[tuple[float, Array, Array]] = []
    for c in np.argsort(-sizes, kind="stable")[:n_vectors]:
        rows = members[c]
        own = sketch if n_parts == 1 else sketch.part(rows)
        most, limits = min(n_vectors, len(rows)), (own, dense_up_to, blocks_above)
        if isinstance(S, GraphOnDevice):
            block = S if n_parts == 1 else S.part(rows)
            values, vectors = _on_device(block, most, rng, *limits)
        else:
            block = S if n_parts == 1 else S[rows][:, rows]
            values, vectors = _leading_pairs(block, most, rng, *limits)
        found += [(value, rows, vector) for value, vector in zip(values, vectors.T, strict=True)]
    # Rounded, so that the eigenvalue 1 of every component ties and larger components come first.
    order = np.argsort([-round(value, 9) for value, _, _ in found], kind="stable")[:n_vectors]
    vectors = np.zeros((S.shape[0], len(order)))
    vectors = S.placed(vectors) if there else vectors
    for column, i in enumerate(order):
        _, rows, vector = found[i]
        vectors[rows, column] = vector
    values = np.array([found[i][0] for i in order])
    return S.placed(values) if there else values, vectors


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
    n_vectors: int,
    rng: np.random.Generator,
    sketch: Sketch,
    dense_up_to: int,
    blocks_above: int,
) -> tuple[Array, Array]:
    """Of a connected graph on a device: values for the host, vectors there."""
    n = S.shape[0]
    # Where the block of vectors would be nearly the whole space, too.
    if n <= max(DENSE_COMPONENT, min(20 * n_vectors, dense_up_to), 3 * n_vectors):
        dense = S @ S.placed(np.eye(n))
        values, vectors = namespace(dense).linalg.eigh(dense)
        values, vectors = values[-n_vectors:], vectors[:, -n_vectors:]
    elif n <= blocks_above:  # where the host, too, is exact
        values, vectors = filtered_subspace(
            S.double(), n_vectors, rng, max_rounds=60, sketch=Sketch(tol=1e-7)
        )
    else:
        values, vectors = filtered_subspace(S, n_vectors, rng, sketch=sketch)
    return on_host(values.flip(0)), vectors.flip(1).to(S.dtype)


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
