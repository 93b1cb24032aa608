"""All runs of a comparison: which are stored, which are too costly, which are still to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import get_tags

from manyview._types import Array, Views
from manyview._version import __version__
from manyview.baselines import NEMO, SNF
from manyview.baselines.cost import duration
from manyview.io import checksum
from manyview.io.writing import scratch
from manyview.methods.protocols import Relabels, TellsCost

from .methods import Method, settings_of
from .processes import (
    Limits,
    Pool,
    Task,
    not_tried,
    run_tasks,
)
from .store import Store, key_of
from .worker import reason_of, save_views

Record = dict[str, Any]


@dataclass
class Plan:
    """All runs of a comparison, and what is known of each."""

    data: Views
    truth: Array | None
    methods: Sequence[Method]
    seeds: Sequence[int]
    limits: Limits

    def __post_init__(self) -> None:
        self.records: dict[tuple[str, int], Record] = {}
        self.keys: dict[tuple[str, int], str] = {}
        self._negative = any(X.min() < 0 for X in self.data.matrices)
        self.data_key = checksum.of_arrays(self.data.matrices, self.data.names)

    def carry_out(self, store: Store, n_jobs: int, progress: bool) -> dict[tuple[str, int], Record]:
        """Run what is not stored, store what is run."""
        cost_keys = [self._prepare(method, store) for method in self.methods]
        others = store.n_others([*self.keys.values(), *cost_keys])
        with (
            scratch() as folder,
            closing(Pool(folder, n_jobs)) as pool,
            progress_bar(progress, len(self.records), len(self.keys), others) as advance,
        ):
            pool.start(len(self.keys) - len(self.records))
            save_views(self.data, folder)
            if self.truth is not None:
                np.save(folder / "y.npy", self.truth)
            # First runs first: a method that cannot do one within the limits is not asked again.
            for first in (True, False):
                tasks = [task for m in self.methods for task in self._tasks(m, first)]
                with closing(run_tasks(tasks, folder, n_jobs, self.limits, pool)) as ended:
                    for task, run, record in ended:
                        place = task.method, run
                        record["shifted"] = task.shift
                        self.records[place] = record
                        if _lasting(record):
                            about = {"method": task.method, "run": run}
                            store.write(self.keys[place], about | record)
                        advance(task.method)
                for method in self.methods:
                    self._skip_after_limit(method)
        return self.records

    def _prepare(self, method: Method, store: Store) -> str:
        """Keys of a method's runs; records of those stored, unmakeable or too costly."""
        settings, model, unmade = None, None, None
        try:
            model = method.make(self.seeds[0])
            settings = _without_seed(settings_of(model))
        except Exception as error:
            unmade = unmakeable(error)
        oracle = method.oracle and self.truth is not None
        seen = checksum.of_arrays([self.truth]) if oracle and self.truth is not None else None
        base = [self.data_key, settings, seen, versions()]
        for run, seed in enumerate(self.seeds):
            place = method.name, run
            self.keys[place] = key_of("run", *base, seed)
            stored = None if unmade else store.read(self.keys[place])
            if unmade:
                self.records[place] = unmade
            elif stored is not None and self._still_holds(stored):
                self.records[place] = stored
        cost_key = key_of("cost", *base)
        if isinstance(model, TellsCost) and not self._any_ok(method):
            reason = self._too_costly(model, cost_key, store)
            for run in range(len(self.seeds)) if reason else ():
                self.records[method.name, run] = {"status": "skipped", "reason": reason}
        self._skip_after_limit(method)
        return cost_key

    def _still_holds(self, stored: Record) -> bool:
        """Whether a stored run is whole; one ended by a limit is tried again under a wider one."""
        if stored.get("status") == "ok":
            return len(stored.get("labels", ())) == self.data.n_samples
        then = stored.get("limits")
        return then is not None and (
            self.limits.seconds <= then["max_seconds"] and self.limits.memory <= then["max_memory"]
        )

    def _any_ok(self, method: Method) -> bool:
        runs = range(len(self.seeds))
        return any(self.records.get((method.name, r), {}).get("status") == "ok" for r in runs)

    def _too_costly(self, model: TellsCost, key: str, store: Store) -> str:
        stored = store.read(key)  # measured on the machine, so kept: a resumed table says the same
        if stored is None:
            try:
                cost = model.estimate_cost(self.data.n_samples, len(self.data))
                stored = {name: float(cost[name]) for name in ("seconds", "bytes")}
            except Exception:  # what is wrong with the method, its own run will say in its row
                return ""
            store.write(key, stored)
        cost = stored
        gib = cost["bytes"] / 2**30
        over = []
        if cost["seconds"] > self.limits.seconds:
            over.append(
                f"about {duration(cost['seconds'])}, above max_seconds={self.limits.seconds:g} "
                f"({duration(self.limits.seconds)})"
            )
        if gib > self.limits.memory:
            over.append(f"about {gib:.1f} GiB, above max_memory={self.limits.memory:g} GiB")
        return f"a run is estimated to take {' and '.join(over)}" if over else ""

    def _skip_after_limit(self, method: Method) -> None:
        first = self.records.get((method.name, 0), {})
        if "limits" not in first:
            return
        for run in range(1, len(self.seeds)):
            self.records.setdefault((method.name, run), not_tried(first["reason"]))

    def _tasks(self, method: Method, first: bool) -> list[Task]:
        """What is still to run: with ``first`` the first run, and all of a method that relabels."""
        models = {}
        for run, seed in enumerate(self.seeds):
            if (method.name, run) not in self.records:
                try:
                    models[run] = method.make(seed)
                except Exception as error:
                    self.records[method.name, run] = unmakeable(error)
        missing = list(models)
        if not missing:
            return []
        relabels = isinstance(models[missing[0]], Relabels)
        groups = [tuple(missing)] if relabels else [(run,) for run in missing]
        oracle = method.oracle and self.truth is not None
        return [
            Task(
                method.name,
                runs,
                tuple(self.seeds[run] for run in runs),
                models[runs[0]],
                with_truth=oracle,
                relabel=relabels,
                threads=_is_dense_algebra(models[runs[0]]),
                shift=self._negative and takes_none(models[runs[0]]),
            )
            for runs in groups
            if relabels or not first or runs[0] == 0
        ]


def _is_dense_algebra(model: Any) -> bool:
    """Whether a method is nothing but large dense algebra, which is faster on several threads.

    Those that tell their cost are, but for two whose products are sparse.
    """
    return isinstance(model, TellsCost) and not isinstance(model, SNF | NEMO)


def takes_none(model: Any) -> bool:
    """Whether an estimator says, by its tags, that it takes no negative numbers."""
    try:
        return bool(get_tags(model).input_tags.positive_only)
    except Exception:  # somebody's own class, which has none
        return False


def _lasting(record: Record) -> bool:
    """Whether a record is kept. Failures are tried again: their cause may be mended, or have passed."""
    return record["status"] == "ok" or "limits" in record


def unmakeable(error: Exception) -> Record:
    return {"status": "failed", "reason": f"it could not be made: {reason_of(error)}"}


def _without_seed(settings: Any) -> Any:
    """The seed is in the key of a run already; without it a method's settings are the same for all."""
    if isinstance(settings, list) and len(settings) == 2 and isinstance(settings[1], list):
        kind, params = settings
        if params[:1] == ["dict"]:
            return [kind, [pair for pair in params[1] if pair[0] != "random_state"]]
    return settings


def versions() -> dict[str, str]:
    import scipy
    import sklearn

    found = {"manyview": __version__, "numpy": np.__version__, "scipy": scipy.__version__}
    return found | {"scikit-learn": sklearn.__version__}


@contextmanager
def progress_bar(
    wanted: bool, n_done: int, n_total: int, n_others: int
) -> Iterator[Callable[[str], None]]:
    """Yields what to call when a run of a method has ended."""
    if wanted:
        try:
            from rich.console import Console
            from rich.markup import escape
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
        except ModuleNotFoundError:
            wanted = False
    if not wanted:
        yield lambda method: None
        return
    console = Console(stderr=True)
    if n_others:
        console.print(
            f"{n_others} stored runs belong to other data or settings and are left alone.",
            highlight=False,
        )
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("runs", total=n_total, completed=n_done)

        def advance(method: str) -> None:
            done = min(bar.tasks[0].completed + 1, n_total)
            # The name as it is: rich would take [brackets] for markup.
            bar.update(task, completed=done, description=escape(f"{method} done"))

        yield advance
