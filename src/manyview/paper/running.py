"""Run the cells that are not stored yet, a few at a time in child processes, and store each as it ends."""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from manyview.app.compare.runs import Store
from manyview.app.processes import Limits, reason_of, run_tasks
from manyview.datasets import Dataset

from . import tasks
from .experiments import ALONE, SLOW, TOGETHER, Cell
from .provenance import code, code_of, machine, now

#: Seconds of work given to a process at a time: starting one takes about two.
PORTION = 25.0
UNLIMITED = Limits(float("inf"), float("inf"))

Record = dict[str, Any]


@dataclass(frozen=True)
class Portion:
    """Cells that share a process; ``runs`` are their places in it."""

    function: ClassVar[str] = "manyview.paper.running.answer"

    cells: tuple[Cell, ...]
    #: The user's own data, where a cell may need them.
    given: Dataset | None = None
    #: Where fits that cells share are written.
    fits: Path | None = None

    @property
    def runs(self) -> tuple[int, ...]:
        return tuple(range(len(self.cells)))

    @property
    def threads(self) -> bool:
        """Whether it may use the cores that are left: the slow ones are few, and dense algebra."""
        return self.cells[0].phase == SLOW

    def packed(self, folder: Path) -> bytes:
        cells = [(cell.task, dict(cell.settings)) for cell in self.cells]
        return pickle.dumps({"cells": cells, "given": self.given, "fits": self.fits})


def answer(job: dict[str, Any], tell: Callable[..., None]) -> None:
    """In the child process: carry out the cells of a portion one by one and tell the rows of each."""
    tasks.GIVEN, tasks.FITS = job["given"], job["fits"]
    made_by = {"code": code(), "machine": machine()}
    for task, settings in job["cells"]:
        tell(event="started")
        took, used = time.perf_counter(), time.process_time()
        try:
            with (
                warnings.catch_warnings()
            ):  # warnings are for those who call a method, not for a grid
                warnings.simplefilter("ignore")
                tables = tasks.TASKS[task](**settings)
        except Exception as error:
            tell(event="result", status="failed", reason=reason_of(error))
        else:
            took, used = time.perf_counter() - took, time.process_time() - used
            times = {"cell_seconds": took, "cpu_seconds": used, "finished": now()}
            tell(event="result", status="ok", tables=tables, **times, **made_by)


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    folder: Path,
    n_jobs: int,
    console: Console,
    *,
    again: bool = False,
    given: Dataset | None = None,
) -> dict[str, Record]:
    """Records by key of every cell. Only finished cells are stored: what failed is tried again.

    With ``again``, so are cells stored by other code than this. ``given`` are the user's own data.
    """
    wanted = {cell.key: cell for cell in cells}
    records = _stored(wanted, store, again, console)
    left = {key: cell for key, cell in wanted.items() if key not in records}
    with _progress(left, n_jobs, console) as advance:
        for phase in (TOGETHER, ALONE, SLOW):
            waiting = [cell for cell in left.values() if cell.phase == phase]
            # A process that dies must not fail the cells it had not begun: those are tried once
            # more, every group in a process of its own.
            for size in (PORTION, 0.0):
                portions = portioned(waiting, size, given, store.folder)
                jobs = {ALONE: 1, SLOW: min(n_jobs, max(len(portions), 1))}.get(phase, n_jobs)
                waiting = []
                with closing(run_tasks(portions, folder, jobs, UNLIMITED)) as ended:
                    for portion, place, record in ended:
                        cell = portion.cells[place]
                        if record.get("untried") and size:
                            waiting.append(cell)
                            continue
                        records[cell.key] = record
                        if record["status"] == "ok":
                            about = {"task": cell.task, "settings": dict(cell.settings)}
                            store.write(cell.key, about | record)
                        advance(cell)
    _remove_fits(wanted, records, store)
    return records


def _stored(
    wanted: dict[str, Cell], store: Store, again: bool, console: Console
) -> dict[str, Record]:
    """Records that need not be made; says how many, and how many are of other code than this."""
    records: dict[str, Record] = {}
    for key in wanted:
        stored = store.read(key)
        if stored is not None and isinstance(stored.get("tables"), dict):
            records[key] = stored
    others = {key for key, record in records.items() if code_of(record) != code()}
    if again:
        records = {key: record for key, record in records.items() if key not in others}
    if records:
        said = f"{len(records)} of {len(wanted)} cells are stored already and not run again."
        console.print(said, highlight=False)
    if others:
        said = (
            f"{len(others)} stored cells made by other code than this are run again."
            if again
            else f"{len(others)} of them were made by other code than this, or do not say by which; "
            "with --again these are run anew."
        )
        console.print(said, highlight=False)
    return records


def _remove_fits(wanted: dict[str, Cell], records: dict[str, Record], store: Store) -> None:
    """Fits that no cell waits for any more."""
    waiting = {c.group for key, c in wanted.items() if records[key]["status"] != "ok"}
    done = {c.group: c.settings for c in wanted.values() if c.group and c.group not in waiting}
    if store.folder is not None:
        for settings in done.values():
            tasks.remove_fit(store.folder, settings)


def portioned(
    cells: Sequence[Cell],
    size: float = PORTION,
    given: Dataset | None = None,
    fits: Path | None = None,
) -> list[Portion]:
    """Cells by about ``size`` seconds, groups whole; dear ones first, so that all end together."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.group or cell.key, []).append(cell)
    # Cells of the same data next to each other: a process then loads them once.
    ordered = sorted(groups.values(), key=lambda g: str(g[0].settings.get("dataset")))
    portions: list[list[Cell]] = []
    for members in ordered:
        total = sum(cell.cost for cell in (*(portions[-1] if portions else ()), *members))
        if portions and total <= size:
            portions[-1] += members
        else:
            portions.append(list(members))
    return sorted(
        (Portion(tuple(portion), given, fits) for portion in portions),
        key=lambda portion: -sum(cell.cost for cell in portion.cells),
    )


@contextmanager
def _progress(
    left: dict[str, Cell], n_jobs: int, console: Console
) -> Iterator[Callable[[Cell], None]]:
    """A bar in seconds of expected work, so that the time left is not fooled by cheap cells."""
    if not left:
        yield lambda cell: None
        return
    columns = (
        TextColumn("{task.fields[done]}/{task.fields[cells]} cells"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    total = sum(_share(cell, n_jobs) for cell in left.values())
    with Progress(*columns, console=console, speed_estimate_period=1200) as bar:
        task = bar.add_task("starting", total=total, done=0, cells=len(left))

        def advance(cell: Cell) -> None:
            done = bar.tasks[0].fields["done"] + 1
            said = " ".join(str(cell.labels[k]) for k in ("dataset", "method") if k in cell.labels)
            before = bar.tasks[0].percentage
            bar.update(task, advance=_share(cell, n_jobs), done=done, description=said)
            # A log file gets a line now and then instead of a bar.
            if not console.is_terminal and bar.tasks[0].percentage // 10 > before // 10:
                percent = bar.tasks[0].percentage
                console.print(f"{done} of {len(left)} cells, {percent:.0f}%", highlight=False)

        yield advance


def _share(cell: Cell, n_jobs: int) -> float:
    """Time a cell takes from the whole: alone, it keeps all the other processes waiting."""
    return cell.cost * (n_jobs if cell.phase == ALONE else 1)
