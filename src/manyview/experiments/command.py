"""`manyview reproduce`: run experiments of the paper, keep every cell, write the tables."""

from __future__ import annotations

import shlex
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from ..comparison.store import Store
from .catalogue import chosen
from .cells import SLOW, Cell, Experiment, Options
from .data import hand_over
from .results import TIMES, write_manifest, write_tables
from .running import run_cells

LINEAR = ("auto", "full", "small", "skip")


def run_reproduce(
    names: Sequence[str],
    out: Path,
    *,
    replications: int,
    seed: int,
    jobs: int,
    data: Path | None,
    linear_mlrssc: str,
    console: Console,
) -> int:
    """Run, write, tell; the number of cells that failed."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out {out} is a file; name a folder, new or old")
    if linear_mlrssc not in LINEAR:
        raise ValueError(f"--linear-mlrssc is one of {', '.join(LINEAR)}, not {linear_mlrssc!r}")
    if linear_mlrssc == "auto":  # an hour of ADMM is for those who ask for the full table
        linear_mlrssc = "full" if replications >= 20 else "small"
    experiments = chosen(list(names), data is not None)
    with tempfile.TemporaryDirectory(prefix="manyview-") as folder:
        fingerprint, notes = "", ""
        if data is not None:
            fingerprint, known = hand_over(data, Path(folder))
            notes = f"{known.n_samples} samples, {known.n_clusters} classes. {known.description}"
        options = Options(replications, seed, linear_mlrssc, fingerprint)
        started = time.perf_counter()
        store = Store(out)
        grids = {e.name: e.cells(options) for e in experiments}
        cells = [cell for grid in grids.values() for cell in grid]
        records = run_cells(cells, store, Path(folder), jobs, console)
    told = []
    again = ["--replications", str(replications), "--seed", str(seed), "--jobs", str(jobs)]
    again += ["--linear-mlrssc", linear_mlrssc]
    again += ["--data", str(data)] if data is not None else []
    for experiment in experiments:
        words = ["manyview", "reproduce", experiment.name, "--out", str(out), *again]
        told.append(_told(out, experiment, grids[experiment.name], records, shlex.join(words)))
        told[-1] |= {"replications": replications}
        if experiment.needs_data:
            told[-1]["about"] += f" {notes}"
    write_manifest(out, told)
    return _say(console, cells, records, time.perf_counter() - started)


def _told(
    out: Path, experiment: Experiment, cells: list[Cell], records: Mapping[str, Any], command: str
) -> dict[str, Any]:
    """What the report needs to know of an experiment, beside its tables."""
    states = [records.get(cell.key, {}) for cell in cells]
    reasons = [state["reason"] for state in states if state.get("status") == "failed"]
    return {
        "name": experiment.name,
        "title": experiment.title,
        "about": experiment.about,
        "command": command,
        "files": write_tables(out, experiment, cells, records),
        "cells": len(cells),
        **{name: sum(state.get(name, 0.0) for state in states) for name in TIMES},
        "failed": len(reasons),
        "reasons": sorted(set(reasons))[:5],
    }


def _say(console: Console, cells: list[Cell], records: Mapping[str, Any], seconds: float) -> int:
    unique = {cell.key: cell for cell in cells}
    for name in dict.fromkeys(c.labels["method"] for c in unique.values() if c.phase == SLOW):
        mine = [
            records[k] for k, c in unique.items() if c.phase == SLOW and c.labels["method"] == name
        ]
        minutes = sum(record.get("cell_seconds", 0.0) for record in mine) / 60
        console.print(
            f"{name} on all digits: {minutes:.1f} min, one ADMM and {len(mine)} k-means.",
            highlight=False,
        )
    failed = {k: records[k]["reason"] for k in unique if records[k]["status"] == "failed"}
    for reason in sorted(set(failed.values()))[:5]:
        console.print(f"failed: {escape(reason)}", highlight=False)
    work = sum(records[k].get("cpu_seconds", 0.0) for k in unique)
    console.print(
        f"{len(unique) - len(failed)} of {len(unique)} cells finished; {seconds / 60:.1f} min now, "
        f"{work / 60:.1f} min of processor time in all.",
        highlight=False,
    )
    return len(failed)
