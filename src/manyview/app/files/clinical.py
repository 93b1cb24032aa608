"""Clinical tables: any kinds of columns, brought to the order of the views' samples by their ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from manyview._types import Array
from manyview.app.options import Asked
from manyview.engines.files.headings import is_id_heading
from manyview.io.checksum import of_file
from manyview.io.safe_csv import exact_text
from manyview.outcomes.align import quoted

from . import is_there, located
from .samples import (
    EXACT,
    PATIENT,
    Rule,
    smallest_rule,
)
from .tables import SEVERAL, cells_of, text_of, texts_of
from .text import split_suffix

#: Names listed in a sentence.
SHOWN = 8


@dataclass(frozen=True, eq=False)
class ClinicalTable:
    """Columns in the order of the samples; None where a sample is not in the file or a cell is empty."""

    file: str
    columns: dict[str, list[Any]]
    present: Array
    sha256: str
    notes: list[str] = field(default_factory=list)

    def column(self, name: str, option: str) -> list[Any]:
        """A column by its name; letters in upper or lower case are the same if only one fits."""
        return self.columns[self.name_of(name, option)]

    def name_of(self, name: str, option: str) -> str:
        """The name of a requested column in the file."""
        if name in self.columns:
            return name
        alike = [known for known in self.columns if known.lower() == name.lower()]
        if len(alike) == 1:
            return alike[0]
        raise ValueError(
            f"{option} {name}: {self.file} has no such column; its columns are {listed(self.columns)}"
        )


def read_clinical(
    path: str | Path, samples: Sequence[Any] | None, n: int, rule: Rule = EXACT
) -> ClinicalTable:
    """Read a table of one row per sample and bring it to the order of ``samples``.

    The column of ids is the one that holds most of the samples; ``rule`` says when two ids are one
    sample. Without ``samples`` (views without ids) the table must have ``n`` rows in their order.
    """
    _, path, inside = located(str(path))
    frame, header, *_ = cells_of(path, inside, Asked("", header=True))
    names = _headings(path.name, header)
    cells = [_values(frame.iloc[:, j]) for j in range(len(names))]
    wanted = None if samples is None else [str(sample) for sample in samples]
    if len({*map(rule.key, names)} & {*map(rule.key, wanted or ())}) == 1:  # no headings: a sample
        cells = [[name, *column] for name, column in zip(names, cells, strict=True)]
        names = [f"column {j + 1}" for j in range(len(names))]
    place, rows, note = _matched(path.name, names, cells, wanted, n, rule)
    columns = {
        name: [cells[j][i] if i >= 0 else None for i in rows.tolist()]
        for j, name in enumerate(names)
        if j != place
    }
    if not columns:
        raise ValueError(
            f"{path.name} has a column of ids and no other; clinical columns are needed"
        )
    return ClinicalTable(path.name, columns, rows >= 0, of_file(path), [note])


def split_column(text: str) -> tuple[str, str | None]:
    """ "clinical.csv:subtype" → the file and the column; a file of that very name comes first.

    Of a file of several tables ("book.xlsx:sheet") the column comes after the table.
    """
    file, colon, column = text.rpartition(":")
    if not colon or is_there(text):
        return text, None
    several = split_suffix(Path(text.partition(":")[0]).name)[1] in SEVERAL
    if is_there(file):
        is_table = several and column in texts_of(Path(file), None)
        return (text, None) if is_table else (file, column)
    within = several and is_there(text.partition(":")[0])
    return (file, column) if within else (text, None)


def clinical_ids(path: str | Path) -> list[list[str]]:
    """The columns of a table, each of which may hold its ids."""
    _, file, inside = located(str(path))
    if split_suffix(file.name)[1] == ".npy":  # labels in file order
        return []
    frame, *_ = cells_of(file, inside, Asked("", header=True))
    return [[text_of(cell) for cell in frame.iloc[:, j]] for j in range(frame.shape[1])]


def listed(names: Sequence[str] | dict[str, Any]) -> str:
    """The first few names, for a sentence."""
    shown = [quoted(name) for name in list(names)[:SHOWN]]
    return ", ".join(shown) + (f", … ({len(names)} in all)" if len(names) > SHOWN else "")


def _headings(file: str, header: list[str]) -> list[str]:
    names = [name or f"column {j + 1}" for j, name in enumerate(exact_text(h) for h in header)]
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(f"{file} has two columns headed {quoted(twice[0])}; rename one")
    return names


def _values(column: Any) -> list[Any]:
    """Cells as Python values; an apostrophe that we put before a formula is taken away again."""
    cells = column.astype(object).where(column.notna(), None).tolist()
    return [exact_text(cell) if isinstance(cell, str) else cell for cell in cells]


def _matched(
    file: str,
    names: list[str],
    cells: list[list[Any]],
    samples: list[str] | None,
    n: int,
    rule: Rule,
) -> tuple[int | None, Array, str]:
    """Which column holds the ids, and for every sample its row (−1: none), and how that was found."""
    n_rows = len(cells[0])
    counted = samples is None or samples == [str(i) for i in range(n)]
    if counted and not (samples and is_id_heading(names[0], distinct=True)):
        if n_rows != n:
            raise ValueError(
                f"{file} has {n_rows} rows for {n} samples without ids; give one row each, in the "
                "order of the views' rows, or give the view files a column of ids"
            )
        return None, np.arange(n), f"{file}: no ids in the views; rows are matched by position"
    assert samples is not None
    texts = [[text_of(cell) for cell in column] for column in cells]
    # Samples that are distinguished by their types may have a row for their patient.
    for tried in dict.fromkeys((rule, PATIENT) if rule.match == "tcga" else (rule,)):
        keys = [[tried.key(text) for text in column] for column in texts]
        wanted = [tried.key(sample) for sample in samples]
        known = set(wanted)
        hits = [len(known.intersection(column)) for column in keys]
        place = int(np.argmax(hits))
        if hits[place]:
            break
    if not hits[place]:
        raise ValueError(_strangers(file, samples, texts))
    twice = _repeated(file, keys[place], known, cells, texts[place])
    first = {key: i for i, key in reversed(list(enumerate(keys[place])))}
    rows = np.array([first.get(key, -1) for key in wanted], dtype=np.intp)
    return place, rows, _told(file, names[place], rows, n_rows, twice)


def _repeated(
    file: str, keys: list[Any], known: set[str], cells: list[list[Any]], ids: list[str]
) -> int:
    """Number of ids with several equal rows; rows that differ are refused."""
    rows: dict[Any, list[int]] = {}
    for i, key in enumerate(keys):
        rows.setdefault(key, []).append(i)
    twice = [same for key, same in rows.items() if len(same) > 1 and key in known]
    for same in twice:
        if any(column[i] != column[same[0]] for column in cells for i in same):
            raise ValueError(
                f"{file} has the id {quoted(ids[same[0]])} in {len(same)} rows that differ; keep one row "
                "for each sample"
            )
    return len(twice)


def _strangers(file: str, samples: list[str], texts: list[list[str]]) -> str:
    """No sample is in any column; say which rule would help, if one would."""
    found = (
        f"{file} has none of the {len(samples)} samples in any column: the views' ids begin with "
    )
    found += f"{quoted(samples[0])}, its first column with {quoted(texts[0][0]) if texts[0] else 'nothing'}"
    for column in texts:
        rule = smallest_rule([samples, list(dict.fromkeys(column))], None)
        if rule is not EXACT:
            return f"{found}, which are the same if {rule.words}; add --match {rule.match}"
    return f"{found}; give one sample one id everywhere"


def _told(file: str, heading: str, rows: Array, n_rows: int, twice: int) -> str:
    here = int((rows >= 0).sum())
    note = f"{file}: ids in the column {quoted(heading)}; it has {here} of {len(rows)} samples"
    others = n_rows - len(np.unique(rows[rows >= 0])) - twice
    if others > 0:
        note += f"; {others} of its rows belong to no sample here"
    return note + (f"; {twice} ids have several equal rows, of which one is used" * bool(twice))
