"""A folder for the blocks of a fit, which the next fit on this machine removes if this one is killed."""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
from glob import escape
from pathlib import Path
from typing import Any

#: The file in such a folder that its process keeps locked.
MARK = "mark"


def own_folder(where: Path) -> tuple[Path, Any]:
    """A new folder named after this process, and the file in it that is locked while we live.

    Before, those of processes of this machine that were killed are removed.
    """
    mine = f"manyview-{platform.node()}-"
    for left in where.glob(f"{escape(mine)}*"):
        if _is_orphan(left, left.name.removeprefix(mine).partition("-")[0]):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{mine}{os.getpid()}-", dir=where))
    mark = open(folder / MARK, "wb")  # noqa: SIM115
    _take_lock(mark)
    return folder, mark


def _is_orphan(folder: Path, process: str) -> bool:
    """Whether nobody uses the folder: no such process, nor one elsewhere that sees other numbers."""
    if os.name != "posix" or not process.isdigit() or folder.stat().st_uid != os.getuid():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        pass
    except OSError:  # it is another user's
        return False
    else:
        return False
    try:
        with open(folder / MARK, "rb+") as mark:
            return _take_lock(mark)
    except OSError:
        return False


def _take_lock(file: Any) -> bool:
    """Whether this process has the file now; also where files cannot be locked."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return True
    return True
