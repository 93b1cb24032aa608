"""Child processes: environment, limits and end; and reading files in them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import limits
from .limits import BadFile, TooLarge, check_held, gib_text, room_for, size_text, unpacking_limit

#: Variables that say how many threads linear algebra takes.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def environment(threads: int | None = None, current_folder: bool = False) -> dict[str, str]:
    """The environment of a child that finds the same packages as this process.

    The current folder is not searched, unless ``current_folder``: what lies next to a user's files must
    not be imported.
    """
    entries = [entry or os.getcwd() for entry in sys.path if entry or current_folder]
    limited = {} if threads is None else dict.fromkeys(THREADS, str(threads))
    path = {"PYTHONPATH": os.pathsep.join(entries), "PYTHONIOENCODING": "utf-8"}
    return {**os.environ, **path, **limited}


def end(process: subprocess.Popen[bytes]) -> None:
    """End a child that is the first of its session, and the processes it has started."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def confine(room: int, seconds: int | None = None) -> None:
    """Limit this process, where the system can: to ``room`` more bytes (0: any number), and no core dump.

    With ``seconds`` also the time of computing, and no file may be written.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    most = {resource.RLIMIT_CORE: 0}
    if room:
        try:
            with open("/proc/self/statm") as sizes:
                held = int(sizes.read().split()[0]) * resource.getpagesize()
        except OSError:
            held = 2**30
        most[resource.RLIMIT_AS] = held + room
    if seconds is not None:
        most |= {resource.RLIMIT_CPU: seconds, resource.RLIMIT_FSIZE: 0}
    for limit, value in most.items():
        hard = resource.getrlimit(limit)[1]
        if hard == resource.RLIM_INFINITY or value < hard:
            with contextlib.suppress(ValueError, OSError):  # a system that cannot be limited
                # The first limit of time is a signal, the second would be another one.
                resource.setrlimit(limit, (value, value + 5 * (limit == resource.RLIMIT_CPU)))


# --- files whose readers could crash, hang or fill the memory, read in a limited child ------------


#: How the program ends: with its answer, a sentence about the file, or what went wrong.
DONE, SENTENCE, NO_PACKAGE, NO_MEMORY, TOO_LARGE, FAILED = 0, 3, 4, 5, 6, 7
PIECE = 2**20
#: Bytes beyond the numbers that libraries take.
SLACK = 2**28
#: Seconds of computing allowed for any file, and for each MiB of it; sound files take a tenth.
SECONDS, SECONDS_PER_MIB = 20, 10


def read_apart(
    program: Path, path: Path, kind: str, wanted: Any = None, weight: float = 1
) -> tuple[Any, list[memoryview]]:
    """What ``program`` finds in the file at ``path``: a JSON value, and the bytes of its parts.

    The program is called with the path and its settings (JSON): the kind of file, what is wanted of it,
    and the limits. It prints one line of JSON, ``{"about": …, "sizes": […]}``, then the parts, and ends
    with 0; or it prints why it cannot and ends with another status. A byte of the result will take
    ``weight`` bytes of memory. The process ends with this call, also when that is interrupted.
    """
    packed = path.stat().st_size
    room = min(room_for(packed), 2**60)
    seconds = SECONDS + SECONDS_PER_MIB * packed // 2**20
    settings = {
        "kind": kind,
        "wanted": wanted,
        "room": int(2 * room) + SLACK,
        "seconds": seconds,
        "allowed": unpacking_limit(),
        "limits": [limits.ALWAYS, limits.RATIO],
    }
    # Not the current folder and no script's: what lies next to a file is not imported.
    command = [sys.executable, "-P", str(program), str(path), json.dumps(settings)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
    )
    try:
        answer = _answer(process, packed, weight)
    finally:
        process.kill()
        code = process.wait()
        if process.stdout is not None:
            process.stdout.close()
    if code == DONE:
        return _parts(answer)
    said = answer[:5000].decode("utf-8", "replace").strip()
    if code == -getattr(signal, "SIGXCPU", 0):
        raise BadFile(
            f"{path.name} could not be read in {seconds} seconds of computing, so it is probably damaged; "
            "save it again with the program that made it"
        )
    if code == NO_MEMORY or code < 0:
        enough = gib_text(4 * room)
        raise TooLarge(
            f"it is damaged, or takes more than {size_text(room)} in memory, the limit for a file of "
            f"{size_text(packed)}. If you trust the file, raise the limit: max_unpacked={enough} or "
            f"--max-unpacked {enough} (GiB)"
        )
    if code == SENTENCE:
        raise BadFile(f"{path.name} {said}")
    raised = {NO_PACKAGE: ImportError, TOO_LARGE: TooLarge, FAILED: ValueError}
    if code not in raised:
        raise BadFile(f"{path.name} could not be read: its reader ended with status {code}")
    raise raised[code](said)


def _answer(process: subprocess.Popen[bytes], packed: int, weight: float) -> bytearray:
    assert process.stdout is not None
    answer = bytearray()
    while piece := process.stdout.read(PIECE):
        answer += piece
        if len(answer) > PIECE:
            check_held(weight * len(answer), packed, so_far=True)
    process.wait()
    return answer


def _parts(answer: bytearray) -> tuple[Any, list[memoryview]]:
    """The parts lie in the result, which is not copied; each begins at a multiple of 64 bytes."""
    at = answer.index(b"\n") + 1
    head, found = json.loads(answer[:at]), []
    for size in head["sizes"]:
        at += -at % 64
        found.append(memoryview(answer)[at : at + size])
        at += size
    return head["about"], found


def _environment() -> dict[str, str]:
    # Allocators must not reserve more than they use.
    told = {"MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    return {**environment(threads=1), **told, "PYTHONDONTWRITEBYTECODE": "1"}
