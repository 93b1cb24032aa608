"""The child process of an experiment: a few cells, one after the other, each answered by its rows.

Started as ``python -m manyview.reproduction.worker`` by `judge.comparison.processes`: a job comes in
by stdin, events go out by stdout as lines of JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import sys
import threading
import time
import warnings
from typing import Any

from manyview.judge.comparison.worker import end_with_parent, reason_of

from . import data, kept
from .provenance import code, machine, now


def main() -> None:
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a method prints must not be taken for an event
    job = pickle.load(sys.stdin.buffer)
    threading.Thread(target=end_with_parent, daemon=True).start()
    data.GIVEN, kept.FOLDER = job["given"], job["kept"]
    made_by = {"code": code(), "machine": machine()}

    def tell(**event: Any) -> None:
        print(json.dumps(event), file=events, flush=True)

    for task, settings in job["cells"]:
        tell(event="started")
        started = time.perf_counter(), time.process_time()
        try:
            tables = carry_out(task, settings)
        except Exception as error:
            tell(event="result", status="failed", reason=reason_of(error))
        else:
            ended = time.perf_counter(), time.process_time()
            took, used = (after - before for before, after in zip(started, ended, strict=True))
            times = {"cell_seconds": took, "cpu_seconds": used, "finished": now()}
            tell(event="result", status="ok", tables=tables, **times, **made_by)


def carry_out(task: str, settings: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Rows of one cell; warnings of the methods are for those who call them, not for a grid."""
    module, function = task.rsplit(".", 1)
    run = getattr(importlib.import_module(f"manyview.reproduction.{module}"), function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run(**settings)


if __name__ == "__main__":
    main()
