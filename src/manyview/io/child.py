"""Child processes of ours: what they are told, how much they may take, how they end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

#: Variables that say how many threads linear algebra takes.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def environment(threads: int | None = None, current_folder: bool = False) -> dict[str, str]:
    """The environment of a child that finds the same packages as this process.

    The current folder is not searched, unless ``current_folder``: what lies beside a user's files must
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


def confine(memory: int) -> None:
    """Limit the address space of this process from here on, and dump no core; where the system can."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    for limit, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(limit)[1]
        if most > 0 and (hard == resource.RLIM_INFINITY or most < hard):
            with contextlib.suppress(ValueError, OSError):  # a system that cannot be limited
                resource.setrlimit(limit, (most, most))
