"""Tables of any kind: which column names the samples, what is a feature, what is no number."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from manyview.datasets._dataset import import_pandas
from manyview.datasets._tables import SEPARATORS, frame_of_parquet, split_suffix
from manyview.engines.files.headings import is_id_heading
from manyview.io.guard import TooLarge
from manyview.io.guard.apart import Refused

from .apart import APART, texts_of
from .columns import numbers_of, settle
from .dialect import plain_number
from .first_line import NOTHING
from .options import Asked, Reading
from .part import Part
from .text import (
    GCT,
    Cells,
    Sentence,
    Text,
    read_text,
)


def read_tables(path: Path, inside: str | None, view: str, reading: Reading) -> dict[str, Part]:
    """The tables of a file by name, samples in rows; "" is the one that is called after the file.

    ``inside`` names the sheet of a workbook or the object of a file of R; such a file may hold several.
    """
    kind = split_suffix(path.name)[1]
    if kind not in APART:
        return {
            "": _part(path.name, kind, cells_of(path, None, reading.of(view)), reading.of(view))
        }
    pandas = import_pandas(f"reading {path.name}")
    found = {}
    with _sentences(path):
        for key, text in texts_of(path, inside).items():
            asked = reading.of(key or view)
            found[key] = text.name, read_text(pandas, text, asked), asked
    return {key: _part(name, kind, cells, asked) for key, (name, cells, asked) in found.items()}


def _part(file: str, kind: str, cells: Cells, asked: Asked) -> Part:
    if cells.headed is None:
        raise ValueError(_ask_for_header(file, asked.view, cells.frame))
    frame, header, headed = cells.frame, cells.header, cells.headed
    notes = list(cells.notes) + ([] if headed else [_no_header(file, header)])
    place = _id_place(file, cells, asked.index)
    ids = None if place is None else [text_of(cell) for cell in frame.iloc[:, place]]
    if ids is not None:
        notes += _told_blanks(file, list(frame.iloc[:, place]), ids)
    if place != 0 and kind != ".parquet":
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
    first = None
    if (
        place is None
        and asked.index is None
        and len(header) > 1
        and _distinct_integers(matrix[:, 0])
    ):
        first = (header[0], [text_of(value) for value in matrix[:, 0]])
    return Part(
        file,
        matrix,
        ids,
        header if headed else None,
        first,
        notes + told,
        heading=heading,
        headed=headed,
        asked=asked.index is not None,
        dropped=[name for name in before if name in asked.drop],
    )


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


def cells_of(path: Path, inside: str | None = None, asked: Asked | None = None) -> Cells:
    """The body of a table and its header, if it has one; ids, if any, are still a column."""
    pandas = import_pandas(f"reading {path.name}")
    kind, asked = split_suffix(path.name)[1], asked or Asked("")
    with _sentences(path):
        if kind == ".parquet":
            return _parquet(pandas, path)
        if kind in APART:
            texts = texts_of(path, inside)
            if len(texts) > 1:
                first = quote(f"{path}:{next(iter(texts))}")
                names = ", ".join(map(repr, texts))
                raise Sentence(f"{path.name} has the tables {names}; name one: {first}")
            return read_text(pandas, next(iter(texts.values())), asked)
        if kind not in SEPARATORS and kind != GCT:
            known = ", ".join((*SEPARATORS, ".parquet", *APART))
            raise Sentence(f"{path.name} is no table; tables are {known}")
        return read_text(pandas, Text.of_file(path), asked)


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    """What goes wrong with a table → a ValueError that names the file."""
    pandas = import_pandas(f"reading {path.name}")
    try:
        yield
    except ImportError as error:
        if "install it with" in str(error):
            raise
        raise ImportError(
            f"reading {path.name} needs pyarrow; install it with: pip install 'manyview[app]'"
        ) from error
    except pandas.errors.EmptyDataError as error:
        raise ValueError(
            f"{path.name} has no rows of data; a header and rows are needed"
        ) from error
    except Sentence as error:
        raise ValueError(str(error)) from None
    except TooLarge as error:
        raise ValueError(f"{path.name}: {error}") from None
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path.name} could not be read as a table: it is not text in UTF-8 ({error.reason} at "
            f"byte {error.start}); save it as UTF-8"
        ) from error
    except Refused as error:
        raise ValueError(f"{path.name} {error}") from None
    except Exception as error:  # parsers of damaged files raise whatever they stumble over
        text = " ".join(str(error).split())[:300]
        if not isinstance(error, ValueError | OSError):
            text = f"{type(error).__name__}: {text}".removesuffix(": ")
        raise ValueError(f"{path.name} could not be read as a table: {text}") from error


def _parquet(pandas: Any, path: Path) -> Cells:
    frame = frame_of_parquet(path)
    if not isinstance(frame.index, pandas.RangeIndex):
        with warnings.catch_warnings():
            # The frame is in pieces on purpose: put together it would be there twice.
            warnings.simplefilter("ignore", pandas.errors.PerformanceWarning)
            frame.reset_index(names="id" if frame.index.nlevels == 1 else None, inplace=True)
    return Cells(frame, [str(name).strip() for name in frame.columns], True, [])


def _id_place(file: str, cells: Cells, index: str | None) -> int | None:
    """Which column names the samples: the one asked for, or the first if it is text or says so."""
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


def _distinct_integers(values: np.ndarray) -> bool:
    return bool(np.all(values % 1 == 0)) and len(np.unique(values)) == len(values) > 1


def text_of(cell: Any) -> str:
    if cell is None or cell != cell:
        return ""
    if isinstance(cell, float | np.floating) and cell % 1 == 0:
        return str(int(cell))  # 7.0 in one file is 7 in another
    return str(cell).strip()
