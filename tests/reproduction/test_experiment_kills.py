"""An experiment killed at any moment goes on where it was, and ends with the same tables."""

import json
import os
import random
import signal
import subprocess
import sys
import time

from made_up_results import table

#: A small experiment, in a script that can be killed.
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
                       console=Console(quiet=True)))
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
    for kills in range(2):
        process = runs.start(killed)
        if kills == 0:  # certainly in the midst: some cells are stored, and not all
            wait_for(lambda: stored(killed))
        else:
            time.sleep(draw.uniform(0, took))
        kill(process)
        assert done.items() <= stored(killed).items()  # none was run again
        done = stored(killed)
        assert kills or 0 < len(done) < 11
    assert runs.finish(killed) == 0
    assert done.items() <= stored(killed).items() and len(stored(killed)) == 11
    for name in ("tiny.csv", "tiny-weights.csv"):
        assert table(killed / name) == table(whole / name) != []
    rows = table(whole / "tiny.csv")
    assert [row["run"] for row in rows] == list("01234") * 3
    for row in rows:
        record = json.loads((whole / "runs" / f"{row['cell']}.json").read_text())
        assert "numpy" in row["versions"] and record["code"] in row["versions"]
        assert "n_clusters" in json.loads(row["settings"])["params"] or row["method"] != "WM-NMF"


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
