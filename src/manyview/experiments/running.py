"""Run the cells that are not stored yet, a few at a time, and store each as it ends."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ..comparison.processes import Limits, run_tasks
from ..comparison.store import Store
from .cells import ALONE, SLOW, TOGETHER, Cell

#: Seconds of work given to a process at a time: starting one takes about two.
PORTION = 25.0
UNLIMITED = Limits(float("inf"), float("inf"))

Record = dict[str, Any]


@dataclass(frozen=True)
class Portion:
    """Cells that share a process; ``runs`` are their places in it."""

    worker: ClassVar[str] = "manyview.experiments.worker"
    threads: ClassVar[bool] = False

    cells: tuple[Cell, ...]

    @property
    def runs(self) -> tuple[int, ...]:
        return tuple(range(len(self.cells)))

    def packed(self, folder: Path) -> bytes:
        cells = [(cell.task, dict(cell.settings)) for cell in self.cells]
        return pickle.dumps({"cells": cells, "folder": str(folder)})


def run_cells(
    cells: Sequence[Cell], store: Store, folder: Path, n_jobs: int, console: Console
) -> dict[str, Record]:
    """Records by key of every cell. Only finished cells are stored: what failed is tried again."""
    wanted = {cell.key: cell for cell in cells}
    records: dict[str, Record] = {}
    for key in wanted:
        stored = store.read(key)
        if stored is not None and isinstance(stored.get("tables"), dict):
            records[key] = stored
    left = {key: cell for key, cell in wanted.items() if key not in records}
    if records:
        console.print(
            f"{len(records)} of {len(wanted)} cells are stored already and not run again.",
            highlight=False,
        )
    with _progress(left, n_jobs, console) as advance:
        for phase in (TOGETHER, ALONE, SLOW):
            portions = portioned([cell for cell in left.values() if cell.phase == phase])
            jobs = 1 if phase == ALONE else n_jobs
            with closing(run_tasks(portions, folder, jobs, UNLIMITED)) as ended:
                for portion, place, record in ended:
                    cell = portion.cells[place]
                    records[cell.key] = record
                    if record["status"] == "ok":
                        about = {"task": cell.task, "settings": dict(cell.settings)}
                        store.write(cell.key, about | record)
                    advance(cell)
    return records


def portioned(cells: Sequence[Cell]) -> list[Portion]:
    """Cells by about `PORTION` seconds, groups whole; dear ones first, so that all end together."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.group or cell.key, []).append(cell)
    # Cells of the same data next to each other: a process then loads them once.
    ordered = sorted(groups.values(), key=lambda g: str(g[0].settings.get("dataset")))
    portions: list[list[Cell]] = []
    for members in ordered:
        total = sum(cell.cost for cell in (*(portions[-1] if portions else ()), *members))
        if portions and total <= PORTION:
            portions[-1] += members
        else:
            portions.append(list(members))
    return sorted(
        (Portion(tuple(portion)) for portion in portions),
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
