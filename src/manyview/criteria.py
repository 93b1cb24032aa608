"""How many clusters: one criterion, and a test against data without clusters.

The score of K is the modularity of K clusters of the fused graph plus √K times the gap between its
eigenvalues K and K+1. Modularity rewards clusters that hold together, but it merges many small ones and
is flat near its maximum; there the gap decides. The gaps are smaller for larger K, hence √K.

The test compares the score with that of clouds at the same K: an elongated cloud can be cut into many
pieces of high modularity, but not into two. Clusters of unequal size have a low modularity however far
apart they are; the gap does not depend on sizes. Where the graph nearly falls apart into K
parts of similar size, these are the clusters: in views of few features a single cluster can be cut into
pieces of high modularity as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Views, storable
from manyview._warn import warn_user
from manyview.base import with_weight, working_dtype
from manyview.engines.numpy.distances import Geometry
from manyview.engines.numpy.repeats import distinct
from manyview.engines.numpy.scaling import Scaling
from manyview.fuse import Settings, agree, fused_graphs, measure_some
from manyview.labels import kmeans
from manyview.maths.agreement import VECTORS, Agreement
from manyview.maths.spectrum import diffused, leading_eigenvectors, modularity, normalized
from manyview.plot import pyplot
from manyview.plot.model import draw_scores

__all__ = [
    "NoClustersWarning",
    "Selection",
    "choose",
    "number_by_gap",
    "usual_candidates",
    "warn_of",
]

#: Numbers that are tried by default: all up to 14, then fewer the larger they are. Those above 14 need
#: this many samples for each cluster.
SMALL, LARGE = range(2, 15), (16, 18, 20, 23, 26, 30, 35, 40, 50, 60, 80, 100)
MEMBERS = 10
#: Most samples that are used, unless the caller says otherwise.
MAX_SAMPLES = 1000
#: Starts of k-means for every number of clusters.
STARTS = 3
#: Clouds without clusters, and the largest number that is tried on them: their score falls long before.
CLOUDS, MOST_OF_CLOUDS = 12, 40
#: Standard deviations that the test requires, and the least that one of them is. Within this share of
#: the threshold the choice is doubtful.
DEVIATIONS, LEAST_DEVIATION, DOUBT_SHARE = 5.0, 0.01, 0.2
#: The graph nearly falls apart into K parts where the gap is at least this share of 1 − λ_{K+1} (data
#: without clusters reach .81). Parts are similar in size where the smallest has this share of the average.
FALLS_APART, SIMILAR = 0.9, 0.25
#: The number with the best score is kept then only if its own gap has this share: groups within the parts.
CLEAR = 0.5
#: A choice is doubtful, too, where the runner-up's score is as close as this.
CLOSE = 0.01
#: A distinct sample that occurs so often, and makes up this share of all, may be a cluster by itself.
LEAST_COPIES, LEAST_SHARE = 5, 0.05
#: Largest number of clusters that `number_by_gap` tries.
MOST_BY_GAP = 40


class NoClustersWarning(UserWarning):
    """The data look like data without clusters."""


@storable
@dataclass(frozen=True)
class Selection:
    """The number of clusters, and why.

    Attributes
    ----------
    n_clusters : int
        The recommended number; 1 if the data look like data without clusters. Then `found` is False, and a
        `NoClustersWarning` appeared.
    found : bool
    runner_up : int or None
        The number with the second peak of the score. If no clusters were found but the test was close, the
        number with the best score.
    doubtful : bool
        Whether the test was close to its threshold, or the runner-up close to the recommended number.
    reasons : list of str
        What was compared, the values, and what they mean.
    table : dict of column → ndarray
        One row for each candidate; ``pandas.DataFrame(selection.table)``. Columns: n_clusters, score,
        modularity, gap, clouds (the mean score of data without clusters), chosen. Of `WMNMF`:
        n_clusters, score (the error, lower is better), error (its standard error), chosen.
    """

    n_clusters: int
    found: bool
    reasons: list[str]
    table: dict[str, Array] = field(repr=False)
    runner_up: int | None = None
    doubtful: bool = False

    @property
    def answer(self) -> str:
        """The recommendation in words, with the runner-up: "2 clusters; also 5 (doubtful)"."""
        head = f"{self.n_clusters} clusters" if self.found else "no clusters found"
        head += f"; also {self.runner_up}" if self.runner_up else ""
        return head + (" (doubtful)" if self.doubtful else "")

    def __repr__(self) -> str:
        return f"<Selection: {self.answer}>"

    def __str__(self) -> str:
        return "\n".join([self.answer, *(f"- {reason}" for reason in self.reasons)])

    def figure(self) -> Any:
        """Draw the score of every candidate and of data without clusters (matplotlib)."""
        figure, ax = pyplot().subplots(figsize=(5, 3.2), layout="constrained")
        draw_scores(ax, self.table, self.n_clusters if self.found else None, self.answer)
        return figure


def usual_candidates(n_samples: int) -> list[int]:
    """Return the default candidates: 2 to 14, and up to 100 with ten samples for each cluster."""
    small = [K for K in SMALL if n_samples > K] or [2]
    return small + [K for K in LARGE if n_samples >= MEMBERS * K]


def choose(
    views: Views,
    present: list[Array],
    scalings: list[Scaling],
    settings: Settings,
    rng: np.random.Generator,
    candidates: Sequence[int] | None = None,
    *,
    dtype: np.dtype | None = None,
    max_samples: int = MAX_SAMPLES,
) -> Selection:
    """Choose the number of clusters of views on the host, and warn where there are none.

    ``present`` says which rows of each view are observed; ``candidates`` are increasing, each at least 2;
    of more samples than ``max_samples`` a random part is used.
    """
    # A sample that is missing in every view with weight has no cluster.
    rows, notes = np.flatnonzero(np.any(with_weight(present, settings.view_weights), axis=0)), []
    if len(rows) < 3:
        raise ValueError(f"select_n_clusters needs at least 3 samples with values, got {len(rows)}")
    if len(rows) > max_samples:
        notes.append(f"A random {max_samples} of the {len(rows)} samples were used.")
        rows = np.sort(rng.permutation(rows)[:max_samples])
    asked = usual_candidates(len(rows)) if candidates is None else list(candidates)
    if max(asked) > len(rows):
        raise ValueError(
            f"candidates go up to {max(asked)}, but only {len(rows)} samples are used "
            f"(max_samples={max_samples}, samples missing in every view left out); lower the "
            "candidates or raise max_samples"
        )
    spaces = measure_some(views, present, scalings, working_dtype(views, dtype), rows)
    spaces, repeats = distinct(spaces, with_weight(spaces, settings.view_weights))
    n = spaces[0].n_samples
    if n < 3:
        raise ValueError(
            f"select_n_clusters needs at least 3 distinct samples, got {n} of {len(rows)}; set the "
            "number of clusters yourself"
        )
    possible = [K for K in asked if n >= K]
    if not possible:
        raise ValueError(
            f"there are only {n} distinct samples, fewer than every candidate; lower the candidates"
        )
    if len(possible) < len(asked):
        notes.append(f"Only {n} samples are distinct: no more clusters were tried.")
    agreement = agree(spaces, settings, number_by_gap, rng)
    copies = None if repeats is None else np.bincount(repeats.of)
    return warn_of(_judge(spaces, agreement, possible, copies, notes, rng), n)


def warn_of(selection: Selection, most: int) -> Selection:
    """Warn where no clusters were found, and where the largest candidate is the best but not ``most``."""
    K = selection.table["n_clusters"]
    if not selection.found:
        warn_user(
            "no number of clusters stands out, so n_clusters is 1. " + " ".join(selection.reasons),
            NoClustersWarning,
        )
    elif len(K) > 1 and selection.n_clusters == K[-1] < most:
        warn_user(
            f"the best number of clusters is the largest candidate ({selection.n_clusters}); "
            "a larger number may be better: add larger candidates"
        )
    return selection


def _judge(
    spaces: list[Geometry],
    agreement: Agreement,
    candidates: list[int],
    copies: Array | None,
    notes: list[str],
    rng: np.random.Generator,
) -> Selection:
    """The test against clouds without clusters, then the best score."""
    # Whether there are clusters does not depend on the candidates.
    usual = [k for k in usual_candidates(spaces[0].n_samples) if k <= MOST_OF_CLOUDS]
    tried = sorted({*usual, *candidates})
    modularities, gaps, shares, smallest = separation(agreement.fused, tried, rng)
    parts = [k for k, share in zip(tried, shares, strict=True) if share >= FALLS_APART]
    least = SIMILAR * spaces[0].n_samples / np.array(tried)
    alike = [k for k, enough in zip(tried, smallest >= least, strict=True) if enough]
    wanted = np.isin(tried, candidates)
    scores = modularities + np.sqrt(tried) * gaps
    own, score = scores[np.isin(tried, usual)], scores[wanted]
    K, modularities, gaps = np.array(candidates), modularities[wanted], gaps[wanted]
    best = int(score.argmax())
    theirs = np.empty((CLOUDS, len(usual)))
    for c in range(CLOUDS):
        drawn = cloud(spaces, agreement.fused, rng)
        fused, _ = fused_graphs(drawn, agreement.distance_weights, 0)
        of_cloud = separation(fused, usual, rng)
        theirs[c] = of_cloud[0] + np.sqrt(usual) * of_cloud[1]
    more = own - theirs.mean(axis=0)
    chance = [(theirs[c] - np.delete(theirs, c, axis=0).mean(axis=0)).max() for c in range(CLOUDS)]
    deviation = max(float(np.std(chance, ddof=1)), LEAST_DEVIATION)
    z = float(more.max() - np.mean(chance)) / deviation
    found = z >= DEVIATIONS or bool(parts)
    compared = (
        f"The data were compared with {CLOUDS} simulated data sets that have the same covariance and no "
        f"clusters. The score (modularity + √K × eigengap) of the data exceeds their mean by up to "
        f"{more.max():.2f} (at {usual[int(more.argmax())]} clusters); for data without clusters, this is "
        f"{np.mean(chance):.2f} on average. The difference is {z:.1f} standard deviations; "
        f"{DEVIATIONS:g} are required."
    )
    doubtful = bool(abs(z / DEVIATIONS - 1) < DOUBT_SHARE)
    if doubtful:
        least, most = DEVIATIONS * (1 - DOUBT_SHARE), DEVIATIONS * (1 + DOUBT_SHARE)
        compared += f" With {least:g} to {most:g} deviations the choice is doubtful."
    apart = [k for k in parts if k in alike and k in candidates]
    if apart and shares[tried.index(candidates[best])] < CLEAR:
        best = candidates.index(apart[-1])
    number, runner_up = (candidates[best], None) if found else (1, candidates[best])
    reasons = [*notes, compared]
    if parts:
        doubtful = False
        reasons[-1] = (
            f"The graph of nearest neighbors nearly falls into {parts[-1]} separate parts."
        )
    if found:
        highest = "highest at" if score[best] == score.max() else "taken at"
        reasons.append(
            f"The score (modularity + √K × eigengap) is {highest} {number} clusters: "
            f"modularity {modularities[best]:.2f}, eigengap {gaps[best]:.3f}."
        )
        padded = np.concatenate([[-np.inf], score, [-np.inf]])
        peak = (score >= padded[:-2]) & (score >= padded[2:])
        peak[best] = False
        if peak.any():
            second = int(np.where(peak, score, -np.inf).argmax())
            runner_up = candidates[second]
            behind = score[best] - score[second]
            side = "lower" if behind >= 0 else "higher"
            reasons.append(f"The next peak is at {runner_up} clusters, {abs(behind):.2f} {side}.")
            if behind <= CLOSE and not apart:
                doubtful = True
                reasons[-1] += " Both numbers describe the data about equally well."
    else:
        reasons.append("This is too little to report clusters.")
        runner_up = runner_up if doubtful else None
    if copies is not None and not found:
        frequent = copies >= max(LEAST_COPIES, LEAST_SHARE * copies.sum())
        kinds, share = int(frequent.sum()), float(copies[frequent].sum() / copies.sum())
        counted = (
            f"Of {int(copies.sum())} samples {len(copies)} are distinct, and {kinds} of these make up "
            f"{share:.0%} of all."
        )
        if kinds >= 2 and frequent.all() and kinds in candidates:
            number, runner_up, doubtful = kinds, None, False
            reasons = [*notes, f"{counted} Each is a cluster by itself."]
        elif kinds >= 2 and share >= 0.5:
            runner_up, doubtful = kinds, True
            reasons.append(
                f"{counted} The score does not count copies: if these are the clusters, set "
                f"n_clusters={kinds}."
            )
    usually = dict(zip(usual, theirs.mean(axis=0), strict=True))
    mean = np.array([usually.get(k, np.nan) for k in candidates])
    table = {
        "n_clusters": K, "score": score, "modularity": modularities, "gap": gaps, "clouds": mean,
        "chosen": number == K,
    }  # fmt: skip
    return Selection(number, number > 1, reasons, table, runner_up, doubtful)


# --- the criterion ------------------------------------------------------------------------------


def separation(
    graph: sp.csr_array, candidates: Sequence[int], rng: np.random.Generator
) -> tuple[Array, Array, Array, Array]:
    """Modularity, eigengap, its share of 1 − λ_{K+1}, and the smallest cluster, for every candidate.

    One eigenproblem, that of the largest candidate, serves all.
    """
    K, n = np.array(candidates), graph.shape[0]
    values, vectors = leading_eigenvectors(normalized(graph), min(VECTORS * max(K), n), rng)
    known = np.append(values.clip(0), np.zeros(max(0, max(K) + 1 - len(values))))
    found, smallest = [], []
    for k in candidates:
        P = diffused(values[: VECTORS * k], vectors[:, : VECTORS * k])
        labels = kmeans(P, k, rng, STARTS)
        found.append(modularity(graph, labels))
        smallest.append(np.bincount(labels, minlength=k).min())
    gaps = known[K - 1] - known[K]
    return np.array(found), gaps, gaps / np.maximum(1 - known[K], 1e-9), np.array(smallest)


def number_by_gap(agreement: Agreement, mass: Array | None = None) -> int:
    """The number of clusters before the largest gap between eigenvalues of the fused graph."""
    graph = agreement.fused
    most = max(2, min(MOST_BY_GAP, graph.shape[0] // MEMBERS))
    n_values = min(most + 1, graph.shape[0])
    values, _ = leading_eigenvectors(normalized(graph), n_values, np.random.default_rng(0))
    K = np.arange(2, len(values))
    gaps = np.sqrt(K) * (values[1:-1] - values[2:])
    return int(K[gaps.argmax()]) if len(K) else 2


# --- data without clusters ----------------------------------------------------------------------


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
        centered = np.where(row[:, None] >= 0, _centered(view)[row], 0)
        scale = np.sqrt(max(1, int((row >= 0).sum())))
        found.append(Geometry((G @ centered) / scale, view.present))
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


def _centered(view: Geometry) -> Array:
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
