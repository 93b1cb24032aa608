"""`manyview reproduce`: run the cells of experiments that are not stored yet, and write their tables.

Cells run a few at a time in child processes; each is stored as it ends. The tables are tidy CSV files;
reproduction.json says how they came about.
"""

from __future__ import annotations

import json
import pickle
import platform
import shlex
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from manyview.app.compare.runs import RunStore, versions
from manyview.app.processes import RunLimits, reason_of, run_tasks
from manyview.datasets import Dataset
from manyview.io.safe_csv import csv_of_dicts, read_csv
from manyview.io.writing import claimed, scratch

from . import tasks
from .experiments import EXPERIMENTS, Cell, Experiment, Options, chosen
from .provenance import code, code_of, machine, now
from .results import FORMAT, MANIFEST

#: What the folder is called there; an experiment's results are replaced, cells and other experiments kept.
KIND = "reproduce"
#: Time a cell took by the clock, and of a processor; all rows of a cell have the same.
TIMES = ("cell_seconds", "cpu_seconds")
#: Seconds of work given to a process at a time: starting one takes about two.
PORTION = 25.0
UNLIMITED = RunLimits(float("inf"), float("inf"))

Record = dict[str, Any]


def run_reproduce(
    names: Sequence[str],
    out: Path,
    *,
    replications: int,
    seed: int,
    jobs: int,
    data: Path | None,
    console: Console,
    again: bool = False,
    force: bool = False,
) -> int:
    """Run, write, report; the number of cells that failed."""
    experiments = chosen(list(names), data is not None)
    fingerprint, notes, given = "", "", None
    if data is not None:
        fingerprint, given = tasks.read_given(data)
        notes = f" {given.n_samples} samples, {given.n_clusters} classes. {given.description}"
    options = Options(replications, seed, fingerprint)
    settings = ["--replications", str(replications), "--seed", str(seed), "--jobs", str(jobs)]
    settings += ["--data", str(data)] if data is not None else []
    started = time.perf_counter()
    grids = {e.name: e.cells(options) for e in experiments}
    cells = {cell.key: cell for grid in grids.values() for cell in grid}
    with claimed(out, KIND, force=force, goes_on=True) as place:
        place.check([MANIFEST, *(f"{experiment.name}.csv" for experiment in experiments)])
        place.begin()
        run = CellRun(cells, RunStore(place.path), jobs, console, given)
        with scratch() as folder:
            run.carry_out(folder, again)
        with place.replacing(keep=True) as new:
            entries: list[dict[str, Any]] = []
            for experiment in experiments:
                tables = tables_of(experiment, grids[experiment.name], run.records)
                for name, content in tables.items():
                    (new / name).write_bytes(content)
                words = ["manyview", "reproduce", experiment.name, "--out", str(out), *settings]
                entry = entry_of(experiment, grids[experiment.name], run.records, list(tables))
                entry["about"] += notes if experiment.needs_data else ""
                entries.append(entry | {"command": shlex.join(words), "replications": replications})
            (new / MANIFEST).write_bytes(manifest_of(place.path, new, entries))
    failed = [r["reason"] for r in run.records.values() if r["status"] != "ok"]
    for reason in sorted(set(failed))[:5]:
        run.say(f"failed: {escape(reason)}")
    work = sum(record.get("cpu_seconds", 0.0) for record in run.records.values())
    minutes = (time.perf_counter() - started) / 60
    run.say(
        f"{len(cells) - len(failed)} of {len(cells)} cells finished; {minutes:.1f} min now, "
        f"{work / 60:.1f} min of processor time in all."
    )
    return len(failed)


# --- Run ---


@dataclass
class CellRun:
    """The cells of some experiments by key, and the records of those that have ended.

    Only finished cells are stored: what failed is tried again. ``given`` are the user's own data.
    """

    cells: dict[str, Cell]
    store: RunStore
    n_jobs: int
    console: Console
    given: Dataset | None = None

    def __post_init__(self) -> None:
        self.records: dict[str, Record] = {}

    def say(self, text: str) -> None:
        self.console.print(text, highlight=False)

    def carry_out(self, folder: Path, again: bool = False) -> None:
        """Run what is not stored; with ``again``, also what other code than this has made."""
        self._read(again)
        left = {key: cell for key, cell in self.cells.items() if key not in self.records}
        with self._progress(left) as advance:
            for alone in (False, True):
                waiting = [cell for cell in left.values() if cell.alone == alone]
                # A process that dies must not fail the cells it had not begun: those are tried once
                # more, each in a process of its own.
                for size in (PORTION, 0.0):
                    portions = portioned(waiting, size, self.given)
                    jobs, waiting = 1 if alone else self.n_jobs, []
                    with closing(run_tasks(portions, folder, jobs, UNLIMITED)) as ended:
                        for portion, place, record in ended:
                            cell = portion.cells[place]
                            if record.get("untried") and size:
                                waiting.append(cell)
                                continue
                            self.records[cell.key] = record
                            if record["status"] == "ok":
                                about = {"task": cell.task, "settings": dict(cell.settings)}
                                self.store.write(cell.key, about | record)
                            advance(cell)

    def _read(self, again: bool) -> None:
        """Read the records that need not be made; say how many, and how many are of other code."""
        for key in self.cells:
            stored = self.store.read(key)
            if stored is not None and isinstance(stored.get("tables"), dict):
                self.records[key] = stored
        others = [
            key for key, record in self.records.items()
            if code_of(record) != code()
        ]  # fmt: skip
        for key in others if again else ():
            del self.records[key]
        if self.records:
            n, of = len(self.records), len(self.cells)
            self.say(f"{n} of {of} cells are stored already and not run again.")
        if others and again:
            self.say(f"{len(others)} stored cells made by other code than this are run again.")
        elif others:
            self.say(
                f"{len(others)} of them were made by other code than this, or do not say by which; "
                "with --again these are run again."
            )

    @contextmanager
    def _progress(self, left: dict[str, Cell]) -> Iterator[Callable[[Cell], None]]:
        """A bar in seconds of expected work, so that the time left is not fooled by cheap cells."""

        def share(cell: Cell) -> float:  # alone, a cell keeps all the other processes waiting
            return cell.cost * (self.n_jobs if cell.alone else 1)

        columns = (
            TextColumn("{task.fields[done]}/{task.fields[cells]} cells"), BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"), TimeElapsedColumn(), TextColumn("left"),
            TimeRemainingColumn(), TextColumn("{task.description}", markup=False),
        )  # fmt: skip
        if not left:
            yield lambda cell: None
            return
        with Progress(*columns, console=self.console, speed_estimate_period=1200) as bar:
            total = sum(map(share, left.values()))
            task = bar.add_task("starting", total=total, done=0, cells=len(left))

            def advance(cell: Cell) -> None:
                done, before = bar.tasks[0].fields["done"] + 1, bar.tasks[0].percentage
                words = [str(cell.labels[k]) for k in ("dataset", "method") if k in cell.labels]
                bar.update(task, advance=share(cell), done=done, description=" ".join(words))
                percent = bar.tasks[0].percentage
                # A log file gets a line now and then instead of a bar.
                if not self.console.is_terminal and percent // 10 > before // 10:
                    self.say(f"{done} of {len(left)} cells, {percent:.0f}%")

            yield advance


@dataclass(frozen=True)
class Portion:
    """Cells that share a process; ``runs`` are their places in it."""

    function: ClassVar[str] = "manyview.paper.command.answer"
    #: Dense algebra on several threads would take the processors of the other portions.
    threads: ClassVar[bool] = False

    cells: tuple[Cell, ...]
    #: The user's own data, where a cell may need them.
    given: Dataset | None = None

    @property
    def runs(self) -> tuple[int, ...]:
        return tuple(range(len(self.cells)))

    def packed(self, folder: Path) -> bytes:
        cells = [(cell.task, dict(cell.settings)) for cell in self.cells]
        return pickle.dumps({"cells": cells, "given": self.given})


def answer(job: dict[str, Any], tell: Callable[..., None]) -> None:
    """In the child process: carry out the cells of a portion one by one and send the rows of each."""
    tasks.GIVEN = job["given"]
    for task, settings in job["cells"]:
        tell(event="started")
        took, used = time.perf_counter(), time.process_time()
        try:
            with warnings.catch_warnings(action="ignore"):
                # these are for callers of a method, not for a grid
                tables = tasks.TASKS[task](**settings)
        except Exception as error:
            tell(event="result", status="failed", reason=reason_of(error))
        else:
            took, used = time.perf_counter() - took, time.process_time() - used
            about = {"cell_seconds": took, "cpu_seconds": used, "finished": now()}
            about |= {"code": code(), "machine": machine()}
            tell(event="result", status="ok", tables=tables, **about)


def portioned(
    cells: Sequence[Cell], size: float = PORTION, given: Dataset | None = None
) -> list[Portion]:
    """Cells by about ``size`` seconds; dear ones first, so that all end together."""
    portions: list[list[Cell]] = []
    # Cells of the same data next to each other: a process then loads them once.
    for cell in sorted(cells, key=lambda cell: str(cell.settings.get("dataset"))):
        if portions and sum(other.cost for other in portions[-1]) + cell.cost <= size:
            portions[-1].append(cell)
        else:
            portions.append([cell])
    portions.sort(key=lambda portion: -sum(cell.cost for cell in portion))
    return [Portion(tuple(portion), given) for portion in portions]


# --- Write ---


def tables_of(
    experiment: Experiment, cells: Sequence[Cell], records: Mapping[str, Any]
) -> dict[str, bytes]:
    """One CSV per table of the experiment, rows in the order of the grid.

    The column "cell" is the name of the file in runs/ that a row comes from.
    """
    tables: dict[str, list[tasks.Row]] = {}
    made_with = "; ".join(f"{name} {version}" for name, version in versions().items())
    for cell in cells:
        record = records.get(cell.key, {})
        if record.get("status") != "ok":
            continue
        last = {name: record[name] for name in TIMES} | {"cell": cell.key}
        last["versions"] = f"{made_with}; code {code_of(record)}"
        for name, rows in record["tables"].items():
            for row in map(dict, rows):
                # All parameters where a row has them, not only those that a cell sets.
                params = {"params": row.pop("params")} if "params" in row else {}
                settings = json.dumps({**cell.settings, **params}, sort_keys=True)
                whole = {**cell.labels, **row, "settings": settings, **last}
                tables.setdefault(name, []).append(whole)
    return {
        f"{experiment.name}{'-' if name else ''}{name}.csv": csv_of_dicts(rows)
        for name, rows in tables.items()
    }


def entry_of(
    experiment: Experiment,
    cells: Sequence[Cell],
    records: Mapping[str, Any],
    files: Sequence[str],
) -> dict[str, Any]:
    """What the manifest says of an experiment and how it was made."""
    states = [(cell, records.get(cell.key, {})) for cell in cells]
    finished = [state for _, state in states if state.get("status") == "ok"]
    reasons = [state["reason"] for _, state in states if state.get("status") != "ok"]
    # Runs of every method, or of whatever else distinguishes the cells.
    runs: Counter[str] = Counter()
    for cell, state in states:
        about = {k: v for k, v in cell.labels.items() if k not in ("run", "seed")}
        n = len(cell.settings.get("seeds", (0,)))
        runs[f"{cell.task} {about}"] += n * (state.get("status") == "ok")
    made_by = Counter(map(code_of, finished)).most_common()
    machines = sorted({state["machine"]["processor"] for state in finished if "machine" in state})
    return {
        "name": experiment.name,
        "title": experiment.title,
        "about": experiment.about,
        "files": files,
        "cells": len(cells),
        "runs": {"least": min(runs.values(), default=0), "most": max(runs.values(), default=0)},
        **{name: sum(state.get(name, 0.0) for state in finished) for name in TIMES},
        "failed": len(reasons),
        "reasons": sorted(set(reasons))[:5],
        "code": "; ".join(f"{name} ({n} cells)" for name, n in made_by),
        "versions": {"python": platform.python_version(), **versions()},
        "machine": machine() | ({"processor": " and ".join(machines)} if machines else {}),
        "finished": max((state.get("finished", "") for state in finished), default="") or now(),
    }


def manifest_of(out: Path, new: Path, entries: list[dict[str, Any]]) -> bytes:
    """What was run, added to what an earlier run of other experiments has left in the folder ``out``.

    ``new`` holds the tables that are to be put there.
    """
    try:
        earlier = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        earlier = {}
    ours = isinstance(earlier, dict) and earlier.get("format") == FORMAT
    known = {e["name"]: e for e in (*(earlier["experiments"] if ours else ()), *entries)}
    order = [*EXPERIMENTS, *known]
    all_ = sorted(known.values(), key=lambda entry: order.index(entry["name"]))
    # Processor time of all cells behind the tables; one that several experiments show counts once.
    seconds = {
        row["cell"]: float(row["cpu_seconds"])
        for name in {file for entry in all_ for file in entry["files"]}
        for row in read_csv(new / name if (new / name).exists() else out / name)
    }
    # One command for all experiments of the same settings; several are joined by &&.
    commands: dict[tuple[str, ...], list[str]] = {}
    for entry in all_:
        words = shlex.split(entry["command"])
        commands.setdefault(tuple(words[3:]), []).append(words[2])
    joined = []
    for settings, some in commands.items():
        needed = {e.name for e in EXPERIMENTS.values() if "--data" in settings or not e.needs_data}
        wanted = ["all"] if set(some) == needed else some
        joined.append(shlex.join(["manyview", "reproduce", *wanted, *settings]))
    manifest = {
        "format": FORMAT,
        "finished": now(),
        "command": " && ".join(joined),
        "cpu_seconds": sum(seconds.values()),
        "experiments": all_,
    }
    return json.dumps(manifest, indent=1, ensure_ascii=False).encode()
