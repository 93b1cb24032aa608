"""One view as a file has it: numbers, and the names of rows and columns as far as they are known."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from .._types import Matrix
from ..ids import named_rows


@dataclass(frozen=True, eq=False)
class Part:
    file: str
    matrix: Matrix
    ids: list[str] | None = None
    features: list[str] | None = None
    #: Heading and entries of a first column of whole numbers that was taken for a feature.
    first: tuple[str, list[str]] | None = None
    notes: list[str] = field(default_factory=list)
    path: Path | None = None

    def transposed(self) -> Part:
        """Rows and columns exchanged, and their names with them."""
        matrix = self.matrix.T
        matrix = np.ascontiguousarray(matrix) if isinstance(matrix, np.ndarray) else matrix.tocsr()
        return replace(self, matrix=matrix, ids=self.features, features=self.ids, first=None)

    def with_first_as_ids(self) -> Part:
        assert self.first is not None
        features = None if self.features is None else self.features[1:]
        return replace(
            self, matrix=self.matrix[:, 1:], ids=self.first[1], features=features, first=None
        )

    def check_ids(self) -> None:
        """Labels and tables of results are looked up by id: every sample has one, and its own."""
        if self.ids is None:
            return
        empty = [row + 1 for row, sample in enumerate(self.ids) if sample == ""]
        if empty:
            raise ValueError(
                f"{self.file} has no sample id in {named_rows(empty)} below the header; fill it in"
            )
        counts = Counter(self.ids)
        twice = [sample for sample, n in counts.items() if n > 1]
        if twice:
            rows = [row + 1 for row, sample in enumerate(self.ids) if sample == twice[0]]
            others = f", and so are {len(twice) - 1} others" if len(twice) > 1 else ""
            raise ValueError(
                f"{self.file} has the sample id {twice[0]!r} more than once ({named_rows(rows)})"
                f"{others}; ids must be unique, so remove or rename the repeated ones, or, if this is "
                "not the column of ids, name that one by --index"
            )
