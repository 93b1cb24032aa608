"""One view as a file has it: numbers, and the names of rows and columns as far as they are known."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote

import numpy as np

from manyview._types import Array, Matrix
from manyview.views.ids import named_rows


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
    #: Heading of the column the ids come from, if it was one.
    heading: str | None = None
    #: Whether the first line is headings; None where the kind of file leaves no doubt.
    headed: bool | None = None
    #: Whether somebody has said where the ids are.
    asked: bool = False
    turned: bool = False
    #: Columns that were left out because somebody named them.
    dropped: list[str] = field(default_factory=list)
    #: The ids as the file spells them, where ``ids`` are those that files were matched by.
    original: list[str] | None = None
    #: The rows of the file that are used, if not all are.
    used: Array | None = None

    def rows(self, kept: Array) -> Part:
        """Some of the rows, with their ids."""
        ids = None if self.ids is None else [self.ids[i] for i in kept]
        used = kept if self.used is None else self.used[kept]
        return replace(self, matrix=self.matrix[kept], ids=ids, used=used)

    def transposed(self) -> Part:
        """Rows and columns exchanged, and their names with them."""
        matrix = self.matrix.T
        matrix = np.ascontiguousarray(matrix) if isinstance(matrix, np.ndarray) else matrix.tocsr()
        return replace(
            self,
            matrix=matrix,
            ids=self.features,
            features=self.ids,
            first=None,
            turned=not self.turned,
        )

    def with_first_as_ids(self) -> Part:
        assert self.first is not None
        features = None if self.features is None else self.features[1:]
        return replace(
            self,
            matrix=self.matrix[:, 1:],
            ids=self.first[1],
            features=features,
            first=None,
            heading=self.first[0],
        )

    @property
    def decision(self) -> str:
        """How the file was read: which way round, what its first line is, where the ids are."""
        rows, columns = ("columns", "rows") if self.turned else ("rows", "columns")
        n, m = self.matrix.shape
        told = [
            f"{self.file}: {n} sample{'s' * (n != 1)} in {rows}, {m} feature{'s' * (m != 1)} in {columns}"
        ]
        if self.headed is not None:
            told.append(f"the first line is {'headings' if self.headed else 'a sample'}")
        if self.ids is None:
            told.append("no sample ids, rows are taken in their order")
        else:
            place = "the headings" if self.turned and self.headed else "the file"
            if self.heading is not None and not self.turned:
                place = f"the column {self.heading!r}" if self.heading else "the first column"
            shown = ", ".join(repr(sample) for sample in self.ids[:2])
            told.append(f"sample ids from {place} ({shown}{', …' * (n > 2)})")
        if self.first is not None:
            told.append(
                f"the first column {self.first[0]!r} is read as a feature (if it names the samples, add "
                f"--index {quote(self.first[0])})"
            )
        return "; ".join(told)

    def check_ids(self) -> None:
        """Labels and tables of results are looked up by id: every sample has one, and its own."""
        if self.ids is None:
            return
        empty = [row + 1 for row, sample in enumerate(self.ids) if sample == ""]
        if empty:
            raise ValueError(
                f"{self.file} has no sample id in {named_rows(empty)} below the header; fill it in, or "
                "remove the row and what is no sample below it"
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
