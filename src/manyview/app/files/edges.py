"""Lines at the edges of a table that are no samples: words below the headings, remarks below it all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .dialect import plain_number
from .first_line import NOTHING, alike, number

#: Lines above the remarks that show what ids look like.
SHOWN_IDS = 50


def second_line(
    header: Sequence[str], body: Sequence[Sequence[str]], decimal: str
) -> tuple[list[str], str] | None:
    """Headings, and what to tell, if the line below them holds words where the others hold numbers.

    Below merged cells it names the columns; otherwise it holds units, kinds or groups.
    """
    if len(body) < 3 or len(body[0]) != len(header) or len(header) < 2:
        return None
    words = [cell.strip() for cell in body[0]]
    filled = [cell for cell in words[1:] if cell not in NOTHING]
    below = [c.strip() for row in body[1:] for c in row[1:] if c.strip() not in NOTHING]
    if 2 * len(filled) < len(words) or _n_numbers(filled, decimal):
        return None
    if 2 * _n_numbers(below, decimal) <= len(below):
        return None
    shown = ", ".join(repr(cell) for cell in filled[:2]) + ", …" * (len(filled) > 2)
    merged = "" in header[2:] and len(set(filled)) == len(filled)
    if not merged:
        return list(header), f"the line of words below the headings is left out ({shown})"
    named = [word or name for name, word in zip(header, words, strict=True)]
    return named, f"it has two lines of headings; the second names the columns ({shown})"


def drop_closing_lines(frame: Any) -> list[str]:
    """Remarks below a table (and a portal's !series_matrix_table_end) taken away; what to tell of it."""
    remarks: list[str] = []
    ids = [str(cell) for cell in frame[0].iloc[:SHOWN_IDS]]
    while len(frame) > 1 and frame.shape[1] > 1:
        last = frame.iloc[-1]
        filled = [str(cell) for cell in last if cell == cell and cell is not None and cell != ""]
        if len(filled) > 1 or (filled and not _is_remark(filled[0], ids)):
            break
        remarks += filled
        frame.drop(index=frame.index[-1], inplace=True)
    told = [text for text in reversed(remarks) if not text.startswith("!")]
    if not told:
        return []
    n = len(told)
    shown = f"{told[0][:40]!r}{', …' * (n > 1)}"
    return [f"{n} line{'s' * (n > 1)} below the table left out ({shown})"]


def _is_remark(text: str, ids: list[str]) -> bool:
    """A sample may lack all values; then it is called like the others, or at least in one word."""
    if text.startswith(("!", "*", "#")):
        return True
    return " " in text.strip() and number(text) is None and not alike(text, ids)


def _n_numbers(cells: Sequence[str], decimal: str) -> int:
    """Cells that are numbers, or digits that no double can hold."""
    return sum(
        number(plain_number(cell, decimal)) is not None
        or (any(c.isdigit() for c in cell) and not any(c.isalpha() for c in cell))
        for cell in cells
    )
