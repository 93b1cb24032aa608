"""`manyview reproduce`: run experiments of the paper, keep every cell, write the tables.

The tables are tidy CSV files; reproduction.json says how they came about.
"""

from __future__ import annotations

import json
import platform
import shlex
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from manyview.app.compare.runs import Store, versions
from manyview.io.writing import claimed, csv_of_dicts, read_csv, scratch

from .experiments import EXPERIMENTS, SLOW, Cell, Experiment, Options, chosen
from .provenance import code_of, machine, machine_of, now
from .results import FORMAT, MANIFEST
from .running import run_cells
from .tasks import Row, read_given

#: What the folder is called there; an experiment's results are replaced, cells and other experiments kept.
KIND = "reproduce"
LINEAR = ("auto", "full", "small", "skip")
#: Time a cell took by the clock, and of a processor; all rows of a cell have the same.
TIMES = ("cell_seconds", "cpu_seconds")


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
    if linear_mlrssc not in LINEAR:
        raise ValueError(f"--linear-mlrssc is one of {', '.join(LINEAR)}, not {linear_mlrssc!r}")
    if linear_mlrssc == "auto":  # an hour of ADMM is for the full table
        linear_mlrssc = "full" if replications >= 20 else "small"
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
            for row in map(dict, rows):
                # All parameters where a row tells them, not only those that a cell sets.
                told = {"params": row.pop("params")} if "params" in row else {}
                settings = json.dumps({**cell.settings, **told}, sort_keys=True)
                whole = {**cell.labels, **row, "settings": settings, **last}
                tables.setdefault(name, []).append(whole)
    return {
        f"{experiment.name}{'-' if name else ''}{name}.csv": csv_of_dicts(rows)
        for name, rows in tables.items()
    }


def entry_of(cells: Sequence[Cell], records: Mapping[str, Any]) -> dict[str, Any]:
    """What an experiment's cells tell of its making."""
    states = [records.get(cell.key, {}) for cell in cells]
    finished = [state for state in states if state.get("status") == "ok"]
    reasons = [state["reason"] for state in states if state.get("status") != "ok"]
    return {
        "cells": len(cells),
        "runs": _runs(cells, records),
        **{name: sum(state.get(name, 0.0) for state in finished) for name in TIMES},
        "slow": slow_methods(cells, records),
        "failed": len(reasons),
        "reasons": sorted(set(reasons))[:5],
        "code": _code(finished),
        "versions": _versions(),
        "machine": machine_of(finished),
        "finished": max((state.get("finished", "") for state in finished), default="") or now(),
    }


def slow_methods(cells: Sequence[Cell], records: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Minutes of each method that runs last because it is slow: one fit, and k-means for all runs."""
    seconds: dict[str, list[tuple[float, float]]] = {}
    for cell in {cell.key: cell for cell in cells if cell.phase == SLOW}.values():
        record = records.get(cell.key, {})
        if record.get("status") == "ok":
            row = record["tables"][""][0]
            shared = row["seconds_shared"]
            seconds.setdefault(cell.labels["method"], []).append((shared, row["seconds"] - shared))
    return [
        {"method": name, "minutes": (max(s for s, _ in all_) + sum(o for _, o in all_)) / 60}
        for name, all_ in seconds.items()
    ]


def manifest_of(out: Path, new: Path, told: list[dict[str, Any]]) -> bytes:
    """What was run, added to what an earlier run of other experiments has left in the folder ``out``.

    ``new`` holds the tables that are to be put there.
    """
    earlier = read_manifest(out).get("experiments", [])
    known = {entry["name"]: entry for entry in (*earlier, *told)}
    entries = sorted(known.values(), key=lambda entry: _place(entry["name"]))
    manifest = {
        "format": FORMAT,
        # Of the last run; every experiment has its own.
        "finished": now(),
        "versions": _versions(),
        "machine": machine(),
        "command": whole_command([entry["command"] for entry in entries]),
        "cpu_seconds": _cpu_seconds(out, new, entries),
        "slow": [slow for entry in entries for slow in entry.get("slow", ())],
        "experiments": entries,
    }
    return json.dumps(manifest, indent=1, ensure_ascii=False).encode()


def read_manifest(out: Path) -> dict[str, Any]:
    try:
        found = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and found.get("format") == FORMAT else {}


def whole_command(commands: Sequence[str]) -> str:
    """One command for all experiments of the same settings; several are joined by &&."""
    names: dict[tuple[str, ...], list[str]] = {}
    for words in map(shlex.split, commands):
        names.setdefault(tuple(words[3:]), []).append(words[2])
    joined = []
    for settings, some in names.items():
        needed = {e.name for e in EXPERIMENTS.values() if "--data" in settings or not e.needs_data}
        asked = ["all"] if set(some) == needed else some
        joined.append(shlex.join(["manyview", "reproduce", *asked, *settings]))
    return " && ".join(joined)


def _cpu_seconds(out: Path, new: Path, entries: Sequence[dict[str, Any]]) -> float:
    """Processor time of all cells behind the tables; one that several experiments show counts once."""
    seconds: dict[str, float] = {}
    for name in {file for entry in entries for file in entry["files"]}:
        for row in read_csv(new / name if (new / name).exists() else out / name):
            seconds[row.get("cell") or row["settings"]] = float(row["cpu_seconds"])
    return sum(seconds.values())


def _runs(cells: Sequence[Cell], records: Mapping[str, Any]) -> dict[str, int]:
    """Fewest and most finished runs of a method, or of whatever else the cells tell apart."""
    done: Counter[str] = Counter()
    for cell in cells:
        about = {k: v for k, v in cell.labels.items() if k not in ("run", "seed")}
        done[f"{cell.task} {about}"] += records.get(cell.key, {}).get("status") == "ok"
    return {"least": min(done.values(), default=0), "most": max(done.values(), default=0)}


def _code(records: Sequence[Mapping[str, Any]]) -> str:
    """The code that made the cells; where there are several, each with the number of its cells."""
    count = Counter(code_of(record) for record in records)
    if len(count) == 1:
        return next(iter(count))
    return "; ".join(f"{name} ({n} cells)" for name, n in count.most_common())


def _versions() -> dict[str, str]:
    return {"python": platform.python_version(), **versions()}


def _place(name: str) -> int:
    return list(EXPERIMENTS).index(name) if name in EXPERIMENTS else len(EXPERIMENTS)
