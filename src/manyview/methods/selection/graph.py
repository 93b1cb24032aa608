"""How many clusters the fused graph has: its eigenvalues, and clusterings of parts of it.

Both are compared with *references*: clouds without clusters that have the size, the shape (joint
covariance) and the missing rows of the data. What such a cloud shows as well is no evidence.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform
from sklearn.exceptions import ConvergenceWarning

from manyview._types import Array
from manyview.engines.numpy.distances import Geometry
from manyview.engines.protocols import Distances
from manyview.maths.agreement import VECTORS
from manyview.maths.spectrum import diffusion_weights, leading_eigenvectors, normalized
from manyview.methods.agree import fused_graphs
from manyview.methods.assign import kmeans
from manyview.methods.resampling import pairwise_ari, resamples

#: Share of the rows in a run; runs on each reference; k-means starts.
FRACTION, REFERENCE_RUNS, STARTS = 0.8, 5, 3
#: Consensus between these two is ambiguous.
AMBIGUOUS = (0.1, 0.9)
#: Rows whose pairs make up the consensus matrix.
PAIR_ROWS = 600


@dataclass(frozen=True)
class Curves:
    """One number per candidate: data, its error, mean and deviation of the references."""

    score: Array
    error: Array
    reference: Array
    spread: Array
    details: dict[str, Array]


# --- references --------------------------------------------------------------------------------


def reference_graph(
    views: list[Geometry], fused: sp.csr_array, alpha: Array, rng: np.random.Generator
) -> sp.csr_array:
    """The fused graph of a `cloud`."""
    return fused_graphs(cloud(views, fused, rng), alpha, [], 0)[0]


def cloud(views: list[Geometry], fused: sp.csr_array, rng: np.random.Generator) -> list[Distances]:
    """Gaussian rows with the joint covariance of the views, missing where theirs are.

    Rows y = (1/√n) Σ_j g_j (z_j − mean) with independent normal g have the covariance of z, and
    with the same g in every view the covariances between views as well: no covariance is formed.
    """
    n = views[0].n_samples
    G = rng.standard_normal((n, n))
    found: list[Distances] = []
    for view in views:
        row = _stand_ins(view.present, fused)
        centred = np.where(row[:, None] >= 0, _centred(view)[row], 0)
        scale = np.sqrt(max(1, int((row >= 0).sum())))
        found.append(Geometry((G @ centred) / scale, view.present))
    return found


def _stand_ins(present: Array, fused: sp.csr_array) -> Array:
    """Of every row itself, or the present row nearest to one that is missing; −1 if none is linked.

    Were missing rows left out, what two views share would be counted in the rows they have in common,
    and each by itself in more: clouds would have less in common than the data, and be rounder.
    """
    rows = np.arange(len(present))
    if present.all():
        return rows
    links = fused * present[None, :]
    nearest = np.asarray(links.argmax(axis=1)).ravel()
    linked = np.asarray(links.max(axis=1).toarray()).ravel() > 0
    return np.where(present, rows, np.where(linked, nearest, -1))


def _centred(view: Geometry) -> Array:
    """Rows minus their mean; 0 where unobserved or missing. At most n columns with the same products."""
    Z = view.Z.toarray() if sp.issparse(view.Z) else view.Z
    known = np.broadcast_to(view.present[:, None], Z.shape)
    if view.observed is not None:
        known = known & view.observed
    mean = np.where(known, Z, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    Z = np.where(known, Z - mean, 0)
    if Z.shape[1] <= Z.shape[0]:
        return Z
    values, vectors = np.linalg.eigh(Z @ Z.T)
    return vectors * np.sqrt(np.maximum(values, 0))


# --- eigengap ----------------------------------------------------------------------------------


def leading_weights(graph: sp.csr_array, count: int, rng: np.random.Generator) -> Array:
    """h(ρ) of the ``count`` largest eigenvalues ρ of the normalised graph, 0 beyond its size."""
    values, _ = leading_eigenvectors(normalized(graph), min(count, graph.shape[0]), rng)
    return np.append(_weights(values), np.zeros(count - len(values)))


def eigengap(own: Array, references: Array, candidates: list[int]) -> Curves:
    """h(ρ_K) − h(ρ_{K+1}), ρ the eigenvalues of the normalised graph, h the embedding's own weights.

    With h(ρ) = (ρ² + ρ⁵ + ρ¹⁰ + ρ²⁰)/4 the gap is in [0, 1], and tiny differences near ρ = 1 (two
    groups of clusters barely joined) do not outweigh the place where coherent clusters end.
    ``own`` and the rows of ``references`` are `leading_weights` of the graph and of the references.
    """
    K = np.array(candidates)
    others = references[:, K - 1] - references[:, K]
    score = own[K - 1] - own[K]
    spread = others.std(axis=0, ddof=1)
    # Among many candidates some spread is small by accident: none counts as less than their mean.
    spread = np.maximum(spread, spread.mean())
    return Curves(score, np.full(len(K), np.nan), others.mean(axis=0), spread, {})


def separation(own: Array, references: Array, candidates: list[int]) -> Array:
    """By how many of their standard deviations h(ρ_K) exceeds the references'.

    K clusters need K eigenvalues near 1: their least says how well the graph comes apart into K.
    """
    others = references[:, np.array(candidates) - 1]
    # A floor: eigenvalues of one cloud after the other may agree by accident.
    spread = np.maximum(others.std(axis=0, ddof=1), 0.005)
    return (own[np.array(candidates) - 1] - others.mean(axis=0)) / spread


def surplus(own: Array, references: Array, candidates: list[int]) -> float:
    """How far h(ρ) after the largest candidate is on the way from the references' to 1.

    Near 1 all candidates are too few: the graph comes apart into more, and no gap is among them.
    """
    usual = references[:, candidates[-1]].mean()
    return float((own[candidates[-1]] - usual) / max(1 - usual, 0.05))


def n_components(graph: sp.csr_array) -> int:
    """Connected parts of the graph that hold at least 1% of its vertices."""
    _, part = connected_components(graph, directed=False)
    return int((np.bincount(part) >= 0.01 * graph.shape[0]).sum())


def _weights(values: Array) -> Array:
    """h(ρ): the weights of the embedding, of which the largest is 1."""
    return diffusion_weights(np.clip(values, 0, 1)) / 4


# --- stability ---------------------------------------------------------------------------------


def resampled(
    graph: sp.csr_array,
    references: list[sp.csr_array],
    candidates: list[int],
    n_runs: int,
    rng: np.random.Generator,
) -> Curves:
    """Mean adjusted Rand index between clusterings of random parts of the graph, for every K.

    ``score`` is (A − A₀)/(1 − A₀), A₀ the mean index of the references: 0 as reproducible as a
    cloud without clusters, 1 perfectly. Without it K = 2 wins too often: any elongated cloud can
    be halved reproducibly.
    """
    runs = cluster_parts(graph, candidates, n_runs, rng)
    own = [pairwise_ari(labels) for labels in runs]
    A = np.array([ari.mean() for ari in own])
    # Pairs of runs share runs: the error is that of n_runs independent values.
    error = np.array([ari.std(ddof=1) for ari in own]) / np.sqrt(n_runs)
    others = np.array(
        [
            [
                pairwise_ari(labels).mean()
                for labels in cluster_parts(S, candidates, REFERENCE_RUNS, rng)
            ]
            for S in references
        ]
    )
    A0, spread = others.mean(axis=0), others.std(axis=0, ddof=1)
    room = np.maximum(1 - A0, 0.05)
    rows = np.sort(rng.permutation(graph.shape[0])[:PAIR_ROWS])
    quality = np.array([consensus_quality(labels[:, rows]) for labels in runs])
    details = {"ari": A, "reference_ari": A0, "pac": quality[:, 0], "cophenetic": quality[:, 1]}
    return Curves((A - A0) / room, error / room, np.zeros_like(A), spread / room, details)


def cluster_parts(
    graph: sp.csr_array, candidates: list[int], n_runs: int, rng: np.random.Generator
) -> Array:
    """Labels (n_candidates, n_runs, N) of parts of the graph, −1 outside; one eigenproblem per part."""
    n = graph.shape[0]
    labels = np.full((len(candidates), n_runs, n), -1)
    for run, rows in enumerate(resamples(n, FRACTION, n_runs, rng)):
        n_vectors = min(VECTORS * max(candidates), len(rows))
        part = normalized(graph[rows][:, rows])
        values, vectors = leading_eigenvectors(part, n_vectors, rng)
        Y = vectors * _weights(values)
        for c, K in enumerate(candidates):
            P = Y[:, : VECTORS * K]
            norms = np.linalg.norm(P, axis=1, keepdims=True)
            P = np.divide(P, norms, out=np.zeros_like(P), where=norms > 0)
            with warnings.catch_warnings():
                # Parts of few distinct rows may coincide; the score of this candidate says it.
                warnings.simplefilter("ignore", ConvergenceWarning)
                labels[c, run, rows] = kmeans(P, min(K, len(rows)), rng, STARTS)
    return labels


def consensus_quality(runs: Array) -> tuple[float, float]:
    """PAC and the cophenetic correlation of the consensus matrix of some rows.

    C_ij is the share of the runs with both i and j that put them together. PAC (proportion of
    ambiguous clustering, Șenbabaoğlu 2014) is the share of pairs with C strictly between .1 and
    .9; the cophenetic correlation (Brunet 2004) that of 1 − C and its average-linkage tree.
    """
    n = runs.shape[1]
    together, both = np.zeros((n, n)), np.zeros((n, n))
    for labels in runs:
        seen = (labels >= 0).astype(float)
        members = np.eye(labels.max() + 1)[np.maximum(labels, 0)] * seen[:, None]
        together += members @ members.T
        both += np.outer(seen, seen)
    consensus = np.divide(together, both, out=np.zeros_like(both), where=both > 0)
    np.fill_diagonal(consensus, 1)
    C = squareform(consensus, checks=False)
    C = C[squareform(both, checks=False) > 0] if (both == 0).any() else C
    pac = float(((AMBIGUOUS[0] < C) & (AMBIGUOUS[1] > C)).mean())
    distances = 1 - squareform(consensus, checks=False)
    if np.ptp(distances) == 0:
        return pac, 1.0
    tree = cophenet(linkage(distances, "average"))
    return pac, float(np.corrcoef(tree, distances)[0, 1])
