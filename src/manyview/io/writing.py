"""What we write to disk: whole or not at all, known as ours, by one process at a time.

A file is written beside its place and renamed. A folder of results is claimed by a lock, lists its files
in a hidden manifest (a file is ours if it has the size and checksum listed there), and gets new files for
old ones all at once, see `replace_files`.
"""

from __future__ import annotations

import csv
import json
import os
import platform
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

from manyview._warn import warn_user

from . import checksum
from .safe_csv import columns_of, csv_bytes, csv_of_dicts, exact_text, read_csv, safe_text

__all__ = [
    "FolderInUse",
    "OurFolder",
    "Refused",
    "check_file",
    "claimed",
    "csv_bytes",
    "csv_of_dicts",
    "exact_text",
    "files_of",
    "is_whole",
    "left_behind",
    "read_csv",
    "restored",
    "safe_text",
    "write_file",
    "write_whole",
]


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
    """Whether this process has the open file now; None where the file system knows no locks.

    Processes of containers on one machine see each other's locks, whatever their numbers and names are.
    """
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


def is_same_file(file: Any, path: os.PathLike[str]) -> bool:
    """Whether the open file is still the one at ``path``: another may have removed or replaced it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
    except OSError:
        return False


# --- temporary names: random, and known again as ours by a checksum in them -----------------------


#: Characters of a file's own name kept in that of its temporary neighbour: names have a longest length.
KEPT = 50
RANDOM, CHECK = 16, 8


def random_name(stem: str) -> str:
    """A new hidden name beside a file called ``stem``."""
    return f".{stem[:KEPT]}.{token(stem[:KEPT])}.tmp"


def stem_of(name: str) -> str | None:
    """What `random_name` was given, cut to its length; None if the name is not from there."""
    found = re.fullmatch(rf"\.(.*)\.([0-9a-f]{{{RANDOM + CHECK}}})\.tmp", name, re.DOTALL)
    return found[1] if found and is_token(found[1], found[2]) else None


def token(stem: str) -> str:
    digits = secrets.token_hex(RANDOM // 2)
    return digits + _check(stem, digits)


def is_token(stem: str, text: str) -> bool:
    return len(text) == RANDOM + CHECK and text[RANDOM:] == _check(stem, text[:RANDOM])


def _check(stem: str, digits: str) -> str:
    whole = f"manyview\n{stem}\n{digits}".encode("utf-8", "surrogateescape")
    return checksum.of_bytes(whole)[:CHECK]


def left_behind(folder: Path, name: str | None = None) -> list[Path]:
    """Temporary files, of the file ``name`` or of any, that a killed process left in the folder."""
    if not folder.is_dir():
        return []
    wanted = None if name is None else name[:KEPT]
    found = []
    for path in folder.iterdir():
        stem = stem_of(path.name)
        if stem is not None and wanted in (None, stem) and _is_orphan(path):
            found.append(path)
    return found


def _is_orphan(path: Path) -> bool:
    """Whether it is a file that nobody is writing: the writer holds a lock on it."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with path.open("rb+") as file:
            return take_lock(file) is not False
    except OSError:
        return False


# --- one file, whole or not at all ----------------------------------------------------------------


def write_whole(path: Path, content: bytes | Callable[[BinaryIO], Any]) -> None:
    """Write beside and rename: a reader, or a crash, sees the old file or the new one."""
    beside = path.with_name(random_name(path.name))
    try:
        with beside.open("xb") as file:
            take_lock(file)  # what is locked is nobody's leftover
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
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


# --- private folders in the temporary folder; those of killed processes are removed ---------------


PREFIX = "manyview-"
#: The file in such a folder that its process keeps locked.
MARK = "mark"


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder of our own until the block is left."""
    folder, mark = own_folder(Path(tempfile.gettempdir()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        mark.close()
        shutil.rmtree(folder, ignore_errors=True)  # where open files cannot be removed


def own_folder(where: Path) -> tuple[Path, Any]:
    """A new folder of a random name, and the file in it that is locked while we live.

    Before, those of processes that were killed are removed, if it can be known that they were.
    """
    for left in where.glob(f"{PREFIX}*"):
        if _is_orphan_folder(left):
            shutil.rmtree(left, ignore_errors=True)
    folder = where / f"{PREFIX}{token(PREFIX)}"
    folder.mkdir(mode=0o700)
    # Under another name until it is locked: whoever finds it must not take it for an orphan's.
    mark: Any = open(folder / f"{MARK}.new", "xb")  # noqa: SIM115
    take_lock(mark)
    mark.write(json.dumps(_machine()).encode())
    mark.flush()
    if os.name == "posix":
        os.replace(folder / f"{MARK}.new", folder / MARK)
    else:  # open files cannot be renamed there
        mark.close()
        os.replace(folder / f"{MARK}.new", folder / MARK)
        mark = open(folder / MARK, "rb+")  # noqa: SIM115
        take_lock(mark)
    return folder, mark


def _is_orphan_folder(folder: Path) -> bool:
    """Whether it is a folder of ours that nobody uses: nobody holds its lock, and we would see that."""
    if not is_token(PREFIX, folder.name.removeprefix(PREFIX)) or folder.is_symlink():
        return False
    try:
        if os.name == "posix" and folder.stat().st_uid != os.getuid():
            return False
        with open(folder / MARK, "rb+") as mark:
            return _sees_locks_of(json.loads(mark.read())) and take_lock(mark) is True
    except (OSError, ValueError, AttributeError):
        return False


def _machine() -> dict[str, str]:
    """Where we run: containers of one machine have one kernel, and so one boot."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = ""
    return {"machine": platform.node(), "boot": boot}


def _sees_locks_of(other: Any) -> bool:
    """Whether locks of a process there are seen here; on shared disks not all machines tell."""
    mine = _machine()
    same_kernel = mine["boot"] != "" and other.get("boot") == mine["boot"]
    return same_kernel or other.get("machine") == mine["machine"]


# --- the manifest of a folder ---------------------------------------------------------------------


MARKER = ".manyview.json"
FORMAT = "manyview folder 1"
#: Endings of the files we write; a list that names others is not ours.
ENDINGS = {".csv", ".html", ".json", ".npz", ".pdf", ".png", ".svg", ".tex", ".txt"}


class Listed(NamedTuple):
    """How a file was when we wrote it."""

    size: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Listed:
        return cls(path.stat().st_size, checksum.of_file(path))


@dataclass
class Marker:
    """Files by the kind of result they belong to."""

    files: dict[str, dict[str, Listed]] = field(default_factory=dict)

    @property
    def every(self) -> dict[str, Listed]:
        return {name: listed for files in self.files.values() for name, listed in files.items()}

    def ours(self, folder: Path, names: Iterable[str]) -> dict[str, Listed]:
        """Those of ``names`` that are in the folder as we wrote them."""
        known = {name: self.every[name] for name in {*names} & {*self.every}}
        return {
            name: listed for name, listed in known.items() if is_unchanged(folder, name, listed)
        }

    def bytes_with(self, kind: str, files: Mapping[str, Listed], gone: Iterable[str] = ()) -> bytes:
        """The list after a writing: ``files`` belong to ``kind`` and to nobody else; ``gone`` to nobody."""
        dropped = {*gone, *files}
        kept = {
            k: {n: listed for n, listed in sorted(held.items()) if n not in dropped}
            for k, held in sorted(self.files.items())
        }
        kept[kind] = dict(sorted((kept.get(kind, {}) | dict(files)).items()))
        return (json.dumps({"format": FORMAT, "files": kept}, indent=1) + "\n").encode()


def read_marker(folder: Path) -> Marker | None:
    """The list in the folder; None if there is none, or what is there is not ours."""
    path = folder / MARKER
    if path.is_symlink():
        return None
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["format"] != FORMAT:
            return None
        files = {
            str(kind): {
                checked_name(n): Listed(int(size), str(sum_)) for n, (size, sum_) in held.items()
            }
            for kind, held in told["files"].items()
        }
        return Marker(files)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None


def is_whole(folder: Path, kind: str) -> bool:
    """Whether the folder has files of this kind, all as we wrote them."""
    marker = read_marker(folder)
    listed = {} if marker is None else marker.files.get(kind, {})
    return marker is not None and bool(listed) and marker.ours(folder, listed) == listed


def files_of(folder: Path, kind: str) -> list[str]:
    """Names of our files of a kind in the folder, without those of others."""
    marker = read_marker(folder)
    return [] if marker is None else sorted(marker.files.get(kind, {}))


def checked_name(name: str) -> str:
    """The name of a file inside of our folder, as we give them; other names are refused."""
    path = PurePosixPath(name)
    inside = not path.is_absolute() and ".." not in path.parts and not set(name) & set("\\:\0")
    if not inside or str(path) != name or path.suffix not in ENDINGS:
        raise ValueError(f"{name!r} is no file of ours")
    return name


def is_unchanged(folder: Path, name: str, listed: Listed) -> bool:
    """Whether a plain file, reached through no link, is as listed."""
    path = folder / name
    try:
        if through_link(folder, name) or not stat.S_ISREG(path.lstat().st_mode):
            return False
        return path.lstat().st_size == listed.size and Listed.of(path) == listed
    except OSError:
        return False


def through_link(folder: Path, name: str) -> bool:
    """Whether one of the folders between is a link, which leads somewhere else."""
    return any((folder / parent).is_symlink() for parent in PurePosixPath(name).parents)


# --- new files for old ones: all of them, or none -------------------------------------------------


STAGE = "manyview"
JOURNAL, NEW = "journal.json", "new"


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


def replace_files(folder: Path, stage: Path, kind: str, keep: bool) -> None:
    """What is in ``stage/new`` takes the place of the files of this kind; with ``keep`` of those of the
    same names only.

    A journal is written once the new files are safe on the disk: from there on they replace the old ones,
    by this process or by the next one that claims the folder.
    """
    marker = read_marker(folder) or Marker()
    new = {name: Listed.of(stage / NEW / name) for name in files_in(stage / NEW)}
    check_names(folder, marker, new)
    earlier = {} if keep else marker.files.get(kind, {})
    old = marker.ours(folder, {*earlier, *new})
    for name in new:
        for place in (folder / name).parents:
            if place.is_relative_to(folder) and place.exists() and not place.is_dir():
                raise Refused(f"{place} is a file where a folder is to be made")
    (stage / NEW / MARKER).write_bytes(marker.bytes_with(kind, new, earlier))
    if os.path.lexists(folder / MARKER):
        old[MARKER] = Listed.of(folder / MARKER)
    for name in (*new, MARKER):
        with (stage / NEW / name).open("rb+") as file:
            os.fsync(file.fileno())
    sync_folder(stage / NEW)
    write_whole(stage / JOURNAL, json.dumps({"old": old, "new": sorted(new)}).encode())
    settle(folder, stage)


def settle(folder: Path, stage: Path) -> None:
    """Finish what has a journal; what has none did not begin to replace anything, and is removed."""
    told = _read_journal(stage)
    if told is not None:
        old, new = told
        # The list of files goes first and comes last: without it nothing is taken for a result.
        for name in sorted(old, key=lambda name: name != MARKER):
            moved = name in (*new, MARKER) and not (stage / NEW / name).exists()
            if not moved and is_unchanged(folder, name, old[name]):
                (folder / name).unlink()
        for name in (*new, MARKER):
            if not (stage / NEW / name).exists():
                continue
            if os.path.lexists(folder / name) or through_link(folder, name):
                raise Refused(
                    f"writing into {folder} was interrupted, and {name} was put there by another program; "
                    f"move it away and run the command again: the new one is {stage / NEW / name}"
                )
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(stage / NEW / name, folder / name)
        inside = [name for name in old if not through_link(folder, name)]
        emptied = {str(place) for name in inside for place in PurePosixPath(name).parents} - {"."}
        for name in sorted(emptied, key=len, reverse=True):
            with suppress(OSError):  # something is in it, or it is gone
                (folder / name).rmdir()
        sync_folder(folder)
        (stage / JOURNAL).unlink()
    shutil.rmtree(stage, ignore_errors=True)


def files_in(folder: Path) -> list[str]:
    """Names of the files in a folder of ours and below, the list of files last."""
    found = (path for path in folder.rglob("*") if stat.S_ISREG(path.lstat().st_mode))
    names = [path.relative_to(folder).as_posix() for path in found]
    return sorted(names, key=lambda name: (name == MARKER, name))


def _read_journal(stage: Path) -> tuple[dict[str, Listed], list[str]] | None:
    """The files to remove and to move; None if nothing has begun."""
    try:
        told = json.loads((stage / JOURNAL).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    try:
        old = {checked_name(name): Listed(*listed) for name, listed in told["old"].items()}
        return old, [checked_name(name) for name in told["new"]]
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise Refused(f"{stage} was not made by manyview ({error}); move it away") from None


# --- claiming a folder ----------------------------------------------------------------------------


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
        stage = self.path / random_name(STAGE)
        stage.mkdir(mode=0o700)
        try:
            (stage / NEW).mkdir()
            yield stage / NEW
            lock = (HELD.get() or {}).get(self.path)
            if lock is not None and not lock.is_held():
                raise FolderInUse(
                    f"another process has begun to write into {self.path}; nothing of this one is "
                    "written there. Name another folder and run it again"
                )
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
            write_whole(self.path / MARKER, marker.bytes_with(self.kind, {}))


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
    if place.exists() and not place.is_dir():
        raise Refused(f"{shown} is a file; name a folder, new or empty")
    _check_writable(place, str(shown), "folder")
    held = HELD.get() or {}
    if place in held:
        _check_free(shown, place, kind, force or beside, goes_on)
        yield OurFolder(place, kind)
        return
    made, at = [], place  # inner ones first
    while not at.exists():
        made.append(at)
        at = at.parent
    place.mkdir(parents=True, exist_ok=True)
    try:
        lock = Lock.take(place, shown)
        before = HELD.set({**held, place: lock})
        try:
            for path in filter(is_stage, list(place.iterdir())):
                settle(place, path)
            for path in (*left_behind(place), *left_behind(place / "runs")):
                path.unlink(missing_ok=True)
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


def _check_writable(place: Path, name: str, what: str) -> None:
    """Refuse a place below which nothing can be made, before any work is done."""
    at = place
    while not at.exists():
        at = at.parent
    if not at.is_dir():
        raise NotADirectoryError(f"{name} cannot be made: {at} is a file, not a folder")
    if not os.access(at, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{name}: no {what} can be written in {at}; choose a folder of your own"
        )


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


# --- one table in a place the user names ----------------------------------------------------------


def check_file(out: Path, columns: Sequence[Sequence[str]], force: bool) -> None:
    """Refuse to write over a file, but with ``force`` over a table of such columns."""
    place = out.resolve()
    if place.is_dir():
        raise IsADirectoryError(
            f"--out {out} is a folder; name a file, such as {out / 'labels.csv'}"
        )
    if os.path.lexists(place) and not force:
        raise Refused(f"{out} exists; name another file, or replace it by --force")
    try:
        ours = not os.path.lexists(place) or columns_of(place) in map(list, columns)
    except (OSError, ValueError, csv.Error):
        ours = False
    if not ours:
        raise Refused(
            f"{out} is no table of {', '.join(columns[0])} and is not replaced; name another file"
        )
    marker = read_marker(place.parent)
    if marker is not None and place.name in marker.every:
        raise Refused(f"{out} belongs to the results in {out.parent}; name another file")
    _check_writable(place.parent, "--out", "file")


def write_file(out: Path, content: bytes) -> None:
    """Whole or not at all; a link stays, and what killed processes left of the file goes."""
    place = out.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    for left in left_behind(place.parent, place.name):
        left.unlink(missing_ok=True)
    write_whole(place, content)
