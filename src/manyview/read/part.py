"""One view as a file has it: numbers, and the names of rows and columns as far as they are known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from .._types import Matrix


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
        seen: set[str] = set()
        for row, sample in enumerate(self.ids or ()):
            if sample == "":
                raise ValueError(
                    f"{self.file} has no sample id in row {row + 1} below the header; fill it in"
                )
            if sample in seen:
                raise ValueError(
                    f"{self.file} has the sample id {sample!r} more than once; ids must be unique, "
                    "so remove or rename the repeated ones"
                )
            seen.add(sample)
