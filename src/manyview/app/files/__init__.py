"""Users' files → views whose rows are the same samples in the same order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview.app.options import Reading, command_words
from manyview.engines.files.disk import DiskMatrix
from manyview.engines.files.formats import STREAMABLE
from manyview.engines.files.row_file import INSIDE
from manyview.engines.numpy.relations import Relation
from manyview.engines.numpy.sources import is_streamed
from manyview.io import checksum
from manyview.io.packed import check_no_pipe
from manyview.views.containers import Collection, Item
from manyview.views.views import LOAD_LIMIT

from .arrays import READERS, load_npy, read_arrays
from .orient import oriented, refuse_answers
from .samples import (
    EXACT,
    Aligned,
    FileView,
    Rule,
    align,
    ask_if_rows_are_counted,
    matched,
    most_alike,
    tumors_of_patients,
    with_common_ids,
)
from .tables import APART, NOTHING, SEVERAL, TYPED, cells_of, read_tables, text_of
from .text import GCT, SEPARATORS, split_suffix

__all__ = [
    "KINDS",
    "NOTHING",
    "ReadViews",
    "Reading",
    "cells_of",
    "existing",
    "load_npy",
    "located",
    "read_views",
    "text_of",
]


@dataclass(frozen=True, eq=False)
class ReadViews:
    """Views read from files, their common sample ids if the files have any, and what was noticed."""

    views: dict[str, Matrix]
    sample_names: Array | None
    notes: list[str] = field(default_factory=list)
    #: For each sample its row in the first file, −1 if it is not there.
    first_rows: Array = field(default_factory=lambda: np.arange(0))
    n_first: int = 0
    features: dict[str, list[str] | None] = field(default_factory=dict)
    #: For each view its file, its size there and the file's checksum.
    inputs: list[dict[str, Any]] = field(default_factory=list)
    #: How each file was read: orientation, first line, ids.
    decisions: list[str] = field(default_factory=list)
    #: When two ids are the same sample.
    rule: Rule = EXACT
    #: The samples as the first file that has them spells them, where that is not how they are named.
    original_ids: list[str] | None = None
    #: Views that relate the samples to each other, or to those of a fit.
    relations: dict[str, Relation] = field(default_factory=dict)

    @property
    def told(self) -> list[str]:
        """All there is to say about the reading."""
        return self.decisions + self.notes

    def collection(self) -> Collection:
        """What estimators take: matrices with the names of samples and features."""
        items, rows = [], {entry["view"]: entry["rows"] for entry in self.inputs}
        for view, X in self.views.items():
            names = self.features.get(view)
            named = None if names is None else np.array(names, dtype=object)
            filled = max(0, X.shape[0] - rows[view]) if sp.issparse(X) else 0
            items.append(Item(X, self.sample_names, named, filled))
        items += [Item(X, self.sample_names) for X in self.relations.values()]
        return Collection([*self.views, *self.relations], items, by_name=True)


def read_views(
    files: Sequence[str | Path],
    *,
    missing: str = "error",
    fitted: Mapping[str, Sequence[str]] | None = None,
    on_disk: bool = False,
    known: Sequence[Sequence[str]] = (),
    **settings: Any,
) -> ReadViews:
    """Read one view per file (``path``, or ``name=path``) and align the samples by id.

    Tables (.csv, .tsv, .txt, also with .gz, .bz2 or .zst; .parquet, .feather, .xlsx, .xls, .ods, .rds,
    .rda) have samples in rows; a first column of text, or one headed as ids, names them.
    ``book.xlsx:Sheet`` and ``saved.rda:object`` name one of several. .npy holds one array; .npz and
    .mat one or several; .mtx a sparse matrix; their rows have no ids. .h5ad holds one
    view with ids, .h5mu one for each modality.

    Parameters
    ----------
    files : list of path, or "name=path"
    missing : {"error", "drop", "allow"}
        "error": samples that all files have; an empty cell is an error. "drop": samples that all
        files have, without an empty cell. "allow": all samples; what is absent is NaN (in a sparse
        view zero).
    fitted : dict of view → features, optional
        What a model was fitted on ("" for any view): a file that has them in rows is transposed,
        and a note says so.
    on_disk : bool
        Read .npy, .parquet, .h5ad, .h5 and .zarr files by rows, however small; large ones are in any
        case. Such files must list the same samples in one order.
    known : lists of ids, optional
        Columns of other tables (labels, clinical). The one that shares most names with the files tells
        rows from columns, and the samples are named as there.
    **settings : those of `Reading`
        What users say where it cannot be seen. A file is transposed without being asked, and a note says
        so, if only then its ids agree with the others'.
    """
    several = {name: tuple(said) for name, said in settings.items() if isinstance(said, list)}
    reading = Reading(**(settings | several))
    reading.check()
    by_rows = _stay_on_disk(files, on_disk)
    parts = _parts(files, reading, by_rows)
    notes = [note for part in parts.values() for note in part.notes]
    parts, common = with_common_ids(parts)
    ask_if_rows_are_counted(parts)
    names = (n for p in parts.values() for n in (*(p.ids or ()), *(p.features or ())))
    others, turned = most_alike(known, names), list[str]()
    if not by_rows:
        parts, turned = oriented(parts, reading.transpose, fitted, others)
        if not fitted:
            refuse_answers(parts, reading.as_view)
    decisions = [part.decision for part in parts.values()]  # with the ids as each file spells them
    n_first = next(iter(parts.values())).matrix.shape[0]
    parts, types = tumors_of_patients(parts, reading.keep_normals, reading.tumors)
    parts, joined, rule = matched(parts, reading.match, others, reading.tumors)
    if missing == "error":
        for part in parts.values():
            _refuse_gaps(part, "" if fitted else "; --missing drop leaves such samples out")
    found = align(parts, union=missing == "allow")
    notes += common + turned + types + joined + found.notes
    if missing == "drop":
        found = _complete(found, notes)
    elif missing == "allow":
        counts = {part.file: int(_gaps(part.matrix).sum()) for part in parts.values()}
        notes += [
            f"{file} has {n} empty cells, treated as missing" for file, n in counts.items() if n
        ]
        notes += _name_empty(found)
    if by_rows:
        size = sum(X.nbytes for X in found.matrices.values()) / 2**30
        notes.append(f"the files ({size:.2g} GiB) stay on disk and are read by rows")
    first = next(iter(parts.values()))
    rows = found.first_rows
    if first.used is not None:
        rows = np.where(rows < 0, -1, np.take(first.used, rows))
    return ReadViews(
        found.matrices,
        None if found.ids is None else np.array(found.ids, dtype=object),
        notes,
        rows,
        n_first,
        {view: part.features for view, part in parts.items()},
        [input_of(view, str(part.path), part.matrix.shape) for view, part in parts.items()],
        decisions,
        rule,
        _original(parts, found),
    )


def _original(parts: dict[str, FileView], found: Aligned) -> list[str] | None:
    spelled: dict[str, str] = {}
    for part in parts.values():
        for sample, original in zip(part.ids or (), part.original or part.ids or (), strict=True):
            spelled.setdefault(sample, original)
    originals = [spelled[sample] for sample in found.ids or ()]
    return None if originals == (found.ids or []) else originals


def _parts(files: Sequence[str | Path], reading: Reading, by_rows: bool) -> dict[str, FileView]:
    """view → what its file holds, none of them twice; ``by_rows``: the matrices stay in the files."""
    parts: dict[str, FileView] = {}
    words = command_words(replace(reading, match=None, keep_normals=False, tumors=None))
    if by_rows and words:
        raise ValueError(
            f"{words[0]} is for tables in memory; files that are read by rows have the samples in rows, "
            "and their ids in the one column of text or in the .h5ad"
        )
    for item in files:
        name, path, inside = located(str(item))
        stem, kind = split_suffix(path.name)
        own = name or (inside or "").rpartition("/")[2] or path.name[: len(stem)]
        if by_rows or kind in ONLY_ROWS:
            found = {"": _rows_of(place_of(path, inside), own, by_rows)}
        else:
            found = (
                read_arrays(path) if kind in READERS else read_tables(path, inside, own, reading)
            )
        for key, part in found.items():
            view = (f"{name}.{key}" if name else key) if key else own
            if view in parts:
                raise ValueError(
                    f"{parts[view].file} and {part.file} would both be the view {view!r}; "
                    f"name one of them, as in other={path}"
                )
            parts[view] = replace(part, path=Path(place_of(path, inside)))
    if not parts:
        raise ValueError("no view file was given; name at least one")
    for option, views in reading.named().items():
        for view in sorted(views - set(parts)):
            raise ValueError(f"{option} {view}=…: the views are {', '.join(parts)}")
    for item in reading.drop:
        if not any(item.removeprefix(f"{v}=") in part.dropped for v, part in parts.items()):
            raise ValueError(f"--drop {item}: no file has a column of this name; say VIEW=COLUMN")
    return parts


def _rows_of(place: str, view: str, stays: bool) -> FileView:
    """An array that can be read by rows, with the names its file has of them."""
    X = DiskMatrix(place, view=view)
    ids, features = X.rows.ids, X.rows.features
    notes = [f"{X.label}: {note}" for note in X.rows.notes]
    return FileView(
        X.label,
        X if stays else X.load(),
        None if ids is None else [text_of(sample) for sample in ids],
        None if features is None else [str(name) for name in features],
        notes=notes,
    )


def input_of(view: str, path: str, shape: tuple[int, ...]) -> dict[str, Any]:
    """What a run keeps of a file of its input."""
    rows, columns = shape
    return {
        "view": view,
        "path": path,
        "rows": rows,
        "columns": columns,
        "sha256": file_checksum(path),
    }


# --- empty cells ----------------------------------------------------------------------------------


def _gaps(X: Matrix) -> Array:
    """Which cells are empty; sparse matrices, whole numbers and rows in a file have no such cells."""
    if sp.issparse(X) or is_streamed(X) or X.dtype.kind != "f":
        return np.zeros((X.shape[0], 0), dtype=bool)
    return np.isnan(X)


def _refuse_gaps(part: FileView, hint: str) -> None:
    empty = np.argwhere(_gaps(part.matrix))
    if len(empty):
        i, j = empty[0]
        row = part.ids[i] if part.ids else str(i + 1)
        column = part.features[j] if part.features else str(j + 1)
        raise ValueError(
            f"{part.file} has {len(empty)} empty cells, the first in row {row!r}, column "
            f"{column!r}; fill them in, or remove the row or column{hint}"
        )


def _name_empty(found: Aligned) -> list[str]:
    """A sample without any value is often no sample: a closing remark, a line of totals."""
    empty = np.ones(len(found.first_rows), dtype=bool)
    for X in found.matrices.values():
        if sp.issparse(X):
            empty &= np.diff(sp.csr_array(X).indptr) == 0
        else:
            gaps = _gaps(X)
            empty &= gaps.shape[1] > 0 and gaps.all(axis=1)
    rows = np.flatnonzero(empty)
    if not len(rows):
        return []
    names = [repr(found.ids[i]) if found.ids else f"row {i + 1}" for i in rows[:5]]
    return [
        f"{len(rows)} sample{'s' * (len(rows) > 1)} without any value in any file: {', '.join(names)}"
        f"{', …' * (len(rows) > 5)}; remove what is no sample"
    ]


def _complete(found: Aligned, notes: list[str]) -> Aligned:
    """Only the samples without an empty cell."""
    whole = ~np.any([_gaps(X).any(axis=1) for X in found.matrices.values()], axis=0)
    if whole.all():
        return found
    if not whole.any():
        raise ValueError(
            f"each of the {len(whole)} samples has an empty cell in some file, so that none is left; "
            "use --missing allow, or remove the columns that are mostly empty"
        )
    notes.append(
        f"{int((~whole).sum())} samples with empty cells left out, {int(whole.sum())} used"
    )
    rows = np.flatnonzero(whole)
    ids = None if found.ids is None else [found.ids[i] for i in rows]
    matrices = {view: X[rows] for view, X in found.matrices.items()}
    return Aligned(matrices, ids, found.first_rows[rows], notes)


# --- which file is meant --------------------------------------------------------------------------


#: What takes files out of packages that are not looked into.
UNPACKERS = {".zip": "unzip", ".xz": "unxz -k", ".7z": "7z x", ".tar": "tar xf", ".tgz": "tar xzf"}
KINDS = (*SEPARATORS, GCT, *TYPED, *APART, *READERS)
#: Kinds of several arrays without names of samples, of which file::array is one.
ONLY_ROWS = (".h5", ".hdf5", ".zarr")


def located(item: str) -> tuple[str | None, Path, str | None]:
    """``path``, ``name=path``, ``path:sheet``, ``path::array`` or all of them → name, path, and what is
    inside."""
    name, path = None, item
    if "=" in item and not is_there(item) and not is_there(item.partition(INSIDE)[0]):
        name, _, path = item.partition("=")
        if not name or not path:
            raise ValueError(f"{item!r} is not name=path; write for example rna=data/rna.csv")
    if not is_there(path):
        file, _, inside = path.partition(INSIDE)
        if inside and file.lower().endswith(STREAMABLE):
            return name, existing(Path(file)), inside
        file, colon, inside = path.rpartition(":")
        while colon:  # a sheet's name may hold colons, too
            if split_suffix(Path(file).name)[1] in SEVERAL:
                return name, existing(Path(file)), inside
            file, colon, more = file.rpartition(":")
            inside = f"{more}:{inside}"
    return name, existing(Path(path)), None


def place_of(path: Path, inside: str | None) -> str:
    """A file as readers by rows name it: with the name of the array inside."""
    by_rows = inside and path.name.lower().endswith(STREAMABLE)
    return f"{path}{INSIDE}{inside}" if by_rows else str(path)


def is_there(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # a name no file system takes
        return False


def existing(path: Path) -> Path:
    try:
        there, folder = path.is_file(), path.is_dir()
    except (OSError, ValueError) as error:  # a name no file system takes
        raise ValueError(f"{str(path)[:80]!r} is no name of a file ({error})") from None
    check_no_pipe(path)
    if not there and not (folder and path.suffix.lower() in ONLY_ROWS):
        raise ValueError(f"{path} {'is a folder' if folder else 'does not exist'}; name a file")
    packer = UNPACKERS.get(path.suffix.lower())
    if packer:
        raise ValueError(
            f"{path.name} is an archive or packed in a way that is not read; unpack it: {packer} "
            f"{quote(str(path))}"
        )
    kinds = (*KINDS, *ONLY_ROWS)
    if split_suffix(path.name)[1] not in kinds:
        raise ValueError(
            f"{path.name} is of an unknown kind; files may be {', '.join(kinds)}, and tables of text also "
            "packed: .csv.gz, .csv.bz2, .csv.zst"
        )
    return path


def file_checksum(path: str) -> str:
    """Of a file; a folder (Zarr) has none."""
    file = Path(path.partition(INSIDE)[0])
    return "" if file.is_dir() else checksum.of_file(file)


def _stay_on_disk(files: Sequence[str | Path], asked: bool) -> bool:
    """Whether to read by rows: where requested, or where files that can be read so are large together."""
    places = [(path, inside) for _, path, inside in map(located, map(str, files))]
    unfit = [path for path, _ in places if path.suffix.lower() not in STREAMABLE]
    if asked and unfit:
        raise ValueError(
            f"{unfit[0].name} cannot be read by rows, only {', '.join(STREAMABLE)} can; write it as "
            "one of these"
        )
    return asked or (not unfit and sum(_size(*place) for place in places) > LOAD_LIMIT)


def _size(path: Path, inside: str | None) -> int:
    packed = path.suffix.lower() in ONLY_ROWS
    return DiskMatrix(place_of(path, inside)).nbytes if packed else path.stat().st_size
