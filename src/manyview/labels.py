"""From an embedding or a graph to labels: k-means, spectral clustering, communities; labels compared."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from manyview._arrays import is_tensor, namespace, on_host, one_hot
from manyview._types import Array, Matrix, storable
from manyview._warn import warn_user
from manyview.engines.affinity import affinity, inverse_distances, links, nearest_neighbors
from manyview.engines.numpy.graph import on_host as graph_on_host
from manyview.engines.numpy.presence import read_rows
from manyview.engines.numpy.repeats import Repeats
from manyview.engines.protocols import engine_part
from manyview.engines.threads import blocks
from manyview.maths import equations as eq
from manyview.maths.agreement import Agreement
from manyview.maths.spectrum import (
    Graph,
    inverse_root_degrees,
    leading_eigenvectors,
    normalized,
    part_sizes,
)
from manyview.storage.checkpoint import Checkpoint

# --- k-means++ ----------------------------------------------------------------------------------

#: Most pairs of rows whose distances are kept: 256 MiB in single precision.
SHARED_PAIRS = 2**26


class SharedSeeding:
    """Starts of `sklearn.cluster.KMeans` (its ``init``) by k-means++, as it draws them itself.

    Each center is the best of a few candidates. All starts together use nearly every row as a
    candidate, most of them many times: a table of all distances is less work.
    """

    def __init__(self, X: Array, weight: Array | None = None):
        self.weight = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
        own = np.einsum("im,im->i", X, X)
        self.squared = X @ X.T
        self.squared *= -2
        self.squared += own[:, None]
        self.squared += own
        np.maximum(self.squared, 0, out=self.squared)
        np.fill_diagonal(self.squared, 0)

    @staticmethod
    def fits(n_rows: int) -> bool:
        """Whether the distances of this many rows are few enough to be stored."""
        return n_rows**2 <= SHARED_PAIRS

    def __call__(self, X: Array, n_clusters: int, random_state: np.random.RandomState) -> Array:
        """The rows of X to start from."""
        return X[self.chosen(n_clusters, random_state)]

    def chosen(self, n_clusters: int, random_state: np.random.RandomState) -> Array:
        """The places of the rows, each likely by its squared distance to those chosen before."""
        n, weight, trials = len(self.weight), self.weight, 2 + int(np.log(n_clusters))
        chosen = np.empty(n_clusters, dtype=np.int64)
        chosen[0] = random_state.choice(n, p=weight / weight.sum())
        closest = self.squared[chosen[0]]
        for c in range(1, n_clusters):
            reached = np.cumsum(weight * closest)
            drawn = random_state.uniform(size=trials) * reached[-1]
            candidates = np.searchsorted(reached, drawn).clip(max=n - 1)
            left = np.minimum(closest, self.squared[candidates])
            best = int(np.argmin(left @ weight))
            chosen[c], closest = candidates[best], left[best]
        return chosen


# --- spectral clustering and k-means ------------------------------------------------------------

#: Above this many rows, spectral labels are those of a sample of rows, and the vote of these.
LANDMARKS_ABOVE, LANDMARKS = 20_000, 5_000
#: Above this many rows, k-means starts are tried on a sample of rows.
KMEANS_SAMPLE = 20_000
#: Rows × coordinates × clusters above which starts are tried on fewer rows and in fewer coordinates …
EASY = 2 * 10**7
#: … this many rows per cluster and in all at least, and coordinates with this share of the variance.
ROWS_PER_CLUSTER, FEWEST_ROWS, KEPT_VARIANCE = 40, 5_000, 0.98
#: A part of the graph is small with fewer rows than an average cluster divided by this.
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

    "spectral" embeds by the random-walk Laplacian of the nearest-neighbor graph of V* (the
    paper's step), "njw" the same with unit rows, "kmeans" clusters V* itself, "argmax" takes each
    row's largest component. Of more rows than ``above`` the first two embed ``landmarks`` only.
    With ``connect`` small parts of that graph are linked to the rest; without, there is a warning.
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
    """The neighbor graph of V*; link its small parts to the rest, or warn of them.

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
        f"the neighbor graph of the consensus falls into {n_parts} parts, the smallest of "
        f"{int(sizes.min())} samples: a part may become a cluster, and two true clusters "
        "may be merged; set connect=True, or compare several seeds"
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
    # Ties go to the label of the nearer neighbors: later places count a little less.
    votes: Any = sum(
        (1 - 1e-3 * place) * closeness[place] * one_hot(labels[indices[:, place]], clusters)
        for place in range(indices.shape[1])
    )
    return votes.argmax(axis=1)


def n_neighbors(n_samples: int) -> int:
    """ceil(ln N), the customary neighborhood of a spectral graph."""
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
    """Labels of the rows, weighted by ``mass`` (on the host).

    With more rows than ``sample``, starts are tried on a sample of this size.
    """
    if is_tensor(X):
        return engine_part("torch", "kmeans").kmeans(X, n_clusters, rng, n_init, sample)
    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():
        # Fewer distinct points than clusters: the caller warns of empty clusters once.
        warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
        if len(X) <= sample and X.size * n_clusters <= EASY:
            model = KMeans(n_clusters, n_init=n_init, random_state=seed)
        else:
            centers = _best_start(X, n_clusters, seed, n_init, mass, sample)
            model = KMeans(n_clusters, init=centers, n_init=1, random_state=seed)
        return model.fit_predict(X, None, mass).astype(np.int64)


def _best_start(
    X: Array, n_clusters: int, seed: int, n_init: int, mass: Array | None, sample: int
) -> Array:
    """Centers of the best of several starts, which are tried on a sample of rows.

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
    some, labels = X[rows], np.zeros(0)
    if hard:
        # In single precision along the directions that hold nearly all of the variance.
        centered = some - some.mean(axis=0)
        variance, directions = np.linalg.eigh(centered.T @ centered)
        kept = np.cumsum(variance) > (1 - KEPT_VARIANCE) * variance.sum()
        along = (centered @ directions[:, kept]).astype(np.float32)
        quick = clone(search)
        if SharedSeeding.fits(len(along)):
            quick.set_params(init=SharedSeeding(along, weight))
        labels = quick.fit(along, None, weight).labels_
    if len(np.unique(labels)) < n_clusters:
        return search.fit(some, None, weight).cluster_centers_
    share = np.ones(len(rows)) if weight is None else weight
    members = sp.csr_array((share, (labels, np.arange(len(rows)))))
    return np.asarray(members @ some) / np.ravel(members.sum(axis=1))[:, None]


# --- few distinct samples -----------------------------------------------------------------------

#: Entries of a view looked at together: most often the first few rows already differ.
ENTRIES = 2**16
#: With fewer distinct samples than this, of which one is this many times as frequent as another,
#: one fit in six has rare ones in a wrong cluster.
FEW_KINDS, UNEQUAL = 12, 10


def row_kinds(
    matrices: Sequence[Matrix], fewer_than: int, here: Array | None = None
) -> Array | None:
    """The number of the kind of every row, if there are fewer kinds than that; otherwise None.

    Two rows are of one kind if all views have the same numbers for them. Rows that are not ``here`` do
    not count (kind 0). Of usual data only the first rows are read.
    """
    kinds: dict[tuple[bytes, ...], int] = {}
    found: list[int] = []
    size = max(1, ENTRIES // max(X.shape[1] for X in matrices))
    for rows in blocks(slice(0, matrices[0].shape[0]), size):
        parts = [_marks(read_rows(X, rows)) for X in matrices]
        for i, marks in enumerate(zip(*parts, strict=True), rows.start):
            counts = here is None or here[i]
            found.append(kinds.setdefault(marks, len(kinds)) if counts else 0)
            if len(kinds) >= fewer_than:
                return None
    return np.array(found)


def _marks(part: Matrix) -> Iterator[bytes]:
    """What is the same for identical rows and differs for others."""
    if not sp.issparse(part):
        part = np.ascontiguousarray(part) + 0.0  # −0 is 0
        part[np.isnan(part)] = np.nan  # there are many NaNs
        yield from (row.tobytes() for row in part)
        return
    part = sp.csr_array(part, copy=True)
    part.eliminate_zeros()
    part.sort_indices()
    for start, stop in zip(part.indptr[:-1], part.indptr[1:], strict=True):
        yield part.indices[start:stop].astype(np.int64).tobytes() + part.data[start:stop].tobytes()


def tell_few_kinds(n_kinds: int, n_clusters: int) -> None:
    warn_user(
        f"only {n_kinds} distinct samples for n_clusters={n_clusters}: identical samples "
        f"stay together, so that there are {n_kinds} clusters; choose fewer clusters"
    )


def tell_unequal_kinds(mass: Array, n_clusters: int) -> None:
    """Say so where a few distinct samples are very unequally frequent."""
    if n_clusters < len(mass) < FEW_KINDS and mass.max() >= UNEQUAL:
        warn_user(
            f"only {len(mass)} samples are distinct after scaling, the most frequent "
            f"{mass.max():g} times as frequent as the rarest: clusters follow the frequent ones, and a "
            "rare one may be in the wrong cluster; fit the distinct samples once each and predict "
            "the others, or choose more clusters"
        )


def tell_empty_clusters(
    labels: Any, n_clusters: int, remedy: str = "choose fewer clusters"
) -> None:
    """Warn if fewer clusters have members than were requested."""
    n_found = len(np.unique(labels[labels >= 0]))
    if n_found < n_clusters:
        warn_user(
            f"only {n_found} of {n_clusters} clusters have members: the samples do not fall into "
            f"more; {remedy}"
        )


# --- communities --------------------------------------------------------------------------------

PACKAGE = "graspologic_native"
#: Runs from different seeds, of which the one of the highest modularity counts, and rounds of each.
#: In graphs of more vertices than are given here runs differ less: fewer, by the square root.
TRIALS, UP_TO, ROUNDS = 10, 5000, 3
#: Communities of fewer samples are joined to others; of fewer than 100 samples, 5% of them.
SMALLEST, SMALLEST_SHARE = 5, 0.05
#: Digits of the strengths by which vertices are ordered: further ones are rounding.
DIGITS = 9


@storable
@dataclass(frozen=True)
class Communities:
    """Labels from the largest community to the smallest, and what became of tiny ones."""

    labels: Array
    least: int
    n_joined: int = 0
    n_apart: int = 0

    @property
    def count(self) -> int:
        return int(self.labels.max()) + 1


def installed() -> bool:
    """Whether the extra "communities" is there."""
    return find_spec(PACKAGE) is not None


def check_installed() -> None:
    """Refuse, before anything is computed, what needs the extra."""
    if not installed():
        raise ModuleNotFoundError(
            "communities need the package graspologic-native: pip install 'manyview[communities]'; "
            "or give a number of clusters",
            name=PACKAGE,
        )


def communities(
    graph: sp.csr_array,
    resolution: float,
    seed: int,
    count: Array | None = None,
    trials: int = TRIALS,
) -> Communities:
    """Communities of a graph; those with fewer than a few samples join their nearest.

    Parameters
    ----------
    graph : sparse array (n, n), symmetric
    resolution : float
        γ of the modularity: more, more communities.
    seed : int
    count : ndarray (n,), optional
        How many samples each vertex stands for.
    trials : int
        Runs in a small graph, of which the best counts.

    Returns
    -------
    Communities
    """
    count = np.ones(graph.shape[0]) if count is None else count
    labels = leiden(graph, resolution, seed, trials)
    least = int(max(1, min(SMALLEST, np.ceil(SMALLEST_SHARE * count.sum()))))
    joined, n_joined = _without_tiny(graph, labels, count, least)
    labels = largest_first(joined, count)
    n_apart = int((np.bincount(labels, count) < least).sum())
    return Communities(labels, least, n_joined, n_apart)


def leiden(graph: sp.csr_array, resolution: float, seed: int, trials: int = TRIALS) -> Array:
    """Labels of the vertices by the best of several runs, fewer in a large graph.

    Vertices are visited in the order of their strengths, which does not depend on the order of the rows.
    """
    check_installed()
    n = graph.shape[0]
    strength = np.asarray(graph.sum(axis=1)).ravel()
    order = np.argsort(np.round(strength, DIGITS), kind="stable")
    ordered = sp.csr_array(graph[order][:, order])
    ordered.sort_indices()
    _, found = import_module(PACKAGE).leiden_csr(
        ordered.indptr.astype(np.int64),
        ordered.indices.astype(np.int32),
        ordered.data.astype(np.float64),
        n,
        resolution=float(resolution),
        seed=seed,
        iterations=ROUNDS,
        trials=max(1, round(trials * min(1, UP_TO / n) ** 0.5)),
    )
    labels = np.empty(n, dtype=np.int64)
    labels[order] = [found[i] for i in range(n)]
    return labels


def tell_tiny(found: Communities) -> None:
    """Say once what became of communities of very few samples."""
    if found.n_joined:
        warn_user(
            f"{found.n_joined} communities of fewer than {found.least} samples were joined to the "
            "community they share most links with"
        )
    if found.n_apart:
        warn_user(
            f"{found.n_apart} communities have fewer than {found.least} samples and no link to "
            "others; they remain separate clusters"
        )


def count_communities(agreement: Agreement, mass: Array | None) -> int:
    """How many communities the fused graph has; at any resolution its views weigh the same."""
    graph = graph_on_host(agreement.fused)
    here = np.ravel(graph.sum(axis=1)) > 0
    count = np.ones(len(here)) if mass is None else mass
    if not here.any():
        return 1
    return communities(graph[here][:, here], 1.0, 0, count[here]).count


def fused_communities(
    agreement: Agreement,
    anywhere: Array,
    repeats: Repeats | None,
    resolution: float,
    rng: np.random.Generator,
    checkpoint: Checkpoint,
) -> tuple[Array, int]:
    """Communities of the distinct samples that are somewhere, 0 for the others; how many."""
    here = anywhere if repeats is None else anywhere[repeats.first]
    count = np.ones(len(here)) if repeats is None else np.bincount(repeats.of)

    def find() -> Communities:
        graph = graph_on_host(agreement.fused)
        seed = int(rng.integers(2**31))
        return communities(graph[here][:, here], resolution, seed, count[here])

    if not here.any():
        raise ValueError("communities need a sample that some view describes; all are missing")
    found = checkpoint.keep("communities", find)
    tell_tiny(found)
    labels = np.zeros(len(here), dtype=np.int64)
    labels[here] = found.labels
    return labels, found.count


def _without_tiny(
    graph: sp.csr_array, labels: Array, count: Array, least: int
) -> tuple[Array, int]:
    """The smallest community joins the one it shares most edge weight with, until none is tiny."""
    members = sp.csr_array((np.ones(len(labels)), (np.arange(len(labels)), labels)))
    between = sp.coo_array(members.T @ graph @ members)
    links: list[dict[int, float]] = [{} for _ in range(between.shape[0])]
    for a, b, weight in zip(*(x.tolist() for x in (*between.coords, between.data)), strict=True):
        if a != b and weight > 0:
            links[a][b] = weight
    sizes = np.bincount(labels, count).tolist()
    home = np.arange(len(sizes))
    waiting = [(size, c) for c, size in enumerate(sizes) if size < least]
    heapify(waiting)
    n_joined = 0
    while waiting:
        size, smallest = heappop(waiting)
        if size != sizes[smallest] or not links[smallest]:  # it has grown or gone, or has no link
            continue
        nearest = max(links[smallest], key=lambda c: (links[smallest][c], -c))
        for other, weight in links[smallest].items():
            del links[other][smallest]
            if other != nearest:
                links[other][nearest] = links[nearest][other] = (
                    links[nearest].get(other, 0) + weight
                )
        links[smallest] = {}
        home[home == smallest] = nearest
        sizes[nearest] += sizes[smallest]
        sizes[smallest] = 0
        n_joined += 1
        if sizes[nearest] < least:
            heappush(waiting, (sizes[nearest], nearest))
    return home[labels], n_joined


def by_size(labels: Array, n_clusters: int, count: Array | None = None) -> Array:
    """The clusters from the largest to the smallest, equal ones by their first member, empty ones last."""
    known = labels >= 0
    sizes = np.bincount(labels[known], None if count is None else count[known], n_clusters)
    first = np.full(n_clusters, len(labels))
    np.minimum.at(first, labels[known], np.flatnonzero(known))
    return np.lexsort((first, -sizes))


def largest_first(labels: Array, count: Array | None = None) -> Array:
    """Labels 0, 1, … `by_size`; −1 stays."""
    order = by_size(labels, int(labels.max()) + 1, count)
    return np.append(np.argsort(order), -1)[labels]


# --- random parts, and labels compared ----------------------------------------------------------

#: Halves that are clustered for `clusters_of_halves`, starts of each, and most rows of one.
HALVES, STARTS, MOST_ROWS = 20, 3, 5_000


def resamples(n: int, fraction: float, n_runs: int, rng: np.random.Generator) -> Iterator[Array]:
    """``n_runs`` sorted subsets of a share of range(n), each row left out equally often (±1)."""
    n_out = n - part_size(n, fraction)
    waiting = np.empty(0, dtype=int)
    for _ in range(n_runs):
        if len(waiting) < n_out:
            # The next round. Rows still waiting from the last must not come twice in this run.
            fresh = rng.permutation(n)
            late = np.isin(fresh, waiting)
            now, later = fresh[~late][:n_out], np.append(fresh[~late][n_out:], fresh[late])
            waiting = np.concatenate([waiting, now, rng.permutation(later)])
        out, waiting = waiting[:n_out], waiting[n_out:]
        yield np.setdiff1d(np.arange(n), out)


def part_size(n: int, fraction: float) -> int:
    """Rows in a run."""
    return max(2, round(fraction * n))


def pairwise_ari(runs: Array) -> Array:
    """Adjusted Rand index of every two rows of labels, on the entries that both have (≥ 0)."""
    return np.array([shared_ari(runs[a], runs[b]) for a in range(len(runs)) for b in range(a)])


def shared_ari(one: Array, other: Array) -> float:
    """Adjusted Rand index (Hubert & Arabie) over the entries labeled in both.

    With n_kl the table of shared members and C(x) = x(x−1)/2 ::

        (Σ C(n_kl) − E) / (½(Σ C(n_k.) + Σ C(n_.l)) − E),   E = Σ C(n_k.) Σ C(n_.l) / C(n)
    """
    both = (one >= 0) & (other >= 0)
    a, b = one[both], other[both]
    if len(a) < 2:  # nothing to compare
        return float((one >= 0).any() and (other >= 0).any())
    table = contingency(a, b, int(a.max()) + 1, int(b.max()) + 1)

    def pairs(counts: Array) -> float:
        return float((counts * (counts - 1.0)).sum() / 2)

    rows, columns = pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    expected = rows * columns / (len(a) * (len(a) - 1) / 2)
    ceiling = (rows + columns) / 2
    return 1.0 if ceiling == expected else (pairs(table) - expected) / (ceiling - expected)


def contingency(a: Array, b: Array, n_a: int, n_b: int) -> Array:
    return np.bincount(a * n_b + b, minlength=n_a * n_b).reshape(n_a, n_b)


def matched(own: Array, other: Array, n_clusters: int) -> Array:
    """For each cluster of ``other`` the one of ``own`` it stands for, one to one, most members shared."""
    theirs, ours = linear_sum_assignment(
        contingency(other, own, n_clusters, n_clusters), maximize=True
    )
    return ours[np.argsort(theirs)]


def clusters_of_halves(
    P: Array, labels: Array, repeats: tuple[Array, Array | None] | None, n_clusters: int
) -> tuple[Array, Array]:
    """How a refit could place the clusters: k-means of the embedding on random halves of the rows.

    A half differs from all rows as much as another sample of the same size would: without replacement
    the mean of n/2 of n rows has the variance around theirs that theirs has around the truth.
    """
    rows, mass = (np.arange(len(P)), None) if repeats is None else repeats
    here = labels[rows] >= 0
    if here.sum() < n_clusters:  # copies are clusters of their own
        rows, here, mass = np.arange(len(P)), labels >= 0, None
    rows, mass = rows[here], None if mass is None else mass[here]
    size = min(len(rows), max(min(len(rows) // 2, MOST_ROWS), 2 * n_clusters))
    rng = np.random.default_rng(0)
    centers = np.empty((HALVES, n_clusters, P.shape[1]), dtype=P.dtype)
    widths = np.empty(HALVES)
    for b in range(HALVES):
        some = np.sort(rng.permutation(len(rows))[:size])
        share = np.ones(size) if mass is None else mass[some]
        X = P[rows[some]]
        found = kmeans(X, n_clusters, rng, STARTS, share)
        found = matched(labels[rows[some]], found, n_clusters)[found]
        centers[b] = eq.cluster_centers(X, share[:, None] * one_hot(found, n_clusters))
        own = ((X - centers[b][found]) ** 2).sum(axis=1)
        widths[b] = max(float(share @ own / share.sum()), np.finfo(float).eps)
    return centers, widths
