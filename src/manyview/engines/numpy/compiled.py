"""Import the compiled inner loops (numba, extra "fast"), and choose those that replace a solver.

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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from manyview._arrays import copied
from manyview._types import Array, Sums
from manyview._warn import warn_user
from manyview.maths.solvers import Solver, least_diagonal, own_name

#: What the user may set to choose the folder.
SETTING = "NUMBA_CACHE_DIR"


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
    try:
        return import_module(name)
    except RuntimeError as error:
        if "cannot cache function" in str(error):
            raise _Nowhere(str(error)) from error
        raise


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


UpdateU = Callable[[Array, Sums, float], Array]


class Forms(NamedTuple):
    """The compiled forms of one solver."""

    #: `Solver.update_U`; None where NumPy does it as fast.
    update_U: UpdateU | None
    #: `Solver.update_V` with the parts of the regulariser one by one, into its last argument.
    update_V: Callable[..., None]
    #: How `kernels.rows_pass` is told which of its two rules to run.
    hals: bool | None


@cache
def compiled() -> Any:
    """The module of compiled loops, or None without numba: then NumPy does the same, slower."""
    try:
        return import_compiled("manyview.engines.numpy.kernels")
    except ModuleNotFoundError:
        return None
    except ImportError as error:  # numba refuses a NumPy newer than itself
        warn_user(f"numba is installed but does not work ({error}); going on without it, slower")
        return None


def compiled_forms(solver: Solver) -> Forms | None:
    """What stands in for this solver; None without numba, and for any rule but the library's own."""
    kernels, name = compiled(), own_name(solver)
    if kernels is None or name is None:
        return None
    return {
        "multiplicative": Forms(None, kernels.multiplicative_rows, hals=None),
        "hals": Forms(_hals_update_U, kernels.hals_rows, hals=True),
    }[name]


def basis_update(solver: Solver) -> UpdateU:
    """The solver's step on U, compiled where there is such a form."""
    forms = compiled_forms(solver)
    return solver.update_U if forms is None or forms.update_U is None else forms.update_U


def row_update(solver: Solver) -> Callable[..., None]:
    """The solver's step on rows of V into its last argument, compiled where there is such a form."""
    forms = compiled_forms(solver)
    if forms is None:

        def plain(*args: Any) -> None:
            args[-1][...] = solver.update_V(*args[:-1])

        return plain
    kernel = forms.update_V

    def fast(V: Array, *args: Any) -> None:
        *products, split, out = args
        kernel(V, *products, *split, out)

    return fast


def _hals_update_U(U: Array, sums: Sums, a: float) -> Array:
    """`SimplexHALS.update_U`."""
    P, G = sums.P, sums.G
    columns = copied(U.T).astype(P.dtype, copy=False)
    compiled().hals_columns(columns, P, G, least_diagonal(U, G))
    return columns.T
