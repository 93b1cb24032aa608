"""What every method promises alike: inputs, sentences, seeds, copies; and each wrapper's own."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.cluster import DBSCAN, KMeans, SpectralClustering
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from conftest import blobs
from manyview import WMNMF, RobustWMNMF, metrics
from manyview.baselines import (
    DESCRIPTIONS,
    MLRSSC,
    ORACLES,
    BestSingleView,
    ConcatViews,
    KNNSpectral,
    MultiNMF,
    SumOfGraphs,
    _base,
    honest_methods,
    omics_methods,
    paper_methods,
    wrappers,
)
from manyview.views.views import as_views

QUICK = {"max_iter": 3, "inner_iter": 10, "start_iter": 20}
METHODS = {
    "BestSingleView": lambda k=3, **p: BestSingleView(KMeans(k, n_init=2), **p),
    "BestSingleView-spectral": lambda k=3, **p: BestSingleView(KNNSpectral(k), **p),
    "ConcatViews": lambda k=3, **p: ConcatViews(KMeans(k, n_init=2), **p),
    "ConcatViews-z": lambda k=3, **p: ConcatViews(KNNSpectral(k), scale="standard", **p),
    "SumOfGraphs": lambda k=3, **p: SumOfGraphs(k, **p),
    "MultiNMF": lambda k=3, **p: MultiNMF(k, **QUICK, **p),
    "MLRSSC-pairwise": lambda k=3, **p: MLRSSC(k, kernel="rbf", **p),
    "MLRSSC-centroid": lambda k=3, **p: MLRSSC(k, kind="centroid", **p),
    "WMNMF": lambda k=3, **p: WMNMF(k, **p),
}
ESTIMATORS = {
    "WMNMF-argmax": lambda k=3, **p: WMNMF(k, assign_labels="argmax", **p),
    "RobustWMNMF": RobustWMNMF,
}
NONNEGATIVE = ("MultiNMF", "WMNMF")
every_method = pytest.mark.parametrize("name", METHODS)
#: What all share is of their base class: one that overrides `fit`, and one that does not.
two_methods = pytest.mark.parametrize("name", ["BestSingleView", "MLRSSC-pairwise"])


def changed(entry):
    views, _ = blobs(n=30)
    views[1][4, 2] = entry
    return views


BAD = {
    "NaN": (changed(np.nan), r"view 'view1' has 1 NaN or infinite entries .* row 4, column 2"),
    "unequal rows": ([np.ones((6, 2)), np.ones((5, 2))], "'view0' has 6 rows, 'view1' has 5"),
}


@two_methods
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_answered_by_a_sentence(name, case):
    views, sentence = BAD[case]
    with pytest.raises(ValueError, match=sentence):
        METHODS[name]().fit(views)


@two_methods
def test_settings_that_do_not_fit_are_answered_by_a_sentence(name):
    views, _ = blobs(n=6)
    sentence = r"n_clusters=7 is more than the number of samples \(n_samples=6\)"
    with pytest.raises(ValueError, match=sentence):
        METHODS[name](7).fit(views)
    with pytest.raises(ValueError, match="adds up to 18 columns, but X has 19 features"):
        METHODS[name](views=[8, 5, 5]).fit(np.hstack(views))
    with pytest.raises(ValueError, match="'random_state' parameter"):
        METHODS[name]().set_params(random_state="yesterday").fit(views)


@pytest.mark.parametrize("name", [*METHODS, *ESTIMATORS])
def test_clusters_are_numbered_by_size(name):
    """The largest is 0; of equal ones that of the first sample."""
    views, y = blobs(n=60)
    uneven = np.concatenate([np.flatnonzero(y == 0)[:7], np.flatnonzero(y > 0)])
    for rows in (np.arange(60), uneven):
        some = [X[rows] for X in views]
        model = (METHODS | ESTIMATORS)[name](3, random_state=0).fit(some)
        found, first, sizes = np.unique(model.labels_, return_index=True, return_counts=True)
        assert found.tolist() == [0, 1, 2]
        assert sorted(zip(-sizes, first, strict=True)) == list(zip(-sizes, first, strict=True))
        if name in ESTIMATORS:
            np.testing.assert_array_equal(model.consensus_.argmax(axis=1), model.labels_)
        if "WMNMF" in name:
            np.testing.assert_array_equal(model.predict(some), model.labels_)


@every_method
def test_negative_entries_only_stop_those_that_factorize(name):
    views = changed(-0.5)
    if name in NONNEGATIVE:
        with pytest.raises(ValueError, match=r"view 'view1' has 1 negative entries .*min -0.5\)"):
            METHODS[name]().fit(views)
        views = METHODS[name](scale="minmax").fit(views)
    else:
        assert len(METHODS[name](random_state=0).fit_predict(views)) == 30


@pytest.mark.parametrize(
    "model",
    [ConcatViews(KMeans(3), scale="sum"), SumOfGraphs(3, scale="tfidf"), MultiNMF(3, scale=None)],
)
def test_scales_that_cannot_shift_say_so(model):
    with pytest.raises(ValueError, match="1 negative entries"):
        model.fit(changed(-0.5))


@two_methods
def test_all_input_forms_give_the_same_labels(name):
    views, y = blobs(n=45)
    ids = [f"s{i}" for i in range(45)]
    frames = {f"view{s}": pd.DataFrame(X, index=ids) for s, X in enumerate(views)}
    shuffled = frames | {"view1": frames["view1"].iloc[::-1]}
    model = METHODS[name](random_state=0).fit(views)
    for form in (tuple(views), dict(zip("abc", views, strict=True)), frames, shuffled):
        np.testing.assert_array_equal(
            METHODS[name](random_state=0).fit_predict(form), model.labels_
        )
    split = METHODS[name](views=[8, 5, 6], random_state=0).fit(np.hstack(views))
    np.testing.assert_array_equal(split.labels_, model.labels_)
    assert list(METHODS[name]().fit(frames).view_names_in_) == list(frames)
    assert metrics.accuracy(y, model.labels_) > 0.9


@every_method
def test_seeds_reproduce_copies_agree_and_views_stay_as_they_were(name):
    views, _ = blobs(n=45, noise=2.0)
    before = [X.copy() for X in views]
    model = METHODS[name](random_state=3)
    one, two = clone(model).fit(views), model.fit(views)
    copy = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(copy.labels_, two.labels_)
    assert repr(copy.get_params()) == repr(model.get_params())
    for attribute in ("consensus_", "affinity_matrix_"):
        if hasattr(one, attribute):
            assert abs(getattr(one, attribute) - getattr(two, attribute)).max() == 0
    METHODS[name](random_state=np.random.default_rng(0)).fit(views)
    METHODS[name](random_state=np.random.RandomState(0)).fit(views)
    for X, kept in zip(views, before, strict=True):
        np.testing.assert_array_equal(X, kept)


CHECKED = [
    KNNSpectral(3),
    ConcatViews(KMeans(3, n_init=1)),
    MultiNMF(3, max_iter=2, inner_iter=5, start_passes=1, start_iter=5, scale="minmax"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", CHECKED, ids=lambda model: type(model).__name__)
def test_scikit_learns_own_checks(model):
    check_estimator(model)


# --- best single view ---------------------------------------------------------------------------


def two_views():
    """A clear partition in `a` that is not the truth, and the truth, blurred, in `b`."""
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 2
    other = np.arange(60) // 30
    a = 50.0 * other[:, None] + rng.standard_normal((60, 3))
    b = 3.0 * truth[:, None] + rng.standard_normal((60, 3))
    return {"a": a, "b": b}, truth


def test_best_view_by_silhouette_unless_truth_is_given():
    views, truth = two_views()
    model = BestSingleView(KMeans(2, n_init=3), random_state=0)
    model.fit(views)
    assert (model.best_view_, model.chosen_by_) == ("a", "silhouette")
    assert model.view_scores_["a"] > 0.9 > model.view_scores_["b"]
    model.fit(views, truth)
    assert (model.best_view_, model.chosen_by_) == ("b", "truth")
    assert model.view_scores_["b"] == metrics.accuracy(truth, model.labels_)
    assert metrics.accuracy(model.labels_, model.estimators_["b"].labels_) == 1
    np.testing.assert_array_equal(model.fit_predict(views, truth), model.labels_)


def test_a_view_without_clusters_is_never_the_best(rng):
    views = {"alike": np.ones((40, 2)), "clear": blobs(40, (3,), 2)[0][0]}
    model = BestSingleView(DBSCAN(eps=1.5)).fit(views)
    assert model.best_view_ == "clear"
    assert model.view_scores_["alike"] == -1


def test_an_estimator_may_choose_the_number_of_clusters():
    views, _ = blobs(n=60)
    model = BestSingleView(RobustWMNMF("auto"), random_state=0).fit(views)
    own = model.estimators_[model.best_view_].n_clusters_
    assert len(set(model.labels_)) == own


def test_silhouette_of_many_rows_is_taken_on_a_sample(monkeypatch):
    views, _ = two_views()
    model = BestSingleView(KMeans(2, n_init=3), random_state=0)
    whole = model.fit(views).view_scores_["b"]
    monkeypatch.setattr(wrappers, "SILHOUETTE_SAMPLE", 40)
    sampled = model.fit(views).view_scores_["b"]
    assert sampled != whole and sampled == pytest.approx(whole, abs=0.1)


def test_truth_and_estimators_that_do_not_fit_are_answered_by_a_sentence():
    for y, sentence in (
        ([0, 1] * 29 + [1], "y has 59 labels for 60 samples"),
        ([0.0, np.nan] * 30, r"y\[1\] is missing"),
        (3, "y must be 1-D"),
    ):
        with pytest.raises(ValueError, match=sentence):
            BestSingleView(KMeans(2)).fit(two_views()[0], y)
    for wrapper in (BestSingleView, ConcatViews):
        with pytest.raises(ValueError, match="'estimator' parameter"):
            wrapper(StandardScaler()).fit(blobs()[0])


def test_without_a_seed_of_its_own_a_wrapper_keeps_the_estimators():
    views, _ = blobs()
    model = ConcatViews(KMeans(3, random_state=7)).fit(views)
    assert model.estimator_.random_state == 7
    model.set_params(random_state=0).fit(views)
    assert model.estimator_.random_state != 7 and model.estimator.random_state == 7
    piped = ConcatViews(make_pipeline(PCA(2), KMeans(3, n_init=1)), random_state=0).fit(views)
    assert piped.estimator_.named_steps["kmeans"].random_state is not None


# --- side by side -------------------------------------------------------------------------------


def test_concatenation_is_plain_without_scale_and_by_feature_with(rng):
    views, _ = blobs()
    wide = np.hstack(views)
    given = as_views(views)
    np.testing.assert_array_equal(_base.side_by_side(_base.scaled(given, None)), wide)
    z = _base.side_by_side(_base.scaled(given, "standard"))
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z.std(axis=0), 1)
    unit = _base.side_by_side(_base.scaled(given, "minmax"))
    np.testing.assert_allclose([unit.min(axis=0), unit.max(axis=0)], [np.zeros(19), np.ones(19)])


@pytest.mark.parametrize("scale", [None, "standard", "minmax", "sum"])
def test_sparse_views_stay_sparse_at_the_same_distances(scale):
    views = [np.where(X > 1, X, 0) for X in blobs()[0]]
    views[0][:, 0] = 2.0  # a constant feature has no spread to divide by
    dense = _base.side_by_side(_base.scaled(as_views(views), scale))
    mixed = as_views([sp.csr_matrix(views[0]), views[1], sp.csr_matrix(views[2])])
    sparse = _base.side_by_side(_base.scaled(mixed, scale))
    assert sp.issparse(sparse) and sparse.format == "csr"
    np.testing.assert_allclose(pdist(sparse.toarray()), pdist(dense), atol=1e-10)


# --- graphs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("assign_labels", ["spectral", "njw"])
def test_matlab_spectral_where_the_kernel_is_alive(assign_labels):
    views, y = blobs()
    model = KNNSpectral(3, assign_labels=assign_labels, random_state=0).fit(views[0])
    assert metrics.accuracy(y, model.labels_) > 0.95
    assert model.n_isolated_ == 0
    A = model.affinity_matrix_
    assert abs(A - A.T).max() == 0 and A.diagonal().max() == 0
    assert np.diff(A.indptr).min() >= np.ceil(np.log(60))
    i, j = np.argwhere(A.toarray())[0]
    assert A[i, j] == pytest.approx(np.exp(-np.sum((views[0][i] - views[0][j]) ** 2)))


@pytest.mark.parametrize("shares", [1.0, 0.5])
def test_rows_whose_kernel_underflows_do_not_crash(shares, rng):
    X = rng.random((40, 3))
    lost = np.arange(40) < shares * 40
    X[lost] += 1e4 * (1 + np.arange(lost.sum()))[:, None]
    with pytest.warns(UserWarning, match=f"{lost.sum()} of 40 rows have no neighbor"):
        model = KNNSpectral(3, random_state=0).fit(X)
    assert model.n_isolated_ == lost.sum()
    assert len(model.labels_) == 40


def test_single_matrix_spectral_has_sentences_too():
    with pytest.raises(ValueError, match=r"n_clusters=5 is more than .*n_samples=4"):
        KNNSpectral(5).fit(np.eye(4))
    with pytest.raises(ValueError, match="NaN"):
        KNNSpectral(2).fit([[1.0], [np.nan], [2.0]])
    with pytest.raises(ValueError, match="'kernel_scale' parameter"):
        KNNSpectral(2, kernel_scale=0).fit(np.eye(4))


def test_sum_of_graphs_counts_the_views_that_agree(rng):
    views, y = blobs()
    model = SumOfGraphs(3, n_neighbors=4, random_state=0).fit(views)
    A = model.affinity_matrix_
    assert sp.issparse(A) and abs(A - A.T).max() == 0 and A.diagonal().max() == 0
    assert set(np.unique(A.data)) <= {1.0, 2.0, 3.0}
    assert metrics.accuracy(y, model.labels_) == 1
    order = rng.permutation(60)
    other = SumOfGraphs(3, n_neighbors=4, random_state=0).fit([X[order] for X in views])
    assert abs(other.affinity_matrix_ - A[order][:, order]).max() == 0
    same = SumOfGraphs(3, n_neighbors=4).fit([views[0]] * 2).affinity_matrix_
    assert set(np.unique(same.data)) == {2.0}


def test_sum_of_graphs_scales_as_concatenation_does():
    views = [np.where(X > 1, X, 0) for X in blobs()[0]]
    views[0] *= np.geomspace(1, 1e3, views[0].shape[1])
    for scale in ("standard", "minmax", "sum"):
        ours = SumOfGraphs(3, scale=scale, random_state=0).fit(views).affinity_matrix_
        scaled = _base.scaled(as_views(views), scale)
        theirs = SumOfGraphs(3, scale=None, random_state=0).fit(scaled).affinity_matrix_
        assert abs(ours - theirs).max() == 0
    mixed = [sp.csr_matrix(-views[0]), *views[1:]]  # negative and sparse: no distance needs a shift
    assert len(SumOfGraphs(3, random_state=0).fit_predict(mixed)) == 60


# --- the list of methods ------------------------------------------------------------------------


@pytest.mark.parametrize("settings", ["default", "digits"])
def test_the_thirteen_rows_and_the_honest_ones(settings):
    paper, honest = paper_methods(4, settings=settings), honest_methods(4)
    assert list(paper)[:4] == ["BSV-kmeans", "ConcatK", "BSV-Spectral", "ConcatSpectral"]
    assert list(paper)[-3:] == ["NMF-W1", "NMF-W2", "WM-NMF"] and len(paper) == 13
    methods = paper | honest | omics_methods(4)
    assert set(methods) == set(DESCRIPTIONS) and set(ORACLES) <= set(paper)
    for make in pickle.loads(pickle.dumps(methods)).values():
        model = make(5)
        assert model.random_state == 5
        inner = getattr(model, "estimator", model)
        assert inner.n_clusters == 4
        model._validate_params()
    assert paper["C-KMLRSSC"](0).thr == {"default": 1e-3, "digits": 1e-5}[settings]
    with pytest.raises(ValueError, match="settings must be"):
        paper_methods(4, settings="lihc")


@pytest.mark.filterwarnings("ignore:Graph is not fully connected")  # three blobs are three parts
def test_all_listed_methods_run():
    views, y = blobs(n=45)
    for name, make in (paper_methods(3) | honest_methods(3)).items():
        model = make(0)
        if isinstance(model, MultiNMF):
            model.set_params(**QUICK)
        assert metrics.accuracy(y, model.fit(views).labels_) > 0.8, name


def test_honest_spectral_is_scikit_learns():
    views, _ = blobs(noise=1.5)
    model = honest_methods(3)["ConcatSpectral-z"](0).fit(views)
    seed = model.estimator_.random_state
    theirs = SpectralClustering(3, affinity="nearest_neighbors", n_neighbors=10, random_state=seed)
    z = StandardScaler().fit_transform(np.hstack(views))
    assert metrics.accuracy(theirs.fit_predict(z), model.labels_) == 1
