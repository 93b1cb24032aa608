"""The fit that all seeds of MLRSSC share, on disk until the last of them is stored.

ADMM may take an hour where the k-means of a seed takes a second: a run that is interrupted between
the two must not pay for it twice.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from manyview._warn import warn_user
from manyview.app.compare.runs import key_of, versions
from manyview.io.writing import left_behind, write_whole

from .provenance import code

#: Where the fits lie; set in every process that runs cells. Without a folder none is written.
FOLDER: Path | None = None


def file_of(
    folder: Path, dataset: str, method: str, data: str = "", tuning: str = "default"
) -> Path:
    return folder / f"{key_of('admm', dataset, method, data, tuning, versions())}.npz"


def read(dataset: str, method: str, data: str, tuning: str) -> dict[str, Any] | None:
    """What `write` was given; None if it is not there, damaged, or of other code than this."""
    if FOLDER is None:
        return None
    try:
        with np.load(file_of(FOLDER, dataset, method, data, tuning), allow_pickle=False) as file:
            found = {name: file[name] if file[name].ndim else file[name].item() for name in file}
    except (OSError, ValueError, zipfile.BadZipFile):
        return None
    return found if found.pop("code", None) == code() else None


def write(dataset: str, method: str, data: str, tuning: str, **values: Any) -> None:
    if FOLDER is not None:
        try:
            write_whole(
                file_of(FOLDER, dataset, method, data, tuning),
                lambda file: np.savez(file, code=code(), **values),
            )
        except OSError as error:  # costs what an interruption would lose, not the result
            warn_user(
                f"the fit of {method} on {dataset} could not be kept in {FOLDER} ({error}): if this "
                "run is interrupted before its last seed, ADMM starts again; free some space"
            )


def remove(folder: Path, settings: Mapping[str, Any]) -> None:
    """The file of a cell's fit, and what a killed process left of it."""
    names = ("dataset", "method", "data", "tuning")
    path = file_of(folder, **{name: settings[name] for name in names if name in settings})
    for file in (path, *left_behind(folder, path.name)):
        file.unlink(missing_ok=True)
