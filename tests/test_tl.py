"""Verbs on AnnData and MuData: the results of `fit`, written where scanpy and muon look for them."""

import warnings

import matplotlib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import manyview as mv
from conftest import blobs

ad = pytest.importorskip("anndata")
md = pytest.importorskip("mudata")
pytest.importorskip("graspologic_native")
matplotlib.use("Agg")

VIEWS, TRUTH = blobs(n=60)
CELLS = [f"cell{i:02d}" for i in range(60)]
NAMES = ["rna", "protein", "image"]
FRAMES = {
    name: pd.DataFrame(X, index=CELLS, columns=[f"{name}{j}" for j in range(X.shape[1])])
    for name, X in zip(NAMES, VIEWS, strict=True)
}
ARRAYS = dict(zip(NAMES, VIEWS, strict=True))
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def mudata(frames=FRAMES):
    with warnings.catch_warnings(action="ignore"):
        return md.MuData({name: ad.AnnData(X.copy()) for name, X in frames.items()})


def one_anndata():
    data = ad.AnnData(FRAMES["rna"].copy(), layers={"twice": sp.csr_array(2 * VIEWS[0])})
    data.obsm["protein"], data.obsm["image"] = FRAMES["protein"].copy(), VIEWS[2]
    return data


def assert_holds(data, model):
    """Everything of the model is where `annotate` says, exactly."""
    np.testing.assert_array_equal(data.obs["manyview"].astype(int), model.labels_)
    np.testing.assert_array_equal(data.obs["manyview_confidence"], model.confidence_.max(axis=1))
    np.testing.assert_array_equal(data.obs["manyview_agreement"], model.sample_agreement_)
    np.testing.assert_array_equal(data.obsm["manyview"], model.consensus_)
    np.testing.assert_array_equal(data.obsm["manyview_reliance"], model.reliance_)
    np.testing.assert_array_equal(data.obsm["manyview_embedding"], model.embedding_)
    np.testing.assert_array_equal(
        data.obsp["manyview_connectivities"].toarray(), model.graph_.toarray()
    )
    told = data.uns["manyview"]
    np.testing.assert_array_equal(told["view_weights"], model.view_weights_)
    assert list(told["view_names"]) == list(model.view_names_in_)
    assert told["n_clusters"] == model.n_clusters_


@pytest.mark.parametrize("n_clusters", [3, "communities"])
def test_the_verb_gives_what_fit_gives_bit_for_bit(n_clusters):
    data = mudata()
    model = mv.tl.cluster(data, n_clusters, resolution=0.7, n_neighbors=8)
    plain = mv.RobustWMNMF(n_clusters, resolution=0.7, n_neighbors=8, random_state=0).fit(ARRAYS)
    assert_holds(data, plain)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    for name, parts in zip(NAMES, plain.components_, strict=True):
        np.testing.assert_array_equal(data.mod[name].varm["manyview"], parts.T)
    assert data.uns["manyview"]["settings"]["resolution"] == 0.7


def test_one_anndata_by_the_names_of_its_parts():
    data = one_anndata()
    chosen = ["X", "layers:twice", "obsm:protein", "image"]
    with pytest.warns(UserWarning, match="near-duplicates"):
        model = mv.tl.cluster(data, 3, views=chosen, key_added="k")
    assert list(model.view_names_in_) == chosen
    np.testing.assert_array_equal(data.obs["k"].astype(int), model.labels_)
    np.testing.assert_array_equal(data.varm["k_X"], model.components_[0].T)
    np.testing.assert_array_equal(data.varm["k_layers:twice"], model.components_[1].T)
    np.testing.assert_array_equal(data.uns["k"]["loadings"]["image"], model.components_[3].T)
    mv.tl.cluster(data, 3, views=["X", "protein"], key_added="k")
    assert data.varm["k"].shape == (data.n_vars, 3)
    assert set(data.uns["k"]["loadings"]) == {"protein"}


def with_representations():
    data = mudata()
    data.mod["rna"].obsm["X_pca"] = VIEWS[0][:, ::-1] - 3
    data.mod["protein"].layers["counts"] = np.round(VIEWS[1] * 9)
    data.obsm["X_scVI"] = FRAMES["image"].copy()
    return data


def test_parts_of_modalities_and_of_the_mudata_are_views_by_their_names():
    data = with_representations()
    chosen = ["rna:obsm:X_pca", "protein", "protein:layers:counts", "obsm:X_scVI"]
    counts = {"protein:layers:counts": "quantile"}  # chosen, so that they are not announced
    with pytest.warns(UserWarning, match="near-duplicates"):
        model = mv.tl.cluster(data, 3, views=chosen, scale=counts)
    matrices = [VIEWS[0][:, ::-1] - 3, VIEWS[1], np.round(VIEWS[1] * 9), VIEWS[2]]
    arrays = dict(zip(chosen, matrices, strict=True))
    with pytest.warns(UserWarning, match="near-duplicates"):
        plain = mv.RobustWMNMF(3, random_state=0).fit(arrays)
    assert_holds(data, plain)
    features = model.view_feature_names_in_
    assert features["rna:obsm:X_pca"] is None
    assert list(features["obsm:X_scVI"]) == list(FRAMES["image"].columns)
    protein = data.mod["protein"]
    np.testing.assert_array_equal(protein.varm["manyview_protein"], plain.components_[1].T)
    counts = protein.varm["manyview_protein:layers:counts"]
    np.testing.assert_array_equal(counts, plain.components_[2].T)
    assert set(data.uns["manyview"]["loadings"]) == {"rna:obsm:X_pca", "obsm:X_scVI"}
    np.testing.assert_array_equal(model.predict(data), plain.predict(arrays))
    del data.mod["rna"]  # a modality that is absent leaves the others to tell
    assert (model.predict(data) == model.labels_).mean() > 0.9


def test_results_of_ours_are_no_views_and_unknown_names_get_a_list():
    data, one = with_representations(), ad.AnnData(FRAMES["rna"].copy())
    for cells, views in ((data, None), (one, None), (one, ["X"])):
        mv.tl.cluster(cells, 3, views=views)
        mv.tl.cluster(cells, 3, views=views, key_added="again")  # X alone, whatever was written
    with pytest.raises(ValueError, match="is a result that manyview"):
        mv.tl.cluster(data, 3, views=["rna", "obsm:manyview_embedding"])
    with pytest.raises(ValueError, match=r"'rna:obsm:X_lsi', which fits none .*'rna:obsm:X_pca'"):
        mv.tl.cluster(data, 3, views=["rna:obsm:X_lsi"])
    with pytest.raises(
        ValueError, match=r"'atac', which fits none .*\['rna', 'rna:obsm:X_pca'"
    ) as told:
        mv.tl.cluster(data, 3, views=["atac"])
    assert "manyview" not in str(told.value).replace("manyview.tl", "")
    assert "obsm:rna'" not in str(told.value)  # which cells the modality has
    with pytest.raises(ValueError, match=r"'obsm:manyview' *, which|'obsm:manyview', which"):
        mv.tl.cluster(one, 3, views=["obsm:manyview"])


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ({"copy": True}, r"'copy'.* pass data.copy\(\)"),
        ({"use_rep": "X_pca"}, r"'use_rep'.*'obsm:X_pca'"),
        ({"n_neigbors": 5}, "'n_neigbors': did you mean n_neighbors"),
        (
            {"xyz": 5},
            "'xyz': The parameters are n_clusters, resolution|'xyz'.*resolution",
        ),
    ],
)
def test_settings_of_others_are_explained(wrong, hint):
    with pytest.raises(TypeError, match=hint):
        mv.tl.cluster(mudata(), 3, **wrong)


@pytest.mark.parametrize("make", [mudata, one_anndata])
def test_parts_of_containers_are_written_to_without_a_warning(make):
    whole = make()
    some = whole[whole.obs_names[:50]]
    views = None if make is mudata else ["X", "protein", "image"]
    with warnings.catch_warnings(action="error", category=UserWarning):
        model = mv.tl.cluster(some, 3, views=views)
    assert_holds(some, model)
    for table in [some] if make is one_anndata else some.mod.values():
        assert table.obs["manyview"].tolist() == some.obs["manyview"].tolist()
        assert "manyview" in table.varm
    assert "manyview" not in whole.obs and "manyview" not in whole.uns


def test_labels_are_in_the_obs_of_each_modality():
    data = mudata({"rna": FRAMES["rna"].iloc[:50], "protein": FRAMES["protein"].iloc[:7:-1]})
    mv.tl.cluster(data, 3)
    for table in data.mod.values():
        expected = data.obs.loc[table.obs_names, "manyview"]
        assert (table.obs["manyview"] == expected).all()
        assert table.obs["manyview"].cat.categories.equals(expected.cat.categories)


def test_a_graph_of_the_cells_may_be_a_view():
    data = one_anndata()
    share = np.where(np.equal.outer(TRUTH, TRUTH), 0.4, 0.02)
    some = np.random.default_rng(0).random((60, 60)) < share
    links = sp.csr_matrix(some * np.tri(60, k=-1))
    data.obsp["links"] = links + links.T
    model = mv.tl.cluster(data, 3, views=["X", "obsp:links"])
    by_hand = {"X": VIEWS[0], "obsp:links": mv.GraphView(data.obsp["links"])}
    assert_holds(data, mv.RobustWMNMF(3, random_state=0).fit(by_hand))
    np.testing.assert_array_equal(data.varm["manyview"], model.components_[0].T)
    assert "loadings" not in data.uns["manyview"]


def test_results_survive_files(tmp_path):
    data, one = mudata(), one_anndata()
    weights = {"rna": 2.0, "protein": 1.0, "image": 1.0}
    model = mv.tl.cluster(data, scale={"image": None}, view_weights=weights)
    data.write(tmp_path / "a.h5mu")
    assert_holds(md.read_h5mu(tmp_path / "a.h5mu"), model)
    model = mv.tl.cluster(one, 3, views=["X", "obsm:protein"])
    one.write_h5ad(tmp_path / "a.h5ad")
    again = ad.read_h5ad(tmp_path / "a.h5ad")
    assert_holds(again, model)
    assert list(again.uns["manyview"]["settings"]["views"]) == ["X", "obsm:protein"]
    assert again.uns["manyview"]["params"]["use_rep"] == "manyview_embedding"


def test_distances_are_those_of_the_embedding_on_the_links_of_the_graph():
    data = mudata()
    model = mv.tl.cluster(data, 3)
    distances = data.obsp["manyview_distances"].tocoo()
    apart = model.embedding_[distances.row] - model.embedding_[distances.col]
    np.testing.assert_allclose(distances.data, np.linalg.norm(apart, axis=1))
    links = data.obsp["manyview_connectivities"]
    np.testing.assert_array_equal(data.obsp["manyview_distances"].indices, links.indices)


def test_highly_variable_features_are_used_and_told():
    data = mudata()
    used = np.arange(VIEWS[0].shape[1]) % 2 == 0
    data.mod["rna"].var["highly_variable"] = used
    with pytest.warns(UserWarning, match=rf"{used.sum()} of {len(used)} features of 'rna'"):
        model = mv.tl.cluster(data, 3)
    arrays = ARRAYS | {"rna": VIEWS[0][:, used]}
    plain = mv.RobustWMNMF(3, random_state=0).fit(arrays)
    assert_holds(data, plain)
    parts = data.mod["rna"].varm["manyview"]
    np.testing.assert_array_equal(parts[used], plain.components_[0].T)
    assert np.isnan(parts[~used]).all()
    # The whole data come back to the model: it finds its features by their names.
    np.testing.assert_array_equal(model.predict(data), plain.predict(arrays))
    mv.tl.cluster(data, 3, use_highly_variable=True)  # asked for: nothing to tell
    assert_holds(data, plain)
    mv.tl.cluster(data, 3, use_highly_variable=False)
    assert_holds(data, mv.RobustWMNMF(3, random_state=0).fit(ARRAYS))


def test_sparse_highly_variable_features_stay_sparse():
    data = mudata()
    used = np.arange(VIEWS[0].shape[1]) > 1
    data.mod["rna"].X = sp.csr_matrix(VIEWS[0])
    data.mod["rna"].var["highly_variable"] = used
    mv.tl.cluster(data, 3, use_highly_variable=True)
    arrays = ARRAYS | {"rna": sp.csr_array(VIEWS[0][:, used])}
    assert_holds(data, mv.RobustWMNMF(3, random_state=0).fit(arrays))


def test_cells_missing_in_a_modality_and_in_all():
    frames = {"rna": FRAMES["rna"].iloc[:50], "protein": FRAMES["protein"].iloc[8:]}
    frames["rna"] = frames["rna"].copy()
    frames["rna"].iloc[3] = np.nan  # cell03 has no protein either
    data = mudata(frames)
    with pytest.warns(UserWarning, match="missing in every view"):
        model = mv.tl.cluster(data, 3)
    assert pd.isna(data.obs.loc["cell03", "manyview"])
    assert data.obsp["manyview_connectivities"][list(data.obs_names).index("cell03")].nnz == 0
    there = model.labels_ >= 0
    np.testing.assert_array_equal(data.obs["manyview"].isna(), ~there)
    assert (data.obsm["manyview_reliance"][list(data.obs_names).index("cell00")] == [1, 0]).all()


def test_cells_that_a_sparse_modality_does_not_list_are_absent_there_and_not_zero():
    data = mudata({"rna": FRAMES["rna"].iloc[:50].clip(0.1), "protein": FRAMES["protein"]})
    data.mod["rna"].X = sp.csr_matrix(data.mod["rna"].X)
    mv.tl.cluster(data, 3)  # a warning would be an error
    assert (data.obsm["manyview_reliance"][50:, 0] == 0).all()
    data.mod["rna"].X[:2] = 0
    with pytest.warns(UserWarning, match="'rna': 2 samples are zero throughout"):
        mv.tl.cluster(data, 3)


def test_annotate_gives_strangers_no_neighbors():
    data = mudata()
    model = mv.tl.cluster(data, 3)
    some = ad.AnnData(FRAMES["rna"].iloc[[5, 1, 2]].rename(index={"cell01": "stranger"}))
    mv.tl.annotate(some, model)
    links = some.obsp["manyview_connectivities"].toarray()
    assert not links[1].any() and not links[:, 1].any()
    assert links[0, 2] == model.graph_[5, 2]
    assert "manyview" not in some.varm  # the model knows no view "X"


def test_an_anndata_is_the_modality_whose_features_it_has():
    data = mudata()
    for chosen in (None, ["rna", "protein"]):
        model = mv.tl.cluster(data, 3, views=chosen)
        alone = data.mod["protein"].copy()
        alone.obsm["X_pca"] = VIEWS[1][:, :2]  # parts that the fit knows nothing of do not matter
        by_name = model.predict({"protein": data.mod["protein"]})
        np.testing.assert_array_equal(model.predict(alone), by_name)
        assert (by_name == model.labels_).mean() > 0.9
    nameless = ad.AnnData(VIEWS[1])
    with pytest.raises(ValueError, match=r"lacks features of every view.*\{'rna': adata\}"):
        model.predict(nameless)
    with pytest.raises(ValueError, match=r"features of \['a', 'b'\].*\{'a': adata\}"):
        twins = {"a": FRAMES["rna"], "b": FRAMES["rna"] + 1}
        with pytest.warns(UserWarning, match="near-duplicates"):
            fitted = mv.RobustWMNMF(3, random_state=0).fit(twins)
        fitted.predict(ad.AnnData(FRAMES["rna"]))


def test_what_cannot_be_done_gets_a_sentence_and_leaves_nothing():
    data = mudata()
    with pytest.raises(TypeError, match=r"takes an AnnData or MuData, got dict.*fit_predict"):
        mv.tl.cluster(FRAMES)
    with pytest.raises(ValueError, match=r"none of the views .* has var"):
        mv.tl.cluster(data, 3, use_highly_variable=True)
    data.mod["rna"].var["highly_variable"] = False
    with pytest.raises(ValueError, match=r"of 'rna' marks none of its \d+ features"):
        mv.tl.cluster(data, 3)
    data.mod["rna"].var["highly_variable"] = [True, *[False] * (VIEWS[0].shape[1] - 1)]
    data.mod["rna"].var_names = ["same"] * VIEWS[0].shape[1]
    with pytest.raises(ValueError, match="var_names_make_unique"):
        mv.tl.cluster(data, 3)
    with pytest.raises(ValueError, match="more than the number of samples"):
        mv.tl.cluster(data, 100, use_highly_variable=False)
    assert not len(data.obsp) and "manyview" not in data.uns and "manyview" not in data.obs


def test_neighbors_are_the_graph_the_weights_and_the_embedding_of_cluster():
    data, whole = mudata(), mudata()
    model = mv.tl.cluster(whole)
    for table in data.mod.values():
        table.varm["manyview_fine"] = np.ones((table.n_vars, 2))  # of another key
    mv.tl.neighbors(data)
    for name in ("manyview_connectivities", "manyview_distances"):
        np.testing.assert_array_equal(data.obsp[name].toarray(), whole.obsp[name].toarray())
    np.testing.assert_array_equal(data.obsm["manyview_embedding"], model.embedding_)
    np.testing.assert_array_equal(data.uns["manyview"]["view_weights"], model.view_weights_)
    assert set(data.obs) == {"manyview_agreement"} and "manyview" not in data.obsm
    for table in data.mod.values():
        assert list(table.varm) == ["manyview_fine"] and "manyview" not in table.obs
    with pytest.raises(TypeError, match="makes no iterations"):
        mv.tl.neighbors(data, max_iter=5)


@pytest.mark.filterwarnings("ignore:.*communities of fewer than")
@pytest.mark.parametrize("resolution", [0.3, 1.0, 1.6])
@pytest.mark.parametrize("how", ["plain", "sparse, lacking cells", "batches"])
def test_another_resolution_after_neighbors_gives_what_one_call_gives(resolution, how):
    frames, settings = FRAMES, {"n_neighbors": 8, "random_state": 3}
    if how == "sparse, lacking cells":
        frames = FRAMES | {"rna": FRAMES["rna"].iloc[:50].clip(0.1)}
    one, two = mudata(frames), mudata(frames)
    if how == "sparse, lacking cells":
        for data in (one, two):
            data.mod["rna"].X = sp.csr_matrix(data.mod["rna"].X)
    if how == "batches":
        one.obs["lane"] = two.obs["lane"] = [f"l{i % 2}" for i in range(60)]
        settings["batch_key"] = "lane"
    model = mv.tl.neighbors(one, **settings)
    again = mv.tl.cluster(one, resolution=resolution, neighbors=model, key_added="k", tol=1e-4)
    once = mv.tl.cluster(two, resolution=resolution, key_added="k", tol=1e-4, **settings)
    assert set(one.obsm) > set(two.obsm) > {"k"}
    for name in two.obsm:
        np.testing.assert_array_equal(one.obsm[name], two.obsm[name])
    for name in (name for name in two.obs if name.startswith("k")):
        assert one.obs[name].equals(two.obs[name])
    for name in two.obsp:
        np.testing.assert_array_equal(one.obsp[name].toarray(), two.obsp[name].toarray())
    assert (again.n_iter_, again.stop_reason_) == (once.n_iter_, once.stop_reason_)
    assert one.uns["k"]["settings"].get("batch_key") == settings.get("batch_key")
    batch = two.obs.get("lane")
    np.testing.assert_array_equal(again.predict(two, batch=batch), once.predict(two, batch=batch))


@pytest.mark.filterwarnings("ignore:.*communities of fewer than", "ignore:.*raise max_iter")
def test_the_graph_is_the_same_at_any_resolution_and_more_gives_more_clusters():
    found = [mv.tl.cluster(mudata(), resolution=r, max_iter=30) for r in (0.3, 1, 4)]
    for model in found[1:]:
        np.testing.assert_array_equal(model.graph_.toarray(), found[0].graph_.toarray())
        np.testing.assert_array_equal(model.view_weights_, found[0].view_weights_)
    sizes = [np.bincount(model.labels_) for model in found]
    assert len(sizes[0]) < len(sizes[2])
    assert all((np.diff(size) <= 0).all() for size in sizes)  # the largest cluster is 0


def test_neighbors_keep_their_settings_and_their_data():
    data = mudata()
    model = mv.tl.neighbors(data, n_neighbors=8, random_state=7)
    for other in ({"n_neighbors": 5}, {"views": ["rna"]}, {"batch_key": "a"}, {"random_state": 3}):
        with pytest.raises(TypeError, match=rf"give {next(iter(other))} to tl.neighbors"):
            mv.tl.cluster(data, neighbors=model, **other)
    for one, number in ((model, 3), (mv.tl.cluster(mudata(), 3), "communities")):
        with pytest.raises(TypeError, match=r"neighbors= is for communities"):
            mv.tl.cluster(data, number, neighbors=one)
    with pytest.raises(TypeError, match=r"model that tl.neighbors returns, got str.*key_added"):
        mv.tl.cluster(data, neighbors="manyview")
    with pytest.raises(TypeError, match="has no parameter 'foo'"):
        mv.tl.cluster(data, neighbors=model, foo=1)
    with pytest.raises(ValueError, match="no clusters yet"):
        mv.tl.predict(data, model)
    same = {"n_neighbors": 8, "random_state": 7}
    labels = mv.tl.cluster(mudata(), resolution=2, **same).labels_
    found = mv.tl.cluster(data, resolution=2, neighbors=model, n_jobs=1, **same)
    np.testing.assert_array_equal(found.labels_, labels)
    assert len(mv.tl.predict(data, found, key_added="again")) == 60
    with pytest.warns(ConvergenceWarning):  # one iteration that the user asked for has clusters
        short = mv.tl.cluster(data, max_iter=1)
    assert len(mv.tl.predict(data, short, key_added="again")) == 60


def zeros(data):
    data.mod["rna"].X[:] = 0


def swapped_names(data):
    data.mod["rna"].obs_names = data.mod["rna"].obs_names[::-1]


def renamed_features(data):
    data.mod["rna"].var_names = data.mod["rna"].var_names[::-1]


def dropped(data):
    del data.mod["rna"]


@pytest.mark.filterwarnings("ignore:.*Cannot join columns", "ignore:.*obs_names")
@pytest.mark.parametrize("change", [zeros, swapped_names, renamed_features, dropped])
def test_clusters_of_data_that_changed_since_neighbors_are_announced(change):
    data = mudata()
    model = mv.tl.neighbors(data)
    labels = mv.tl.cluster(mudata(), resolution=2).labels_
    change(data)
    with pytest.warns(UserWarning, match="'rna': not the data that tl.neighbors saw"):
        found = mv.tl.cluster(data, resolution=2, neighbors=model)
    np.testing.assert_array_equal(found.labels_, labels)  # the model has its own copy


def test_predictions_are_written_with_the_categories_of_the_fit_and_batches_by_their_key():
    frames = {name: X + 3 * (np.arange(60) % 2)[:, None] for name, X in FRAMES.items()}
    data = mudata(frames)
    data.obs["lane"] = pd.Categorical([f"l{i % 2}" for i in range(60)])
    model = mv.tl.cluster(data, 3, batch_key="lane")
    np.testing.assert_array_equal(
        model.labels_, mv.RobustWMNMF(3, random_state=0).fit(frames, batch=data.obs["lane"]).labels_
    )
    assert data.uns["manyview"]["settings"]["batch_key"] == "lane"
    new = data[data.obs_names[:40]].copy()
    del new.obs["manyview"]
    found = mv.tl.predict(new, model, batch_key="lane", key_added="found")
    np.testing.assert_array_equal(found, new.obs["found"].astype(int))
    assert list(new.obs["found"].cat.categories) == ["0", "1", "2"]
    np.testing.assert_array_equal(
        new.obs["found_confidence"],
        model.predict_proba(new, batch=new.obs["lane"]).max(axis=1),
    )
    assert (found == model.labels_[:40]).mean() > 0.9
    with pytest.raises(ValueError, match="no column 'batch' for batch_key"):
        mv.tl.cluster(data, 3, batch_key="batch")
    with pytest.raises(TypeError, match=r"got dict.*model.predict"):
        mv.tl.predict(frames, model)


# --- the tools of others -----------------------------------------------------------------------


@pytest.mark.parametrize("make", [mudata, one_anndata])
def test_scanpy_goes_on_from_the_fused_graph(make):
    sc, _ = pytest.importorskip("scanpy"), pytest.importorskip("igraph")
    data = make()
    views = None if make is mudata else ["X", "protein", "image"]
    mv.tl.cluster(data, views=views)
    with warnings.catch_warnings(action="ignore"):
        sc.tl.umap(data, neighbors_key="manyview", random_state=0)
        sc.tl.leiden(data, neighbors_key="manyview", flavor="igraph", n_iterations=2)
        sc.tl.diffmap(data, neighbors_key="manyview", n_comps=4)
        drawn = sc.pl.umap(data, color=["manyview", "manyview_confidence"], show=False)
    assert data.obsm["X_umap"].shape == (60, 2) and np.isfinite(data.obsm["X_umap"]).all()
    assert mv.metrics.scores(TRUTH, data.obs["leiden"].astype(int))["ari"] > 0.5
    assert len(drawn) == 2


def counted_cells(n=150, genes=80, seed=0):
    """Counts of three types with library sizes of their own, and 12 antibodies on a log scale."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 3
    rates = np.exp(rng.normal(scale=0.5, size=(3, genes)))[kind] * rng.lognormal(
        0.5, 0.4, size=(n, 1)
    )
    names = [f"c{i}" for i in range(n)]
    rna = ad.AnnData(sp.csr_matrix(rng.poisson(rates).astype(np.float32)))
    protein = ad.AnnData(
        rng.normal(rng.normal(scale=0.6, size=(3, 12))[kind], 0.5).astype(np.float32)
    )
    rna.obs_names = protein.obs_names = names
    rna.var_names = [f"g{j}" for j in range(genes)]
    protein.var_names = [f"p{j}" for j in range(12)]
    return md.MuData({"rna": rna, "protein": protein}), kind


def test_raw_counts_are_announced_with_the_remedy_and_normalized_data_are_not():
    data, truth = counted_cells()
    with (
        pytest.warns(UserWarning, match="'rna'.* hold counts"),
        pytest.warns(UserWarning, match=r"'rna': raw counts.*normalize_total.*scale=\{'rna'"),
    ):
        mv.tl.cluster(data)
    assert mv.metrics.scores(truth, data.obs["manyview"].astype(int))["ari"] > 0.9
    mv.tl.cluster(data, scale={"rna": "sqrt"})  # chosen: nothing to tell
    rna = data.mod["rna"]
    total = np.asarray(rna.X.sum(axis=1))
    rna.X = sp.csr_matrix(np.log1p(rna.X.multiply(1e3 / total).toarray()))
    mv.tl.cluster(data)


def test_a_notebook_of_scanpy_runs_as_it_is():
    sc = pytest.importorskip("scanpy", reason="scanpy is no dependency of the tests; install it")
    with warnings.catch_warnings(action="ignore", category=FutureWarning):
        data, truth = counted_cells()
        adata = data.mod["rna"]
        adata.layers["counts"] = adata.X.copy()
        sc.pp.normalize_total(adata)
        sc.pp.log1p(adata)
        sc.pp.highly_variable_genes(adata, n_top_genes=60)
        sc.pp.pca(adata, n_comps=20, random_state=0)
        sc.pp.neighbors(adata, random_state=0)
        sc.tl.umap(adata, random_state=0)
        before = adata.uns["neighbors"]["connectivities_key"]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning)
        mv.tl.cluster(data, use_highly_variable=True)
        sc.tl.umap(data, neighbors_key="manyview", random_state=0)
        sc.tl.paga(data, groups="manyview", neighbors_key="manyview")
        sc.tl.rank_genes_groups(adata, "manyview", method="t-test")
        sc.tl.dendrogram(adata, "manyview", use_rep="X_pca")
    assert mv.metrics.scores(truth, data.obs["manyview"].astype(int))["ari"] > 0.9
    assert len(sc.get.rank_genes_groups_df(adata, group="0")) == 80
    assert adata.uns["neighbors"]["connectivities_key"] == before  # its own graph is as it was
    mv.tl.cluster(adata, views=["obsm:X_pca"], key_added="of_pca")
    sc.tl.rank_genes_groups(adata, "of_pca", method="t-test")


def test_a_notebook_goes_on_from_our_neighbors(tmp_path):
    sc = pytest.importorskip("scanpy", reason="scanpy is no dependency of the tests; install it")
    pytest.importorskip("igraph")
    data, truth = counted_cells()
    data.mod["rna"].write_h5ad(tmp_path / "cells.h5ad")
    with warnings.catch_warnings(action="ignore", category=FutureWarning):
        adata = sc.read_h5ad(tmp_path / "cells.h5ad")
        sc.pp.filter_cells(adata, min_genes=5)
        sc.pp.filter_genes(adata, min_cells=3)
        sc.pp.normalize_total(adata)
        sc.pp.log1p(adata)
        sc.pp.highly_variable_genes(adata, n_top_genes=60)
        sc.pp.pca(adata, n_comps=20, random_state=0)
        mv.tl.neighbors(adata, views=["obsm:X_pca"])
        ours = {"neighbors_key": "manyview", "random_state": 0}
        sc.tl.umap(adata, **ours)
        sc.tl.leiden(adata, resolution=0.5, flavor="igraph", n_iterations=2, **ours)
        sc.tl.rank_genes_groups(adata, "leiden", method="wilcoxon")
    assert adata.obsm["X_umap"].shape == (150, 2)
    kinds = truth[[int(name[1:]) for name in adata.obs_names]]
    assert mv.metrics.scores(kinds, adata.obs["leiden"].astype(int))["ari"] > 0.9
    assert len(sc.get.rank_genes_groups_df(adata, group="0")) == adata.n_vars


def test_muon_draws_what_was_written():
    mu = pytest.importorskip("muon")
    sc = pytest.importorskip("scanpy")
    data = mudata()
    mv.tl.cluster(data)
    with warnings.catch_warnings(action="ignore"):
        sc.tl.umap(data, neighbors_key="manyview")
        assert mu.pl.umap(data, color="manyview", show=False) is not None
