"""Warnings that point at the user's line, with the options of the interface in use."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar

#: How the place where the reader is words a sentence that names parameters; the command line sets it.
WORDING: ContextVar[Callable[[str], str]] = ContextVar("WORDING", default=str)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the nearest caller outside this package.

    Parameters
    ----------
    message : str
    category : type of warning
    """
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "manyview":
        frame, level = frame.f_back, level + 1
    warnings.warn(WORDING.get()(message), category, stacklevel=level)
