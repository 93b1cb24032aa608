"""New files for old ones in a folder: all of them, or none.

New files are made in a hidden folder, the stage. Then the old ones are moved into it, the new ones out of
it, and the journal that says so is struck. A process killed in between leaves the journal, and the next
one that opens the folder puts everything back: what was not finished has never happened. At no moment
are old and new files in place together.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from .marker import MARKER, Listed, Marker, checked_name, is_unchanged, read_marker, through_link
from .names import random_name, stem_of
from .refusal import Refused
from .whole import sync_file, sync_folder, write_whole

STAGE = "manyview"
JOURNAL, NEW, OLD = "journal.json", "new", "old"


def new_stage(folder: Path) -> Path:
    """A private folder for what is to be written; its own folder ``new`` is the place for it."""
    stage = folder / random_name(STAGE)
    stage.mkdir(mode=0o700)
    (stage / NEW).mkdir()
    return stage


def is_stage(path: Path) -> bool:
    return stem_of(path.name) == STAGE and not path.is_symlink() and path.is_dir()


def check_names(folder: Path, marker: Marker, names: Iterable[str]) -> None:
    """Refuse to write over what is not ours."""
    names = [*names, MARKER]
    for name in names:
        if through_link(folder, name):
            raise Refused(
                f"{folder / PurePosixPath(name).parent} is a link to another folder; name another "
                "place, or remove the link"
            )
    there = [name for name in names if os.path.lexists(folder / name)]
    ours = marker.ours(folder, there)
    # An empty list cannot be told from no list, so the list itself is known by its format.
    foreign = [n for n in there if n not in ours and (n != MARKER or read_marker(folder) is None)]
    if foreign:
        listed = ", ".join(foreign[:5]) + (", …" if len(foreign) > 5 else "")
        raise Refused(
            f"{listed} in {folder} was not written by manyview, or was changed since, and is not "
            "replaced; move it away, or name another folder"
        )


def replace_files(folder: Path, stage: Path, kind: str, keep: bool) -> list[str]:
    """What is in ``stage/new`` takes the place of the files of this kind; with ``keep`` of those of the
    same names only. The names of the new ones."""
    marker = read_marker(folder) or Marker()
    new = {name: Listed.of(stage / NEW / name) for name in files_in(stage / NEW)}
    check_names(folder, marker, new)
    earlier = {} if keep else marker.files.get(kind, {})
    old = marker.ours(folder, {*earlier, *new})
    made = _folders_to_make(folder, new)
    after = marker.with_files(kind, new, earlier, made)
    (stage / NEW / MARKER).write_bytes(after.as_bytes())
    new[MARKER] = Listed.of(stage / NEW / MARKER)
    if os.path.lexists(folder / MARKER):
        old[MARKER] = Listed.of(folder / MARKER)
    for name in new:
        sync_file(stage / NEW / name)
    _write_journal(stage, old, new, made)
    try:
        _swap(folder, stage, old, new, made)
    except BaseException:
        settle(folder, stage)
        raise
    (stage / JOURNAL).unlink()  # from here on it has happened
    sync_folder(folder)
    _remove_empty(folder, marker.folders - set(_parents(new)))
    _remove(stage)
    return sorted(name for name in new if name != MARKER)


def settle(folder: Path, stage: Path) -> None:
    """Undo what was not finished, and remove the stage."""
    told = _read_journal(stage)
    if told is not None:
        new, made = told
        for name in new:
            here, back = folder / name, stage / NEW / name
            if not back.exists() and is_unchanged(folder, name, new[name]):
                os.replace(here, back)
        for name in files_in(stage / OLD):
            if os.path.lexists(folder / name):
                raise Refused(
                    f"writing into {folder} was interrupted, and {name} was put there since; what it "
                    f"was before is {stage / OLD / name}: keep one of them and remove {stage}"
                )
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(stage / OLD / name, folder / name)
        _remove_empty(folder, made)
        sync_folder(folder)
    _remove(stage)


def files_in(folder: Path) -> list[str]:
    """Names of the files in a folder of ours and below, the list of files last."""
    found = (path for path in folder.rglob("*") if stat.S_ISREG(path.lstat().st_mode))
    names = [path.relative_to(folder).as_posix() for path in found]
    return sorted(names, key=lambda name: (name == MARKER, name))


def _swap(
    folder: Path, stage: Path, old: Iterable[str], new: Iterable[str], made: Iterable[str]
) -> None:
    # The list of files goes first and comes last: without it nothing is taken for a result.
    for name in sorted(old, key=lambda name: name != MARKER):
        (stage / OLD / name).parent.mkdir(parents=True, exist_ok=True)
        os.replace(folder / name, stage / OLD / name)
    for name in made:
        (folder / name).mkdir(exist_ok=True)
    for name in sorted(new, key=lambda name: name == MARKER):
        if os.path.lexists(folder / name):
            raise Refused(f"{folder / name} was put there by another program just now")
        os.replace(stage / NEW / name, folder / name)


def _write_journal(
    stage: Path, old: Iterable[str], new: Mapping[str, Listed], made: list[str]
) -> None:
    told = {"old": sorted(old), "new": {n: list(listed) for n, listed in new.items()}, "made": made}
    sync_folder(stage / NEW)
    write_whole(stage / JOURNAL, json.dumps(told).encode())


def _read_journal(stage: Path) -> tuple[dict[str, Listed], list[str]] | None:
    """What was to be written where; None if nothing had been moved yet, or all is done."""
    try:
        told = json.loads((stage / JOURNAL).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    try:
        new = {checked_name(name): Listed(*listed) for name, listed in told["new"].items()}
        return new, [checked_name(name, is_file=False) for name in told["made"]]
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise Refused(f"{stage} was not made by manyview ({error}); move it away") from None


def _parents(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from (str(parent) for parent in PurePosixPath(name).parents if str(parent) != ".")


def _folders_to_make(folder: Path, names: Iterable[str]) -> list[str]:
    """Outer ones first."""
    wanted = sorted(set(_parents(names)), key=lambda name: (name.count("/"), name))
    for name in wanted:
        if (folder / name).exists() and not (folder / name).is_dir():
            raise Refused(f"{folder / name} is a file where a folder is to be made")
    return [name for name in wanted if not (folder / name).exists()]


def _remove_empty(folder: Path, names: Iterable[str]) -> None:
    for name in sorted(names, key=lambda name: -name.count("/")):
        with suppress(OSError):  # something is in it, or it is gone
            if not (folder / name).is_symlink():
                (folder / name).rmdir()


def _remove(stage: Path) -> None:
    shutil.rmtree(stage, ignore_errors=True)
