"""One answer from each criterion, with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array
from manyview.maths.agreement import Agreement
from manyview.methods.communities import installed

from .graph import (
    eigengap,
    leading_weights,
    n_components,
    reference_graph,
    resampled,
    separation,
    surplus,
)
from .groups import reproduced
from .rank import largest_rank, rank_curves
from .result import Vote

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
