"""Columns of a table that are no features: dropped by name, text, categories."""

from __future__ import annotations

import re
from shlex import quote
from typing import Any

import numpy as np

from manyview.datasets._dataset import import_pandas
from manyview.datasets._tables import NotANumber, Table, numbers
from manyview.engines.files.headings import is_note_on_features

from .dialect import COMMA_NUMBER
from .first_line import number
from .options import Asked

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
        notes.append(f"{file}: {n} column{'s' * (n > 1)} without heading and numbers left out")
        frame = frame.drop(columns=[frame.columns[j] for j in nameless])
        frame.columns = range(frame.shape[1])
        header = [name for j, name in enumerate(header) if j not in nameless]
    dropped = [j for j, name in enumerate(header) if name in asked.drop]
    if dropped:
        notes.append(f"{file}: {_named(header, dropped)} left out, as asked")
    # By their types first: of 20,000 columns hardly one is looked at.
    unclear = [j for j, kind in enumerate(frame.dtypes) if not _is_numeric(kind)]
    texts = [j for j in unclear if j not in dropped and _is_text(frame.iloc[:, j])]
    about = [j for j in texts if is_note_on_features(header[j])]
    if about:
        texts = [j for j in texts if j not in about]
        dropped += about
        notes.append(f"{file}: {_named(header, about)} left out, being text about features")
    spread: dict[int, Any] = {}
    if texts and asked.one_hot:
        spread = {j: _categories(frame.iloc[:, j]) for j in texts}
        spread = {j: found for j, found in spread.items() if found is not None}
        if spread:
            notes.append(f"{file}: {_named(header, list(spread))} made columns of 0 and 1")
    left = [j for j in texts if j not in spread]
    if left and not asked.drop_text:
        raise ValueError(_complaint(file, frame, header, left, asked))
    if left:
        notes.append(f"{file}: {_named(header, left)} left out, being text")
    if not texts and not dropped:
        return frame, header, notes
    return (*_kept(frame, header, {*dropped, *left}, spread), notes)


def numbers_of(file: str, frame: Any, rows: list[str], header: list[str]) -> np.ndarray:
    """The cells as numbers; a stray text is refused, with what may be done about it."""
    try:
        return numbers(Table(file, rows, header, frame), rows_are="row")
    except NotANumber as error:
        cell = error.cell.strip()
        hint = f"; if it stands for an empty cell, add --na {quote(cell)}"
        if COMMA_NUMBER.fullmatch(cell):
            hint = "; if it has a decimal comma, add --decimal comma"
        raise ValueError(f"{error}{hint if len(cell) < 40 else ''}") from None


def _is_numeric(kind: Any) -> bool:
    return isinstance(kind, np.dtype) and kind.kind in "biufc"


def _is_text(column: Any) -> bool:
    """Whether most cells that hold something are no numbers; a lone word is a mistake instead."""
    pandas = import_pandas("reading a table")
    filled = column[column.notna()]
    if not len(filled) or isinstance(filled.iloc[0], bool | np.bool_):
        return False
    return bool(pandas.to_numeric(filled.astype(object), errors="coerce").isna().mean() > 0.5)


def _categories(column: Any) -> list[str] | None:
    """The words of a column; nothing if they are too many."""
    words = sorted({str(cell).strip() for cell in column[column.notna()]})
    return words if len(words) <= MOST_CATEGORIES else None


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
            f"{quote(example.strip())} to count them as not observed"
        )
    return ""


def _named(header: list[str], columns: list[int]) -> str:
    shown = ", ".join(repr(header[j]) for j in columns[:SHOWN])
    if len(columns) == 1:
        return f"the column {shown}"
    return f"the columns {shown}{f', … ({len(columns)} in all)' * (len(columns) > SHOWN)}"
