"""Similarity network fusion (SNF) and NEMO: the views' dense similarities made one graph."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import euclidean_distances

from manyview._types import Array, Seed, Views
from manyview.base import generator
from manyview.labels import spectral_from_graph

from ._base import COUNT, COUNT_OR_ZERO, POSITIVE, SCALED, Baseline, observed, scaled

EPS = float(np.finfo(float).eps)
#: Side of the product that is timed to say beforehand how long a fit takes.
TRIAL = 400


def similarity(squared: Array, n_neighbors: int, mu: float) -> Array:
    """Gaussian similarities whose width follows the density around both samples.

    exp(−d²/2s²)/(√(2π) s) with d the squared distance, as the authors of SNF have it, and s = mu times
    (the mean over both samples of their distance to their neighbors, twice, and d, once)/3.
    """
    d = (squared + squared.T) / 2
    np.fill_diagonal(d, 0)
    near = np.sort(d, axis=1)[:, 1 : n_neighbors + 1].mean(axis=1) + EPS
    width = mu * np.maximum((near[:, None] + near) / 3 + d / 3 + EPS, EPS)
    return np.exp(-((d / width) ** 2) / 2) / (np.sqrt(2 * np.pi) * width)


def _half_kept(W: Array) -> Array:
    """Half of every row stays at its sample, the other half goes to the others; symmetric."""
    others = W.sum(axis=1) - np.diag(W)
    P = W / (2 * np.where(others == 0, 1, others))[:, None]
    np.fill_diagonal(P, 0.5)
    return (P + P.T) / 2


def _strongest(W: Array, k: int) -> sp.csr_array:
    """The k largest entries of every row, made to add up to 1."""
    n = W.shape[0]
    k = min(k, n)
    columns = np.argpartition(-W, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(W, columns, axis=1)
    values = values / values.sum(axis=1, keepdims=True)
    return sp.csr_array((values.ravel(), (np.repeat(np.arange(n), k), columns.ravel())), (n, n))


def _over_views(parts: list[Array], rows: list[Array]) -> tuple[Array, Array]:
    """Sum of the views' matrices, and for every pair of samples the number of views that have both."""
    n = 1 + max(int(present.max()) for present in rows)
    total, count = np.zeros((n, n)), np.zeros((n, n))
    for part, present in zip(parts, rows, strict=True):
        pairs = np.ix_(present, present)
        total[pairs] += part
        count[pairs] += 1
    return total, count


def fused_network(
    similarities: list[Array], n_neighbors: int, n_iter: int, rows: list[Array] | None = None
) -> Array:
    """SNF: every view's network is diffused through the mean of the others', by its own neighbors.

    ``rows`` are the samples that each view has. The mean for a pair is over the views that have both
    samples; where no other view has them, the view's own network takes part.
    """
    if rows is None:
        rows = [np.arange(len(W)) for W in similarities]
    P = [_half_kept(W) for W in similarities]
    S = [_strongest(W, n_neighbors) for W in P]
    for _ in range(n_iter if len(P) > 1 else 0):
        total, count = _over_views(P, rows)
        for s, (own, present) in enumerate(zip(P, rows, strict=True)):
            pairs = np.ix_(present, present)
            others = count[pairs] - 1
            mean = np.divide(total[pairs] - own, others, out=own.copy(), where=others > 0)
            P[s] = _half_kept(S[s] @ mean @ S[s].T)
    total, count = _over_views(P, rows)
    return _half_kept(total / np.maximum(count, 1))


def relative_similarity(W: Array, n_neighbors: int) -> Array:
    """NEMO: the similarity to each of the k nearest as a share of that to all, both ways."""
    k = min(n_neighbors, W.shape[0])
    least = -np.partition(-W, k - 1, axis=1)[:, [k - 1]]
    kept = np.where(least <= W, W, 0)
    kept = kept / kept.sum(axis=1, keepdims=True)
    return kept + kept.T


@dataclass(eq=False, repr=False)
class _Fusion(Baseline, ABC):
    """What SNF and NEMO share: scale, similarities of each view, one graph, spectral clustering."""

    n_clusters: int = 8
    _: KW_ONLY
    n_neighbors: int | None = None
    mu: float = 0.5
    scale: str | None = "standard"
    views: Any = None
    random_state: Seed = None

    _takes_missing: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict] = SCALED | {
        "n_neighbors": [COUNT, None],
        "mu": [POSITIVE],
    }

    def _cluster(self, views: Views) -> None:
        parts, rows = observed(views)
        networks, near = [], []
        for part in parts:
            n = part.n_samples
            near.append(max(1, min(self.n_neighbors or max(1, round(n / 6)), n - 1)))
            squared = euclidean_distances(scaled(part, self.scale)[0], squared=True)
            networks.append(similarity(squared, near[-1], self.mu))
        graph = self._graph(networks, near, rows)
        self.affinity_ = graph
        self.labels_ = spectral_from_graph(
            sp.csr_array(graph), self.n_clusters, generator(self.random_state), unit_rows=True
        )

    @abstractmethod
    def _graph(self, similarities: list[Array], near: list[int], rows: list[Array]) -> Array: ...

    @abstractmethod
    def _cost(self, n_samples: int, n_views: int) -> tuple[float, int]:
        """Passes over a dense N×N matrix, and how many of these are alive at once."""

    def estimate_cost(self, n_samples: int, n_views: int) -> dict[str, float]:
        """Seconds and bytes that a fit would take, before it starts.

        Parameters
        ----------
        n_samples, n_views : int

        Returns
        -------
        dict with "seconds" and "bytes"
        """
        passes, arrays = self._cost(n_samples, n_views)
        seconds = passes * n_samples**2 * _seconds_per_step()
        return {"seconds": seconds, "bytes": 8.0 * n_samples**2 * arrays}


@dataclass(eq=False, repr=False)
class SNF(_Fusion):
    """Similarity network fusion (Wang et al.).

    Each view becomes a network of similarities. Each network is repeatedly diffused through the mean of
    the others along its own strongest links. The mean of the networks is clustered. Where views are
    missing, each mean is over the views that both samples have; the authors' program needs complete
    views.

    Parameters
    ----------
    n_clusters : int, default=8
    n_neighbors : int or None, default=20
        Links of each sample. ``None``: a sixth of the samples.
    mu : float, default=0.5
        Width of the similarities.
    n_iter : int, default=20
        Rounds of diffusion.
    scale : {"standard", "minmax", "sum", "tfidf", "sqrt"} or None, default="standard"
        As in `ConcatViews`; the authors scale to z-scores.
    views : sequence or dict, optional
        If the input is one 2-D array: the number of columns of each view.
    random_state : int, RandomState, Generator or None
        Of k-means on the eigenvectors.

    Attributes
    ----------
    labels_ : ndarray (N,)
    affinity_ : ndarray (N, N), the fused network

    References
    ----------
    B. Wang et al., Similarity network fusion for aggregating data types on a genomic scale, Nature
    Methods 11, 2014.
    """

    _: KW_ONLY
    n_neighbors: int | None = 20
    n_iter: int = 20

    _parameter_constraints: ClassVar[dict] = _Fusion._parameter_constraints | {
        "n_iter": [COUNT_OR_ZERO],
    }

    def _graph(self, similarities: list[Array], near: list[int], rows: list[Array]) -> Array:
        return fused_network(similarities, max(near), self.n_iter, rows)

    def _cost(self, n_samples: int, n_views: int) -> tuple[float, int]:
        # Two products of a sparse and a dense matrix, and a few passes over the dense ones.
        per_round = n_views * (4 * min(self.n_neighbors or n_samples, n_samples) + 20)
        return self.n_iter * per_round + 100 * n_views, 2 * n_views + 6


@dataclass(eq=False, repr=False)
class NEMO(_Fusion):
    """Neighborhood based multi-omics clustering (Rappoport & Shamir).

    The similarity of two samples is divided by those of their nearest neighbors and averaged over the
    views. The resulting graph is clustered. Where views are missing, the mean is over the views that both
    samples have, as in the authors' program.

    Parameters
    ----------
    n_clusters : int, default=8
    n_neighbors : int, optional
        ``None``: a sixth of the samples, as in the authors' program.
    mu : float, default=0.5
        Width of the similarities.
    scale : {"standard", "minmax", "sum", "tfidf", "sqrt"} or None, default="standard"
        As in `ConcatViews`.
    views : sequence or dict, optional
        If the input is one 2-D array: the number of columns of each view.
    random_state : int, RandomState, Generator or None
        Of k-means on the eigenvectors.

    Attributes
    ----------
    labels_ : ndarray (N,)
    affinity_ : ndarray (N, N), the mean relative similarity

    References
    ----------
    N. Rappoport and R. Shamir, NEMO: cancer subtyping by integration of partial multi-omic data,
    Bioinformatics 35, 2019.
    """

    def _graph(self, similarities: list[Array], near: list[int], rows: list[Array]) -> Array:
        found = [relative_similarity(W, k) for W, k in zip(similarities, near, strict=True)]
        total, count = _over_views(found, rows)
        return total / np.maximum(count, 1)

    def _cost(self, n_samples: int, n_views: int) -> tuple[float, int]:
        return 100 * n_views, n_views + 6


@lru_cache(maxsize=1)
def _seconds_per_step() -> float:
    """Seconds for one number of a dense matrix in one pass, measured here."""
    M = np.random.default_rng(0).random((TRIAL, TRIAL))
    started = time.perf_counter()
    for _ in range(10):
        M = M * 0.5 + M.T
    return (time.perf_counter() - started) / (20 * TRIAL**2)
