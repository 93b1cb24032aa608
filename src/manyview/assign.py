"""From the consensus to labels: spectral clustering, k-means, or the largest component."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh, lobpcg
from sklearn.cluster import KMeans

from ._types import Array, Matrix
from .graph import affinity, nearest_neighbors

ASSIGNMENTS = ("spectral", "njw", "kmeans", "argmax")
#: Up to this many vertices a component's eigenvectors are computed densely: exact, and quick enough.
DENSE_COMPONENT = 200


def assign(
    consensus: Array, n_clusters: int, method: str, rng: np.random.Generator, n_init: int = 5
) -> Array:
    """Labels 0 … n_clusters−1 for the rows of V*.

    "spectral" embeds by the random-walk Laplacian of the nearest-neighbour graph of V* (the
    paper's step), "njw" the same with unit rows, "kmeans" clusters V* itself, "argmax" takes each
    row's largest component.
    """
    if method == "argmax":
        return consensus.argmax(axis=1)
    if method == "kmeans":
        return kmeans(consensus, n_clusters, rng, n_init)
    return spectral(consensus, n_clusters, rng, unit_rows=method == "njw", n_init=n_init)


def assign_new(new: Array, consensus: Array, labels: Array, method: str) -> Array:
    """Labels of unseen rows: the vote of their nearest rows in the consensus."""
    if method == "argmax":
        return new.argmax(axis=1)
    indices, _ = nearest_neighbors(consensus, n_neighbors(len(consensus)), new)
    votes = np.zeros((len(new), labels.max() + 1))
    np.add.at(votes, (np.arange(len(new))[:, None], labels[indices]), 1)
    # Ties go to the label of the nearer neighbours: later places count a little less.
    places = 1e-3 * np.arange(indices.shape[1])[None]
    np.subtract.at(votes, (np.arange(len(new))[:, None], labels[indices]), places)
    return votes.argmax(axis=1)


def n_neighbors(n_samples: int) -> int:
    """ceil(ln N), the customary neighbourhood of a spectral graph."""
    return max(1, int(np.ceil(np.log(n_samples))))


def spectral(
    X: Matrix,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    unit_rows: bool = False,
    k: int | None = None,
    kind: str = "binary",
    width: float | None = 1.0,
    n_init: int = 5,
) -> Array:
    """Spectral clustering of the rows of X: union k-NN graph, its leading eigenvectors, k-means.

    MATLAB's weights exp(−d²) all equal 1 at the paper's scale of V*: hence "binary".
    """
    k = n_neighbors(X.shape[0]) if k is None else k
    return spectral_from_graph(affinity(X, k, kind, width), n_clusters, rng, unit_rows, n_init)


def spectral_from_graph(
    A: sp.csr_array, n_clusters: int, rng: np.random.Generator, unit_rows: bool, n_init: int = 5
) -> Array:
    """Labels from a symmetric affinity: "rw" eigenvectors, or "njw" (unit rows) if asked."""
    degrees = A.sum(axis=1)
    # A vertex whose every edge underflowed has degree 0: it stays at the origin instead of dividing by 0.
    scale = np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
    S = sp.csr_array(A.multiply(scale[:, None]).multiply(scale[None]))
    E = leading_eigenvectors(S, n_clusters, rng)
    if unit_rows:
        norms = np.linalg.norm(E, axis=1, keepdims=True)
        E = np.divide(E, norms, out=np.zeros_like(E), where=norms > 0)
    else:
        E = E * scale[:, None] * np.sqrt(degrees.mean())
    return kmeans(E, n_clusters, rng, n_init)


def leading_eigenvectors(S: sp.csr_array, n_vectors: int, rng: np.random.Generator) -> Array:
    """Eigenvectors of the largest eigenvalues of a symmetric matrix, component by component.

    On a disconnected graph eigenvalue 1 repeats, and Lanczos finds a repeated eigenvalue once; the
    components each have it once. Where components outnumber ``n_vectors`` the largest are taken.
    """
    n_parts, part = connected_components(S, directed=False)
    sizes = np.bincount(part)
    members = np.split(np.argsort(part, kind="stable"), np.cumsum(sizes)[:-1])
    values, columns = [], []
    for c in np.argsort(-sizes, kind="stable")[:n_vectors]:
        rows = members[c]
        block = S if n_parts == 1 else S[rows][:, rows]
        found, vectors = _leading_pairs(block, min(n_vectors, len(rows)), rng)
        for value, vector in zip(found, vectors.T, strict=True):
            column = np.zeros(S.shape[0])
            column[rows] = vector
            values.append(value)
            columns.append(column)
    # Rounded, so that the eigenvalue 1 of every component ties and larger components come first.
    order = np.argsort(-np.round(values, 9), kind="stable")[:n_vectors]
    return np.column_stack([columns[i] for i in order])


def _leading_pairs(
    S: sp.csr_array, n_vectors: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    n = S.shape[0]
    if n <= max(DENSE_COMPONENT, 4 * n_vectors):
        values, vectors = np.linalg.eigh(S.toarray())
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


def kmeans(X: Array, n_clusters: int, rng: np.random.Generator, n_init: int) -> Array:
    seed = int(rng.integers(2**31))
    return KMeans(n_clusters, n_init=n_init, random_state=seed).fit_predict(X).astype(np.int64)
