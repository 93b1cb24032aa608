"""`manyview fit --clusters communities`, and the reasons that `--clusters auto` prints."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from conftest import blobs
from manyview.app.cli.app import app
from manyview.labels import installed

pd = pytest.importorskip("pandas")
runner = CliRunner()


def run(*words):
    return runner.invoke(app, [str(word) for word in words])


@pytest.fixture
def files(tmp_path):
    views, _ = blobs(90, features=(6, 5))
    for name, X in zip("ab", views, strict=True):
        frame = pd.DataFrame(X, index=[f"p{i}" for i in range(90)]).add_prefix(name)
        frame.to_csv(tmp_path / f"{name}.csv")
    return [tmp_path / "a.csv", tmp_path / "b.csv"]


@pytest.mark.skipif(not installed(), reason="needs the extra communities")
def test_communities_of_files_are_fitted_and_predicted(files, tmp_path):
    asked = ["--clusters", "communities", "--resolution", 0.5, "--no-report"]
    result = run("fit", *files, *asked, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["n_clusters"] == 3 and record["settings"]["resolution"] == 0.5
    placed = run("predict", tmp_path / "run", *files, "--out", tmp_path / "new.csv")
    assert placed.exit_code == 0, placed.output
    one, two = (pd.read_csv(p) for p in (tmp_path / "run" / "labels.csv", tmp_path / "new.csv"))
    np.testing.assert_array_equal(one["cluster"], two["cluster"])


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (["--clusters", "communities", "--method", "wmnmf"], "goes with --method robust"),
        (["--clusters", "3", "--resolution", "2"], "--resolution goes with --clusters communities"),
        (["--clusters", "many"], "a number of 1 or more, auto or communities"),
    ],
)
def test_what_does_not_go_together_is_refused(files, tmp_path, asked, sentence):
    result = run("fit", *files, *asked, "--out", tmp_path / "run")
    assert result.exit_code == 2 and sentence in " ".join(result.output.split())
    assert not (tmp_path / "run").exists()


def test_auto_prints_its_reasons(files, tmp_path):
    result = run("fit", *files, "--clusters", "auto", "--no-report", "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "3 clusters" in said and "- stability: 3 clusters are found again" in said
    assert "0.50 is asked for" in said and "- communities:" in said
    chosen = json.loads((tmp_path / "run" / "run.json").read_text())["selection"]
    assert {"runner_up", "doubtful", "reasons", "votes"} <= set(chosen)
