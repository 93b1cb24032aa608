"""Views in files: the same fit as in memory, sentences for broken files, little memory."""

import os
import shutil
import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from conftest import blobs
from manyview import WMNMF, RobustWMNMF, load, on_disk, select_n_clusters, write_run
from manyview import wmnmf as estimators
from manyview.app.files import read_views
from manyview.baselines import ConcatViews
from manyview.engines.affinity import affinity, nearest_neighbors
from manyview.engines.files import slabs
from manyview.engines.files.disk import DiskMatrix
from manyview.engines.files.row_file import RowFile
from manyview.engines.numpy import neighbors
from manyview.engines.numpy.distances import FileGeometry, Geometry
from manyview.engines.numpy.neighbors import streamed_neighbors
from manyview.engines.numpy.scaling import ScaledFile, Unscaled
from manyview.engines.numpy.sources import Scaled, leading_directions, project, reading
from manyview.nonnegative import fit_nonnegative
from manyview.regularizers import Graph
from manyview.views import views as views_module
from manyview.views.views import as_views

N = 300


@pytest.fixture
def small_slabs(monkeypatch):
    """Slabs of a few rows, few of them held at a time."""
    monkeypatch.setattr(slabs, "SLAB", 2000)
    monkeypatch.setattr(slabs, "HELD", 8000)


def as_npy(folder, name, X):
    np.save(folder / f"{name}.npy", X)
    return on_disk(folder / f"{name}.npy")


def as_hdf5(folder, name, X):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / f"{name}.h5", "w") as file:
        file.create_dataset("group/x", data=X, chunks=(7, X.shape[1]), compression="gzip")
    return on_disk(f"{folder / name}.h5::group/x")


def as_zarr(folder, name, X):
    zarr = pytest.importorskip("zarr")
    zarr.save(str(folder / f"{name}.zarr"), X)
    return on_disk(folder / f"{name}.zarr")


def as_parquet(folder, name, X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    frame.insert(0, "sample", [f"s{i}" for i in range(len(X))])
    frame.to_parquet(folder / f"{name}.parquet", row_group_size=71, index=False)
    return on_disk(folder / f"{name}.parquet")


def as_h5ad(folder, name, X):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(X).write_h5ad(folder / f"{name}.h5ad")
    return on_disk(folder / f"{name}.h5ad")


def as_sparse_h5ad(folder, name, X):
    return as_h5ad(folder, name, sp.csr_matrix(X))


def as_sparse_zarr(folder, name, X):
    anndata, _ = pytest.importorskip("anndata"), pytest.importorskip("zarr")
    anndata.AnnData(sp.csr_matrix(X)).write_zarr(folder / f"{name}.zarr")
    return on_disk(folder / f"{name}.zarr")


FORMS = (as_npy, as_hdf5, as_zarr, as_parquet, as_h5ad)


@pytest.mark.parametrize("make", FORMS)
def test_a_fit_from_files_has_the_bits_of_one_in_memory(make, tmp_path, monkeypatch, small_slabs):
    views, _ = blobs(n=N)
    monkeypatch.setattr(estimators, "COPY_LIMIT", 0)
    kept = WMNMF(3, random_state=0).fit(views)
    files = [make(tmp_path, f"v{s}", X) for s, X in enumerate(views)]
    read = WMNMF(3, random_state=0).fit(files)
    assert all(X.on_disk for X in read._fitted_views)
    np.testing.assert_array_equal(read.consensus_, kept.consensus_)
    np.testing.assert_array_equal(read.labels_, kept.labels_)
    new = [X[:40] for X in views]
    np.testing.assert_array_equal(read.predict(new), kept.predict(new))
    np.testing.assert_allclose(read.transform(new), kept.transform(new), rtol=1e-9)
    assert read.score(new) == pytest.approx(kept.score(new))
    again = load(read.save(tmp_path / "m.npz"), fitted_on=files)
    np.testing.assert_array_equal(again.predict(files), read.predict(views))


@pytest.mark.parametrize("scale", ["minmax", "standard", "tfidf", "sqrt", None])
@pytest.mark.parametrize("make", [as_npy, as_sparse_h5ad, as_sparse_zarr])
def test_every_scaling_is_fitted_in_blocks(scale, make, tmp_path, small_slabs, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.random((N, 9)) * (rng.random((N, 9)) < 0.5)
    monkeypatch.setattr("manyview.engines.protocols.LOOK", 100)
    file = make(tmp_path, "v", X)
    held = sp.csr_array(X) if file.sparse else X
    (expected,), (found,) = (
        fit_nonnegative(as_views([M], allow_files=True), scale) for M in (held, file)
    )
    scaled = Scaled(file, found, np.dtype(float)).read(slice(3, 50))
    wanted = expected.apply(held)[3:50]
    for M in (scaled, wanted):
        assert sp.issparse(M) == file.sparse
    dense = [M.toarray() if sp.issparse(M) else M for M in (scaled, wanted)]
    np.testing.assert_allclose(*dense, rtol=1e-12, atol=1e-15)


def test_rows_of_any_order_and_number_come_as_they_are(tmp_path, small_slabs):
    X = np.random.default_rng(0).integers(0, 9, (N, 5))
    file = as_npy(tmp_path, "v", X)
    assert file.dtype == np.float64 and file.shape == X.shape
    rows = np.random.default_rng(1).integers(0, N, 77)
    np.testing.assert_array_equal(file[rows], X[rows])
    np.testing.assert_array_equal(file[np.arange(N) % 3 == 0], X[::3])
    np.testing.assert_array_equal(file[17:260], X[17:260])
    assert file[5:5].shape == (0, 5) and file.load().shape == X.shape
    with pytest.raises(TypeError, match="read by rows"):
        file[:, 2]


@pytest.mark.parametrize("kind", ["paths", "text", "memmap", "h5py", "zarr", "backed"])
def test_what_users_hold_open_is_read_from_its_file(kind, tmp_path, monkeypatch):
    views, _ = blobs(n=60)
    monkeypatch.setattr(views_module, "LOAD_LIMIT", 0)
    expected = WMNMF(3, random_state=0).fit(views)
    if kind in ("paths", "text", "memmap"):
        files = [Path(as_npy(tmp_path, f"v{s}", X).path) for s, X in enumerate(views)]
        held = {
            "paths": files,
            "text": [str(f) for f in files],
            "memmap": [np.load(f, mmap_mode="r") for f in files],
        }[kind]
    elif kind == "h5py":
        h5py = pytest.importorskip("h5py")
        files = [as_hdf5(tmp_path, f"v{s}", X).path for s, X in enumerate(views)]
        held = [h5py.File(file, "r")["group/x"] for file in files]
    elif kind == "zarr":
        zarr = pytest.importorskip("zarr")
        for s, X in enumerate(views):
            as_zarr(tmp_path, f"v{s}", X)
        held = [zarr.open(str(tmp_path / f"v{s}.zarr"), mode="r") for s in range(len(views))]
    else:
        anndata = pytest.importorskip("anndata")
        held = [
            anndata.read_h5ad(as_h5ad(tmp_path, f"v{s}", X).path, backed="r")
            for s, X in enumerate(views)
        ]
    model = WMNMF(3, random_state=0).fit(held)
    assert all(isinstance(X.X, DiskMatrix) for X in model._fitted_views)
    np.testing.assert_allclose(model.consensus_, expected.consensus_, rtol=1e-9)


@pytest.mark.parametrize("kind", ["h5py .hdf", "h5py core", "zarr group", "zarr memory"])
def test_open_arrays_are_found_again_by_file_and_name_or_loaded(kind, tmp_path, monkeypatch):
    library = pytest.importorskip(kind.split()[0])
    views, _ = blobs(n=60)
    monkeypatch.setattr(views_module, "LOAD_LIMIT", 0)
    expected = WMNMF(3, random_state=0).fit(views)
    if kind == "h5py .hdf":
        with library.File(tmp_path / "x.hdf", "w") as file:
            for s, X in enumerate(views):
                file[f"inner/{s}"] = X
        opened = library.File(tmp_path / "x.hdf", "r")
        held = [opened[f"inner/{s}"] for s in range(len(views))]
    elif kind == "h5py core":
        opened = library.File("memory.h5", "w", driver="core", backing_store=False)
        held = [opened.create_dataset(f"x{s}", data=X) for s, X in enumerate(views)]
    elif kind == "zarr group":
        group = library.open_group(str(tmp_path / "g.zarr"), mode="w")
        for s, X in enumerate(views):
            group.create_group(f"inner{s}")["x"] = X
        held = [group[f"inner{s}/x"] for s in range(len(views))]
    else:
        held = [library.array(X) for X in views]
    model = WMNMF(3, random_state=0).fit(held)
    np.testing.assert_allclose(model.consensus_, expected.consensus_, rtol=1e-9)
    again = load(model.save(tmp_path / "m.npz"), fitted_on=list(tmp_path.iterdir()))
    np.testing.assert_array_equal(again.predict(views), model.predict(views))


def test_names_of_anndata_are_those_of_the_object(tmp_path, monkeypatch):
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    monkeypatch.setattr(views_module, "LOAD_LIMIT", 0)
    file = as_h5ad(tmp_path, "v", blobs(n=60)[0][0]).path
    held = anndata.read_h5ad(file, backed="r")
    held.obs_names = [f"new{i}" for i in range(60)]
    held.var_names = [f"gene{j}" for j in range(held.n_vars)]
    found = as_views([held], allow_files=True)
    assert found.sample_names[1] == "new1" and found.feature_names[0][1] == "gene1"
    if not hasattr(anndata.settings, "allow_write_nullable_strings"):
        pytest.skip("this anndata writes no nullable strings")
    nullable = anndata.AnnData(blobs(n=60)[0][0])
    nullable.obs_names = pandas.Index([f"c{i}" for i in range(60)], dtype="string")
    with anndata.settings.override(allow_write_nullable_strings=True):
        nullable.write_h5ad(tmp_path / "n.h5ad")
    assert on_disk(tmp_path / "n.h5ad").rows.ids[:2].tolist() == ["c0", "c1"]


@pytest.mark.parametrize("kind", ["h5ad", "zarr"])
@pytest.mark.parametrize("sparse", [False, True])
def test_arrays_in_anndata_have_its_names(kind, sparse, tmp_path, monkeypatch):
    anndata, _ = pytest.importorskip("anndata"), pytest.importorskip("zarr")
    X = np.arange(1.0, 25).reshape(6, 4)
    data = anndata.AnnData(sp.csr_matrix(X) if sparse else X)
    data.obs_names, data.var_names = list("uvwxyz"), list("ABCD")
    data.layers["twice"], data.obsm["some"] = 2 * X, X[:, :3]
    data.layers["columns"] = sp.csc_matrix(X)
    path = tmp_path / f"a.{kind}"
    getattr(data, f"write_{kind}")(path)
    for key, wanted in (("", X), ("::X", X), ("::layers/twice", 2 * X), ("::obsm/some", X[:, :3])):
        file = on_disk(f"{path}{key}")
        found = file.load()
        np.testing.assert_array_equal(found.toarray() if file.sparse else found, wanted)
        assert "".join(file.rows.ids) == "uvwxyz"
        features = file.rows.features
        assert features is None if "obsm" in key else "".join(features) == "ABCD"
    columns = on_disk(f"{path}::layers/columns")  # small enough to be turned
    np.testing.assert_array_equal(columns[1:5].toarray(), X[1:5])
    monkeypatch.setattr("manyview.engines.files.row_file.LARGEST_TURNED", 0)
    for key, told in (
        ("layers", f"a.{kind}::layers .*no array but a group of .*twice.*name an array in it"),
        ("layers/columns", "stored as csc_matrix, not by rows"),
        ("absent", "holds no 'absent', only .*obsm"),
    ):
        with pytest.raises(ValueError, match=told):
            on_disk(f"{path}::{key}")


def test_slabs_held_are_bounded_in_bytes_and_let_go(tmp_path, monkeypatch):
    pytest.importorskip("h5py")
    X = np.random.default_rng(0).random((4000, 8))
    file = as_hdf5(tmp_path, "x", X)
    monkeypatch.setattr(slabs, "SLAB", 64 * 100)
    monkeypatch.setattr(slabs, "HELD", 64 * 1000)
    most, again = 0, on_disk(f"{file.path}::{file.key}")
    for start in range(0, 4000, 50):
        np.testing.assert_array_equal(again.read(slice(start, start + 50)), X[start : start + 50])
        most = max(most, sum(n for _, n in slabs.STORE.slabs.values()))
    assert 0 < most <= 64 * 1000
    WMNMF(2, random_state=0, max_iter=1, inner_iter=1, regularizer=None).fit([X[:50], X[:50]])
    assert not slabs.STORE.slabs
    monkeypatch.setattr(slabs, "LARGEST_SLAB", 64)
    with pytest.raises(
        ValueError, match=r"x.h5.*its chunks of \d+ rows take .* write it again in chunks"
    ):
        on_disk(f"{file.path}::{file.key}")


def test_small_files_are_loaded_and_one_file_is_one_view(tmp_path):
    views, _ = blobs(n=60)
    file = Path(as_npy(tmp_path, "v", views[0]).path)
    model = WMNMF(3, random_state=0).fit(file)
    assert isinstance(model._fitted_views[0], np.ndarray) and model.n_features_in_ == 8
    np.testing.assert_array_equal(
        model.consensus_, WMNMF(3, random_state=0).fit(views[0]).consensus_
    )
    model = WMNMF(3, random_state=0).fit({"a": file, "b": views[1]})
    assert list(model.view_names_in_) == ["a", "b"]


@pytest.mark.parametrize("make", [as_npy, as_sparse_h5ad])
def test_neighbors_found_by_reading_blocks_are_the_nearest(make, tmp_path, monkeypatch):
    X = np.abs(np.random.default_rng(0).standard_normal((N, 20)))
    file = make(tmp_path, "v", X)
    monkeypatch.setattr("manyview.engines.protocols.LOOK", 20 * 37)
    monkeypatch.setattr(neighbors, "READ_QUERIES", 20 * 50)
    for queries in (None, X[:33] + 0.01):
        found, d = streamed_neighbors(file, 6, queries)
        expected, d_expected = nearest_neighbors(X, 6, queries)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_allclose(d, d_expected, rtol=1e-6)
    for kind in ("heat", "cosine"):
        A, B = (affinity(M, 5, kind) for M in (X, file))
        np.testing.assert_allclose(A.toarray(), B.toarray(), rtol=1e-6, atol=1e-9)


@pytest.fixture
def indexed(monkeypatch):
    """Searches by an index from 100 rows on; the index itself, tested elsewhere, is exact here."""
    monkeypatch.setattr(neighbors, "EXACT", 100)
    exact = lambda Z, k, *_: nearest_neighbors(Z.astype(float), k)[0]  # noqa: E731
    monkeypatch.setattr(neighbors, "index_neighbors", exact)


def test_large_files_are_searched_along_their_leading_directions(tmp_path, indexed):
    rng = np.random.default_rng(0)
    X = rng.random((600, 4)) @ rng.random((4, 90)) + 1e-3 * rng.random((600, 90))
    file = as_npy(tmp_path, "v", X)
    directions = leading_directions(file, 6)
    left = X - X.mean(axis=0)
    best = np.linalg.svd(left, full_matrices=False)[2][:4]
    overlap = np.linalg.svd(best @ directions, compute_uv=False)
    np.testing.assert_allclose(overlap, 1, atol=1e-6)
    assert project(file, directions).shape == (600, 6)
    exact, _ = nearest_neighbors(X, 5)
    found, d = nearest_neighbors(file, 5)
    recall = np.mean([np.isin(a, b).mean() for a, b in zip(exact, found, strict=True)])
    assert recall > 0.9 and (found != np.arange(600)[:, None]).all()
    assert (np.diff(d, axis=1) >= 0).all()
    term = Graph(5).prepare(file)
    assert term.A.shape == (600, 600)


def test_methods_that_need_all_rows_load_them(tmp_path):
    views, _ = blobs(n=60)
    files = [as_npy(tmp_path, f"v{s}", X) for s, X in enumerate(views)]
    plain = ConcatViews(KMeans(3, n_init=2, random_state=0))
    np.testing.assert_array_equal(plain.fit_predict(files), plain.fit_predict(views))
    held = [isinstance(X, np.ndarray) for X in as_views(files).matrices]
    left = [isinstance(X, DiskMatrix) for X in as_views(files, allow_files=True).matrices]
    assert all(held) and all(left)
    assert select_n_clusters(files, range(2, 5), random_state=0).n_clusters == 3


# --- what can go wrong -------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "told"), [(np.nan, "NaN or infinite"), (-2.0, "negative")])
@pytest.mark.parametrize("make", [as_npy, as_sparse_h5ad])
def test_a_bad_entry_is_told_with_file_view_and_place(value, told, make, tmp_path, monkeypatch):
    views, _ = blobs(n=N)
    views[1][6 * 40 + 3, 2] = value
    files = {name: make(tmp_path, name, X) for name, X in zip("abc", views, strict=True)}
    monkeypatch.setattr("manyview.engines.protocols.LOOK", 40 * 5)
    model = WMNMF(3, missing="allow" if np.isnan(value) and make is as_npy else "error")
    entry = rf"\(the first is {value:g} at row 243, column 2[;)]"
    file = rf"view 'b' \({Path(files['b'].path).name}\)"
    with pytest.raises(ValueError, match=rf"{file}: rows 240 to 279 hold 1 {told} .*{entry}"):
        model.fit(files)
    # Small files given by their names are loaded: then, too, the file is named.
    with pytest.raises(ValueError, match=rf"{file} has 1 {told}"):
        WMNMF(3).fit({name: file.path for name, file in files.items()})


@pytest.mark.parametrize("harm", ["shrink", "remove"])
def test_a_file_harmed_during_the_run_is_told_with_view_and_rows(harm, tmp_path, small_slabs):
    views, _ = blobs(n=N)
    files = {name: as_npy(tmp_path, name, X) for name, X in zip("abc", views, strict=True)}

    def callback(info):
        if info["view"] == 1:
            if harm == "shrink":
                os.truncate(files["b"].path, 5000)
            elif Path(files["b"].path).exists():
                os.remove(files["b"].path)

    words = "it has shrunk" if harm == "shrink" else "No such file"
    with pytest.raises(OSError, match=rf"view 'b' \(b.npy\): rows \d+ to \d+ .*{words}"):
        WMNMF(3, random_state=0, callback=callback).fit(files)


@pytest.mark.parametrize("kind", ["npy", "h5", "zarr"])
@pytest.mark.parametrize("how", ["overwritten", "replaced"])
def test_a_file_of_the_same_shape_put_in_its_place_is_told(kind, how, tmp_path):
    make = {"npy": as_npy, "h5": as_hdf5, "zarr": as_zarr}[kind]
    pytest.importorskip({"npy": "numpy", "h5": "h5py", "zarr": "zarr"}[kind])
    views, _ = blobs(n=N)
    files = [make(tmp_path, f"v{s}", X) for s, X in enumerate(views)]
    (tmp_path / "aside").mkdir()
    other = Path(make(tmp_path / "aside", "v1", views[1] * np.nan).path)

    def callback(info):
        target = Path(files[1].path)
        if info["view"] != 1 or not other.exists():
            return
        if target.is_dir():
            shutil.rmtree(target)
        if how == "replaced" or other.is_dir():
            os.replace(other, target)
        else:
            target.write_bytes(other.read_bytes())

    with pytest.raises(OSError, match=rf"view 'view1' \(v1.{kind}.*changed or replaced since"):
        WMNMF(3, random_state=0, callback=callback).fit(files)


@pytest.mark.parametrize("harm", ["deleted", "rewritten", "put back from a copy"])
@pytest.mark.parametrize("held", ["path", "array"])
def test_chunks_of_zarr_changed_during_the_run_are_told(harm, held, tmp_path, monkeypatch):
    zarr = pytest.importorskip("zarr")
    monkeypatch.setattr(views_module, "LOAD_LIMIT", 0)
    views, _ = blobs(n=N)
    group = zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    create = getattr(group, "create_array", None) or group.create_dataset  # Zarr 3, Zarr 2
    other = create("other", shape=(4, 4), chunks=(2, 4), dtype="f8")
    array = create("deep/x", shape=views[1].shape, chunks=(50, 5), dtype="f8")
    array[:] = views[1]
    chunk = sorted(f for f in (tmp_path / "g.zarr/deep/x").rglob("*") if f.is_file())[2]
    assert "zarr" not in chunk.name and not chunk.name.startswith(".")

    def callback(info):
        other[:] = info["iteration"]  # of no concern
        if info["view"] != 1 or info["iteration"] != 2:
            return
        if harm == "deleted":
            chunk.unlink(missing_ok=True)
        elif harm == "rewritten":
            array[50:60] = 3.0
        else:
            shutil.copy2(chunk, tmp_path / "copy")
            os.replace(tmp_path / "copy", chunk)

    given = f"{tmp_path}/g.zarr::deep/x" if held == "path" else array
    model = WMNMF(3, random_state=0, callback=callback)
    with pytest.raises(OSError, match=r"view 'b' \(g.zarr::deep/x\) was changed or replaced since"):
        model.fit({"a": views[0], "b": given})


@pytest.mark.parametrize("harm", ["replaced before", "replaced during", "removed", "written to"])
def test_a_map_whose_file_is_another_is_told(harm, tmp_path, monkeypatch):
    monkeypatch.setattr(views_module, "LOAD_LIMIT", 0)
    views, _ = blobs(n=N)
    path = as_npy(tmp_path, "b", views[1]).path
    other = as_npy(tmp_path, "other", views[1][::-1]).path
    held = np.load(path, mmap_mode="r+" if harm == "written to" else "r")
    if harm == "written to":
        held[3] = 0.5  # before the fit: what the fit is of
    elif harm == "replaced before":
        os.replace(other, path)
    elif harm == "removed":
        os.remove(path)

    def callback(info):
        if harm == "replaced during" and os.path.exists(other):
            os.replace(other, path)

    model, given = WMNMF(3, random_state=0, callback=callback), {"a": views[0], "b": held}
    if harm == "written to":
        np.testing.assert_array_equal(model.fit(given)._fitted_views[1].X.load()[3], 0.5)
        return
    told = {
        "replaced before": "row 0 of the file .* has other values: .* map it again",
        "replaced during": "was changed or replaced since it was opened",
        "removed": ": there is no file .*b.npy",
    }[harm]
    with pytest.raises((ValueError, OSError), match=rf"view 'b' \(b.npy\).*{told}"):
        model.fit(given)


def test_files_that_cannot_be_read_by_rows_are_refused_with_a_sentence(tmp_path, monkeypatch):
    views, _ = blobs(n=60)
    np.save(tmp_path / "f.npy", np.asfortranarray(views[0]))
    turned = on_disk(tmp_path / "f.npy")  # small: loaded
    np.testing.assert_array_equal(turned.read(slice(3, 9)), views[0][3:9])
    monkeypatch.setattr("manyview.engines.files.row_file.LARGEST_TURNED", 0)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "f.npy").read_bytes()[:700])
    np.save(tmp_path / "one.npy", np.ones(4))
    np.save(tmp_path / "text.npy", np.array([["a", "b"]]))
    for name, told in (
        ("f.npy", "stored column by column"),
        ("cut.npy", "f.npy|column by column|cut short"),
        ("one.npy", "1 dimension"),
        ("text.npy", "numbers only"),
    ):
        with pytest.raises(ValueError, match=told):
            on_disk(tmp_path / name)
    with pytest.raises(FileNotFoundError, match=r"there is no file .*absent.npy"):
        on_disk(tmp_path / "absent.npy")
    with pytest.raises(ValueError, match=r"only \.npy, \.h5"):
        on_disk(__file__)
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["x"], file["y"] = views[0], views[1]
    with pytest.raises(ValueError, match=r"holds 2 two-dimensional arrays .* two.h5::x"):
        on_disk(tmp_path / "two.h5")
    with pytest.raises(ValueError, match="init='nndsvd' needs views in memory"):
        WMNMF(3, init="nndsvd").fit([on_disk(f"{tmp_path}/two.h5::x")])
    with pytest.raises(ValueError, match="cannot be split by columns"):
        WMNMF(3, views=[4, 4]).fit(on_disk(f"{tmp_path}/two.h5::x"))


@pytest.mark.parametrize("form", ["list", "all texts", "dict", "alone", "path"])
def test_files_that_python_does_not_take_by_name_are_named(form, tmp_path):
    file = as_npy(tmp_path, "a", blobs(n=60)[0][0]).path
    views = {
        "list": [file, "x.csv"],
        "all texts": ["x.csv", "y.csv"],
        "dict": {"a": file, "b": "x.csv"},
        "alone": "x.csv",
        "path": [file, Path("x.csv")],
    }[form]
    told = r"view '\w+' is the text 'x.csv'; .*ends in .*\.npy, .*pandas.*`manyview fit`"
    with pytest.raises(ValueError, match=told):
        WMNMF(3).fit(views)


def test_a_loaded_model_whose_file_is_gone_says_so(tmp_path):
    views, _ = blobs(n=60)
    files = [as_npy(tmp_path, f"v{s}", X) for s, X in enumerate(views)]
    saved = WMNMF(3, random_state=0).fit(files).save(tmp_path / "m.npz")
    np.save(tmp_path / "v1.npy", views[1][:50])
    with pytest.raises(OSError, match=r"view 'view1' \(v1.npy\) now has the shape \(50, 5\)"):
        load(saved, fitted_on=files).predict(views)
    os.remove(files[1].path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load(saved, fitted_on=files).predict(views)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_fit_from_files_takes_little_memory(tmp_path):
    """Anonymous memory beyond that of a fit of few rows stays below a quarter of the data."""
    rng = np.random.default_rng(0)
    for name in "ab":
        block = rng.random((1500, 2500), dtype=np.float32)
        np.save(tmp_path / f"{name}.npy", block)
        np.save(tmp_path / f"{name}_few.npy", block[:100])
    script = textwrap.dedent(
        """
        import sys, threading, time, warnings
        import manyview as mv
        from manyview.engines import protocols
        from manyview.engines.files import slabs
        from manyview.engines.numpy import neighbors
        warnings.simplefilter("ignore")
        # Blocks as small against these data as the usual ones are against large data.
        slabs.SLAB, slabs.HELD, protocols.LOOK, neighbors.READ_QUERIES = 2**17, 2**19, 2**17, 2**18
        neighbors.GATHERED = 2**16
        def anonymous():
            text = open("/proc/self/status").read()
            return int(text.split("RssAnon:")[1].split()[0]) * 1024
        def fit(end):
            views = [mv.on_disk(f"{sys.argv[1]}/{name}{end}.npy") for name in "ab"]
            mv.WMNMF(4, max_iter=1, inner_iter=2, random_state=0, n_jobs=1,
                     assign_labels="argmax").fit(views)
        fit("_few")
        before, peak, done = anonymous(), [0], threading.Event()
        def watch():
            while not done.wait(0.002):
                peak[0] = max(peak[0], anonymous())
        thread = threading.Thread(target=watch); thread.start()
        fit(""); done.set(); thread.join()
        print(peak[0] - before, before)
        """
    )
    source = str(Path(estimators.__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    data = 2 * 1500 * 2500 * 4
    assert int(done.stdout.split()[0]) <= data / 4, done.stdout


class Zeros(RowFile):
    """Rows of a compressed file of any size, without the file."""

    piece = 16
    dtype = np.dtype(float)

    def __init__(self, shape):
        self.shape = shape

    def read(self, start, stop):
        return np.zeros((stop - start, self.shape[1]))


@pytest.mark.parametrize("shape", [(400_000, 64), (1_600, 16_000)], ids=["tall", "wide"])
@pytest.mark.parametrize("direct", [True, False], ids=["npy", "slabs"])
def test_a_pass_with_the_blocks_that_are_shipped_holds_64_mib(shape, direct, tmp_path):
    """Of data of 200 MiB, with no constant changed."""
    path = tmp_path / "x.npy"
    np.lib.format.open_memmap(path, "w+", float, shape)  # a hole: it takes no room on the disk
    file = DiskMatrix(path)
    if not direct:
        file._opened = slabs.Slabs(Zeros(shape))
    slabs.STORE.clear()
    tracemalloc.start()
    try:
        rows = sum(block.shape[0] for block in reading(file))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        slabs.STORE.clear()
    assert rows == shape[0] and file.nbytes > 3 * 2**26
    assert 2**20 < peak < 2**26


# --- RobustWMNMF -------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [as_npy, as_hdf5])
def test_the_robust_method_on_files_finds_what_it_finds_in_memory(make, tmp_path, small_slabs):
    views, y = blobs(n=N, features=(90, 5, 6))
    files = {f"v{s}": make(tmp_path, f"v{s}", X) for s, X in enumerate(views)}
    kept = RobustWMNMF(3, random_state=0).fit(dict(zip(files, views, strict=True)))
    read = RobustWMNMF(3, random_state=0).fit(files)
    assert adjusted_rand_score(kept.labels_, read.labels_) > 0.99
    assert adjusted_rand_score(y, read.labels_) > 0.99
    np.testing.assert_allclose(read.view_weights_, kept.view_weights_, atol=0.05)
    assert isinstance(read._geometry[0], FileGeometry) and read._geometry[0].Z.shape == (N, 64)
    assert read._geometry[0].n_features == 90  # all of which split halves look at
    np.testing.assert_allclose(read.split_half_, kept.split_half_, atol=0.02)
    new = {name: X[:40] for name, X in zip(files, views, strict=True)}
    np.testing.assert_array_equal(read.predict(new), read.labels_[:40])
    np.testing.assert_array_equal(read.predict(files), read.labels_)
    again = load(read.save(tmp_path / "m.npz"))
    np.testing.assert_array_equal(again.predict(new), read.predict(new))
    with pytest.raises(ValueError, match="impute works on views in memory"):
        read.impute("v0")
    new["v0"][3, 4] = np.nan
    with pytest.raises(ValueError, match=r"'v0' has unobserved .* inside rows"):
        read.predict(new)


def test_counts_in_a_file_stay_sparse_and_rows_of_zeros_are_missing(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    rates = np.where(rng.random((3, 200)) < 0.1, 2.0, 0.005)
    counts = rng.poisson(rates[y]).astype(float)
    counts[5] = 0
    other = blobs(n=120)[0][1]
    file = as_sparse_h5ad(tmp_path, "counts", counts)
    with pytest.warns(UserWarning, match="zero throughout and are treated as missing"):
        read = RobustWMNMF(3, random_state=0).fit({"c": file, "o": as_npy(tmp_path, "o", other)})
    assert read.sample_weights_[5, 0] == 0 and adjusted_rand_score(y, read.labels_) > 0.95
    assert sp.issparse(read._geometry[0].source.read(slice(0, 5)))


def test_distances_along_all_directions_are_the_distances(tmp_path):
    X = np.random.default_rng(0).random((80, 30))
    file = as_npy(tmp_path, "v", X)
    present = np.ones(80, dtype=bool)
    here = ScaledFile(file, Unscaled(), present, np.dtype(float))
    exact, found = Geometry(X, present), FileGeometry(here, present)
    i, j = np.random.default_rng(1).integers(0, 80, (2, 200))
    np.testing.assert_allclose(found.pairs(i, j), exact.pairs(i, j), atol=1e-5)
    np.testing.assert_allclose(found.coordinates(X[3:9]), found.Z[3:9], atol=1e-6)


def test_features_constant_in_the_sample_are_scaled_by_all_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("manyview.engines.numpy.scaling.SAMPLE", 1)  # the fewest rows there are
    rng = np.random.default_rng(0)
    X = rng.random((3000, 30))
    X[:, 20:] = rng.random((3000, 10)) < 0.001
    path = tmp_path / "rare.npy"
    np.save(path, X)
    with pytest.warns(ConvergenceWarning, match="stopped after 3 iterations"):
        kept, read = (RobustWMNMF(2, random_state=0, max_iter=3).fit([V]) for V in (X, path))
    rare = slice(20, 30)
    assert read.scaling_ == kept.scaling_ == {"view0": "part sqrt"}
    there, here = (model._scalings[0].quantile for model in (read, kept))
    np.testing.assert_array_equal(there.gain[rare], here.gain[rare])
    np.testing.assert_array_equal(there.low[rare], here.low[rare])


# --- chunks that are not there -----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["zarr of before", "zarr", "h5", "h5 without chunks", "h5ad"])
@pytest.mark.parametrize("by_rows", [False, True])
def test_chunks_that_are_not_in_the_file_are_counted(kind, by_rows, tmp_path):
    """Wherever views are read: they may have been lost, and read as zeros all the same."""
    X = np.arange(1.0, 49).reshape(12, 4)
    path, name, missing = tmp_path / f"v.{kind.split()[0]}", "", "4 of the 6"
    if kind.startswith("zarr"):
        zarr = pytest.importorskip("zarr")
        version = 2 if kind.endswith("before") else 3
        array = zarr.open(
            str(path), mode="w", shape=X.shape, chunks=(2, 4), dtype="f8", zarr_format=version
        )
    else:
        file = pytest.importorskip("h5py").File(path, "w")
        name, chunks = " of 'X'", None if kind.endswith("chunks") else (2, 4)
        missing = "1 of the 1" if chunks is None else missing
        array = file.create_dataset("X", X.shape, dtype="f8", chunks=chunks)
    if missing != "1 of the 1":
        array[:4] = X[:4]
    if not kind.startswith("zarr"):
        file.close()
    told = f"{missing} chunks{name} are not in the file; their entries are read as 0.0"
    read = read_views([path], on_disk=by_rows)
    assert sum(told in note for note in read.notes) == 1, read.notes
    np.testing.assert_array_equal(
        np.asarray(read.views["v"][0:4])[3], 0 if "1 of" in missing else X[3]
    )
    with pytest.warns(UserWarning, match=told):
        as_views([on_disk(path) if by_rows else str(path)], allow_files=True, min_samples=1)


@pytest.mark.filterwarnings("ignore")  # rows of zeros
def test_a_run_tells_of_missing_chunks(tmp_path):
    h5py = pytest.importorskip("h5py")
    views, _ = blobs(n=30)
    for name, X in zip("ab", views, strict=False):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            stored = file.create_dataset("X", X.shape, chunks=(5, X.shape[1]), dtype="f8")
            stored[:25] = X[:25]
    files = [str(tmp_path / f"{name}.h5") for name in "ab"]
    with pytest.warns(UserWarning, match="1 of the 6 chunks"):
        model = RobustWMNMF(2, random_state=0).fit(files)
    write_run(model, files, tmp_path / "run", stability_runs=0)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "(a.h5): 1 of the 6 chunks" in page and "(b.h5): 1 of the 6 chunks" in page


def test_arrays_that_are_whole_are_not_spoken_of(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["compact"], file["X"] = 7, np.ones((4, 3))
    assert read_views([tmp_path / "v.h5"]).notes == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("ending", [".csv", ".npy", ".h5", ".parquet", ""])
def test_a_pipe_is_refused_with_the_reason(ending, tmp_path):
    os.mkfifo(tmp_path / f"pipe{ending}")
    with pytest.raises(
        ValueError, match="is a pipe or a device, but manyview reads files more than once"
    ):
        read_views([tmp_path / f"pipe{ending}"])
    if ending in (".npy", ".h5", ".parquet"):
        with pytest.raises(ValueError, match="is a pipe or a device"):
            on_disk(tmp_path / f"pipe{ending}")
