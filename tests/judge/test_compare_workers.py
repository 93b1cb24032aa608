"""Comparisons from a notebook: workers that stay, classes that are defined there, views below zero."""

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import manyview as mv
from conftest import blobs
from manyview.app.compare.runs import Task, from_zero, save_views
from manyview.app.processes import (
    Pool,
    RunLimits,
    run_tasks,
    sent,
)
from manyview.views.views import as_views

WIDE = RunLimits(60, 4)
HERE = [
    os.path.dirname(os.path.dirname(__file__)),
    os.path.join(os.path.dirname(mv.__file__), ".."),
]


def from_notebook(code):
    """What a notebook prints: a program without a file."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(HERE + sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_class_of_a_notebook_is_compared_by_workers_that_stay(tmp_path):
    pytest.importorskip("cloudpickle")
    code = f"""
    import json, os
    import numpy as np
    import manyview as mv
    from conftest import blobs

    CENTERS = 3

    def helper(n):
        return np.random.randint(CENTERS, size=n)  # the global generator

    class Mine:
        def fit_predict(self, views):
            with open({str(tmp_path / "pids")!r}, "a") as file:
                print(os.getpid(), file=file)
            return helper(len(next(iter(views.values()))))

    class Bad:
        def fit_predict(self, views):
            raise RuntimeError("no luck today")

    views, y = blobs(n=30)
    asked = dict(methods={{"mine": Mine(), "bad": Bad()}}, n_runs=3, progress=False)
    found = mv.compare(views, y, **asked)
    again = mv.compare(views, y, **(asked | {{"n_jobs": 2}}))
    print(json.dumps([list(found.table["status"]),
                      all((a == b).all() for a, b in zip(found.labels["mine"], again.labels["mine"])),
                      repr(found)]))
    """
    states, same, shown = json.loads(from_notebook(code))
    assert states == ["ok"] * 3 + ["failed"] * 3 and same
    assert "bad: 3 failed: RuntimeError: no luck today" in shown
    pids = (tmp_path / "pids").read_text().split()
    assert len(set(pids[:3])) == 1 and len(pids) == 6


class Where:
    """Says which process it ran in, or ends it."""

    def __init__(self, what="tell"):
        self.what = what

    def fit_predict(self, views):
        if self.what == "die":
            os._exit(7)
        if self.what == "fill":
            self.held = np.ones(2**26)
        return np.full(12, os.getpid())


def workers_of(tmp_path, tasks, limits=WIDE, pooled=True):
    views = as_views([np.random.default_rng(0).random((12, 3))], caller="test")
    save_views(views, tmp_path)
    pool = Pool(tmp_path, 1) if pooled else None
    try:
        ended = list(run_tasks(tasks, tmp_path, 1, limits, pool))
        left = len(pool.idle) if pool else 0
    finally:
        if pool:
            pool.close()
    return ended, left


def test_a_pool_starts_one_process_for_many_tasks_and_another_after_a_crash(tmp_path, monkeypatch):
    kinds = ["tell", "tell", "die", "tell", "tell"]
    tasks = [Task(str(i), (0,), (0,), Where(kind)) for i, kind in enumerate(kinds)]
    started = []
    from manyview.app import processes

    class Counted(processes._Child):
        def __init__(self, *args):
            started.append(1)
            super().__init__(*args)

    monkeypatch.setattr(processes, "_Child", Counted)
    ended, left = workers_of(tmp_path, tasks)
    assert [record["status"] for _, _, record in ended] == ["ok", "ok", "failed", "ok", "ok"]
    assert "ended with exit code 7" in ended[2][2]["reason"]
    assert len(started) == 2 and left == 1
    started.clear()
    workers_of(tmp_path, tasks[:2], pooled=False)
    assert len(started) == 2  # without a pool every task has its own


def test_a_worker_that_holds_much_is_not_kept(tmp_path):
    tasks = [Task("fill", (0,), (0,), Where("fill"))]
    ended, left = workers_of(tmp_path, tasks, RunLimits(60, 0.2))
    assert ended[0][2]["status"] in ("ok", "failed") and left == 0


def test_classes_of_modules_are_sent_by_name_and_others_whole():
    assert b"Where" in sent(Where()) and len(sent(Where())) < 200
    pytest.importorskip("cloudpickle")

    class Inside:
        pass

    assert len(sent(Inside())) > 200


def test_features_below_zero_are_moved_for_methods_that_need_it():
    views, y = blobs(n=30)
    views = [X - 2 for X in views]
    found = mv.compare(views, y, methods=["MultiNMF2", "ConcatK-z"], n_runs=1, progress=False)
    assert list(found.table["status"]) == ["ok", "ok"]
    assert list(found.table["shifted"]) == [True, False]
    assert {m["name"]: m["caution"] for m in found.methods} == {
        "MultiNMF2": "shifted",
        "ConcatK-z": "",
    }
    X = np.array([[-1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(from_zero(X), [[0, 2], [4, 4]])
    assert from_zero(X + 1) is not None and X[0, 0] == -1


def test_a_scale_is_for_every_method():
    views, y = blobs(n=30)
    asked = {"methods": ["ConcatK"], "n_runs": 1, "progress": False}
    units = mv.compare([views[0] * 1e6, *views[1:]], y, scale="standard", **asked)
    plain = mv.compare(views, y, scale="standard", **asked)
    np.testing.assert_array_equal(units.labels["ConcatK"][0], plain.labels["ConcatK"][0])
    assert units.settings["scale"] == "standard"
    with pytest.raises(ValueError, match="scale must be 'standard', 'minmax' or None"):
        mv.compare(views, y, scale="loud", **asked)
