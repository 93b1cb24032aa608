"""Whether the first line of a table is a line of headings, a sample, or may be either."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from manyview.engines.files.headings import is_id_heading

#: What stands for an empty cell (the words pandas knows, and spreadsheets' errors), unless it is an id.
NOTHING = {
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
    "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "na", "N.A.", "n.a.",
    "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!",
}  # fmt: skip
#: Headings 0, 1, 2, … are believed from this number of columns on: no sample begins so by chance.
COUNTED = 5
#: How improbable it must be that a sample consists of whole numbers to believe that it is none.
UNLIKELY, DOUBTFUL = 0.01, 0.1
#: A line that rises over so many columns may be a scale (wavelengths, masses).
RISING = 6
#: Rows from which on the range of a column says something.
ROWS = 10


def is_headings(cells: list[str], body: list[list[str]]) -> bool | None:
    """True: headings; False: the first sample; None: nobody can tell.

    Words above numbers are headings. A line of numbers is a sample if it has gaps, decimals or
    repeats, as headings never have; if the cells below hardly ever are whole numbers and its own all
    are, it is headings. What is left is decided by the first cell, if that is an id or the heading of
    ids, and otherwise by whether the line counts 0, 1, 2, …
    """
    named = len(cells) > 1 and cells[0] not in NOTHING and number(cells[0]) is None
    named = named or (len(cells) > 1 and cells[0] == "")
    numbers = cells[1:] if named else cells
    filled = [number(cell) for cell in numbers if cell not in NOTHING]
    if not filled or any(value is None for value in filled):
        return True
    values = [value for value in filled if value is not None]
    if named and is_id_heading(cells[0], distinct=True):
        return True
    gaps = any(cell in NOTHING and cell != "" for cell in numbers)
    if gaps or len(set(values)) < len(values):
        return False
    if named and alike(cells[0], [row[0].strip() for row in body if row]):
        return False
    rows = [_numbers(row[1:] if named else row) for row in body]
    if any(value % 1 for value in values):
        return None if _only_this_rises(values, rows) else False
    return _whole(values, rows, named)


def _whole(values: list[float], rows: list[list[float]], named: bool) -> bool | None:
    """The same of a line of distinct whole numbers, after an id or heading that tells nothing."""
    below = [value for row in rows for value in row]
    share = (sum(value % 1 == 0 for value in below) + 1) / (len(below) + 2)
    chance = share ** len(values)
    counts = [value - values[0] for value in values] == list(range(len(values)))
    if counts and values[0] in (0, 1):
        return True if len(values) >= COUNTED or chance < DOUBTFUL else None
    if chance < UNLIKELY:
        return True
    if named or chance < DOUBTFUL:
        return None
    return None if _out_of_range(values, rows) else False


def _out_of_range(values: list[float], rows: list[list[float]]) -> bool:
    """Whether most numbers of the first line are larger or smaller than all below them."""
    whole = [row for row in rows if len(row) == len(values)]
    if len(whole) < ROWS:
        return False
    table = np.array(whole)
    outside = (np.array(values) < table.min(axis=0)) | (np.array(values) > table.max(axis=0))
    return bool(outside.mean() > 0.5)


def _only_this_rises(values: list[float], rows: list[list[float]]) -> bool:
    if len(values) < RISING or not _rises(values):
        return False
    return sum(_rises(row) for row in rows) <= len(rows) / 2


def _rises(values: list[float]) -> bool:
    return all(a < b for a, b in pairwise(values))


def alike(first: str, column: list[str]) -> bool:
    """Whether the first cell is built like most cells below it: p12 and p7 are, p12 and gene are not."""
    shapes = [re.sub(r"\d+", "0", cell) for cell in column]
    return shapes.count(re.sub(r"\d+", "0", first)) > len(column) / 2


def _numbers(cells: list[str]) -> list[float]:
    found = [number(cell) for cell in cells]
    return [value for value in found if value is not None]


def number(text: str) -> float | None:
    try:
        value = float(text)
    except (ValueError, OverflowError):
        return None
    return value if np.isfinite(value) else None
