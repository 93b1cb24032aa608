"""From the consensus to labels: spectral clustering, k-means, or the largest component."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from manyview._arrays import is_tensor, namespace, on_host, one_hot
from manyview._types import Array, Matrix
from manyview._warn import warn_user
from manyview.engines.affinity import affinity, inverse_distances, links, nearest_neighbors
from manyview.engines.optional import engine_part
from manyview.maths.spectrum import (
    Graph,
    inverse_root_degrees,
    leading_eigenvectors,
    normalized,
    part_sizes,
)

from .seeding import SharedSeeding

#: Above this many rows, spectral labels are those of a sample of rows, and the vote of these.
LANDMARKS_ABOVE, LANDMARKS = 20_000, 5_000
#: Above this many rows, k-means starts are tried on a sample of rows.
KMEANS_SAMPLE = 20_000
#: Rows × coordinates × clusters above which starts are tried on fewer rows and in fewer coordinates …
EASY = 2 * 10**7
#: … this many rows per cluster and in all at least, and coordinates with this share of the variance.
ROWS_PER_CLUSTER, FEWEST_ROWS, KEPT_VARIANCE = 40, 5_000, 0.98
#: A part of the graph is small with fewer rows than one in so many of an average cluster.
SMALL = 4
ASSIGNMENTS = ("spectral", "njw", "kmeans", "argmax")


def assign(
    consensus: Array,
    n_clusters: int,
    method: str,
    rng: np.random.Generator,
    n_init: int = 5,
    *,
    landmarks: int = LANDMARKS,
    above: int = LANDMARKS_ABOVE,
    connect: bool = False,
) -> Array:
    """Labels 0 … n_clusters−1 for the rows of V*.

    "spectral" embeds by the random-walk Laplacian of the nearest-neighbour graph of V* (the
    paper's step), "njw" the same with unit rows, "kmeans" clusters V* itself, "argmax" takes each
    row's largest component. Of more rows than ``above`` the first two embed ``landmarks`` only.
    With ``connect`` small parts of that graph are tied to the rest; without, they are told of.
    """
    if method == "argmax":
        return consensus.argmax(axis=1)
    if method == "kmeans":
        return kmeans(consensus, n_clusters, rng, n_init)
    # Parts of a graph are tied on the host: they are few, and rare.
    chosen = consensus = on_host(consensus) if connect else consensus
    if len(consensus) > above:
        size = max(landmarks, 100 * n_clusters)
        chosen = consensus[np.sort(rng.choice(len(consensus), size, replace=False))]
    A = consensus_graph(chosen, n_clusters, connect)
    labels = spectral_from_graph(A, n_clusters, rng, method == "njw", n_init)
    return labels if chosen is consensus else assign_new(consensus, chosen, labels, method)


def consensus_graph(V: Array, n_clusters: int, connect: bool) -> Graph:
    """The neighbour graph of V*, whose small parts are tied to the rest, or told of.

    A part of the graph has an eigenvector of its own. One of a few rows takes it from a cluster, and
    two true clusters are then read as one.
    """
    k, few = n_neighbors(len(V)), len(V) / (SMALL * n_clusters)
    A = affinity(V, k, "binary")
    sizes = part_sizes(A)
    alone = sizes < few
    if not alone.any():
        return A
    if connect:
        return tied(A, V, alone, k)
    n_parts = round(float((1 / sizes).sum()))
    warn_user(
        f"the neighbour graph of the consensus falls into {n_parts} parts, the smallest of "
        f"{int(sizes.min())} observations: a part may take a cluster of its own, and two true clusters "
        "be read as one; set connect=True, or look at several seeds"
    )
    return A


def tied(A: sp.csr_array, V: Array, alone: Array, k: int) -> sp.csr_array:
    """The graph with every row of ``alone`` linked to its k nearest rows of the rest as well."""
    rest, loose = np.flatnonzero(~alone), np.flatnonzero(alone)
    found = links(V[loose], V[rest], k).tocoo()
    more = sp.csr_array((found.data, (loose[found.row], rest[found.col])), shape=A.shape)
    return sp.csr_array(A.maximum(more).maximum(more.T))


def assign_new(
    new: Array, consensus: Array, labels: Array, method: str, *, exact: bool = False
) -> Array:
    """Labels of unseen rows: the vote of their nearest rows in the consensus.

    With ``exact`` votes weigh 1/d², so that a row of the consensus gets its own label.
    """
    if method == "argmax":
        return new.argmax(axis=1)
    indices, squared = nearest_neighbors(consensus, n_neighbors(len(consensus)), new)
    clusters = int(labels.max()) + 1
    closeness = inverse_distances(squared).T[..., None] if exact else [1.0] * indices.shape[1]
    # Ties go to the label of the nearer neighbours: later places count a little less.
    votes: Any = sum(
        (1 - 1e-3 * place) * closeness[place] * one_hot(labels[indices[:, place]], clusters)
        for place in range(indices.shape[1])
    )
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
    _, E = leading_eigenvectors(normalized(A), n_clusters, rng)
    if unit_rows:
        norms = (E * E).sum(axis=1, keepdims=True) ** 0.5
        E = E / namespace(E).where(norms > 0, norms, 1)
    else:
        E = E * inverse_root_degrees(A)[:, None] * float(A.sum() / len(E)) ** 0.5
    return kmeans(E, n_clusters, rng, n_init)


def kmeans(
    X: Array,
    n_clusters: int,
    rng: np.random.Generator,
    n_init: int,
    mass: Array | None = None,
    *,
    sample: int = KMEANS_SAMPLE,
) -> Array:
    """Labels of the rows, each of which counts as often as ``mass`` says (on the host).

    Of more rows than ``sample`` starts are tried on so many.
    """
    if is_tensor(X):
        return engine_part("torch", "kmeans").kmeans(X, n_clusters, rng, n_init, sample)
    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():
        # Fewer distinct points than clusters: whoever asks for labels tells of empty clusters once.
        warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
        if len(X) <= sample and X.size * n_clusters <= EASY:
            model = KMeans(n_clusters, n_init=n_init, random_state=seed)
        else:
            centres = _best_start(X, n_clusters, seed, n_init, mass, sample)
            model = KMeans(n_clusters, init=centres, n_init=1, random_state=seed)
        return model.fit_predict(X, None, mass).astype(np.int64)


def _best_start(
    X: Array, n_clusters: int, seed: int, n_init: int, mass: Array | None, sample: int
) -> Array:
    """Centres of the best of several starts, which are tried on a sample of rows.

    With many clusters the sample is smaller, and its rows are seen along the directions in which they
    vary: seeding grows with rows × coordinates × clusters, and has to find the region of a good start only.
    """
    hard = X.size * n_clusters > EASY
    most = max(FEWEST_ROWS, ROWS_PER_CLUSTER * n_clusters) if hard else sample
    rows = np.arange(len(X))
    if len(X) > most:
        rows = np.random.default_rng(seed).choice(len(X), most, replace=False)
    weight = None if mass is None else mass[rows]
    search = KMeans(n_clusters, n_init=n_init, random_state=seed)
    labels = _tried(search, _along_leading(X[rows]), weight) if hard else None
    if labels is None or len(np.unique(labels)) < n_clusters:
        return search.fit(X[rows], None, weight).cluster_centers_
    share = np.ones(len(rows)) if weight is None else weight
    members = sp.csr_array((share, (labels, np.arange(len(rows)))))
    return np.asarray(members @ X[rows]) / np.ravel(members.sum(axis=1))[:, None]


def _tried(search: KMeans, X: Array, weight: Array | None) -> Array:
    """Labels of the best of several starts."""
    if SharedSeeding.fits(len(X)):
        search = clone(search).set_params(init=SharedSeeding(X, weight))
    return search.fit(X, None, weight).labels_


def _along_leading(X: Array) -> Array:
    """Rows in single precision along the directions that hold nearly all of their variance."""
    centred = X - X.mean(axis=0)
    variance, directions = np.linalg.eigh(centred.T @ centred)
    kept = np.cumsum(variance) > (1 - KEPT_VARIANCE) * variance.sum()
    return (centred @ directions[:, kept]).astype(np.float32)
