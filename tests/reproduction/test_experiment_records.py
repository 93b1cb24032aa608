"""What is kept of an experiment: the key of a cell, the code that made it, and the manifest."""

import hashlib
import io
import json
from functools import partial

import pytest
from rich.console import Console

from manyview.paper import command, experiments, provenance
from manyview.paper.experiments import EXPERIMENTS, Experiment, Options, grid

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
        "mlrssc.relabeled",
        {"dataset": "digits-50", "method": "P-KMLRSSC", "tuning": "default", "seeds": [1]},
    ),
    "seeds": ("seeds.readings", {"dataset": "digits"}),
    "convergence": ("convergence.terms", {"dataset": "digits", "scheme": "recipe"}),
    "degeneracy": ("degeneracy.collapse", {"dataset": "digits"}),
}  # fmt: skip


def test_keys_are_made_of_task_settings_and_versions_only(monkeypatch):
    monkeypatch.setattr(experiments, "versions", lambda: {"manyview": "9", "numpy": "8"})
    monkeypatch.setattr(experiments, "seed_of", lambda random_state, run: run + 1)
    for name, (task, settings) in SETTINGS.items():
        settings = settings | ({} if "seeds" in settings else {"seed": 1})
        found = EXPERIMENTS[name].cells(Options(1, lihc="print"))[0]
        assert (found.task, dict(found.settings)) == (task, settings)
        text = json.dumps(
            [1, "cell", task, settings, {"manyview": "9", "numpy": "8"}], sort_keys=True
        )
        assert found.key == hashlib.sha256(text.encode()).hexdigest()[:32]


def test_comments_and_docstrings_do_not_change_the_code_of_a_cell(tmp_path):
    (tmp_path / "app").mkdir()

    def hashed(**changed):
        texts = {"metrics": "", "wmnmf": "X = 1\n", "app/page": ""} | changed
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)
        return provenance.digest(tmp_path)

    first = hashed()
    assert hashed(wmnmf='"""What it does."""\n# why\nX = (1)\n') == first
    assert hashed(**{"app/page": "Y = 1\n"}) == first  # without influence on results
    assert hashed(wmnmf="X = 2\n") != first and hashed(metrics="Y = 1\n") != first


@pytest.fixture
def tiny(monkeypatch):
    """An experiment of which every run is made up at once; what was run."""
    ran = []

    def made_up(portions, folder, jobs, limits):
        for portion in portions:
            for place in portion.runs:
                ran.append(portion.cells[place].settings["seed"])
                row = {"acc": 1.0, "seconds": 70.0}
                times = {"cell_seconds": 2.0, "cpu_seconds": 1.0, "finished": "2020-01-01T00:00"}
                made_by = {"code": command.code(), "machine": {"processor": "a", "cores": 1}}
                yield portion, place, {"status": "ok", "tables": {"": [row]}, **times, **made_by}

    monkeypatch.setattr(command, "run_tasks", made_up)
    monkeypatch.setattr(command, "code", lambda: "this")
    for name, method in (("tiny", "WM-NMF"), ("same", "WM-NMF"), ("other", "ConcatK")):
        experiment = Experiment(name, name, "", partial(grid, dataset="digits", methods=[method]))
        monkeypatch.setitem(EXPERIMENTS, name, experiment)
    return ran


def reproduce(names, out, **settings):
    given = {"replications": 2, "seed": 0, "jobs": 2, "data": None}
    said = io.StringIO()
    given |= {"console": Console(file=said, width=200)} | settings
    assert command.run_reproduce(names, out, **given) == 0
    return said.getvalue(), json.loads((out / "reproduction.json").read_text())


def test_cells_of_other_code_are_told_and_run_again_only_if_asked(tiny, tmp_path, monkeypatch):
    reproduce(["tiny"], tmp_path)
    now = "this (2 cells)"
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
    assert sorted(both) == ["this (1 cells)", "unknown (1 cells)"]
    said, found = reproduce(["tiny"], tmp_path, again=True)
    assert len(tiny) == 3 and "1 stored cells made by other code than this are run again" in said
    assert found["experiments"][0]["code"] == now
    monkeypatch.setattr(command, "code", lambda: "new")
    assert reproduce(["tiny"], tmp_path, again=True)[1]["experiments"][0]["code"] == "new (2 cells)"
    assert len(tiny) == 5
    reproduce(["tiny"], tmp_path, again=True)
    assert len(tiny) == 5  # interrupted, --again goes on: what it has run is of this code


def test_the_manifest_counts_shared_cells_once_and_keeps_the_provenance_of_each(tiny, tmp_path):
    _, first = reproduce(["tiny", "same"], tmp_path, replications=3)
    assert len(tiny) == 3 and first["cpu_seconds"] == 3.0
    assert [e["cpu_seconds"] for e in first["experiments"]] == [3.0, 3.0]
    _, both = reproduce(["other"], tmp_path)
    assert both["cpu_seconds"] == 5.0 and len(both["experiments"]) == 3
    for entry in both["experiments"]:
        assert entry["finished"] == "2020-01-01T00:00" and "numpy" in entry["versions"]
        assert entry["machine"]["processor"] == "a"
        n = 2 if entry["name"] == "other" else 3
        assert entry["runs"] == {"least": n, "most": n}
    # One command for experiments of the same settings.
    parts = both["command"].split(" && ")
    names = [part.split(" --out ")[0].removeprefix("manyview reproduce ") for part in parts]
    assert names == ["tiny same", "other"]


def test_runs_are_those_really_made():
    def runs(name, cells, failed=()):
        bad = {"status": "failed", "reason": "why"}
        records = {cell.key: bad if cell in failed else {"status": "ok"} for cell in cells}
        return command.entry_of(EXPERIMENTS[name], cells, records, [])["runs"]

    grid_ = EXPERIMENTS["noise"].cells(Options(20))
    assert runs("noise", grid_) == {"least": 3, "most": 10}
    assert runs("noise", grid_[:10], grid_[:1]) == {"least": 9, "most": 9}
    assert runs("mlrssc", EXPERIMENTS["mlrssc"].cells(Options(20))) == {"least": 20, "most": 20}
