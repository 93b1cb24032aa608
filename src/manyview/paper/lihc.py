"""Read the user's files of the TCGA liver cohort (LIHC) as one data set.

The processed matrices of the paper's source are not available to us; `docs/reproduction.md` says how to
build similar ones from public files.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from manyview.app.files import KINDS, read_views
from manyview.app.files.clinical import clinical_ids, read_clinical
from manyview.app.files.text import split_suffix
from manyview.datasets import Dataset

#: Parts of file names by role, looked up in this order: "gene" also occurs in gene_level_copy_number.
ROLES = {
    "labels": ("label", "clinical"),
    "methylation": ("meth",),
    "copy_number": ("cnv", "copy", "cna"),
    "expression": ("expression", "rna", "gene"),
}
VIEWS = ("expression", "copy_number", "methylation")
LABEL_COLUMNS = ("label", "labels", "class", "sample_type", "type", "status")


def load_lihc(folder: Path, n_features: int = 100) -> Dataset:
    """Expression, copy number and methylation of the samples that all files have, labels included.

    The folder has four tables of any kind that `manyview fit` reads, recognized by a part of their name
    (`ROLES`; "mirna" does not count). Of each view the features with the largest variance are used, among
    those without an empty cell.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {str(folder)!r}; name the one with the files")
    by_role: dict[str, list[Path]] = {role: [] for role in ROLES}
    for path in sorted(folder.iterdir()):
        stem, kind = split_suffix(path.name)
        stem = stem.replace("mirna", "")
        role = next((role for role, parts in ROLES.items() if any(p in stem for p in parts)), None)
        if role is not None and kind in KINDS and not stem.startswith("."):
            by_role[role].append(path)
    for role, paths in by_role.items():
        if len(paths) != 1:
            found = ", ".join(path.name for path in paths) or "none"
            raise ValueError(
                f"{folder} must have one table of {role}, with {' or '.join(ROLES[role])} in its name; "
                f"found: {found}"
            )
    labels = by_role["labels"][0]
    files = [f"{view}={by_role[view][0]}" for view in VIEWS]
    # The paper's classes are tumors and normal tissue.
    data = read_views(
        files,
        known=clinical_ids(labels),
        match="tcga",
        keep_normals=True,
        tumors="all",
        missing="allow",
    )
    samples = [] if data.sample_names is None else data.sample_names.tolist()
    columns = read_clinical(labels, samples, len(data.first_rows), data.rule).columns
    named = [name for name in columns if len(columns) == 1 or name.lower() in LABEL_COLUMNS]
    if not named:
        raise ValueError(f"{labels.name} has no column of labels; call it 'label'")
    classes = columns[named[0]]
    rows = np.array([label is not None for label in classes], dtype=bool)
    for X in data.views.values():
        rows &= ~np.isnan(X).all(axis=1)
    found = np.array([str(label) for label in classes])[rows]
    if len(set(found)) < 2:
        raise ValueError(
            f"{len(found)} samples have a label and are in all three files, with {len(set(found))} class: "
            "tumors and normal tissue are needed. Copy number by gene often has the tumors only"
        )
    # Only samples that all files have are used.
    notes = [note for note in data.notes if not note.endswith(("as missing", "as not observed"))]
    views, names = {}, {}
    for view, whole in data.views.items():
        X = whole[rows]
        complete = np.flatnonzero(~np.isnan(X).any(axis=0))
        if len(complete) < X.shape[1]:
            notes.append(f"{X.shape[1] - len(complete)} features of {view} have empty cells")
        if not len(complete):
            raise ValueError(f"no feature of {view} has a value for all {len(X)} samples")
        widest = complete[np.argsort(-X[:, complete].var(axis=0), kind="stable")[:n_features]]
        views[view] = np.ascontiguousarray(X[:, np.sort(widest)])
        features = data.features[view] or [f"{view}_{j}" for j in range(X.shape[1])]
        names[view] = [features[j] for j in np.sort(widest)]
    return Dataset(
        name="lihc",
        views=views,
        labels=found,
        description=f"{len(found)} samples with a label that all files have; of each view the "
        f"{n_features} most variable features. {'; '.join(notes)}. Values as in the files.",
        feature_names=names,
        sample_names=[samples[i] for i in np.flatnonzero(rows)],
    )
