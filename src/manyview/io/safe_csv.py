"""CSV tables in which no text can run as a formula of a spreadsheet.

Text that begins with = + - @, a tab or a carriage return, and is no plain number, gets an apostrophe in
front. So does text that begins with apostrophes and then one of these, so that `exact_text` gives every
text back as it was.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

#: Full-width signs are taken for the plain ones by some programs.
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def safe_text(text: str) -> str:
    """Text that no spreadsheet runs."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def exact_text(text: str) -> str:
    """What `safe_text` was given."""
    return text[1:] if text.startswith("'") and safe_text(text[1:]) == text else text


def csv_bytes(
    columns: Sequence[Any], rows: Iterable[Iterable[Any]], digits: int | None = None
) -> bytes:
    """Lines ended by \\n; nothing where a value is None or NaN; numbers of ``digits`` digits, or all."""
    lines = [_line([_cell(column, None) for column in columns])] if columns else []
    lines += [_line([_cell(value, digits) for value in row]) for row in rows]
    # Names of files, and so of views, may hold bytes that are no text.
    return "".join(lines).encode("utf-8", "backslashreplace")


def csv_of_dicts(
    rows: Sequence[Mapping[str, Any]],
    digits: int | None = None,
    columns: Iterable[str] | None = None,
) -> bytes:
    """The ``columns``, or all keys in the order of first appearance; empty where a row lacks one."""
    columns = list(
        columns if columns is not None else dict.fromkeys(c for row in rows for c in row)
    )
    if not columns:
        return b""
    return csv_bytes(columns, ([row.get(column) for column in columns] for row in rows), digits)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows of a table written here, every text as it was before it was made safe."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        columns = [exact_text(column) for column in next(lines, [])]
        return [dict(zip(columns, map(exact_text, line), strict=False)) for line in lines if line]


def _line(cells: list[str]) -> str:
    # Not by Python's csv, which (before 3.13) leaves a carriage return bare: readers break the line there.
    if cells == [""]:
        return '""\n'  # an empty line is no row
    return (
        ",".join(
            '"' + cell.replace('"', '""') + '"' if re.search('[",\r\n]', cell) else cell
            for cell in cells
        )
        + "\n"
    )


def _cell(value: Any, digits: int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            return ""
        return str(value) if digits is None else f"{value:.{digits}g}"
    return safe_text(str(value))
