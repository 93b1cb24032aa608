"""Text tables → cells: encoding, dialect, headings, empty cells and numbers with marks in them."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple, TextIO

from manyview.datasets._tables import split_suffix
from manyview.io.guard import counted, text_of_file

from .dialect import (
    WORDS,
    DecimalDoubt,
    Dialect,
    has_thousands,
    plain_number,
    recognise,
    records,
)
from .edges import drop_closing_lines, second_line
from .first_line import NOTHING, is_headings, number
from .options import Asked

#: A table of genes × samples, separated by tabs, below a line of version and one of sizes.
GCT = ".gct"
#: Lines looked at to tell a header from data.
PEEK = 50
#: Bytes looked at to tell text from what is none.
LOOK = 2**16
UTF8 = "utf-8-sig"
#: What Excel writes as "CSV" in western countries.
WINDOWS = "cp1252"


class Sentence(Exception):
    """Already says everything; not to be wrapped."""


class Cells(NamedTuple):
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


def read_text(pandas: Any, text: Text, asked: Asked) -> Cells:
    """The cells of a text; ids, if any, are still a column."""
    _refuse_other_kinds(text)
    encoding = "utf-16" if text.start[:2] in (b"\xff\xfe", b"\xfe\xff") else UTF8
    try:
        return _read(pandas, text, asked, encoding)
    except UnicodeDecodeError:
        if b"\0" in text.start or encoding != UTF8:
            raise
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
            raise Sentence(f"{text.name} {what}, whatever its name says; rename it: {command}")
    if text.start.lstrip()[:64].lower().startswith((b"<!doctype html", b"<html", b"<table")):
        raise Sentence(
            f"{text.name} is a web page, not a table: an error page of a portal, or a table that a page "
            "saved as Excel; open it in a browser or in Excel and save the table as .csv"
        )


def _read(pandas: Any, text: Text, asked: Asked, encoding: str) -> Cells:
    with text.open(encoding) as file:
        lines = list(islice(file, PEEK))
    try:
        dialect = recognise(text.kind, lines, asked.decimal)
    except DecimalDoubt as doubt:
        view = quote(asked.view)
        raise Sentence(
            f"in {text.name} {str(doubt)!r} may be thousands or a decimal comma; say which: --decimal "
            f"{view}=point for thousands, --decimal {view}=comma for a decimal comma"
        ) from None
    kept = [line for line in lines[dialect.skipped :] if line.strip(" \r\n")]
    rows = list(records(kept, dialect.separator))
    if not rows:
        raise Sentence(f"{text.name} has no rows of data; a header and rows are needed")
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
        raise Sentence(
            f"{text.name} has {len(header)} headings and rows of {frame.shape[1]} cells when split at "
            f"{WORDS[dialect.separator]}; give every column one heading"
        )
    told += drop_closing_lines(frame)
    notes = text.notes + [f"{text.name}: {what}" for what in told]
    ids = [j for j, name in enumerate(names) if j == 0 or name == asked.index]
    notes += _tidy(text.name, frame, dialect, set(asked.na), ids)
    return Cells(frame, names, headed, notes, dialect.decimal)


def _header(rows: list[list[str]], dialect: Dialect, asked: Asked) -> tuple[list[str], bool | None]:
    header, body = [cell.strip() for cell in rows[0]], rows[1:]
    # R leaves out the heading of the row names.
    unnamed = bool(body) and len(body[0]) == len(header) + 1
    headed = asked.header
    if headed is None:
        first = [plain_number(cell, dialect.decimal) for cell in header]
        words = any(number(cell) is None and cell not in NOTHING for cell in first[1:])
        # Numbers below tell something only where there is no word: of 20,000 columns one is enough.
        plain = [] if words else [[plain_number(c, dialect.decimal) for c in row] for row in body]
        headed = unnamed or is_headings(first, plain)
    if headed and header[0].startswith("#"):
        header[0] = header[0].lstrip("# ")
    return ["", *header] if unnamed else header, headed


def _body(
    pandas: Any, text: Text, encoding: str, dialect: Dialect, names: list[str], n_above: int,
    asked: Asked,
) -> Any:  # fmt: skip
    # Ids are kept as they are: a sample may be called NA. A converter looks at no cell's meaning.
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
        except pandas.errors.ParserError as error:
            _refuse_long_line(text, encoding, dialect, len(names))
            raise error


def _refuse_long_line(text: Text, encoding: str, dialect: Dialect, width: int) -> None:
    """Name the line that has more cells than there are headings, as an editor counts lines."""
    with text.open(encoding) as file:
        for line, row in enumerate(records(file, dialect.separator), start=1):
            if line > dialect.skipped and len(row) > width:
                raise Sentence(
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
            _refuse_two_marks(file, texts, dialect)
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


def _refuse_two_marks(file: str, texts: list[str], dialect: Dialect) -> None:
    """In a table of decimal commas 1.5 is a mistake, and nobody knows whose."""
    for cell in texts if dialect.decimal == "," else ():
        if "." in cell and number(cell) is not None and not has_thousands(cell, ","):
            raise Sentence(
                f"{file} has decimal commas and also {cell.strip()!r} with a point; write all numbers in "
                "one way"
            )
