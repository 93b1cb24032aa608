"""One number of clusters from the answers of several criteria, and the sentences that say how."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log2

from manyview._types import Array

from .result import Vote
from .votes import GRAPH_METHODS, RANK_METHODS

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
