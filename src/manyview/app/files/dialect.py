"""How a text table is written: separator, decimal mark, and the lines above it that are no table."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import mode

from manyview.datasets._tables import SEPARATORS

from .first_line import NOTHING, alike, number

WORDS = {",": "commas", "\t": "tabs", ";": "semicolons", " ": "spaces", "|": "bars"}
#: Another separator than the ending promises is believed if so many more of the cells become numbers.
MORE_NUMBERS = 0.3
#: Marks of lines that speak about a table; a portal's file begins with some.
REMARKS = ("#", "!", "%")
#: 1,234 and 12,345,678.9: thousands. A group never begins with 0.
THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
COMMA_NUMBER = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
#: The same with the marks exchanged: 1.234.567,8.
POINT_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?")
#: Blanks of any width, and the apostrophes of Switzerland, between thousands: 1 234,5 and 1'234.5.
BLANKS = " \u00a0\u2009\u202f'\u2019"
SPACED = {
    mark: re.compile(rf"[-+]?[1-9]\d{{0,2}}([{BLANKS}])\d{{3}}(\1\d{{3}})*(\{mark}\d+)?")
    for mark in (".", ",")
}
#: What word processors make of a minus.
LONG_MINUS = ("\u2212", "\u2013")
#: Excel's own first line, which names the separator.
SEP = re.compile(r'"?sep=(.)"?[,;]*', re.IGNORECASE)
#: Cells of a line looked at to tell separators apart.
MOST_LOOKED_AT = 1000


class DecimalDoubt(ValueError):
    """1,234 may be one thousand or a little more than one; nothing else in the file tells."""


@dataclass(frozen=True)
class Dialect:
    """How the lines of a text become cells."""

    separator: str
    decimal: str = "."
    #: Lines above the table.
    skipped: int = 0
    #: What differs from what the ending of the file promises, in words.
    told: list[str] = field(default_factory=list)


def recognise(kind: str, lines: Sequence[str], decimal: str | None = None) -> Dialect:
    """The dialect of a table that begins with ``lines``; ``decimal`` is what the user says."""
    said = SEP.fullmatch(lines[0].strip("\r\n")) if lines else None
    if said and said[1] in WORDS:
        found = _recognise(kind, said[1], lines[1:], decimal)
        return replace(found, skipped=found.skipped + 1)
    promised = SEPARATORS[kind]
    if kind == ".txt":  # promises nothing, so the first line of the table decides
        first = next((line for line in lines if line.strip() and line[0] not in REMARKS), "")
        promised = next((mark for mark in ("\t", ",", ";", "|") if mark in first), " ")
    return _recognise(kind, promised, lines, decimal)


def _recognise(kind: str, promised: str, lines: Sequence[str], decimal: str | None) -> Dialect:
    found = _Split(promised, lines)
    for mark in (";", "\t", ",", "|"):
        if mark != promised:
            other = _Split(mark, lines)
            if other.width > 1 and _better(other, found):
                found = other
    mark = decimal or decimal_mark(found.cells(), found.separator)
    told = []
    if found.separator != SEPARATORS[kind] and kind != ".txt":
        told.append(f"it is separated by {WORDS[found.separator]}")
    if mark == ",":
        told.append("its decimal mark is the comma")
    above = [next(filter(None, row)) for row in found.rows[: found.start] if any(row)]
    if above:
        shown, n = above[0][:40], len(above)
        told.append(
            f"{n} line{'s' * (n > 1)} above the table left out ({shown!r}{', …' * (n > 1)})"
        )
    return Dialect(found.separator, mark, found.start, told)


def records(lines: Iterable[str], separator: str) -> Iterator[list[str]]:
    """The cells of each line."""
    if separator == " ":
        return (line.split() for line in lines)
    return csv.reader(lines, delimiter=separator)


def plain_number(cell: str, decimal: str = ".") -> str:
    """A number as Python writes it, whatever marks it has; any other text as it is."""
    text = cell.strip()
    if text.startswith(LONG_MINUS) and len(text) > 1:
        text = f"-{text[1:]}"
    if SPACED[decimal].fullmatch(text):
        text = re.sub(f"[{BLANKS}]", "", text)
    if decimal == ".":
        return text.replace(",", "") if THOUSANDS.fullmatch(text) else text
    if POINT_THOUSANDS.fullmatch(text):
        text = text.replace(".", "")
        return text.replace(",", ".")
    return text.replace(",", ".") if COMMA_NUMBER.fullmatch(text) else text


def has_thousands(cell: str, decimal: str) -> bool:
    """Whether a number has marks between its thousands."""
    pattern, text = THOUSANDS if decimal == "." else POINT_THOUSANDS, cell.strip()
    return (pattern.fullmatch(text) or SPACED[decimal].fullmatch(text)) is not None


def decimal_mark(cells: Iterable[str], separator: str) -> str:
    """Comma or point, from the cells that have a comma; a doubt is an error."""
    filled = [cell.strip() for cell in cells if cell.strip() not in NOTHING]
    commas = [_ungrouped(cell) for cell in filled if "," in cell]
    numeric = [c for c in commas if COMMA_NUMBER.fullmatch(c) or THOUSANDS.fullmatch(c)]
    points = [c for c in commas if POINT_THOUSANDS.fullmatch(c)]
    if 2 * len(numeric) + 2 * len(points) <= len(commas) or not commas:
        return "."
    if points and len(points) + len(numeric) == len(commas):
        return ","
    if any(not THOUSANDS.fullmatch(cell) for cell in numeric):
        return ","  # 0,5 and 1,25 group nothing
    if separator == ";":
        return ","  # written so because the comma is taken
    groups = any(cell.count(",") > 1 or "." in cell for cell in numeric)
    small = any(number(cell) is not None for cell in filled)
    if groups or small:
        return "."
    raise DecimalDoubt(numeric[0])


def _better(other: _Split, found: _Split) -> bool:
    """Whether another separator explains the lines better than the one that was promised."""
    if found.width == 1:
        return other.steady and (other.numeric > 0 or other.width > 2 or not other.has_body)
    return other.steady and other.numeric > found.numeric + MORE_NUMBERS


class _Split:
    """The lines split at one separator: where the table begins, how wide it is, how much is number."""

    def __init__(self, separator: str, lines: Sequence[str]):
        self.separator, self.lines = separator, lines
        self.rows = [_cells(line, separator) for line in lines]
        widths = [len(row) for row in self.rows if any(row)]
        self.width = mode(widths[len(widths) // 2 :]) if widths else 1
        self.start = self._start()
        body = [row for row in self.rows[self.start + 1 :] if any(row)]
        self.has_body = bool(body)
        self.steady = self.width > 1 and _mostly(len(row) == self.width for row in body)
        filled = [c for row in body for c in row[1:MOST_LOOKED_AT] if c not in NOTHING]
        numbers = sum(number(plain_number(c)) is not None or _has_comma(c) for c in filled)
        self.numeric = numbers / len(filled) if filled else 0.0

    def _start(self) -> int:
        """The first line that is as wide as the table, or one narrower: R leaves a heading out.

        Only remarks are left out, and lines of a single cell above a table of three columns or more.
        """
        for i, row in enumerate(self.rows):
            if not self._is_above(i, row):
                return i if i < len(self.rows) - 1 else 0
        return 0

    def _is_above(self, i: int, row: list[str]) -> bool:
        filled = sum(cell != "" for cell in row)
        if not filled:  # a blank line; in a spreadsheet's text it has separators
            return len(row) < 2 or i > 0
        if len(row) == 2 and self.width > 3 and self._is_gct(i):
            return True
        if row[0].startswith(REMARKS) and len(row) < self.width - 1:
            return True
        if self.width < 3 or filled > 1 or len(row) not in (1, self.width):
            return False
        # An id whose values are all missing is a sample; half of a quoted cell is no title.
        below = [later[0] for later in self.rows[i + 1 :] if any(later)]
        return not alike(row[0], below) and self.lines[i].count('"') % 2 == 0

    def _is_gct(self, i: int) -> bool:
        """The second line of a GCT file holds the numbers of rows and columns."""
        return i > 0 and self.rows[i - 1][0].startswith("#1.")

    def cells(self) -> Iterator[str]:
        for row in self.rows[self.start + 1 :]:
            yield from row[1:] if len(row) > 1 else row


def _cells(line: str, separator: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(records([line], separator), [])]
    except csv.Error:
        return [line]


def _ungrouped(cell: str) -> str:
    return re.sub(f"[{BLANKS}]", "", cell) if SPACED[","].fullmatch(cell) else cell


def _has_comma(cell: str) -> bool:
    cell = _ungrouped(cell)
    return bool(COMMA_NUMBER.fullmatch(cell) or POINT_THOUSANDS.fullmatch(cell))


def _mostly(truths: Iterable[bool]) -> bool:
    counts = Counter(truths)
    return counts[True] >= counts[False]
