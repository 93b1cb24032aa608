"""The result files: tidy tables as CSV, and what was run, where and how in reproduction.json."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..comparison.plan import versions
from ..comparison.store import write_whole
from .catalogue import EXPERIMENTS
from .cells import Cell, Experiment, Row

MANIFEST = "reproduction.json"
FORMAT = 1
#: Time a cell took by the clock, and of a processor; all rows of a cell have the same.
TIMES = ("cell_seconds", "cpu_seconds")


def write_tables(
    out: Path, experiment: Experiment, cells: Sequence[Cell], records: Mapping[str, Any]
) -> list[str]:
    """One CSV per table of the experiment, rows in the order of the grid; the names of the files."""
    tables: dict[str, list[Row]] = {}
    said = "; ".join(f"{name} {version}" for name, version in versions().items())
    for cell in cells:
        record = records.get(cell.key, {})
        if record.get("status") != "ok":
            continue
        settings = json.dumps(dict(cell.settings), sort_keys=True)
        for name, rows in record["tables"].items():
            for row in rows:
                last = {name: record[name] for name in TIMES} | {"settings": settings}
                tables.setdefault(name, []).append({**cell.labels, **row, **last, "versions": said})
    files = []
    for name, rows in tables.items():
        files.append(f"{experiment.name}{'-' if name else ''}{name}.csv")
        write_whole(out / files[-1], _csv(rows))
    return files


def write_manifest(out: Path, told: list[dict[str, Any]]) -> None:
    """What was run, added to what an earlier run of other experiments has left in the folder."""
    earlier = read_manifest(out).get("experiments", [])
    known = {entry["name"]: entry for entry in (*earlier, *told)}
    manifest = {
        "format": FORMAT,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), **versions()},
        "machine": {
            "processor": _processor(),
            "cores": os.cpu_count(),
            "system": platform.system(),
        },
        "experiments": sorted(known.values(), key=lambda entry: _place(entry["name"])),
    }
    write_whole(out / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False).encode())


def _place(name: str) -> int:
    return list(EXPERIMENTS).index(name) if name in EXPERIMENTS else len(EXPERIMENTS)


def read_manifest(out: Path) -> dict[str, Any]:
    try:
        found = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and found.get("format") == FORMAT else {}


def _csv(rows: Sequence[Row]) -> bytes:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
