"""By which code, and on which machine, a cell was computed."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

#: Of a record that does not say which code made it.
UNKNOWN = "unknown"
#: Files that show, write or start results but cannot change them.
SHOWING = (
    "__main__.py",
    "app/",
    "plot/",
    *(f"paper/{name}.py" for name in
      ("claims", "command", "experiments", "figures", "page", "provenance", "results", "tables",
       "texts")),
)  # fmt: skip
#: Packages used where they are installed, with other rounding or other neighbours than without.
OPTIONAL = ("numba", "pynndescent")


@lru_cache(maxsize=1)
def code() -> str:
    """A short hash of the files that decide results, and the versions of the optional packages."""
    found = [digest_of(Path(__file__).parents[1])]
    for name in OPTIONAL:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def digest_of(package: Path) -> str:
    digest = hashlib.sha256()
    files = {path.relative_to(package).as_posix(): path for path in package.rglob("*.py")}
    for name in sorted(name for name in files if not name.startswith(SHOWING)):
        digest.update(f"{name}\0".encode() + files[name].read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def code_of(record: Mapping[str, Any]) -> str:
    return str(record.get("code", UNKNOWN))


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def machine() -> dict[str, Any]:
    return {"processor": _processor(), "cores": os.cpu_count(), "system": platform.system()}


def machine_of(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Where cells were computed; the processors of several machines are all named."""
    found = [record["machine"] for record in records if "machine" in record]
    if not found:
        return machine()
    return found[-1] | {"processor": " and ".join(sorted({m["processor"] for m in found}))}


@lru_cache(maxsize=1)
def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
