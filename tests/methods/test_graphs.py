"""Laws of relations as views of RobustWMNMF."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.neighbors import kneighbors_graph

import manyview as mv
from conftest import blobs

N, K = 90, 3


@pytest.fixture(scope="module")
def data():
    """Two views of three clusters, and the labels."""
    views, labels = blobs(N, (6, 5), K, noise=0.5)
    return views[0], views[1], labels


def fit(data, **settings):
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return mv.RobustWMNMF(K, random_state=0, **settings).fit(data)


def graph_of(X, k=8):
    return kneighbors_graph(X, k, mode="connectivity")


def nmi(model, labels):
    return mv.metrics.scores(labels, model.labels_)["nmi"]


RELATIONS = {
    "graph": lambda X: mv.GraphView(graph_of(X)),
    "distance": lambda X: mv.DistanceView(cdist(X, X)),
    "kernel": lambda X: mv.KernelView(X @ X.T),
}


@pytest.mark.parametrize("make", RELATIONS.values(), ids=RELATIONS)
def test_a_relation_of_features_gives_nearly_their_result(data, make):
    X, Y, labels = data
    features, relation = fit([X, Y]), fit([X, make(Y)])
    assert nmi(relation, labels) > nmi(features, labels) - 0.05
    assert abs(relation.view_weights_ - features.view_weights_).max() < 0.15
    assert relation.components_[1].min() >= 0
    np.testing.assert_allclose(relation.components_[1].sum(axis=1), 1)


@pytest.mark.parametrize("make", RELATIONS.values(), ids=RELATIONS)
def test_rows_in_another_order_get_the_same_clusters(data, make):
    X, Y, _ = data
    order = np.random.default_rng(1).permutation(N)
    one, other = fit([X, make(Y)]), fit([X[order], make(Y)[order]])
    assert mv.metrics.scores(one.labels_[order], other.labels_)["ari"] > 0.99


def test_a_random_graph_gets_hardly_any_weight(data):
    X, Y, labels = data
    for seed in range(3):
        A = sp.random_array((N, N), density=0.1, rng=np.random.default_rng(seed))
        model = fit({"x": X, "y": Y, "links": mv.GraphView(A)})
        assert model.view_weights_[2] < 0.05
        assert model.split_half_[2] < 0.5 * model.split_half_[:2].min()
        assert nmi(model, labels) > nmi(fit([X, Y]), labels) - 0.02


@pytest.mark.parametrize("A", [sp.csr_array((N, N)), sp.eye_array(N)], ids=["empty", "identity"])
def test_a_graph_without_links_changes_nothing(data, A):
    X, Y, _ = data
    with pytest.warns(UserWarning, match="'links' is a graph without entries; it gets no weight"):
        model = mv.RobustWMNMF(K, random_state=0).fit({"x": X, "y": Y, "links": mv.GraphView(A)})
    plain = fit({"x": X, "y": Y})
    assert (model.labels_ == plain.labels_).all()
    assert model.view_weights_[2] == pytest.approx(0, abs=1e-12)


def test_observations_without_links_are_missing_there_and_told(data):
    X, Y, _ = data
    A = sp.lil_array(graph_of(Y))
    A[:5], A[:, :5] = 0, 0
    with pytest.warns(UserWarning, match="'links': 5 samples have no link and are treated as miss"):
        model = mv.RobustWMNMF(K, random_state=0).fit({"x": X, "links": mv.GraphView(A.tocsr())})
    assert not model.sample_weights_[:5, 1].any() and not model.reliance_[:5, 1].any()
    assert (model.labels_ >= 0).all()


@pytest.mark.parametrize("make", RELATIONS.values(), ids=RELATIONS)
def test_saved_models_place_rows_as_the_fitted_ones_do(data, make, tmp_path):
    X, Y, _ = data
    model = fit({"x": X, "r": make(Y)})
    model.save(tmp_path / "m.npz")
    again = mv.load(tmp_path / "m.npz")
    fitted = make(Y)
    rows = {
        "graph": lambda: mv.GraphView(fitted.matrix[:30]),
        "distance matrix": lambda: mv.DistanceView(fitted.matrix[:30]),
        "kernel": lambda: mv.KernelView(fitted.matrix[:30], diagonal=(Y[:30] ** 2).sum(axis=1)),
    }[fitted.kind]()
    new = {"x": X[:30], "r": rows}
    assert (again.predict(new) == model.predict(new)).all()
    assert (model.predict(new) == model.labels_[:30]).mean() > 0.95
    assert (model.predict({"x": X[:30]}) == model.labels_[:30]).mean() > 0.9
    with pytest.raises(ValueError, match="impute fills in features only"):
        model.impute("r")


def test_new_rows_must_be_of_the_fitted_kind_and_width(data):
    X, Y, _ = data
    model = fit({"x": X, "r": mv.GraphView(graph_of(Y))})
    with pytest.raises(
        ValueError, match="'r' is a table of features, but RobustWMNMF was fitted on a gr"
    ):
        model.predict({"x": X[:3], "r": np.ones((3, N))})
    with pytest.raises(ValueError, match=f"7 features, but RobustWMNMF was fitted with {N}"):
        model.predict({"x": X[:3], "r": mv.GraphView(np.ones((3, 7)))})


def test_a_relation_is_aligned_by_ids(data):
    X, Y, _ = data
    ids = np.array([f"s{i}" for i in range(N)])
    order = np.random.default_rng(2).permutation(N)
    frame = pd.DataFrame(X, index=ids)
    A = sp.csr_array(graph_of(Y))
    straight = fit({"x": frame, "links": mv.GraphView(A, ids=ids)})
    turned = fit({"x": frame, "links": mv.GraphView(A[order][:, order], ids=ids[order])})
    assert (straight.labels_ == turned.labels_).all()
    np.testing.assert_allclose(straight.view_weights_, turned.view_weights_)
    assert list(turned.view_feature_names_in_["links"]) == list(ids)
    fewer = fit({"x": frame, "links": mv.GraphView(A[5:][:, 5:], ids=ids[5:])})
    assert not fewer.sample_weights_[:5, 1].any()
    rows = pd.DataFrame(A.toarray()[:4], index=ids[:4], columns=ids).iloc[:, order]
    new = {"x": frame.iloc[:4], "links": mv.GraphView(rows)}
    assert (straight.predict(new) == straight.labels_[:4]).all()


def test_ids_of_other_observations_are_refused(data):
    X, Y, _ = data
    frame = pd.DataFrame(X, index=[f"s{i}" for i in range(N)])
    with pytest.raises(ValueError, match="'links' shares no sample id"):
        fit({"x": frame, "links": mv.GraphView(graph_of(Y), ids=[f"t{i}" for i in range(N)])})
    with pytest.raises(ValueError, match="'links' has 80"):
        fit({"x": X, "links": mv.GraphView(graph_of(Y[:80]))})


def test_methods_of_features_refuse_relations_and_say_what_to_do(data):
    X, Y, _ = data
    views = {"x": abs(X), "links": mv.GraphView(graph_of(Y))}
    for method in (mv.WMNMF(K), mv.baselines.MultiNMF(K)):
        with pytest.raises(
            ValueError, match=r"'links' is a graph, and \w+ works on features.*as_feat"
        ):
            method.fit(views)
    views["links"] = views["links"].as_features()
    assert len(mv.WMNMF(K, random_state=0).fit(views).labels_) == N
    with pytest.raises(ValueError, match="engine='dask' does not accept"):
        fit({"x": X, "links": mv.GraphView(graph_of(Y))}, engine="dask")
    with pytest.raises(ValueError, match="a list or dict of views"):
        fit(mv.GraphView(graph_of(Y)))


def test_a_square_symmetric_table_gets_a_hint(data):
    X, Y, _ = data
    A = graph_of(Y)
    with pytest.warns(UserWarning, match=r"\['links'\] have as many columns.*manyview.GraphView"):
        mv.RobustWMNMF(K, random_state=0).fit({"x": X, "links": A + A.T})


def test_a_checkpoint_of_another_graph_is_refused(data, tmp_path):
    X, Y, _ = data
    stop = mv.RobustWMNMF(
        K, random_state=0, checkpoint=(tmp_path / "c.npz", 0), callback=lambda info: 1 / 0
    )
    A = sp.csr_array(graph_of(Y))
    with pytest.raises(ZeroDivisionError):
        stop.fit({"x": X, "r": mv.GraphView(A)})
    stop.callback = None
    with pytest.raises(ValueError, match="'r'"):
        stop.fit({"x": X, "r": mv.GraphView(A.T @ A)})
    stop.fit({"x": X, "r": mv.GraphView(A)})
    assert (stop.labels_ == fit({"x": X, "r": mv.GraphView(A)}).labels_).all()


def test_stability_choice_and_report(data, tmp_path):
    X, Y, _ = data
    views = {"x": X, "links": mv.GraphView(graph_of(Y)), "far": mv.DistanceView(cdist(Y, Y))}
    model = fit(views)
    assert mv.stability(model, views, n_runs=2, random_state=0).score > 0.5
    assert mv.select_n_clusters(views, range(2, 6), random_state=0).n_clusters == K
    mv.write_run(model, views, tmp_path / "run", stability_runs=0)
    page = (tmp_path / "run" / "report.html").read_text()
    assert f"x ({X.shape[1]} features), links (graph), far (distance matrix)" in page
    parts = pd.read_csv(tmp_path / "run" / "components_links.csv")
    assert len(parts) == N
    assert "coordinate_0" in (tmp_path / "run" / "components_far.csv").read_text()


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_pairs_of_observations_inside_anndata_and_mudata(data):
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    X, Y, labels = data
    cells = anndata.AnnData(X)
    cells.obsp["connectivities"] = sp.csr_matrix(graph_of(Y))
    cells.obsp["distances"] = sp.csr_matrix(graph_of(Y))
    cells.obsp["full_distances"] = cdist(Y, Y)
    for name in ("obsp:connectivities", "obsp:full_distances"):
        model = fit(cells, views=["X", name])
        assert model._relations[1] in ("graph", "distance matrix") and nmi(model, labels) > 0.8
    with pytest.raises(ValueError, match=r"neighbors only.*obsp:connectivities"):
        fit(cells, views=["X", "obsp:distances"])
    other = anndata.AnnData(Y, var=pd.DataFrame(index=[f"y{j}" for j in range(Y.shape[1])]))
    both = mudata.MuData({"a": cells, "b": other})
    model = fit(both, views=["a", "b", "a:obsp:connectivities"])
    assert model._relations == [None, None, "graph"]
