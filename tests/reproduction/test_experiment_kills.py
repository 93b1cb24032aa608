"""An experiment killed at any moment goes on where it was, and ends with the same tables."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from itertools import count

import numpy as np
import pytest

import manyview as mv
from manyview.paper import tasks

#: A small experiment, in a script that can be killed. MLRSSC shares a fit between its cells.
SCRIPT = """
import sys
from pathlib import Path
from rich.console import Console
from manyview.paper import command, experiments
from manyview.paper.command import run_reproduce
from manyview.paper.experiments import Cell, Experiment, grid

def cells(options):
    return {cells}

command.Portion.function = "{function}"
experiments.EXPERIMENTS["tiny"] = Experiment("tiny", "Tiny", "A test.", cells)
sys.exit(run_reproduce(["tiny"], Path(sys.argv[1]), replications=5, seed=3, jobs=2, data=None,
                       linear_mlrssc="auto", console=Console(quiet=True)))
"""
#: A child that notes every ADMM, and waits before k-means until it is allowed to.
WAITING = """
import time
from pathlib import Path
from manyview.baselines import admm, mlrssc
from manyview.paper.command import answer

here = Path(__file__).parent
solve, relabel = admm.solve, mlrssc.MLRSSC.relabel

def noted(*args, **settings):
    with (here / "fits").open("a") as file:
        file.write("one\\n")
    return solve(*args, **settings)

def waiting(self, seed=None):
    while not (here / "go on").exists():
        time.sleep(0.02)
    return relabel(self, seed)

admm.solve, mlrssc.MLRSSC.relabel = noted, waiting
"""
#: A child whose process dies in every cell with an even seed.
DYING = """
import os
from manyview.paper.command import answer
from manyview.paper.tasks import TASKS, score

def dying(**settings):
    return os._exit(7) if settings["seed"] % 2 == 0 else score(**settings)

TASKS["fitting.score"] = dying
"""


class Runs:
    """A script of one small experiment, started as often as one likes."""

    def __init__(self, folder, cells, function="manyview.paper.command.answer"):
        self.script = folder / "script.py"
        self.script.write_text(SCRIPT.format(cells=cells, function=function))
        self.env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}

    def start(self, out):
        return subprocess.Popen([sys.executable, str(self.script), str(out)], env=self.env)

    def finish(self, out):
        return self.start(out).wait(timeout=300)


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


def wait_for(happened):
    deadline = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in two minutes"
        time.sleep(0.01)


def table(path):
    """Rows without the columns of time."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in row.items() if "seconds" not in k} for row in rows]


def stored(out):
    return {path: path.stat().st_mtime_ns for path in out.glob("runs/*.json")}


def test_killed_at_random_moments_gives_the_tables_of_an_uninterrupted_run(tmp_path):
    seed = random.SystemRandom().randrange(10**6)
    print(f"the moments are drawn from seed {seed}")  # shown if the test fails
    draw = random.Random(seed)
    runs = Runs(tmp_path, 'grid(options, "nutrimouse", ["WM-NMF", "ConcatK", "C-KMLRSSC"])')
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    started = time.monotonic()
    assert runs.finish(whole) == 0
    took = time.monotonic() - started
    done = {}
    for kills in range(4):
        process = runs.start(killed)
        if kills == 0:  # certainly in the midst: some cells are stored, and not all
            wait_for(lambda: stored(killed))
        else:
            time.sleep(draw.uniform(0, took))
        kill(process)
        assert done.items() <= stored(killed).items()  # none was run again
        done = stored(killed)
        assert kills or 0 < len(done) < 15
    assert runs.finish(killed) == 0
    assert done.items() <= stored(killed).items() and len(stored(killed)) == 15
    for name in ("tiny.csv", "tiny-weights.csv"):
        assert table(killed / name) == table(whole / name) != []
    rows = table(whole / "tiny.csv")
    assert [row["run"] for row in rows] == list("01234") * 3
    assert not list(killed.glob("runs/*.npz")) and not list(killed.glob("runs/.*.npz.*"))
    for row in rows:
        record = json.loads((whole / "runs" / f"{row['cell']}.json").read_text())
        assert "numpy" in row["versions"] and record["code"] in row["versions"]
        assert "n_clusters" in json.loads(row["settings"])["params"] or row["method"] != "WM-NMF"


def test_killed_after_the_shared_fit_does_not_fit_again(tmp_path):
    (tmp_path / "waiting.py").write_text(WAITING)
    runs = Runs(tmp_path, 'grid(options, "nutrimouse", ["C-KMLRSSC"])', "waiting.answer")
    out = tmp_path / "out"
    process = runs.start(out)
    wait_for(lambda: list(out.glob("runs/*.npz")))
    kill(process)
    assert not stored(out)
    (tmp_path / "go on").touch()
    assert runs.finish(out) == 0 and len(stored(out)) == 5
    assert (tmp_path / "fits").read_text() == "one\n"
    assert not list(out.glob("runs/*.npz"))
    shared = {row["seconds_shared"] for row in csv.DictReader((out / "tiny.csv").open())}
    assert len(shared) == 1 and float(shared.pop()) > 0


def test_a_process_that_dies_fails_only_the_cell_it_was_at(tmp_path):
    (tmp_path / "dying.py").write_text(DYING)
    cells = (
        '[Cell("fitting.score", dict(dataset="nutrimouse", method="ConcatK", seed=s), dict(run=s))'
        " for s in range(4)]"
    )
    runs = Runs(tmp_path, cells, "dying.answer")
    assert runs.finish(tmp_path / "out") == 2  # the number of failed cells
    assert [row["run"] for row in table(tmp_path / "out" / "tiny.csv")] == ["1", "3"]
    entry = json.loads((tmp_path / "out" / "reproduction.json").read_text())["experiments"][0]
    assert entry["failed"] == 2 and entry["reasons"] == ["its process ended with exit code 7"]


@pytest.fixture
def fits(monkeypatch):
    """How often MLRSSC was fitted."""
    made = []
    find = mv.baselines.MLRSSC.find_affinity
    monkeypatch.setattr(
        mv.baselines.MLRSSC, "find_affinity", lambda self, X: made.append(1) or find(self, X)
    )
    tasks.SharedFit.model.cache_clear()
    yield made
    tasks.SharedFit.model.cache_clear()


def test_mlrssc_is_fitted_once_for_all_seeds_and_its_time_counted_once(fits, monkeypatch):
    ticks = count()
    monkeypatch.setattr(tasks.time, "perf_counter", lambda: next(ticks))
    rows = [tasks.score("nutrimouse", "P-KMLRSSC", seed)[""][0] for seed in range(3)]
    assert len(fits) == 1 and all("iterations" in row["remark"] for row in rows)
    # By a clock that ticks when it is looked at: one for the shared fit, one for every k-means.
    assert [(row["seconds_shared"], row["seconds"]) for row in rows] == [(1, 2)] * 3
    known = tasks.load("nutrimouse")
    for row, seed in zip(rows, range(3), strict=True):
        alone = tasks.make("P-KMLRSSC", 2, seed, {}).fit(known.views)
        assert row["acc"] == mv.metrics.scores(known.labels, alone.labels_)["acc"]


def test_a_kept_fit_of_other_code_or_damaged_is_not_used(fits, tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "FITS", tmp_path)

    def row():
        tasks.SharedFit.model.cache_clear()
        found = tasks.score("nutrimouse", "P-KMLRSSC", 0)[""][0]
        return {k: v for k, v in found.items() if "seconds" not in k}

    first = row()
    assert row() == first and len(fits) == 1
    monkeypatch.setattr(tasks, "code", lambda: "other")
    assert row() == first and len(fits) == 2
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:1000])
    assert row() == first and len(fits) == 3
    tasks.SharedFit("nutrimouse", "P-KMLRSSC").remove(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_fit_that_cannot_be_kept_is_told(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("not a folder")
    monkeypatch.setattr(tasks, "FITS", file)
    with pytest.warns(UserWarning, match="fit of P-KMLRSSC on digits could not be kept"):
        tasks.SharedFit("digits", "P-KMLRSSC").write(Z=np.ones(3))
