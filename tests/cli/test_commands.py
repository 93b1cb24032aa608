"""Every command helps; demo, datasets and select-k; how long commands tell how far they are."""

import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from command import done, refused, rows, write_tables
from rich.console import Console

import manyview as mv
from manyview.app.cli import terminal
from manyview.app.cli.app import COMMANDS
from manyview.app.cli.inputs import read_labels
from manyview.app.cli.terminal import SHARES, Stages
from manyview.app.files import read_views
from manyview.labels import installed


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_there(command):
    shown = done(command, "--help").output
    assert "Example" not in shown or f"manyview {command} " in shown.split("Example")[1]


def test_completion_can_be_installed_and_the_version_is_told():
    assert "--install-completion" in done("--help").output
    assert done("--version").stdout.strip() == f"manyview {mv.__version__}"


def test_a_missing_package_names_the_extra():
    code = "import sys; sys.modules['typer'] = None; from manyview.__main__ import main; main()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode != 0 and "pip install 'manyview[app]'" in ended.stderr


def test_demo_writes_a_report_and_sets_digits_beside_the_paper(tmp_path):
    out = tmp_path / "out"
    output = done("demo", "--out", out, "--runs", 1).output
    for word in ("manyview fit", "report.html", "4 clusters were chosen", "Survival differs", "batch",
                 "acc", "ari", "RobustWMNMF", "the paper's", "baseline", "digits.png"):  # fmt: skip
        assert word in output, word
    assert output.count("\n- ") == 3
    assert {path.name for path in out.iterdir()} == {
        "cohort",
        "run",
        "digits.csv",
        "digits.png",
        ".manyview.json",
    }
    about = json.loads((out / "run" / "run.json").read_text("utf-8"))
    assert about["adjusted"] == ["batch"] and about["classes"]["ari"] > 0.9
    assert (out / "run" / "report.html").stat().st_size < 2_000_000
    scored = {row["method"]: float(row["acc"]) for row in rows(out / "digits.csv")}
    assert scored["RobustWMNMF"] > 0.9


def test_shipped_data_are_listed_and_written_as_tables(tmp_path):
    listed = done("datasets").output
    assert "handwritten" in listed and "nutrimouse" in listed
    done("datasets", "--out", tmp_path / "d", "--seed", 3, "--json")
    synthetic = mv.datasets.make_synthetic(200, random_state=3)
    for data in (mv.datasets.load_nutrimouse(), synthetic):
        files = [tmp_path / "d" / data.name / f"{view}.csv" for view in data.views]
        read = read_views(files)
        for view, X in data.views.items():
            np.testing.assert_array_equal(read.views[view], X)
        labels = read_labels(tmp_path / "d" / data.name / "labels.csv", read)
        assert labels == [str(label) for label in data.labels]
    assert read_views(files[:1]).features[next(iter(synthetic.views))][0].endswith("_0")
    refused("is not empty", "datasets", "--out", tmp_path / "d")


def test_select_k_writes_its_reasons(tmp_path):
    files, *_ = write_tables(tmp_path)
    asked = ["select-k", *files, "--to", 5, "--out", tmp_path / "k"]
    assert json.loads(done(*asked, "--json").stdout)["n_clusters"] == 3
    names = {p.name for p in (tmp_path / "k").iterdir()}
    assert names == {"selection.csv", "selection.png", "selection.json", ".manyview.json"}
    refused("is not empty", *asked)
    refused("less than --from", *asked, "--force", "--from", 9)


def test_auto_prints_its_reasons(tmp_path):
    files, *_ = write_tables(tmp_path, n=90, features=(6, 5))
    result = done("fit", *files, "--clusters", "auto", "--no-report", "--out", tmp_path / "run")
    said = " ".join(result.output.split())
    assert "3 clusters" in said and "eigengap) is" in said
    assert "is highest at 3 clusters" in said
    chosen = json.loads((tmp_path / "run" / "run.json").read_text())["selection"]
    assert {"runner_up", "doubtful", "reasons"} <= set(chosen)


@pytest.mark.skipif(not installed(), reason="needs the extra communities")
def test_communities_of_files_are_fitted_and_predicted(tmp_path):
    files, *_ = write_tables(tmp_path, n=90, features=(6, 5))
    asked = ["--clusters", "communities", "--resolution", 0.5, "--no-report"]
    done("fit", *files, *asked, "--out", tmp_path / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["n_clusters"] == 3 and record["settings"]["resolution"] == 0.5
    done("predict", tmp_path / "run", *files, "--out", tmp_path / "new.csv")
    one, two = (pd.read_csv(p) for p in (tmp_path / "run" / "labels.csv", tmp_path / "new.csv"))
    np.testing.assert_array_equal(one["cluster"], two["cluster"])


# --- how far a command is ----------------------------------------------------------------------

WORDS = ["reading the files", "clustering 9 samples, 2 views", "comparing with a simple baseline",
         "refitting parts of the data, to see", "refitting parts of the data, 1 of 2",
         "refitting parts of the data, 2 of 2", "testing features", "measuring how much",
         "drawing the consensus in two dimensions", "describing the clusters",
         "writing the report"]  # fmt: skip


def test_the_share_rises_with_every_stage_and_ends_below_the_whole():
    told = Stages()
    shares = [told.begin(words) for words in WORDS]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] < 1
    half = (sum(list(SHARES.values())[:3]) + SHARES["refitting"] / 2) / sum(SHARES.values())
    assert shares[5] == pytest.approx(half)
    assert set(told.seconds) <= {*SHARES, "measuring how much"}
    assert told.summary().endswith(("s", ")"))


def test_lines_are_for_commands_that_take_long_and_a_terminal_gets_a_bar(monkeypatch):
    def said(patience, **settings):
        monkeypatch.setattr(terminal, "PATIENCE", patience)
        out = io.StringIO()
        with Stages(Console(file=out, width=200, **settings)) as told:
            for words in WORDS:
                told.begin(words)
        return out.getvalue()

    assert said(3600.0) == said(-1.0, quiet=True) == ""
    lines = said(-1.0).splitlines()
    assert lines[:2] == ["0% reading the files", "5% clustering 9 samples, 2 views"]
    assert len(lines) == len(WORDS) + 1 and " s" in lines[-1]
    bar = said(3600.0, force_terminal=True)
    assert "writing the report" in bar and "━" in bar


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("n_clusters=5 is more than 4", "--clusters 5 is more than 4"),
        (
            "use engine='numpy', or scale={'a b': 'none'}.",
            "use --engine numpy, or --scale 'a b=none'.",
        ),
        ("zero_rows names the view 'b'", "--zero-rows names the view 'b'"),
        ("a fit with checkpoint= goes on", "a fit with --checkpoint goes on"),
        ('event="cens=0" or event="cens=1"', "--event cens=0 or --event cens=1"),
        ("rna=expression.csv is no file; scaled = 3", "rna=expression.csv is no file; scaled = 3"),
    ],
)
def test_sentences_of_the_library_name_options(said, shown):
    assert terminal.in_options(said) == shown
