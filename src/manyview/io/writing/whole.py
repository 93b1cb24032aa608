"""One file, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from .locks import take_lock
from .names import random_name


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


def sync_file(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


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
