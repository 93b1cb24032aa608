"""One answer from each criterion, with its reason, and one from all of them together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array
from manyview.maths.agreement import Agreement

from .graph import (
    eigengap,
    leading_weights,
    n_components,
    reference_graph,
    resampled,
    separation,
    surplus,
)
from .rank import largest_rank, rank_curves
from .result import Vote

GRAPH_METHODS = ("stability", "eigengap")
RANK_METHODS = ("bicv", "imputation", "mdl", "sure")
METHODS = GRAPH_METHODS + RANK_METHODS
#: The least score (stability) and the least excess over the references (eigengap) that count as
#: clusters; eigenvalues also have to exceed the references by so many of their standard deviations.
LEAST_STABILITY, LEAST_GAP, DEVIATIONS = 0.5, 0.05, 3.0
#: An eigenvalue after the largest candidate that is so much of the way from the references to 1
#: tells of more clusters. After 14, clouds of 1000 rows along a curve reach .8, separate clusters .95.
LEAST_SURPLUS = 0.9
#: Clouds without clusters to compare eigenvalues with, and stability; random blocks per rank criterion.
N_REFERENCES, STABILITY_REFERENCES, RANK_RUNS = 8, 4, 4
RANK_CAVEAT = (
    "bicv, imputation, mdl and sure choose the rank of a factorisation, which need not be the "
    "number of clusters: together they count as much as one graph method"
)


@dataclass(frozen=True)
class Evidence:
    """Distances within views, their agreement, and clouds without clusters to compare them with."""

    spaces: list[Any]
    agreement: Agreement
    n_values: int
    rng: np.random.Generator
    notes: list[str]

    @property
    def n_samples(self) -> int:
        return self.spaces[0].n_samples

    @cached_property
    def references(self) -> list[sp.csr_array]:
        return [
            reference_graph(self.spaces, self.agreement.distance_weights, self.rng)
            for _ in range(N_REFERENCES)
        ]

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
    clear = score >= LEAST_STABILITY
    clear &= separation(*evidence.weights, candidates) >= DEVIATIONS
    if not clear.any():
        best = int(score.argmax())
        reason = (
            f"stability: no clusters. The best candidate, {K[best]}, is found again with an adjusted "
            f"Rand index of {ari[best]:.2f}; in clouds without clusters it is {other[best]:.2f}"
        )
        return Vote("stability", columns, 1, reason)
    best = int(np.where(clear, score, -np.inf).argmax())
    pick = int(np.flatnonzero(clear & (score >= score[best] - curves.error[best])).max())
    reason = (
        f"stability: {K[pick]} clusters are found again in 80% of the observations with an adjusted "
        f"Rand index of {ari[pick]:.2f} (in clouds without clusters {other[pick]:.2f}); "
        f"{curves.details['pac'][pick]:.1%} of pairs are ambiguous"
    )
    if pick != best:
        reason += f"; {K[best]} is as reproducible and coarser"
    return Vote("stability", columns, int(K[pick]), reason, bool(pick == len(K) - 1 and len(K) > 1))


def _by_eigengap(evidence: Evidence, candidates: list[int]) -> Vote:
    graph = evidence.agreement.fused
    curves = eigengap(*evidence.weights, candidates)
    excess = curves.score - curves.reference
    clear = excess >= np.maximum(LEAST_GAP, DEVIATIONS * curves.spread)
    best = int((np.where(clear, excess, -np.inf) if clear.any() else excess).argmax())
    parts = n_components(graph)
    K = candidates[best]
    numbers = f"{curves.score[best]:.2f}; in clouds without clusters {curves.reference[best]:.2f}"
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
        return Vote("eigengap", columns, 1, reason)
    reason = (
        f"eigengap: the eigenvalues of the fused graph fall after number {K} (a gap of {numbers}); "
        f"the graph is {joined}"
    )
    return Vote("eigengap", columns, K, reason)


def _by_rank(
    evidence: Evidence, method: str, candidates: list[int], rng: np.random.Generator
) -> Vote:
    alpha, spaces = evidence.agreement.alpha, evidence.spaces
    ranks = [1, *candidates]
    runs = rank_curves(spaces, alpha, ranks, method, RANK_RUNS, rng)
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
    pick = int(np.flatnonzero(close).min())
    limit = max(largest_rank(view) for view, a in zip(spaces, alpha, strict=True) if a > 1e-3)
    if pick == 0:
        reason = f"{method}: no rank of the candidates does better than rank 1; it sees no clusters"
        return Vote(method, columns, 1, reason)
    K = ranks[pick]
    if pick == len(ranks) - 1 and limit >= K:
        reason = f"{method}: still improves at {K}, the largest candidate: a rank of {K} or more"
        return Vote(method, columns, K, reason, len(candidates) > 1)
    return Vote(method, columns, K, f"{method}: no rank does clearly better than {K}")


# --- together ----------------------------------------------------------------------------------


def combine(votes: list[Vote]) -> tuple[int, list[str]]:
    """One answer from several, and the sentences that say how."""
    words = []
    if any(vote.method in RANK_METHODS for vote in votes):
        words.append(RANK_CAVEAT)
    graph = [vote for vote in votes if vote.method in GRAPH_METHODS]
    more = too_few(votes)
    if more:
        assert more.choice is not None
        if len(votes) > 1:
            words.append("eigengap sees more clusters than any candidate, so the others count less")
        return more.choice, words
    if graph and all(vote.choice == 1 for vote in graph):
        if len(graph) < len(votes):
            words.append("no graph method finds clusters, so the ranks say nothing about clusters")
        return 1, words
    # Gaps also open in bent, skewed or bounded clouds, of which the references know nothing.
    if any(vote.method == "stability" and vote.choice == 1 for vote in graph):
        gap = next(vote.choice for vote in graph if vote.method == "eigengap")
        words.append(
            f"eigengap says {gap}, but stability finds no clusters: a gap whose clusters do not come "
            "back is not believed"
        )
        return 1, words
    able = [vote for vote in votes if vote.choice is not None]
    firm = [vote for vote in able if not vote.open_ended and vote.choice != 1] or [
        vote for vote in able if vote.choice != 1
    ]
    if not firm:
        return 1, words
    weight: dict[int, float] = {}
    for vote in firm:
        assert vote.choice is not None
        share = 1.0 if vote.method in GRAPH_METHODS else 0.25
        weight[vote.choice] = weight.get(vote.choice, 0) + share
    winner = max(weight, key=lambda K: weight[K])  # the first of equals: the method named first
    if len(votes) > 1:
        backers = [vote.method for vote in firm if vote.choice == winner]
        words.append(f"{winner} has the most support ({', '.join(backers)})")
    doubters = [vote.method for vote in graph if vote.choice == 1]
    if doubters:
        words.append(f"{', '.join(doubters)} finds no clusters: take {winner} with care")
    return winner, words


def too_few(votes: list[Vote]) -> Vote | None:
    """The vote of an eigengap that sees more clusters than any candidate.

    It goes before stability: that scores only the candidates, and clusters merged to fit their
    number need not be merged alike every time.
    """
    return next((v for v in votes if v.method == "eigengap" and v.open_ended), None)
