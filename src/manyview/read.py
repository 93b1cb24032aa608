"""Users' files → views whose rows are the same samples in the same order."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._types import Array, Matrix
from .datasets._dataset import import_pandas
from .datasets._tables import SEPARATORS, Table, numbers, split_suffix

KINDS = (".csv", ".tsv", ".txt", ".parquet", ".npy", ".npz")
#: Headings under which a first column is taken for sample ids even where the ids are numbers.
ID_NAMES = {
    "",
    *["id", "ids", "index", "sample", "samples", "sample_id", "sampleid", "name", "barcode"],
}


@dataclass(frozen=True, eq=False)
class ReadViews:
    """Views read from files, their common sample ids if the files have any, and what was noticed."""

    views: dict[str, Matrix]
    sample_names: Array | None
    notes: list[str] = field(default_factory=list)
    #: Rows of the first file that are kept, in order: labels in file order follow them.
    first_rows: Array = field(default_factory=lambda: np.arange(0))
    n_first: int = 0


@dataclass(frozen=True, eq=False)
class _Part:
    file: str
    matrix: Matrix
    ids: list[str] | None


def read_views(files: Sequence[str | Path]) -> ReadViews:
    """Read one view per file (``path``, or ``name=path``) and align the samples by id.

    Tables (.csv, .tsv, .parquet) have samples in rows; a first column of text, or one headed "id",
    names them. .npy holds one array, .npz one or several, or one SciPy sparse matrix; their rows
    have no ids. Samples that some file lacks are left out, and a note says how many.
    """
    parts: dict[str, _Part] = {}
    for item in files:
        name, path = _name_and_path(str(item))
        for view, part in _read(name, path).items():
            if view in parts:
                raise ValueError(
                    f"{parts[view].file} and {part.file} would both be the view {view!r}; tell them "
                    f"apart by name=path, as in other={path}"
                )
            parts[view] = part
    if not parts:
        raise ValueError("no view file was given; name at least one")
    return _aligned(parts)


def _name_and_path(item: str) -> tuple[str | None, Path]:
    if "=" in item and not Path(item).exists():
        name, _, rest = item.partition("=")
        if not name or not rest:
            raise ValueError(f"{item!r} is not name=path; write for example rna=data/rna.csv")
        return name, existing(Path(rest))
    return None, existing(Path(item))


def existing(path: Path) -> Path:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise ValueError(f"{path} {what}; name a file")
    if split_suffix(path.name)[1] not in KINDS:
        raise ValueError(f"{path.name} is of no known kind; files may be {', '.join(KINDS)}")
    return path


def _read(name: str | None, path: Path) -> dict[str, _Part]:
    stem, kind = split_suffix(path.name)
    view = name or path.name[: len(stem)]
    if kind == ".npy":
        return {view: _Part(path.name, _checked(path.name, load(path)), None)}
    if kind == ".npz":
        arrays = _load_npz(path)
        if len(arrays) == 1:
            return {view: _Part(path.name, _checked(path.name, *arrays.values()), None)}
        keys = {key: f"{name}.{key}" if name else key for key in arrays}
        return {
            keys[key]: _Part(f"{path.name}[{key}]", _checked(f"{path.name}[{key}]", array), None)
            for key, array in arrays.items()
        }
    return {view: _table(path)}


def load(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        why = f"{path.name} could not be read as an array of numbers ({error})"
        raise ValueError(f"{why}; save it again by numpy.save from a numeric array") from error


def _load_npz(path: Path) -> dict[str, Matrix]:
    with load(path) as archive:
        names = set(archive.files)
        try:
            if {"format", "shape", "data"} <= names:
                return {"": sp.csr_array(sp.load_npz(path))}
            return {key: archive[key] for key in archive.files}
        except ValueError as error:
            raise ValueError(f"{path.name} holds something other than numbers: {error}") from error


def _checked(file: str, array: Matrix) -> Matrix:
    if array.ndim != 2:
        raise ValueError(f"{file} has {array.ndim} dimension(s); a view has samples × features")
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{file} has entries of type {array.dtype}; a view holds numbers only")
    return array


def _table(path: Path) -> _Part:
    frame, header = cells_of(path)
    ids = _ids(path.name, frame, header)
    if ids is not None:
        frame, header = frame.iloc[:, 1:], header[1:]
    if not header or not len(frame):
        raise ValueError(
            f"{path.name} has {len(frame)} samples and {len(header)} features besides the ids; both "
            "must be at least 1"
        )
    rows = ids if ids is not None else [str(i + 1) for i in range(len(frame))]
    cells = frame.set_axis(range(len(rows)), axis=0).set_axis(range(len(header)), axis=1)
    matrix = numbers(Table(path.name, rows, header, cells), rows_are="row")
    empty = np.argwhere(np.isnan(matrix))
    if len(empty):
        i, j = empty[0]
        raise ValueError(
            f"{path.name} has {len(empty)} empty cells, the first in row {rows[i]!r}, column "
            f"{header[j]!r}; fill them in, or remove the row or column"
        )
    return _Part(path.name, matrix, ids)


def cells_of(path: Path) -> tuple[Any, list[str]]:
    """The body of a table and its header; ids, if any, are still the first column."""
    pandas = import_pandas(f"reading {path.name}")
    kind = split_suffix(path.name)[1]
    try:
        if kind == ".parquet":
            frame = pandas.read_parquet(path)
            if not isinstance(frame.index, pandas.RangeIndex):
                frame = frame.reset_index(names="id")
            return frame, [str(name).strip() for name in frame.columns]
        if kind not in SEPARATORS:
            raise ValueError("labels come as .csv, .tsv, .parquet or .npy")
        options: dict[str, Any] = {"sep": SEPARATORS[kind], "header": None, "low_memory": False}
        head = pandas.read_csv(path, nrows=1, dtype=str, keep_default_na=False, **options)
        header = [str(name).strip() for name in head.iloc[0]]
        skip = 0 if _is_data(header) else 1
        frame = pandas.read_csv(path, skiprows=skip, dtype={0: str}, **options)
    except ImportError as error:
        raise ImportError(
            f"reading {path.name} needs pyarrow; install it with: pip install 'manyview[app]'"
        ) from error
    except pandas.errors.EmptyDataError as error:
        raise ValueError(
            f"{path.name} has no rows of data; a header and rows are needed"
        ) from error
    except (OSError, ValueError) as error:  # pandas' parser errors included
        text = " ".join(str(error).split())
        raise ValueError(f"{path.name} could not be read as a table: {text}") from error
    if skip == 0:
        header = [f"column {j + 1}" for j in range(len(header))]
    elif len(header) == frame.shape[1] - 1:  # R leaves out the heading of the row names
        header = ["", *header]
    _check_separator(path.name, kind, header, frame)
    return frame, header


def _is_data(header: list[str]) -> bool:
    """Whether the first line is no header: all numbers, or an id before numbers with decimals."""
    try:
        values = [float(name) for name in header[1:]]
        first = None if header[0].lower() in ID_NAMES else _number(header[0])
    except ValueError:
        return False
    if first is None or not values:
        return any(not value.is_integer() for value in values)
    # 0, 1, 2, … are the columns pandas invents.
    return [value - first for value in values] != list(range(1, len(header))) or first not in (0, 1)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _check_separator(file: str, kind: str, header: list[str], frame: Any) -> None:
    ours = SEPARATORS[kind]
    words = {",": "commas", "\t": "tabs", ";": "semicolons"}
    if len(header) != frame.shape[1]:
        raise ValueError(
            f"{file} has {len(header)} headings and rows of {frame.shape[1]} cells; a {kind} file is "
            f"separated by {words[ours]}, with decimal points"
        )
    for other in set(words) - {ours}:
        if len(header) == 1 and other in header[0]:
            raise ValueError(
                f"{file} is one column when split at {words[ours]}, as a {kind} file should be, but "
                f"its header holds {words[other]}; save it with {words[ours]}"
                + (", or rename it to .tsv" if other == "\t" else "")
            )


def _ids(file: str, frame: Any, header: list[str]) -> list[str] | None:
    """The first column as ids, if it is text or headed as ids; None if it is a feature."""
    pandas = import_pandas(f"reading {file}")
    column = [text_of(cell) for cell in frame.iloc[:, 0]]
    parsed = pandas.to_numeric(pandas.Series(column, dtype=object), errors="coerce")
    # A lone word among numbers is a mistake in a feature, not a sign of ids.
    textual = parsed.isna().mean() > 0.5 and any(column)
    if not textual and header[0].lower() not in ID_NAMES:
        return None
    if "" in column:
        row = column.index("") + 1
        raise ValueError(f"{file} has no sample id in row {row} below the header; fill it in")
    seen: set[str] = set()
    for sample in column:
        if sample in seen:
            raise ValueError(
                f"{file} has the sample id {sample!r} more than once in its first column; ids must "
                "be unique, so remove or rename the repeated rows"
            )
        seen.add(sample)
    return column


def text_of(cell: Any) -> str:
    if cell is None or cell != cell:
        return ""
    return str(cell).strip()


def _aligned(parts: dict[str, _Part]) -> ReadViews:
    first, *others = parts.values()
    named = [part for part in parts.values() if part.ids is not None]
    same = all(part.ids == named[0].ids for part in named)
    if len(named) < len(parts) or same:
        return _in_one_order(parts, named, same)
    assert first.ids is not None
    shared = set(first.ids)
    for part in others:
        assert part.ids is not None
        if not shared & set(part.ids):
            raise ValueError(
                f"{part.file} shares no sample id with the files before it: {first.file} has "
                f"{first.ids[0]!r}, {part.file} has {part.ids[0]!r}; give one sample one id everywhere"
            )
        shared &= set(part.ids)
    order = [sample for sample in first.ids if sample in shared]
    views, notes = {}, []
    for name, part in parts.items():
        place = {sample: i for i, sample in enumerate(part.ids or ())}
        views[name] = part.matrix[[place[sample] for sample in order]]
        if len(place) > len(order):
            notes.append(f"{part.file}: {len(place) - len(order)} of {len(place)} samples left out")
    if notes:
        notes.append(f"{len(order)} samples are in every file and are used")
    kept = np.array([i for i, sample in enumerate(first.ids) if sample in shared])
    return ReadViews(views, np.array(order, dtype=object), notes, kept, len(first.ids))


def _in_one_order(parts: dict[str, _Part], named: list[_Part], same: bool) -> ReadViews:
    """Files of which some have no ids, or all the same: row i is the same sample in all."""
    first, *others = parts.values()
    if not same:
        bare = next(part for part in parts.values() if part.ids is None)
        raise ValueError(
            f"{bare.file} has no sample ids, and the other files list theirs in different orders; "
            "give every file a first column of ids"
        )
    n = first.matrix.shape[0]
    for part in others:
        if part.matrix.shape[0] != n:
            raise ValueError(
                f"{first.file} has {n} samples and {part.file} has {part.matrix.shape[0]}; without "
                "ids in every file the rows must be the same samples in the same order"
            )
    ids = np.array(named[0].ids, dtype=object) if named else None
    return ReadViews({name: part.matrix for name, part in parts.items()}, ids, [], np.arange(n), n)
