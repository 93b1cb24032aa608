"""Laws about samples: as many results as rows given, in their order, or a refusal; never silence."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

import manyview as mv
from manyview.app.files import read_views
from manyview.baselines import ConcatViews, MultiNMF
from manyview.engines.dask.cluster import ClusterLost, saying_if_lost
from manyview.views.views import as_views

pd = pytest.importorskip("pandas")

rng = np.random.default_rng(0)
X = np.repeat([[0.0, 0, 0, 0], [3, 0, 3, 0], [0, 3, 0, 3]], 10, axis=0) + rng.random((30, 4))
Y = X[:, :3] + 0.2 * rng.random((30, 3))
TWICE = [i % 10 for i in range(30)]

MODELS = {
    "robust": lambda: mv.RobustWMNMF(3, n_neighbors=5, max_iter=5, tol=1e-2, random_state=0),
    "mask": lambda: mv.WMNMF(3, missing="allow", max_iter=1, inner_iter=3, random_state=0),
    "wmnmf": lambda: mv.WMNMF(3, max_iter=1, inner_iter=3, random_state=0),
    "concat": lambda: ConcatViews(KMeans(3, n_init=1), random_state=0),
}
FITTED = ["robust", "mask", "wmnmf"]


def fitted(model, data):
    with warnings.catch_warnings(action="ignore"):
        return model.fit(data)


# --- one table: its rows, whatever their ids ---------------------------------------------------


def anndata_of(ids):
    ad = pytest.importorskip("anndata")
    with warnings.catch_warnings(action="ignore"):
        data = ad.AnnData(X.copy(), obs=pd.DataFrame(index=[str(i) for i in ids]))
    data.obsm["protein"] = Y
    return data


def one_table(kind, ids, folder):
    frame = pd.DataFrame(X, index=ids).add_prefix("g")
    if kind == "frame":
        return frame
    if kind == "dict":
        return {"a": frame}
    if kind == "frame and array":
        return {"a": frame, "b": Y}
    if kind == "polars":
        pl = pytest.importorskip("polars")
        return {
            "a": pl.DataFrame(
                {"id": [str(i) for i in ids]} | {c: frame[c].to_numpy() for c in frame}
            )
        }
    if kind == "xarray":
        xr = pytest.importorskip("xarray")
        return xr.DataArray(X, dims=("obs", "gene"), coords={"obs": ids})
    if kind == "dataset":
        xr = pytest.importorskip("xarray")
        parts = {n: (("obs", f"{n}s"), M) for n, M in (("a", X), ("b", Y))}
        return xr.Dataset(parts, coords={"obs": ids})
    if kind == "anndata":
        return {"a": anndata_of(ids)}
    if kind == "dask":
        dd = pytest.importorskip("dask.dataframe")
        return dd.from_pandas(frame, npartitions=4, sort=False)
    if kind == "h5ad":
        anndata_of(ids).write_h5ad(folder / "x.h5ad")
        return {"a": str(folder / "x.h5ad")}
    pytest.importorskip("pyarrow")
    frame.to_parquet(folder / "x.parquet")
    path = str(folder / "x.parquet")
    return {"a": mv.on_disk(path) if kind == "on disk" else path}


KINDS = ["frame", "dict", "frame and array", "polars", "xarray", "dataset", "anndata", "dask", "h5ad",
         "parquet", "on disk"]  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_repeated_ids_of_one_table_cost_no_row(kind, tmp_path):
    both = kind in ("frame and array", "dataset")
    plain = {"a": X, "b": Y} if both else X if kind in ("frame", "xarray", "dask") else {"a": X}
    for name in ("robust", "mask"):
        if name == "mask" and kind == "on disk":
            continue
        data = one_table(kind, TWICE, tmp_path)
        model, expected = fitted(MODELS[name](), data), fitted(MODELS[name](), plain)
        np.testing.assert_array_equal(model.labels_, expected.labels_)
        assert [int(i) for i in model.sample_names_in_] == TWICE
        np.testing.assert_array_equal(model.predict(data), expected.predict(plain))


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=8)
@given(st.lists(st.sampled_from(["a", "b", 1, "1", 2.5, ("x", 1)]), min_size=30, max_size=30))
def test_as_many_labels_as_rows_in_their_order(name, ids):
    index = pd.Index(ids, dtype=object, tupleize_cols=False)
    frame, make = pd.DataFrame(X, index=index), MODELS[name]
    expected = fitted(make(), X)
    model = fitted(make(), frame)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    if name in FITTED:
        np.testing.assert_array_equal(model.predict(frame[:7]), expected.predict(X[:7]))
        assert model.transform(frame[:7]).shape[0] == 7


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_everything_else_that_takes_rows_gives_all_back():
    frame, make = pd.DataFrame(X, index=TWICE), MODELS["robust"]
    assert len(mv.stability(make(), frame, n_runs=2, random_state=0).labels) == 30
    chosen = [mv.select_n_clusters(data, [2, 3], random_state=0) for data in (frame, X)]
    assert chosen[0].reasons == chosen[1].reasons
    stream = MODELS["wmnmf"]().partial_fit(frame).partial_fit(frame[:20])
    assert len(stream.labels_) == 20
    holes = frame.where(rng.random(frame.shape) > 0.05)
    assert fitted(make(), {"a": holes, "b": Y}).impute("a").shape == (30, 4)
    named = make().set_output(transform="pandas")
    assert list(fitted(named, frame).transform(frame).index) == TWICE
    # One view of two is given: the other is missing, and nothing is to be matched.
    both = fitted(make(), {"a": X, "b": Y})
    np.testing.assert_array_equal(both.predict({"a": frame}), both.predict({"a": X}))
    split = mv.RobustWMNMF(3, views=[2, 2], random_state=0)
    assert len(fitted(split, frame).labels_) == 30


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_annotate_puts_labels_where_their_rows_are():
    data = anndata_of(TWICE)
    model = fitted(mv.RobustWMNMF(3, views=["X", "protein"], random_state=0), data)
    written = mv.tl.annotate(data, model).obs["manyview"].astype(int)
    np.testing.assert_array_equal(written, model.labels_)
    with pytest.raises(ValueError, match="the model has the sample id '0' more than once"):
        mv.tl.annotate(data[::-1].copy(), model)
    unique = anndata_of(range(30))
    model = fitted(mv.RobustWMNMF(3, views=["X", "protein"], random_state=0), unique)
    turned = mv.tl.annotate(unique[::-1].copy(), model).obs["manyview"].astype(int)
    np.testing.assert_array_equal(turned, model.labels_[::-1])
    with pytest.raises(ValueError, match="views names 'X' twice"):
        mv.RobustWMNMF(3, views=["X", "X"]).fit(unique)


# --- several tables: every row in its place, or a refusal --------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("repeated", [0, 1])
def test_repeated_ids_in_several_tables_are_refused(name, repeated):
    frames = [pd.DataFrame(X), pd.DataFrame(Y)]
    frames[repeated].index = TWICE
    rule = rf"view '{'ab'[repeated]}' has the sample id 0 more than once \(rows 0, 10 and 20\); so are 1, 2"
    with pytest.raises(ValueError, match=f"{rule}.*reset_index"):
        MODELS[name]().fit(dict(zip("ab", frames, strict=True)))
    frames[1 - repeated].index = TWICE  # also if both repeat them in one order
    with pytest.raises(ValueError, match="more than once"):
        MODELS[name]().fit(frames)


@pytest.mark.parametrize(
    "missing", [None, np.nan, "", "  ", pd.NA, pd.NaT, ("x", np.nan)], ids=repr
)
def test_rows_without_an_id_are_refused(missing):
    ids = pd.Index(["a", missing, *range(27), missing], dtype=object, tupleize_cols=False)
    frame = pd.DataFrame(X, index=ids)
    for data in (frame, [frame, frame], {"a": frame, "b": Y}):
        with pytest.raises(
            ValueError, match=r"view '\w+' has no sample id .* in rows 1 and 29; give"
        ):
            MODELS["robust"]().fit(data)


def test_missing_times_are_no_ids():
    times = pd.DatetimeIndex([pd.NaT, *pd.date_range("2020", periods=29)])
    with pytest.raises(ValueError, match=r"no sample id .* in row 0"):
        MODELS["robust"]().fit(pd.DataFrame(X, index=times))


@given(st.data())
def test_aligned_rows_are_those_of_their_ids(data):
    ids = data.draw(st.lists(st.integers(0, 40), min_size=2, max_size=12, unique=True))
    others = data.draw(st.permutations(ids))
    dropped = data.draw(st.integers(0, len(ids) - 1))
    kind = data.draw(st.sampled_from([int, float, str]))
    a = pd.DataFrame({"v": ids, "one": 1.0}, index=[kind(i) for i in ids])
    b = pd.DataFrame({"v": others, "two": 2.0}, index=[kind(i) for i in others]).iloc[dropped:]
    views = as_views([a, b], allow_missing=True)
    assert [kind(i) for i in ids] == list(views.sample_names)
    expected = [float(i) if i in others[dropped:] else np.nan for i in ids]
    np.testing.assert_array_equal(views.matrices[1][:, 0], expected)


def test_one_sample_has_one_way_of_writing_its_id():
    a, b = pd.DataFrame(X), pd.DataFrame(Y, index=[str(i) for i in range(30)])
    both = pd.DataFrame(Y, index=[*range(15), *(str(i) for i in range(15, 30))])
    with pytest.raises(
        ValueError, match=r"has the sample id 15 \(int\) and .*'15' \(str\), which differ"
    ):
        as_views([a, both, b], allow_missing=True)
    with pytest.raises(ValueError, match="differ only in how they are written"):
        as_views([a, b])
    whole = as_views([a, pd.DataFrame(Y, index=np.arange(30.0)).iloc[::-1]])
    np.testing.assert_array_equal(whole.matrices[1], Y)
    times = pd.date_range("2020", periods=30)
    units = as_views(
        [pd.DataFrame(X, index=times), pd.DataFrame(Y, index=times.as_unit("s"))[::-1]]
    )
    np.testing.assert_array_equal(units.matrices[1], Y)


def test_a_container_that_lacks_rows_of_its_parts_is_refused():
    md = pytest.importorskip("mudata")
    with warnings.catch_warnings(action="ignore"):
        data = md.MuData({"a": anndata_of(range(30)), "b": anndata_of(range(30))})
        data.mod["b"].obs_names = [f"new{i}" for i in range(30)]
    with pytest.raises(ValueError, match=r"view 'b' has 30 samples .* call its update\(\)"):
        MODELS["robust"]().fit(data)


def test_files_by_rows_refuse_what_tables_refuse(tmp_path):
    pytest.importorskip("pyarrow")
    for name, ids in (("twice", ["x", "y", "x"]), ("none", ["x", None, "z"])):
        pd.DataFrame({"id": ids, "g": [1.0, 2, 3]}).to_parquet(tmp_path / f"{name}.parquet")
    for on_disk in (True, False):
        with pytest.raises(ValueError, match=r"sample id 'x' more than once \(rows 1 and 3\)"):
            read_views([tmp_path / "twice.parquet"], on_disk=on_disk)
        with pytest.raises(ValueError, match="no sample id in row 2"):
            read_views([tmp_path / "none.parquet"], on_disk=on_disk)
    (tmp_path / "a.csv").write_text("id,g\n1,1\n2,2\n3,3\n")
    (tmp_path / "b.csv").write_text("id,h\n1,1\n2,2\n3.0,3\n")
    with pytest.raises(ValueError, match=r"'3' and '3\.0' would be one sample"):
        read_views([tmp_path / "a.csv", tmp_path / "b.csv"], missing="allow")


def test_masked_names_of_an_anndata_file_are_none(tmp_path):
    h5py = pytest.importorskip("h5py")
    for kind in ("nullable", "categorical"):
        anndata_of(range(30)).write_h5ad(tmp_path / "x.h5ad")
        with h5py.File(tmp_path / "x.h5ad", "a") as file:
            names = file["obs/_index"][:]
            del file["obs/_index"]
            group = file["obs"].create_group("_index")
            if kind == "nullable":
                group["values"], group["mask"] = names, np.arange(30) == 4
            else:
                group["categories"] = names
                group["codes"] = np.where(np.arange(30) == 4, -1, np.arange(30))
        with pytest.raises(ValueError, match=r"no sample id .* in row 4"):
            as_views({"a": mv.on_disk(tmp_path / "x.h5ad")}, allow_files=True)


def test_repeated_features_are_not_matched_by_name(tmp_path):
    fit = pd.DataFrame(X, columns=["g", "g", "h", "i"])
    model = fitted(MODELS["robust"](), {"a": fit})
    assert len(model.predict({"a": fit})) == 30
    with pytest.raises(ValueError, match="repeated column names"):
        model.predict({"a": pd.DataFrame(X, columns=["g", "h", "i", "j"])})
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    columns = [pa.array([1.0, 2]), pa.array([3.0, 4])]
    pq.write_table(pa.table(columns, names=["g", "g"]), tmp_path / "g.parquet")
    for read in (lambda p: read_views([p]), lambda p: MODELS["robust"]().fit(str(p))):
        with pytest.raises(ValueError, match="the column 'g' more than once"):
            read(tmp_path / "g.parquet")


# --- sentences ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [mv.RobustWMNMF, mv.WMNMF, MultiNMF])
@pytest.mark.parametrize(
    "setting", [{"n_clusters": True}, {"max_iter": False}, {"random_state": True}], ids=str
)
def test_true_is_no_number(make, setting):
    name = next(iter(setting))
    with pytest.raises(ValueError, match=f"The '{name}' parameter of .* got (True|False); choose"):
        make(**({"n_clusters": 2} | setting)).fit([X, Y])


@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_no_view(name):
    for nothing, kind in (([], "list"), ((), "tuple"), ({}, "dict")):
        with pytest.raises(ValueError, match=f"at least one view is needed, got an empty {kind}"):
            MODELS[name]().fit(nothing)
    for nothing in (None, 5, iter([X, Y])):
        with pytest.raises(ValueError, match=f"got a {type(nothing).__name__}; pass an array"):
            MODELS[name]().fit(nothing)


@pytest.mark.parametrize("name", FITTED)
def test_no_rows_get_a_sentence(name):
    model = fitted(MODELS[name](), {"a": X, "b": Y})
    none = [{"a": X[:0], "b": Y[:0]}, {"a": pd.DataFrame(X[:0]), "b": sp.csr_array(Y[:0])}]
    for data in none:
        for ask in (model.predict, model.transform, model.score):
            with pytest.raises(
                ValueError, match=r"at least 1 sample, got n_samples = 0; there are"
            ):
                ask(data)
    with pytest.raises(ValueError, match="got an empty list"):
        model.predict([])


def test_no_rows_of_dask_get_the_same():
    da = pytest.importorskip("dask.array")
    model = fitted(MODELS["robust"](), X)
    with pytest.raises(ValueError, match="n_samples = 0; there are no rows"):
        model.predict(da.from_array(X[:0], chunks=(5, 4)))


def test_numbers_beyond_all_doubles_get_a_sentence(tmp_path):
    rows = [[1, 10**400], [2, 3], [4, 5]]
    for data in (rows, np.array(rows, dtype=object)):
        with pytest.raises(
            ValueError, match=r"too large .* at row 0, column 1; its size must be below"
        ):
            MODELS["robust"]().fit(data)
    frame = pd.DataFrame({"g": [1, 2, 4], "h": pd.Series([10**400, 3, 5], dtype=object)})
    with pytest.raises(ValueError, match=r"too large .* in the column 'h'"):
        MODELS["robust"]().fit(frame)
    (tmp_path / "v.csv").write_text(f"id,g\nx,{10**400}\ny,2\n")
    with pytest.raises(ValueError, match=r"401 characters\)' in row 'x'") as error:
        read_views([tmp_path / "v.csv"])
    assert len(str(error.value)) < 250


def test_nested_parquet_gets_a_sentence(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    for content, kind in (([[1, 2], [3]], "list<"), ([{"k": 1}, {"k": 2}], "struct<")):
        pq.write_table(pa.table({"id": ["a", "b"], "x": content}), tmp_path / "n.parquet")
        with pytest.raises(
            ValueError, match=rf"its column 'x' \({kind}.* does not hold one number"
        ):
            read_views([tmp_path / "n.parquet"])


@pytest.mark.parametrize(
    "ids, first",
    [
        (pd.date_range("2020", periods=30, tz="Europe/Paris"), "2020-01-01 00:00:00+01:00"),
        (pd.period_range("2020", periods=30, freq="M"), "2020-01"),
        (pd.interval_range(0, 30), "(0, 1]"),
    ],
)
def test_ids_that_only_pandas_knows_are_saved_as_text_and_told(ids, first, tmp_path):
    model = fitted(MODELS["robust"](), pd.DataFrame(X, index=ids))
    with pytest.warns(UserWarning, match="are saved as text"):
        model.save(tmp_path / "m.npz")
    assert isinstance(model.sample_names_in_[0], type(ids[0]))
    loaded = mv.load(tmp_path / "m.npz")
    assert loaded.sample_names_in_[0] == first and len(loaded.sample_names_in_) == 30
    np.testing.assert_array_equal(loaded.predict(X), model.predict(pd.DataFrame(X, index=ids)))


def test_plain_ids_are_saved_as_they_are(tmp_path):
    for ids in ([("x", i) for i in range(30)], pd.date_range("2020", periods=30), range(30)):
        model = fitted(MODELS["robust"](), pd.DataFrame(X, index=pd.Index(ids)))
        with warnings.catch_warnings(action="error"):
            model.save(tmp_path / "m.npz")
        loaded = mv.load(tmp_path / "m.npz").sample_names_in_
        assert loaded.dtype == model.sample_names_in_.dtype
        assert loaded.tolist() == model.sample_names_in_.tolist()


def test_workers_that_a_task_ends_again_and_again_lack_memory():
    distributed = pytest.importorskip("distributed")
    workers = {"a": {"memory_limit": 2**30}, "b": {"memory_limit": 2**31}}
    client = SimpleNamespace(
        status="running", scheduler_info=lambda n_workers: {"workers": workers}
    )
    error = distributed.KilledWorker("task", SimpleNamespace(address="tcp://a"), 3)
    with (
        pytest.raises(
            ClusterLost, match=r"more memory .* may take 1 GiB\): give workers more memory"
        ),
        saying_if_lost(client),
    ):
        raise error
