"""Large files, and kinds that are read by rows anyway: they stay on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyview._types import Array
from manyview.engines.files.disk import DiskMatrix
from manyview.engines.files.formats import INSIDE, STREAMABLE
from manyview.io import checksum
from manyview.views.views import LOAD_LIMIT

from .part import Part
from .tables import text_of

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
