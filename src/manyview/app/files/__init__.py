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
from manyview.datasets._tables import SEPARATORS, split_suffix
from manyview.engines.files.disk import DiskMatrix
from manyview.engines.files.formats import INSIDE, STREAMABLE
from manyview.engines.numpy.relations import Relation
from manyview.io import checksum
from manyview.io.guard import check_no_pipe, unpacking_up_to
from manyview.views.containers import Collection, Item
from manyview.views.views import LOAD_LIMIT

from .arrays import READERS, load_npy, read_arrays
from .orient import oriented, refuse_answers
from .samples import (
    EXACT,
    Aligned,
    Part,
    Rule,
    align,
    ask_if_rows_are_counted,
    matched,
    most_alike,
    tumors_of_patients,
    with_common_ids,
)
from .tables import APART, NOTHING, SEVERAL, cells_of, read_tables, text_of
from .text import GCT

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
    #: How each file was read: which way round, what its first line is, where its ids are.
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
            filled = sp.issparse(X) and rows[view] < X.shape[0]
            items.append(Item(X, self.sample_names, named, filled))
        items += [Item(X, self.sample_names) for X in self.relations.values()]
        return Collection([*self.views, *self.relations], items, by_name=True)


def read_views(
    files: Sequence[str | Path],
    *,
    index: Sequence[str] = (),
    transpose: Sequence[str] = (),
    header: Sequence[str] = (),
    missing: str = "error",
    fitted: Mapping[str, Sequence[str]] | None = None,
    on_disk: bool = False,
    max_unpacked: float | None = None,
    known: Sequence[Sequence[str]] = (),
    **more: Any,
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
    index : list of column, or "name=column"
        Where tables have their ids, if that cannot be seen; "name=" says nowhere.
    transpose : list of view names
        Files whose columns are samples; "all", or "none" to say that rows are. A file is transposed
        without being asked, and a note says so, if only then its ids agree with the others'.
    header : list of "yes", "no", "name=yes" or "name=no"
        Whether the first line of text tables is headings, where that cannot be seen.
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
    max_unpacked : float, optional
        GiB that a file may take unpacked. By default 250 times its size, at least 256 MiB, and no more
        than there is; 1000 times its size if it is read by rows.
    known : lists of ids, optional
        Columns of other tables (labels, clinical). The one that shares most names with the files tells
        rows from columns, and the samples are named as there.
    **more : the other settings of `Reading`
        decimal ("comma", "point", or with "name="), na (texts of empty cells), drop (columns),
        drop_text, one_hot, as_view (views that look like labels), match ("exact", "loose", "tcga"),
        keep_normals (of TCGA barcodes), tumors (of one patient: "one", "all").
    """
    given = {"index": index, "transpose": transpose, "header": header, **more}
    several = {name: tuple(said) for name, said in given.items() if isinstance(said, list)}
    reading = Reading(**(given | several))
    reading.check()
    with unpacking_up_to(max_unpacked):
        return _read_views(files, reading, missing, fitted, on_disk, known)


def _read_views(
    files: Sequence[str | Path],
    reading: Reading,
    missing: str,
    fitted: Mapping[str, Sequence[str]] | None,
    on_disk: bool,
    known: Sequence[Sequence[str]],
) -> ReadViews:
    if stay_on_disk(files, on_disk):
        return _by_rows(files, reading, on_disk)
    parts = _parts(files, reading)
    notes = [note for part in parts.values() for note in part.notes]
    parts, told = with_common_ids(parts)
    ask_if_rows_are_counted(parts)
    names = (n for p in parts.values() for n in (*(p.ids or ()), *(p.features or ())))
    others = most_alike(known, names)
    parts, turned = oriented(parts, reading.transpose, fitted, others)
    if not fitted:
        refuse_answers(parts, reading.as_view)
    decisions = [part.decision for part in parts.values()]  # with the ids as each file spells them
    n_first = next(iter(parts.values())).matrix.shape[0]
    parts, types = tumors_of_patients(parts, reading.keep_normals, reading.tumors)
    parts, joined, rule = matched(parts, reading.match, others, reading.tumors)
    if missing == "error":
        for part in parts.values():
            _refuse_empty(part, "" if fitted else "; --missing drop leaves such samples out")
    found = align(parts, union=missing == "allow")
    notes += told + turned + types + joined + found.notes
    if missing == "drop":
        found = _complete(found, notes)
    elif missing == "allow":
        notes += [text for part in parts.values() for text in _count_empty(part)]
        notes += _name_empty(found)
    return ReadViews(
        found.matrices,
        None if found.ids is None else np.array(found.ids, dtype=object),
        notes,
        _rows_of_file(next(iter(parts.values())), found.first_rows),
        n_first,
        {view: part.features for view, part in parts.items()},
        [_input(view, part) for view, part in parts.items()],
        decisions,
        rule,
        _original(parts, found),
    )


def _rows_of_file(part: Part, rows: Array) -> Array:
    return rows if part.used is None else np.where(rows < 0, -1, np.take(part.used, rows))


def _original(parts: dict[str, Part], found: Aligned) -> list[str] | None:
    spelled: dict[str, str] = {}
    for part in parts.values():
        for sample, original in zip(part.ids or (), part.original or part.ids or (), strict=True):
            spelled.setdefault(sample, original)
    originals = [spelled[sample] for sample in found.ids or ()]
    return None if originals == (found.ids or []) else originals


def _parts(files: Sequence[str | Path], reading: Reading) -> dict[str, Part]:
    """view → what its file holds, none of them twice."""
    parts: dict[str, Part] = {}
    for item in files:
        name, path, inside = located(str(item))
        for view, part in _read(name, path, inside, reading).items():
            if view in parts:
                raise ValueError(
                    f"{parts[view].file} and {part.file} would both be the view {view!r}; tell them "
                    f"apart by name=path, as in other={path}"
                )
            parts[view] = part
    if not parts:
        raise ValueError("no view file was given; name at least one")
    for option, views in reading.named().items():
        for view in sorted(views - set(parts)):
            raise ValueError(f"{option} {view}=…: the views are {', '.join(parts)}")
    for item in reading.drop:
        if not any(item.removeprefix(f"{v}=") in part.dropped for v, part in parts.items()):
            raise ValueError(f"--drop {item}: no file has a column of this name; say VIEW=COLUMN")
    return parts


def _by_rows(files: Sequence[str | Path], reading: Reading, on_disk: bool) -> ReadViews:
    everyone = replace(reading, keep_normals=False, tumors=None)
    words = command_words(everyone)
    if words:
        raise ValueError(
            f"{words[0]} is for tables in memory; files that are read by rows have the samples in rows, "
            "and their ids in the one column of text or in the .h5ad"
        )
    found = open_views(files, on_disk)
    ids = common_ids(found)
    types = _types_by_rows(next(iter(found)), ids, reading)
    views, notes = held(found, on_disk)
    n = next(iter(found.values())).shape[0]
    listed = {view: X.rows.features for view, X in found.items()}
    features = {
        v: None if names is None else [str(f) for f in names] for v, names in listed.items()
    }
    inputs = [
        {"view": view, "path": path, "rows": n, "columns": found[view].shape[1],
         "sha256": file_checksum(path)}
        for view, path in named_files(files)
    ]  # fmt: skip
    decisions = [_told_by_rows(X) for X in found.values()]
    return ReadViews(views, ids, types + notes, np.arange(n), n, features, inputs, decisions)


def _types_by_rows(view: str, ids: Array | None, reading: Reading) -> list[str]:
    """What TCGA barcodes say of the samples; rows that would be left out are refused."""
    if ids is None:
        return []
    part = Part("the files", sp.csr_array((len(ids), 0)), ids.tolist())
    kept, notes = tumors_of_patients({view: part}, reading.keep_normals, reading.tumors)
    lost = len(ids) - kept[view].matrix.shape[0]
    if lost:
        raise ValueError(
            f"{lost} of {len(ids)} samples would be left out, and files that are read by rows are used "
            f"whole ({'; '.join(notes)}); remove these rows from the files, or add --keep-normals or "
            "--tumors all to use them"
        )
    return notes


def _told_by_rows(X: Any) -> str:
    ids = None if X.rows.ids is None else [text_of(sample) for sample in X.rows.ids[:3]]
    # An empty matrix of the same shape: nothing is read for a sentence.
    shape = sp.csr_array(X.shape)
    return Part(X.label, shape, ids).decision


def _read(name: str | None, path: Path, inside: str | None, reading: Reading) -> dict[str, Part]:
    stem, kind = split_suffix(path.name)
    view = name or inside or path.name[: len(stem)]
    arrays = kind in READERS
    found = read_arrays(path) if arrays else read_tables(path, inside, view, reading)
    keys = {key: f"{name}.{key}" if name else key for key in found}
    return {keys[k] if k else view: replace(p, path=path) for k, p in found.items()}


def _empty(part: Part) -> Array:
    if sp.issparse(part.matrix) or part.matrix.dtype.kind != "f":
        return np.empty((0, 2), dtype=int)
    return np.argwhere(np.isnan(part.matrix))


def _refuse_empty(part: Part, hint: str) -> None:
    empty = _empty(part)
    if len(empty):
        i, j = empty[0]
        row = part.ids[i] if part.ids else str(i + 1)
        column = part.features[j] if part.features else str(j + 1)
        raise ValueError(
            f"{part.file} has {len(empty)} empty cells, the first in row {row!r}, column "
            f"{column!r}; fill them in, or remove the row or column{hint}"
        )


def _count_empty(part: Part) -> list[str]:
    n = len(_empty(part))
    return [f"{part.file} has {n} empty cells; they count as not observed"] if n else []


def _name_empty(found: Aligned) -> list[str]:
    """A sample without any value is often no sample: a closing remark, a line of totals."""
    empty = np.ones(len(found.first_rows), dtype=bool)
    for X in found.matrices.values():
        if sp.issparse(X):
            empty &= np.diff(sp.csr_array(X).indptr) == 0
        else:
            empty &= np.isnan(X).all(axis=1) if X.dtype.kind == "f" else False
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
    whole = np.ones(len(found.first_rows), dtype=bool)
    for X in found.matrices.values():
        if not sp.issparse(X) and X.dtype.kind == "f":
            whole &= ~np.isnan(X).any(axis=1)
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


def _input(view: str, part: Part) -> dict[str, Any]:
    assert part.path is not None
    rows, columns = part.matrix.shape
    return {"view": view, "path": str(part.path), "rows": rows, "columns": columns,
            "sha256": file_checksum(str(part.path))}  # fmt: skip


#: What takes files out of packages that are not looked into.
UNPACKERS = {".zip": "unzip", ".xz": "unxz -k", ".7z": "7z x", ".tar": "tar xf", ".tgz": "tar xzf"}
KINDS = (*SEPARATORS, GCT, ".parquet", *APART, *READERS)


def located(item: str) -> tuple[str | None, Path, str | None]:
    """``path``, ``name=path``, ``path:sheet`` or all of them → name, path and sheet."""
    name, path = None, item
    if "=" in item and not _is_file(item):
        name, _, path = item.partition("=")
        if not name or not path:
            raise ValueError(f"{item!r} is not name=path; write for example rna=data/rna.csv")
    if not _is_file(path):
        file, colon, inside = path.rpartition(":")
        while colon:  # a sheet's name may hold colons, too
            if split_suffix(Path(file).name)[1] in SEVERAL:
                return name, existing(Path(file)), inside
            file, colon, more = file.rpartition(":")
            inside = f"{more}:{inside}"
    return name, existing(Path(path)), None


def _is_file(path: str) -> bool:
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
    if not there:
        raise ValueError(f"{path} {'is a folder' if folder else 'does not exist'}; name a file")
    packer = UNPACKERS.get(path.suffix.lower())
    if packer:
        raise ValueError(
            f"{path.name} is an archive or packed in a way that is not read; unpack it: {packer} "
            f"{quote(str(path))}"
        )
    if split_suffix(path.name)[1] not in KINDS:
        raise ValueError(
            f"{path.name} is of no known kind; files may be {', '.join(KINDS)}, and tables of text also "
            "packed: .csv.gz, .csv.bz2, .csv.zst"
        )
    return path


#: Kinds that no other reader knows.
ONLY_HERE = (".h5", ".hdf5", ".zarr")


def named_files(files: Sequence[str | Path]) -> list[tuple[str, str]]:
    """(view, file) of every argument: ``path``, ``name=path``, ``path::array`` or both."""
    found = []
    for item in map(str, files):
        name, path = "", item
        if "=" in item and not Path(item.partition(INSIDE)[0]).exists():
            name, _, path = item.partition("=")
        file, _, key = path.partition(INSIDE)
        found.append((name or (key.rpartition("/")[2] if key else Path(file).stem), path))
    return found


def stay_on_disk(files: Sequence[str | Path], asked: bool) -> bool:
    """Whether to read by rows: asked for, of a kind that needs it, or large and of a kind that can."""
    paths = [Path(path.partition(INSIDE)[0]) for _, path in named_files(files)]
    kinds = [path.suffix.lower() for path in paths]
    if asked or any(kind in ONLY_HERE for kind in kinds):
        for path, kind in zip(paths, kinds, strict=True):
            if kind not in STREAMABLE:
                raise ValueError(
                    f"{path.name} cannot be read by rows, only {', '.join(STREAMABLE)} can; write it as "
                    "one of these"
                )
        return True
    if any(kind not in STREAMABLE for kind in kinds):
        return False
    return sum(path.stat().st_size for path in paths if path.is_file()) > LOAD_LIMIT


def open_views(files: Sequence[str | Path], asked: bool) -> dict[str, DiskMatrix]:
    """view → what reads its file; all list the same samples in one order."""
    found: dict[str, DiskMatrix] = {}
    for view, path in named_files(files):
        if view in found:
            raise ValueError(
                f"two files would both be the view {view!r}; tell them apart by name=path, as in "
                f"other={path}"
            )
        found[view] = DiskMatrix(path, keep=asked, view=view)
    if len({X.shape[0] for X in found.values()}) > 1:
        told = ", ".join(f"{X.label} has {X.shape[0]}" for X in found.values())
        raise ValueError(f"files read by rows must list the same samples in one order, but {told}")
    return found


def common_ids(found: dict[str, DiskMatrix]) -> Array | None:
    """The ids of the rows, which must be the same in every file that has them."""
    ids, holder = None, ""
    for view, X in found.items():
        if X.rows.ids is None:
            continue
        texts = [text_of(sample) for sample in X.rows.ids]
        Part(X.label, np.empty((0, 0)), texts).check_ids()
        listed = np.array(texts, dtype=object)
        if ids is None:
            ids, holder = listed, view
        elif (ids != listed).any():
            row = int(np.flatnonzero(ids != listed)[0])
            raise ValueError(
                f"views {holder!r} and {view!r} list other samples, or in another order (row {row}: "
                f"{ids[row]!r} and {listed[row]!r}); files read by rows must list the same samples in "
                "one order"
            )
    return ids


def held(found: dict[str, DiskMatrix], asked: bool) -> tuple[dict[str, Any], list[str]]:
    """The views as they are, or their rows where all together are small; a note says which."""
    size = sum(X.nbytes for X in found.values())
    notes = [f"{X.label}: {note}" for X in found.values() for note in X.rows.notes]
    if not asked and size <= LOAD_LIMIT:
        return {view: X.load() for view, X in found.items()}, notes
    staying = {view: X.stay() for view, X in found.items()}
    return staying, [
        *notes,
        f"the files ({size / 2**30:.2g} GiB) stay on disk and are read by rows",
    ]


def file_checksum(path: str) -> str:
    """Of a file; a folder (Zarr) has none."""
    file = Path(path.partition(INSIDE)[0])
    return "" if file.is_dir() else checksum.of_file(file)
