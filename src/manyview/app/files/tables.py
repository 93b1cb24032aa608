"""Tables of any kind: which column names the samples, which are features, and what is no number."""

from __future__ import annotations

import re
import warnings
import zipfile
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from manyview.app.options import Asked, Reading
from manyview.datasets._dataset import import_pandas
from manyview.engines.files.formats import PROGRAM
from manyview.engines.files.headings import is_id_heading, is_note_on_features
from manyview.io.child import read_apart
from manyview.io.limits import BadFile, naming
from manyview.io.packed import TEXT_BYTES, check_archive

from .samples import FileView
from .text import (
    COMMA_NUMBER,
    GCT,
    NOTHING,
    SEPARATORS,
    RawTable,
    Text,
    number,
    plain_number,
    read_text,
    split_suffix,
)

# --- spreadsheets, files of R and Feather files, read in a child process --------------------------


SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
R_FILES = (".rds", ".rda", ".rdata")
#: Suffix → the kind of reader.
APART = dict.fromkeys(SPREADSHEETS, "spreadsheet") | dict.fromkeys(R_FILES, "r")
#: Kinds whose columns have types and names: read as they are.
TYPED = (".parquet", ".feather")
#: Kinds that hold several tables, of which file:name is one.
SEVERAL = (*SPREADSHEETS, *R_FILES)
#: First bytes of what Excel writes; anything else so called is text that some program has named .xls.
EXCEL = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"\x09\x08", b"\x09\x04", b"\x09\x02")


def texts_of(path: Path, inside: str | None) -> dict[str, Text]:
    """The tables of a file by name, or the one that is named; "" is the only one."""
    kind = split_suffix(path.name)[1]
    if kind in SEPARATORS or kind == GCT:
        return {"": Text.of_file(path)}
    if kind not in APART:
        known = ", ".join((*SEPARATORS, *TYPED, *APART))
        raise BadFile(f"{path.name} is no table; tables are {known}")
    if kind == ".xls":
        with path.open("rb") as file:
            start = file.read(8)
        if start and not start.startswith(EXCEL):
            note = f"{path.name} is text and no Excel file; it is read as text"
            return {"": replace(Text.of_file(path, ".txt"), notes=[note])}
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            check_archive(archive, path.stat().st_size)
    head, parts = read_apart(PROGRAM, path, APART[kind], inside, TEXT_BYTES)
    notes = [f"{path.name}: {remark}" for remark in head["remarks"]]
    names = head["tables"]
    if len(names) == 1:
        named = path.name if inside is None else f"{path.name}:{inside}"
        return {"": Text.of_bytes(named, bytes(parts[0]), notes)}
    texts = {}
    for name, data in zip(names, parts, strict=True):
        texts[name] = Text.of_bytes(f"{path.name}:{name}", bytes(data), notes)
        notes = []  # once
    return texts


# --- columns that are no features: dropped by name, text, categories ------------------------------


#: Categories that a column may have to be spread over as many columns.
MOST_CATEGORIES = 50
#: Numbers with a sign behind or in front.
PERCENT = re.compile(r"[-+]?[\d.,]+\s*%")
LIMIT = re.compile(r"[<>≤≥]=?\s*[\d.,]+")
#: Columns named in a sentence.
SHOWN = 4


def settle(
    file: str, frame: Any, header: list[str], asked: Asked
) -> tuple[Any, list[str], list[str]]:
    """The columns of numbers, their headings, and what was done with the others."""
    notes = []
    nameless = [j for j, name in enumerate(header) if not name and frame.iloc[:, j].isna().all()]
    if nameless:  # separators at the ends of lines
        n = len(nameless)
        notes.append(
            f"{file}: {n} column{'s' * (n > 1)} without a name and without values left out"
        )
        frame = frame.drop(columns=[frame.columns[j] for j in nameless])
        frame.columns = range(frame.shape[1])
        header = [name for j, name in enumerate(header) if j not in nameless]
    dropped = [j for j, name in enumerate(header) if name in asked.drop]
    if dropped:
        notes.append(f"{file}: {_named(header, dropped)} left out, as requested")
    # By their types first: of 20,000 columns hardly one is looked at.
    unclear = [
        j
        for j, kind in enumerate(frame.dtypes)
        if not isinstance(kind, np.dtype) or kind.kind not in "biufc"
    ]
    texts = [j for j in unclear if j not in dropped and _is_text(frame.iloc[:, j])]
    about = [j for j in texts if is_note_on_features(header[j])]
    if about:
        texts = [j for j in texts if j not in about]
        dropped += about
        notes.append(f"{file}: {_named(header, about)} left out: text about features")
    spread: dict[int, Any] = {}
    if texts and asked.one_hot:
        for j in texts:
            column = frame.iloc[:, j]
            words = sorted({str(cell).strip() for cell in column[column.notna()]})
            if len(words) <= MOST_CATEGORIES:
                spread[j] = words
        if spread:
            notes.append(f"{file}: {_named(header, list(spread))} turned into columns of 0 and 1")
    left = [j for j in texts if j not in spread]
    if left and not asked.drop_text:
        raise ValueError(_complaint(file, frame, header, left, asked))
    if left:
        notes.append(f"{file}: {_named(header, left)} left out: text")
    if not texts and not dropped:
        return frame, header, notes
    return (*_kept(frame, header, {*dropped, *left}, spread), notes)


def numbers_of(file: str, frame: Any, rows: list[str], header: list[str]) -> np.ndarray:
    """The cells as doubles, NaN where empty; any other text is refused, with what may be done about it."""
    pandas = import_pandas(f"reading {file}")
    try:
        values = frame.to_numpy(dtype=float, na_value=np.nan)
        if not np.isinf(values).any():
            return values
    except (ValueError, TypeError):
        values = np.empty(frame.shape)
    for j, name in enumerate(header):
        column = frame.iloc[:, j]
        values[:, j] = pandas.to_numeric(column, errors="coerce").to_numpy(float, na_value=np.nan)
        bad = np.isnan(values[:, j]) & column.notna().to_numpy() | np.isinf(values[:, j])
        if bad.any():
            i = int(np.argmax(bad))
            cell = str(column.iloc[i])
            shown = cell if len(cell) <= 60 else f"{cell[:40]}… ({len(cell)} characters)"
            hint = f"; if it stands for an empty cell, add --na {quote(cell.strip())}"
            if COMMA_NUMBER.fullmatch(cell.strip()):
                hint = "; if it has a decimal comma, add --decimal comma"
            raise ValueError(
                f"{file} has {shown!r} in row {rows[i]!r}, column {name!r}, which is not a finite number; "
                f"correct the cell or remove what is not data{hint if len(cell) < 40 else ''}"
            )
    return values


def _is_text(column: Any) -> bool:
    """Whether most cells that hold something are no numbers; a lone word is a mistake instead."""
    pandas = import_pandas("reading a table")
    filled = column[column.notna()]
    if not len(filled) or isinstance(filled.iloc[0], bool | np.bool_):
        return False
    return bool(pandas.to_numeric(filled.astype(object), errors="coerce").isna().mean() > 0.5)


def _kept(
    frame: Any, header: list[str], unwanted: set[int], spread: dict[int, list[str]]
) -> tuple[Any, list[str]]:
    pandas = import_pandas("reading a table")
    columns, names = [], []
    for j, name in enumerate(header):
        column = frame.iloc[:, j]
        if j in unwanted:
            continue
        if j not in spread:
            columns.append(column)
            names.append(name)
        for word in spread.get(j, ()):
            same = (column.astype(str).str.strip() == word).astype(float)
            columns.append(same.where(column.notna()))
            names.append(f"{name}={word}")
    made = pandas.concat(columns, axis=1) if columns else frame.iloc[:, :0]
    return made, names


def _complaint(file: str, frame: Any, header: list[str], texts: list[int], asked: Asked) -> str:
    column, many = frame.iloc[:, texts[0]], len(texts) > 1
    cells = [str(cell) for cell in column[column.notna()]]
    example = next((cell for cell in cells if number(cell) is None), cells[0])[:40]
    if asked.one_hot:
        return (
            f"{file}: {_named(header, texts)} {'hold' if many else 'holds'} more than "
            f"{MOST_CATEGORIES} different texts such as {example!r}; add --drop-text to leave "
            f"{'them' if many else 'it'} out"
        )
    written = _nearly_numbers(example)
    if written:
        return f"{file}: {_named(header, texts)} {'have' if many else 'has'} {written}, or add --drop-text"
    one_hot = "add --one-hot to make every word a column of 0 and 1"
    if len(texts) == len(header) == 1:
        return (
            f"{file} holds one column of text, {header[0]!r}, such as {example!r}: if these are known "
            f"classes, give it as --labels; if they are a view, {one_hot}"
        )
    return (
        f"{file}: {_named(header, texts)} {'are' if many else 'is'} text, such as {example!r}, and no "
        f"feature; add --drop-text to leave {'them' if many else 'it'} out, or {one_hot}"
    )


def _nearly_numbers(example: str) -> str:
    """What to do with numbers that have signs around them; nothing for other texts."""
    if PERCENT.fullmatch(example.strip()):
        return (
            f"percent signs ({example!r}); remove them, in Excel by formatting the cells as numbers"
        )
    if LIMIT.fullmatch(example.strip()):
        return (
            f"values beyond a limit of detection ({example!r}); write the limit itself, add --na "
            f"{quote(example.strip())} to treat them as missing"
        )
    return ""


def _named(header: list[str], columns: list[int]) -> str:
    shown = ", ".join(repr(header[j]) for j in columns[:SHOWN])
    if len(columns) == 1:
        return f"the column {shown}"
    return f"the columns {shown}{f', … ({len(columns)} in all)' * (len(columns) > SHOWN)}"


def read_tables(path: Path, inside: str | None, view: str, reading: Reading) -> dict[str, FileView]:
    """The tables of a file by name, samples in rows; "" is the one that is called after the file.

    ``inside`` names the sheet of a workbook or the object of a file of R; such a file may hold several.
    """
    kind = split_suffix(path.name)[1]
    pandas = import_pandas(f"reading {path.name}")
    found = {}
    with naming(path, "a table"):
        if kind in TYPED:
            found[""] = path.name, _typed(pandas, path), reading.of(view)
        else:
            for key, text in texts_of(path, inside).items():
                asked = reading.of(key or view)
                found[key] = text.name, read_text(pandas, text, asked), asked
    return {key: _part(name, kind, cells, asked) for key, (name, cells, asked) in found.items()}


def _part(file: str, kind: str, cells: RawTable, asked: Asked) -> FileView:
    if cells.headed is None:
        first = [text_of(cell) for cell in cells.frame.iloc[0, :4]]
        shown = ", ".join(first) + ", …" * (cells.frame.shape[1] > 4)
        raise ValueError(
            f"the first line of {file} ({shown}) may be column names or the first sample; add --header "
            f"{quote(asked.view)}=yes or --header {quote(asked.view)}=no"
        )
    frame, header, headed = cells.frame, cells.header, cells.headed
    notes = list(cells.notes)
    if not headed:
        notes.append(
            f"{file} has no column names: its first line is read as a sample, and its columns are "
            f"called column 1 to column {len(header)}"
        )
    place = _id_place(file, cells, asked.index)
    ids = None if place is None else [text_of(cell) for cell in frame.iloc[:, place]]
    if ids is not None:
        cells_as_read = zip(frame.iloc[:, place], ids, strict=True)
        blanks = [cell for cell, name in cells_as_read if isinstance(cell, str) and cell != name]
        if blanks:
            notes.append(
                f"{file}: {len(blanks)} of {len(ids)} sample ids have blanks or tabs around them, which "
                f"are left out ({blanks[0]!r} is {blanks[0].strip()!r})"
            )
    if place != 0 and kind not in TYPED:
        # Read as text in case it names samples; as a feature it may lack values.
        empty = NOTHING | set(asked.na)
        plain = [plain_number(text_of(cell), cells.decimal) for cell in frame[0]]
        frame[0] = [None if cell in empty else cell for cell in plain]
    heading = None if place is None else header[place]
    frame.columns = range(len(header))
    if place is not None:
        frame.pop(place)  # in place, as below: a large table is not to be copied
        header = [name for j, name in enumerate(header) if j != place]
    before = header
    frame, header, told = settle(file, frame, header, asked)
    if not header or not len(frame):
        raise ValueError(
            f"{file} has {len(frame)} samples and {len(header)} features besides the ids; both "
            "must be at least 1"
        )
    rows = ids if ids is not None else [str(i + 1) for i in range(len(frame))]
    frame.index, frame.columns = range(len(rows)), range(len(header))
    matrix = numbers_of(file, frame, rows, header)
    counted, values = None, matrix[:, 0]
    distinct = len(np.unique(values)) == len(values) > 1 and bool(np.all(values % 1 == 0))
    if place is None and asked.index is None and len(header) > 1 and distinct:
        counted = (header[0], [text_of(value) for value in values])
    return FileView(
        file,
        matrix,
        ids,
        header if headed else None,
        counted,
        notes + told,
        heading=heading,
        headed=headed,
        asked=asked.index is not None,
        dropped=[name for name in before if name in asked.drop],
    )


def cells_of(path: Path, inside: str | None = None, asked: Asked | None = None) -> RawTable:
    """The body of a table and its header, if it has one; ids, if any, are still a column."""
    pandas = import_pandas(f"reading {path.name}")
    with naming(path, "a table"):
        if split_suffix(path.name)[1] in TYPED:
            return _typed(pandas, path)
        texts = texts_of(path, inside)
        if len(texts) > 1:
            first = quote(f"{path}:{next(iter(texts))}")
            names = ", ".join(map(repr, texts))
            raise BadFile(f"{path.name} has the tables {names}; name one: {first}")
        return read_text(pandas, next(iter(texts.values())), asked or Asked(""))


def _typed(pandas: Any, path: Path) -> RawTable:
    _, [part] = read_apart(PROGRAM, path, path.suffix.lower()[1:])
    import pyarrow  # the child says which extra brings it

    table = pyarrow.ipc.open_stream(pyarrow.py_buffer(part)).read_all()
    frame = table.to_pandas(split_blocks=True, self_destruct=True)  # frees what it has converted
    if not isinstance(frame.index, pandas.RangeIndex):
        with warnings.catch_warnings(action="ignore", category=pandas.errors.PerformanceWarning):
            # The frame is in pieces on purpose: put together it would be there twice.
            frame.reset_index(names="id" if frame.index.nlevels == 1 else None, inplace=True)
    return RawTable(frame, [str(name).strip() for name in frame.columns], True, [])


def _id_place(file: str, cells: RawTable, index: str | None) -> int | None:
    """The column of sample ids: the requested one, or the first if it is text or its name says so."""
    if index == "":
        return None
    frame, header, headed = cells.frame, cells.header, cells.headed
    if index is not None:
        if header.count(index) != 1:
            shown = ", ".join(repr(name) for name in header[:5])
            raise ValueError(
                f"{file} has {header.count(index)} columns {index!r} to take the sample ids from; "
                f"its columns begin {shown}"
            )
        return header.index(index)
    pandas = import_pandas(f"reading {file}")
    column = [text_of(cell) for cell in frame.iloc[:, 0]]
    filled = [cell for cell in column if cell not in NOTHING]
    plain = [plain_number(cell, cells.decimal) for cell in filled]
    parsed = pandas.to_numeric(pandas.Series(plain, dtype=object), errors="coerce")
    # A lone word among numbers is a mistake in a feature, not a sign of ids.
    if filled and parsed.isna().mean() > 0.5:
        return 0
    distinct = len(set(column)) == len(column)
    return 0 if headed and is_id_heading(header[0], distinct) else None


def text_of(cell: Any) -> str:
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, float | np.floating) and cell % 1 == 0:
        return str(int(cell))  # 7.0 in one file is 7 in another
    return str(cell).strip()
