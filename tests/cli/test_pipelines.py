"""The examples for workflow managers: run where the manager is installed, else skipped with a reason."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from conftest import blobs

HERE = Path(__file__).parents[2] / "examples" / "pipelines"


@pytest.fixture
def folder(tmp_path):
    """Two tables, and a command `manyview` that is this one."""
    views, _ = blobs(n=30, features=(6, 5))
    ids = pd.Index([f"p{i}" for i in range(30)], name="sample")
    for name, X in zip(("rna", "meth"), views, strict=True):
        pd.DataFrame(X, index=ids).add_prefix(f"{name}_").to_csv(tmp_path / f"{name}.csv")
    command = tmp_path / "bin" / "manyview"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m manyview "$@"\n')
    command.chmod(0o755)
    return tmp_path


def run(folder, *words):
    path = os.pathsep.join(
        [str(folder / "bin"), os.path.dirname(sys.executable), os.environ["PATH"]]
    )
    environment = {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def found(name):
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name)


def command_in(text):
    """The words of `manyview fit …` in a file, with what the manager fills in filled in."""
    text = re.sub(r'"\s*\n\s*"|\\\\\n', "", text)
    (line,) = re.findall(r"manyview fit .*", text)
    for mark, value in (
        (r"\{input\.(\w+):q\}", r"\1.csv"),
        (r"'?\$\{(rna|meth)\}'?", r"\1.csv"),
        (r"\{CLUSTERS\}|\$\{params\.clusters\}", "3"),
        (r"\{output\.summary\}", "summary.json"),
        ('"$', ""),
    ):
        line = re.sub(mark, value, line)
    return line


@pytest.mark.parametrize("file", ["Snakefile", "main.nf"])
def test_the_command_in_the_example_does_what_it_promises(folder, file):
    """Without the manager: the command it would run, in the shell."""
    run(folder, "sh", "-c", command_in((HERE / file).read_text()))
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["n_samples"] == 30 and summary["n_clusters"] == 3
    assert {"labels.csv", "model.npz"} <= {p.name for p in (folder / "clusters").iterdir()}


def test_snakemake_runs_the_rule_and_has_nothing_left_to_do(folder):
    snakemake = found("snakemake")
    if snakemake is None:
        pytest.skip("snakemake is not installed (pip install snakemake)")
    shutil.copy(HERE / "Snakefile", folder)
    asked = [snakemake, "--cores", "1", "--config", "clusters=3"]
    run(folder, *asked)
    assert len(pd.read_csv(folder / "clusters" / "labels.csv")) == 30
    before = (folder / "clusters" / "labels.csv").stat().st_mtime_ns
    run(folder, *asked)
    assert (folder / "clusters" / "labels.csv").stat().st_mtime_ns == before
    (folder / "rna.csv").touch()  # a changed input: the step is done again
    run(folder, *asked)


def test_nextflow_runs_the_process(folder):
    nextflow = found("nextflow")
    if nextflow is None:
        pytest.skip("nextflow is not installed")
    shutil.copy(HERE / "main.nf", folder)
    run(folder, nextflow, "run", "main.nf", "--clusters", "3")
    assert len(pd.read_csv(folder / "results" / "clusters" / "labels.csv")) == 30


def test_r_calls_the_command_and_reads_the_labels(folder):
    rscript = found("Rscript")
    if rscript is None:
        pytest.skip("R is not installed")
    shown = run(folder, rscript, str(HERE / "cluster.R"), "rna.csv", "meth.csv", "3", "run")
    assert "10" in shown and (folder / "run" / "labels.csv").exists()
