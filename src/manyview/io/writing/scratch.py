"""Private folders in the temporary folder, for copies of data; those of killed processes are removed."""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .locks import take_lock
from .names import is_token, token

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
        if _is_orphan(left):
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


def _is_orphan(folder: Path) -> bool:
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
