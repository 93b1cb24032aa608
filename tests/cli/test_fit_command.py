"""`manyview fit`, `predict`, `select-k` and `datasets` as a person uses them, mistakes included."""

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from typer.testing import CliRunner

import manyview as mv
from conftest import blobs
from manyview.app.cli.app import app
from manyview.app.cli.fit import FitRequest, make_model
from manyview.app.cli.known import read_labels
from manyview.app.files import read_views

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Three files as a laboratory has them: shuffled, one transposed, one lacking 5% of the samples."""
    folder = tmp_path_factory.mktemp("digits")
    data = mv.datasets.load_handwritten(["fou", "pix", "zer"])
    keep = np.arange(0, 2000, 3)
    ids = [f"digit {i}" for i in keep]
    rng = np.random.default_rng(0)
    frames = {
        view: X.iloc[keep].set_axis(ids).iloc[rng.permutation(len(keep))]
        for view, X in data.frames().items()
    }
    frames["fou"].to_csv(folder / "fou.csv")
    frames["pix"].T.to_csv(folder / "pix.csv")
    frames["zer"].iloc[len(keep) // 20 :].to_csv(folder / "zer.csv", index_label="id")
    truth = dict(zip(ids, data.labels[keep].tolist(), strict=True))
    pd.Series(truth, name="label").to_csv(folder / "truth.csv", index_label="id")
    return folder, truth, set(frames["zer"].index[: len(keep) // 20])


@pytest.mark.parametrize("missing", ["allow", "drop"])
def test_three_tables_become_clusters_for_the_union_or_the_intersection(digits, tmp_path, missing):
    folder, truth, absent = digits
    files = [folder / f"{view}.csv" for view in ("fou", "pix", "zer")]
    out = tmp_path / "run"
    options = ["--clusters", 10, "--missing", missing, "--labels", folder / "truth.csv", "--json"]
    result = run("fit", *files, "--out", out, *options, *(["--no-report"] * (missing == "drop")))
    assert result.exit_code == 0, result.output
    wanted = set(truth) - (absent if missing == "drop" else set())
    found = rows(out / "labels.csv")
    assert {row["id"] for row in found} == wanted and list(found[0]) == [
        "id",
        "cluster",
        "confidence",
    ]
    accuracy = mv.metrics.accuracy(
        [truth[row["id"]] for row in found], [int(row["cluster"]) for row in found]
    )
    assert accuracy >= 0.93
    said = json.loads(result.stdout)
    assert said["scores"]["acc"] == pytest.approx(accuracy)
    assert "pix.csv has the samples in columns" in result.stderr
    told = (
        "all 667 are used" if missing == "allow" else "634 samples are in every file and are used"
    )
    assert told in result.stderr and any(told in note for note in said["notes"])
    names = {path.name for path in out.iterdir()}
    assert {
        "labels.csv",
        "view_weights.csv",
        "sample_weights.csv",
        "model.npz",
        "run.json",
    } <= names
    assert {f"components_{view}.csv" for view in ("fou", "pix", "zer")} <= names
    assert ("report.html" in names) is (missing == "allow")
    parts = rows(out / "components_pix.csv")
    assert [row["feature"] for row in parts][:2] == ["pix_0", "pix_1"]
    record = json.loads((out / "run.json").read_text())
    assert record["seed"] == 0 and len(record["inputs"]) == 4 and "alignment" in record
    model = mv.load(out / "model.npz")
    assert [str(i) for i in model.sample_names_in_] == [row["id"] for row in found]


@pytest.fixture
def lab(tmp_path):
    views, y = blobs(n=30, features=(4, 5))
    ids = [f"p{i}" for i in range(30)]
    for name, X in zip(("rna", "prot"), views, strict=True):
        frame = pd.DataFrame(X, index=ids, columns=[f"{name}{j}" for j in range(X.shape[1])])
        frame.to_csv(tmp_path / f"{name}.csv")
    return tmp_path, ids, y


def test_new_samples_are_labelled_like_old_ones(lab):
    folder, ids, _ = lab
    files = [folder / "rna.csv", folder / "prot.csv"]
    assert (
        run("fit", *files, "--clusters", 3, "--out", folder / "run", "--no-report").exit_code == 0
    )
    model = mv.load(folder / "run" / "model.npz")
    new = pd.read_csv(files[0], index_col=0).iloc[[7, 3, 11], ::-1]
    new.to_csv(folder / "new.csv")
    given = [f"rna={folder / 'new.csv'}", f"prot={files[1]}"]
    result = run("predict", folder / "run" / "model.npz", *given, "--out", folder / "l.csv")
    assert result.exit_code == 0, result.output
    found = {row["id"]: int(row["cluster"]) for row in rows(folder / "l.csv")}
    assert {i: found[i] for i in ids} == dict(zip(ids, model.labels_.tolist(), strict=True))
    # One view alone, and the folder instead of the model.
    alone = run("predict", folder / "run", given[0], "--out", folder / "a.csv", "--json")
    assert "no file for the view 'prot'" in alone.stderr
    assert json.loads(alone.stdout)["n_samples"] == 3
    assert [row["id"] for row in rows(folder / "a.csv")] == ["p7", "p3", "p11"]
    assert all(0 < float(row["confidence"]) <= 1 for row in rows(folder / "a.csv"))
    for arguments, sentence in (
        (
            [given[0], "--out", folder / "a.csv"],
            "exists; name another file, or replace it by --force",
        ),
        (
            [folder / "new.csv", "--out", folder / "b.csv"],
            "none called 'new'; name the file's view",
        ),
        ([given[0], "--out", folder], "is a folder; name a file"),
        ([f"rna={files[1]}", "--out", folder / "b.csv"], "lacks 4 of its 4 fitted features"),
    ):
        bad = run("predict", folder / "run", *arguments)
        assert bad.exit_code == 2 and sentence in bad.stderr, bad.stderr
    assert not (folder / "b.csv").exists()


def test_the_papers_method_from_files(lab):
    folder, _, y = lab
    for extra in (["--missing", "drop"], ["--missing", "allow", "--scale", "minmax"]):
        out = folder / f"run{len(extra)}"
        files = [folder / "rna.csv", folder / "prot.csv"]
        asked = ["--method", "wmnmf", "--clusters", 3, "--out", out, "--no-report", "--quiet"]
        result = run("fit", *files, *asked, *extra)
        assert result.exit_code == 0 and result.output == ""
        labels = [int(row["cluster"]) for row in rows(out / "labels.csv")]
        assert mv.metrics.accuracy(y, labels) == 1
        assert isinstance(mv.load(out / "model.npz"), mv.WMNMF)


def test_a_second_run_asks_for_force_and_keeps_what_was_there(lab):
    folder, *_ = lab
    asked = ["fit", folder / "rna.csv", "--out", folder / "run", "--no-report", "--clusters"]
    assert run(*asked, 3).exit_code == 0
    before = {p.name: p.read_bytes() for p in (folder / "run").iterdir()}
    again = run(*asked, 2)
    assert again.exit_code == 2 and "is not empty; name another, or replace" in again.stderr
    assert before == {p.name: p.read_bytes() for p in (folder / "run").iterdir()}
    assert run(*asked, 2, "--force").exit_code == 0


@pytest.mark.parametrize("clusters", ["3", "auto"])
def test_the_same_command_finds_its_results_and_computes_nothing(lab, clusters, monkeypatch):
    """It may have been killed when they were in place; other data or changed results are no such case."""
    folder, *_ = lab
    out = folder / "run"
    asked = [
        "fit",
        folder / "rna.csv",
        "--clusters",
        clusters,
        "--out",
        out,
        "--no-report",
        "--json",
    ]
    first = run(*asked)
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    (out / ".manyview-lock").write_text("manyview writes here {}")  # as a killed process leaves it
    with monkeypatch.context() as patch:
        patch.setattr(mv.RobustWMNMF, "fit", None)
        again = run(*asked)
    assert again.exit_code == 0 and json.loads(again.stdout) == json.loads(first.stdout)
    spoken = run(*asked[:-1])
    assert "has the results of this command on these files already" in spoken.stderr
    assert before == {p.name: p.read_bytes() for p in out.iterdir()}
    for changed in (out / "labels.csv", folder / "rna.csv"):
        whole = changed.read_text()
        changed.write_text(whole.replace("\n", "0\n", 2)[: len(whole)])
        refused = run(*asked)
        assert refused.exit_code == 2 and "is not empty" in refused.stderr
        changed.write_text(whole)
    assert run(*asked, "--force").exit_code == 0


def test_signs_that_the_output_cannot_show_are_no_failure(lab):
    folder, *_ = lab
    asked = ["fit", f"é={folder / 'rna.csv'}", "--clusters", "3", "--no-report", "--out"]
    for number, words in enumerate(([], ["--json"])):
        done = subprocess.run(
            [sys.executable, "-m", "manyview", *asked, str(folder / f"run{number}"), *words],
            env=os.environ | {"PYTHONIOENCODING": "ascii"},
            capture_output=True,
        )
        assert done.returncode == 0 and (folder / f"run{number}" / "run.json").exists(), done.stderr
    assert "é" in json.loads(done.stdout.decode("ascii"))["view_weights"]


TWO = "id,g0\nx,1\ny,2\n"
MISTAKES = {
    "two marks": ("a.csv", "id;g0;g1\nx;1,5;2\ny;3.5;4\n", [], "has decimal commas and also '3.5'"),
    "text in a cell": ("a.csv", "id,g0\nx,1\ny,n.d.\n", [], "has 'n.d.' in row 'y', column 'g0'"),
    "duplicated ids": ("a.csv", "id,g0\nx,1\nx,2\n", [], "has the sample id 'x' more than once"),
    "no shared ids": ("a.csv", "id,g0\nu,1\nv,2\n", ["rna.csv"], "shares no sample id"),
    "negative values": ("a.csv", "id,g0\nx,1\ny,-2\nz,3\n", ["--method", "wmnmf"], "1 negative entries"),
    "one sample": ("a.csv", "id,g0\nx,1\n", [], "needs at least 2 observations"),
    "K above N": ("a.csv", TWO, ["--clusters", "5"], "n_clusters=5 is more than"),
    "not a number": ("a.csv", TWO, ["--clusters", "few"], "--clusters must be a number"),
    "unknown scale": ("a.csv", TWO, ["--scale", "minmax"], "the method robust takes auto"),
    "unknown method": ("a.csv", TWO, ["--method", "magic"], "must be one of robust, wmnmf, got 'magic'"),
    "unknown rule": ("a.csv", TWO, ["--missing", "no"], "must be one of allow, drop, got 'no'"),
    "unknown engine": ("a.csv", TWO, ["--engine", "cupy"], "one of numpy, torch, dask, got"),
    "no such column": ("a.csv", TWO, ["--index", "who"], "has 0 columns 'who'"),
    "no such view": ("a.csv", TWO, ["--transpose", "b"], "the views are a"),
    "unknown kind": ("a.docx", "", [], "is of no known kind; files may be .csv"),
    "out is a file": ("a.csv", TWO, ["--out", "rna.csv"], "is a file; name a folder"),
    "out in a file": ("a.csv", TWO, ["--out", "rna.csv/x"], "is a file, not a folder"),
    "nothing whole": ("a.csv", "id,g0,g1\nx,1,\ny,,2\n", ["--missing", "drop"], "none is left"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_gets_a_sentence_and_leaves_nothing(lab, case):
    folder, *_ = lab
    name, content, extra, sentence = MISTAKES[case]
    (folder / name).write_text(content)
    before = sorted(p.name for p in folder.iterdir())
    extra = [str(folder / item) if item.startswith("rna") else item for item in extra]
    result = run("fit", folder / name, "--clusters", 2, "--out", folder / "out", *extra)
    assert result.exit_code == 2 and sentence in result.stderr, result.output
    said = result.stderr.splitlines()  # how the file was read, and what is wrong
    assert [line for line in said if " in rows, " not in line] == said[-1:]
    assert "Traceback" not in result.output
    assert sorted(p.name for p in folder.iterdir()) == before


def test_a_folder_that_cannot_be_written_and_a_missing_extra(lab, monkeypatch):
    folder, *_ = lab
    monkeypatch.setattr("os.access", lambda path, mode: False)
    asked = ["fit", folder / "rna.csv", "--clusters", 2, "--out", folder / "out"]
    result = run(*asked)
    assert result.exit_code == 2 and "no folder can be written in" in result.stderr
    monkeypatch.undo()
    (folder / "absent").mkdir()
    (folder / "absent" / "h5py.py").write_text("raise ImportError")
    (folder / "a.h5ad").write_bytes(b"")
    monkeypatch.syspath_prepend(folder / "absent")
    result = run("fit", folder / "a.h5ad", "--clusters", 2, "--out", folder / "out")
    assert result.exit_code == 2 and "a.h5ad needs h5py" in result.stderr
    assert "pip install 'manyview[disk]'" in result.stderr


def test_failures_and_interruptions_have_their_own_status(lab, monkeypatch):
    folder, *_ = lab
    asked = ["fit", folder / "rna.csv", "--clusters", 2, "--out", folder / "out"]
    for error, status, sentence in (
        (KeyboardInterrupt(), 130, "Interrupted; nothing was written"),
        (RuntimeError("out of luck"), 1, "failed (RuntimeError: out of luck)"),
    ):

        def fail(*args, error=error, **kwargs):
            raise error

        monkeypatch.setattr(mv.RobustWMNMF, "fit", fail)
        result = run(*asked)
        assert result.exit_code == status and sentence in result.stderr
        assert not (folder / "out").exists()


def test_sparse_counts_stay_sparse_and_missing_ones_are_told_from_zeros(lab):
    folder, ids, _ = lab
    ad = pytest.importorskip("anndata")
    X = np.random.default_rng(0).poisson(1.0, (28, 40)).astype(float)
    data = ad.AnnData(sp.csr_matrix(X), obs=pd.DataFrame(index=ids[2:]))
    data.write_h5ad(folder / "atac.h5ad")
    asked = ["fit", folder / "rna.csv", folder / "atac.h5ad", "--clusters", 3, "--no-report"]
    result = run(*asked, "--out", folder / "run", "--json")
    assert result.exit_code == 0, result.output
    model = mv.load(folder / "run" / "model.npz")
    assert sp.issparse(model._data[1]) and model.sample_weights_[0, 1] == 0
    bad = run(*asked, "--out", folder / "bad", "--method", "wmnmf")
    assert bad.exit_code == 2 and "wmnmf cannot tell from zeros" in bad.stderr
    scipy.io.mmwrite(folder / "counts.mtx", sp.coo_array(np.vstack([X, X[:2]])))
    mixed = run("fit", folder / "rna.csv", folder / "counts.mtx", "--clusters", 3, "--no-report",
                "--out", folder / "mixed")  # fmt: skip
    assert mixed.exit_code == 0 and "no sample ids in counts.mtx" in mixed.stderr


def test_select_k_writes_its_reasons(lab):
    folder, *_ = lab
    asked = ["select-k", folder / "rna.csv", folder / "prot.csv", "--to", 5, "--out", folder / "k"]
    result = run(*asked, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["n_clusters"] == 3
    assert {p.name for p in (folder / "k").iterdir()} == {
        "selection.csv",
        "selection.png",
        "selection.json",
        ".manyview.json",
    }
    assert run(*asked).exit_code == 2
    assert "less than --from" in run(*asked, "--force", "--from", 9).stderr


def test_shipped_data_are_written_as_tables(tmp_path):
    result = run("datasets", "--out", tmp_path / "d", "--seed", 3, "--json")
    assert result.exit_code == 0, result.output
    synthetic = mv.datasets.make_synthetic(200, random_state=3)
    for data in (mv.datasets.load_nutrimouse(), synthetic):
        files = [tmp_path / "d" / data.name / f"{view}.csv" for view in data.views]
        read = read_views(files)
        for view, X in data.views.items():
            np.testing.assert_array_equal(read.views[view], X)
        labels = read_labels(tmp_path / "d" / data.name / "labels.csv", read)
        assert labels == [str(label) for label in data.labels]
    assert read_views(files[:1]).features[next(iter(synthetic.views))][0].endswith("_0")
    assert "handwritten" in {p.name for p in (tmp_path / "d").iterdir()}
    assert run("datasets", "--out", tmp_path / "d").exit_code == 2


@pytest.mark.parametrize("command", ["fit", "predict", "select-k", "compare", "datasets", "demo"])
def test_help_is_there(command):
    result = run(command, "--help")
    assert result.exit_code == 0
    if command in ("fit", "predict", "select-k"):
        assert f"manyview {command} " in result.output.split("Example")[1]


def test_shell_completion_can_be_installed():
    assert "--install-completion" in run("--help").output


def test_a_file_to_predict_may_have_its_samples_in_columns(lab):
    folder, _, _ = lab
    asked = ["--clusters", 3, "--no-report", "--out"]
    for files in (["rna.csv"], ["rna.csv", "prot.csv"]):
        out = folder / f"run{len(files)}"
        assert run("fit", *[folder / f for f in files], *asked, out).exit_code == 0
        turned = []
        for file in files:
            pd.read_csv(folder / file, index_col=0).T.to_csv(folder / f"turned_{file}")
            turned.append(f"{file[:-4]}={folder / f'turned_{file}'}")
        result = run("predict", out, *turned, "--out", folder / f"{len(files)}.csv")
        assert result.exit_code == 0, result.output
        assert "has the model's features in rows" in result.stderr
        given = [(row["id"], row["cluster"]) for row in rows(folder / f"{len(files)}.csv")]
        assert given == [(row["id"], row["cluster"]) for row in rows(out / "labels.csv")]


@pytest.mark.parametrize("method", ["robust", "wmnmf"])
def test_few_samples_have_their_number_of_clusters_chosen(tmp_path, method):
    X = blobs(n=12, features=(6,), clusters=2, noise=0.05)[0][0]
    X[9:] = np.nan  # samples without any value hold no cluster
    pd.DataFrame(X, index=[f"p{i}" for i in range(12)]).to_csv(tmp_path / "a.csv")
    asked = ["--clusters", "auto", "--no-report", "--method", method]
    asked += ["--missing", "drop"] if method == "wmnmf" else []
    result = run("fit", tmp_path / "a.csv", *asked, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["selection"]["reasons"]
    assert record["selection"]["n_clusters"] == record["n_clusters"]
    tried = [int(row["n_clusters"]) for row in rows(tmp_path / "run" / "selection.csv")]
    assert (min(tried), max(tried)) == (2, 8)
    assert run("select-k", tmp_path / "a.csv", "--out", tmp_path / "k").exit_code == 0


def test_the_known_classes_are_scored_and_their_number_is_said(lab):
    folder, ids, y = lab
    known = pd.Series(y[:20], index=ids[:20], name="label")
    known.to_csv(folder / "truth.csv", index_label="id")
    asked = ["--clusters", 3, "--labels", folder / "truth.csv", "--out", folder / "run", "--json"]
    result = run("fit", folder / "rna.csv", folder / "prot.csv", *asked)
    assert result.exit_code == 0, result.output
    assert "knows the classes of 20 of 30 samples" in result.stderr
    labels = [int(row["cluster"]) for row in rows(folder / "run" / "labels.csv")]
    accuracy = mv.metrics.accuracy(y[:20], labels[:20])
    assert json.loads(result.stdout)["scores"]["acc"] == pytest.approx(accuracy)
    assert float(rows(folder / "run" / "baseline.csv")[0]["acc"]) == pytest.approx(accuracy)


def test_a_failure_after_writing_does_not_say_that_nothing_was_written(lab, monkeypatch):
    folder, *_ = lab
    asked = ["fit", folder / "rna.csv", "--clusters", 3, "--no-report", "--out"]

    def fail(*args):
        raise RuntimeError("too late")

    monkeypatch.setattr("manyview.app.cli.fit._told", fail)
    result = run(*asked, folder / "run")
    assert result.exit_code == 1 and "nothing was written" not in result.stderr
    assert "some of the results may be in" in result.stderr
    monkeypatch.setattr("manyview.app.cli.fit.write_run", fail)
    assert "nothing was written" in run(*asked, folder / "other").stderr


@pytest.mark.parametrize("how", ["json", "both"])
def test_a_reader_who_leaves_is_no_failure(lab, how):
    folder, *_ = lab
    asked = ["fit", folder / "rna.csv", "--clusters", "3", "--no-report", "--out", folder / "run"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "manyview", *asked, *["--json"] * (how == "json")],
        stdout=writer,
        stderr=writer if how == "both" else subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    assert done.returncode == 0
    assert how == "both" or done.stderr.startswith("rna.csv: 30 samples in rows")
    assert how == "both" or done.stderr.count("\n") == 1
    assert (folder / "run" / "run.json").exists()


def test_the_engine_is_handed_on(tmp_path):
    asked = FitRequest(files=("a.csv",), clusters="3", out=tmp_path, engine="torch", device="cpu")
    model = make_model(asked)
    assert (model.engine, model.device) == ("torch", "cpu")


# --- options by view ---------------------------------------------------------------------------


def test_weights_scalings_and_zero_rows_are_given_by_view(lab):
    folder, _, _ = lab
    prot = pd.read_csv(folder / "prot.csv", index_col=0)
    prot.iloc[:3] = 0
    prot.to_csv(folder / "prot.csv")
    files = [folder / "rna.csv", folder / "prot.csv"]
    options = ["--view-weights", "rna=3,prot=1", "--scale", "rna=log,prot=none"]
    options += ["--zero-rows", "prot=observed", "--clusters", 3, "--no-report", "--json"]
    result = run("fit", *files, "--out", folder / "run", *options)
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["view_weights"] == {"rna": 0.75, "prot": 0.25}
    assert "zero throughout" not in result.stderr
    model = mv.load(folder / "run" / "model.npz")
    assert model.scaling_ == {"rna": "log", "prot": "none"}
    assert said["learned_view_weights"] == dict(
        zip(("rna", "prot"), model.learned_view_weights_, strict=True)
    )
    table = rows(folder / "run" / "view_weights.csv")
    assert [row["observations"] for row in table] == ["30", "30"]
    assert [row["scaling"] for row in table] == ["log", "none"]
    learned = [float(row["learned_weight"]) for row in table]
    np.testing.assert_allclose(learned, model.learned_view_weights_, rtol=1e-6)
    assert json.loads((folder / "run" / "run.json").read_text())["weights_are"] == "given"


@pytest.mark.parametrize(
    ("option", "text", "sentence"),
    [
        ("--view-weights", "even", "must be learned, equal or numbers such as rna=2,protein=1"),
        ("--view-weights", "rna=2,1", "'1' is not VIEW=VALUE"),
        ("--view-weights", "rna=2,rna=1", "names the view 'rna' twice"),
        ("--view-weights", "rna=much", "the weight of view 'rna' must be a number, got 'much'"),
        ("--view-weights", "rna=1", "no number for the view 'prot'"),
        ("--view-weights", "rna=1,meth=2", "names the view 'meth', and the views are"),
        ("--view-weights", "rna=-1,prot=1", "view 'rna' must be a finite number of 0 or more"),
        ("--zero-rows", "there", "must be auto, missing, observed or such as mutations=observed"),
        ("--zero-rows", "meth=observed", "--zero-rows names the view 'meth'"),
        ("--scale", "rna=loud", "takes auto, log, quantile, sqrt, none, or these by view"),
        ("--scale", "meth=log", "scale names the view 'meth'"),
    ],
)
def test_options_by_view_that_make_no_sense_get_a_sentence(lab, option, text, sentence):
    folder, _, _ = lab
    files = [folder / "rna.csv", folder / "prot.csv"]
    result = run("fit", *files, "--clusters", 3, "--out", folder / "run", option, text)
    assert result.exit_code == 2 and sentence in " ".join(result.stderr.split())
    assert not (folder / "run" / "labels.csv").exists()


@pytest.mark.parametrize("option", ["--view-weights", "--zero-rows"])
def test_the_papers_method_takes_no_such_options(lab, option):
    folder, _, _ = lab
    asked = [option, "equal" if option == "--view-weights" else "observed"]
    files = [folder / "rna.csv", folder / "prot.csv"]
    result = run("fit", *files, "--clusters", 3, "--out", folder / "r", "--method", "wmnmf", *asked)
    assert result.exit_code == 2 and "goes with --method robust" in result.stderr
