"""`manyview fit` and `predict` as a person uses them, mistakes included."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from command import done, refused, rows, run, write_tables

import manyview as mv
from conftest import blobs
from manyview.app.cli.fit import FitRequest, make_model

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


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


@pytest.mark.parametrize(
    ("missing", "told"),
    [("allow", "all 667 are used"), ("drop", "634 samples are in every file and are used")],
)
def test_three_tables_become_clusters_for_the_union_or_the_intersection(
    digits, tmp_path, missing, told
):
    folder, truth, absent = digits
    views, out = ("fou", "pix", "zer"), tmp_path / "run"
    asked = ["--clusters", 10, "--missing", missing, "--labels", folder / "truth.csv", "--json"]
    asked += ["--no-report"]
    result = done("fit", *(folder / f"{view}.csv" for view in views), "--out", out, *asked)
    found = rows(out / "labels.csv")
    assert {row["id"] for row in found} == set(truth) - (absent if missing == "drop" else set())
    assert list(found[0]) == ["id", "cluster", "confidence"]
    known, labels = zip(*((truth[row["id"]], int(row["cluster"])) for row in found), strict=True)
    said, accuracy = json.loads(result.stdout), mv.metrics.accuracy(known, labels)
    assert said["scores"]["acc"] == pytest.approx(accuracy) and accuracy >= 0.93
    assert "pix.csv has the samples in columns" in result.stderr
    assert told in result.stderr and any(told in note for note in said["notes"])
    names = {path.name for path in out.iterdir()}
    assert names >= {f"components_{view}.csv" for view in views}
    assert names >= {"view_weights.csv", "sample_weights.csv", "model.npz", "run.json"}
    assert "report.html" not in names
    assert [row["feature"] for row in rows(out / "components_pix.csv")][:2] == ["pix_0", "pix_1"]
    record = json.loads((out / "run.json").read_text())
    assert record["seed"] == 0 and len(record["inputs"]) == 4 and "alignment" in record
    model = mv.load(out / "model.npz")
    assert [str(i) for i in model.sample_names_in_] == [row["id"] for row in found]


@pytest.fixture
def lab(tmp_path):
    return tmp_path, *write_tables(tmp_path)


def test_new_samples_are_labeled_like_old_ones(lab):
    folder, files, ids, _ = lab
    done("fit", *files, "--clusters", 3, "--out", folder / "run", "--no-report")
    model = mv.load(folder / "run" / "model.npz")
    pd.read_csv(files[0], index_col=0).iloc[[7, 3, 11], ::-1].to_csv(folder / "new.csv")
    new = f"rna={folder / 'new.csv'}"
    done(
        "predict", folder / "run" / "model.npz", new, f"prot={files[1]}", "--out", folder / "l.csv"
    )
    found = {row["id"]: int(row["cluster"]) for row in rows(folder / "l.csv")}
    assert {i: found[i] for i in ids} == dict(zip(ids, model.labels_.tolist(), strict=True))
    # One view alone, and the folder instead of the model.
    alone = done("predict", folder / "run", new, "--out", folder / "a.csv", "--json")
    assert "no file for the view 'prot'" in alone.stderr
    assert json.loads(alone.stdout)["n_samples"] == 3
    assert [row["id"] for row in rows(folder / "a.csv")] == ["p7", "p3", "p11"]
    assert all(0 < float(row["confidence"]) <= 1 for row in rows(folder / "a.csv"))
    for file, out, sentence in (
        (new, "a.csv", "exists; name another file, or replace it with --force"),
        (folder / "new.csv", "b.csv", "none called 'new'; name the file's view"),
        (new, "", "is a folder; name a file"),
        (f"rna={files[1]}", "b.csv", "lacks 4 of its 4 fitted features"),
    ):
        refused(sentence, "predict", folder / "run", file, "--out", folder / out)
    assert not (folder / "b.csv").exists()


@pytest.mark.parametrize("names", [["rna"], ["rna", "prot"]])
def test_a_file_to_predict_may_have_its_samples_in_columns(lab, names):
    folder, files, *_ = lab
    out, turned = folder / "run", []
    done("fit", *files[: len(names)], "--clusters", 3, "--no-report", "--out", out)
    for name in names:
        pd.read_csv(folder / f"{name}.csv", index_col=0).T.to_csv(folder / f"turned_{name}.csv")
        turned.append(f"{name}={folder / f'turned_{name}.csv'}")
    result = done("predict", out, *turned, "--out", folder / "new.csv")
    assert "has the model's features in rows" in result.stderr
    found = [
        [(r["id"], r["cluster"]) for r in rows(p)] for p in (folder / "new.csv", out / "labels.csv")
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("extra", [["--missing", "drop"], ["--scale", "minmax"]])
def test_the_papers_method_from_files(lab, extra):
    folder, files, _, y = lab
    asked = [*WMNMF, "--clusters", 3, "--out", folder / "run", "--no-report", "--quiet"]
    assert done("fit", *files, *asked, *extra).output == ""
    labels = [int(row["cluster"]) for row in rows(folder / "run" / "labels.csv")]
    assert mv.metrics.accuracy(y, labels) == 1
    assert isinstance(mv.load(folder / "run" / "model.npz"), mv.WMNMF)


@pytest.mark.parametrize("clusters", ["3", "auto"])
def test_the_same_command_finds_its_results_and_computes_nothing(lab, clusters, monkeypatch):
    """It may have been killed when they were in place; other data or changed results are no such case."""
    folder, (file, _), *_ = lab
    out = folder / "run"
    asked = ["fit", file, "--clusters", clusters, "--out", out, "--no-report"]
    first = done(*asked, "--json")
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    (out / ".manyview-lock").write_text("manyview writes here {}")  # as a killed process leaves it
    with monkeypatch.context() as patch:
        patch.setattr(mv.RobustWMNMF, "fit", None)
        assert json.loads(done(*asked, "--json").stdout) == json.loads(first.stdout)
    assert "has the results of this command on these files already" in done(*asked).stderr
    refused("is not empty; name another, or add --force", *asked, "--seed", 1)
    assert before == {p.name: p.read_bytes() for p in out.iterdir()}
    for changed in (out / "labels.csv", file):
        whole = changed.read_text()
        changed.write_text(whole.replace("\n", "0\n", 2)[: len(whole)])
        refused("is not empty", *asked)
        changed.write_text(whole)
    done(*asked, "--force")


def test_signs_that_the_output_cannot_show_and_readers_who_leave_are_no_failure(lab):
    folder, (file, _), *_ = lab
    reader, left = os.pipe()
    os.close(reader)
    ascii_only, pipe = os.environ | {"PYTHONIOENCODING": "ascii"}, subprocess.PIPE
    cases = [
        (["--json"], {"stdout": pipe, "stderr": pipe, "env": ascii_only}),
        (["--json"], {"stdout": left, "stderr": pipe}),
        ([], {"stdout": left, "stderr": left}),
    ]
    ended = []
    for number, (words, how) in enumerate(cases):
        asked = [
            "fit",
            f"é={file}",
            "--clusters",
            "3",
            "--no-report",
            "--out",
            folder / f"{number}",
        ]
        words = [sys.executable, "-m", "manyview", *asked, *words]
        ended.append(subprocess.run(words, **how))
        assert ended[-1].returncode == 0 and (folder / f"{number}" / "run.json").exists()
    assert "é" in json.loads(ended[0].stdout.decode("ascii"))["view_weights"]
    said = ended[1].stderr.decode()
    assert said.startswith("rna.csv: 30 samples in rows") and said.count("\n") == 1
    os.close(left)


TWO, WMNMF = "id,g0\nx,1\ny,2\n", ["--method", "wmnmf"]
#: name → the text of a file, options, and what is said.
MISTAKES = {
    "text in a cell": ("id,g0\nx,1\ny,n.d.\n", [], "has 'n.d.' in row 'y', column 'g0'"),
    "nothing whole": ("id,g0,g1\nx,1,\ny,,2\n", ["--missing", "drop"], "none is left"),
    "negative values": ("id,g0\nx,1\ny,-2\nz,3\n", WMNMF, "1 negative entries"),
    "one sample": ("id,g0\nx,1\n", [], "needs at least 2 samples"),
    "no such view": (TWO, ["--transpose", "b"], "the views are a"),
    "K above N": (TWO, ["--clusters", "5"], "--clusters 5 is more than"),
    "not a number": (TWO, ["--clusters", "few"], "--clusters must be a number of 1 or more, auto or"),
    "unknown method": (TWO, ["--method", "magic"], "must be one of robust, wmnmf, got 'magic'"),
    "unknown rule": (TWO, ["--missing", "no"], "must be one of allow, drop, got 'no'"),
    "unknown engine": (TWO, ["--engine", "cupy"], "must be one of numpy, torch, dask, got 'cupy'"),
    "a GPU of no engine": (TWO, ["--device", "cuda"], "--device cuda works only with --engine torch"),
    "unknown scale": (TWO, ["--scale", "minmax"], "--scale must be auto, log, quantile, sqrt, embedding"),
    "weights in the paper's": (TWO, [*WMNMF, "--view-weights", "equal"], "works only with --method robust"),
    "zeros in the paper's": (TWO, [*WMNMF, "--zero-rows", "observed"], "works only with --method robust"),
    "communities in the paper's": (TWO, [*WMNMF, "--clusters", "communities"], "only with --method robust"),
    "a resolution of a number": (TWO, ["--resolution", "2"], "works only with --clusters communities"),
    "unknown weights": (TWO, ["--view-weights", "even"], "must be learned, equal, or by view such as"),
    "a part of no view": (TWO, ["--view-weights", "a=2,1"], "'1' is not VIEW=VALUE"),
    "a view twice": (TWO, ["--view-weights", "a=2,a=1"], "names the view 'a' twice"),
    "no number": (TWO, ["--view-weights", "a=much"], "the weight of view 'a' must be a number, got 'much'"),
    "no weight": (TWO, ["--view-weights", "b=1"], "names the view 'b', and the views are"),
    "a negative weight": (TWO, ["--view-weights", "a=-1"], "'a' must be a finite number of 0 or more"),
    "unknown zeros": (TWO, ["--zero-rows", "there"], "must be auto, missing, observed, or by view"),
    "zeros of no view": (TWO, ["--zero-rows", "b=observed"], "--zero-rows names the view 'b'"),
    "scale of no view": (TWO, ["--scale", "b=log"], "scale names the view 'b'"),
    "out is a file": (TWO, ["--out", "rna.csv"], "is a file; name a folder"),
    "out in a file": (TWO, ["--out", "rna.csv/x"], "is a file, not a folder"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_gets_a_sentence_and_leaves_nothing(lab, case):
    folder, *_ = lab
    content, extra, sentence = MISTAKES[case]
    (folder / "a.csv").write_text(content)
    before = sorted(p.name for p in folder.iterdir())
    extra = [str(folder / item) if item.startswith("rna") else item for item in extra]
    asked = ["fit", folder / "a.csv", "--clusters", 2, "--out", folder / "out", *extra]
    said = refused(sentence, *asked).stderr.splitlines()
    assert [line for line in said if " in rows, " not in line] == said[-1:]
    assert sorted(p.name for p in folder.iterdir()) == before


def test_a_folder_that_cannot_be_written_and_a_missing_extra(lab, monkeypatch):
    folder, (file, _), *_ = lab
    asked = ["--clusters", 2, "--out", folder / "out"]
    with monkeypatch.context() as patch:
        patch.setattr("os.access", lambda path, mode: False)
        refused("no folder can be written in", "fit", file, *asked)
    (folder / "absent").mkdir()
    (folder / "absent" / "h5py.py").write_text("raise ImportError")
    (folder / "a.h5ad").write_bytes(b"")
    monkeypatch.syspath_prepend(folder / "absent")
    result = refused("a.h5ad needs h5py", "fit", folder / "a.h5ad", *asked)
    assert "pip install 'manyview[disk]'" in result.stderr


@pytest.mark.parametrize(
    ("where", "error", "status", "sentence"),
    [
        ("manyview.RobustWMNMF.fit", KeyboardInterrupt(), 130, "Interrupted; nothing was written"),
        ("manyview.RobustWMNMF.fit", RuntimeError("bad luck"), 1, "(RuntimeError: bad luck); nothing was"),
        ("manyview.app.cli.fit.write_run", RuntimeError("late"), 1, "nothing was written"),
        ("manyview.app.cli.fit._told", RuntimeError("too late"), 1, "some of the results may be in"),
    ],
)  # fmt: skip
def test_failures_and_interruptions_have_their_own_status(
    lab, monkeypatch, where, error, status, sentence
):
    def fail(*args, **kwargs):
        raise error

    folder, (file, _), *_ = lab
    monkeypatch.setattr(where, fail)
    result = run("fit", file, "--clusters", 3, "--no-report", "--out", folder / "out")
    assert result.exit_code == status and sentence in result.stderr
    assert (folder / "out").exists() == ("some" in sentence)


def test_sparse_counts_stay_sparse_and_missing_ones_are_told_from_zeros(lab):
    folder, (file, _), ids, _ = lab
    ad = pytest.importorskip("anndata")
    X = np.random.default_rng(0).poisson(1.0, (28, 40)).astype(float)
    data = ad.AnnData(sp.csr_matrix(X), obs=pd.DataFrame(index=ids[2:]))
    data.write_h5ad(folder / "atac.h5ad")
    asked = ["fit", file, folder / "atac.h5ad", "--clusters", 3, "--no-report", "--out"]
    done(*asked, folder / "run", "--json")
    model = mv.load(folder / "run" / "model.npz")
    assert sp.issparse(model._data[1]) and model.sample_weights_[0, 1] == 0
    refused("wmnmf cannot tell from zeros", *asked, folder / "bad", "--method", "wmnmf")
    scipy.io.mmwrite(folder / "counts.mtx", sp.coo_array(np.vstack([X, X[:2]])))
    asked[2] = folder / "counts.mtx"
    assert "no sample ids in counts.mtx" in done(*asked, folder / "mixed").stderr


@pytest.mark.parametrize("method", ["robust", "wmnmf"])
def test_few_samples_have_their_number_of_clusters_chosen(tmp_path, method):
    X = blobs(n=12, features=(6,), clusters=2, noise=0.05)[0][0]
    X[9:] = np.nan  # samples without any value hold no cluster
    pd.DataFrame(X, index=[f"p{i}" for i in range(12)]).to_csv(tmp_path / "a.csv")
    asked = ["--clusters", "auto", "--no-report", "--method", method]
    asked += ["--missing", "drop"] if method == "wmnmf" else []
    done("fit", tmp_path / "a.csv", *asked, "--out", tmp_path / "run")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["selection"]["reasons"]
    assert record["selection"]["n_clusters"] == record["n_clusters"]
    tried = [int(row["n_clusters"]) for row in rows(tmp_path / "run" / "selection.csv")]
    assert (min(tried), max(tried)) == (2, 8)


def test_the_known_classes_are_scored_and_their_number_is_said(lab):
    folder, files, ids, y = lab
    known = pd.Series(y[:20], index=ids[:20], name="label")
    known.to_csv(folder / "truth.csv", index_label="id")
    asked = ["--clusters", 3, "--labels", folder / "truth.csv", "--out", folder / "run", "--json"]
    result = done("fit", *files, *asked)
    assert "has the classes of 20 of 30 samples" in result.stderr
    labels = [int(row["cluster"]) for row in rows(folder / "run" / "labels.csv")]
    accuracy = mv.metrics.accuracy(y[:20], labels[:20])
    assert json.loads(result.stdout)["scores"]["acc"] == pytest.approx(accuracy)
    assert float(rows(folder / "run" / "baseline.csv")[0]["acc"]) == pytest.approx(accuracy)


def test_the_engine_is_handed_on(tmp_path):
    asked = FitRequest(files=("a.csv",), clusters="3", out=tmp_path, engine="torch", device="cpu")
    model = make_model(asked)
    assert (model.engine, model.device) == ("torch", "cpu")


def test_weights_scalings_and_zero_rows_are_given_by_view(lab):
    folder, files, *_ = lab
    prot = pd.read_csv(files[1], index_col=0)
    prot.iloc[:3] = 0
    prot.to_csv(files[1])
    options = ["--view-weights", "rna=3,prot=1", "--scale", "rna=log,prot=none"]
    options += ["--zero-rows", "prot=observed", "--clusters", 3, "--no-report", "--json"]
    result = done("fit", *files, "--out", folder / "run", *options)
    said = json.loads(result.stdout)
    assert said["view_weights"] == {"rna": 0.75, "prot": 0.25}
    assert "zero throughout" not in result.stderr
    model = mv.load(folder / "run" / "model.npz")
    assert model.scaling_ == {"rna": "log", "prot": "none"}
    assert list(said["learned_view_weights"].values()) == list(model.learned_view_weights_)
    table = rows(folder / "run" / "view_weights.csv")
    assert [row["samples"] for row in table] == ["30", "30"]
    assert [row["scaling"] for row in table] == ["log", "none"]
    learned = [float(row["learned_weight"]) for row in table]
    np.testing.assert_allclose(learned, model.learned_view_weights_, rtol=1e-6)
    assert json.loads((folder / "run" / "run.json").read_text())["weights_are"] == "given"
