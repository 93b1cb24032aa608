"""`manyview reproduce`: run experiments of the paper, keep every cell, write the tables."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from manyview.app.compare.store import Store
from manyview.io.writing import claimed, scratch

from .catalogue import chosen
from .cells import Cell, Experiment, Options
from .data import read_given
from .result_files import (
    MANIFEST,
    entry_of,
    manifest_of,
    slow_methods,
    tables_of,
)
from .running import run_cells

#: What the folder is called there; an experiment's results are replaced, cells and other experiments kept.
KIND = "reproduce"
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
    again: bool = False,
    force: bool = False,
) -> int:
    """Run, write, tell; the number of cells that failed."""
    linear_mlrssc = _extent(linear_mlrssc, replications)
    experiments = chosen(list(names), data is not None)
    fingerprint, notes, given = "", "", None
    if data is not None:
        fingerprint, given = read_given(data)
        notes = f" {given.n_samples} samples, {given.n_clusters} classes. {given.description}"
    options = Options(replications, seed, linear_mlrssc, fingerprint)
    started = time.perf_counter()
    grids = {e.name: e.cells(options) for e in experiments}
    cells = [cell for grid in grids.values() for cell in grid]
    settings = ["--replications", str(replications), "--seed", str(seed), "--jobs", str(jobs)]
    settings += ["--linear-mlrssc", linear_mlrssc]
    settings += ["--data", str(data)] if data is not None else []
    with claimed(out, KIND, force=force, goes_on=True) as place:
        place.check([MANIFEST, *(f"{experiment.name}.csv" for experiment in experiments)])
        place.begin()
        with scratch() as folder:
            store = Store(place.path)
            records = run_cells(cells, store, folder, jobs, console, again=again, given=given)
        with place.replacing(keep=True) as new:
            told = []
            for experiment in experiments:
                words = ["manyview", "reproduce", experiment.name, "--out", str(out), *settings]
                about = {"command": shlex.join(words), "replications": replications}
                about["about"] = experiment.about + (notes if experiment.needs_data else "")
                told.append(_written(new, experiment, grids[experiment.name], records) | about)
            (new / MANIFEST).write_bytes(manifest_of(place.path, new, told))
    return _say(console, cells, records, time.perf_counter() - started)


def _extent(linear_mlrssc: str, replications: int) -> str:
    """On how many digits the linear MLRSSC run."""
    if linear_mlrssc not in LINEAR:
        raise ValueError(f"--linear-mlrssc is one of {', '.join(LINEAR)}, not {linear_mlrssc!r}")
    if linear_mlrssc != "auto":
        return linear_mlrssc
    return "full" if replications >= 20 else "small"  # an hour of ADMM is for the full table


def _written(
    new: Path, experiment: Experiment, grid: list[Cell], records: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the tables of an experiment; what the manifest says of it."""
    tables = tables_of(experiment, grid, records)
    for name, content in tables.items():
        (new / name).write_bytes(content)
    about = {"name": experiment.name, "title": experiment.title, "files": list(tables)}
    return about | entry_of(grid, records)


def _say(console: Console, cells: list[Cell], records: Mapping[str, Any], seconds: float) -> int:
    for slow in slow_methods(cells, records):
        console.print(
            f"{slow['method']} on all digits: {slow['minutes']:.1f} min, one ADMM and k-means for "
            "every run.",
            highlight=False,
        )
    unique = {cell.key for cell in cells}
    failed = {k: records[k]["reason"] for k in unique if records[k]["status"] != "ok"}
    for reason in sorted(set(failed.values()))[:5]:
        console.print(f"failed: {escape(reason)}", highlight=False)
    work = sum(records[k].get("cpu_seconds", 0.0) for k in unique)
    console.print(
        f"{len(unique) - len(failed)} of {len(unique)} cells finished; {seconds / 60:.1f} min now, "
        f"{work / 60:.1f} min of processor time in all.",
        highlight=False,
    )
    return len(failed)
