"""Run a module of ours within a limit of memory: ``python -m manyview.app.web.child BYTES MODULE …``.

A fit ends when its standard input does, which is when the server of the page is gone, however it went.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import signal
import sys
import threading

from manyview.io.child import confine


def end_with_server() -> None:
    """Wait for the end of standard input, then end at once, with what was started from here."""
    with contextlib.suppress(OSError):
        while os.read(0, 1):  # not sys.stdin, whose lock would be held while Python ends
            pass
    if os.name == "posix":  # the server has made this process the first of its group
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    given, module = int(sys.argv[1]), sys.argv[2]
    if module not in ("manyview", "manyview.app.web.look"):
        sys.exit(f"{module} is not run here")
    confine(given)
    if module == "manyview":
        threading.Thread(target=end_with_server, daemon=True).start()
    sys.argv = [module, *sys.argv[3:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
