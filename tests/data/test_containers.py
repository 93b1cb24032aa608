"""Users' own containers: the same labels as plain arrays, names kept, results back when asked."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import manyview as mv
from conftest import blobs
from manyview.engines.files.headings import is_id_heading
from manyview.views.views import as_views

VIEWS, Y = blobs(n=40)
IDS = [f"cell{i:02d}" for i in range(40)]
NAMES = ["rna", "protein", "image"]
FRAMES = {
    name: pd.DataFrame(X, index=IDS, columns=[f"{name}{j}" for j in range(X.shape[1])])
    for name, X in zip(NAMES, VIEWS, strict=True)
}
SHUFFLED = np.random.default_rng(1).permutation(40)


def pandas_frames():
    return {name: X.iloc[SHUFFLED] if name == "image" else X for name, X in FRAMES.items()}


def polars_frames():
    pl = pytest.importorskip("polars")
    return {
        name: pl.from_pandas(X.rename_axis("sample").reset_index())
        for name, X in pandas_frames().items()
    }


def polars_numbers():
    """Numeric ids under a heading that says so."""
    pl = pytest.importorskip("polars")
    made = {}
    for name, X in pandas_frames().items():
        ids = [int(sample[4:]) for sample in X.index]
        made[name] = pl.DataFrame({"patient_id": ids} | {c: X[c].to_numpy() for c in X})
    return made


def anndatas():
    ad = pytest.importorskip("anndata")
    return {name: ad.AnnData(X) for name, X in pandas_frames().items()}


def mudata():
    md = pytest.importorskip("mudata")
    with warnings.catch_warnings(action="ignore"):
        return md.MuData(anndatas())


def dataarrays():
    xr = pytest.importorskip("xarray")
    return {
        name: xr.DataArray(
            X.to_numpy(), [("sample", X.index), (f"{name} feature", list(X.columns))]
        )
        for name, X in pandas_frames().items()
    }


def dataset():
    xr = pytest.importorskip("xarray")
    arrays = dataarrays()
    arrays["protein"] = arrays["protein"].T
    return xr.Dataset(arrays).isel(sample=[IDS.index(i) for i in IDS])


CONTAINERS = {
    f.__name__: f
    for f in (
        pandas_frames,
        polars_frames,
        polars_numbers,
        anndatas,
        mudata,
        dataarrays,
        dataset,
    )
}


@pytest.mark.parametrize("kind", CONTAINERS)
@pytest.mark.parametrize("method", [mv.RobustWMNMF, mv.WMNMF])
def test_every_container_gives_the_labels_of_plain_arrays(kind, method):
    data = CONTAINERS[kind]()
    plain = method(3, random_state=0).fit(VIEWS)
    model = method(3, random_state=0).fit(data)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.consensus_, plain.consensus_)
    assert list(model.view_names_in_) == NAMES
    assert list(model.view_feature_names_in_["protein"]) == list(FRAMES["protein"].columns)
    ids = [int(i[4:]) for i in IDS] if kind == "polars_numbers" else IDS
    assert list(model.sample_names_in_) == ids
    np.testing.assert_array_equal(model.predict(data), plain.predict(VIEWS))


def test_one_anndata_has_views_in_x_layers_and_obsm():
    ad = pytest.importorskip("anndata")
    data = ad.AnnData(FRAMES["rna"], layers={"counts": sp.csr_array(2 * VIEWS[0])})
    data.obsm["protein"], data.obsm["image"] = FRAMES["protein"], VIEWS[2]
    plain = mv.RobustWMNMF(3, random_state=0).fit(VIEWS)
    for chosen in (["X", "protein", "image"], ["X", "obsm:protein", "obsm:image"]):
        model = mv.RobustWMNMF(3, views=chosen, random_state=0).fit(data)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        assert list(model.view_names_in_) == chosen
        assert list(model.view_feature_names_in_[chosen[1]]) == list(FRAMES["protein"].columns)
        assert model.view_feature_names_in_[chosen[2]] is None
    assert sp.issparse(as_views(data, ["counts"]).matrices[0])
    with pytest.raises(
        ValueError, match="has X, layers:counts, obsm:protein, obsm:image; choose the views"
    ):
        mv.RobustWMNMF(3).fit(data)
    with pytest.raises(
        ValueError, match=r"views names 'atac', which fits none of the parts of the AnnData: \['X'"
    ):
        mv.RobustWMNMF(3, views=["X", "atac"]).fit(data)
    assert as_views(ad.AnnData(FRAMES["rna"])).names == ("X",)


def test_modalities_of_different_cells_are_joined_in_the_order_of_the_mudata():
    md, ad = pytest.importorskip("mudata"), pytest.importorskip("anndata")
    parts = {"rna": FRAMES["rna"].iloc[:35], "protein": FRAMES["protein"].iloc[::-1].iloc[:37]}
    with warnings.catch_warnings(action="ignore"):
        data = md.MuData({name: ad.AnnData(X) for name, X in parts.items()})
    sparse = {"rna": sp.csr_array(parts["rna"].to_numpy())}
    model = mv.RobustWMNMF(3, random_state=0).fit(data)
    assert list(model.sample_names_in_) == list(data.obs_names) and len(data.obs_names) == 40
    by_frames = mv.RobustWMNMF(3, random_state=0).fit(
        {name: X.reindex(data.obs_names) for name, X in parts.items()}
    )
    np.testing.assert_array_equal(model.labels_, by_frames.labels_)
    data.mod["rna"].X = sparse["rna"]
    joined = as_views(data, allow_missing=True).matrices[0]
    absent = [i for i, cell in enumerate(data.obs_names) if cell not in parts["rna"].index]
    assert sp.issparse(joined) and len(absent) == 5 and abs(joined[absent]).sum() == 0
    with pytest.raises(ValueError, match="'rna' is sparse and lacks 5 of the 40 samples"):
        mv.WMNMF(3, missing="allow").fit(data)
    with pytest.raises(ValueError, match="share only 32 sample ids"):
        mv.WMNMF(3).fit(data)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_results_are_written_back_only_when_asked(tmp_path):
    md = pytest.importorskip("mudata")
    data = mudata()
    before = (list(data.obs), list(data.obsm), list(data.uns))
    model = mv.RobustWMNMF(3, random_state=0).fit(data)
    assert (list(data.obs), list(data.obsm), list(data.uns)) == before
    assert mv.tl.annotate(data, model) is data
    np.testing.assert_array_equal(data.obs["manyview"].astype(int), model.labels_)
    np.testing.assert_array_equal(data.obsm["manyview"], model.consensus_)
    assert list(data.uns["manyview"]["view_names"]) == NAMES
    data.write(tmp_path / "a.h5mu")
    again = md.read_h5mu(tmp_path / "a.h5mu")
    assert list(again.obs_names) == IDS
    np.testing.assert_array_equal(again.obs["manyview"].astype(int), model.labels_)
    np.testing.assert_array_equal(again.obsm["manyview_reliance"], model.reliance_)


def test_annotate_matches_by_name_and_says_what_it_cannot_do():
    anndata = pytest.importorskip("anndata")
    model = mv.RobustWMNMF(3, random_state=0).fit(FRAMES)
    some = anndata.AnnData(FRAMES["rna"].iloc[[5, 1]].rename(index={"cell01": "stranger"}))
    mv.tl.annotate(some, model, key="clusters")
    assert some.obs["clusters"].iloc[0] == str(model.labels_[5])
    assert some.obs["clusters"].isna().tolist() == [False, True]
    assert np.isnan(some.obsm["clusters"][1]).all()
    with pytest.raises(ValueError, match="no sample of the AnnData"):
        mv.tl.annotate(anndata.AnnData(FRAMES["rna"].rename(index="x{}".format)), model)
    with pytest.raises(ValueError, match="40 samples without names"):
        mv.tl.annotate(some, mv.RobustWMNMF(3, random_state=0).fit(VIEWS))
    with pytest.raises(TypeError, match="got dict"):
        mv.tl.annotate(FRAMES, model)


@pytest.mark.parametrize("method", [mv.RobustWMNMF, mv.WMNMF])
def test_pandas_output_keeps_the_sample_ids(method):
    model = method(3, random_state=0).set_output(transform="pandas")
    table = model.fit_transform(FRAMES)
    assert list(table.index) == IDS and list(table.columns) == list(model.get_feature_names_out())
    assert list(model.transform({n: X.iloc[3:5] for n, X in FRAMES.items()}).index) == IDS[3:5]
    assert list(model.fit_transform(VIEWS).index) == list(range(40))
    one = pd.concat(FRAMES.values(), axis=1)
    single = method(3, views=[8, 5, 6], random_state=0).set_output(transform="pandas")
    assert list(single.fit_transform(one).index) == IDS
    np.testing.assert_array_equal(table.to_numpy(), single.transform(one).to_numpy())


def test_a_dict_may_hold_more_than_the_views_named():
    model = mv.RobustWMNMF(3, views=["image", "rna"], random_state=0).fit(FRAMES)
    assert list(model.view_names_in_) == ["image", "rna"]
    np.testing.assert_array_equal(
        model.predict(FRAMES), model.predict({n: FRAMES[n] for n in NAMES})
    )
    with pytest.raises(ValueError, match="views names 'x', but the views are"):
        mv.RobustWMNMF(3, views=["x"]).fit(FRAMES)


def test_bad_containers_get_a_sentence():
    pl, xr = pytest.importorskip("polars"), pytest.importorskip("xarray")
    frame = polars_frames()["rna"]
    two = frame.with_columns(pl.lit("m").alias("sex"))
    dated = frame.with_columns(pl.lit(0).cast(pl.Date).alias("day"))
    flat = xr.Dataset({"a": (("s", "f"), VIEWS[0]), "y": ("s", Y)})
    apart = xr.Dataset({"a": (("s", "f"), VIEWS[0]), "b": (("t", "g"), VIEWS[1])})
    for data, sentence in (
        ({"a": two}, "'a' has the non-numeric column 'sample'"),
        ({"a": dated}, "non-numeric column 'day'"),
        ({"a": frame.lazy()}, "LazyFrame; pass the result of its .collect()"),
        (frame, "pass the frame in a dict of views"),
        (flat, "'y' of the Dataset has 1 dimension"),
        (apart, "share no dimension"),
    ):
        with pytest.raises(ValueError, match=sentence):
            mv.RobustWMNMF(3).fit(data)


@pytest.mark.parametrize(
    "heading, certain, likely",
    [
        *[(h, True, True) for h in ("id", "ID", "patient_id", "Sample ID", "PatientID", "", "index")],
        *[(h, True, True) for h in ("sample.id", "Unnamed: 0", "row.names", "barcode_ids", "eventId")],
        *[(h, False, True) for h in ("Sample", "patients", "cell_barcode", "MRN", "Name", "case no")],
        *[(h, False, False) for h in ("acid", "covid", "lipid", "VOID", "age", "g1", "cells per ml")],
    ],
)  # fmt: skip
def test_which_headings_mean_ids(heading, certain, likely):
    assert is_id_heading(heading, distinct=False) is certain
    assert is_id_heading(heading, distinct=True) is likely
