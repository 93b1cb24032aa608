"""The options for reading are the same for every command, and what they say reaches the results."""

import json

import pandas as pd
import pytest
from command import done, refused, run

from conftest import blobs
from manyview.app.options import Reading

COMMANDS = ["fit", "predict", "select-k", "compare"]
OPTIONS = [f"--{name.replace('_', '-')}" for name in vars(Reading())]


@pytest.fixture
def files(tmp_path):
    """Two views of genes × samples, decimal commas in one, ids in two spellings, and classes."""
    views, y = blobs(n=30, features=(6, 5))
    ids = [f"Pat-{i:02d}" for i in range(30)]
    rna = pd.DataFrame(views[0], index=ids).add_prefix("g").T.rename_axis("gene")
    rna.to_csv(tmp_path / "rna.csv", sep=";", decimal=",")
    meth = pd.DataFrame(views[1], index=[i.lower().replace("-", "_") for i in ids]).add_prefix("cg")
    meth["batch"] = ["a", "b"] * 15
    meth.to_csv(tmp_path / "meth.csv", index_label="sample")
    pd.Series(y, index=pd.Index(ids, name="sample"), name="label").to_csv(tmp_path / "y.csv")
    return tmp_path


SAID = ["--match", "loose", "--drop-text"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_every_option(command):
    shown = run(command, "--help", COLUMNS="200").output
    assert [option for option in OPTIONS if option not in shown] == []


def test_from_the_question_to_the_answer(files):
    asked = ["fit", files / "rna.csv", files / "meth.csv", "--clusters", 3, "--out", files / "run"]
    asked += ["--labels", files / "y.csv", "--no-report", "--json"]
    for more, sentence in ([], "add --drop-text"), (["--drop-text"], "Add --match loose"):
        refused(sentence, *asked, *more)
        assert not (files / "run").exists()
    summary = json.loads(done(*asked, *SAID).stdout)
    assert summary["n_samples"] == 30 and summary["scores"]["acc"] == 1
    told = " ".join(summary["notes"])
    assert "transposed" in told and "case and the marks" in told and "'batch' left out" in told
    settings = json.loads((files / "run" / "run.json").read_text())["settings"]
    assert settings["match"] == "loose"
    done("predict", files / "run", f"rna={files / 'rna.csv'}", "--out", files / "new.csv")
    assert list(pd.read_csv(files / "new.csv")["id"][:2]) == ["Pat-00", "Pat-01"]


def test_compare_reads_as_fit_does_and_answers_in_json(files):
    asked = ["compare", files / "rna.csv", files / "meth.csv", "--labels", files / "y.csv"]
    asked += ["--clusters", 3, "--runs", 1, "--methods", "ConcatK-z", "--scale", "standard"]
    found = json.loads(done(*asked, *SAID, "--out", files / "c", "--json").stdout)
    assert found["summary"][0]["acc_mean"] == 1 and found["troubles"] == []
    page = (files / "c" / "comparison.html").read_text()
    assert "--match loose" in page and "--drop-text" in page and "--scale standard" in page
    assert run("report", files / "c").stdout.strip().endswith("comparison.html")
    assert done(*asked, *SAID, "--out", files / "d", "--quiet").output == ""


def test_labels_are_found_by_the_rule_that_joined_the_views(files):
    table = pd.read_csv(files / "y.csv")
    table["sample"] = table["sample"].str.upper()
    table.to_csv(files / "upper.csv", index=False)
    asked = ["fit", files / "rna.csv", "--clusters", 3, "--out", files / "run", "--no-report"]
    asked += ["--labels", files / "upper.csv", "--json"]
    refused("--match loose", *asked)
    assert json.loads(done(*asked, "--match", "loose").stdout)["scores"]["acc"] == 1


def test_words_that_no_option_takes(files):
    asked = ["fit", files / "rna.csv", "--clusters", 2, "--out", files / "run"]
    for more, sentence in (
        (["--match", "vague"], "--match must be one of exact, loose, tcga"),
        (["--decimal", "dot"], "--decimal dot: say comma or point"),
        (["--header", "maybe"], "--header maybe: say yes or no"),
        (["--drop", "rna=nothing"], "--drop rna=nothing: no file has a column of this name"),
        (["--as-view", "other"], "the views are rna"),
        (["--transpose", "other"], "the views are rna; or say all"),
    ):
        refused(sentence, *asked, *more)
    assert not (files / "run").exists()
