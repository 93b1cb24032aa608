"""Locks of the operating system: they end with their process, however it ends."""

from __future__ import annotations

import os
from typing import Any

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
