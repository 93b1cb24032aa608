"""RobustWMNMF: its promises, missing data, new samples."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.utils.estimator_checks import check_estimator

import manyview as mv
from conftest import blobs
from manyview import WMNMF, RobustWMNMF, base
from manyview.engines.numpy.distances import Geometry
from manyview.engines.numpy.masked import MaskedView
from manyview.engines.numpy.scaling import RobustScaling
from manyview.labels import matched, resamples
from manyview.maths import equations as eq
from manyview.robust import RobustView
from manyview.selection import NoClustersWarning


@pytest.fixture(scope="module")
def digits():
    """Every second one."""
    data = mv.datasets.load_handwritten(views="paper")
    some = {name: X[::2] for name, X in data.views.items()}
    return replace(data, views=some, labels=data.labels[::2], sample_names=None)


@pytest.fixture(scope="module")
def fitted(digits):
    return RobustWMNMF(10, random_state=0).fit(digits.views)


# --- distances ---------------------------------------------------------------------------------


def test_unobserved_entries_leave_distances_unbiased():
    rng = np.random.default_rng(0)
    Z = rng.random((200, 40))
    full = Geometry(Z, np.ones(200, bool)).between(np.arange(200))
    holes = np.where(rng.random(Z.shape) < 0.3, np.nan, Z)
    part = Geometry(holes, np.ones(200, bool)).between(np.arange(200))
    off = ~np.eye(200, dtype=bool)
    assert part[off].mean() == pytest.approx(full[off].mean(), rel=0.01)
    assert np.corrcoef(part[off], full[off])[0, 1] > 0.6


# --- promises ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks_without_exception():
    why = "asks who has predict_proba, classifier or not, how many classes its tags name"
    names = ("check_estimator_sparse_array", "check_estimator_sparse_matrix")
    expected = dict.fromkeys(names, why)
    results = check_estimator(
        RobustWMNMF(3), on_fail=None, on_skip=None, expected_failed_checks=expected
    )
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("settings", [{}, {"cluster_weight": 0.1}, {"consensus_weight": 30.0}])
def test_the_objective_never_rises(seed, settings):
    rng = np.random.default_rng(seed)
    views, _ = blobs(seed=seed, noise=2.0)
    if seed % 2:
        views[0][rng.random(views[0].shape) < 0.15] = np.nan
        views[1][:5] = np.nan
    model = RobustWMNMF(3, random_state=seed, tol=0.0, max_iter=40, **settings)
    with warnings.catch_warnings(action="ignore"):
        model.fit(views)
    J = model.history_["objective"]
    assert np.diff(J).max() <= 1e-10 * J[0]
    np.testing.assert_allclose(model.confidence_.sum(axis=1), 1)
    assert model.view_weights_.sum() == pytest.approx(1)
    assert model.sample_weights_.min() >= 0 and model.sample_weights_.max() <= 1
    for U in model.components_:
        assert (U >= 0).all()
        np.testing.assert_allclose(U.sum(axis=1), 1)


def test_a_constant_view_gets_no_weight():
    views, y = blobs(noise=0.4)
    model = RobustWMNMF(3, random_state=0).fit([*views, np.full((60, 4), 3.0)])
    assert model.view_weights_[3] == pytest.approx(0, abs=1e-12)
    assert adjusted_rand_score(y, model.labels_) > 0.9


def test_one_view_and_two_views():
    views, y = blobs(noise=0.4)
    one = RobustWMNMF(3, random_state=0).fit(views[0])
    np.testing.assert_array_equal(one.view_weights_, [1])
    np.testing.assert_array_equal(one.sample_weights_, np.ones((60, 1)))
    assert adjusted_rand_score(y, one.labels_) > 0.9
    two = RobustWMNMF(3, random_state=0).fit(views[:2])
    assert adjusted_rand_score(y, two.labels_) > 0.9


def test_sparse_equals_dense():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 4
    topics = rng.dirichlet(np.full(60, 0.1), 4)
    counts = [rng.poisson(12 * topics[y]).astype(float) for _ in range(3)]
    assert (counts[0] == 0).mean() > 0.5
    dense = RobustWMNMF(4, random_state=0).fit(counts)
    sparse = RobustWMNMF(4, random_state=0).fit([sp.csr_matrix(X) for X in counts])
    np.testing.assert_allclose(sparse.view_weights_, dense.view_weights_, rtol=1e-8)
    np.testing.assert_allclose(sparse.consensus_, dense.consensus_, atol=1e-7)
    assert adjusted_rand_score(y, sparse.labels_) > 0.9
    np.testing.assert_array_equal(
        sparse.predict([sp.csr_matrix(X) for X in counts]), dense.predict(counts)
    )


def test_a_noise_view_gets_the_least_weight(digits):
    rng = np.random.default_rng(0)
    views = dict(digits.views) | {"noise": rng.permuted(digits.views["pix"], axis=0)}
    model = RobustWMNMF(10, random_state=0).fit(views)
    assert model.view_weights_.argmin() == 4 and model.view_weights_[4] < 0.05
    assert mv.metrics.accuracy(digits.labels, model.labels_) > 0.94


def test_corrupted_rows_lose_their_weight(digits):
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    rows = rng.permutation(1000)[:250]
    views = {name: X.copy() for name, X in digits.views.items()}
    views["pix"][rows] = rng.permuted(views["pix"], axis=0)[rows]
    model = RobustWMNMF(10, random_state=0).fit(views)
    corrupted = np.isin(np.arange(1000), rows)
    assert roc_auc_score(corrupted, -model.sample_weights_[:, 1]) > 0.9


def test_digits(digits, fitted):
    assert mv.metrics.accuracy(digits.labels, fitted.labels_) > 0.92
    assert (fitted.predict(digits.views) == fitted.labels_).mean() >= 0.97


# --- missing data ------------------------------------------------------------------------------


def test_unobserved_entries():
    views, y = blobs(n=120, features=(20, 15, 10), noise=0.5)
    rng = np.random.default_rng(0)
    for X in views:
        X[rng.random(X.shape) < 0.2] = np.nan
    model = RobustWMNMF(3, random_state=0).fit(views)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    assert (model.predict(views) == model.labels_).mean() > 0.97


def test_rows_mostly_unobserved_count_as_missing():
    views, _ = blobs()
    views[0][4, 1:] = np.nan
    with pytest.warns(UserWarning, match="1 samples have over 50% of their features unobserved"):
        model = RobustWMNMF(3, random_state=0).fit(views)
    assert model.sample_weights_[4, 0] == 0


def test_masked_steps_equal_plain_steps_when_all_is_observed():
    rng = np.random.default_rng(0)
    X = rng.random((30, 8))
    X /= X.sum(axis=1, keepdims=True)
    U, V = eq.rescale(rng.random((8, 3)), rng.random((30, 3)))
    V_star, w = rng.random((30, 3)), rng.random(30)
    plain, masked = RobustView(X, np.ones(30, bool)), RobustView(MaskedView(X), np.ones(30, bool))
    (*steps, error), (*others, expected) = (
        view.step(U, V, V_star, w, 0.7) for view in (masked, plain)
    )
    for one, other in zip(steps, others, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert error == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(masked.residuals(U, V), plain.residuals(U, V), rtol=1e-9)


def test_weighted_simplex_projection_is_optimal():
    rng = np.random.default_rng(0)
    for _ in range(50):
        r, g = rng.standard_normal(7), rng.random(7) + 0.01
        u = eq.weighted_simplex(r, g)
        assert u.sum() == pytest.approx(1) and (u >= 0).all()
        gradient = g * u - r
        level = gradient[u > 0].mean()
        np.testing.assert_allclose(gradient[u > 0], level, atol=1e-9)
        assert (gradient[u == 0] >= level - 1e-9).all()


# --- new samples --------------------------------------------------------------------------


def test_unseen_digits_also_with_a_view_missing(digits):
    order = np.random.default_rng(0).permutation(1000)
    seen, unseen = order[:750], order[750:]
    model = RobustWMNMF(10, random_state=0).fit({k: X[seen] for k, X in digits.views.items()})
    new = {k: X[unseen] for k, X in digits.views.items()}
    assert mv.metrics.accuracy(digits.labels[unseen], model.predict(new)) > 0.92
    for name in new:
        lacking = new | {name: np.full_like(new[name], np.nan)}
        assert mv.metrics.accuracy(digits.labels[unseen], model.predict(lacking)) >= 0.85


def test_new_rows_of_noise_lose_their_weight_in_the_view_that_has_them(digits):
    order = np.random.default_rng(0).permutation(1000)
    views = {name: digits.views[name][order] for name in ("pix", "zer")}
    model = RobustWMNMF(10, random_state=0).fit({name: X[:600] for name, X in views.items()})
    bad = np.arange(400) < 60
    for s, name in enumerate(views):
        new = {other: X[600:].astype(float) for other, X in views.items()}
        new[name][bad] = np.random.default_rng(1).permuted(new[name], axis=0)[bad]
        w = mv.outcomes.predict_cohort(model, new).model.sample_weights_
        assert roc_auc_score(bad, w[:, 1 - s] - w[:, s]) > 0.98
        assert np.median(w[bad, 1 - s]) > np.median(w[bad, s]) + 0.3


def test_imputation_is_closer_than_the_mean(digits):
    rng = np.random.default_rng(0)
    views = {name: X.astype(float).copy() for name, X in digits.views.items()}
    rows = rng.permutation(1000)[:100]
    views["pix"][rows] = np.nan
    holes = rng.random(views["fac"].shape) < 0.05
    views["fac"][holes] = np.nan
    model = RobustWMNMF(10, random_state=0).fit(views)
    for name, absent in (("pix", np.isnan(views["pix"])), ("fac", holes)):
        filled = model.impute(name)
        truth = digits.views[name]
        np.testing.assert_allclose(filled[~absent], truth[~absent])
        mean = np.broadcast_to(np.nanmean(views[name], axis=0), truth.shape)
        error = ((filled - truth)[absent] ** 2).mean()
        assert error < 0.75 * ((mean - truth)[absent] ** 2).mean()
    with pytest.raises(ValueError, match="view must be one of"):
        model.impute("rna")


def test_imputing_counts():
    rng = np.random.default_rng(0)
    y = np.arange(80) % 4
    topics = rng.dirichlet(np.full(200, 0.02), 4)
    counts = [rng.poisson(30 * topics[y]).astype(float) for _ in range(3)]
    truth = counts[0].copy()
    counts[0][:6] = np.nan
    model = RobustWMNMF(4, random_state=0).fit(counts)
    filled = model.impute(0)
    assert filled[:6].sum(axis=1).mean() == pytest.approx(truth.sum(axis=1).mean(), rel=0.5)
    assert np.corrcoef(filled[:6].ravel(), truth[:6].ravel())[0, 1] > 0.8


# --- near-duplicate views ----------------------------------------------------------------------


def test_near_duplicates_vote_as_one(digits, fitted):
    rng = np.random.default_rng(0)
    views = list(digits.views.values())
    nearly = views[0] * (1 + 0.01 * rng.standard_normal(views[0].shape))
    with pytest.warns(UserWarning, match=r"\['view0', 'view4'\] are near-duplicates"):
        model = RobustWMNMF(10, random_state=0).fit([*views, nearly])
    assert adjusted_rand_score(model.labels_, fitted.labels_) >= 0.95
    assert model.view_weights_[[0, 4]].sum() == pytest.approx(fitted.view_weights_[0], abs=0.02)


def test_views_of_the_same_clusters_with_independent_noise_do_not_repeat_each_other():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4
    views = [rng.normal(scale=2, size=(4, 20))[y] + rng.normal(size=(200, 20)) for _ in range(2)]
    kinds = np.eye(4)[y]
    model = RobustWMNMF(4, scale=None, zero_rows="observed", random_state=0)
    with pytest.warns(UserWarning, match="near-duplicates"):
        redundancy = model.fit([*np.exp(views), kinds, 2 * kinds]).redundancy_
    expected = np.eye(4)
    expected[2:, 2:] = 1  # both only name the kind
    np.testing.assert_allclose(redundancy, expected, atol=0.1)


def test_noise_given_twice_does_not_win_by_agreeing_with_itself(digits, fitted):
    noise = np.random.default_rng(0).permuted(digits.views["pix"], axis=0)
    with pytest.warns(UserWarning, match="near-duplicates"):
        model = RobustWMNMF(10, random_state=0).fit([*digits.views.values(), noise, noise])
    assert model.view_weights_[4:].sum() < 0.05
    clean = mv.metrics.accuracy(digits.labels, fitted.labels_)
    assert mv.metrics.accuracy(digits.labels, model.labels_) > clean - 0.03


def test_the_number_of_clusters_can_be_left_open():
    views, y = blobs(n=150, clusters=4, noise=0.2)
    model = RobustWMNMF("auto", random_state=0).fit(views)
    assert model.n_clusters_ == 4 == model.selection_.n_clusters
    assert adjusted_rand_score(y, model.labels_) == 1
    assert model.transform(views).shape == (150, 4)
    noise = [np.random.default_rng(s).random((80, 5)) for s in range(2)]
    with pytest.warns(NoClustersWarning, match="no number of clusters stands out"):
        assert RobustWMNMF("auto", random_state=0).fit(noise).n_clusters_ == 1


def test_float32_end_to_end(digits, fitted):
    views = {name: X.astype(np.float32) for name, X in digits.views.items()}
    model = RobustWMNMF(10, dtype=np.float32, random_state=0).fit(views)
    assert all(geometry.Z.dtype == np.float32 for geometry in model._geometry)
    assert model.consensus_.dtype == np.float32
    np.testing.assert_allclose(model.view_weights_, fitted.view_weights_, atol=0.02)
    assert adjusted_rand_score(model.labels_, fitted.labels_) > 0.97


# --- few samples, false friends, and how sure ---------------------------------------------


@pytest.mark.parametrize(("n", "k"), [(12, 3), (18, 3), (24, 4), (30, 4)])
def test_few_observations_on_a_line(n, k):
    rng, y = np.random.default_rng(0), np.arange(n) % k
    views = [rng.standard_normal((n, 4)) + 4 * y[:, None] for _ in range(3)]
    with warnings.catch_warnings(action="error"):
        labels = RobustWMNMF(k, random_state=0).fit_predict(views)
    assert adjusted_rand_score(y, labels) == 1


def test_independent_views_of_separated_clusters_are_no_duplicates():
    rng, y = np.random.default_rng(0), np.arange(180) % 3
    views = [rng.normal(0, 8, (3, 5))[y] + rng.standard_normal((180, 5)) for _ in range(2)]
    views.append(rng.standard_normal((180, 5)))
    with warnings.catch_warnings(action="error"):
        model = RobustWMNMF(3, random_state=0).fit(views)
    assert model.view_weights_[2] < 0.01
    assert (model.sample_weights_[:, :2].mean(axis=0) > 0.9).all()


def test_confidence_tells_right_from_wrong(digits, fitted):
    _, counts = np.unique(fitted.labels_, return_counts=True)
    majority = np.array(
        [np.bincount(digits.labels[fitted.labels_ == c]).argmax() for c in range(len(counts))]
    )
    right = majority[fitted.labels_] == digits.labels
    sure = fitted.confidence_[np.arange(1000), fitted.labels_]
    assert roc_auc_score(right, sure) > 0.8
    assert sure[right].mean() > sure[~right].mean() + 0.04


def test_probabilities_are_those_of_the_labels(digits):
    views = {name: X[::2].copy() for name, X in digits.views.items()}
    views["pix"][::3] = np.nan
    for X in views.values():
        X[7] = np.nan
    with warnings.catch_warnings(action="ignore"):
        model = RobustWMNMF(12, dtype=np.float32, random_state=0).fit(views)
    for labels, sure in (
        (model.labels_, model.confidence_),
        (model.predict(views), model.predict_proba(views)),
    ):
        np.testing.assert_allclose(sure.sum(axis=1), 1, rtol=1e-6)
        assert sure.min() >= 0 and (sure[7] == sure[7, 0]).all()
        known = labels >= 0
        np.testing.assert_array_equal(sure.argmax(axis=1)[known], labels[known])


@pytest.mark.filterwarnings("ignore:.*before the objective settled")
def test_confidence_is_the_share_of_refits_with_the_same_cluster():
    n_clusters = 5
    rng, y = np.random.default_rng(0), np.arange(240) % 3
    views = [rng.normal(0, 0.7, (3, d))[y] + rng.standard_normal((240, d)) for d in (8, 12)]
    model = RobustWMNMF(n_clusters, random_state=0).fit(views)
    again, seen = np.zeros(240), np.zeros(240)
    for seed, part in enumerate(resamples(240, 0.8, 12, rng)):
        refit = RobustWMNMF(n_clusters, random_state=seed + 1).fit([X[part] for X in views])
        own = model.labels_[part]
        again[part] += matched(own, refit.labels_, n_clusters)[refit.labels_] == own
        seen[part] += 1
    assert abs(model.confidence_.max(axis=1).mean() - (again / seen).mean()) < 0.04


def test_a_view_without_weight_places_nobody():
    views, _ = blobs(n=90)
    views = {"a": views[0], "b": views[1], "flat": np.ones((90, 2))}
    views["a"][3] = views["b"][3] = np.nan
    with pytest.warns(UserWarning, match="1 samples are missing in every view that has weight"):
        model = RobustWMNMF(3, random_state=0).fit(views)
    assert model.labels_[3] == -1
    absent = {name: np.full((4, views[name].shape[1]), np.nan) for name in ("a", "b")}
    assert (model.predict(absent | {"flat": np.ones((4, 2))}) == -1).all()


def test_auto_reads_and_scales_the_views_once(monkeypatch):
    calls = []
    read, scale = base.as_views, RobustScaling.fit
    monkeypatch.setattr(base, "as_views", lambda *a, **k: calls.append("read") or read(*a, **k))
    monkeypatch.setattr(
        RobustScaling, "fit", staticmethod(lambda *a: calls.append("scaled") or scale(*a))
    )
    views, _ = blobs(45)
    assert RobustWMNMF(random_state=0).fit(views).n_clusters_ == 3
    assert calls == ["read", *["scaled"] * len(views)]


@pytest.mark.filterwarnings("ignore::manyview.selection.NoClustersWarning")
@pytest.mark.filterwarnings("ignore:.*lie far from all others")
def test_auto_asks_for_no_more_clusters_than_there_are_observations(rng):
    """Most rows are nowhere present: the seven that are cannot make fourteen clusters."""
    views = [np.full((40, m), np.nan) for m in (4, 5)]
    for X in views:
        X[:7] = rng.normal(8 * (np.arange(7) % 2)[:, None], 1, (7, X.shape[1]))
    with pytest.warns(UserWarning, match="33 samples"):
        model = RobustWMNMF("auto", random_state=0).fit(views)
    assert 1 <= model.n_clusters_ <= 7 and (model.labels_[7:] == -1).all()


# --- what a failed or odd call leaves and says -------------------------------------------------


@pytest.mark.parametrize("estimator", [WMNMF, RobustWMNMF])
@pytest.mark.parametrize("seed", [0, np.random.default_rng(3), np.random.RandomState(3)])
def test_a_fit_broken_off_leaves_the_model_and_its_generator_as_they_were(estimator, seed):
    views, _ = blobs(n=90)
    others, _ = blobs(n=70, features=(3, 9, 2), seed=5)
    model = estimator(3, random_state=seed).fit(views)
    before, state = vars(model).copy(), repr(_state(seed))
    labels = model.predict(views)

    def stop(info):
        raise KeyboardInterrupt

    model.set_params(callback=stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(others)
    model.set_params(callback=None)
    assert vars(model).keys() == before.keys() and repr(_state(seed)) == state
    np.testing.assert_array_equal(model.predict(views), labels)
    fresh = estimator(3, random_state=0, callback=stop)
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(views)
    assert not hasattr(fresh, "view_names_in_") and not hasattr(fresh, "labels_")


def _state(seed):
    return seed if isinstance(seed, int) else seed.__getstate__()


def test_a_view_may_be_left_out_when_predicting():
    views, _ = blobs(n=120, features=(6, 5, 7))
    named = dict(zip("abc", views, strict=True))
    model = RobustWMNMF(3, random_state=0).fit(named)
    expected = model.predict(named | {"c": np.full_like(views[2], np.nan)})
    np.testing.assert_array_equal(model.predict({"b": views[1], "a": views[0]}), expected)
    with pytest.raises(ValueError, match="unknown: \\['d'\\]"):
        model.predict({"a": views[0], "d": views[1]})
    with pytest.raises(ValueError, match="missing here: \\['c'\\]"):
        WMNMF(3, random_state=0).fit(named).predict({"a": views[0], "b": views[1]})


def test_views_that_tell_nothing_are_told():
    views, _ = blobs(n=60)
    with pytest.warns(UserWarning, match="'view1' has no values"):
        RobustWMNMF(3, random_state=0).fit([views[0], np.full((60, 4), np.nan)])
    with (
        pytest.warns(UserWarning, match="only 1 distinct samples"),
        pytest.warns(UserWarning, match="every view is constant"),
    ):
        RobustWMNMF(3, random_state=0).fit([np.ones((60, 4)), np.full((60, 3), 2.0)])
    model = RobustWMNMF(3, random_state=0).fit(views)
    with pytest.raises(ValueError, match="all are missing"):
        model.score([np.full_like(X, np.nan) for X in views])


def test_duplicates_vote_apart_where_weights_are_not_learned():
    views, _ = blobs(n=90)
    with warnings.catch_warnings(action="error"):
        RobustWMNMF(3, random_state=0, view_weights="equal").fit([views[0], *views])


def test_results_know_no_order_unit_or_repetition():
    rng, y = np.random.default_rng(0), np.arange(150) % 3
    views = [rng.normal(0, 2, (3, m))[y] + rng.standard_normal((150, m)) for m in (8, 12)]
    order, units = rng.permutation(150), [rng.uniform(1, 1000, X.shape[1]) for X in views]
    first = RobustWMNMF(3, random_state=0).fit(views)
    np.testing.assert_allclose(first.cluster_view_weights_.sum(axis=1), 1)
    for given, rows, flip in (
        (views[::-1], slice(None), True),
        ([X * unit + 5 for X, unit in zip(views, units, strict=True)], slice(None), False),
        ([X[order] for X in views], order, False),
        ([np.repeat(X, 2, axis=0) for X in views], np.repeat(np.arange(150), 2), False),
    ):
        found = RobustWMNMF(3, random_state=0).fit(given)
        turn = slice(None, None, -1 if flip else None)
        for name in ("view_weights_", "cluster_structure_"):
            wanted = getattr(first, name)[turn]
            np.testing.assert_allclose(getattr(found, name), wanted, atol=1e-8, err_msg=name)
        np.testing.assert_allclose(
            found.sample_agreement_, first.sample_agreement_[rows], atol=1e-9
        )
        np.testing.assert_allclose(
            found.sample_weights_, first.sample_weights_[rows][:, turn], atol=1e-8
        )
        assert adjusted_rand_score(first.labels_[rows], found.labels_) == 1
