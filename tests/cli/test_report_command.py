"""`manyview report`: the page made later is the page made at once, or says what it lacks."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from command import done, refused, run

from conftest import blobs
from manyview.io.writing import MARKER


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Three tables with holes, known classes, and a clinical table with a batch."""
    views, labels = blobs(n=40)
    ids = [f"s{i}" for i in range(40)]
    for s, X in enumerate(views):
        X = np.where(np.arange(40)[:, None] % 13 == s, np.nan, X)
        pd.DataFrame(X, index=ids).add_prefix("f").to_csv(
            tmp_path / f"v{s}.csv", index_label="sample"
        )
    clinical = pd.DataFrame({"stage": labels % 2, "batch": np.arange(40) % 2}, index=ids)
    clinical.to_csv(tmp_path / "clinical.csv", index_label="sample")
    pd.Series(labels, index=ids, name="label").to_csv(tmp_path / "y.csv", index_label="sample")
    monkeypatch.chdir(tmp_path)
    return tmp_path


VIEWS = ("v0.csv", "v1.csv", "v2.csv")


def fit(out, *more):
    done("fit", *VIEWS, "--clusters", 3, "--out", out, *more)


def page_of(folder):
    """The page but for the setting that says whether it was asked for at once."""
    text = (folder / "report.html").read_text(encoding="utf-8")
    setting = r'(>report</td><td class="short" data-value=")(?:True|False)">(?:True|False)<'
    text, shown = re.subn(setting, r"\1?<", text)
    text, saved = re.subn(r'(\["report",)(?:true|false)', r"\1?", text)
    assert shown == saved == 1
    return text.replace(" --no-report", "")


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("--method", "wmnmf"),
        ("--labels", "y.csv", "--clinical", "clinical.csv", "--adjust", "batch"),
        ("--match", "loose", "--missing", "drop", "--figures"),
    ],
)
def test_the_page_made_later_is_the_page_made_at_once(files, more):
    fit("run", *more)
    at_once, later = (files / "run").rename(files / "at-once"), files / "run"
    fit("run", "--no-report", *more)
    before = {path.name for path in later.iterdir()}
    assert "report.html" not in before and "consensus.csv" not in before
    told = json.loads(done("report", "run", "--json").stdout)
    assert told == {"page": "run/report.html", "warnings": []}
    assert page_of(later) == page_of(at_once)
    names = {p.relative_to(at_once) for p in at_once.rglob("*") if p.is_file()}
    assert names == {p.relative_to(later) for p in later.rglob("*") if p.is_file()}
    for name in names:
        if name.suffix == ".csv" or name.parts[0] == "figures":
            assert (at_once / name).read_bytes() == (later / name).read_bytes(), name
    one, other = (json.loads((f / "run.json").read_text()) for f in (at_once, later))
    differ = {key for key in one | other if one.get(key) != other.get(key)}
    assert differ == {"settings", "command"}


def test_the_choice_of_the_number_and_later_outcomes_stay(files):
    fit("run", "--no-report", "--clusters", "auto")
    done("outcomes", "run", "--clinical", "clinical.csv")
    kept = {n: (files / "run" / n).read_bytes() for n in ("selection.csv", "clinical_tests.csv")}
    done("report", "run")
    assert {n: (files / "run" / n).read_bytes() for n in kept} == kept
    page = (files / "run" / "report.html").read_text()
    assert "Choosing K" in page and "Clinical columns" in page


def test_a_page_is_made_anew_from_the_tables_or_with_more_refits(files):
    fit("run")
    first = (files / "run" / "report.html").read_bytes()
    (files / "v0.csv").rename(files / "moved.csv")
    told = done("report", "run")  # the tables have all that the page needs
    assert told.stdout.strip() == "run/report.html"
    assert "warning" not in told.stderr
    assert (files / "run" / "report.html").read_bytes() == first
    (files / "moved.csv").rename(files / "v0.csv")
    done("report", "run", "--stability", 3)
    assert json.loads((files / "run" / "run.json").read_text())["stability"]["runs"] == 3
    done("report", "run", "--force")
    assert (files / "run" / "report.html").read_bytes() == first
    refused("at least 2", "report", "run", "--stability", 1)


def test_data_that_changed_or_are_gone_are_a_sentence_and_the_page_is_made(files, monkeypatch):
    def nobody(*args):
        raise AssertionError("a file with another checksum is not read")

    fit("run", "--no-report")
    monkeypatch.setattr("manyview.app.cli.inputs.read_inputs", nobody)
    labels = (files / "run" / "labels.csv").read_bytes()
    text = (files / "v1.csv").read_text()
    (files / "v1.csv").write_text(text.replace("s0,", "s0,1"))
    assert "v1.csv has changed since the fit" in done("report", "run").stderr
    page = (files / "run" / "report.html").read_text()
    assert "not requested" in page and "Consensus matrix" not in page
    assert (files / "run" / "labels.csv").read_bytes() == labels
    (files / "v1.csv").unlink()
    told = json.loads(done("report", "run", "--stability", 2, "--json").stdout)["warnings"][0]
    assert "v1.csv, which the run was fitted on, was moved or removed" in told
    (files / "v1.csv").write_text(text)
    (files / "run" / "model.npz").unlink()
    assert "has no model.npz" in run("report", "run", "--force").stderr


def test_a_run_whose_record_somebody_changed_is_refused(files):
    fit("run", "--no-report")
    about = json.loads((files / "run" / "run.json").read_text())
    (files / "secret.csv").write_text("not,a,table\n\x00")
    about["inputs"][0]["path"] = about["settings"]["files"][0] = "secret.csv"
    (files / "run" / "run.json").write_text(json.dumps(about))
    refused("run.json", "report", "run")  # no longer ours


def test_folders_of_nobody_and_pages_of_others_are_refused(files):
    (files / "empty").mkdir()
    assert run("report", "empty").exit_code == 2
    assert run("report", "nowhere").exit_code == 2
    fit("run", "--no-report")
    (files / "run" / "report.html").write_text("mine")
    refused("report.html", "report", "run")
    assert (files / "run" / "report.html").read_text() == "mine"
    assert not [p for p in (files / "run").iterdir() if p.name.startswith(".") and p.name != MARKER]
