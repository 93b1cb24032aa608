"""Import modules that numba compiles (extra "fast"), also where it cannot keep what it compiled.

Numba keeps compiled code beside the package or in the user's home, and refuses to import functions to be
kept where it can write neither: in containers and on nodes of clusters. Then a folder in the temporary
directory serves, or nothing is kept. Code is loaded from such a folder and run, so nobody else may be
able to put anything there.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from manyview._warn import warn_user

#: What the user may set to choose the folder.
SETTING = "NUMBA_CACHE_DIR"
#: Settings that numba looks for in the current folder.
SETTINGS_FILE = ".numba_config.yaml"


def import_compiled(name: str) -> Any:
    """The module of this name, with its code kept in another place, or not at all, if need be."""
    if name in sys.modules or _home_is_known():
        with suppress(_Nowhere):
            return _import(name)
    chosen = os.environ.get(SETTING)
    folder = private_folder()
    if folder is not None:
        with suppress(_Nowhere), _kept_in(folder):
            module = _import(name)
            _tell(chosen, f"it is kept in {str(folder)!r} instead, which is yours alone")
            return module
    with _without_keeping():
        module = _import(name)
    _tell(chosen, "every run compiles anew and takes longer")
    return module


def private_folder() -> Path | None:
    """A folder in the temporary directory that this user alone can change, or None."""
    if os.name != "posix":
        return None
    try:
        folder = Path(tempfile.gettempdir()).resolve() / f"manyview-numba-{os.getuid()}"
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        if not _ours_alone(folder) or not all(map(_keeps_names, folder.parents)):
            return None
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder


def _ours_alone(folder: Path) -> bool:
    found = folder.lstat()  # a link is somebody's choice of another folder
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return ours and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)


def _keeps_names(folder: Path) -> bool:
    """Whether others cannot replace what lies in this folder: it is closed to them, or sticky."""
    mode = folder.stat().st_mode
    return bool(mode & stat.S_ISVTX) or not mode & (stat.S_IWGRP | stat.S_IWOTH)


def _home_is_known() -> bool:
    """Without a home numba would use a folder called "~" in the current one, whoever made it."""
    chosen = os.environ.get(SETTING)
    if chosen:
        with suppress(OSError):
            os.makedirs(chosen, exist_ok=True)
        if os.access(chosen, os.W_OK):
            return True
    return os.path.isabs(os.path.expanduser(os.environ.get("XDG_CACHE_HOME", "~")))


class _Nowhere(ImportError):
    """Numba found no place for compiled code."""


def _import(name: str) -> Any:
    if "numba" not in sys.modules:
        _import_numba()
    try:
        return import_module(name)
    except RuntimeError as error:
        if "cannot cache function" in str(error):
            raise _Nowhere(str(error)) from error
        raise


def _import_numba() -> None:
    """Import numba without the settings file of the current folder, which may come with somebody's tables.

    It could name a folder of code to load. Numba would read it now and at each compilation; without the
    package yaml it cannot.
    """
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


@contextmanager
def _kept_in(folder: Path) -> Iterator[None]:
    """Have numba keep code in a folder; for good, in processes started from here too, if that works."""
    before = os.environ.get(SETTING)
    _set(str(folder))
    try:
        yield
    except BaseException:
        _set(before)
        raise


def _set(folder: str | None) -> None:
    from numba import config

    if folder is None:
        os.environ.pop(SETTING, None)
    else:
        os.environ[SETTING] = folder
    config.reload_config()


@contextmanager
def _without_keeping() -> Iterator[None]:
    """Functions defined meanwhile are compiled anew in every process, also those of other packages."""
    from numba.core.dispatcher import Dispatcher
    from numba.np.ufunc.ufuncbuilder import UFuncDispatcher

    kinds: tuple[Any, ...] = (Dispatcher, UFuncDispatcher)
    enable = [kind.enable_caching for kind in kinds]
    for kind in kinds:
        kind.enable_caching = lambda function: None
    try:
        yield
    finally:
        for kind, method in zip(kinds, enable, strict=True):
            kind.enable_caching = method


@cache  # once
def _tell(chosen: str | None, consequence: str) -> None:
    failed = f"not in {SETTING} ({chosen!r}), " if chosen else ""
    warnings.warn(
        f"numba cannot keep compiled code, {failed}not beside the package and not in the home folder; "
        f"{consequence}. Set {SETTING} to a folder that only you can write to choose the place",
        UserWarning,
        stacklevel=3,
    )
