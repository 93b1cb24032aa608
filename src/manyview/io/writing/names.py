"""Temporary names: random, so that no two processes meet, and known again as ours.

A name ends in random digits and a checksum over them and what stands before. A name that somebody else
chose does not have it, however alike it looks.
"""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from manyview.io import checksum

from .locks import take_lock

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
