"""A folder we write: claimed by one process at a time, cleared of what killed ones left."""

from __future__ import annotations

import json
import os
import platform
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyview._warn import warn_user

from .locks import is_same_file, take_lock
from .marker import MARKER, Marker, read_marker
from .names import left_behind
from .refusal import FolderInUse, Refused
from .replace import NEW, check_names, is_stage, new_stage, replace_files, settle
from .whole import write_whole

LOCK = ".manyview-lock"
#: First words of the lock file, by which it is known as ours.
WRITER = "manyview writes here"
#: Folders this task holds: a function that claims one of them again shares it.
HELD: ContextVar[dict[Path, Lock] | None] = ContextVar("held", default=None)


@dataclass(frozen=True)
class OurFolder:
    """A claimed folder; ``kind`` says whose results are replaced by new ones."""

    path: Path
    kind: str

    def check(self, names: Iterable[str]) -> None:
        """Refuse, before any work is done, what would be written over files of others."""
        check_names(self.path, read_marker(self.path) or Marker(), names)

    @contextmanager
    def replacing(self, keep: bool = False) -> Iterator[Path]:
        """A folder to fill; left without an error, its files take the place of the earlier ones."""
        stage = new_stage(self.path)
        try:
            yield stage / NEW
            self._still_ours()
            replace_files(self.path, stage, self.kind, keep)
        finally:
            if stage.exists():
                settle(self.path, stage)

    def put(self, contents: Mapping[str, bytes], keep: bool = False) -> list[Path]:
        """Files made beforehand; with ``keep`` earlier ones of other names stay."""
        with self.replacing(keep) as new:
            for name, content in contents.items():
                (new / name).parent.mkdir(parents=True, exist_ok=True)
                (new / name).write_bytes(content)
        return [self.path / name for name in contents]

    def begin(self) -> None:
        """Mark the folder as one for results of this kind, before there are any."""
        marker = read_marker(self.path) or Marker()
        if self.kind not in marker.files:
            check_names(self.path, marker, ())
            write_whole(self.path / MARKER, marker.with_files(self.kind, {}, (), ()).as_bytes())

    def _still_ours(self) -> None:
        lock = (HELD.get() or {}).get(self.path)
        if lock is not None and not lock.is_held():
            raise FolderInUse(
                f"another process has begun to write into {self.path}; nothing of this one is "
                "written there. Name another folder and run it again"
            )


@contextmanager
def claimed(
    out: str | os.PathLike[str],
    kind: str,
    *,
    force: bool = False,
    goes_on: bool = False,
    beside: bool = False,
) -> Iterator[OurFolder]:
    """The folder ``out``, made if need be, for this process alone; one left empty goes again.

    It must be empty, but for what killed processes of ours left, unless ``force`` (results of this kind
    are replaced, files of others stay), ``goes_on`` (it may hold results of this kind) or ``beside``
    (it may hold anything).
    """
    shown, place = Path(out), Path(out).resolve()
    _check_writable(shown, place)
    held = HELD.get() or {}
    if place in held:
        _check_free(shown, place, kind, force or beside, goes_on)
        yield OurFolder(place, kind)
        return
    made = _make(place)
    try:
        lock = Lock.take(place, shown)
        before = HELD.set({**held, place: lock})
        try:
            _clear(place)
            _check_free(shown, place, kind, force or beside, goes_on)
            yield OurFolder(place, kind)
        finally:
            HELD.reset(before)
            lock.release()
    finally:
        for path in made:
            with suppress(OSError):  # something was written
                path.rmdir()


def restored(folder: Path) -> None:
    """Undo what a killed process did not finish there, before the folder is read."""
    if folder.is_dir() and any(map(is_stage, folder.iterdir())):
        with suppress(FolderInUse, PermissionError), claimed(folder, "", beside=True):
            pass


def _clear(place: Path) -> None:
    for path in list(place.iterdir()):
        if is_stage(path):
            settle(place, path)
    for path in (*left_behind(place), *left_behind(place / "runs")):
        path.unlink(missing_ok=True)


def _check_free(shown: Path, place: Path, kind: str, force: bool, goes_on: bool) -> None:
    held = [path for path in place.iterdir() if path.name not in (LOCK, MARKER)]
    marker = read_marker(place)
    if not held and (marker is not None or not os.path.lexists(place / MARKER)):
        return
    if force or (goes_on and marker is not None and kind in marker.files):
        return
    raise Refused(
        f"the folder {shown} is not empty; name another, or replace what manyview wrote there by "
        "--force (force=True), which keeps the files of others"
    )


def _check_writable(shown: Path, place: Path) -> None:
    if place.exists() and not place.is_dir():
        raise Refused(f"{shown} is a file; name a folder, new or empty")
    at = place
    while not at.exists():
        at = at.parent
    if not at.is_dir():
        raise NotADirectoryError(f"{shown} cannot be made: {at} is a file, not a folder")
    if not os.access(at, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{shown}: no folder can be written in {at}; choose a folder of your own"
        )


def _make(place: Path) -> list[Path]:
    """Make the folder and those around it; those that were not there, inner ones first."""
    absent = []
    at = place
    while not at.exists():
        absent.append(at)
        at = at.parent
    place.mkdir(parents=True, exist_ok=True)
    return absent


# --- one process at a time ---------------------------------------------------------------------


class Lock:
    """A locked file in the folder, that says who writes there.

    The system frees it when its process ends. Where the file system knows no locks, the last one to
    claim the folder has it, and an earlier one finds its words gone when it wants to write.
    """

    def __init__(self, file: Any, path: Path):
        self.file, self.path = file, path
        about = {"process": os.getpid(), "machine": platform.node(), "token": secrets.token_hex(8)}
        self.words = f"{WRITER} {json.dumps(about)}\n".encode()
        file.seek(0)
        file.truncate()
        file.write(self.words)
        file.flush()

    @classmethod
    def take(cls, place: Path, shown: Path) -> Lock:
        path = place / LOCK
        while True:
            try:
                file = _open_own(path)
            except FileNotFoundError:  # a process that wrote nothing has removed its folder
                place.mkdir(parents=True, exist_ok=True)
                continue
            state = take_lock(file)
            if state is False:
                who = _who(file)
                file.close()
                raise FolderInUse(
                    f"another manyview{who} writes into the folder {shown}; wait for it, or name "
                    "another folder"
                )
            if is_same_file(file, path):
                break
            file.close()  # its owner has removed it just now: the next one is another file
        if state is None:
            warn_user(
                f"the file system of {shown} knows no locks; let no other process write there"
            )
        return cls(file, path)

    def is_held(self) -> bool:
        try:
            return is_same_file(self.file, self.path) and self.path.read_bytes() == self.words
        except OSError:
            return False

    def release(self) -> None:
        ours = self.is_held()
        if ours and os.name == "posix":  # while it is locked, so that nobody has taken it yet
            self.path.unlink(missing_ok=True)
        self.file.close()
        if ours and os.name != "posix":  # open files cannot be removed; another may have it by now
            with suppress(OSError):
                self.path.unlink(missing_ok=True)


def _open_own(path: Path) -> Any:
    """The lock file, open to read and write, made if need be; never a file of somebody else."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    refusal = f"{path} was not written by manyview; move it away, or name another folder"
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise Refused(refusal)
    file = os.fdopen(os.open(path, flags, 0o644), "rb+", buffering=0)
    words = file.read(len(WRITER))
    if words and words != WRITER.encode():
        file.close()
        raise Refused(refusal)
    return file


def _who(file: Any) -> str:
    try:
        file.seek(0)
        about = json.loads(file.read().removeprefix(WRITER.encode()))
        return f" (process {int(about['process'])} on {str(about['machine'])!r})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
