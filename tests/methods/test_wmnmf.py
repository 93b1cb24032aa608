"""The estimator: equalities, invariances, scikit-learn's own checks, new samples."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator

import manyview as mv
from conftest import blobs
from manyview import WMNMF
from manyview._types import CollapseWarning


@pytest.fixture(scope="module")
def digits():
    return mv.datasets.load_handwritten(views="paper")


def given_start(views, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "components": [rng.random((k, X.shape[1])) + 0.1 for X in views],
        "coefficients": [rng.random((X.shape[0], k)) + 0.1 for X in views],
    }


SETTINGS = [{}, {"solver": "hals"}, {"regularizer": "sparse"}, {"regularizer": "orthogonal"}]


# --- equalities --------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", SETTINGS)
def test_sparse_equals_dense(settings):
    views, _ = blobs()
    views = [np.where(X < 1, 0, X) for X in views]
    dense = WMNMF(3, random_state=0, **settings).fit(views)
    sparse = WMNMF(3, random_state=0, **settings).fit([sp.csr_matrix(X) for X in views])
    np.testing.assert_allclose(sparse.consensus_, dense.consensus_, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    np.testing.assert_allclose(
        sparse.transform([sp.csr_array(X) for X in views]), dense.transform(views), rtol=1e-7
    )


@pytest.mark.parametrize("settings", SETTINGS)
def test_permuting_observations_and_views_permutes_the_factors(settings):
    views, _ = blobs()
    rows, order = np.random.default_rng(1).permutation(60), [2, 0, 1]
    init = given_start(views)
    moved = {
        "components": [init["components"][s] for s in order],
        "coefficients": [init["coefficients"][s][rows] for s in order],
    }
    one = WMNMF(3, random_state=0, init=init, **settings).fit(views)
    two = WMNMF(3, random_state=0, init=moved, **settings).fit([views[s][rows] for s in order])
    np.testing.assert_allclose(two.consensus_, one.consensus_[rows], rtol=1e-8)
    np.testing.assert_allclose(two.sample_weights_, one.sample_weights_[rows][:, order], rtol=1e-8)
    np.testing.assert_allclose(two.view_weights_, one.view_weights_[order], rtol=1e-8)
    for t, s in enumerate(order):
        np.testing.assert_allclose(two.components_[t], one.components_[s], rtol=1e-7)
    assert adjusted_rand_score(one.labels_[rows], two.labels_) >= 0.99


@pytest.mark.parametrize("scale", ["sum", "minmax", "standard", "tfidf", "sqrt", None])
def test_the_unit_of_measurement_does_not_matter(scale):
    views, _ = blobs()
    one = WMNMF(3, random_state=0, scale=scale).fit(views)
    for power in (2.0**-300, 2.0**7, 2.0**300):
        if scale == "sqrt" and power not in (2.0**-300, 2.0**300):
            continue  # an odd power of two has an irrational root
        two = WMNMF(3, random_state=0, scale=scale).fit([power * X for X in views])
        unit = power if scale is None else 1.0
        np.testing.assert_array_equal(two.consensus_, unit * one.consensus_)
        np.testing.assert_array_equal(two.labels_, one.labels_)
    if scale is not None:  # each view has its own unit
        own = WMNMF(3, random_state=0, scale=scale).fit([views[0] * 2.0**10, *views[1:]])
        np.testing.assert_array_equal(own.consensus_, one.consensus_)
    three = WMNMF(3, random_state=0, scale=scale).fit([np.pi * X for X in views])
    unit = np.pi if scale is None else 1.0
    np.testing.assert_allclose(three.consensus_, unit * one.consensus_, rtol=1e-8)


def test_identical_views_share_the_weight():
    views, _ = blobs()
    X = views[0]
    init = given_start([X] * 3)
    init = {name: [arrays[0]] * 3 for name, arrays in init.items()}
    model = WMNMF(3, init=init, random_state=0).fit([X] * 3)
    np.testing.assert_allclose(model.view_weights_, 1 / 3)
    np.testing.assert_allclose(model.sample_weights_, 1 / 3)
    np.testing.assert_allclose(model.reliance_, 1 / 3)


def test_large_p_gives_equal_view_weights_and_small_p_sparse_ones():
    views, _ = blobs()
    with pytest.warns(CollapseWarning, match="'view0' has 100%"):
        sparse = WMNMF(3, p=1.5, random_state=0).fit(views)
    with pytest.warns(
        UserWarning, match=r"with p=1e\+06 the consensus term is only 0 of .* smaller p"
    ):
        equal = WMNMF(3, p=1e6, random_state=0).fit(views)
    models = [sparse, WMNMF(3, random_state=0).fit(views), equal]
    spread = [np.ptp(model.view_weights_) for model in models]
    assert spread[0] > spread[1] > spread[2] and spread[2] < 1e-4


def test_one_view():
    views, y = blobs(noise=0.1)
    model = WMNMF(3, random_state=0).fit(views[0])
    np.testing.assert_array_equal(model.view_weights_, [1])
    np.testing.assert_array_equal(model.sample_weights_, np.ones((60, 1)))
    assert adjusted_rand_score(y, model.labels_) > 0.9


def test_float32_computes_near_float64_and_keeps_its_type():
    views, _ = blobs(noise=0.1)
    single = [X.astype(np.float32) for X in views]
    exact = WMNMF(3, random_state=0).fit(views)
    returned = WMNMF(3, random_state=0).fit(single)
    computed = WMNMF(3, random_state=0, dtype=np.float32).fit(single)
    for model in (returned, computed):
        assert model.consensus_.dtype == model.components_[0].dtype == np.float32
        assert model.transform(single).dtype == np.float32
        np.testing.assert_allclose(model.consensus_, exact.consensus_, rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="dtype must be float32, float64 or None"):
        WMNMF(3, dtype="int64").fit(views)


def test_ablations():
    views, _ = blobs()
    one, two = (
        WMNMF.nmf_w1(3, random_state=0).fit(views),
        WMNMF.nmf_w2(3, random_state=0).fit(views),
    )
    for model in (one, two):
        np.testing.assert_array_equal(model.sample_weights_, np.full((60, 3), 1 / 3))
    assert (two.history_["regularizer"] == 0).all() and one.history_["regularizer"].max() > 0
    # The same start, though the second has no graph in its objective.
    assert one.history_["reconstruction"][0] == two.history_["reconstruction"][0]


# --- scikit-learn ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("settings", [{}, {"scale": "minmax", "solver": "hals"}])
def test_scikit_learns_checks(settings):
    expected = {"check_clustering": "feeds standardized, hence negative, data"}
    results = check_estimator(
        WMNMF(**settings),
        expected_failed_checks={} if settings else expected,
        on_fail=None,
        on_skip=None,
    )
    assert len(results) > 40
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []


@pytest.mark.filterwarnings("ignore:WMNMF.score measures how well")  # the search is over them
def test_grid_search_and_pipeline():
    views, _ = blobs()
    X = np.hstack(views)
    model = WMNMF(3, views=[8, 5, 6], random_state=0)
    search = GridSearchCV(model, {"n_components": [2, 3], "beta": [0.01, 0.1]}, cv=3).fit(X)
    assert search.best_score_ < 0 and search.best_params_["n_components"] == 3
    pipeline = make_pipeline(MinMaxScaler(), model).fit(X - 5)
    assert pipeline.predict(X - 5).shape == (60,)


def test_clone_pickle_and_representation():
    views, _ = blobs()
    model = WMNMF(3, random_state=0, beta=0.5).fit(views)
    assert clone(model).beta == 0.5
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(views), model.predict(views))
    assert "WMNMF" in model._repr_html_()
    assert list(model.get_feature_names_out()) == ["wmnmf0", "wmnmf1", "wmnmf2"]


def test_names_are_kept_and_new_input_is_held_to_them():
    pd = pytest.importorskip("pandas")
    views, _ = blobs()
    frames = {
        name: pd.DataFrame(X, columns=[f"{name}_{j}" for j in range(X.shape[1])])
        for name, X in zip(("rna", "protein", "methylation"), views, strict=True)
    }
    model = WMNMF(3, random_state=0).fit(frames)
    assert list(model.view_names_in_) == ["rna", "protein", "methylation"]
    assert model.n_features_in_ == (8, 5, 6)
    assert list(model.view_feature_names_in_["protein"])[:2] == ["protein_0", "protein_1"]
    shuffled = {name: frames[name].iloc[:, ::-1] for name in ("protein", "methylation", "rna")}
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(frames))
    for bad, message in (
        ({"rna": views[0]}, r"missing here: \['protein', 'methylation'\]"),
        (views[:2], "fitted on 3 views"),
        (np.hstack(views), "fitted on a collection of views, got one array"),
        ([views[1], views[0], views[2]], "'rna' has 5 features, but WMNMF was fitted with 8"),
        (frames | {"rna": frames["rna"].iloc[:, 1:]}, "lacks 1 of its 8 fitted features.*'rna_0'"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(bad)


def test_parameters_are_checked():
    views, _ = blobs()
    for bad in ({"p": 0.5}, {"beta": -1}, {"solver": "adam"}, {"max_iter": 0}, {"scale": "log"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            WMNMF(3, **bad).fit(views)
    with pytest.raises(ValueError, match="one cluster per component"):
        WMNMF(3, n_components=4, assign_labels="argmax").fit(views)
    with pytest.raises(ValueError, match="needs one start"):
        WMNMF(3, assign_labels="argmax", n_init=2).fit(views)


def test_verbose_prints_a_line_per_round(capsys):
    views, _ = blobs()
    WMNMF(3, random_state=0, verbose=1).fit(views)
    assert capsys.readouterr().out.count("objective") == 2


# --- seeds, threads, memory --------------------------------------------------------------------


def test_seeds():
    views, _ = blobs()
    one, same, other = (WMNMF(3, random_state=seed).fit(views) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.consensus_, same.consensus_)
    assert not np.array_equal(one.consensus_, other.consensus_)
    state = np.random.RandomState(0)
    first, second = (WMNMF(3, random_state=state).fit(views) for _ in range(2))
    assert not np.array_equal(first.consensus_, second.consensus_)
    WMNMF(3, random_state=np.random.default_rng(0)).fit(views)


def run_python(code, threads=1):
    env = os.environ | {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_results_do_not_depend_on_the_number_of_threads():
    code = (
        "import hashlib, manyview as mv\n"
        "views = mv.datasets.load_handwritten(views='paper').views\n"
        "m = mv.WMNMF(10, random_state=0).fit(views)\n"
        "parts = [m.labels_, m.consensus_, *m.components_, *m.coefficients_, m.predict(views)]\n"
        "print(hashlib.sha256(b''.join(p.tobytes() for p in parts)).hexdigest())"
    )
    assert run_python(code, 1) == run_python(code, 2)


def test_no_square_array_is_ever_made():
    """25,000 samples, whose N×N array alone would take 5 GB, stay under 1 GiB."""
    code = (
        "import re, numpy as np, manyview as mv\n"
        "rng = np.random.default_rng(0)\n"
        "y = np.arange(25_000) % 4\n"
        "views = [np.abs(rng.uniform(0, 5, (4, m))[y] + rng.standard_normal((25_000, m)))"
        " for m in (8, 5)]\n"
        "model = mv.WMNMF(4, random_state=0, affinity='heat').fit(views)\n"
        "print(mv.metrics.scores(y, model.labels_)['acc'],"
        " int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) / 2**20)"
    )
    accuracy, gibibytes = map(float, run_python(code).split())
    assert gibibytes < 1
    assert accuracy > 0.5


# --- real data, and new samples -----------------------------------------------------------


def test_digits_and_the_order_of_the_ablations(digits):
    """A loose bound on few seeds; `make table` prints the means of 20."""

    def accuracy(make):
        runs = [make(10, random_state=s).fit_predict(digits.views) for s in range(2)]
        return np.mean([mv.metrics.scores(digits.labels, labels)["acc"] for labels in runs])

    full, weights_fixed, no_graph = map(accuracy, (WMNMF, WMNMF.nmf_w1, WMNMF.nmf_w2))
    assert full > 0.9
    assert full > no_graph and weights_fixed > no_graph


@pytest.mark.filterwarnings("ignore:only . of 4 clusters have members")  # by argmax
@pytest.mark.parametrize("labels", ["spectral", "kmeans", "argmax"])
@pytest.mark.parametrize(
    ("scale", "solver", "regularizer"),
    [
        ("sum", "multiplicative", "graph"),
        ("minmax", "multiplicative", "sparse"),
        ("sum", "hals", None),
        ("minmax", "hals", "orthogonal"),
    ],
)
def test_fitted_rows_are_placed_where_the_fit_has_them(scale, regularizer, solver, labels):
    data = mv.datasets.load_nutrimouse() if scale == "minmax" else unclear_clusters()
    settings = {"scale": scale, "regularizer": regularizer, "solver": solver}
    model = WMNMF(4, **settings, beta=0.001, assign_labels=labels, random_state=0).fit(data.views)
    np.testing.assert_allclose(model.transform(data.views), model.consensus_, rtol=1e-6, atol=1e-12)
    np.testing.assert_array_equal(model.predict(data.views), model.labels_)
    some = {name: np.asarray(X)[5:9] for name, X in data.views.items()}
    np.testing.assert_array_equal(model.predict(some), model.labels_[5:9])


def unclear_clusters():
    """Solving for the coefficients of these rows with U kept moves all of them into one cluster."""
    return mv.datasets.make_synthetic(200, n_clusters=4, noisy_views=(), random_state=0)


@pytest.mark.parametrize("regularizer", [None, "sparse", "graph"])
def test_a_batch_is_labeled_as_it_would_be_predicted(regularizer):
    data = unclear_clusters()
    halves = [{n: np.asarray(X)[i::2] for n, X in data.views.items()} for i in (0, 1)]
    model = WMNMF(4, regularizer=regularizer, random_state=0).partial_fit(halves[0])
    predicted = model.predict(halves[1])
    np.testing.assert_array_equal(model.partial_fit(halves[1]).labels_, predicted)


def test_a_consensus_of_zeros_predicts_nothing():
    data = unclear_clusters()
    with pytest.warns(CollapseWarning, match="driven the consensus to zero"):
        model = WMNMF(4, regularizer="sparse", solver="hals", beta=10, random_state=0).fit(
            data.views
        )
    with pytest.warns(CollapseWarning, match="clusters of new samples mean nothing; fit again"):
        model.predict(data.views)


@pytest.mark.parametrize("unit", [1e-200, 1e-170, 1e160, 1e200])
def test_units_at_the_edge_of_floating_point(unit):
    views, _ = blobs(noise=0.1)
    one = WMNMF(3, random_state=0, scale=None).fit([X * unit for X in views])
    assert (one.predict([X * unit for X in views]) == one.labels_).mean() >= 0.97
    two = WMNMF(3, random_state=0, dtype=np.float32).fit([X * unit for X in views])
    assert adjusted_rand_score(two.labels_, np.arange(60) % 3) > 0.9


def test_a_fitted_model_is_a_start():
    views, _ = blobs()
    views = [1024.0 * X for X in views]
    one = WMNMF(3, random_state=0, scale=None).fit(views)
    init = {"components": one.components_, "coefficients": one.coefficients_}
    two = WMNMF(3, random_state=0, scale=None, init=init, max_iter=1, inner_iter=1).fit(views)
    before = one.history_["reconstruction"][-1]
    assert two.history_["reconstruction"][1] < 2 * before * 9  # weights restart at 1/3


def test_unseen_digits_score_like_the_fit(digits):
    order = np.random.default_rng(0).permutation(2000)
    seen, unseen = order[:1500], order[1500:]
    model = WMNMF(10, random_state=0).fit({k: X[seen] for k, X in digits.views.items()})
    fitted = mv.metrics.scores(digits.labels[seen], model.labels_)["acc"]
    new = model.predict({k: X[unseen] for k, X in digits.views.items()})
    assert mv.metrics.scores(digits.labels[unseen], new)["acc"] >= fitted - 0.02


def test_unseen_rows_are_placed_one_by_one():
    views, _ = blobs()
    model = WMNMF(3, random_state=0).fit(views)
    new = [X[:9] * 1.1 for X in views]
    together = model.transform(new)
    alone = np.vstack([model.transform([X[[i]] for X in new]) for i in range(9)])
    np.testing.assert_allclose(alone, together, rtol=1e-9)
    assert model.score(views) > model.score([X[::-1] * 2 for X in views])


# --- views that tell nothing, and values that tell too much ------------------------------------


@pytest.mark.parametrize("kind", ["constant", "rounding", "sparse", "direction"])
def test_a_constant_view_changes_nothing_but_its_weight(kind, rng):
    views, _ = blobs()
    scale = "sqrt" if kind == "direction" else "sum"
    flat = np.full((60, 3), 7.3)
    if kind == "rounding":
        flat *= 1 + np.finfo(float).eps * rng.random((60, 3))
    elif kind == "sparse":
        flat = sp.csr_array(flat)
    elif kind == "direction":
        flat *= 1 + rng.random((60, 1))
    with pytest.warns(UserWarning, match="view 'view1' is constant.*gets weight 0"):
        model = WMNMF(3, scale=scale, random_state=0).fit([views[0], flat, *views[1:]])
    plain = WMNMF(3, scale=scale, random_state=0).fit(views)
    assert model.view_weights_[1] == 0 and not model.components_[1].any()
    np.testing.assert_array_equal(np.delete(model.view_weights_, 1), plain.view_weights_)
    np.testing.assert_array_equal(model.consensus_, plain.consensus_)
    found = model.predict([views[0], flat, *views[1:]])
    np.testing.assert_array_equal(found, plain.predict(views))


def test_gross_outliers_among_zeros_are_told_and_counts_are_not(rng):
    zeros = np.where(rng.random((150, 20)) < 0.8, 0, rng.gamma(2, 1, (150, 20)))
    counts = rng.negative_binomial(0.3, 0.05, (150, 20))
    WMNMF(3, random_state=0).fit([zeros, counts])  # a warning would be an error
    zeros[rng.random(zeros.shape) < 0.01] = 1e6
    with pytest.warns(UserWarning, match="times the spread of their feature"):
        WMNMF(3, random_state=0).fit([zeros, counts])


def test_gross_outliers_are_told_with_their_number(rng):
    views, y = blobs(n=300, features=(20, 15, 10))
    wrong = rng.random(views[1].shape) < 0.01
    dirty = [views[0], np.where(wrong, 1e6, views[1]), views[2]]
    with pytest.warns(
        UserWarning, match=rf"'view1'.* are {wrong.sum()} such values .* RobustWMNMF"
    ):
        WMNMF(3, random_state=0).fit(dirty)
    # Both remedies help.
    mended = [views[0], np.where(wrong, np.nan, views[1]), views[2]]
    for model, given in (
        (WMNMF(3, missing="allow"), mended),
        (mv.RobustWMNMF(3, scale="quantile"), dirty),
    ):
        labels = model.set_params(random_state=0).fit(given).labels_
        assert adjusted_rand_score(y, labels) > 0.95


# --- unobserved entries ------------------------------------------------------------------------


def test_a_mask_without_holes_changes_nothing():
    from manyview.engines.numpy.masked import MaskedView
    from manyview.initialize import starting_factors
    from manyview.maths.solvers import Multiplicative
    from manyview.regularizers import Graph
    from manyview.wmnmf import Loop

    views, _ = blobs()
    terms, solver = [Graph().prepare(X) for X in views], Multiplicative()
    results = []
    for Xs in (views, [MaskedView(X) for X in views]):
        start = starting_factors(Xs, "gnmf", 3, terms, solver, 5, np.random.default_rng(0))
        results.append(Loop(Xs, terms, solver, 5, 0.01, 2, 10).run(start))
    plain, masked = results
    np.testing.assert_allclose(masked.factors.consensus, plain.factors.consensus, rtol=1e-8)
    np.testing.assert_allclose(masked.factors.w, plain.factors.w, rtol=1e-6)


@pytest.mark.parametrize("regularizer", ["graph", "sparse", None])
def test_unobserved_entries_do_not_count(regularizer):
    views, y = blobs(n=90, features=(20, 12, 15), noise=0.2)
    rng = np.random.default_rng(0)
    for X in views:
        X[rng.random(X.shape) < 0.15] = np.nan
    views[1][4] = np.nan
    model = WMNMF(3, missing="allow", random_state=0, regularizer=regularizer, rescale=False)
    model.fit(views)
    values = model.history_["objective"]
    assert np.diff(values).max() <= 1e-10 * values[0]
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert model.sample_weights_[4, 1] == 0
    np.testing.assert_allclose(model.sample_weights_.sum(axis=1), 1)
    assert (model.predict(views) == model.labels_).mean() > 0.9
    # What stands behind a hole cannot matter: reconstruct it, and it resembles the truth.
    truth, _ = blobs(n=90, features=(20, 12, 15), noise=0.2)
    scale = truth[0].sum() / truth[0].shape[0]
    guess = model.coefficients_[0] @ model.components_[0] * scale
    hidden = np.isnan(views[0])
    assert np.corrcoef(guess[hidden], truth[0][hidden])[0, 1] > 0.8


def test_masks_meet_sentences():
    views, _ = blobs()
    views[2][3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN or infinite"):
        WMNMF(3).fit(views)
    with pytest.raises(ValueError, match=r"'view2' has unobserved .*use solver='multiplicative'"):
        WMNMF(3, missing="allow", solver="hals").fit(views)
    with pytest.raises(ValueError, match="scale='sqrt' needs whole rows"):
        WMNMF(3, missing="allow", scale="sqrt").fit(views)
    with pytest.raises(ValueError, match="needs fully observed rows"):
        WMNMF(3, missing="allow", affinity="cosine").fit(views)
    for scale in ("sum", "minmax", "standard", None):
        assert np.isfinite(WMNMF(3, missing="allow", scale=scale).fit(views).consensus_).all()
