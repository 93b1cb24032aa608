"""The folder of a run: what is in it, and that it is written whole or not at all."""

import csv
import errno
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

import manyview as mv
from conftest import blobs
from manyview.app.run import write_run
from manyview.app.run.evidence import drawn, rival_labels
from manyview.app.run.record import component_files
from manyview.app.run.tables import departures
from manyview.io.writing import MARKER, is_whole, restored

TABLES = {
    "labels.csv",
    "clusters.csv",
    "view_weights.csv",
    "sample_weights.csv",
    "embedding.csv",
    "agreement.csv",
    "redundancy.csv",
    "cluster_view_weights.csv",
    "history.csv",
    "stability.csv",
    "baseline.csv",
    "markers.csv",
    "leave_view_out.csv",
    "cluster_features.csv",
    "parallel_features.csv",
    "fusion.csv",
    "fusion_labels.csv",
    "fusion_outcomes.csv",
    "heatmap.csv",
    "consensus.csv",
    "classes.csv",
    "annotations.csv",
    "run.json",
    "report.html",
}


def read(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def fitted(kind="robust", views=None, n_clusters=3, **params):
    views = blobs()[0] if views is None else views
    make = mv.RobustWMNMF if kind == "robust" else mv.WMNMF
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return make(n_clusters, random_state=0, **params).fit(views), views


@pytest.mark.parametrize("kind", ["robust", "paper"])
def test_the_tables_say_what_the_model_says(kind, tmp_path):
    model, views = fitted(kind)
    ids = [f"s{i}" for i in range(60)]
    out = write_run(model, views, tmp_path / "run", ids=ids, truth=blobs()[1], stability_runs=2)
    names = {path.name for path in out.iterdir()} - {MARKER}
    expected = TABLES | {f"components_view{s}.csv" for s in range(3)}
    if kind == "paper":
        expected -= {"cluster_view_weights.csv"}
    assert names - {"model.npz"} == expected
    labels = read(out / "labels.csv")
    assert [row["id"] for row in labels] == ids
    assert [int(row["cluster"]) for row in labels] == model.labels_.tolist()
    assert all(0 <= float(row["confidence"]) <= 1 for row in labels)
    weights = [float(row["weight"]) for row in read(out / "view_weights.csv")]
    np.testing.assert_allclose(weights, model.view_weights_, rtol=1e-7)
    found = [
        [float(row[f"with:view{t}"]) for t in range(3)] for row in read(out / "redundancy.csv")
    ]
    np.testing.assert_allclose(np.diag(found), 1)
    if kind == "robust":
        np.testing.assert_allclose(found, model.redundancy_, rtol=1e-6)
    for what, expected in (("weight", model.sample_weights_), ("reliance", model.reliance_)):
        found = [
            [float(row[f"{what}:view{s}"]) for s in range(3)]
            for row in read(out / "sample_weights.csv")
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    parts = read(out / "components_view1.csv")
    found = [[float(row[f"component_{k}"]) for row in parts] for k in range(3)]
    np.testing.assert_allclose(found, model.components_[1], rtol=1e-6)
    history = [float(row["objective"]) for row in read(out / "history.csv")]
    np.testing.assert_allclose(history, model.history_["objective"], rtol=1e-6)
    assert [row["clusters"] for row in read(out / "baseline.csv")] == ["3", "3"]
    assert float(read(out / "baseline.csv")[0]["acc"]) == 1
    run = json.loads((out / "run.json").read_text())
    assert run["seed"] == 0 and run["n_samples"] == 60 and run["warnings"] == []
    assert sorted(run["files"]) == sorted(names)
    # Private temporary folders must not leave a private result.
    assert out.stat().st_mode & 0o055 == 0o055


def test_the_same_fit_writes_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        model, views = fitted()
        write_run(model, views, tmp_path / name, stability_runs=2)
    for path in (tmp_path / "a").iterdir():
        if path.suffix != ".npz" and path.name != MARKER:
            assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def holes():
    views = [X.copy() for X in blobs(n=40)[0]]
    for X in views:
        X[3] = np.nan
    views[0][10:15] = np.nan
    views[1][7, 2] = np.nan
    return views


def test_what_is_missing_is_empty_and_said(tmp_path):
    model, views = fitted(views=holes())
    out = write_run(model, views, tmp_path / "run", stability_runs=2)
    labels = read(out / "labels.csv")
    assert labels[3] == {"id": "3", "cluster": "-1", "confidence": ""}
    weights = read(out / "sample_weights.csv")
    assert weights[12]["weight:view0"] == "" and weights[12]["reliance:view1"] != ""
    assert "3" not in [row["id"] for row in read(out / "embedding.csv")]
    notes = json.loads((out / "run.json").read_text())["warnings"]
    assert any("missing in every view" in note for note in notes)


def test_one_view_and_one_array_and_sparse_views(tmp_path):
    views = blobs()[0]
    for name, data, params in (
        ("one", [views[0]], {}),
        ("array", np.hstack(views), {"views": [8, 5, 6]}),
        ("sparse", [sp.csr_array(views[0]), views[1]], {}),
    ):
        model = mv.RobustWMNMF(3, random_state=0, **params).fit(data)
        out = write_run(model, data, tmp_path / name, stability_runs=2)
        assert len(read(out / "labels.csv")) == 60


@pytest.mark.parametrize("density", [0.02, 0.3])
def test_sparse_views_are_judged_as_dense_ones(rng, density):
    """By products of our own, of sparse views and of those that hardly are."""
    dense = [rng.random((90, m)) * (rng.random((90, m)) < density) for m in (40, 70)]
    sparse = [sp.csr_array(dense[0]), dense[1]]
    found, expected = (rival_labels(zs, 3, 0) for zs in (sparse, dense))
    assert adjusted_rand_score(found, expected) > 0.99


@pytest.mark.filterwarnings("ignore:.*lie far from all others:UserWarning")
def test_the_baseline_is_aligned_where_the_fit_is(tmp_path, rng):
    """Batches that shift every feature hide three groups from a baseline that is not told of them."""
    truth, batch = np.tile([0, 1, 2], 40), np.repeat(["a", "b"], 60)
    centers = [3 * rng.normal(size=(3, m)) for m in (8, 6)]
    views = [C[truth] + rng.normal(size=(120, C.shape[1])) for C in centers]
    views = [X + 30 * (batch == "b")[:, None] for X in views]
    for name, given in (("aligned", {"batch": batch}), ("not", {})):
        model = mv.RobustWMNMF(3, random_state=0).fit(views, **given)
        rows = read(
            write_run(model, views, tmp_path / name, stability_runs=0, truth=truth) / "baseline.csv"
        )
        assert (float(rows[1]["ari"]) > 0.9) == bool(given)
        assert ("within each batch" in rows[1]["clustering"]) == bool(given)


@pytest.mark.filterwarnings("ignore:.*hold counts:UserWarning")
def test_large_sets_are_refitted_from_the_model_and_saved(tmp_path, monkeypatch, rng):
    """Sparse views, whose products of all rows the refits make: no part of the model."""
    monkeypatch.setattr("manyview.app.run.evidence.FITTED_WHOLE", 50)
    y = np.repeat([0, 1, 2], 30)
    rates = [rng.gamma(0.5, 2, (3, 40))[y] for _ in range(2)]
    views = {name: sp.csr_array(rng.poisson(rate)) for name, rate in zip("ab", rates, strict=True)}
    model = mv.RobustWMNMF(3, random_state=0).fit(views)
    out = write_run(model, views, tmp_path / "run", stability_runs=2)
    assert (mv.load(out / "model.npz").labels_ == model.labels_).all()


def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    model, views = fitted()
    monkeypatch.setattr("manyview.app.run.folder.fit_page", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_run(model, views, tmp_path / "run", stability_runs=0)
    assert list(tmp_path.iterdir()) == []


def test_a_full_folder_is_kept_unless_forced_and_then_only_the_run_is_replaced(tmp_path):
    model, views = fitted(views={"a": blobs()[0][0], "b": blobs()[0][1]})
    out = write_run(model, views, tmp_path / "run", stability_runs=0)
    (out / "mine.txt").write_text("keep")
    before = (out / "history.csv").read_bytes()
    with pytest.raises(FileExistsError, match=r"not empty.*force"):
        write_run(model, views, out)
    other, other_views = fitted(views={"a": blobs(seed=1)[0][0], "c": blobs(seed=1)[0][1]})
    write_run(other, other_views, out, stability_runs=0, force=True)
    assert (out / "mine.txt").read_text() == "keep" and (out / "history.csv").read_bytes() != before
    assert not (out / "components_b.csv").exists() and (out / "components_c.csv").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"ids": ["a"]}, "ids has 1 names for 60"),
        (
            {"views": [X[:30] for X in blobs()[0]]},
            "30 samples, but the model was fitted on 60",
        ),
        ({"views": dict(zip("abc", blobs()[0], strict=True))}, r"\['a', 'b', 'c'\], but the model"),
    ],
)
def test_what_does_not_fit_together_is_refused(change, sentence, tmp_path):
    model, views = fitted()
    with pytest.raises(ValueError, match=sentence):
        write_run(model, change.pop("views", views), tmp_path / "run", **change)
    assert list(tmp_path.iterdir()) == []


def test_file_names_of_views_differ_and_stay_in_the_folder():
    files = component_files(["a/b", "a\\b", "A_B", "", "../x", "a_b_2"])
    assert len({name.lower() for name in files}) == 6
    assert all(name.startswith("components_") and not set(name) & set("/\\") for name in files)


def test_of_very_many_observations_a_part_is_drawn_always_the_same():
    labels = np.arange(1000) % 5 - 1
    rows = drawn(labels, 100)
    assert len(rows) == 100 and (labels[rows] >= 0).all() and (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, drawn(labels, 100))
    assert len(drawn(labels, 5000)) == 800


# --- numbers -----------------------------------------------------------------------------------


def test_lacking_a_view_is_no_departure():
    reliance = np.array([[0.5, 0.5], [0.5, 0.5], [0.5, 0.5], [1.0, 0.0], [1.0, 0.0]])
    here = np.ones((5, 2), bool)
    here[3, 1] = False
    np.testing.assert_allclose(departures(reliance, np.zeros(5, int), here), [0, 0, 0, 0, 0.5])


def test_noise_collapse_and_tiny_clusters_are_said(tmp_path, rng):
    views = {f"v{s}": X for s, X in enumerate(blobs(n=90)[0])} | {"noise": rng.random((90, 30))}
    model, _ = fitted(views=views)
    model.labels_[:] = 0
    model.labels_[:2] = 1
    model.view_weights_ = np.array([0.97, 0.01, 0.01, 0.01])
    out = write_run(model, views, tmp_path / "run", stability_runs=0)
    text = " ".join(json.loads((out / "run.json").read_text())["warnings"])
    for words in ("“v0” holds 97%", "“noise” agrees with no other", "only 2 have", "1 (2)"):
        assert words in text


# --- what there is to say ----------------------------------------------------------------------


def page_and_record(out):
    return (out / "report.html").read_text(), json.loads((out / "run.json").read_text())


def test_what_the_fit_warned_of_stands_in_the_box_and_once(tmp_path):
    views = {"a": blobs()[0][0], "b": blobs()[0][1]}
    model, _ = fitted(views=views | {"again": views["a"] * 2})
    told = ["a thing nobody foresaw", "views ['a', 'again'] are near-duplicates; they vote as one"]
    views["again"] = views["a"] * 2
    out = write_run(model, views, tmp_path / "run", stability_runs=0, info={"warnings": told})
    page, _ = page_and_record(out)
    box = page.split("Check before you publish")[1].split("</div>")[0]
    assert told[0] in box and box.count("near-duplicates") == 1 and "“again”" in box
    assert "Nothing unusual" not in page


def test_one_cluster_has_no_stability_and_too_many_leave_it_out_with_a_note(tmp_path):
    for n_clusters, reason in (
        (1, "always comes back"),
        (50, "fewer than the 50 requested clusters"),
    ):
        model, views = fitted(n_clusters=n_clusters)
        out = write_run(model, views, tmp_path / str(n_clusters), stability_runs=2)
        page, run = page_and_record(out)
        assert run["stability"] is None and reason in run["no_stability"] and reason in page
        assert "Refitted" not in page
        assert (out / "baseline.csv").exists() == (n_clusters > 1)


def test_a_chosen_number_of_clusters_is_explained(tmp_path):
    model, views = fitted(n_clusters="auto")
    out = write_run(model, views, tmp_path / "run", stability_runs=2)
    page, run = page_and_record(out)
    assert run["selection"]["n_clusters"] == 3 == run["n_clusters"]
    assert run["selection"]["reasons"] == model.selection_.reasons
    assert len(read(out / "selection.csv")) == len(model.selection_.table["score"])
    assert "Choosing K" in page and "selection.csv" in run["files"]


def test_that_nothing_stands_out_is_said(tmp_path, rng):
    model, views = fitted(views=[rng.normal(size=(60, 5))], n_clusters="auto")
    assert model.n_clusters_ == 1
    page, _ = page_and_record(write_run(model, views, tmp_path / "run"))
    assert "No number of clusters stands out" in page.split("Check before you publish")[1]


# --- where it is written -----------------------------------------------------------------------


def test_a_folder_that_is_there_is_filled_and_never_replaced(tmp_path, monkeypatch):
    model, views = fitted()
    true_replace, place = os.replace, tmp_path / "disk"
    place.mkdir()
    (tmp_path / "link").symlink_to(place)

    def mounted(source, target):
        if Path(target) == place or Path(source).parent == tmp_path:
            raise OSError(errno.EBUSY, "Device or resource busy")
        true_replace(source, target)

    monkeypatch.setattr("os.replace", mounted)
    for out in (tmp_path / "link", place):
        write_run(model, views, out, stability_runs=0, report=False, force=out == place)
        assert (tmp_path / "link").is_symlink() and (place / "run.json").exists()
        assert [path.name for path in place.iterdir() if path.name.startswith(".")] == [MARKER]


def test_a_writing_that_failed_halfway_is_finished_by_the_next_command(tmp_path, monkeypatch):
    model, views = fitted()
    out = write_run(model, views, tmp_path / "run", stability_runs=0, report=False)
    true_replace = os.replace

    def full(source, target):
        if Path(source).name == "run.json" and Path(target).parent == out:
            raise OSError(errno.ENOSPC, "No space left on device")
        true_replace(source, target)

    other, _ = fitted(n_clusters=4)
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr("os.replace", full)
        write_run(other, views, out, stability_runs=0, report=False, force=True)
    restored(out)
    assert is_whole(out, "fit")
    assert json.loads((out / "run.json").read_text())["n_clusters"] == 4
