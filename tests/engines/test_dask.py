"""The Dask engine: the same numbers for any blocks and workers, also when workers are lost."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import manyview as mv

distributed = pytest.importorskip("distributed", reason="needs the extra 'dask'")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from manyview.engines.affinity import nearest_neighbors  # noqa: E402
from manyview.engines.dask import cluster as cluster_module  # noqa: E402
from manyview.engines.dask import engine as dask_module  # noqa: E402
from manyview.engines.dask import source as lazy_module  # noqa: E402
from manyview.engines.dask.cluster import Cluster, ClusterLost  # noqa: E402
from manyview.engines.dask.engine import DaskView, RowBlock, merged, neighborhood  # noqa: E402
from manyview.engines.dask.source import DaskMatrix  # noqa: E402
from manyview.engines.files.disk import DiskMatrix  # noqa: E402
from manyview.engines.numpy import neighbors  # noqa: E402
from manyview.regularizers import Graph  # noqa: E402
from manyview.storage.checkpoint import digest  # noqa: E402

N, K = 120, 3


def some_views() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, K, N)
    return [np.abs(rng.normal(size=(K, m))[kind] + 0.3 * rng.normal(size=(N, m))) for m in (9, 7)]


VIEWS = some_views()


def in_blocks(X: np.ndarray, *sizes: int):
    return da.from_array(X, chunks=(sizes, -1))


def wmnmf(**params) -> mv.WMNMF:
    usual = {"n_clusters": K, "random_state": 0, "max_iter": 1, "inner_iter": 3, "init": "random"}
    return mv.WMNMF(**(usual | params))


def local_cluster(n_workers: int):
    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )


@pytest.fixture(scope="module")
def client():
    with local_cluster(2) as workers, distributed.Client(workers) as client:
        yield client


def assert_same_fit(model, other, tol=1e-8):
    for name in ("consensus_", "sample_weights_", "view_weights_"):
        expected = getattr(other, name)
        assert np.abs(getattr(model, name) - expected).max() <= tol * np.abs(expected).max(), name
    for U, expected in zip(model.components_, other.components_, strict=True):
        assert np.abs(U - expected).max() <= tol * np.abs(expected).max()
    assert np.allclose(model.history_["objective"], other.history_["objective"], rtol=tol)
    assert np.array_equal(model.labels_, other.labels_)


# --- equality with NumPy -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "solver", "rounds"),
    [((N,), "multiplicative", 2), ((60, 60), "hals", 1), ((13, 1, 106), "hals", 1)],
)
def test_any_blocks_give_the_fit_of_numpy(client, sizes, solver, rounds):
    params = {"solver": solver, "max_iter": rounds}
    expected = wmnmf(**params).fit(VIEWS)
    # The views need not be cut alike.
    views = [in_blocks(VIEWS[0], *sizes), in_blocks(VIEWS[1], 70, 50)]
    assert_same_fit(wmnmf(**params, engine="dask").fit(views), expected)


def test_sparse_blocks_the_gnmf_start_and_a_saved_model(client, tmp_path):
    sparse = [sp.csr_array(np.where(X > 0.4, X, 0)) for X in VIEWS]
    lazy = [da.from_array(X.toarray(), chunks=(70, -1)).map_blocks(sp.csr_matrix) for X in sparse]
    model, expected = wmnmf(engine="dask", init="gnmf").fit(lazy), wmnmf(init="gnmf").fit(sparse)
    assert_same_fit(model, expected)
    loaded = mv.load(model.save(tmp_path / "model.npz"))
    assert np.array_equal(loaded.predict(sparse), expected.predict(sparse))


@pytest.mark.parametrize(
    "params",
    [
        {"regularizer": "orthogonal", "beta": 1e-3, "scale": "minmax"},
        {"regularizer": None, "scale": "tfidf"},
        {"scale": "standard", "affinity": "heat"},
        {"scale": None, "affinity": "cosine"},
    ],
)
def test_terms_scalings_and_edge_weights_are_found_where_the_rows_are(client, params):
    params = params | {"inner_iter": 2}
    views = [in_blocks(X, 70, 50) for X in VIEWS]
    assert_same_fit(wmnmf(engine="dask", **params).fit(views), wmnmf(**params).fit(VIEWS))


def test_data_frames_memory_and_files_agree(client, tmp_path):
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    tables = [pandas.DataFrame(X).add_prefix("f") for X in VIEWS]
    for s, X in enumerate(VIEWS):
        np.save(tmp_path / f"{s}.npy", X)
    expected = wmnmf().fit(VIEWS)
    forms = {
        "frames": [frames.from_pandas(table, npartitions=2) for table in tables],
        "memory": VIEWS,
        "files": [tmp_path / "0.npy", tmp_path / "1.npy"],
    }
    models = {form: wmnmf(engine="dask").fit(views) for form, views in forms.items()}
    for model in models.values():
        assert_same_fit(model, expected)
    assert list(models["frames"].view_feature_names_in_["view0"][:2]) == ["f0", "f1"]


def frames_of(*tables):
    frames = pytest.importorskip("dask.dataframe")
    return [frames.from_pandas(table, npartitions=2, sort=False) for table in tables]


def test_the_index_of_a_data_frame_names_its_rows(client):
    pandas = pytest.importorskip("pandas")
    ids = [f"s{i}" for i in range(N)]
    tables = [pandas.DataFrame(X, index=ids).add_prefix("f") for X in VIEWS]
    shuffled = tables[1].iloc[np.random.default_rng(1).permutation(N)]
    expected = wmnmf().fit([tables[0], shuffled])
    model = wmnmf(engine="dask").fit([*frames_of(tables[0]), shuffled])
    assert_same_fit(model, expected)
    assert list(model.sample_names_in_) == ids
    for first in ([tables[0]], frames_of(tables[0])):
        with pytest.raises(
            ValueError, match="'view1' does not have the same samples in the same order as"
        ):
            wmnmf(engine="dask").fit([*first, *frames_of(shuffled)])


def test_parts_that_all_count_from_zero_name_nobody(client, tmp_path):
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    for b, part in enumerate((VIEWS[0][:50], VIEWS[0][50:])):
        pandas.DataFrame(part).add_prefix("f").to_csv(tmp_path / f"{b}.csv", index=False)
    table = pandas.DataFrame(VIEWS[1], index=[f"s{i}" for i in range(N)]).add_prefix("g")
    params = {"engine": "dask", "inner_iter": 1}
    model = wmnmf(**params).fit([frames.read_csv(tmp_path / "*.csv"), table])
    assert_same_fit(model, wmnmf(**params | {"engine": "numpy"}).fit(VIEWS))


def test_one_array_is_split_by_columns_and_left_as_it_is(client):
    joined = np.hstack(VIEWS)
    expected = wmnmf(views=[9, 7]).fit(joined)
    unknown = in_blocks(joined, 50, 70)
    unknown = unknown[unknown[:, 0] >= 0]
    for whole in (unknown, unknown.map_blocks(sp.csr_matrix)):
        assert_same_fit(wmnmf(views=[9, 7], engine="dask").fit(whole), expected)
    assert np.isnan(unknown.chunks[0]).all()
    with pytest.raises(ValueError, match="adds up to 17 columns, but X has 16"):
        wmnmf(views=[9, 8], engine="dask").fit(unknown)


def test_a_cluster_of_its_own_leaves_nothing_behind(tmp_path, monkeypatch):
    with dask.config.set({"temporary-directory": str(tmp_path)}):
        model = wmnmf(engine="dask", inner_iter=1)
        monkeypatch.setattr(cluster_module, "current_client", lambda: None)
        model.fit(VIEWS)
    assert_same_fit(model, wmnmf(inner_iter=1).fit(VIEWS))
    assert not list(tmp_path.glob("manyview-*"))


def counting(block, calls):
    with open(calls, "a") as file:
        file.write(".")
    return block


@pytest.mark.parametrize("engine", ["numpy", "dask"])
def test_blocks_are_computed_a_few_times_whatever_the_engine(client, monkeypatch, tmp_path, engine):
    monkeypatch.setattr("manyview.views.views.LOAD_LIMIT", 0)
    path = tmp_path / "calls"
    views = [in_blocks(X, 50, 70).map_blocks(counting, path, dtype=float) for X in VIEWS]
    made = []
    for inner_iter in (1, 11):
        path.write_text("")
        wmnmf(engine=engine, inner_iter=inner_iter).fit(views)
        made.append(len(path.read_text()))
    # Ten iterations more on two views of two blocks would be 40 more; two that ask for a block at about
    # the same time may or may not share it.
    assert made[1] - made[0] < 10


def test_robust_reads_large_files_by_rows_and_refuses_large_arrays(client, monkeypatch, tmp_path):
    params = {"n_clusters": K, "random_state": 0, "max_iter": 2, "tol": 0}
    for s, X in enumerate(VIEWS):
        np.save(tmp_path / f"{s}.npy", X)
    files = [mv.on_disk(tmp_path / f"{s}.npy") for s in range(2)]
    with pytest.warns(match="stopped after"):
        expected = mv.RobustWMNMF(**params).fit(files)
    monkeypatch.setattr(DiskMatrix, "load", None)
    with pytest.warns(match="stopped after"):
        model = mv.RobustWMNMF(**params, engine="dask").fit(files)
    assert np.allclose(model.consensus_, expected.consensus_, atol=1e-8)
    monkeypatch.setattr(lazy_module, "free_memory", lambda: 10_000)
    for form in (np.asarray, sp.csr_matrix):
        views = [in_blocks(X, 50, 70).map_blocks(form) for X in VIEWS]
        with pytest.raises(ValueError, match=r"'view0' is a dask array of .* engine='dask' leaves"):
            mv.RobustWMNMF(**params, engine="dask").fit(views)


# --- parts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(120,), (33, 33, 33, 21), (50, 1, 69)])
def test_neighbors_are_those_of_the_whole_view_and_ties_go_by_index(client, monkeypatch, sizes):
    ends = np.cumsum(sizes)
    rows = [slice(int(end - size), int(end)) for end, size in zip(ends, sizes, strict=True)]
    monkeypatch.setattr(dask_module, "cut", lambda X: rows)
    X = np.random.default_rng(3).integers(0, 4, (N, 5)).astype(float) + 1
    gap = X[:, None] - X[None]
    d = (gap * gap).sum(axis=2)
    np.fill_diagonal(d, np.inf)
    with Cluster() as cluster:
        tied, _ = DaskView.of(cluster, X / 7).neighbors(7)
        found, squared = DaskView.of(cluster, VIEWS[0]).neighbors(7)
    np.testing.assert_array_equal(tied, np.argsort(d, axis=1, kind="stable")[:, :7])
    expected = nearest_neighbors(VIEWS[0], 7)
    np.testing.assert_array_equal(found, expected[0])
    np.testing.assert_allclose(squared, expected[1])


def clustered(n: int, m: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(10, m))[rng.integers(10, size=n)] + 0.5 * rng.normal(size=(n, m))


def test_of_many_rows_nearly_all_neighbors_are_found(client, monkeypatch):
    monkeypatch.setattr(neighbors, "EXACT", 500)
    X, k = clustered(1200, 12).astype(np.float32), 6
    with Cluster() as cluster:
        indices, _ = DaskView.of(cluster, sp.csr_array(X)).neighbors(k)
    exact, _ = nearest_neighbors(X, k)  # all pairs: few features
    assert np.mean([np.isin(e, near).mean() for e, near in zip(exact, indices, strict=True)]) > 0.95


@pytest.mark.parametrize("bounds", [(0, 120), (0, 40, 120), (0, 1, 60, 120)])
def test_a_graph_cut_by_blocks_is_the_graph(bounds):
    A, V = Graph(5).prepare(VIEWS[0]).A, np.random.default_rng(0).random((N, K))
    starts, found = np.array(bounds[:-1]), []
    for b, (start, stop) in enumerate(pairwise(bounds)):
        local, wanted = neighborhood(A[start:stop], starts, b)
        assert b not in wanted
        received = [V[starts[c] + rows] for c, rows in wanted.items()]
        found.append(local @ np.vstack([V[start:stop], *received]))
    assert np.allclose(np.vstack(found), A @ V)


@given(sizes=st.lists(st.integers(1, 50), min_size=1, max_size=60), most=st.integers(1, 20))
def test_merged_blocks_are_few_and_keep_their_order(sizes, most):
    ends = np.cumsum([0, *sizes]).tolist()
    groups = merged([slice(*pair) for pair in pairwise(ends)], most)
    assert [b for group in groups for b in group] == list(range(len(sizes)))
    assert len(groups) <= most
    assert len(groups) == len(sizes) or len(sizes) > most


def test_many_blocks_give_the_fit_of_numpy(client, monkeypatch):
    monkeypatch.setattr(dask_module, "FEW", 3)
    sizes = (5,) * 20 + (10, 1, 9)
    views = [in_blocks(VIEWS[0], *sizes), in_blocks(VIEWS[1], *sizes).map_blocks(sp.csr_matrix)]
    expected = wmnmf().fit([VIEWS[0], sp.csr_array(VIEWS[1])])
    assert_same_fit(wmnmf(engine="dask").fit(views), expected)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_pieces_do_not_depend_on_blocks(client, monkeypatch, form):
    monkeypatch.setattr(lazy_module, "PIECE", 17 * 9 * 8)
    found = []
    for sizes in ((N,), (60, 60), (13, 1, 106), (10,) * 12):
        matrix = DaskMatrix(in_blocks(VIEWS[0], *sizes).map_blocks(form))
        found.append(digest(matrix))
        assert len(matrix.each(np.shape)) == 8
        for rows in (np.array([119, 3, 3, 50]), np.arange(20, 30), np.array([], dtype=int)):
            taken = matrix.take(rows)
            dense = taken.toarray() if sp.issparse(taken) else taken
            assert np.array_equal(dense, VIEWS[0][rows])
    assert len(set(found)) == 1


def test_passing_through_the_driver_changes_nothing(client, monkeypatch):
    views = [in_blocks(X, 50, 70) for X in VIEWS]
    never = wmnmf(engine="dask").fit(views)
    monkeypatch.setattr(dask_module, "ANCHOR", 2)
    assert np.array_equal(wmnmf(engine="dask").fit(views).consensus_, never.consensus_)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda x: x.rechunk((60, 5)), r"'view0' has the shape \(120, 9\) in 2 blocks .*rechunk"),
        (lambda x: da.where(x > 3, np.nan, x), r"'view0': rows \d+ to \d+ hold \d+ NaN"),
        (lambda x: x - 1, r"'view0': rows 0 to 119 hold \d+ negative entries"),
        (lambda x: x.astype(str), "'view0' has entries that are not numbers"),
    ],
    ids=["features", "nan", "negative", "text"],
)
def test_unfit_arrays_get_a_sentence(client, spoil, sentence):
    views = [spoil(da.from_array(VIEWS[0], chunks=(60, -1))), VIEWS[1]]
    with pytest.raises(ValueError, match=sentence):
        wmnmf(engine="dask").fit(views)


@pytest.mark.parametrize("kind", ["str", "category", "datetime64[ns]", "object"])
def test_a_column_without_numbers_is_named(client, kind):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(VIEWS[0]).add_prefix("f")
    table["f3"] = table["f3"].round().astype(kind)
    with pytest.raises(
        ValueError, match=r"view 'view0' has the non-numeric column 'f3' \(.*drop it"
    ):
        wmnmf(engine="dask").fit([*frames_of(table), VIEWS[1]])


@pytest.mark.parametrize("engine", ["numpy", "dask"])
def test_nullable_columns_are_numbers_unless_one_is_missing(client, engine):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(VIEWS[0].astype("f4")).astype(float).add_prefix("f")
    table["f2"] = table["f2"].round()  # one alone: no distances tie
    mixed = table.astype({"f2": "Int64", "f5": "Float32"})
    params = {"engine": engine, "inner_iter": 1}
    model = wmnmf(**params).fit([*frames_of(mixed), VIEWS[1]])
    assert_same_fit(model, wmnmf(**params).fit([table, VIEWS[1]]))
    mixed.loc[7, "f2"] = pandas.NA
    with pytest.raises(ValueError, match=r"view 'view0'.*the first is nan at row 7, column 2"):
        wmnmf(**params).fit([*frames_of(mixed), VIEWS[1]])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_asynchronous_client_is_a_sentence():
    views = [in_blocks(X, 50, 70) for X in VIEWS]
    params = {"engine": "dask", "inner_iter": 1}

    async def fits():
        options = {"processes": False, "n_workers": 1, "dashboard_address": None}
        async with distributed.Client(asynchronous=True, **options):
            with pytest.raises(RuntimeError, match=r"is asynchronous.*await asyncio.to_thread"):
                wmnmf(**params).fit(views)
            with pytest.raises(RuntimeError, match="is asynchronous"):
                wmnmf().fit(views)
            return await asyncio.to_thread(wmnmf(**params).fit, views)

    assert_same_fit(asyncio.run(fits()), wmnmf(**params | {"engine": "numpy"}).fit(VIEWS))


def test_unobserved_entries_and_nndsvd_get_a_sentence(client):
    holes = [np.where(VIEWS[0] > 3, np.nan, VIEWS[0]), VIEWS[1]]
    with pytest.raises(ValueError, match="engine='numpy' only"):
        wmnmf(engine="dask", missing="allow").fit(holes)
    with pytest.raises(ValueError, match="init='nndsvd' needs views in memory"):
        wmnmf(engine="dask", init="nndsvd").fit(VIEWS)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'manyview\[dask\]'"):
        wmnmf(engine="dask").fit(VIEWS)


# --- lost workers --------------------------------------------------------------------------------


def let_them_stay_dead(workers) -> None:
    for nanny in workers.workers.values():
        nanny.close_gracefully()


def killing(client, n: int, at: int):
    """A callback that ends n worker processes in the iteration ``at``."""
    seen = []

    def callback(info):
        seen.append(info)
        if len(seen) == at:
            for pid in list(client.run(os.getpid).values())[:n]:
                os.kill(pid, signal.SIGKILL)

    return callback


def at_an_odd_byte(X: np.ndarray) -> np.ndarray:
    """The same numbers where a network may leave them."""
    room = np.empty(X.nbytes + 16, dtype=np.uint8)
    start = -room.ctypes.data % 8 + 3
    moved = room[start : start + X.nbytes].view(X.dtype).reshape(X.shape)
    moved[...] = X
    moved.flags.writeable = False
    return moved


def test_a_block_that_moves_keeps_its_sums():
    X = np.random.default_rng(0).random((333, 40))
    assert at_an_odd_byte(X).sum() != X.sum()  # why blocks are put right
    moved, kept = RowBlock.__new__(RowBlock), RowBlock(X)
    moved.__setstate__({name: at_an_odd_byte(part) for name, part in vars(kept).items()})
    assert moved.X.sum() == X.sum() and moved.X.flags.writeable
    np.testing.assert_array_equal(moved.x_sq, kept.x_sq)
    assert lazy_module.as_block(at_an_odd_byte(X), X.dtype).sum() == X.sum()
    sparse = RowBlock(sp.csr_array(X))
    parts = (at_an_odd_byte(sparse.X.data), sparse.X.indices, sparse.X.indptr)
    strange = sp.csr_array(sparse.X)
    strange.data = parts[0]
    moved.__setstate__({"X": strange, "x_sq": at_an_odd_byte(sparse.x_sq)})
    assert moved.X.sum() == sparse.X.sum()


@pytest.mark.slow
def test_a_fit_survives_the_loss_of_a_worker():
    views = [in_blocks(VIEWS[0], 50, 70), VIEWS[1]]
    with local_cluster(2) as workers, distributed.Client(workers) as client:
        expected = wmnmf(engine="dask").fit(views)
        let_them_stay_dead(workers)
        model = wmnmf(engine="dask", callback=killing(client, 1, at=5)).fit(views)
        assert len(client.nthreads()) == 1
    # Bit for bit: nothing depends on how many workers there are.
    assert np.array_equal(model.consensus_, expected.consensus_)


@pytest.mark.slow
def test_without_workers_a_fit_ends_with_a_sentence_and_can_be_resumed(monkeypatch, tmp_path):
    params = {"engine": "dask", "checkpoint": (tmp_path / "state", 0), "max_iter": 2}
    views = [in_blocks(VIEWS[0], 50, 70), VIEWS[1]]
    monkeypatch.setattr(cluster_module, "PATIENCE", 1.0)
    monkeypatch.setattr(cluster_module, "BEAT", 0.2)
    with local_cluster(2) as workers, distributed.Client(workers) as client:
        let_them_stay_dead(workers)
        with pytest.raises(ClusterLost, match=r"all Dask workers are gone .* checkpoint="):
            wmnmf(**params, callback=killing(client, 2, at=5)).fit(views)
        with pytest.raises(ClusterLost, match="has had no worker"):
            wmnmf(engine="dask").fit(VIEWS)
    assert (tmp_path / "state").exists()
    monkeypatch.undo()
    done: list = []
    with local_cluster(1) as workers, distributed.Client(workers):
        model = wmnmf(**params, callback=done.append).fit(views)
        expected = wmnmf(engine="dask", max_iter=2).fit(views)
    assert len(done) < 12  # of 2 rounds × 2 views × 3 iterations
    assert np.array_equal(model.consensus_, expected.consensus_)


def times_out(block):
    raise TimeoutError("the store did not answer")


def test_a_task_that_times_out_is_not_waited_for(client):
    views = [da.from_array(VIEWS[0]).map_blocks(times_out, meta=np.empty((0, 0))), VIEWS[1]]
    with pytest.raises(TimeoutError, match="the store did not answer"):
        wmnmf(engine="dask").fit(views)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_the_robust_method_leaves_large_dask_arrays_on_the_workers(
    client, monkeypatch, tmp_path, form
):
    """Distances along leading directions, as from files; only these coordinates come to the driver."""
    monkeypatch.setattr("manyview.robust.LOAD_LIMIT", 0)
    monkeypatch.setattr(DaskMatrix, "load", lambda self: pytest.fail("brought to the driver whole"))
    rng = np.random.default_rng(0)
    y = np.arange(240) % 3
    wide = rng.random((3, 80))[y] + 0.3 * rng.random((240, 80))
    wide[7] = 0
    other = rng.poisson(6 * (rng.random((3, 40)) < 0.05)[y]).astype(float)
    other[:, 0] += 1
    given = [wide, other]
    lazy = [in_blocks(X, 50, 110, 80) for X in given]
    if form == "sparse":
        lazy[1] = lazy[1].map_blocks(sp.csr_matrix)
    files = [tmp_path / "wide.npy", tmp_path / "other.npy"]
    for path, X in zip(files, (wide, other), strict=True):
        np.save(path, X)
    params = {"n_clusters": 3, "random_state": 0}
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        # a row of zeros counts as missing
        model = mv.RobustWMNMF(**params, engine="dask").fit(lazy)
        read = mv.RobustWMNMF(**params).fit([mv.on_disk(path) for path in files])
        kept = mv.RobustWMNMF(**params).fit(given)
    for fitted in (read, kept):
        assert mv.metrics.scores(fitted.labels_, model.labels_)["ari"] > 0.99
    np.testing.assert_allclose(model.view_weights_, read.view_weights_, atol=5e-3)
    np.testing.assert_allclose(model.sample_weights_, read.sample_weights_, atol=5e-2)
    assert model.sample_weights_[7, 0] == 0
    np.testing.assert_array_equal(model.predict(given), model.labels_)
