"""The command line as a person uses it."""

import csv
import subprocess
import sys

import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

from manyview.app.cli.app import app


def test_demo_prints_scores_and_weights_and_writes_its_files(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "out"), "--runs", "1"])
    assert result.exit_code == 0, result.output
    for word in (
        "acc",
        "nmi",
        "ari",
        "RobustWMNMF",
        "the paper's",
        "baseline",
        "View weights",
        "digits.png",
    ):
        assert word in result.output
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {
        "labels.csv",
        "view_weights.csv",
        "sample_weights.csv",
        "scores.csv",
        "digits.png",
        ".manyview.json",
    }
    with (tmp_path / "out" / "labels.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 2000


def test_datasets_are_listed():
    output = CliRunner().invoke(app, ["datasets"]).output
    assert "handwritten" in output and "nutrimouse" in output


def test_a_missing_package_names_the_extra():
    code = "import sys; sys.modules['typer'] = None\nfrom manyview.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0 and "pip install 'manyview[app]'" in done.stderr


def test_the_core_needs_only_numpy_scipy_and_scikit_learn():
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in {'pandas', 'matplotlib', 'typer', 'rich', 'numba'}:\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import numpy as np, manyview as mv\n"
        "print(mv.WMNMF(2, random_state=0).fit([np.eye(6) + 1, np.ones((6, 2))]).labels_.shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "(6,)", done.stderr
