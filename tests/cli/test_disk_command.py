"""`manyview fit` on files that stay on disk, and with a checkpoint."""

import errno
import json
import os

import numpy as np
import pytest
from command import done, refused, run

from conftest import blobs
from manyview import load
from manyview.app.files import read_views
from manyview.engines.files.disk import DiskMatrix
from manyview.views.views import as_views
from manyview.wmnmf import Progress


@pytest.fixture
def files(tmp_path):
    views, y = blobs(n=90)
    for name, X in zip("abc", views, strict=True):
        np.save(tmp_path / f"{name}.npy", X)
    return [str(tmp_path / f"{name}.npy") for name in "abc"], views, y


def fit(files, out, *options):
    return ["fit", *files, "--clusters", 3, "--out", out, *options]


@pytest.mark.parametrize("method", ["robust", "wmnmf"])
def test_a_run_on_files_writes_what_a_run_in_memory_writes(method, files, tmp_path):
    names, *_ = files
    told = done(*fit(names, tmp_path / "disk", "--method", method, "--on-disk")).stderr
    assert "stay on disk" in told
    done(*fit(names, tmp_path / "memory", "--method", method, "--no-report"))
    tables = [(tmp_path / where / "labels.csv").read_text() for where in ("disk", "memory")]
    clusters = [[line.split(",")[1] for line in table.splitlines()] for table in tables]
    assert clusters[0] == clusters[1]
    written = {path.name for path in (tmp_path / "disk").iterdir()}
    assert {"report.html", "run.json", "model.npz", "markers.csv"} <= written
    record = json.loads((tmp_path / "disk" / "run.json").read_text())
    kept = json.loads((tmp_path / "memory" / "run.json").read_text())
    assert [v["sha256"] for v in record["views"]] == [v["sha256"] for v in kept["views"]]
    assert record["inputs"] == kept["inputs"]
    done("predict", tmp_path / "disk" / "model.npz", *names, "--out", tmp_path / "new.csv")


def test_hdf5_and_zarr_files_are_views(files, tmp_path):
    h5py, zarr = pytest.importorskip("h5py"), pytest.importorskip("zarr")
    _, views, _ = files
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["rna"], file["deep/atac"] = views[0], views[1]
    zarr.save(str(tmp_path / "c.zarr"), views[2])
    named = [f"{tmp_path}/two.h5::rna", f"open={tmp_path}/two.h5::deep/atac", f"{tmp_path}/c.zarr"]
    data = read_views(named)
    assert list(data.views) == ["rna", "open", "c"] and "by position" in data.notes[0]
    for X, found in zip(views, data.views.values(), strict=True):
        np.testing.assert_array_equal(X, found)
    data = read_views(named, on_disk=True)
    assert all(isinstance(X, DiskMatrix) for X in data.views.values())
    done(*fit(named, tmp_path / "run", "--no-report"))
    assert list(load(tmp_path / "run" / "model.npz").view_names_in_) == ["rna", "open", "c"]


def test_anndata_in_zarr_in_another_order_is_refused_as_h5ad_is(tmp_path):
    anndata, _ = pytest.importorskip("anndata"), pytest.importorskip("zarr")
    views, _ = blobs(n=30)
    for name, X, step in zip("ab", views[:2], (1, -1), strict=True):
        data = anndata.AnnData(X)
        data.obs_names = [f"s{i}" for i in range(30)][::step]
        data.write_h5ad(tmp_path / f"{name}.h5ad")
        data.write_zarr(tmp_path / f"{name}.zarr")
    first = str(tmp_path / "a.h5ad")
    for other in ("b.h5ad", "b=b.zarr::X", "b.zarr"):
        name, _, file = other.rpartition("=")
        given = f"{name}={tmp_path / file}" if name else str(tmp_path / file)
        asked = fit([first, given], tmp_path / "run", "--on-disk")
        refused("do not, row 0: 's0' and 's29'", *asked)
    data = read_views([first, tmp_path / "a.zarr::X"], on_disk=True)
    assert data.sample_names.tolist()[:2] == ["s0", "s1"]


@pytest.mark.parametrize(
    "how", ["index", "named index", "text index", "id column", "known heading"]
)
def test_ids_in_parquet_are_no_feature_whatever_their_type(how, tmp_path):
    pandas = pytest.importorskip("pandas")
    X = blobs(n=30)[0][0]
    numbers = np.random.default_rng(0).permutation(30) * 1000
    for name, order in (("a", slice(None)), ("b", slice(None, None, -1))):
        ids = [f"p{n}" for n in numbers[order]] if how == "text index" else numbers[order]
        frame = pandas.DataFrame(X[order], columns=[f"f{j}" for j in range(X.shape[1])])
        if how.endswith("index"):
            frame.index = pandas.Index(ids, name="age" if how == "named index" else None)
        else:
            frame.insert(0, "patient_id" if how == "id column" else "patient", ids)
        frame.to_parquet(tmp_path / f"{name}.parquet")
    a, b = (str(tmp_path / f"{name}.parquet") for name in "ab")
    memory, disk = read_views([a]), read_views([a], on_disk=True)
    assert disk.sample_names.tolist() == memory.sample_names.tolist()
    assert disk.features == memory.features and disk.views["a"].shape == X.shape
    np.testing.assert_array_equal(disk.views["a"].load(), memory.views["a"])
    with pytest.raises(ValueError, match="must list the same samples in one order"):
        read_views([a, b], on_disk=True)
    aligned = as_views([a, b])
    np.testing.assert_array_equal(*aligned.matrices)
    with pytest.raises(ValueError, match="does not have the same samples in the same order"):
        as_views([DiskMatrix(a), DiskMatrix(b)], allow_files=True)


def test_bad_files_end_in_a_sentence_and_leave_nothing(files, tmp_path, monkeypatch):
    names, views, _ = files
    before = sorted(tmp_path.iterdir())
    bad = views[1].copy()
    bad[6 * 10 + 4, 1] = np.nan
    np.save(names[1], bad)
    monkeypatch.setattr("manyview.engines.protocols.LOOK", 10 * bad.shape[1])
    asked = fit(names, tmp_path / "run", "--on-disk")
    refused("view 'b' (b.npy): rows 60 to 69 hold 1 NaN", *asked)
    os.truncate(names[1], 900)
    refused("it was cut short", *asked)
    refused("have the samples in rows", *asked, "--transpose", "a")
    refused("have the samples in rows", *asked, "--index", "id")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    refused("t.csv cannot be read by rows", *asked, tmp_path / "t.csv")
    np.save(names[1], views[1][:50])
    refused("the same samples in the same order", *asked)
    assert sorted(p for p in tmp_path.iterdir() if p.suffix != ".csv") == before


@pytest.mark.parametrize("method", ["robust", "wmnmf"])
def test_an_interrupted_command_goes_on_and_lost_results_are_not_computed_again(
    method, files, tmp_path, monkeypatch
):
    names, state, left = files[0], tmp_path / "state", [7]
    monkeypatch.setattr("manyview.storage.checkpoint.SECONDS", 0)
    asked = ["--method", method, "--no-report", "--checkpoint", state]

    def model(out):
        return load(tmp_path / out / "model.npz")

    def failing(error):
        def fail(*args, **kwargs):
            raise error

        return fail

    def interrupting(*args, **kwargs):
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        return record(*args, **kwargs)

    record = Progress.record
    with monkeypatch.context() as patch:
        patch.setattr("manyview.app.cli.inputs.read_views", failing(KeyboardInterrupt()))
        before = run(*fit(names, tmp_path / "run", *asked))
    assert before.exit_code == 130 and "go on" not in before.stderr  # nothing to go on from
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "record", interrupting)
        ended = run(*fit(names, tmp_path / "run", *asked))
    assert ended.exit_code == 130 and state.exists() and not (tmp_path / "run").exists()
    assert "run the same command again to go on from" in " ".join(ended.stderr.split())
    with monkeypatch.context() as patch:
        full = OSError(errno.ENOSPC, "No space left on device")
        patch.setattr("manyview.app.cli.fit.write_run", failing(full))
        ended = run(*fit(names, tmp_path / "run", *asked))
    told = " ".join(ended.stderr.split())
    assert ended.exit_code == 1 and state.exists() and "nothing was written; run the same" in told
    with monkeypatch.context() as patch:  # all that is left is the writing
        again = failing(AssertionError("an iteration was done again"))
        patch.setattr(Progress, "record", again)
        patch.setattr("manyview.wmnmf.assign", again)
        done(*fit(names, tmp_path / "run", *asked))
    assert not state.exists()
    done(*fit(names, tmp_path / "whole", "--method", method, "--no-report"))
    for name in ("consensus_", "labels_", "view_weights_", "sample_weights_"):
        np.testing.assert_array_equal(getattr(model("run"), name), getattr(model("whole"), name))
