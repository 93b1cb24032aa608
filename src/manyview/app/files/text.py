"""Text tables → cells: encoding, separator, decimal mark, headings, remarks, empty cells."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from shlex import quote
from statistics import mode
from typing import Any, NamedTuple, TextIO

import numpy as np

from manyview.app.options import Asked
from manyview.engines.files.headings import is_id_heading
from manyview.io.limits import BadFile
from manyview.io.packed import STREAMS, counted, text_of_file

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def split_suffix(name: str) -> tuple[str, str]:
    """Stem and kind of a file name, in lower case; `.gz`, `.bz2` and `.zst` are looked through."""
    path = Path(name.lower())
    if path.suffix in STREAMS:
        path = path.with_suffix("")
    return path.stem, path.suffix


# --- is the first line headings, a sample, or either? ---------------------------------------------


#: What stands for an empty cell (the words pandas knows, and spreadsheets' errors), unless it is an id.
NOTHING = {
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>",
    "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "na", "N.A.", "n.a.",
    "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!",
}  # fmt: skip
#: Headings 0, 1, 2, … are believed from this number of columns on: no sample begins so by chance.
COUNTED = 5
#: A line that rises over this many columns may be a scale (wavelengths, masses).
RISING = 6


def is_headings(cells: list[str], body: list[list[str]]) -> bool | None:
    """True: headings; False: the first sample; None: a question to the user.

    Words above numbers are headings. A line of numbers is headings if it begins with a heading of ids or
    counts 0, 1, 2, …; it is a sample if it begins with an id like those below, or has gaps, repeats or
    decimals, as headings never have.
    """
    named = len(cells) > 1 and (
        cells[0] == "" or (cells[0] not in NOTHING and number(cells[0]) is None)
    )
    numbers = cells[1:] if named else cells
    values = [number(cell) for cell in numbers if cell not in NOTHING]
    if not values or None in values or (named and is_id_heading(cells[0], distinct=True)):
        return True
    gaps = any(cell in NOTHING and cell != "" for cell in numbers)
    if gaps or len(set(values)) < len(values):
        return False
    if named and alike(cells[0], [row[0].strip() for row in body if row]):
        return False
    if any(value % 1 for value in values):  # type: ignore[operator]
        return None if len(values) >= RISING and values == sorted(values) else False  # type: ignore
    start = int(values[0])  # type: ignore[arg-type]
    counts = start in (0, 1) and values == list(range(start, start + len(values)))
    return True if counts and len(values) >= COUNTED else None


def alike(first: str, column: list[str]) -> bool:
    """Whether the first cell is built like most cells below it: p12 and p7 are, p12 and gene are not."""
    shapes = [re.sub(r"\d+", "0", cell) for cell in column]
    return shapes.count(re.sub(r"\d+", "0", first)) > len(column) / 2


def number(text: str) -> float | None:
    try:
        value = float(text)
    except (ValueError, OverflowError):
        return None
    return value if np.isfinite(value) else None


# --- separator, decimal mark, and the lines above the table ---------------------------------------


WORDS = {",": "commas", "\t": "tabs", ";": "semicolons", " ": "spaces", "|": "bars"}
#: Another separator than that of the file's ending is used if this many more cells become numbers.
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


def recognize(kind: str, lines: Sequence[str], decimal: str | None = None) -> Dialect:
    """The dialect of a table that begins with ``lines``; ``decimal`` is what the user says."""
    said = SEP.fullmatch(lines[0].strip("\r\n")) if lines else None
    if said and said[1] in WORDS:
        found = _recognize(kind, said[1], lines[1:], decimal)
        return replace(found, skipped=found.skipped + 1)
    promised = SEPARATORS[kind]
    if kind == ".txt":  # promises nothing, so the first line of the table decides
        first = next((line for line in lines if line.strip() and line[0] not in REMARKS), "")
        promised = next((mark for mark in ("\t", ",", ";", "|") if mark in first), " ")
    return _recognize(kind, promised, lines, decimal)


def _recognize(kind: str, promised: str, lines: Sequence[str], decimal: str | None) -> Dialect:
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
        self.rows = []
        for line in lines:
            try:
                self.rows.append([cell.strip() for cell in next(records([line], separator), [])])
            except csv.Error:
                self.rows.append([line])
        widths = [len(row) for row in self.rows if any(row)]
        self.width = mode(widths[len(widths) // 2 :]) if widths else 1
        # The first line that is as wide as the table, or one narrower: R leaves a heading out.
        start = next((i for i, row in enumerate(self.rows) if not self._is_above(i, row)), 0)
        self.start = start if start < len(self.rows) - 1 else 0
        body = [row for row in self.rows[self.start + 1 :] if any(row)]
        self.has_body = bool(body)
        fitting = sum(len(row) == self.width for row in body)
        self.steady = self.width > 1 and 2 * fitting >= len(body)
        filled = [c for row in body for c in row[1:MOST_LOOKED_AT] if c not in NOTHING]
        with_commas = [
            COMMA_NUMBER.fullmatch(_ungrouped(c)) or POINT_THOUSANDS.fullmatch(_ungrouped(c))
            for c in filled
        ]
        numbers = sum(
            bool(comma) or number(plain_number(c)) is not None
            for c, comma in zip(filled, with_commas, strict=True)
        )
        self.numeric = numbers / len(filled) if filled else 0.0

    def _is_above(self, i: int, row: list[str]) -> bool:
        """Only remarks are left out, and lines of a single cell above a table of three columns or more."""
        filled = sum(cell != "" for cell in row)
        if not filled:  # a blank line; in a spreadsheet's text it has separators
            return len(row) < 2 or i > 0
        if len(row) == 2 and self.width > 3 and i > 0 and self.rows[i - 1][0].startswith("#1."):
            return True  # the line below a GCT file's version holds the numbers of rows and columns
        if row[0].startswith(REMARKS) and len(row) < self.width - 1:
            return True
        if self.width < 3 or filled > 1 or len(row) not in (1, self.width):
            return False
        # An id whose values are all missing is a sample; half of a quoted cell is no title.
        below = [later[0] for later in self.rows[i + 1 :] if any(later)]
        return not alike(row[0], below) and self.lines[i].count('"') % 2 == 0

    def cells(self) -> Iterator[str]:
        for row in self.rows[self.start + 1 :]:
            yield from row[1:] if len(row) > 1 else row


def _ungrouped(cell: str) -> str:
    return re.sub(f"[{BLANKS}]", "", cell) if SPACED[","].fullmatch(cell) else cell


# --- lines at the edges that are no samples -------------------------------------------------------


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


# --- reading --------------------------------------------------------------------------------------


#: A table of genes × samples, separated by tabs, below a line of version and one of sizes.
GCT = ".gct"
#: Lines looked at to tell a header from data.
PEEK = 50
#: Bytes looked at to tell text from what is none.
LOOK = 2**16
UTF8 = "utf-8-sig"
#: What Excel writes as "CSV" in western countries.
WINDOWS = "cp1252"


NO_ROWS = "{} has no rows of data; a header and rows are needed"


class RawTable(NamedTuple):
    """The body of a table and its header.

    ``headed`` says whether the file has one; None: its first line, kept in the body, may be either.
    """

    frame: Any
    header: list[str]
    headed: bool | None
    notes: list[str]
    #: Decimal mark of numbers that are still text: those of a first column.
    decimal: str = "."


@dataclass(frozen=True)
class Text:
    """A text that can be read from its beginning as often as one likes."""

    name: str
    kind: str
    open: Callable[[str], AbstractContextManager[TextIO]]
    start: bytes
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of_file(cls, path: Path, kind: str | None = None) -> Text:
        with counted(path) as file:
            start = file.read(LOOK)
        kind = kind or split_suffix(path.name)[1]
        kind = ".tsv" if kind == GCT else kind
        return cls(path.name, kind, partial(text_of_file, path), start)

    @classmethod
    def of_bytes(cls, name: str, data: bytes, notes: list[str]) -> Text:
        def opened(encoding: str) -> TextIO:
            return io.TextIOWrapper(io.BytesIO(data), encoding=encoding, newline="")

        return cls(name, ".csv", opened, data[:LOOK], notes)


def read_text(pandas: Any, text: Text, asked: Asked) -> RawTable:
    """The cells of a text; ids, if any, are still a column."""
    _refuse_other_kinds(text)
    encoding = "utf-16" if text.start[:2] in (b"\xff\xfe", b"\xfe\xff") else UTF8
    try:
        return _read(pandas, text, asked, encoding)
    except UnicodeDecodeError as error:
        if b"\0" in text.start or encoding != UTF8:
            raise BadFile(
                f"{text.name} could not be read as a table: it is not text in UTF-8 ({error.reason} at "
                f"byte {error.start}); save it as UTF-8"
            ) from error
    found = _read(pandas, text, asked, WINDOWS)
    found.notes.insert(0, f"{text.name} is not in UTF-8 and is read as Windows-1252")
    return found


#: First bytes of files that are often called .csv or .xls, and what to do.
OTHER_KINDS = (
    (b"\x1f\x8b", "is packed by gzip", "mv {0} {0}.gz"),
    (b"BZh", "is packed by bzip2", "mv {0} {0}.bz2"),
    (b"\x28\xb5\x2f\xfd", "is packed by zstd", "mv {0} {0}.zst"),
    (b"PK\x03\x04", "is a zip archive or an Excel file", "mv {0} {1}.xlsx"),
    (b"\xd0\xcf\x11\xe0", "is an old Excel file", "mv {0} {1}.xls"),
    (b"PAR1", "is a Parquet file", "mv {0} {1}.parquet"),
)


def _refuse_other_kinds(text: Text) -> None:
    stem = quote(text.name.rpartition(".")[0] or text.name)
    for mark, what, remedy in OTHER_KINDS:
        if text.start.startswith(mark):
            command = remedy.format(quote(text.name), stem)
            raise BadFile(f"{text.name} {what}, whatever its name says; rename it: {command}")
    if text.start.lstrip()[:64].lower().startswith((b"<!doctype html", b"<html", b"<table")):
        raise BadFile(
            f"{text.name} is a web page, not a table: an error page of a portal, or a table that a page "
            "saved as Excel; open it in a browser or in Excel and save the table as .csv"
        )


def _read(pandas: Any, text: Text, asked: Asked, encoding: str) -> RawTable:
    with text.open(encoding) as file:
        lines = list(islice(file, PEEK))
    try:
        dialect = recognize(text.kind, lines, asked.decimal)
    except DecimalDoubt as doubt:
        view = quote(asked.view)
        raise BadFile(
            f"in {text.name} {str(doubt)!r} may be thousands or a decimal comma; say which: --decimal "
            f"{view}=point for thousands, --decimal {view}=comma for a decimal comma"
        ) from None
    kept = [line for line in lines[dialect.skipped :] if line.strip(" \r\n")]
    rows = list(records(kept, dialect.separator))
    if not rows:
        raise BadFile(NO_ROWS.format(text.name))
    header, headed = _header(rows, dialect, asked)
    names = header if headed else [f"column {j + 1}" for j in range(len(header))]
    told = list(dialect.told)
    words = second_line(header, rows[1:], dialect.decimal) if headed else None
    if words is not None:
        names, what = words
        told.append(what)
    n_above = int(bool(headed)) + int(words is not None)
    frame = _body(pandas, text, encoding, dialect, names, n_above, asked)
    if len(header) != frame.shape[1]:
        raise BadFile(
            f"{text.name} has {len(header)} headings and rows of {frame.shape[1]} cells when split at "
            f"{WORDS[dialect.separator]}; give every column one heading"
        )
    told += drop_closing_lines(frame)
    notes = text.notes + [f"{text.name}: {what}" for what in told]
    ids = [j for j, name in enumerate(names) if j == 0 or name == asked.index]
    notes += _tidy(text.name, frame, dialect, set(asked.na), ids)
    return RawTable(frame, names, headed, notes, dialect.decimal)


def _header(rows: list[list[str]], dialect: Dialect, asked: Asked) -> tuple[list[str], bool | None]:
    header, body = [cell.strip() for cell in rows[0]], rows[1:]
    # R leaves out the heading of the row names.
    unnamed = bool(body) and len(body[0]) == len(header) + 1
    headed = asked.header
    if headed is None:
        first = [plain_number(cell, dialect.decimal) for cell in header]
        words = any(number(cell) is None and cell not in NOTHING for cell in first[1:])
        headed = unnamed or words or is_headings(first, body)
    if headed and header[0].startswith("#"):
        header[0] = header[0].lstrip("# ")
    return ["", *header] if unnamed else header, headed


def _body(
    pandas: Any, text: Text, encoding: str, dialect: Dialect, names: list[str], n_above: int,
    asked: Asked,
) -> Any:  # fmt: skip
    # Ids stay text: a sample may be called NA, which a converter leaves alone.
    texts = {j: str for j, name in enumerate(names) if j == 0 or name == asked.index}
    with text.open(encoding) as file:
        for _ in range(dialect.skipped):
            next(file, None)
        rows = records(file, dialect.separator)
        for _ in range(n_above):
            next((row for row in rows if len(row) > 1 or "".join(row).strip()), None)
        try:
            return pandas.read_csv(
                file,
                sep=r"\s+" if dialect.separator == " " else dialect.separator,
                header=None,
                converters=texts,
                decimal=dialect.decimal,
                na_values=sorted(NOTHING - {""} | set(asked.na)),
                low_memory=False,
                float_precision="round_trip",  # pandas' default is off by a last bit now and then
            )
        except pandas.errors.EmptyDataError:
            raise BadFile(NO_ROWS.format(text.name)) from None
        except pandas.errors.ParserError as error:
            _refuse_long_line(text, encoding, dialect, len(names))
            raise error


def _refuse_long_line(text: Text, encoding: str, dialect: Dialect, width: int) -> None:
    """Name the line that has more cells than there are headings, as an editor counts lines."""
    with text.open(encoding) as file:
        for line, row in enumerate(records(file, dialect.separator), start=1):
            if line > dialect.skipped and len(row) > width:
                raise BadFile(
                    f"{text.name} has {len(row)} cells in line {line} ({row[0][:40]!r}, …) and {width} "
                    f"headings, split at {WORDS[dialect.separator]}; correct the line: a comma inside a "
                    "number or a text needs quotes around the cell"
                )


def _tidy(file: str, frame: Any, dialect: Dialect, na: set[str], ids: list[int]) -> list[str]:
    """Numbers with thousands marked, and empty cells with spaces around them, made what they are."""
    empty, converted = NOTHING | na, []
    for j, kind in enumerate(frame.dtypes):
        if kind == "object" and j not in ids:
            texts = [cell for cell in frame[j] if isinstance(cell, str)]
            converted += [cell for cell in texts if has_thousands(cell, dialect.decimal)]
            for cell in texts if dialect.decimal == "," else ():
                # In a table of decimal commas 1.5 is a mistake.
                if "." in cell and number(cell) is not None and not has_thousands(cell, ","):
                    raise BadFile(
                        f"{file} has decimal commas and also {cell.strip()!r} with a point; write all "
                        "numbers in one way"
                    )
            frame[j] = [_cell(cell, dialect.decimal, empty) for cell in frame[j]]
    if not converted:
        return []
    n = len(converted)
    return [f"{file}: {n} numbers are written with marks of thousands ({converted[0].strip()!r})"]


def _cell(cell: Any, decimal: str, empty: set[str]) -> Any:
    if not isinstance(cell, str):
        return cell
    plain = plain_number(cell, decimal)
    return None if plain in empty else plain
