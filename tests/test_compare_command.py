"""`manyview compare`: how it ends."""

import sys

import numpy as np
import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

from conftest import blobs
from manyview.cli import app


@pytest.fixture
def asked(tmp_path):
    views, _ = blobs(n=24)
    for name, X in zip("ab", views, strict=False):
        np.save(tmp_path / f"{name}.npy", X)
    files = [str(tmp_path / f"{name}.npy") for name in "ab"]
    return ["compare", *files, "--clusters", "3", "--runs", "1", "--out", str(tmp_path / "out")]


def test_without_any_result_it_ends_with_1_and_a_sentence(asked, tmp_path):
    limits = ["--max-memory", "0.0001"]
    result = CliRunner().invoke(app, [*asked, "--methods", "P-KMLRSSC", *limits])
    assert result.exit_code == 1
    assert "no run gave a result" in result.stderr and "Traceback" not in result.output
    assert "P-KMLRSSC: 1 skipped" in result.stdout
    assert (tmp_path / "out" / "comparison.html").exists()
    # One result is enough.
    result = CliRunner().invoke(app, [*asked, "--methods", "P-KMLRSSC,ConcatK-z"])
    assert result.exit_code == 0, result.output


def test_a_missing_matplotlib_is_told_before_anything_runs(asked, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    result = CliRunner().invoke(app, [*asked, "--methods", "ConcatK-z"])
    assert result.exit_code == 2 and "pip install 'manyview[app]'" in result.stderr
    assert not (tmp_path / "out").exists()
