"""How many clusters: the criteria, their votes, and what they recommend together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log2
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import randomized_svd

from manyview._types import Array, Matrix, Seed, Views, storable
from manyview._warn import warn_user
from manyview.base import generator, with_weight, working_dtype
from manyview.engines.numpy.distances import Geometry
from manyview.engines.numpy.graph import on_host
from manyview.engines.numpy.repeats import Repeats, distinct
from manyview.engines.protocols import Scaling
from manyview.fuse import Settings, agree, fused_graphs, measure_some
from manyview.labels import (
    Communities,
    communities,
    installed,
    kmeans,
    pairwise_ari,
    resamples,
    tell_tiny,
)
from manyview.maths.agreement import VECTORS, Agreement
from manyview.maths.equations import nonnegative_half
from manyview.maths.solvers import coordinate_sweep
from manyview.maths.spectrum import diffusion_weights, leading_eigenvectors, normalized
from manyview.plot import COLORS, pyplot
from manyview.scaling import fit_scaling
from manyview.storage.checkpoint import Checkpoint
from manyview.wmnmf import WMNMF

# --- the result ---------------------------------------------------------------------------------

#: What each score is, and whether more of it is better.
SCORES = {
    "stability": ("reproducibility beyond a cloud without clusters", True),
    "eigengap": ("gap after the K-th eigenvalue of the fused graph", True),
    "communities": ("reproducibility beyond a cloud without clusters", True),
    "bicv": ("bi-cross-validation error", False),
    "imputation": ("error on hidden entries", False),
    "mdl": ("description length, bits per entry", False),
    "sure": ("Stein's risk estimate per entry", False),
}
#: Those that choose the rank of a factorisation.
RANKS = ("bicv", "imputation", "mdl", "sure")


class NoClustersWarning(UserWarning):
    """The data show no more clusters than a cloud without any."""


@dataclass(frozen=True)
class Vote:
    """One method's scores and answer.

    ``choice`` is 1 if it sees nothing, None if it cannot tell; ``open_ended`` says that the best is
    the largest candidate and more might be better still. ``also`` is the next best number, and
    ``doubtful`` that the score is near the threshold that decides.
    """

    method: str
    columns: dict[str, Array]
    choice: int | None
    reason: str
    open_ended: bool = False
    also: int | None = None
    doubtful: bool = False
    #: Scores of the numbers that pass every threshold.
    passed: dict[int, float] = field(default_factory=dict)
    #: Those of them that pass one so barely that they are doubtful.
    shaky: frozenset[int] = frozenset()
    #: How many communities there are, if they come back.
    communities: int | None = None


@storable
@dataclass(frozen=True)
class Selection:
    """The number of clusters, and why.

    Attributes
    ----------
    n_clusters : int
        The recommendation. 1 means that no candidate stands out; `found` is then False, the
        reasons say so, and a `NoClustersWarning` was given.
    found : bool
    reasons : list of str
        Plain sentences, one or two for each method, then how they were combined.
    votes : dict of method → int or None
        The answer of each method: 1 where it sees nothing, None where it cannot tell.
    table : dict of column → ndarray
        One row for each method and candidate; ``pandas.DataFrame(selection.table)``. Columns:
        method, n_clusters, score, error (standard error), reference (the same score on clouds
        without clusters, where there is one), ari, pac, cophenetic (of the method "stability"),
        higher_is_better, chosen. NaN where a column does not apply.
    runner_up : int or None
        The number that is next best supported, if there is one.
    doubtful : bool
        Whether a score near its threshold decided, or the methods do not agree: the reasons say which.
    """

    n_clusters: int
    found: bool
    reasons: list[str]
    votes: dict[str, int | None]
    table: dict[str, Array] = field(repr=False)
    runner_up: int | None = None
    doubtful: bool = False

    @property
    def answer(self) -> str:
        """The recommendation in words, with the runner-up: "2 clusters; also 5 (doubtful)"."""
        head = f"{self.n_clusters} clusters" if self.found else "no clusters found"
        head += f"; also {self.runner_up}" if self.runner_up else ""
        return head + (" (doubtful)" if self.doubtful else "")

    def scores(self, method: str) -> tuple[Array, Array]:
        """Candidates and scores of one method.

        Parameters
        ----------
        method : str
            One of those in `votes`.

        Returns
        -------
        candidates : ndarray of int
        scores : ndarray of float
        """
        if method not in self.votes:
            raise ValueError(f"method must be one of {', '.join(self.votes)}, got {method!r}")
        rows = self.table["method"] == method
        return self.table["n_clusters"][rows], self.table["score"][rows]

    def __repr__(self) -> str:
        votes = ", ".join(f"{m} {'?' if k is None else k}" for m, k in self.votes.items())
        also = f", also {self.runner_up}" if self.runner_up else ""
        return f"<Selection: {self.n_clusters} cluster{'s'[: self.n_clusters > 1]}{also} ({votes})>"

    def __str__(self) -> str:
        return "\n".join([self.answer, *(f"- {reason}" for reason in self.reasons)])

    def figure(self) -> Any:
        """One panel per method: its scores, their errors, and the chosen number (matplotlib)."""
        plt, n_panels = pyplot(), len(self.votes)
        n_columns = min(3, n_panels)
        n_rows = -(-n_panels // n_columns)
        figure, axes = plt.subplots(
            n_rows,
            n_columns,
            figsize=(3.8 * n_columns, 2.9 * n_rows),
            layout="constrained",
            squeeze=False,
        )
        for ax in axes.flat[n_panels:]:
            ax.set_visible(False)
        for ax, (method, choice) in zip(axes.flat, self.votes.items(), strict=False):
            rows = self.table["method"] == method
            K, score, error, reference = (
                self.table[name][rows] for name in ("n_clusters", "score", "error", "reference")
            )
            ax.errorbar(K, score, np.nan_to_num(error), color=COLORS[0], marker="o", ms=3.5, lw=1.2)
            if np.isfinite(reference).any():
                ax.plot(K, reference, "--", color=COLORS[-1], lw=1, label="without clusters")
                ax.legend(frameon=False, fontsize=8)
            if choice is not None and choice in K:
                ax.axvline(choice, color=COLORS[5], lw=1, zorder=0)
            answer = {None: "cannot tell", 1: "nothing found"}.get(choice, f"{choice}")
            ax.set_title(f"{method}: {answer}", fontsize=10)
            ax.set_ylabel(SCORES[method][0], fontsize=7)
            ax.set_xlabel("rank" if method in RANKS else "clusters", fontsize=8)
            ax.spines[["top", "right"]].set_visible(False)
        return figure


def as_table(votes: list[Vote], candidates: list[int]) -> dict[str, Array]:
    """One row for each method and candidate, the same columns for all."""
    columns = ("score", "error", "reference", "ari", "pac", "cophenetic")
    absent = np.full(len(candidates), np.nan)
    table: dict[str, Array] = {
        "method": np.repeat([vote.method for vote in votes], len(candidates)),
        "n_clusters": np.tile(candidates, len(votes)),
    }
    for name in columns:
        table[name] = np.concatenate([vote.columns.get(name, absent) for vote in votes])
    table["higher_is_better"] = np.repeat([SCORES[v.method][1] for v in votes], len(candidates))
    table["chosen"] = np.concatenate([np.equal(candidates, vote.choice or 0) for vote in votes])
    return table


# --- resampled clusterings ----------------------------------------------------------------------

#: Runs of the algorithm in every part of the graph.
PART_TRIALS = 2
#: Largest number of clusters that a gap is looked for at.
MOST_BY_GAP = 40


@dataclass(frozen=True)
class Groups:
    """How many communities there are, and how well they come back in the graph and in the clouds."""

    count: int
    ari: float
    error: float
    reference_ari: float

    @property
    def score(self) -> float:
        """As the score of "stability": 0 as reproducible as in a cloud without clusters, 1 perfectly."""
        return (self.ari - self.reference_ari) / max(1 - self.reference_ari, 0.05)


def reproduced(
    graph: sp.csr_array,
    references: list[sp.csr_array],
    resolution: float,
    n_runs: int,
    rng: np.random.Generator,
) -> Groups:
    """The communities of the graph, and the mean adjusted Rand index between those of its parts."""
    whole = communities(graph, resolution, int(rng.integers(2**31)))
    own = pairwise_ari(_parts(graph, resolution, n_runs, rng))
    others = [pairwise_ari(_parts(S, resolution, REFERENCE_RUNS, rng)).mean() for S in references]
    error = float(own.std(ddof=1) / np.sqrt(n_runs))
    return Groups(whole.count, float(own.mean()), error, float(np.mean(others)))


def _parts(graph: sp.csr_array, resolution: float, n_runs: int, rng: np.random.Generator) -> Array:
    """Communities (n_runs, N) of random parts of the graph, −1 outside."""
    labels = np.full((n_runs, graph.shape[0]), -1)
    for run, rows in enumerate(resamples(graph.shape[0], FRACTION, n_runs, rng)):
        seed = int(rng.integers(2**31))
        part = graph[rows][:, rows]
        labels[run, rows] = communities(part, resolution, seed, trials=PART_TRIALS).labels
    return labels


# --- rank criteria ------------------------------------------------------------------------------

#: Largest block of a view that is factorised; sweeps of coordinate descent at every rank.
ROWS, COLUMNS, SWEEPS = 300, 150, 15
#: Groups of rows and columns in bi-cross-validation; share of entries hidden for imputation.
GROUPS, HIDDEN = 3, 0.1
#: Block, observed entries, growing ranks, randomness → one value per rank, lower is better.
Criterion = Callable[[Array, Array, list[int], np.random.Generator], Array]


def rank_curves(
    views: list[Geometry],
    alpha: Array,
    ranks: list[int],
    method: str,
    n_runs: int,
    rng: np.random.Generator,
) -> Array:
    """The criterion (lower is better), runs × ranks, α-weighted mean over views."""
    criterion = {"bicv": bicv, "imputation": imputation, "mdl": mdl, "sure": sure}[method]
    total, weight = np.zeros((n_runs, len(ranks))), 0.0
    for a, view in zip(alpha, views, strict=True):
        if a <= 1e-3 or largest_rank(view) < 2:
            continue
        total += a * np.array([_one(view, criterion, ranks, rng) for _ in range(n_runs)])
        weight += a
    return total / weight if weight else np.full_like(total, np.nan)


def largest_rank(view: Geometry) -> int:
    """What the smallest block of bi-cross-validation can hold."""
    return min(int(view.present.sum()), view.n_features, ROWS, COLUMNS) * (GROUPS - 1) // GROUPS


def _one(view: Geometry, criterion: Criterion, ranks: list[int], rng: np.random.Generator) -> Array:
    X, observed = block(view, rng)
    limit = largest_rank(view)
    known = sorted({min(K, limit) for K in ranks})
    # Beyond what the block can hold a higher rank changes nothing.
    found = dict(zip(known, criterion(X, observed, known, rng), strict=True))
    return np.array([found[min(K, limit)] for K in ranks])


def block(view: Geometry, rng: np.random.Generator) -> tuple[Array, Array]:
    """Random rows and columns of the scaled view with unit variance, and which entries are observed.

    Unobserved entries hold their feature's mean; negative ones (signed counts) are cut at 0.
    """
    rows = np.sort(rng.permutation(np.flatnonzero(view.present))[:ROWS])
    columns = np.sort(rng.permutation(view.n_features)[:COLUMNS])
    X = view.Z[rows]
    X = X.tocsc()[:, columns].toarray() if sp.issparse(X) else X[:, columns]
    known = np.ones(X.shape, bool)
    if view.observed is not None:
        known = view.observed[rows][:, columns]
        mean = np.where(known, X, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        X = np.where(known, X, mean)
    X = np.maximum(X, 0)
    return X / max(float(np.sqrt(X.var(axis=0).mean())), 1e-12), known


# --- nonnegative factorisations of growing rank ------------------------------------------------


def nmf_path(
    X: Array, ranks: list[int], rng: np.random.Generator, observed: Array | None = None
) -> Iterator[tuple[Array, Array]]:
    """V, U with X ≈ VUᵀ for each of the growing ranks; entries not observed are refilled by VUᵀ."""
    V, U = np.zeros((X.shape[0], 0)), np.zeros((X.shape[1], 0))
    for K in ranks:
        filled = X if observed is None else np.where(observed, X, V @ U.T)
        more_V, more_U = positive_parts(filled - V @ U.T, K - V.shape[1], rng)
        V, U = np.hstack([V, more_V]), np.hstack([U, more_U])
        V, U = descend(X, V, U, SWEEPS, observed)
        yield V, U


def descend(
    X: Array, V: Array, U: Array, sweeps: int, observed: Array | None = None
) -> tuple[Array, Array]:
    V, U = V.copy(), U.copy()
    for _ in range(sweeps):
        filled = X if observed is None else np.where(observed, X, V @ U.T)
        coordinate_sweep(V, filled @ U, U.T @ U)
        coordinate_sweep(U, filled.T @ V, V.T @ V)
    return V, U


def solve(X: Array, U: Array, sweeps: int = 25) -> Array:
    """V ≥ 0 with X ≈ VUᵀ for given U."""
    V = np.full((X.shape[0], U.shape[1]), X.mean() / max(U.sum(axis=1).mean(), 1e-12))
    XU, H = X @ U, U.T @ U
    for _ in range(sweeps):
        coordinate_sweep(V, XU, H)
    return V


def positive_parts(R: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The larger nonnegative half of the leading singular pairs of R (as in NNDSVD), never quite 0."""
    left, values, right = randomized_svd(R, count, random_state=int(rng.integers(2**31)))
    V, U = np.empty((R.shape[0], count)), np.empty((R.shape[1], count))
    for k in range(count):
        v, u = nonnegative_half(left[:, k], right[k])
        root = np.sqrt(values[k])
        V[:, k], U[:, k] = root * v + 1e-3 * root, root * u + 1e-3 * root
    return V, U


# --- the four criteria -------------------------------------------------------------------------


def bicv(X: Array, observed: Array, ranks: list[int], rng: np.random.Generator) -> Array:
    """Bi-cross-validation (Owen & Perry 2009): mean squared error on left-out blocks.

    With X = [[A, B], [C, D]] and D ≈ V Uᵀ: rows B ≈ V_B Uᵀ and columns C ≈ V U_Cᵀ by nonnegative
    least squares, Â = V_B U_Cᵀ. Rows and columns are dealt into 3 groups each; the blocks on the
    diagonal are left out in turn.
    """
    rows = rng.permutation(X.shape[0]) % GROUPS
    columns = rng.permutation(X.shape[1]) % GROUPS
    errors, count = np.zeros(len(ranks)), 0
    for g in range(GROUPS):
        i, j = rows == g, columns == g
        if not j.any():
            continue
        A, known = X[i][:, j], observed[i][:, j]
        for r, (V, U) in enumerate(nmf_path(X[~i][:, ~j], ranks, rng)):
            predicted = solve(X[i][:, ~j], U) @ solve(X[~i][:, j].T, V).T
            errors[r] += ((A - predicted) ** 2)[known].sum()
        count += int(known.sum())
    return errors / max(count, 1)


def imputation(X: Array, observed: Array, ranks: list[int], rng: np.random.Generator) -> Array:
    """Mean squared error on a tenth of the entries, hidden from the factorisation."""
    hidden = (rng.random(X.shape) < HIDDEN) & observed
    seen = observed & ~hidden
    mean = np.where(seen, X, 0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    X_seen = np.where(seen, X, mean)
    path = nmf_path(X_seen, ranks, rng, seen)
    return np.array([((X - V @ U.T) ** 2)[hidden].mean() for V, U in path])


def mdl(X: Array, observed: Array, ranks: list[int], rng: np.random.Generator) -> Array:
    """Bits per entry to write down the residual and both factors (after Squires et al. 2017).

    v_ik is rounded to steps of √12 σ/‖u_k‖, the coarsest that add no more than σ² to its row's
    error, and u_mk likewise; both are written as rounded exponential variables of their column's
    mean, which takes H bits; residuals as a Gaussian of variance σ², rounding included::

        (NM/2) log₂(2πe σ²(1 + K/N + K/M)) + Σ_ik H(v̄_k ‖u_k‖/(√12 σ)) + Σ_mk H(ū_k ‖v_k‖/(√12 σ))

    H(a) = [−q log₂ q − (1−q) log₂(1−q)]/q with q = 1 − exp(−1/a). The precision of the data is a
    constant and left out.
    """
    bits = []
    for V, U in nmf_path(X, ranks, rng):
        # A floor, for data that some rank explains exactly: no precision is infinite.
        sigma = max(float(np.sqrt(((X - V @ U.T) ** 2).mean())), 1e-4)
        rounding = 1 + U.shape[1] / len(U) + V.shape[1] / len(V)
        total = X.size * np.log2(2 * np.pi * np.e * sigma**2 * rounding) / 2
        for one, other in ((V, U), (U, V)):
            steps = one.mean(axis=0) * np.linalg.norm(other, axis=0) / (np.sqrt(12) * sigma)
            total += len(one) * _geometric_bits(steps).sum()
        bits.append(total / X.size)
    return np.array(bits)


def _geometric_bits(mean: Array) -> Array:
    """Entropy of an exponential variable of this mean, rounded down to whole numbers."""
    q = np.clip(-np.expm1(-1 / np.maximum(mean, 1e-3)), 1e-12, 1 - 1e-12)
    return -(q * np.log2(q) + (1 - q) * np.log2(1 - q)) / q


def sure(X: Array, observed: Array, ranks: list[int], rng: np.random.Generator) -> Array:
    """Stein's unbiased estimate of the risk of X̂, per entry (Ulfarsson & Solo 2013)::

        ‖X − X̂‖² − NMσ² + 2σ² div X̂,    div X̂ ≈ ⟨b, X̂(X + εb) − X̂(X)⟩/ε, b random signs

    σ² is what a singular value decomposition of a generous rank leaves, in units of what it leaves
    of pure noise of that size (which loses more than its degrees of freedom). Both fits of the
    divergence go on equally long from the same factors.
    """
    generous = min(2 * max(ranks), min(X.shape) // 2)
    left, noise = (
        float((np.linalg.svd(matrix, compute_uv=False)[generous:] ** 2).sum())
        for matrix in (X, rng.standard_normal(X.shape))
    )
    variance = left / noise
    sign = rng.choice([-1.0, 1.0], X.shape)
    step = 0.1 * max(np.sqrt(variance), 1e-6)
    risks = []
    for V, U in nmf_path(X, ranks, rng):
        plain, moved = (
            np.matmul(v, u.T)
            for v, u in (descend(X, V, U, 2 * SWEEPS), descend(X + step * sign, V, U, 2 * SWEEPS))
        )
        divergence = float((sign * (moved - plain)).sum()) / step
        risks.append(((X - plain) ** 2).sum() + 2 * variance * divergence - X.size * variance)
    return np.array(risks) / X.size


# --- graph criteria -----------------------------------------------------------------------------

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


def cloud(views: list[Geometry], fused: sp.csr_array, rng: np.random.Generator) -> list[Geometry]:
    """Gaussian rows with the joint covariance of the views, missing where theirs are.

    Rows y = (1/√n) Σ_j g_j (z_j − mean) with independent normal g have the covariance of z, and
    with the same g in every view the covariances between views as well: no covariance is formed.
    """
    n = views[0].n_samples
    G = rng.standard_normal((n, n))
    found: list[Geometry] = []
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


def number_by_gap(agreement: Agreement) -> int:
    """The number of clusters before the largest gap between eigenvalues of the fused graph."""
    graph = agreement.fused
    most = max(2, min(MOST_BY_GAP, graph.shape[0] // MEMBERS))
    n_values = min(most + 1, graph.shape[0])
    values, _ = leading_eigenvectors(normalized(graph), n_values, np.random.default_rng(0))
    K = np.arange(2, n_values)
    gaps = np.sqrt(K) * (values[1:-1] - values[2:])
    return int(K[gaps.argmax()]) if len(K) else 2


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


# --- votes --------------------------------------------------------------------------------------

GRAPH_METHODS = ("stability", "eigengap", "communities")
RANK_METHODS = ("bicv", "imputation", "mdl", "sure")
METHODS = GRAPH_METHODS + RANK_METHODS
#: The least score (stability) and the least excess over the references (eigengap) that count as
#: clusters; eigenvalues also have to exceed the references by so many of their standard deviations.
LEAST_STABILITY, LEAST_GAP, DEVIATIONS = 0.5, 0.05, 3.0
#: A score so near the threshold is called doubtful, on either side of it.
DOUBT = 0.1
#: So is a separation within this share of the standard deviations asked for, or a gap within it.
DOUBT_SHARE = 0.2
#: An eigenvalue after the largest candidate that is so much of the way from the references to 1
#: tells of more clusters. After 14, clouds of 1000 rows along a curve reach .8, separate clusters .95.
LEAST_SURPLUS = 0.9
#: Clouds without clusters to compare eigenvalues with, and stability; random blocks per rank criterion.
N_REFERENCES, STABILITY_REFERENCES, RANK_RUNS = 8, 4, 4


@dataclass(frozen=True)
class Evidence:
    """Distances within views, their agreement, and clouds without clusters to compare them with."""

    spaces: list[Any]
    agreement: Agreement
    n_values: int
    rng: np.random.Generator
    notes: list[str]
    resolution: float = 1.0
    #: How often each distinct observation occurs; None where none repeats.
    copies: Array | None = None

    @property
    def n_samples(self) -> int:
        return self.spaces[0].n_samples

    @cached_property
    def references(self) -> list[sp.csr_array]:
        fused, weights = self.agreement.fused, self.agreement.distance_weights
        return [reference_graph(self.spaces, fused, weights, self.rng) for _ in range(N_REFERENCES)]

    @cached_property
    def weights(self) -> tuple[Array, Array]:
        """`leading_weights` of the fused graph, and of every reference."""
        own = leading_weights(self.agreement.fused, self.n_values, self.rng)
        others = [leading_weights(S, self.n_values, self.rng) for S in self.references]
        return own, np.array(others)


# --- one method's answer -----------------------------------------------------------------------


def judge(
    evidence: Evidence, method: str, candidates: list[int], n_runs: int, rng: np.random.Generator
) -> Vote:
    if method == "stability":
        return _by_stability(evidence, candidates, n_runs, rng)
    if method == "eigengap":
        return _by_eigengap(evidence, candidates)
    if method == "communities":
        return _by_communities(evidence, candidates, n_runs, rng)
    return _by_rank(evidence, method, candidates, rng)


def _by_stability(
    evidence: Evidence, candidates: list[int], n_runs: int, rng: np.random.Generator
) -> Vote:
    references = evidence.references[:STABILITY_REFERENCES]
    curves = resampled(evidence.agreement.fused, references, candidates, n_runs, rng)
    K, score = np.array(candidates), curves.score
    ari, other = curves.details["ari"], curves.details["reference_ari"]
    columns = {"score": score, "error": curves.error, "reference": curves.reference}
    columns |= {name: curves.details[name] for name in ("ari", "pac", "cophenetic")}
    deviations = separation(*evidence.weights, candidates)
    apart = deviations >= DEVIATIONS
    clear = apart & (score >= LEAST_STABILITY)
    if not clear.any():
        return _unstable(candidates, deviations, columns, other)
    best = int(np.where(apart, score, -np.inf).argmax())
    pick = _finest(K, score, curves.error, clear)
    also = _next_best(K, score, clear, pick)
    reason = (
        f"stability: {K[pick]} clusters are found again in 80% of the observations with an adjusted "
        f"Rand index of {ari[pick]:.2f} (in clouds without clusters {other[pick]:.2f}): "
        f"{asked_for(score[pick])}; {curves.details['pac'][pick]:.1%} of pairs are ambiguous"
    )
    if K[best] < K[pick]:
        reason += f"; {K[best]} is as reproducible and coarser"
    elif also is not None:
        reason += f"; next best is {also} with {score[candidates.index(also)]:.2f}"
    barely = deviations < DEVIATIONS * (1 + DOUBT_SHARE)
    if barely[pick]:
        reason += "; " + separated(int(K[pick]), deviations[pick])
    last = bool(pick == len(K) - 1 and len(K) > 1)
    passed = dict(zip(K[clear].tolist(), score[clear].tolist(), strict=True))
    shaky = frozenset(k for k, s in passed.items() if near_threshold(s)) | {
        *K[clear & barely].tolist()
    }
    doubtful = int(K[pick]) in shaky
    return Vote("stability", columns, int(K[pick]), reason, last, also, doubtful, passed, shaky)


def _unstable(
    candidates: list[int], deviations: Array, columns: dict[str, Array], clouds: Array
) -> Vote:
    """No candidate passes: what the best has, and what it lacks."""
    score, apart = columns["score"], deviations >= DEVIATIONS
    nearly = (score > LEAST_STABILITY - DOUBT) & (deviations > DEVIATIONS * (1 - DOUBT_SHARE))
    eligible = next((some for some in (nearly, apart) if some.any()), np.ones(len(score), bool))
    place = int(np.where(eligible, score, -np.inf).argmax())
    best, doubtful = candidates[place], bool(nearly[place])
    reason = (
        f"stability: no clusters. The best candidate, {best}, is found again with an adjusted Rand index "
        f"of {columns['ari'][place]:.2f}; in clouds without clusters it is {clouds[place]:.2f}: "
        f"{asked_for(score[place])}"
    )
    if not apart[place]:
        reason += "; " + separated(best, deviations[place])
    also = best if doubtful else None
    return Vote("stability", columns, 1, reason, also=also, doubtful=doubtful)


def separated(K: int, deviations: float) -> str:
    """By how much eigenvalue K exceeds the clouds', beside what is asked for."""
    told = (
        f"eigenvalue {K} of the graph exceeds the clouds' by {deviations:.1f} of their standard "
        f"deviations, and {DEVIATIONS:g} are asked for"
    )
    near = abs(deviations - DEVIATIONS) < DOUBT_SHARE * DEVIATIONS
    return told + (", so near that it is doubtful" if near else "")


def near_threshold(score: float) -> bool:
    return bool(abs(score - LEAST_STABILITY) < DOUBT)


def asked_for(score: float) -> str:
    """A score beside the threshold that decides, and whether it is too near to decide much."""
    told = f"a score of {score:.2f}, {LEAST_STABILITY:.2f} is asked for"
    return told + (", so near that it is doubtful" if near_threshold(score) else "")


def _finest(K: Array, score: Array, error: Array, clear: Array) -> int:
    """The place of the largest number within one standard error of the best."""
    best = int(np.where(clear, score, -np.inf).argmax())
    return int(np.flatnonzero(clear & (score >= score[best] - error[best])).max())


def _next_best(K: Array, score: Array, clear: Array, pick: int) -> int | None:
    """The best of the other candidates that are as good as their neighbours: another peak."""
    padded = np.concatenate([[-np.inf], score, [-np.inf]])
    peak = clear & (score >= padded[:-2]) & (score >= padded[2:])
    peak[pick] = False
    if not peak.any():
        return None
    return int(K[np.where(peak, score, -np.inf).argmax()])


def _by_communities(
    evidence: Evidence, candidates: list[int], n_runs: int, rng: np.random.Generator
) -> Vote:
    columns = {"score": np.full(len(candidates), np.nan)}
    if not installed():
        reason = "communities: not asked, for pip install 'manyview[communities]' is missing"
        return Vote("communities", columns, None, reason)
    references = evidence.references[:STABILITY_REFERENCES]
    found = reproduced(evidence.agreement.fused, references, evidence.resolution, n_runs, rng)
    reason = (
        f"communities: {found.count} at resolution {evidence.resolution:g}, found again in 80% of the "
        f"observations with an adjusted Rand index of {found.ari:.2f} (in clouds without clusters "
        f"{found.reference_ari:.2f}): {asked_for(found.score)}"
    )
    doubtful = near_threshold(found.score)
    if found.score < LEAST_STABILITY:
        # Of few large clusters communities are pieces, which need not come back: that says nothing.
        also = found.count if doubtful and found.count in candidates else None
        return Vote("communities", columns, None, reason, also=also, doubtful=doubtful)
    count = found.count
    if not candidates[0] <= count <= candidates[-1]:
        reason += "; that is no candidate"
        return Vote("communities", columns, None, reason, communities=count)
    nearest = int(np.abs(np.log(np.array(candidates) / count)).argmin())
    choice = candidates[nearest]
    if choice != count:
        reason += f"; the nearest candidate is {choice}"
    columns["score"][nearest] = found.score
    return Vote("communities", columns, choice, reason, doubtful=doubtful, communities=count)


def _by_eigengap(evidence: Evidence, candidates: list[int]) -> Vote:
    graph = evidence.agreement.fused
    curves = eigengap(*evidence.weights, candidates)
    excess = curves.score - curves.reference
    clear = excess >= np.maximum(LEAST_GAP, DEVIATIONS * curves.spread)
    best = int((np.where(clear, excess, -np.inf) if clear.any() else excess).argmax())
    parts = n_components(graph)
    K = candidates[best]
    needed = max(LEAST_GAP, DEVIATIONS * curves.spread[best])
    numbers = (
        f"{curves.score[best]:.2f}; in clouds without clusters {curves.reference[best]:.2f}, and "
        f"{curves.reference[best] + needed:.2f} is asked for"
    )
    doubtful = bool(abs(excess[best] / needed - 1) < DOUBT_SHARE)
    joined = "one piece" if parts == 1 else f"{parts} unconnected pieces"
    columns = {"score": curves.score, "reference": curves.reference}
    if not clear.any() and surplus(*evidence.weights, candidates) >= LEAST_SURPLUS:
        most = candidates[-1]
        reason = (
            f"eigengap: more clusters than the largest candidate ({most} or more). The eigenvalues "
            f"of the fused graph stay near 1 beyond number {most}; the graph is {joined}"
        )
        return Vote("eigengap", columns, most, reason, open_ended=True)
    if not clear.any():
        reason = (
            f"eigengap: there is no gap beyond chance. The widest, after {K}, is {numbers}; the fused "
            f"graph is {joined}"
        )
        return Vote("eigengap", columns, 1, reason, doubtful=doubtful)
    rest = np.where(clear, excess, -np.inf)
    rest[best] = -np.inf
    also = candidates[int(rest.argmax())] if clear.sum() > 1 else None
    reason = (
        f"eigengap: the eigenvalues of the fused graph fall after number {K} (a gap of {numbers}); "
        f"the graph is {joined}"
    )
    return Vote("eigengap", columns, K, reason, also=also, doubtful=doubtful)


def _by_rank(
    evidence: Evidence, method: str, candidates: list[int], rng: np.random.Generator
) -> Vote:
    alpha, spaces = evidence.agreement.alpha, evidence.spaces
    runs = rank_curves(spaces, alpha, [1, *candidates], method, RANK_RUNS, rng)
    limit = max(largest_rank(view) for view, a in zip(spaces, alpha, strict=True) if a > 1e-3)
    return by_curves(method, candidates, runs, limit)


def by_curves(
    method: str, candidates: list[int], runs: Array, limit: int, slack: float = 0.0
) -> Vote:
    """The smallest rank within one standard error of the best.

    ``runs`` are errors, of rank 1 and then of every candidate, in each of several runs; ``limit`` is
    the largest rank that the data can hold. A rank is as good as the best, too, where no more than the
    share ``slack`` of the fall from rank 1 is left; a fall by less than that share of the error is none.
    """
    ranks = [1, *candidates]
    mean, error = runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    columns = {"score": mean[1:], "error": error[1:]}
    if np.isnan(mean).any():
        reason = (
            f"{method}: cannot tell, the views have too few features or observations to factorise"
        )
        return Vote(method, columns, None, reason)
    best = int(mean.argmin())
    # Paired: the runs' common level cancels, what is left is the error of the difference.
    gap = runs - runs[:, [best]]
    close = gap.mean(axis=0) <= gap.std(axis=0, ddof=1) / np.sqrt(len(runs))
    close |= mean - mean[best] <= slack * (mean[0] - mean[best])
    close[0] |= mean[0] - mean[best] <= slack * mean[0]
    pick = int(np.flatnonzero(close).min())
    if pick == 0:
        reason = f"{method}: no rank of the candidates does better than rank 1; it sees no clusters"
        return Vote(method, columns, 1, reason)
    K = ranks[pick]
    if pick == len(ranks) - 1 and limit >= K:
        reason = f"{method}: still improves at {K}, the largest candidate: a rank of {K} or more"
        return Vote(method, columns, K, reason, len(candidates) > 1)
    return Vote(method, columns, K, f"{method}: no rank does clearly better than {K}")


# --- votes together -----------------------------------------------------------------------------

RANK_CAVEAT = (
    "bicv, imputation, mdl and sure choose the rank of a factorisation, which need not be the "
    "number of clusters: together they count as much as one graph method"
)
#: A distinct observation that occurs so often, and makes up this share of all, may be a cluster by itself.
LEAST_COPIES, LEAST_SHARE = 5, 0.05
#: What a score of stability loses for every doubling or halving between its number and that of communities
#: (that before a gap, where no communities come back). Chosen on real data and not derived:
#: docs/guide/choosing_k.md says on which, and what other values do.
PER_DOUBLING = 0.1


@dataclass(frozen=True)
class Verdict:
    """The number that wins, the next best, whether either is doubtful, and why."""

    n_clusters: int
    words: list[str]
    runner_up: int | None = None
    doubtful: bool = False


def combine(votes: list[Vote], per_doubling: float = PER_DOUBLING) -> Verdict:
    """One answer from several, and the sentences that say how."""
    words = [RANK_CAVEAT] if any(vote.method in RANK_METHODS for vote in votes) else []
    graph = [vote for vote in votes if vote.method in GRAPH_METHODS]
    more = too_few(votes)
    if more:
        assert more.choice is not None
        if len(votes) > 1:
            words.append("eigengap sees more clusters than any candidate, so the others count less")
        return Verdict(more.choice, words)
    nothing = _nothing(graph, votes)
    if nothing is not None:
        doubtful = any(vote.doubtful for vote in graph)
        return Verdict(1, words + nothing, _runner_up(1, votes), doubtful)
    votes, drawn = _drawn(votes, per_doubling)
    support = _support(votes)
    if not support:
        return Verdict(1, words)
    winner = max(support, key=lambda K: support[K])  # the first of equals: the method named first
    words += drawn
    if len(votes) > 1:
        backers = [vote.method for vote in votes if vote.choice == winner]
        words.append(f"{winner} has the most support ({', '.join(backers)})")
    doubters = [vote.method for vote in graph if vote.choice == 1]
    if doubters:
        words.append(f"{', '.join(doubters)} finds no clusters: take {winner} with care")
    doubtful = bool(doubters) or all(v.doubtful for v in votes if v.choice == winner)
    return Verdict(winner, words, _runner_up(winner, votes), doubtful)


def heed_copies(verdict: Verdict, copies: Array | None, candidates: list[int]) -> Verdict:
    """Where no criterion finds clusters, but a few distinct observations are nearly all: say so.

    Copies are no evidence for the criteria, which look at distinct observations. Of clean categories,
    each of which occurs often, every one is a cluster. ``copies`` says how often each occurs.
    """
    if verdict.n_clusters > 1 or copies is None:
        return verdict
    frequent = copies >= max(LEAST_COPIES, LEAST_SHARE * copies.sum())
    n_kinds, share = int(frequent.sum()), float(copies[frequent].sum() / copies.sum())
    if n_kinds < 2 or share < 0.5:
        return verdict
    told = (
        f"of {int(copies.sum())} observations {len(copies)} are distinct, and {n_kinds} of these make up "
        f"{share:.0%} of all"
    )
    if frequent.all() and n_kinds in candidates:
        return Verdict(n_kinds, [*verdict.words, f"{told}: each is a cluster by itself"])
    told += (
        f"; the criteria do not count copies: if these are the clusters, say n_clusters={n_kinds}"
    )
    return replace(verdict, words=[*verdict.words, told], runner_up=n_kinds, doubtful=True)


def _nothing(graph: list[Vote], votes: list[Vote]) -> list[str] | None:
    """Why there are no clusters; None if there are some."""
    if graph and all(vote.choice in (1, None) for vote in graph):
        others = len(graph) < len(votes)
        return ["no graph method finds clusters, so the ranks say nothing about clusters"][:others]
    # Gaps also open in bent, skewed or bounded clouds, of which the references know nothing.
    choices = {vote.method: vote.choice for vote in graph}
    if choices.get("stability") == 1 and choices.get("communities", 1) in (1, None):
        return [
            f"eigengap says {choices['eigengap']}, but stability finds no clusters: a gap whose clusters "
            "do not come back is not believed"
        ]
    return None


def _support(votes: list[Vote]) -> dict[int, float]:
    """How much each number is supported: 1 by a graph method, ¼ by a rank; in the order of the votes."""
    able = [vote for vote in votes if vote.choice not in (None, 1)]
    support: dict[int, float] = {}
    firm = [vote for vote in able if not vote.open_ended or vote.method == "stability"]
    for vote in firm or able:
        assert vote.choice is not None
        share = 1.0 if vote.method in GRAPH_METHODS else 0.25
        support[vote.choice] = support.get(vote.choice, 0) + share
    return support


def _drawn(votes: list[Vote], per_doubling: float) -> tuple[list[Vote], list[str]]:
    """The votes, that of stability drawn towards the number another saw, and a sentence if it moved.

    Several numbers often come back nearly as well, and halves of the data best of all. Of those that pass
    the thresholds that one counts whose score is best after a tax on its distance from that number.
    """
    asked = {vote.method: vote for vote in votes}
    stable, (other, count) = asked.get("stability"), _seen(asked)
    if other is None or stable is None or not stable.passed:
        return votes, []
    if stable.open_ended:  # still better at the largest candidate: no place to turn back from
        return votes, []
    taxed = {K: s - per_doubling * abs(log2(K / count)) for K, s in stable.passed.items()}
    best = max(taxed, key=lambda K: taxed[K])
    if best == stable.choice:
        return votes, []
    also, whose = stable.choice, "of eigengap" if other.method == "eigengap" else "communities"
    told = (
        f"stability counts for {best} ({stable.passed[best]:.2f}), not {also} "
        f"({stable.passed.get(also or 0, 0):.2f}): less {per_doubling:g} for every doubling or halving of "
        f"the {count} {whose} its score is the best"
    )
    # It is as sure as the number it moved to, and as the one that moved it.
    doubtful = best in stable.shaky or other.doubtful
    told += ", which is doubtful" if doubtful else ""
    moved = replace(stable, choice=best, also=also, open_ended=False, doubtful=doubtful)
    return [moved if vote is stable else vote for vote in votes], [told]


def _seen(asked: dict[str, Vote]) -> tuple[Vote | None, int]:
    """The number that stability is drawn to: of communities that come back, or else before a gap."""
    groups, gap = asked.get("communities"), asked.get("eigengap")
    if groups is not None and groups.communities is not None:
        return groups, groups.communities
    if groups is not None and gap is not None and gap.choice not in (None, 1):
        return gap, gap.choice
    return None, 0


def _runner_up(winner: int, votes: list[Vote]) -> int | None:
    """The best supported of the other answers; without any, what the methods call next best."""
    support = _support(votes)
    support.pop(winner, None)
    if support:
        return max(support, key=lambda K: support[K])
    others = [vote.also for vote in votes if vote.also not in (None, winner)]
    return others[0] if others else None


def too_few(votes: list[Vote]) -> Vote | None:
    """The vote of an eigengap that sees more clusters than any candidate.

    It goes before stability: that scores only the candidates, and clusters merged to fit their
    number need not be merged alike every time.
    """
    return next((v for v in votes if v.method == "eigengap" and v.open_ended), None)


# --- criteria of WMNMF --------------------------------------------------------------------------

#: Of the fall of the error, what may be left at the rank after which it is said to fall no more: the views
#: pull at each other's parts, and further ranks always ease that a little.
SLACK = 0.1
#: Times that hidden entries are told anew before their error counts.
REFILLS = 5
#: Views, model, ranks, randomness → the unexplained share of unseen entries for every rank.
WMNMFCriterion = Callable[[list[Array], WMNMF, list[int], np.random.Generator], Array]


def own_curves(
    views: Views,
    model: WMNMF,
    ranks: list[int],
    method: str,
    n_runs: int,
    rng: np.random.Generator,
) -> Array:
    """The criterion (lower is better), runs × ranks, mean over the views."""
    criterion = CRITERIA[method]
    Xs = scaled_views(views, model)
    runs = []
    for _ in range(n_runs):
        columns = [np.sort(rng.permutation(X.shape[1])[:COLUMNS]) for X in Xs]
        some = [_dense(X[:, j]) for X, j in zip(Xs, columns, strict=True)]
        runs.append(criterion(some, model, ranks, rng))
    return np.array(runs)


def scaled_views(views: Views, model: WMNMF) -> list[Matrix]:
    """The views as the model scales them."""
    scalings = fit_scaling(views, model.scale)
    Xs = [
        scaling.apply(X.astype(float)) for X, scaling in zip(views.matrices, scalings, strict=True)
    ]
    return [sp.csc_array(X) if sp.issparse(X) else X for X in Xs]


def largest_own_rank(views: Views) -> int:
    """What the fitted block of bi-cross-validation can hold."""
    widths = [min(X.shape[1], COLUMNS) for X in views.matrices]
    return min(views.n_samples, *widths) * (GROUPS - 1) // GROUPS


def bicv_of_wmnmf(
    Xs: list[Array], model: WMNMF, ranks: list[int], rng: np.random.Generator
) -> Array:
    """Bi-cross-validation: rows and columns dealt into 3 groups each, the diagonal blocks left out.

    WM-NMF is fitted to the other rows and columns of all views. Its consensus V* tells the parts of all
    columns, and the kept columns of all views then tell V* of the left-out rows, by nonnegative least
    squares: the objective itself draws U away from them, and every rank would seem too low.
    """
    rows = rng.permutation(len(Xs[0])) % GROUPS
    groups = [rng.permutation(X.shape[1]) % GROUPS for X in Xs]
    errors, totals = np.zeros((len(ranks), len(Xs))), np.zeros(len(Xs))
    for g in range(GROUPS):
        i = rows == g
        kept = [columns != g for columns in groups]
        left_out = [X[i][:, ~j] for X, j in zip(Xs, kept, strict=True)]
        fitted = [X[~i][:, j] for X, j in zip(Xs, kept, strict=True)]
        # Views count alike, as in the consensus: each in units of its own spread.
        unit = [1 / max(float(X.std()), 1e-300) for X in fitted]
        seen = np.hstack([u * X[i][:, j] for u, X, j in zip(unit, Xs, kept, strict=True)])
        for r, fit in enumerate(_path(model, fitted, ranks, rng)):
            V = fit.consensus_
            parts = [u * solve(X.T, V) for u, X in zip(unit, fitted, strict=True)]
            V_left = solve(seen, np.vstack(parts))
            for s, (X, j) in enumerate(zip(Xs, kept, strict=True)):
                told = V_left @ solve(X[~i][:, ~j].T, V).T
                errors[r, s] += ((left_out[s] - told) ** 2).sum()
        totals += [_spread(A, X[~i][:, ~j]) for A, X, j in zip(left_out, Xs, kept, strict=True)]
    return _share(errors, totals)


def imputation_of_wmnmf(
    Xs: list[Array], model: WMNMF, ranks: list[int], rng: np.random.Generator
) -> Array:
    """A tenth of the entries hidden from the fit (``missing="allow"``), and told from its consensus V*."""
    hidden = [rng.random(X.shape) < HIDDEN for X in Xs]
    seen = [np.where(h, np.nan, X) for X, h in zip(Xs, hidden, strict=True)]
    means = [np.nan_to_num(np.nanmean(X, axis=0)) for X in seen]
    errors = np.zeros((len(ranks), len(Xs)))
    for r, fit in enumerate(_path(model, seen, ranks, rng, missing="allow")):
        for s, (X, h) in enumerate(zip(Xs, hidden, strict=True)):
            told = np.broadcast_to(means[s], X.shape)
            for _ in range(REFILLS):
                told = fit.consensus_ @ solve(np.where(h, told, X).T, fit.consensus_).T
            errors[r, s] = ((X - told) ** 2)[h].sum()
    gaps = zip(Xs, means, hidden, strict=True)
    return _share(errors, np.array([((X - mean) ** 2)[h].sum() for X, mean, h in gaps]))


CRITERIA: dict[str, WMNMFCriterion] = {"bicv": bicv_of_wmnmf, "imputation": imputation_of_wmnmf}


def _path(
    model: WMNMF, Xs: list[Array], ranks: list[int], rng: np.random.Generator, **given: str
) -> Iterator[WMNMF]:
    """The model's own fits of growing rank, each from the one before and from what that leaves.

    From a random start two rounds end far from what a rank can do, and more components then only help
    to get on. Labels are not looked at, and read in the cheapest way.
    """
    own = clone(model).set_params(
        assign_labels="argmax", n_init=1, scale=None, views=None, checkpoint=None, verbose=0,
        callback=None, random_state=int(rng.integers(2**31)), **given,
    )  # fmt: skip
    V = [np.zeros((len(X), 0)) for X in Xs]
    U = [np.zeros((X.shape[1], 0)) for X in Xs]
    unit = [1 / max(float(np.nanstd(X)), 1e-300) for X in Xs]
    ends = np.cumsum([X.shape[1] for X in Xs])[:-1]
    for K in ranks:
        gaps = [np.nan_to_num(X - v @ u.T) for X, v, u in zip(Xs, V, U, strict=True)]
        # The same rows for all views: parts that start apart are drawn to each other, not to the data.
        side_by_side = np.hstack([c * gap for c, gap in zip(unit, gaps, strict=True)])
        more_V, more_U = positive_parts(side_by_side, K - V[0].shape[1], rng)
        V = [np.hstack([v, more_V]) for v in V]
        U = [np.hstack([u, m / c]) for u, m, c in zip(U, np.split(more_U, ends), unit, strict=True)]
        init = {"components": [u.T for u in U], "coefficients": V}
        own.set_params(n_clusters=K, n_components=K, init=init)
        with warnings.catch_warnings():
            # Of blocks that nobody but us looks at; a fit of the whole gives its own warnings.
            warnings.simplefilter("ignore")
            own.fit(Xs)
        V, U = list(own.coefficients_), [u.T for u in own.components_]
        yield own


def _spread(left_out: Array, kept: Array) -> float:
    """What the means of the kept rows leave of the left-out ones."""
    return float(((left_out - kept.mean(axis=0)) ** 2).sum())


def _share(errors: Array, totals: Array) -> Array:
    """Errors of ranks × views in units of what means leave; views that means tell wholly say nothing."""
    telling = totals > 0
    if not telling.any():
        return np.full(len(errors), np.nan)
    return (errors[:, telling] / totals[telling]).mean(axis=1)


def _dense(X: Matrix) -> Array:
    return X.toarray() if sp.issparse(X) else np.asarray(X)


# --- choosing -----------------------------------------------------------------------------------

__all__ = [
    "DEFAULT",
    "METHODS",
    "OWN_METHODS",
    "Evidence",
    "NoClustersWarning",
    "Selection",
    "choose",
    "choose_for_wmnmf",
    "gather",
    "usual_candidates",
]

#: The criteria that are asked unless others are named, by whoever asks.
DEFAULT = GRAPH_METHODS
#: The criteria for `WMNMF` itself.
OWN_METHODS = tuple(CRITERIA)
#: Numbers tried unless others are named: all up to 14, then fewer the larger they are.
SMALL, LARGE = range(2, 15), (16, 18, 20, 23, 26, 30, 35, 40)
#: Large numbers need so many observations for each cluster.
MEMBERS = 10

#: Runs of "stability", and the most observations that are looked at, unless asked otherwise.
RUNS, MAX_SAMPLES = 20, 1000


def usual_candidates(n_samples: int) -> list[int]:
    """The numbers of clusters tried unless others are named: 2 to 14, and up to 40 of larger data."""
    small = [K for K in SMALL if n_samples > K] or [2]
    return small + [K for K in LARGE if n_samples >= MEMBERS * K]


def gather(
    views: Views,
    present: list[Array],
    scalings: list[Scaling | None],
    settings: Settings,
    rng: np.random.Generator,
    *,
    n_values: int,
    dtype: np.dtype | None = None,
    max_samples: int = MAX_SAMPLES,
    resolution: float = 1.0,
) -> Evidence:
    """What does not depend on the number of clusters, of (a sample of) the observations some view has.

    Parameters
    ----------
    views : Views
        On the host, as they were read.
    present : list of ndarray (N,)
        Which rows of each view count.
    scalings : list of Scaling or None
        How the features are made comparable, learnt from all rows.
    settings : Settings
    rng : Generator
    n_values : int
        Eigenvalues wanted: one more than the largest candidate.
    dtype : dtype, optional
        Precision of the computation.
    max_samples : int
    resolution : float
        Of the communities.

    Returns
    -------
    Evidence
    """
    # Nobody can tell the cluster of an observation that no view with weight has.
    telling = with_weight(present, settings.view_weights)
    rows, notes = np.flatnonzero(np.any(telling, axis=0)), []
    if len(rows) < 3:
        raise ValueError(
            f"select_n_clusters needs at least 3 observations with values, got {len(rows)}"
        )
    if len(rows) > max_samples:
        notes.append(f"{max_samples} of the {len(rows)} observations, drawn at random, were used")
        rows = np.sort(rng.permutation(rows)[:max_samples])
    if n_values - 1 > len(rows):
        raise ValueError(
            f"candidates go up to {n_values - 1}, but only {len(rows)} observations are looked at "
            f"(max_samples={max_samples}, those missing everywhere left out); lower the candidates or "
            "raise max_samples"
        )
    spaces = measure_some(views, present, scalings, working_dtype(views, dtype), rows)
    spaces, repeats = distinct(spaces, with_weight(spaces, settings.view_weights))
    if repeats is not None and len(repeats.first) < 3:
        raise ValueError(
            f"select_n_clusters needs at least 3 distinct observations, got {len(repeats.first)} of "
            f"{len(rows)}; say the number of clusters"
        )
    copies = None if repeats is None else np.bincount(repeats.of)
    agreement = agree(spaces, settings, number_by_gap, rng)
    return Evidence(spaces, agreement, n_values, rng, notes, resolution, copies)


def choose(
    evidence: Evidence,
    candidates: Sequence[int],
    methods: Sequence[str],
    rng: np.random.Generator,
    n_runs: int = RUNS,
) -> Selection:
    """The number of clusters that most methods find; a warning where none stands out.

    Parameters
    ----------
    evidence : Evidence
    candidates : sequence of int
        Growing, each at least 2.
    methods : sequence of str
        Some of `METHODS`.
    rng : Generator
    n_runs : int
        Runs of "stability".

    Returns
    -------
    Selection
    """
    asked = _possible(candidates, evidence)
    votes = [judge(evidence, name, asked, n_runs, rng) for name in methods]
    verdict = heed_copies(combine(votes), evidence.copies, asked)
    return _selection(verdict, votes, asked, evidence.notes)


def choose_for_wmnmf(
    views: Views,
    model: WMNMF,
    candidates: Sequence[int],
    methods: Sequence[str],
    rng: np.random.Generator,
    max_samples: int = MAX_SAMPLES,
) -> Selection:
    """The rank K of `WMNMF` itself, on its own scaled views and by its own objective.

    Parameters
    ----------
    views : Views
        Nonnegative, or negative where the model's scale takes them; complete.
    model : WMNMF
        Its settings are used; never changed.
    candidates : sequence of int
        Growing, each at least 2.
    methods : sequence of str
        Some of `OWN_METHODS`.
    rng : Generator
    max_samples : int

    Returns
    -------
    Selection
    """
    notes = []
    if views.n_samples > max_samples:
        notes.append(
            f"{max_samples} of the {views.n_samples} observations, drawn at random, were used"
        )
        rows = np.sort(rng.permutation(views.n_samples)[:max_samples])
        views = views.with_matrices([X[rows] for X in views.matrices])
    limit = largest_own_rank(views)
    asked = [K for K in candidates if limit >= K]
    if not asked:
        raise ValueError(
            f"the blocks that {', '.join(methods)} can fit hold a rank of {limit} at most, less than every "
            "candidate; use more observations or features, or lower the candidates"
        )
    if len(asked) < len(candidates):
        notes.append(
            f"the blocks that are fitted hold a rank of {limit} at most: no more was tried"
        )
    votes = []
    for name in methods:
        curves = own_curves(views, model, [1, *asked], name, RANK_RUNS, rng)
        votes.append(by_curves(name, asked, curves, limit, SLACK))
    return _selection(combine(votes), votes, asked, notes)


def _selection(
    verdict: Verdict, votes: list[Vote], asked: list[int], notes: list[str]
) -> Selection:
    selection = Selection(
        verdict.n_clusters,
        verdict.n_clusters > 1,
        [*notes, *(vote.reason for vote in votes), *verdict.words],
        {vote.method: vote.choice for vote in votes},
        as_table(votes, asked),
        verdict.runner_up,
        verdict.doubtful,
    )
    _warn(selection, votes)
    return selection


def _possible(candidates: Sequence[int], evidence: Evidence) -> list[int]:
    """The candidates that distinct observations can have: copies of one belong together."""
    n = evidence.n_samples
    possible = [K for K in candidates if n >= K]
    if not possible:
        raise ValueError(
            f"there are only {n} distinct observations, and no candidate is as small; lower the candidates"
        )
    if len(possible) < len(candidates):
        evidence.notes.append(f"only {n} observations are distinct: no more clusters were tried")
    return possible


def _warn(selection: Selection, votes: list[Vote]) -> None:
    backers = [vote for vote in votes if vote.choice == selection.n_clusters]
    if not selection.found:
        warn_user(
            "no number of clusters stands out among the candidates: "
            + "; ".join(selection.reasons)
            + ". n_clusters is 1",
            NoClustersWarning,
        )
    elif too_few(votes) or (backers and all(vote.open_ended for vote in backers)):
        warn_user(
            f"the best number of clusters is the largest candidate ({selection.n_clusters}); "
            "more may be better still: raise the candidates"
        )


# --- within a fit -------------------------------------------------------------------------------


def chosen_number(
    views: Views,
    present: list[Array],
    scalings: list[Scaling | None],
    settings: Settings,
    checkpoint: Checkpoint,
    random_state: Seed,
    dtype: np.dtype | None,
    resolution: float,
) -> Selection:
    """What the evidence for some numbers of clusters recommends."""
    # Nobody can tell the cluster of an observation that is nowhere present.
    n = int(np.any(with_weight(present, settings.view_weights), axis=0).sum())
    candidates, rng = usual_candidates(n), generator(random_state)

    def chosen() -> Selection:
        evidence = gather(
            views,
            present,
            scalings,
            settings,
            rng,
            n_values=max(candidates) + 1,
            dtype=dtype,
            resolution=resolution,
        )
        return choose(evidence, candidates, DEFAULT, rng)

    return checkpoint.keep("selection", chosen)


def count_communities(repeats: Repeats | None, resolution: float, agreement: Agreement) -> int:
    """How many communities the fused graph has."""
    graph = on_host(agreement.fused)
    here = np.ravel(graph.sum(axis=1)) > 0
    count = np.ones(len(here)) if repeats is None else np.bincount(repeats.of)
    if not here.any():
        return 1
    return communities(graph[here][:, here], resolution, 0, count[here]).count


def fused_communities(
    agreement: Agreement,
    anywhere: Array,
    repeats: Repeats | None,
    resolution: float,
    rng: np.random.Generator,
    checkpoint: Checkpoint,
) -> tuple[Array, int]:
    """Communities of the distinct observations that are somewhere, 0 for the others; how many."""
    here = anywhere if repeats is None else anywhere[repeats.first]
    count = np.ones(len(here)) if repeats is None else np.bincount(repeats.of)

    def find() -> Communities:
        graph = on_host(agreement.fused)
        seed = int(rng.integers(2**31))
        return communities(graph[here][:, here], resolution, seed, count[here])

    if not here.any():
        raise ValueError(
            "communities need an observation that some view describes; all are missing"
        )
    found = checkpoint.keep("communities", find)
    tell_tiny(found)
    labels = np.zeros(len(here), dtype=np.int64)
    labels[here] = found.labels
    return labels, found.count
