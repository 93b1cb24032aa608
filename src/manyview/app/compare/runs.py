"""The runs of a comparison: which are stored, too costly or still to do; and one run, in its process."""

from __future__ import annotations

import json
import pickle
import random
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils import get_tags

from manyview._types import Array, Matrix, Views
from manyview._version import __version__
from manyview.app.processes import (
    Pool,
    RunLimits,
    not_tried,
    peak_memory_mb,
    reason_of,
    run_tasks,
    sent,
)
from manyview.base import MultiViewEstimator
from manyview.baselines import NEMO, SNF, CostWarning
from manyview.baselines.mlrssc import duration
from manyview.baselines.wrappers import BestSingleView
from manyview.engines.numpy.presence import has_nan, present_rows
from manyview.io import checksum
from manyview.io.writing import claimed, scratch, write_whole

from .methods import Method, settings_of

Record = dict[str, Any]
#: Raised when the fields of a record change their meaning; older files are then ignored.
FORMAT = 1
#: What the folder of a comparison is called there; its results are replaced, its runs kept.
KIND = "compare"
#: Distinct warnings of a fit that are kept as its remark.
MAX_REMARKS = 3


class RunStore:
    """Records of finished runs by key, in ``out/runs/KEY.json``, or in memory without ``out``."""

    def __init__(self, out: Path | None):
        self.folder = None if out is None else out / "runs"
        self._memory: dict[str, dict[str, Any]] = {}
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    def read(self, key: str) -> dict[str, Any] | None:
        if key in self._memory or self.folder is None:
            return self._memory.get(key)
        try:
            record = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):  # absent, or damaged by something else: run again
            return None
        if not isinstance(record, dict) or record.get("key") != key:
            return None
        self._memory[key] = record
        return record

    def write(self, key: str, record: dict[str, Any]) -> None:
        record = {"key": key, **record}
        self._memory[key] = record
        if self.folder is not None:
            text = json.dumps(record)
            write_whole(self.folder / f"{key}.json", text.encode())


def key_of(*parts: Any) -> str:
    """A file name for whatever decides a result."""
    text = json.dumps([FORMAT, *parts], sort_keys=True)
    return checksum.of_bytes(text.encode())[:32]


@dataclass(frozen=True)
class Task:
    """Runs that share one process: one, or several of a method that can relabel its fit."""

    function: ClassVar[str] = "manyview.app.compare.runs.fit_all"

    method: str
    runs: tuple[int, ...]
    seeds: tuple[int, ...]
    estimator: Any
    with_truth: bool = False
    relabel: bool = False
    #: Whether BLAS may use its threads; only where a method is nothing but large dense algebra.
    threads: bool = False
    #: Whether features are moved to start at 0 first: the method takes no negative numbers.
    shift: bool = False
    #: The subfolder of its dataset.
    data: str = ""

    def packed(self, folder: Path) -> bytes:
        return pickle.dumps((replace(self, estimator=sent(self.estimator)), folder / self.data))


@dataclass
class Plan:
    """All runs on one dataset, and what is known of each."""

    data: Views
    truth: Array | None
    methods: Sequence[Method]
    seeds: Sequence[int]
    limits: RunLimits
    #: The request, for the reader.
    settings: dict[str, Any]
    #: The samples' names, or their numbers.
    ids: list[Any]

    def __post_init__(self) -> None:
        self.records: dict[tuple[str, int], Record] = {}
        self.keys: dict[tuple[str, int], str] = {}
        self._negative = any(
            (X.min() if sp.issparse(X) else np.nanmin(X)) < 0 for X in self.data.matrices
        )
        self._missing = any(has_nan(X) for X in self.data.matrices)
        self.data_key = checksum.of_arrays(self.data.matrices, self.data.names)

    def prepare(self, store: RunStore) -> None:
        """Find the runs that are stored, cannot be made or cost too much."""
        for method in self.methods:
            self._prepare(method, store)

    def write(self, folder: Path) -> None:
        """Write the dataset for the processes."""
        folder.mkdir()
        save_views(self.data, folder)
        if self.truth is not None:
            np.save(folder / "y.npy", self.truth)

    def tasks(self, first: bool, data: str) -> list[Task]:
        """What is still to run: with ``first`` the first run, and all of a method that relabels."""
        for method in self.methods:
            self._skip_after_limit(method)
        return [task for method in self.methods for task in self._tasks(method, first, data)]

    def take(self, task: Task, run: int, record: Record, store: RunStore) -> None:
        """Keep the record of a run that has ended."""
        record["shifted"] = task.shift
        self.records[task.method, run] = record
        # Failures are tried again: their cause may be mended, or have passed.
        if record["status"] == "ok" or "limits" in record:
            store.write(self.keys[task.method, run], {"method": task.method, "run": run} | record)

    def _prepare(self, method: Method, store: RunStore) -> None:
        """Keys of a method's runs; records of those stored, unmakeable or too costly."""
        settings, model, unmade = None, None, None
        try:
            model = method.make(self.seeds[0])
            settings = settings_of(model)
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
        ours = isinstance(model, MultiViewEstimator)
        if self._missing and ours and not get_tags(model).input_tags.allow_nan:
            record = {"status": "not applicable", "reason": "it needs complete views"}
            self.records |= {(method.name, run): record for run in range(len(self.seeds))}
        elif hasattr(model, "estimate_cost") and not any(
            self.records.get((method.name, run), {}).get("status") == "ok"
            for run in range(len(self.seeds))
        ):
            reason = self._too_costly(model, key_of("cost", *base), store)
            for run in range(len(self.seeds)) if reason else ():
                self.records[method.name, run] = {"status": "skipped", "reason": reason}

    def _still_holds(self, stored: Record) -> bool:
        """Whether a stored run is whole; one ended by a limit is tried again under a wider one."""
        if stored.get("status") == "ok":
            return len(stored.get("labels", ())) == self.data.n_samples
        then = stored.get("limits")
        return then is not None and (
            self.limits.seconds <= then["max_seconds"] and self.limits.memory <= then["max_memory"]
        )

    def _too_costly(self, model: Any, key: str, store: RunStore) -> str:
        stored = store.read(key)  # measured on the machine, so kept: a resumed table says the same
        if stored is None:
            try:
                cost = model.estimate_cost(self.data.n_samples, len(self.data))
                stored = {name: float(cost[name]) for name in ("seconds", "bytes")}
            except Exception:  # what is wrong with the method, its own run will say in its row
                return ""
            store.write(key, stored)
        gib = stored["bytes"] / 2**30
        over = []
        if stored["seconds"] > self.limits.seconds:
            over.append(
                f"about {duration(stored['seconds'])}, above max_seconds={self.limits.seconds:g} "
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

    def _tasks(self, method: Method, first: bool, data: str) -> list[Task]:
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
        relabels = hasattr(models[missing[0]], "relabel")
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
                data=data,
            )
            for runs in groups
            if relabels or not first or runs[0] == 0
        ]


def carry_out(plans: Sequence[Plan], out: str | Path | None, n_jobs: int, progress: bool) -> None:
    """Run what is not stored, store what is run: all datasets by the same processes."""
    with ExitStack() as stack:
        store = RunStore(None)
        if out is not None:
            place = stack.enter_context(claimed(out, KIND, mixed=True))
            place.begin()
            store = RunStore(place.path)
        for plan in plans:
            plan.prepare(store)
        done, total = (sum(len(getattr(p, part)) for p in plans) for part in ("records", "keys"))
        folder = stack.enter_context(scratch())
        pool = stack.enter_context(closing(Pool(folder, n_jobs)))
        bar = progress_bar(progress, done, total)
        advance = stack.enter_context(bar)
        pool.start(total - done)
        # Large datasets first: the last process to end should not be the longest.
        by_size = sorted(plans, key=lambda plan: -sum(X.size for X in plan.data.matrices))
        named = {str(i): plan for i, plan in enumerate(by_size)}
        for name, plan in named.items():
            plan.write(folder / name)
        # First runs first: a method that cannot do one within the limits is not asked again.
        for first in (True, False):
            tasks = [task for name, plan in named.items() for task in plan.tasks(first, name)]
            limits = plans[0].limits
            with closing(run_tasks(tasks, folder, n_jobs, limits, pool)) as ended:
                for task, run, record in ended:
                    named[task.data].take(task, run, record, store)
                    advance(task.method)


def _is_dense_algebra(model: Any) -> bool:
    """Whether a method is nothing but large dense algebra, which is faster on several threads.

    Those that tell their cost are, but for two whose products are sparse.
    """
    return hasattr(model, "estimate_cost") and not isinstance(model, SNF | NEMO)


def takes_none(model: Any) -> bool:
    """Whether an estimator says, by its tags, that it takes no negative numbers."""
    try:
        return bool(get_tags(model).input_tags.positive_only)
    except Exception:  # a user's own class, which has none
        return False


def unmakeable(error: Exception) -> Record:
    return {"status": "failed", "reason": f"it could not be made: {reason_of(error)}"}


def versions() -> dict[str, str]:
    import scipy
    import sklearn

    found = {"manyview": __version__, "numpy": np.__version__, "scipy": scipy.__version__}
    return found | {"scikit-learn": sklearn.__version__}


@contextmanager
def progress_bar(wanted: bool, n_done: int, n_total: int) -> Iterator[Callable[[str], None]]:
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
    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("runs", total=n_total, completed=n_done)

        def advance(method: str) -> None:
            done = min(bar.tasks[0].completed + 1, n_total)
            # The name as it is: rich would take [brackets] for markup.
            bar.update(task, completed=done, description=escape(f"{method} done"))

        yield advance


# In the child process -------------------------------------------------------------------------


def fit_all(job: tuple[Task, Path], tell: Callable[..., None]) -> None:
    """Answer every seed of one method by its labels, times and scores."""
    (task, folder), done = job, 0
    try:
        views = load_views(folder)
        y = np.load(folder / "y.npy") if task.with_truth else None
        for labels, found in _fits(task, views, y, tell):
            tell(event="fitted")
            tell(event="result", status="ok", labels=labels.tolist(), **found)
            done += 1
    except Exception as error:
        for _ in task.seeds[done:]:
            tell(event="result", status="failed", reason=reason_of(error))


def _fits(
    task: Task, views: Views, y: Array | None, tell: Any
) -> Iterator[tuple[Array, dict[str, Any]]]:
    """Fit once per seed; a method with ``relabel`` is fitted once and relabeled for every seed."""
    model = pickle.loads(task.estimator)
    data = dict(zip(views.names, views.matrices, strict=True))
    if task.shift:
        data = {name: from_zero(X) for name, X in data.items()}
    # A method that draws from the global generators gives the same whatever was run before it.
    random.seed(task.seeds[0])
    np.random.seed(task.seeds[0])  # noqa: NPY002
    tell(event="started")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = time.perf_counter()
        labels = model.fit_predict(data) if y is None else model.fit_predict(data, y)
        whole = time.perf_counter() - started
    found: dict[str, Any] = {
        "seconds": whole,
        "peak_memory_mb": peak_memory_mb(),
        "remark": _remark(model, caught),
    }
    first_cut = 0.0
    for r, seed in enumerate(task.seeds):
        if task.relabel:
            if r > 0:
                tell(event="started")
            started = time.perf_counter()
            labels = model.relabel(seed)
            cut = time.perf_counter() - started
            first_cut = first_cut or cut
            # What this run would have taken alone: the shared fit, and its own k-means.
            found = found | {"seconds": max(whole - first_cut, 0) + cut}
        yield _codes(labels, views.n_samples), found


def with_nan(views: Views) -> Views:
    """Sparse views that lack samples of others as dense ones: a sparse matrix holds no NaN."""
    matrices = list(views.matrices)
    for s, name in enumerate(views.names):
        if name in views.filled:
            whole = matrices[s].toarray().astype(float)
            whole[~present_rows(matrices[s])] = np.nan
            matrices[s] = whole
    return replace(views, matrices=tuple(matrices), filled={})


def load_views(folder: Path) -> Views:
    names = json.loads((folder / "names.json").read_text(encoding="utf-8"))
    matrices: list[Matrix] = []
    for s in range(len(names)):
        dense = folder / f"{s}.npy"
        matrices.append(np.load(dense) if dense.exists() else sp.load_npz(folder / f"{s}.npz"))
    return Views(tuple(matrices), tuple(names), (None,) * len(names))


def save_views(views: Views, folder: Path) -> None:
    (folder / "names.json").write_text(json.dumps(views.names), encoding="utf-8")
    for s, X in enumerate(views.matrices):
        if sp.issparse(X):
            sp.save_npz(folder / f"{s}.npz", X, compressed=False)
        else:
            np.save(folder / f"{s}.npy", X)


def from_zero(X: Matrix) -> Matrix:
    """Every feature that has negative numbers moved to start at 0."""
    least = X.min(axis=0).toarray() if sp.issparse(X) else np.fmin.reduce(X, axis=0)
    low = np.asarray(least).ravel()
    if not (low < 0).any():
        return X
    return (X.toarray() if sp.issparse(X) else np.asarray(X)) - np.minimum(low, 0)


def _remark(model: Any, caught: list[warnings.WarningMessage]) -> str:
    parts = []
    if isinstance(model, BestSingleView):
        parts.append(f"view {model.best_view_}, chosen by {model.chosen_by_}")
    # Costs are measured and so never the same twice; deprecations concern us, not the reader.
    unwanted = (CostWarning, DeprecationWarning, FutureWarning)
    texts = [
        " ".join(str(w.message).split()) for w in caught if not issubclass(w.category, unwanted)
    ]
    return "; ".join(parts + list(dict.fromkeys(texts))[:MAX_REMARKS])


def _codes(labels: Any, n_samples: int) -> Array:
    labels = np.asarray(labels)
    if labels.shape != (n_samples,):
        raise ValueError(f"it gave labels of shape {labels.shape} for {n_samples} samples")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("it gave labels that are NaN or infinite")
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)
