"""Three omics matrices and labels from a folder of the user's own files (TCGA liver cancer)."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from manyview.io.limits import unpacking_up_to

from ._dataset import Dataset
from ._tables import SUFFIXES, numbers, read_table, split_suffix

# Parts of file names by role. Looked up in this order, because 'gene' also occurs in names like
# gene_level_copy_number.
ROLES = {
    "labels": ("label", "clinical"),
    "methylation": ("meth",),
    "copy_number": ("cnv", "copy", "cna"),
    "expression": ("expression", "rna", "gene"),
}
VIEWS = ("expression", "copy_number", "methylation")
LABEL_COLUMNS = ("label", "labels", "class", "sample_type", "type", "status")


def load_lihc(
    folder: str | Path,
    n_features: int | None = 100,
    *,
    expression: str | None = None,
    copy_number: str | None = None,
    methylation: str | None = None,
    labels: str | None = None,
    label_column: str | None = None,
    missing: str = "error",
    max_unpacked: float | None = None,
) -> Dataset:
    """Gene expression, copy number and methylation of the same samples, from your own files.

    The matrices of the TCGA liver cohort (LIHC) may not be redistributed; this reads the files
    you have. It works for any cohort with the same three kinds of data. Needs pandas.

    Parameters
    ----------
    folder : path
        Holds four files, `.csv`, `.tsv`, `.txt` (tab), these with `.gz`, or `.parquet`. They
        are recognised by a part of their name: "label" or "clinical"; "meth"; "cnv", "cna" or
        "copy"; "expression", "rna" (not "mirna") or "gene", in this order.
    n_features : int or None, default 100
        How many features with the largest variance to keep in each view; None keeps all.
        They stay in the order of the file.
    expression, copy_number, methylation, labels : str, optional
        File names inside the folder, where the names above do not decide.
    label_column : str, optional
        Which column of the label file holds the classes. By default its only column, or the one
        called label, labels, class, sample_type, type or status.
    missing : "error" or "drop"
        What to do about empty cells: stop and say where, or drop the features that have any.
    max_unpacked : float, optional
        GiB that a packed file may take in memory. By default 250 times its size, at least 256 MiB, and
        no more than there is.

    Returns
    -------
    Dataset
        Views expression, copy_number, methylation with the values of the files, which may be
        negative: nothing is shifted or scaled. Samples are those present in all four files, in
        the order of the label file. The description counts the ones left out.

    Notes
    -----
    The label file has one row per sample, its id first. A matrix has samples in rows or in
    columns; whichever of the two names shares more ids with the label file is taken.
    """
    if n_features is not None and (
        isinstance(n_features, bool) or not isinstance(n_features, Integral) or n_features < 1
    ):
        raise ValueError(f"n_features must be a positive integer or None, not {n_features!r}")
    if missing not in ("error", "drop"):
        raise ValueError(f"missing must be 'error' or 'drop', not {missing!r}")
    given = {
        "labels": labels,
        "methylation": methylation,
        "copy_number": copy_number,
        "expression": expression,
    }
    paths = _find_files(Path(folder), given)
    with unpacking_up_to(max_unpacked):
        classes, unlabelled = _read_labels(
            paths["labels"].name, read_table(paths["labels"]), label_column
        )
        frames = {
            view: _samples_in_rows(paths[view].name, read_table(paths[view]), classes)
            for view in VIEWS
        }
    shared = [s for s in classes if all(s in frame.index for frame in frames.values())]
    if not shared:
        counts = ", ".join(
            f"{paths[view].name} {sum(s in frame.index for s in classes)}"
            for view, frame in frames.items()
        )
        raise ValueError(
            f"no sample is in all four files; samples shared with the label file: {counts}"
        )
    views: dict[str, np.ndarray] = {}
    names: dict[str, list[str]] = {}
    notes = []
    for view, frame in frames.items():
        file = paths[view].name
        views[view], names[view], note = _select(file, frame.loc[shared], n_features, missing)
        dropped = len(frame) - len(shared)  # a column of annotation is one of them
        notes.append(f"{view} ({file}): {note}, {dropped} samples not shared dropped")
    return Dataset(
        name="lihc",
        views=views,
        labels=_as_labels([classes[sample] for sample in shared]),
        description=(
            f"{len(shared)} samples shared by the four files, out of {len(classes)} with a label "
            f"in {paths['labels'].name} ({unlabelled} without). {'; '.join(notes)}. Values as in "
            "the files, not shifted or scaled; they may be negative. User's own data: their terms "
            "of use apply."
        ),
        feature_names=names,
        sample_names=shared,
    )


def _find_files(folder: Path, given: dict[str, str | None]) -> dict[str, Path]:
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {str(folder)!r}; give the one with the files")
    seen = sorted(
        path.name
        for path in folder.iterdir()
        if path.is_file() and path.name[0] != "." and split_suffix(path.name)[1] in SUFFIXES
    )
    listing = ", ".join(seen) if seen else f"none with the ending {', '.join(SUFFIXES)}"
    by_role: dict[str, list[str]] = {role: [] for role in ROLES}
    for name in seen:
        stem = split_suffix(name)[0].replace("mirna", "")
        role = next((role for role, parts in ROLES.items() if any(p in stem for p in parts)), None)
        if role is not None and name not in given.values():
            by_role[role].append(name)
    for role, found in by_role.items():
        named = given[role]
        if named is not None:
            if not (folder / named).is_file():
                raise FileNotFoundError(
                    f"there is no file {named!r} in {str(folder)!r}; files seen: {listing}"
                )
            by_role[role] = [named]
        elif not found:
            parts = " or ".join(repr(part) for part in ROLES[role])
            raise FileNotFoundError(
                f"no {role} file in {str(folder)!r}: its name should contain {parts}, or be given as "
                f"{role}='...'; files seen: {listing}"
            )
        elif len(found) > 1:
            raise ValueError(
                f"{len(found)} files could be the {role} file: {', '.join(found)}; choose with "
                f"{role}='{found[0]}'"
            )
    return {role: folder / found[0] for role, found in by_role.items()}


def _read_labels(file: str, frame: Any, label_column: str | None) -> tuple[dict[str, Any], int]:
    """Class of each labelled sample in file order, and how many samples have none."""
    _check_unique(file, frame)
    columns = list(frame.columns)
    known = {name.lower(): name for name in reversed(columns)}
    chosen = label_column
    if chosen is None and len(columns) == 1:
        chosen = columns[0]
    elif chosen is None:
        chosen = next((known[name] for name in LABEL_COLUMNS if name in known), "")
    if chosen not in columns:
        wanted = f"no column {chosen!r}" if label_column else "several columns, none called 'label'"
        raise ValueError(
            f"{file} has {wanted}; its columns are {_some(columns)}: "
            "name the one with the classes as label_column='...'"
        )
    classes = frame.iloc[:, columns.index(chosen)].dropna()
    if not len(classes):
        raise ValueError(f"{file} has no labels: column {chosen!r} is empty")
    return dict(zip(classes.index, classes.tolist(), strict=True)), len(frame) - len(classes)


def _as_labels(values: list[Any]) -> np.ndarray:
    # An empty cell makes pandas read integers as doubles; whole numbers become integers again.
    if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
        array = np.array(values, dtype=float)
        return array.astype(np.int64) if np.all(array == np.round(array)) else array
    return np.array([str(v) for v in values])


def _samples_in_rows(file: str, frame: Any, classes: dict[str, Any]) -> Any:
    in_rows, in_columns = (len(classes.keys() & set(names)) for names in frame.axes)
    if in_rows == in_columns == 0:
        raise ValueError(
            f"{file} shares no sample id with the label file: labels are for {_some(list(classes))}, its "
            f"rows are {_some(frame.index)} and its columns {_some(frame.columns)}; write the ids the "
            "same way in all files"
        )
    if in_rows == in_columns:
        raise ValueError(
            f"{file} has {in_rows} sample ids of the label file in its rows and as many in "
            "its columns; remove them from the side that holds the features"
        )
    frame = frame if in_rows > in_columns else frame.T
    _check_unique(file, frame)
    return frame


def _check_unique(file: str, frame: Any) -> None:
    twice = frame.index[frame.index.duplicated()].unique()
    if len(twice):
        raise ValueError(
            f"{file} has {len(twice)} repeated sample ids, the first {twice[0]!r}; "
            "keep one measurement of each sample"
        )


def _select(
    file: str, frame: Any, n_features: int | None, missing: str
) -> tuple[np.ndarray, list[str], str]:
    """Values of the samples in the most variable features, their names, and a note."""
    values = numbers(file, frame, rows_are="sample", columns_are="feature")
    note = f"{values.shape[1]} features"
    kept = np.arange(values.shape[1])
    empty = np.isnan(values)
    if empty.any():
        if missing == "error":
            i, j = np.argwhere(empty)[0]
            raise ValueError(
                f"{file} has {int(empty.sum())} empty cells in {int(empty.any(axis=0).sum())} of "
                f"{values.shape[1]} features, the first in sample {frame.index[i]!r}, feature "
                f"{frame.columns[j]!r}; fill them in, or pass missing='drop' to leave those features out"
            )
        kept = np.flatnonzero(~empty.any(axis=0))
        note += f" ({values.shape[1] - kept.size} with empty cells dropped)"
        if not kept.size:
            raise ValueError(
                f"every feature of {file} has empty cells; fill them in before loading"
            )
    if n_features is not None and n_features < kept.size:
        variance = values[:, kept].var(axis=0)
        kept = np.sort(kept[np.argsort(-variance, kind="stable")[:n_features]])
        note += f", the {n_features} most variable kept"
    else:
        note += ", all kept" if kept.size == values.shape[1] else ", the others kept"
    return np.ascontiguousarray(values[:, kept]), [frame.columns[j] for j in kept], note


def _some(names: Any) -> str:
    return ", ".join(repr(name) for name in names[:3]) + (", ..." if len(names) > 3 else "")
