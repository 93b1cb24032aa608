"""Code, versions and machine of a computed cell."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

#: Of a record that does not say which code made it.
UNKNOWN = "unknown"
PACKAGE = Path(__file__).parents[1]
#: Without influence on results: drawing, and reading and writing files; of the paper, all but the tasks.
WITHOUT_INFLUENCE = ("app", "plot", "io", "paper")
TASKS = ("paper/costs.py", "paper/tasks.py")
#: Packages used where they are installed, with other rounding or other neighbors than without.
OPTIONAL = ("numba", "pynndescent")


@lru_cache(maxsize=1)
def code() -> str:
    """A short hash of the library and of the tasks, and the versions of the optional packages."""
    found = [digest(PACKAGE)]
    for name in OPTIONAL:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def digest(package: Path) -> str:
    """Of all modules with influence on results, without comments and docstrings."""
    found = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name.split("/")[0] in WITHOUT_INFLUENCE and name not in TASKS:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
                node
            ):
                node.body = node.body[1:] or [ast.Pass()]
        found.update(f"{name}\0{ast.unparse(tree)}\0".encode())
    return found.hexdigest()[:12]


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
