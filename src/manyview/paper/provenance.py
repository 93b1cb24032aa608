"""By which code, and on which machine, a cell was computed."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

#: Of a record that does not say which code made it.
UNKNOWN = "unknown"
PACKAGE = Path(__file__).parents[1]
#: Imported, but without influence on results: drawing, and reading and writing files. A test runs every
#: kind of cell and checks that it enters no function outside its code but those of ``io``.
WITHOUT_INFLUENCE = ("app", "plot", "io")
#: Packages used where they are installed, with other rounding or other neighbors than without.
OPTIONAL = ("numba", "pynndescent")


def code(task: str, settings: Mapping[str, Any]) -> str:
    """A short hash of the code that a cell depends on, and the versions of the optional packages."""
    found = [digest(roots(task, str(settings.get("method", ""))))]
    for name in OPTIONAL:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def roots(task: str, method: str) -> tuple[str, ...]:
    """The modules a cell starts from: its data, its scores and its method (WMNMF if none is named)."""
    own = {"RobustWMNMF": "robust", "WM-NMF": "wmnmf", "": "wmnmf"}
    return ("datasets", "metrics", own.get(method, "baselines"))


@lru_cache
def digest(starts: tuple[str, ...]) -> str:
    """Of all that these modules import, and of the tasks, without comments and docstrings."""
    found = hashlib.sha256()
    for module in (*sorted(closure(starts)), "paper.costs", "paper.tasks"):
        tree = ast.parse(_path(module).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
                node
            ):
                node.body = node.body[1:] or [ast.Pass()]
        found.update(f"{module}\0{ast.unparse(tree)}\0".encode())
    return found.hexdigest()[:12]


def closure(starts: Iterable[str]) -> set[str]:
    """Our modules (without "manyview.") that these import, also inside functions, and themselves."""
    found: set[str] = set()
    waiting = list(starts)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += _imports(module)
    return found


@lru_cache
def _imports(module: str) -> list[str]:
    path = _path(module)
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]

    def named() -> Iterator[str]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (name.name for name in node.names)
            elif isinstance(node, ast.Constant) and str(node.value).startswith("manyview."):
                yield str(node.value)  # imported by name where numba is installed
            elif isinstance(node, ast.ImportFrom):
                up = ["manyview", *package[: len(package) + 1 - node.level]] if node.level else []
                base = ".".join([*up, *filter(None, [node.module])])
                yield from (base, *(f"{base}.{name.name}" for name in node.names))

    found = {name.removeprefix("manyview.") for name in named() if name.startswith("manyview.")}
    return [m for m in found if m and _path(m).exists() and not is_without_influence(m)]


def is_without_influence(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in WITHOUT_INFLUENCE)


def _path(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def code_of(record: Mapping[str, Any]) -> str:
    return str(record.get("code", UNKNOWN))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def machine() -> dict[str, Any]:
    return {"processor": _processor(), "cores": os.cpu_count(), "system": platform.system()}


@lru_cache(maxsize=1)
def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
