"""The cell of a grid: what is computed, from which settings, and under which key it is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from manyview.app.compare.comparison import seed_of
from manyview.app.compare.runs import key_of, versions

Row = dict[str, Any]
#: What a cell gives: rows by the name of their table ("" is the experiment's main table).
Tables = dict[str, list[Row]]

#: Runs of WM-NMF on the digits for every run of another method.
POOLED = 4
#: In which order, and how many at a time, cells are run.
TOGETHER, ALONE, SLOW = "together", "alone", "slow"


@dataclass(frozen=True)
class Cell:
    """One computation. Two experiments that ask for the same cell share its result."""

    #: "module.function" in this package, called with the settings.
    task: str
    #: Plain values that decide the result, the seed included.
    settings: Mapping[str, Any]
    #: Values shown beside the result: dataset, method, parameter, run.
    labels: Mapping[str, Any] = field(default_factory=dict)
    #: About how many seconds it takes: for the progress bar and the order only.
    cost: float = 1.0
    #: Cells of one group follow each other in one process, and may share a fit there.
    group: str = ""
    phase: str = TOGETHER

    @property
    def key(self) -> str:
        return key_of("cell", self.task, dict(self.settings), versions())


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    replications: int = 20
    random_state: int = 0
    #: "full" runs MLRSSC as tuned for the digits on all 2000, "small" on 50 per class, "skip" not at all.
    linear_mlrssc: str = "small"
    #: Fingerprint of the user's own LIHC data; empty without.
    lihc: str = ""

    @property
    def quick(self) -> bool:
        """Whether a first look is asked for: then what only smooths a figure is left out."""
        return self.replications < 10

    def seeds(self, at_most: int | None = None) -> list[tuple[int, int]]:
        """Run and seed of every replication, or of the first few where more would add nothing."""
        n = self.replications if at_most is None else min(self.replications, at_most)
        return self._first(n)

    def pooled(self) -> list[tuple[int, int]]:
        """Those of the method under study, whose rare failures need more runs than the others have."""
        return self._first(self.replications * (1 if self.quick else POOLED))

    def _first(self, n: int) -> list[tuple[int, int]]:
        return [(run, seed_of(self.random_state, run)) for run in range(n)]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper."""

    name: str
    title: str
    #: The settings in a sentence, for the reader.
    about: str
    cells: Callable[[Options], list[Cell]]
    #: Whether it needs the user's own files.
    needs_data: bool = False
