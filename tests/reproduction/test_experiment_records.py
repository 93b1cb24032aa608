"""What is kept of an experiment: the key of a cell, the code that made it, and the manifest."""

import hashlib
import io
import json

import pytest
from rich.console import Console

from manyview.paper import command, experiments, provenance
from manyview.paper.experiments import EXPERIMENTS, SLOW, Experiment, Options, grid

#: Settings of one cell of every experiment whose results are kept for long.
SETTINGS = {
    "digits": ("fitting.score", {"dataset": "digits", "method": "BSV-kmeans"}),
    "honest": ("fitting.score", {"dataset": "digits", "method": "WM-NMF"}),
    "synthetic": ("fitting.score", {"dataset": "synthetic", "method": "BSV-kmeans"}),
    "lihc": ("fitting.score", {"dataset": "lihc", "method": "BSV-kmeans", "data": "print"}),
    "nutrimouse": ("fitting.score", {"dataset": "nutrimouse", "method": "BSV-kmeans"}),
    "p": ("fitting.score", {"dataset": "digits", "method": "WM-NMF", "params": {"p": 2}}),
    "beta": ("fitting.score", {"dataset": "digits", "method": "WM-NMF", "params": {"beta": 0.005}}),
    "k": ("fitting.score", {"dataset": "digits", "method": "WM-NMF", "params": {"n_components": 8}}),
    "mlrssc": (
        "fitting.score", {"dataset": "digits-50", "method": "P-KMLRSSC", "tuning": "default"},
    ),
    "seeds": ("seeds.readings", {"dataset": "digits"}),
    "convergence": ("convergence.terms", {"dataset": "digits", "scheme": "recipe"}),
    "degeneracy": ("degeneracy.collapse", {"dataset": "digits"}),
}  # fmt: skip


def test_keys_are_made_of_task_settings_and_versions_only(monkeypatch):
    monkeypatch.setattr(experiments, "versions", lambda: {"manyview": "9", "numpy": "8"})
    monkeypatch.setattr(experiments, "seed_of", lambda random_state, run: run + 1)
    for name, (task, settings) in SETTINGS.items():
        settings = settings | {"seed": 1}
        found = EXPERIMENTS[name].cells(Options(1, lihc="print"))[0]
        assert (found.task, dict(found.settings)) == (task, settings)
        text = json.dumps(
            [1, "cell", task, settings, {"manyview": "9", "numpy": "8"}], sort_keys=True
        )
        assert found.key == hashlib.sha256(text.encode()).hexdigest()[:32]


def test_the_code_changes_with_what_decides_results_and_with_nothing_else(tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "plot").mkdir()
    for name in ("fit.py", "plot/heat.py", "app/page.py"):
        (tmp_path / name).write_text("one")
    first = provenance.digest_of(tmp_path)
    for name in ("plot/heat.py", "app/page.py"):
        (tmp_path / name).write_text("two")
    assert provenance.digest_of(tmp_path) == first
    (tmp_path / "fit.py").write_text("two")
    assert provenance.digest_of(tmp_path) != first
    (tmp_path / "fit.py").write_text("one")
    (tmp_path / "new.py").touch()
    assert provenance.digest_of(tmp_path) != first


@pytest.fixture
def tiny(monkeypatch):
    """An experiment of which every run is made up at once; what was run."""
    ran = []

    def made_up(portions, folder, jobs, limits):
        for portion in portions:
            for place in portion.runs:
                ran.append(portion.cells[place].settings["seed"])
                row = {"acc": 1.0, "seconds": 70.0, "seconds_shared": 60.0}
                times = {"cell_seconds": 2.0, "cpu_seconds": 1.0, "finished": "2020-01-01T00:00"}
                made_by = {"code": command.code(), "machine": {"processor": "a", "cores": 1}}
                yield portion, place, {"status": "ok", "tables": {"": [row]}, **times, **made_by}

    monkeypatch.setattr(command, "run_tasks", made_up)
    for name, method in (("tiny", "WM-NMF"), ("same", "WM-NMF"), ("slow", "P-MLRSSC")):
        experiment = Experiment(
            name, name, "", lambda o, m=method: grid(o, "digits", [m], tuning="digits")
        )
        monkeypatch.setitem(EXPERIMENTS, name, experiment)
    return ran


def reproduce(names, out, **settings):
    given = {"replications": 2, "seed": 0, "jobs": 2, "data": None, "linear_mlrssc": "skip"}
    said = io.StringIO()
    given |= {"console": Console(file=said, width=200)} | settings
    assert command.run_reproduce(names, out, **given) == 0
    return said.getvalue(), json.loads((out / "reproduction.json").read_text())


def test_cells_of_other_code_are_told_and_run_again_only_if_asked(tiny, tmp_path, monkeypatch):
    reproduce(["tiny"], tmp_path)
    now = command.code()
    said, found = reproduce(["tiny"], tmp_path)
    assert len(tiny) == 2 and "other code" not in said
    assert found["experiments"][0]["code"] == now
    (file, _) = (tmp_path / "runs").glob("*.json")
    record = json.loads(file.read_text())
    del record["code"]
    file.write_text(json.dumps(record))
    said, found = reproduce(["tiny"], tmp_path)
    assert len(tiny) == 2 and "1 of them were made by other code" in said and "--again" in said
    both = found["experiments"][0]["code"].split("; ")
    assert sorted(both) == sorted([f"{now} (1 cells)", "unknown (1 cells)"])
    said, found = reproduce(["tiny"], tmp_path, again=True)
    assert len(tiny) == 3 and "1 stored cells made by other code than this are run again" in said
    assert found["experiments"][0]["code"] == now
    monkeypatch.setattr(command, "code", lambda: "new")
    assert reproduce(["tiny"], tmp_path, again=True)[1]["experiments"][0]["code"] == "new"
    assert len(tiny) == 5
    reproduce(["tiny"], tmp_path, again=True)
    assert len(tiny) == 5  # interrupted, --again goes on: what it has run is of this code


def test_the_manifest_counts_shared_cells_once_and_keeps_the_provenance_of_each(tiny, tmp_path):
    _, first = reproduce(["tiny", "same"], tmp_path, replications=3)
    assert len(tiny) == 3 and first["cpu_seconds"] == 3.0 and first["slow"] == []
    assert [e["cpu_seconds"] for e in first["experiments"]] == [3.0, 3.0]
    _, both = reproduce(["slow"], tmp_path)
    assert both["cpu_seconds"] == 5.0 and len(both["experiments"]) == 3
    # One shared minute, and ten seconds for each of two runs.
    assert both["slow"] == [{"method": "P-MLRSSC", "minutes": pytest.approx(80 / 60)}]
    for entry in both["experiments"]:
        assert entry["finished"] == "2020-01-01T00:00" and "numpy" in entry["versions"]
        assert entry["machine"]["processor"] == "a"
        n = 2 if entry["name"] == "slow" else 3
        assert entry["runs"] == {"least": n, "most": n}
    parts = both["command"].split(" && ")
    names = [part.split(" --out ")[0].removeprefix("manyview reproduce ") for part in parts]
    assert names == ["tiny same", "slow"]


def test_runs_are_those_really_made():
    grid_ = EXPERIMENTS["noise"].cells(Options(20))
    records = {cell.key: {"status": "ok"} for cell in grid_}
    assert command.runs_of(grid_, records) == {"least": 3, "most": 10}
    records[grid_[0].key] = {"status": "failed"}
    assert command.runs_of(grid_[:10], records) == {"least": 9, "most": 9}
    none = command.runs_of(EXPERIMENTS["degeneracy"].cells(Options(20)), {})
    assert none == {"least": 0, "most": 0}


def test_one_command_makes_it_all():
    names = [e.name for e in EXPERIMENTS.values() if not e.needs_data]
    commands = [f"manyview reproduce {name} --out 'a b' --seed 0" for name in names]
    assert command.whole_command(commands) == "manyview reproduce all --out 'a b' --seed 0"
    assert command.whole_command(commands[:2]) == (
        "manyview reproduce digits mlrssc --out 'a b' --seed 0"
    )
    assert SLOW in {c.phase for c in EXPERIMENTS["mlrssc"].cells(Options(20, 0, "full"))}
