"""Import the compiled inner loops (numba, extra "fast"), from no folder that others can write to."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import cache
from importlib import import_module
from threading import RLock
from typing import Any

from manyview._warn import warn_user

#: What the user may set to choose the folder for compiled code.
SETTING = "NUMBA_CACHE_DIR"
#: Settings that numba looks for in the current folder.
SETTINGS_FILE = ".numba_config.yaml"
#: Held while numba is imported: threads that need it at once wait for one of them.
IMPORTING = RLock()


@cache
def compiled() -> Any:
    """The module of compiled loops, or None without numba: then NumPy does the same, slower."""
    try:
        with IMPORTING:
            import_numba()
            return import_module("manyview.engines.numpy.kernels")
    except ModuleNotFoundError:
        return None
    except ImportError as error:  # numba refuses a NumPy newer than itself
        warn_user(f"numba is installed but does not work ({error}); going on without it, slower")
        return None


def import_numba() -> None:
    """Import numba without the settings file of the current folder, which may come with downloaded tables.

    It could name a folder of code to load. Numba would read it now and at each compilation; without the
    package yaml it cannot.
    """
    if "numba" in sys.modules:
        return
    found = os.path.lexists(SETTINGS_FILE)
    with warnings.catch_warnings() if found else nullcontext():
        if found:
            warnings.filterwarnings("ignore", "A Numba config file is found")
        before = sys.modules.get("yaml")
        sys.modules["yaml"] = None  # type: ignore[assignment]
        try:
            config: Any = import_module("numba.core.config")
        finally:
            del sys.modules["yaml"]
            if before is not None:
                sys.modules["yaml"] = before
    config._config_fname = ""
    if found:
        warn_user(
            f"The file {SETTINGS_FILE} in the current folder is not used, because it can make numba load "
            "code from any folder. To use its settings, set them as environment variables, such as "
            f"{SETTING}"
        )


def keeps_code(function: Callable[[], None]) -> bool:
    """Whether numba can keep compiled code of the module of ``function``.

    Numba keeps it next to the package or in the user's home. Where it can write neither, as in
    containers and on nodes of clusters, this process and those it starts share a temporary folder that
    only the user can write to.
    """
    from numba import config, njit

    def accepted() -> bool:
        try:
            njit(cache=True)(function)
        except RuntimeError as error:
            if "cannot cache function" in str(error):
                return False
            raise
        return True

    if home_is_known() and accepted():
        return True
    chosen, folder = os.environ.get(SETTING), ""
    with suppress(OSError):
        folder = os.environ[SETTING] = tempfile.mkdtemp(prefix="manyview-numba-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        config.reload_config()
    failed = f"not in {SETTING} ({chosen!r}), " if chosen else ""
    warn_user(
        f"numba cannot keep compiled code, {failed}not next to the package and not in the home folder; "
        f"every run compiles again. Set {SETTING} to a folder of your own that no one else can write to"
    )
    return bool(folder) and accepted()


def home_is_known() -> bool:
    """Without a home numba would use a folder called "~" in the current one, whoever made it."""
    chosen = os.environ.get(SETTING)
    if chosen:
        with suppress(OSError):
            os.makedirs(chosen, exist_ok=True)
        if os.access(chosen, os.W_OK):
            return True
    return os.path.isabs(os.path.expanduser(os.environ.get("XDG_CACHE_HOME", "~")))
