"""Write files and folders completely or not at all, and never over files of others.

A file is written next to its place and renamed. A folder of results is locked by one process at a time. A
hidden manifest lists its files with their checksums: a listed file that has not changed is ours and may be
replaced. New files take the place of old ones together: they wait in a hidden folder, and a journal says
what this process, or after a kill the next one, has still to move.
"""

from __future__ import annotations

import json
import os
import platform
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from manyview._warn import warn_user

from . import checksum


class Refused(FileExistsError, ValueError):
    """Something is there that is not ours to replace."""


class FolderInUse(Refused):
    """Another process writes there."""


# --- locks of the operating system: they end with their process, however it ends ------------------


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
    import msvcrt

#: The byte locked on Windows, where locked bytes cannot be read: far behind what we write.
FAR = 2**30


def take_lock(file: Any) -> bool | None:
    """Whether this process has the open file now; None where the file system does not support locks."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            file.seek(FAR)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            file.seek(0)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return None
    return True


# --- one file, whole or not at all ----------------------------------------------------------------


#: Characters of a file's own name in that of its temporary neighbor: names have a longest length.
KEPT = 50
_TEMPORARY = re.compile(r"\.(.*)\.manyview-[0-9a-f]{16}\.tmp", re.DOTALL)


def random_name(stem: str) -> str:
    """A new hidden name next to a file called ``stem``."""
    return f".{stem[:KEPT]}.manyview-{secrets.token_hex(8)}.tmp"


def left_behind(folder: Path, name: str | None = None) -> list[Path]:
    """Temporary files, of the file ``name`` or of any, that a killed process left in the folder."""
    found = []
    for path in folder.glob(".*.tmp"):
        stem = _TEMPORARY.fullmatch(path.name)
        if stem and (name is None or name[:KEPT] == stem[1]) and path.is_file():
            with suppress(OSError), path.open("rb+") as file:
                if take_lock(file) is not False:  # its writer would hold the lock
                    found.append(path)
    return found


def write_whole(path: Path, content: bytes | Callable[[BinaryIO], Any]) -> None:
    """Write next to it and rename: a reader, or a crash, sees the old file or the new one."""
    beside = path.with_name(random_name(path.name))
    try:
        with beside.open("xb") as file:
            take_lock(file)  # see `left_behind`
            if callable(content):
                content(file)
            else:
                file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        sync_folder(path.absolute().parent)
    finally:
        beside.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """The new name, too, should survive a power cut; some file systems cannot promise that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def scratch() -> Iterator[Path]:
    """A private folder in the temporary folder until the block is left."""
    with TemporaryDirectory(prefix="manyview-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


# --- the manifest of a folder: kind of result → name → [size, checksum] -----------------------------


MARKER = ".manyview.json"
FORMAT = "manyview folder 1"


def listed(path: Path) -> list[Any]:
    """How a file is now."""
    return [path.stat().st_size, checksum.of_file(path)]


def manifest(folder: Path) -> dict[str, dict[str, list[Any]]] | None:
    """The list in the folder; None if there is none, or what is there is not ours."""
    try:
        told = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        if told["format"] != FORMAT:
            return None
        return {k: {_inside(n): held[n] for n in held} for k, held in told["files"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def ours(
    folder: Path, names: Iterable[str] | None = None, kind: str | None = None
) -> dict[str, list[Any]]:
    """The files that are in the folder as we wrote them: those of ``names``, or of a kind."""
    known = manifest(folder) or {}
    held = {n: how for k, files in known.items() if kind in (None, k) for n, how in files.items()}
    chosen = held.keys() if names is None else held.keys() & names
    return {name: held[name] for name in chosen if _is_unchanged(folder / name, held[name])}


def is_whole(folder: Path, kind: str) -> bool:
    """Whether the folder has files of this kind, all as we wrote them."""
    files = (manifest(folder) or {}).get(kind)
    return bool(files) and ours(folder, kind=kind) == files


def files_of(folder: Path, kind: str) -> list[str]:
    """Names of our files of a kind in the folder, without those of others."""
    return sorted((manifest(folder) or {}).get(kind, ()))


def _is_unchanged(path: Path, how: list[Any]) -> bool:
    try:
        plain = path.is_file() and not path.is_symlink()
        return plain and path.stat().st_size == how[0] and listed(path) == how
    except OSError:
        return False


def _inside(name: str) -> str:
    """The name of a file in a folder of ours; one that leads elsewhere is refused."""
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\\" in name:
        raise Refused(f"{name!r} is not a file of a folder that manyview wrote")
    return name


# --- new files for old ones: all of them, or none -------------------------------------------------


STAGE = "manyview"
JOURNAL, NEW = "journal.json", "new"


def is_stage(path: Path) -> bool:
    found = _TEMPORARY.fullmatch(path.name)
    return found is not None and found[1] == STAGE and path.is_dir()


def check_names(folder: Path, names: Iterable[str]) -> None:
    """Refuse to write over what is not ours."""
    there = [name for name in dict.fromkeys([*names, MARKER]) if os.path.lexists(folder / name)]
    mine = ours(folder, there)
    foreign = [n for n in there if n not in mine and (n != MARKER or manifest(folder) is None)]
    if foreign:
        shown = ", ".join(foreign[:5]) + (", …" if len(foreign) > 5 else "")
        raise Refused(
            f"{shown} in {folder} was not written by manyview, or was changed since, and is not "
            "replaced; move it away, or name another folder"
        )


def replace_files(folder: Path, stage: Path, kind: str, keep: bool) -> None:
    """What is in ``stage/new`` takes the place of the files of this kind; with ``keep`` of those of the
    same names only.

    A journal is written once the new files are safe on the disk: from there on they replace the old ones,
    by this process or by the next one that claims the folder.
    """
    known, waiting = manifest(folder) or {}, stage / NEW
    new = {name: listed(waiting / name) for name in files_in(waiting)}
    check_names(folder, new)
    for place in {folder / parent for name in new for parent in PurePosixPath(name).parents}:
        if place.exists() and not place.is_dir():
            raise Refused(f"{place} is a file where a folder is to be made")
    gone = {*new, *(() if keep else known.get(kind, ()))}
    old = ours(folder, gone)
    files = {k: {n: how for n, how in held.items() if n not in gone} for k, held in known.items()}
    files[kind] = files.get(kind, {}) | new
    (waiting / MARKER).write_bytes(_text_of(files))
    if os.path.lexists(folder / MARKER):
        old[MARKER] = listed(folder / MARKER)
    for name in (*new, MARKER):
        with (waiting / name).open("rb+") as file:
            os.fsync(file.fileno())
    sync_folder(waiting)
    write_whole(stage / JOURNAL, json.dumps({"old": old, "new": sorted(new)}).encode())
    settle(folder, stage)


def _text_of(files: Mapping[str, Mapping[str, list[Any]]]) -> bytes:
    return json.dumps({"format": FORMAT, "files": files}, indent=1, sort_keys=True).encode()


def settle(folder: Path, stage: Path) -> None:
    """Finish what has a journal; what has none did not begin to replace anything, and is removed."""
    waiting = stage / NEW
    if (stage / JOURNAL).exists():
        told = json.loads((stage / JOURNAL).read_text(encoding="utf-8"))
        old, new = told["old"], [*told["new"], MARKER]
        for name in (*old, *new):
            _inside(name)
        # The list of files goes first and comes last: without it nothing is taken for a result.
        for name in sorted(old, key=lambda name: name != MARKER):
            moved = name in new and not (waiting / name).exists()
            if not moved and _is_unchanged(folder / name, old[name]):
                (folder / name).unlink()
        for name in new:
            if not (waiting / name).exists():
                continue
            if os.path.lexists(folder / name):
                raise Refused(
                    f"writing into {folder} was interrupted, and {name} was put there by another program; "
                    f"move it away and run the command again: the new one is {waiting / name}"
                )
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(waiting / name, folder / name)
        emptied = {str(place) for name in old for place in PurePosixPath(name).parents} - {"."}
        for name in sorted(emptied, key=len, reverse=True):
            with suppress(OSError):  # something is in it, or it is gone
                (folder / name).rmdir()
        sync_folder(folder)
        (stage / JOURNAL).unlink()
    shutil.rmtree(stage, ignore_errors=True)


def files_in(folder: Path) -> list[str]:
    """Names of the files in a folder of ours and below."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


# --- claiming a folder ----------------------------------------------------------------------------


LOCK = ".manyview-lock"
#: Folders this task holds: a function that claims one of them again shares it.
HELD: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())


@dataclass(frozen=True)
class OurFolder:
    """A claimed folder; ``kind`` says whose results are replaced by new ones."""

    path: Path
    kind: str

    def check(self, names: Iterable[str]) -> None:
        """Refuse, before any work is done, what would be written over files of others."""
        check_names(self.path, names)

    @contextmanager
    def replacing(self, keep: bool = False) -> Iterator[Path]:
        """A folder to fill; left without an error, its files take the place of the earlier ones."""
        stage = self.path / random_name(STAGE)
        (stage / NEW).mkdir(parents=True)
        try:
            yield stage / NEW
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
        known = manifest(self.path) or {}
        if self.kind not in known:
            check_names(self.path, ())
            write_whole(self.path / MARKER, _text_of({**known, self.kind: {}}))


@contextmanager
def claimed(
    out: str | os.PathLike[str],
    kind: str,
    *,
    force: bool = False,
    goes_on: bool = False,
    mixed: bool = False,
) -> Iterator[OurFolder]:
    """The folder ``out``, made if need be, for this process alone; one left empty goes again.

    It must be empty, but for what killed processes of ours left, unless ``force`` (results of this kind
    are replaced, files of others stay), ``goes_on`` (it may hold results of this kind) or ``mixed``
    (it may hold anything).
    """
    shown, place = Path(out), Path(out).resolve()
    if place.exists() and not place.is_dir():
        raise Refused(f"{shown} is a file; name a folder, new or empty")
    _check_writable(place, str(shown), "folder")
    if place in HELD.get():
        _check_free(shown, place, kind, force or mixed, goes_on)
        yield OurFolder(place, kind)
        return
    made = [path for path in (place, *place.parents) if not path.exists()]
    place.mkdir(parents=True, exist_ok=True)
    try:
        with _locked(place, shown):
            before = HELD.set(HELD.get() | {place})
            try:
                for path in filter(is_stage, list(place.iterdir())):
                    settle(place, path)
                for path in (*left_behind(place), *left_behind(place / "runs")):
                    path.unlink(missing_ok=True)
                _check_free(shown, place, kind, force or mixed, goes_on)
                yield OurFolder(place, kind)
            finally:
                HELD.reset(before)
    finally:
        for path in made:
            with suppress(OSError):  # something was written
                path.rmdir()


@contextmanager
def _locked(place: Path, shown: Path) -> Iterator[None]:
    """Hold a locked file that says who writes there; the system frees it if we are killed."""
    path = place / LOCK
    while True:
        try:
            file = path.open("ab+", buffering=0)
        except FileNotFoundError:  # a process that wrote nothing has removed its folder
            place.mkdir(parents=True, exist_ok=True)
            continue
        state = take_lock(file)
        if state is False:
            file.seek(0)
            who = file.read().decode("utf-8", "replace")
            file.close()
            raise FolderInUse(
                f"another manyview ({who}) writes into the folder {shown}; wait for it, or name "
                "another folder"
            )
        with suppress(OSError):
            if os.path.samestat(os.fstat(file.fileno()), os.lstat(path)):
                break
        file.close()  # its owner has removed it just now: the next one is another file
    if state is None:
        warn_user(
            f"the file system of {shown} does not support locks; let no other process write there"
        )
    try:
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()}".encode())
        yield
    finally:
        if os.name != "posix":  # open files cannot be removed there
            file.close()
        with suppress(OSError):
            path.unlink()  # while it is locked, so that no other process has taken it
        file.close()


def restored(folder: Path) -> None:
    """Finish what a killed process did not finish there, before the folder is read."""
    if folder.is_dir() and any(map(is_stage, folder.iterdir())):
        with suppress(FolderInUse, PermissionError), claimed(folder, "", mixed=True):
            pass


def _check_free(shown: Path, place: Path, kind: str, force: bool, goes_on: bool) -> None:
    known = manifest(place)
    there = {path.name for path in place.iterdir()} - {
        LOCK,
        *([MARKER] if known is not None else []),
    }
    if there and not force and not (goes_on and known is not None and kind in known):
        raise Refused(
            f"the folder {shown} is not empty; name another, or add --force (force=True), which "
            "replaces only what manyview wrote there"
        )


def _check_writable(place: Path, name: str, what: str) -> None:
    """Refuse a place below which nothing can be made, before any work is done."""
    at = next(path for path in (place, *place.parents) if path.exists())
    if not at.is_dir():
        raise NotADirectoryError(f"{name} cannot be made: {at} is a file, not a folder")
    if not os.access(at, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{name}: no {what} can be written in {at}; choose a folder of your own"
        )


# --- one table in a place the user names ----------------------------------------------------------


def check_file(out: Path, force: bool) -> None:
    """Refuse to write over a file without ``force``, and over one of the results in a folder of ours."""
    place = out.resolve()
    if place.is_dir():
        raise IsADirectoryError(
            f"--out {out} is a folder; name a file, such as {out / 'labels.csv'}"
        )
    if os.path.lexists(place) and not force:
        raise Refused(f"{out} exists; name another file, or replace it with --force")
    if any(place.name in files for files in (manifest(place.parent) or {}).values()):
        raise Refused(f"{out} belongs to the results in {out.parent}; name another file")
    _check_writable(place.parent, "--out", "file")


def write_file(out: Path, content: bytes) -> None:
    """Whole or not at all; a link stays, and what killed processes left of the file goes."""
    place = out.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    for left in left_behind(place.parent, place.name):
        left.unlink(missing_ok=True)
    write_whole(place, content)
