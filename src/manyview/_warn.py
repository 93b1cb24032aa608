"""Warnings that point at the user's own line, in the words of the interface the user is in."""

from __future__ import annotations

import sys
import warnings
from contextvars import ContextVar

#: Whether the reader is at the command line, where settings are options.
COMMAND_LINE: ContextVar[bool] = ContextVar("COMMAND_LINE", default=False)


def parameter(name: str) -> str:
    """Return what the reader calls a parameter: ``zero_rows`` or ``--zero-rows``."""
    return f"--{name.replace('_', '-')}" if COMMAND_LINE.get() else name


def setting(name: str, view: str, value: str) -> str:
    """Return how the reader sets a parameter of one view."""
    if COMMAND_LINE.get():
        return f"the option {parameter(name)} {view}={value}"
    return f"{name}={{{view!r}: {value!r}}}"


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest caller outside this package.

    Parameters
    ----------
    message : str
    category : type of warning
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == "manyview"
