"""A small table of named columns: printed, shown in notebooks, written as CSV, made a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from manyview.io.writing import csv_bytes, write_whole

#: Longest text printed in a cell or quoted in a sentence.
WIDTH = 40
#: Most rows printed.
HEIGHT = 60


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length.

    Attributes
    ----------
    columns : dict of name → sequence
    absent : dict of name → str
        The word printed for a missing number of a column, such as "not reached".
    """

    columns: Mapping[str, Any]
    absent: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The headings."""
        return tuple(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> Sequence[Any]:
        return self.columns[name]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Iterate over the rows, each a dict of heading → value.

        Yields
        ------
        dict of str to value
        """
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the same columns (extra ``app``).

        Returns
        -------
        DataFrame
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas: pip install 'manyview[app]'; .rows() and .to_csv() do not"
            ) from error
        return pandas.DataFrame({name: list(values) for name, values in self.columns.items()})

    def to_csv(self, path: Any = None) -> str:
        """Write the table as CSV; return the text.

        A missing number is an empty cell. A text that a spreadsheet would run as a formula gets an
        apostrophe in front.

        Parameters
        ----------
        path : path, optional
            File to write; by default none is written.

        Returns
        -------
        str
        """
        content = csv_bytes(self.names, zip(*self.columns.values(), strict=True))
        if path is not None:
            write_whole(Path(path), content)
        return content.decode()

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        shown = min(len(self), HEIGHT)
        cells = [
            [short(name), *(self._cell(name, value) for value in list(values)[:shown])]
            for name, values in self.columns.items()
        ]
        widths = [max(map(len, column)) for column in cells]
        numeric = [all(_is_number(v) for v in values) for values in self.columns.values()]
        lines = [
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, numeric, strict=True)
            ).rstrip()
            for row in zip(*cells, strict=True)
        ]
        if len(self) > shown:
            lines.append(f"… and {len(self) - shown} more rows")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return an HTML table for notebooks; every text is escaped."""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = [
            "".join(f"<td>{escape(self._cell(name, value))}</td>" for name, value in row.items())
            for row, _ in zip(self.rows(), range(HEIGHT), strict=False)
        ]
        rows = "".join(f"<tr>{cells}</tr>" for cells in body)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def _cell(self, name: str, value: Any) -> str:
        if value is None or (_is_number(value) and value != value):
            return self.absent.get(name, "–")
        if isinstance(value, float | np.floating):
            number = float(value)
            return f"{number:.3g}" if abs(number) < 1000 else f"{number:.0f}"
        return short(value)


def short(value: Any) -> str:
    """Return a value as one short printable line: line breaks shown, long texts cut."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def quoted(value: Any) -> str:
    """Return a value as it stands in a sentence: short, texts in quotation marks."""
    return repr(short(value)) if isinstance(value, str) else short(value)


def counted(n: int, word: str) -> str:
    """Return a number with its noun: "1 event", "2 events", "2 entries"."""
    if n == 1:
        return f"1 {word}"
    return f"{n} {word[:-1]}ies" if word.endswith("y") else f"{n} {word}s"


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)
