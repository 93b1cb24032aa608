"""What users say view by view: weights that are given, and rows of zeros that are findings."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from conftest import blobs
from manyview import WMNMF, RobustWMNMF, load, select_n_clusters
from manyview import fuse as stages
from manyview.base import fixed_view_weights
from manyview.engines.numpy.engine import HOST
from manyview.views.views import as_views

NAMES = ("rna", "protein", "cnv")
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def some_views(n=60, seed=0):
    return dict(zip(NAMES, blobs(n=n, seed=seed)[0], strict=True))


def fitted(views, n_clusters=3, **params):
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return RobustWMNMF(n_clusters, random_state=0, max_iter=15, **params).fit(views)


# --- weights -----------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=12).filter(any))
def test_given_weights_add_up_to_one_in_their_proportions(asked):
    names = [f"v{s}" for s in range(len(asked))]
    found = fixed_view_weights(asked, names)
    assert found.sum() == pytest.approx(1) and (found >= 0).all()
    top = int(np.argmax(asked))
    np.testing.assert_allclose(
        found / found[top], np.array(asked) / asked[top], rtol=1e-9, atol=1e-300
    )
    np.testing.assert_array_equal(
        found, fixed_view_weights(dict(zip(names, asked, strict=True)), names)
    )


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ([1, 2], r"view_weights has 2 numbers for 3 views \['rna', 'protein', 'cnv'\]; give one"),
        ([[1, 2, 3]], "has 3 numbers for 3 views|one number for every view"),
        ([1, -2, 3], "view_weights of view 'protein' must be a finite number of 0 or more, got -2"),
        (
            [1, 2, np.nan],
            "view_weights of view 'cnv' must be a finite number of 0 or more, got nan",
        ),
        ([1, np.inf, 1], "view 'protein' must be a finite number"),
        ([1, "2", 1], "view 'protein' must be a finite number of 0 or more, got '2'"),
        ([1, True, 1], "view 'protein' must be a finite number of 0 or more, got True"),
        ([1, None, 1], "view 'protein' must be a finite number of 0 or more, got None"),
        ([0, 0, 0], "view_weights are all zero; give at least one view"),
        ({"rna": 1, "meth": 2}, "view_weights names the view 'meth', and the views are"),
        (
            {"rna": 1, "cnv": 2},
            "view_weights has no number for the view 'protein'; .* 0 to ignore a view",
        ),
        ("even", "view_weights.*'learned'"),
        (None, "view_weights"),
    ],
)
def test_weights_that_are_none_get_a_sentence(asked, sentence):
    model = RobustWMNMF(3, view_weights=asked, random_state=0)
    with pytest.raises(ValueError, match=sentence):
        model.fit(some_views())
    assert not hasattr(model, "labels_")


def test_learned_weights_stay_visible_whatever_is_given():
    views = some_views()
    learned = fitted(views)
    np.testing.assert_array_equal(learned.learned_view_weights_, learned.view_weights_)
    for asked, used in (
        ("equal", [1 / 3] * 3),
        ([2, 1, 1], [0.5, 0.25, 0.25]),
        (np.array([0.0, 3.0, 1.0]), [0, 0.75, 0.25]),
        ({"cnv": 5, "rna": 0, "protein": 0}, [0, 0, 1]),
    ):
        model = fitted(views, view_weights=asked)
        np.testing.assert_allclose(model.view_weights_, used, atol=1e-15)
        np.testing.assert_array_equal(model.learned_view_weights_, learned.view_weights_)
        described = model.sample_weights_ * model.view_weights_
        np.testing.assert_allclose(
            model.reliance_, described / described.sum(axis=1, keepdims=True), atol=1e-12
        )


@pytest.mark.parametrize("case", ["complete", "missing", "copies", "auto"])
def test_a_view_of_weight_zero_takes_no_part_in_the_labels(case):
    views = {name: X.copy() for name, X in some_views(90).items()}
    if case == "missing":  # some samples are in the third view alone
        views["rna"][:8] = np.nan
        views["protein"][4:12] = np.nan
    if case == "copies":  # only the third view tells the halves apart
        views["rna"][45:], views["protein"][45:] = views["rna"][:45], views["protein"][:45]
    n_clusters = "auto" if case == "auto" else 3
    model = fitted(views, n_clusters, view_weights={"rna": 1, "protein": 1, "cnv": 0})
    without = fitted({name: views[name] for name in NAMES[:2]}, n_clusters, view_weights="equal")
    np.testing.assert_array_equal(model.labels_, without.labels_)
    np.testing.assert_allclose(model.consensus_, without.consensus_, atol=1e-12)
    np.testing.assert_allclose(model.confidence_, without.confidence_, atol=1e-12)
    assert model.components_[2].any()  # its parts are told all the same
    if case == "missing":
        np.testing.assert_array_equal(np.flatnonzero(model.labels_ < 0), np.arange(4, 8))
        assert not model.sample_weights_[4:8].any() and not model.reliance_[4:8].any()


def test_weights_are_of_the_views_that_hold_a_value():
    views = some_views()
    views["cnv"] = np.full((60, 4), np.nan)
    model = fitted(views, view_weights=[1, 3, 4])
    np.testing.assert_allclose(model.view_weights_, [0.25, 0.75, 0])
    np.testing.assert_allclose(fitted(views, view_weights="equal").view_weights_, [0.5, 0.5, 0])
    with pytest.raises(ValueError, match="all weight to views without values"):
        fitted(views, view_weights=[0, 0, 1])


def test_models_with_given_weights_are_cloned_saved_and_placed_alike(tmp_path):
    views, asked = some_views(), {"rna": 3, "protein": 1, "cnv": 0}
    model = fitted(views, view_weights=asked)
    assert clone(model).get_params()["view_weights"] == asked
    again = load(model.save(tmp_path / "m.npz"))
    for name in ("view_weights_", "learned_view_weights_", "labels_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert again.view_weights == asked
    part = {name: X[:20] + 0.01 for name, X in views.items()}
    np.testing.assert_array_equal(again.predict(part), model.predict(part))
    other = dict(part, cnv=part["cnv"][::-1])  # a view of weight 0 places nobody
    np.testing.assert_allclose(model.transform(other), model.transform(part), atol=1e-12)
    alone = {"cnv": part["cnv"]}
    np.testing.assert_array_equal(model.predict(alone), np.full(20, -1))


def test_the_number_of_clusters_is_chosen_with_the_weights_given():
    rng = np.random.default_rng(0)
    two, three = np.arange(90) % 2, np.arange(90) // 30
    views = {
        "halves": rng.normal(rng.standard_normal((2, 30))[two], 0.7),
        "thirds": rng.normal(rng.standard_normal((3, 30))[three], 0.7),
    }
    for asked, expected in (([1, 0], 2), ([0, 1], 3)):
        model = RobustWMNMF(view_weights=asked)
        found = select_n_clusters(views, range(2, 6), model=model, random_state=0)
        assert found.n_clusters == expected


# --- engines -----------------------------------------------------------------------------------


def counts(n=90, seed=0):
    """A table of few findings with rows of none, and features of any sign."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    found = (rng.random((n, 40)) < np.where(rng.random((3, 40)) < 0.2, 0.5, 0.01)[y]).astype(float)
    found[y == 0] *= rng.random((n, 1))[y == 0] < 0.3  # in the first group mostly nothing
    return {"mut": found, "signed": np.eye(3)[y] * 3 - 1 + rng.normal(size=(n, 3))}, y


@pytest.mark.parametrize(
    "how", [{"view_weights": {"mut": 2, "signed": 1, "half": 0}}, {"zero_rows": "observed"}]
)
def test_every_engine_heeds_what_was_given(place, how, monkeypatch):
    views, _ = counts()
    views["half"] = np.zeros((90, 4))  # rows of zeros in a signed view
    views["half"][1::2] = np.random.default_rng(1).normal(size=(45, 4))
    expected = fitted(views, **how)
    monkeypatch.setattr("manyview.robust.LOAD_LIMIT", 1)  # dask arrays stay with the workers
    there = {name: place.put(X) for name, X in views.items()}
    model = fitted(there, **how, **place.params)
    np.testing.assert_array_equal(model.sample_weights_ > 0, expected.sample_weights_ > 0)
    np.testing.assert_allclose(model.view_weights_, expected.view_weights_, atol=2e-3)
    np.testing.assert_allclose(
        model.learned_view_weights_, expected.learned_view_weights_, atol=2e-3
    )
    assert adjusted_rand_score(expected.labels_, model.labels_) > 0.9


# --- rows of zeros -----------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("scale", ["auto", "quantile", None])
def test_rows_of_zeros_that_count_are_rows_like_others(sparse, scale):
    views, _ = counts()
    X = sp.csr_array(views["mut"]) if sparse else views["mut"]
    empty = ~views["mut"].any(axis=1)
    assert 5 < empty.sum() < 45
    read = as_views({"mut": X})
    present = stages.quiet_presence(read, "observed")
    assert present[0].all()
    scalings = stages.fit_scalings(read, present, scale)
    view = stages.measure(read, present, scalings, np.dtype(float), HOST)[0]
    i, j = np.flatnonzero(empty)[:5], np.flatnonzero(~empty)[:5]
    assert view.comparable.all()
    assert (view.pairs(i[:4], i[1:]) == 0).all()
    found = view.between(np.arange(view.n_samples))
    assert (found[np.ix_(i, j)] > 0.1).all() and np.isfinite(found).all()
    np.testing.assert_allclose(found[i, j], view.pairs(i, j), rtol=1e-6)
    assert found.mean() == pytest.approx(1, abs=0.15)


def test_no_finding_is_a_finding_if_zeros_are_observed():
    """Only the rows without an entry set the first group apart."""
    views, y = counts()
    empty = ~views["mut"].any(axis=1)
    with pytest.warns(UserWarning, match=r"zero throughout .* zero_rows=\{'mut': 'observed'\}"):
        RobustWMNMF(3, random_state=0, zero_rows="missing").fit(views)
    with warnings.catch_warnings(action="error"):
        model = RobustWMNMF(3, random_state=0, zero_rows={"mut": "observed"}).fit(views)
    assert not fitted(views, zero_rows="missing").sample_weights_[empty, 0].any()
    assert (model.sample_weights_[empty & (y == 0), 0] > 0).mean() > 0.9
    assert model.impute("mut")[empty].sum() == 0
    alone = RobustWMNMF(2, random_state=0, zero_rows="observed").fit([views["mut"]])
    assert (alone.labels_[empty] == alone.labels_[empty][0]).all()


def test_unseen_rows_of_zeros_are_placed_as_the_fitted_ones(tmp_path):
    views, _ = counts()
    empty = np.flatnonzero(~views["mut"].any(axis=1))
    model = fitted(views, zero_rows={"mut": "observed"})
    again = load(model.save(tmp_path / "m.npz"))
    new = {"mut": np.zeros((1, 40))}
    assert model.predict(new)[0] == again.predict(new)[0] >= 0
    assert again.predict(new)[0] == np.bincount(model.labels_[empty]).argmax()
    assert fitted(views, zero_rows="missing").predict(new)[0] == -1


def test_absent_ids_of_a_sparse_view_are_no_findings():
    pd, anndata = pytest.importorskip("pandas"), pytest.importorskip("anndata")
    views, _ = counts()
    ids = [f"p{i}" for i in range(90)]
    mut, names = sp.csr_matrix(views["mut"][:80]), pd.DataFrame(index=ids[:80])
    tables = {
        "mut": anndata.AnnData(mut, names),
        "signed": pd.DataFrame(views["signed"], index=ids),
    }
    assert (fitted(tables).sample_weights_[80:, 0] == 0).all()
    with pytest.raises(ValueError, match="sparse and lacks 10 of the 90 samples"):
        fitted(tables, zero_rows={"mut": "observed"})
    dense = dict(tables, mut=pd.DataFrame(mut.toarray(), index=ids[:80]))
    assert (fitted(dense, zero_rows="observed").sample_weights_[80:, 0] == 0).all()


# --- one vocabulary for both estimators ----------------------------------------------------------


BOTH = pytest.mark.parametrize(
    ("method", "word"), [(RobustWMNMF, "quantile"), (WMNMF, "minmax")], ids=["robust", "paper"]
)


@BOTH
def test_a_scale_by_view_is_that_of_each_view(method, word, tmp_path):
    views = some_views()
    quick = {"random_state": 0, "max_iter": 2}
    for whole in (word, None):
        one = method(3, scale=whole, **quick).fit(views)
        other = method(3, scale=dict.fromkeys(NAMES, whole), **quick).fit(views)
        np.testing.assert_allclose(other.consensus_, one.consensus_, rtol=1e-9)
    np.testing.assert_array_equal(
        method(3, scale="none", **quick).fit(views).consensus_, one.consensus_
    )
    views["cnv"] = views["cnv"] - 5  # only this view needs a scale that takes negative values
    mixed = method(3, scale={"cnv": word}, **quick).fit(views)
    again = load(mixed.save(tmp_path / "m.npz"))
    assert again.scale == {"cnv": word}
    np.testing.assert_array_equal(again.predict(views), mixed.labels_)


@BOTH
@pytest.mark.parametrize("parameter", ["scale", "missing", "zero_rows"])
def test_settings_of_views_that_do_not_exist_get_a_sentence(method, word, parameter):
    if parameter not in method().get_params():
        return
    for asked, sentence in (
        ({"meth": "error"}, f"{parameter} names the view 'meth', and the views are"),
        ({"rna": "loud"}, f"{parameter} of view 'rna' must be '.*' or .*, got 'loud'"),
        ("loud", parameter),
    ):
        with pytest.raises(ValueError, match=sentence):
            method(3, **{parameter: asked}).fit(some_views())


@BOTH
def test_missing_by_view_allows_it_there_alone(method, word):
    pd = pytest.importorskip("pandas")
    views = {name: pd.DataFrame(X) for name, X in some_views().items()}
    lacking = dict(views, cnv=views["cnv"].iloc[5:])
    allowed = method(3, missing=dict.fromkeys(NAMES, "error") | {"cnv": "allow"}, random_state=0)
    everywhere = method(3, missing="allow", random_state=0)
    np.testing.assert_array_equal(allowed.fit_predict(lacking), everywhere.fit_predict(lacking))
    part = {name: X.iloc[:9] for name, X in views.items()}
    assert (allowed.predict({name: part[name] for name in NAMES[:2]}) >= 0).all()
    with pytest.raises(ValueError, match=r"missing here: \['rna'\]"):
        allowed.predict({name: part[name] for name in NAMES[1:]})
    with pytest.raises(
        ValueError, match=r"'rna' lacks 5 of the 60 samples.*missing=\{'rna': 'allow'\}"
    ):
        allowed.fit(dict(views, rna=views["rna"].iloc[5:]))
    views["rna"].iloc[3, 1] = np.nan
    with pytest.raises(ValueError, match="view 'rna' has 1 NaN"):
        allowed.fit(views)
