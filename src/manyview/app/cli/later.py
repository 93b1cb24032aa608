"""Functions whose modules are loaded when they are called."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def later(module: str, name: str) -> Callable[..., Any]:
    """The function of this name, which loads its module at the first call."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            found = import_module(module)
        except ModuleNotFoundError as error:
            if (error.name or "manyview").split(".")[0] == "manyview":
                raise
            raise ImportError(
                f"The manyview command needs {error.name}: pip install 'manyview[app]'"
            ) from None
        return getattr(found, name)(*args, **kwargs)

    return call
