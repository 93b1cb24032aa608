"""Runs a module of ours with no more memory than given: ``python -m manyview.web.child BYTES MODULE …``."""

from __future__ import annotations

import runpy
import sys


def confine(room: int) -> None:
    """From here on no more address space than this, and no core dumped; where the system can."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    for limit, most in ((resource.RLIMIT_AS, room), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(limit)[1]
        if most > 0 and (hard == resource.RLIM_INFINITY or most < hard):
            try:
                resource.setrlimit(limit, (most, most))
            except (ValueError, OSError):  # a system that does not let itself be limited
                continue


if __name__ == "__main__":
    given, module = int(sys.argv[1]), sys.argv[2]
    if module not in ("manyview", "manyview.web.look"):
        sys.exit(f"{module} is not run here")
    confine(given)
    sys.argv = [module, *sys.argv[3:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
