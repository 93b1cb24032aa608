"""The child process of a comparison: one fit, its time, its peak memory, its labels.

Started as a Python program that calls `main`, not by multiprocessing: scripts then need no
``if __name__ == "__main__"``. Jobs come in by stdin, events go out by stdout as lines of JSON. The
function that is named with a job does it: `fit_all` for a comparison, other grids have their own.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pickle
import queue
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix, Views
from manyview.baselines import CostWarning
from manyview.baselines.wrappers import BestSingleView

#: Distinct warnings of a fit that are kept as its remark.
MAX_REMARKS = 3


def main() -> None:
    """Do the jobs that come in, one after the other, until nobody is there to send any."""
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a method prints must not be taken for an event
    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=listen, args=(jobs,), daemon=True).start()

    def tell(**event: Any) -> None:
        print(json.dumps(event), file=events, flush=True)

    while True:
        name, job = pickle.loads(jobs.get())
        module, _, function = name.rpartition(".")
        forget_peak()
        getattr(importlib.import_module(module), function)(pickle.loads(job), tell)
        tell(event="done")


def fit_all(job: dict[str, Any], tell: Callable[..., None]) -> None:
    """Answer every seed of one method by its labels, times and scores."""
    done = 0
    try:
        views = load_views(Path(job["folder"]))
        y = np.load(Path(job["folder"]) / "y.npy") if job["with_truth"] else None
        for labels, found in _fits(job, views, y, tell):
            tell(event="fitted")
            tell(event="result", status="ok", labels=labels.tolist(), **found)
            done += 1
    except Exception as error:
        for _ in job["seeds"][done:]:
            tell(event="result", status="failed", reason=reason_of(error))


def _fits(
    job: dict[str, Any], views: Views, y: Array | None, tell: Any
) -> Iterator[tuple[Array, dict[str, Any]]]:
    """Fit once per seed; a method with ``relabel`` is fitted once and relabelled for every seed."""
    model = pickle.loads(job["estimator"])
    data = dict(zip(views.names, views.matrices, strict=True))
    if job["shift"]:
        data = {name: from_zero(X) for name, X in data.items()}
    # A method that draws from the global generators gives the same whatever was run before it.
    random.seed(job["seeds"][0])
    np.random.seed(job["seeds"][0])  # noqa: NPY002
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
    for r, seed in enumerate(job["seeds"]):
        if job["relabel"]:
            if r > 0:
                tell(event="started")
            started = time.perf_counter()
            labels = model.relabel(seed)
            cut = time.perf_counter() - started
            first_cut = first_cut or cut
            # What this run would have taken alone: the shared fit, and its own k-means.
            found = found | {"seconds": max(whole - first_cut, 0) + cut}
        yield _codes(labels, views.n_samples), found


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
    low = np.asarray(X.min(axis=0).toarray() if sp.issparse(X) else X.min(axis=0)).ravel()
    if not (low < 0).any():
        return X
    return (X.toarray() if sp.issparse(X) else np.asarray(X)) - np.minimum(low, 0)


def reason_of(error: BaseException) -> str:
    """One line: the kind of error unless it is the usual one, and what it says."""
    text = " ".join(str(error).split())
    kind = type(error).__name__
    if not text:
        return kind
    return text if kind == "ValueError" else f"{kind}: {text}"


def forget_peak() -> None:
    """Let the peak of memory begin anew, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_mb() -> float | None:
    """Most memory this process held so far, in MB of 2^20 bytes; None where nobody counts it."""
    try:
        # Not getrusage: on Linux its peak survives exec and would include the parent's.
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


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
        raise ValueError(f"it gave labels of shape {labels.shape} for {n_samples} observations")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("it gave labels that are NaN or infinite")
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def listen(jobs: queue.SimpleQueue[bytes]) -> None:
    """Hand on what the parent sends. It never closes our stdin while it lives: its end is our end."""
    while True:
        length = int.from_bytes(_received(8), "big")
        jobs.put(_received(length))


def _received(n: int) -> bytes:
    # Unbuffered: a thread waiting inside a buffered reader makes the interpreter abort at its end.
    pieces = []
    while n:
        piece = os.read(0, min(n, 2**20))
        if not piece:
            os._exit(1)
        pieces.append(piece)
        n -= len(piece)
    return b"".join(pieces)
