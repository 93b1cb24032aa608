"""The result files: tidy tables as CSV, one row per cell and what it is about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from manyview.io.writing import csv_of_dicts
from manyview.judge.comparison.plan import versions

from .cells import Cell, Experiment, Row
from .provenance import code_of

#: Time a cell took by the clock, and of a processor; all rows of a cell have the same.
TIMES = ("cell_seconds", "cpu_seconds")


def tables_of(
    experiment: Experiment, cells: Sequence[Cell], records: Mapping[str, Any]
) -> dict[str, bytes]:
    """One CSV per table of the experiment, rows in the order of the grid.

    The column "cell" is the name of the file in runs/ that a row comes from.
    """
    tables: dict[str, list[Row]] = {}
    said = "; ".join(f"{name} {version}" for name, version in versions().items())
    for cell in cells:
        record = records.get(cell.key, {})
        if record.get("status") != "ok":
            continue
        last = {name: record[name] for name in TIMES} | {"cell": cell.key}
        last["versions"] = f"{said}; code {code_of(record)}"
        for name, rows in record["tables"].items():
            for row in rows:
                # All parameters where a row tells them, not only those that a cell sets.
                told = {k: row[k] for k in row if k == "params"}
                settings = json.dumps({**cell.settings, **told}, sort_keys=True)
                shown = {k: row[k] for k in row if k != "params"}
                whole = {**cell.labels, **shown, "settings": settings, **last}
                tables.setdefault(name, []).append(whole)
    return {
        f"{experiment.name}{'-' if name else ''}{name}.csv": csv_of_dicts(rows)
        for name, rows in tables.items()
    }
