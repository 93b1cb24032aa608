"""Text and Parquet tables: where the header is, which column names the samples, what is no number."""

from __future__ import annotations

import csv
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

import numpy as np

from manyview.datasets._dataset import import_pandas
from manyview.datasets._tables import SEPARATORS, Table, frame_of_parquet, numbers, split_suffix
from manyview.engines.files.headings import is_id_heading
from manyview.io.guard import TooLarge, text_of_file

from .first_line import NOTHING, is_headings
from .part import Part

WORDS = {",": "commas", "\t": "tabs", ";": "semicolons", " ": "spaces"}
#: Lines looked at to tell a header from data.
PEEK = 50
TROUBLE = (OSError, ValueError, EOFError, zlib.error, csv.Error, OverflowError, MemoryError)


class Cells(NamedTuple):
    """The body of a table and its header.

    ``headed`` says whether the file has one; None: its first line, kept in the body, may be either.
    """

    frame: Any
    header: list[str]
    headed: bool | None


def read_table(path: Path, view: str, index: str | None, header: bool | None) -> Part:
    """A table with samples in rows; ``index`` names the column of ids if it is not the first.

    An ``index`` of "" says that no column holds ids; ``header`` whether the first line is headings.
    """
    frame, names, headed = cells_of(path, index, header)
    if headed is None:
        raise ValueError(_ask_for_header(path.name, view, frame))
    return _part(path.name, frame, names, headed, index)


def _part(file: str, frame: Any, header: list[str], headed: bool, index: str | None) -> Part:
    notes = [] if headed else [_no_header(file, header)]
    place = _id_place(file, frame, header, headed, index)
    ids = None if place is None else [text_of(cell) for cell in frame.iloc[:, place]]
    if ids is not None:
        notes += _told_blanks(file, list(frame.iloc[:, place]), ids)
    if place != 0 and split_suffix(file)[1] != ".parquet":
        # Read as text in case it names samples; as a feature it may lack values.
        frame[0] = frame[0].where(~frame[0].str.strip().isin(NOTHING))
    heading = None if place is None else header[place]
    frame.columns = range(len(header))
    if place is not None:
        frame.pop(place)  # in place, as below: a large table is not to be copied
        header = [name for j, name in enumerate(header) if j != place]
    if not header or not len(frame):
        raise ValueError(
            f"{file} has {len(frame)} samples and {len(header)} features besides the ids; both "
            "must be at least 1"
        )
    rows = ids if ids is not None else [str(i + 1) for i in range(len(frame))]
    frame.index, frame.columns = range(len(rows)), range(len(header))
    matrix = numbers(Table(file, rows, header, frame), rows_are="row")
    first = None
    if place is None and index is None and len(header) > 1 and _distinct_integers(matrix[:, 0]):
        first = (header[0], [text_of(value) for value in matrix[:, 0]])
    features = header if headed else None
    return Part(file, matrix, ids, features, first, notes, None, heading, headed, index is not None)


def _told_blanks(file: str, cells: list[Any], ids: list[str]) -> list[str]:
    """A note if ids had blanks or tabs around them, which belong to no name."""
    trimmed = [c for c, name in zip(cells, ids, strict=True) if isinstance(c, str) and c != name]
    if not trimmed:
        return []
    return [
        f"{file}: {len(trimmed)} of {len(ids)} sample ids have blanks or tabs around them, which are "
        f"left out ({trimmed[0]!r} is {trimmed[0].strip()!r})"
    ]


def _ask_for_header(file: str, view: str, frame: Any) -> str:
    cells = [text_of(cell) for cell in frame.iloc[0, :4]]
    shown = ", ".join(cells) + ", …" * (frame.shape[1] > 4)
    return (
        f"the first line of {file} ({shown}) may be headings or the first sample; say which: --header "
        f"{quote(view)}=yes or --header {quote(view)}=no"
    )


def _no_header(file: str, header: list[str]) -> str:
    return (
        f"{file} has no line of headings: its first line is read as a sample and its columns are "
        f"called column 1 to column {len(header)}"
    )


def cells_of(path: Path, index: str | None = None, header: bool | None = None) -> Cells:
    """The body of a table and its header, if it has one; ids, if any, are still a column."""
    pandas = import_pandas(f"reading {path.name}")
    kind = split_suffix(path.name)[1]
    try:
        if kind == ".parquet":
            return _parquet(pandas, path)
        if kind not in SEPARATORS:
            raise ValueError("labels come as .csv, .tsv, .txt, .parquet or .npy")
        return _text(pandas, path, kind, index, header)
    except ImportError as error:
        raise ImportError(
            f"reading {path.name} needs pyarrow; install it with: pip install 'manyview[app]'"
        ) from error
    except pandas.errors.EmptyDataError as error:
        raise ValueError(
            f"{path.name} has no rows of data; a header and rows are needed"
        ) from error
    except _Sentence as error:
        raise ValueError(str(error)) from None
    except TooLarge as error:
        raise ValueError(f"{path.name}: {error}") from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path.name} could not be read as a table: it is not text in UTF-8 ({error.reason} at "
            f"byte {error.start}); save it as UTF-8"
        ) from error
    except Exception as error:  # whatever a parser makes of bytes that are no table
        if not isinstance(error, TROUBLE) and type(error).__module__.split(".")[0] not in (
            "pyarrow",
            "pandas",
        ):
            raise
        text = " ".join(str(error).split())[:300]
        raise ValueError(f"{path.name} could not be read as a table: {text}") from error


class _Sentence(Exception):
    """Already says everything; not to be wrapped."""


def _parquet(pandas: Any, path: Path) -> Cells:
    _check_columns(path)
    frame = frame_of_parquet(path)
    if not isinstance(frame.index, pandas.RangeIndex):
        with warnings.catch_warnings():
            # The frame is in pieces on purpose: put together it would be there twice.
            warnings.simplefilter("ignore", pandas.errors.PerformanceWarning)
            frame.reset_index(names="id" if frame.index.nlevels == 1 else None, inplace=True)
    return Cells(frame, [str(name).strip() for name in frame.columns], True)


def _check_columns(path: Path) -> None:
    from pyarrow.parquet import read_schema

    for name, times in Counter(read_schema(path).names).items():
        if times > 1:
            raise _Sentence(
                f"{path.name} has the column {name!r} more than once; give each its own name"
            )


def _text(pandas: Any, path: Path, kind: str, index: str | None, asked: bool | None) -> Cells:
    with text_of_file(path) as file:
        lines = [line for line in islice(file, PEEK) if line.strip(" \r\n")]
    separator = _separator(path, kind, lines)
    records = list(_records(lines, separator))
    if not records:
        raise _Sentence(f"{path.name} has no rows of data; a header and rows are needed")
    header = [cell.strip() for cell in records[0]]
    body = records[1:]
    _check_separator(path.name, kind, separator, header)
    # R leaves out the heading of the row names.
    unnamed = bool(body) and len(body[0]) == len(header) + 1
    headed = asked
    if asked is None:
        headed = unnamed or is_headings(header, body)
    if unnamed:
        header = ["", *header]
    names = header if headed else [f"column {j + 1}" for j in range(len(header))]
    # Ids are kept as they are: a sample may be called NA. A converter looks at no cell's meaning.
    texts = {j: str for j, name in enumerate(names) if j == 0 or name == index}
    with text_of_file(path) as file:
        if headed:
            next((r for r in _records(file, separator) if len(r) > 1 or "".join(r).strip()), None)
        frame = pandas.read_csv(
            file,
            sep=r"\s+" if separator == " " else separator,
            header=None,
            converters=texts,
            low_memory=False,
            float_precision="round_trip",  # pandas' default is off by a last bit now and then
        )
    if len(header) != frame.shape[1]:
        raise _Sentence(
            f"{path.name} has {len(header)} headings and rows of {frame.shape[1]} cells; a {kind} "
            f"file is separated by {WORDS[separator]}, with decimal points"
        )
    return Cells(frame, names, headed)


def _records(lines: Any, separator: str) -> Iterator[list[str]]:
    if separator == " ":
        return (line.split() for line in lines)
    return csv.reader(lines, delimiter=separator)


def _separator(path: Path, kind: str, lines: list[str]) -> str:
    """What the ending promises; .txt promises nothing, so the first line decides."""
    if kind != ".txt" or not lines:
        return SEPARATORS[kind]
    return next((mark for mark in ("\t", ",", ";") if mark in lines[0]), " ")


def _check_separator(file: str, kind: str, ours: str, header: list[str]) -> None:
    for other in ("\t", ";", ","):
        if other != ours and len(header) == 1 and other in header[0]:
            raise _Sentence(
                f"{file} is one column when split at {WORDS[ours]}, as a {kind} file should be, but "
                f"its header holds {WORDS[other]}; save it with {WORDS[ours]}"
                + (", or rename it to .tsv" if other == "\t" else "")
                + (", or rename it to .csv" if other == "," else "")
            )


def _id_place(
    file: str, frame: Any, header: list[str], headed: bool, index: str | None
) -> int | None:
    """Which column names the samples: the one asked for, or the first if it is text or says so."""
    if index == "":
        return None
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
    parsed = pandas.to_numeric(pandas.Series(filled, dtype=object), errors="coerce")
    # A lone word among numbers is a mistake in a feature, not a sign of ids.
    if filled and parsed.isna().mean() > 0.5:
        return 0
    distinct = len(set(column)) == len(column)
    return 0 if headed and is_id_heading(header[0], distinct) else None


def _distinct_integers(values: np.ndarray) -> bool:
    return bool(np.all(values % 1 == 0)) and len(np.unique(values)) == len(values) > 1


def text_of(cell: Any) -> str:
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, float | np.floating) and cell % 1 == 0:
        return str(int(cell))  # 7.0 in one file is 7 in another
    return str(cell).strip()
