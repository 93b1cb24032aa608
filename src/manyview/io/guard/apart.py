"""Files whose readers trust them are read by a process of its own, which may neither grow nor write."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .limits import TooLarge, check_held, gib_text, room_for, size_text
from .packed import TEXT_BYTES

#: How the program ends: with its answer, or with a sentence about the file.
DONE, SENTENCE, NO_PACKAGE, NO_MEMORY = 0, 3, 4, 5
PIECE = 2**20


class Refused(ValueError):
    """What the program says about the file."""


def read_apart(program: Path, path: Path, arguments: Sequence[str]) -> bytes:
    """What ``program`` prints about the file at ``path``; it may take as much memory as the file may.

    The program is called with the path, the bytes of memory it may take and the arguments. It prints its
    answer and ends with 0, or it prints a sentence and ends with another status.
    """
    packed = path.stat().st_size
    room = int(min(room_for(packed), 2**62))
    # Not the current folder and no script's: what lies beside a file is not imported.
    command = [sys.executable, "-P", str(program), str(path), str(room), *arguments]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
    )
    try:
        answer = _answer(process, packed)
    finally:
        process.kill()
        code = process.wait()
        if process.stdout is not None:
            process.stdout.close()
    said = answer[:600].decode("utf-8", "replace").strip() if code != DONE else ""
    if code == DONE:
        return answer
    if code == NO_PACKAGE:
        raise ImportError(said)
    if code == SENTENCE:
        raise Refused(said)
    if code == NO_MEMORY or code < 0:
        enough = gib_text(4 * room)
        raise TooLarge(
            f"it is damaged, or takes more than {size_text(room)} in memory, the limit for a file of "
            f"{size_text(packed)}. If you know the file, raise it: max_unpacked={enough} or "
            f"--max-unpacked {enough} (GiB)"
        )
    raise Refused(f"could not be read: its reader ended with status {code}")


def _answer(process: subprocess.Popen[bytes], packed: int) -> bytes:
    assert process.stdout is not None
    pieces, total = [], 0
    while piece := process.stdout.read(PIECE):
        total += len(piece)
        check_held(TEXT_BYTES * total, packed, so_far=True)
        pieces.append(piece)
    process.wait()
    return b"".join(pieces)


def _environment() -> dict[str, str]:
    # The same packages must be found there; allocators must not reserve more than they use.
    path = os.pathsep.join(entry for entry in sys.path if entry)
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    told = {"PYTHONPATH": path, "ARROW_DEFAULT_MEMORY_POOL": "system", "PYTHONIOENCODING": "utf-8"}
    return {**os.environ, **one, **told, "PYTHONDONTWRITEBYTECODE": "1"}
