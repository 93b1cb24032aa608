"""Import the compiled inner loops (numba, extra "fast"), and choose those that replace a solver.

Numba keeps compiled code beside the package or in the user's home, and refuses to define functions to be
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
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from manyview._arrays import copied
from manyview._types import Array, Sums
from manyview._warn import warn_user
from manyview.maths.solvers import Solver, least_diagonal, own_name

UpdateU = Callable[[Array, Sums, float], Array]

#: What the user may set to choose the folder for compiled code.
SETTING = "NUMBA_CACHE_DIR"
#: Settings that numba looks for in the current folder.
SETTINGS_FILE = ".numba_config.yaml"


@cache
def compiled() -> Any:
    """The module of compiled loops, or None without numba: then NumPy does the same, slower."""
    try:
        import_numba()
        return import_module("manyview.engines.numpy.kernels")
    except ModuleNotFoundError:
        return None
    except ImportError as error:  # numba refuses a NumPy newer than itself
        warn_user(f"numba is installed but does not work ({error}); going on without it, slower")
        return None


def import_numba() -> None:
    """Import numba without the settings file of the current folder, which may come with somebody's tables.

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
    """Whether numba can keep compiled code of the module of ``function``, in a private folder if need be.

    The folder is also used in processes started from here.
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

    def use(folder: str | None) -> None:
        os.environ.pop(SETTING, None) if folder is None else os.environ.update({SETTING: folder})
        config.reload_config()

    chosen = os.environ.get(SETTING)
    if home_is_known() and accepted():
        return True
    folder, kept = private_folder(), False
    if folder is not None:
        use(str(folder))
        kept = accepted()
        if not kept:
            use(chosen)
    failed = f"not in {SETTING} ({chosen!r}), " if chosen else ""
    remedy = f"it is kept in {str(folder)!r} instead" if kept else "every run compiles anew"
    warn_user(
        f"numba cannot keep compiled code, {failed}not beside the package and not in the home folder; "
        f"{remedy}. Set {SETTING} to a folder that only you can write to choose the place"
    )
    return kept


def home_is_known() -> bool:
    """Without a home numba would use a folder called "~" in the current one, whoever made it."""
    chosen = os.environ.get(SETTING)
    if chosen:
        with suppress(OSError):
            os.makedirs(chosen, exist_ok=True)
        if os.access(chosen, os.W_OK):
            return True
    return os.path.isabs(os.path.expanduser(os.environ.get("XDG_CACHE_HOME", "~")))


def private_folder() -> Path | None:
    """A folder in the temporary directory that this user alone can change, or None."""
    if os.name != "posix":
        return None
    try:
        folder = Path(tempfile.gettempdir()).resolve() / f"manyview-numba-{os.getuid()}"
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        own = folder.lstat()  # a link is somebody's choice of another folder
        ours = stat.S_ISDIR(own.st_mode) and own.st_uid == os.getuid()
        if not ours or own.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return None
        for parent in folder.parents:  # others must not replace what lies there: closed, or sticky
            mode = parent.stat().st_mode
            if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
                return None
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder


class Forms(NamedTuple):
    """The compiled forms of one solver."""

    #: `Solver.update_U`; None where NumPy does it as fast.
    update_U: UpdateU | None
    #: `Solver.update_V` with the parts of the regulariser one by one, into its last argument.
    update_V: Callable[..., None]
    #: How `kernels.rows_pass` is told which of its two rules to run.
    hals: bool | None


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
