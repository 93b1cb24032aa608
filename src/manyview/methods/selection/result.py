"""What choosing the number of clusters leaves behind: a table, an answer, its reasons, a figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manyview._types import Array, storable
from manyview.plot import COLORS, pyplot

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
        """One panel per method: its scores, their errors, and the chosen number (matplotlib).

        Returns
        -------
        matplotlib Figure
        """
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
