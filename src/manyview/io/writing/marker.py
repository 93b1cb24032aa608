"""What we wrote into a folder: names, sizes and checksums, in a hidden file there.

A file is ours if it is listed and has the size and the checksum it is listed with. Anything else
is somebody else's, also a file of ours that was changed since.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from manyview.io import checksum

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
    """Files by the kind of result they belong to, and the folders made for them."""

    files: dict[str, dict[str, Listed]] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)

    @property
    def every(self) -> dict[str, Listed]:
        return {name: listed for files in self.files.values() for name, listed in files.items()}

    def ours(self, folder: Path, names: Iterable[str]) -> dict[str, Listed]:
        """Those of ``names`` that are in the folder as we wrote them."""
        known = self.every
        return {
            name: known[name]
            for name in names
            if name in known and is_unchanged(folder, name, known[name])
        }

    def with_files(
        self, kind: str, files: Mapping[str, Listed], gone: Iterable[str], folders: Iterable[str]
    ) -> Marker:
        """After a writing: ``files`` belong to ``kind``, and to nobody else; ``gone`` to nobody."""
        dropped = {*gone, *files}
        kept = {
            k: {n: listed for n, listed in held.items() if n not in dropped}
            for k, held in self.files.items()
        }
        kept[kind] = kept.get(kind, {}) | dict(files)
        used = {
            str(p) for held in kept.values() for name in held for p in PurePosixPath(name).parents
        }
        return Marker(kept, (self.folders | set(folders)) & used)

    def as_bytes(self) -> bytes:
        files = {
            kind: {name: list(listed) for name, listed in sorted(held.items())}
            for kind, held in sorted(self.files.items())
        }
        told = {"format": FORMAT, "files": files, "folders": sorted(self.folders)}
        return (json.dumps(told, indent=1) + "\n").encode()


def read_marker(folder: Path) -> Marker | None:
    """The list in the folder; None if there is none, or what is there is not ours."""
    path = folder / MARKER
    if path.is_symlink():
        return None
    try:
        return _marker(json.loads(path.read_text(encoding="utf-8")))
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


def _marker(told: Any) -> Marker:
    if told["format"] != FORMAT:
        raise ValueError("another format")
    files = {
        str(kind): {
            checked_name(name): Listed(int(size), str(sum_)) for name, (size, sum_) in h.items()
        }
        for kind, h in told["files"].items()
    }
    return Marker(files, {checked_name(name, is_file=False) for name in told["folders"]})


def checked_name(name: str, is_file: bool = True) -> str:
    """The name of a file or folder inside of ours, as we give them; other names are refused."""
    path = PurePosixPath(name)
    inside = not path.is_absolute() and ".." not in path.parts and not set(name) & set("\\:\0")
    if not inside or str(path) != name or (is_file and path.suffix not in ENDINGS):
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
