"""`manyview compare`: how it ends."""

import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from command import done, refused, run
from rich.console import Console
from sklearn.metrics import adjusted_rand_score

import manyview as mv
from conftest import blobs
from manyview.app.cli.compare import _summary
from manyview.app.compare.methods import resolve
from manyview.outcomes import survival


@pytest.fixture
def asked(tmp_path):
    views, _ = blobs(n=24)
    for name, X in zip("ab", views, strict=False):
        np.save(tmp_path / f"{name}.npy", X)
    files = [str(tmp_path / f"{name}.npy") for name in "ab"]
    return ["compare", *files, "--clusters", "3", "--runs", "1", "--out", str(tmp_path / "out")]


def test_without_any_result_it_ends_with_1_and_a_sentence(asked, tmp_path):
    limits = ["--max-memory", "0.0001"]
    result = run(*asked, "--methods", "P-KMLRSSC", *limits)
    assert result.exit_code == 1
    assert "no run gave a result" in result.stderr and "Traceback" not in result.output
    assert "P-KMLRSSC: 1 skipped" in result.stdout
    assert (tmp_path / "out" / "comparison.html").exists()
    done(*asked, "--methods", "P-KMLRSSC,ConcatK-z")  # one result is enough


def test_samples_with_empty_cells_are_an_error_or_left_out(tmp_path):
    views, _ = blobs(n=24)
    for name, X in zip("ab", views, strict=False):
        frame = pd.DataFrame(X, index=[f"p{i}" for i in range(24)]).add_prefix(name)
        frame.iloc[:2, 0] = np.nan
        frame.to_csv(tmp_path / f"{name}.csv")
    files = [str(tmp_path / f"{name}.csv") for name in "ab"]
    asked = ["compare", *files, "--clusters", "3", "--runs", "1", "--methods", "ConcatK-z"]
    asked += ["--out", str(tmp_path / "out")]
    refused("--missing drop leaves such samples out", *asked)
    assert json.loads(done(*asked, "--missing", "drop", "--json").stdout)["n_samples"] == 22
    assert "--missing drop" in (tmp_path / "out" / "comparison.html").read_text()
    refused("must be one of error, drop, got 'allow'", *asked, "--missing", "allow")


@pytest.mark.parametrize("words", [["--methods", "NOPE"], ["--scale", "log"]])
def test_a_bad_request_is_refused_before_files_are_read(asked, tmp_path, words, monkeypatch):
    monkeypatch.setattr("manyview.app.cli.compare.read_views", None)
    refused(words[1], *asked, *words)
    assert not (tmp_path / "out").exists()


def test_a_missing_matplotlib_is_told_before_anything_runs(asked, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    refused("pip install 'manyview[app]'", *asked, "--methods", "ConcatK-z")
    assert not (tmp_path / "out").exists()


def test_the_summary_fits_a_terminal_of_80_columns():
    names = [m.name for m in resolve("all", 10)]
    summary = pd.DataFrame({"method": names, "oracle": [True, *[False] * (len(names) - 1)]})
    for column in ("acc", "nmi", "ari"):
        summary[f"{column}_mean"], summary[f"{column}_sd"] = 0.8123, 0.0123
    summary = summary.assign(mean_rank=11.5, stability=0.5, seconds_mean=1234.56)
    summary = summary.assign(
        n_ok=3,
        n_failed=0,
        n_skipped=0,
        n_not_applicable=0,
        shifted=[False, True] + [False] * (len(names) - 2),
    )
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(_summary(SimpleNamespace(summary=summary)))
    shown = console.export_text()
    assert "…" not in shown and shown.count("0.812 (0.012)") == len(names)
    assert f"{names[0]}*" in shown and "* oracle" in shown
    assert f"{names[1]}†" in shown and "† features shifted to start at 0" in shown


def test_clinical_differences_of_every_method_and_of_the_consensus(tmp_path):
    data = mv.datasets.make_cohort(60, n_features=(80, 80, 40), missing=0, random_state=1)
    frames, clinical, out = data.frames(), data.clinical_frame(), tmp_path / "out"
    for view in ("expression", "methylation"):
        frames[view].to_csv(tmp_path / f"{view}.csv", index_label="id")
    clinical.iloc[::-1].to_csv(tmp_path / "clinical.csv", index_label="patient")
    asked = ["compare", tmp_path / "expression.csv", tmp_path / "methylation.csv", "--clusters", 3]
    asked += ["--runs", 2, "--methods", "ConcatK-z,ConcatSpectral-z", "--out", out]
    refused("no such column", *asked, "--clinical", tmp_path / "clinical.csv", "--time", "months")
    assert not out.exists()
    result = done(*asked, "--clinical", tmp_path / "clinical.csv", "--json")
    summary = json.loads(result.stdout)
    found = pd.read_csv(out / "consensus.csv", index_col="id")
    table = pd.read_csv(out / "clinical.csv", index_col="method")
    assert list(table.index) == ["ConcatK-z", "ConcatSpectral-z", "consensus"]
    for name, column in (("consensus", "cluster"), ("ConcatK-z", "cluster:ConcatK-z")):
        expected = survival(found[column], clinical["os_months"], clinical["dead"])
        assert table.loc[name, "survival_p"] == pytest.approx(expected.p_value)
        assert table.loc[name, "sizes"].split(", ")[0] == str(found[column].value_counts().max())
    assert (table["survival_q"] >= table["survival_p"]).all()
    assert found["support"].between(0, 1).all()
    tests = pd.read_csv(out / "clinical_columns.csv")
    assert set(tests["column"]) == {"age", "sex", "stage", "batch", "subtype"}
    agreement = pd.read_csv(out / "agreement.csv", index_col="method")
    ari = adjusted_rand_score(found["cluster"], found["cluster:ConcatK-z"])
    assert agreement.loc["consensus", "with:ConcatK-z"] == pytest.approx(ari)
    np.testing.assert_allclose(agreement, agreement.T)
    assert summary["clinical"][0]["method"] == "ConcatK-z"
    page = (out / "comparison.html").read_text(encoding="utf-8")
    assert "What the methods share" in page and "Clinical differences" in page
