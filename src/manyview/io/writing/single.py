"""One table in a place the user names, among files of the user."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path

from .marker import read_marker
from .names import left_behind
from .refusal import Refused
from .table import columns_of
from .whole import write_whole


def check_file(out: Path, columns: Sequence[Sequence[str]], force: bool) -> None:
    """Refuse to write over a file, but with ``force`` over a table of such columns."""
    place = out.resolve()
    if place.is_dir():
        raise IsADirectoryError(
            f"--out {out} is a folder; name a file, such as {out / 'labels.csv'}"
        )
    if os.path.lexists(place) and not force:
        raise Refused(f"{out} exists; name another file, or replace it by --force")
    if os.path.lexists(place) and not _has_columns(place, columns):
        raise Refused(
            f"{out} is no table of {', '.join(columns[0])} and is not replaced; name another file"
        )
    marker = read_marker(place.parent)
    if marker is not None and place.name in marker.every:
        raise Refused(f"{out} belongs to the results in {out.parent}; name another file")
    at = place.parent
    while not at.exists():
        at = at.parent
    if not at.is_dir():
        raise NotADirectoryError(f"--out cannot be made: {at} is a file, not a folder")
    if not os.access(at, os.W_OK | os.X_OK):
        raise PermissionError(f"--out: no file can be written in {at}; choose a folder of your own")


def write_file(out: Path, content: bytes) -> None:
    """Whole or not at all; a link stays, and what killed processes left of the file goes."""
    place = out.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    for left in left_behind(place.parent, place.name):
        left.unlink(missing_ok=True)
    write_whole(place, content)


def _has_columns(path: Path, columns: Sequence[Sequence[str]]) -> bool:
    try:
        found = columns_of(path)
    except (OSError, ValueError, csv.Error):
        return False
    return found in map(list, columns)
