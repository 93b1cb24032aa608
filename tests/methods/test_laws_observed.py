"""Laws: what nobody observed changes nothing; shift, scale and precision change nothing; answers are
those of the fit; identical samples belong together."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

import manyview as mv
import manyview.wmnmf
from conftest import blobs
from manyview.base import observed_columns
from manyview.engines.numpy.masked import (
    MaskedView,
    expected_gap,
    expected_residuals,
    mean_error,
    reaches,
)
from manyview.labels import row_kinds
from manyview.maths import equations as eq
from manyview.views.views import as_views

MODELS = [
    pytest.param(lambda k=3, **kw: mv.WMNMF(k, missing="allow", random_state=0, **kw), id="WMNMF"),
    pytest.param(lambda k=3, **kw: mv.RobustWMNMF(k, random_state=0, **kw), id="RobustWMNMF"),
]
SHIFTABLE = [
    pytest.param(lambda **kw: mv.WMNMF(3, scale="minmax", random_state=0, **kw), id="minmax"),
    pytest.param(lambda **kw: mv.WMNMF(3, scale="standard", random_state=0, **kw), id="standard"),
    pytest.param(lambda **kw: mv.RobustWMNMF(3, random_state=0, **kw), id="robust"),
]


def quietly(fit, *args):
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return fit(*args)


def with_empty_columns(X, places):
    for place in sorted(places):
        X = np.insert(X, min(place, X.shape[1]), np.nan, axis=1)
    return X


def same_bits(one, other, columns=slice(None)):
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.view_weights_, other.view_weights_)
    np.testing.assert_array_equal(one.sample_weights_, other.sample_weights_)
    np.testing.assert_array_equal(one.consensus_, other.consensus_)


# --- unobserved columns, views, rows -----------------------------------------------------------


@pytest.mark.parametrize("make", MODELS)
@given(st.lists(st.integers(0, 8), min_size=1, max_size=20), st.integers(0, 2), st.booleans())
@settings(max_examples=8)
def test_an_unobserved_column_changes_nothing(make, places, s, holes):
    views, _ = blobs()
    if holes:
        views[1][3, 2] = views[2][5] = np.nan
    plain = make().fit(views)
    wider = [with_empty_columns(X, places) if t == s else X for t, X in enumerate(views)]
    with pytest.warns(UserWarning, match=rf"view 'view{s}': {len(places)} of .* no values"):
        model = make().fit(wider)
    same_bits(model, plain)
    empty = np.isnan(wider[s]).all(axis=0)
    np.testing.assert_array_equal(model.components_[s][:, ~empty], plain.components_[s])
    assert model.components_[s].shape[1] == wider[s].shape[1]
    assert not model.components_[s][:, empty].any()
    np.testing.assert_array_equal(model.predict(wider), plain.predict(views))
    # What was left out at the fit is left out afterwards, whatever it holds.
    np.testing.assert_array_equal(
        model.transform([np.where(empty, 7.0, X) if t == s else X for t, X in enumerate(wider)]),
        plain.transform(views),
    )


@pytest.mark.parametrize("make", MODELS)
@given(st.integers(1, 30), st.integers(1, 2), st.integers(0, 2))
@settings(max_examples=5)
def test_a_column_hardly_anybody_has_changes_nothing(make, n_columns, n_values, s):
    views, _ = blobs()
    plain = make().fit(views)
    rng = np.random.default_rng(n_columns)
    nearly = np.full((60, n_columns), np.nan)
    for column in nearly.T:
        column[rng.choice(60, n_values, replace=False)] = 1 + rng.random(n_values)
    wider = [np.hstack([X, nearly]) if t == s else X for t, X in enumerate(views)]
    with pytest.warns(UserWarning, match=rf"view 'view{s}': {n_columns} of .* at most {n_values} "):
        model = make().fit(wider)
    same_bits(model, plain)
    np.testing.assert_array_equal(model.predict(wider), plain.predict(views))


def test_columns_left_out_keep_their_values_where_a_view_is_imputed(tmp_path):
    views, _ = blobs()
    nearly = np.full((60, 9), np.nan)
    nearly[7, 2], nearly[9, 2] = 3.5, 4.5
    model = quietly(
        mv.RobustWMNMF(3, random_state=0).fit, [np.hstack([views[0], nearly]), views[1]]
    )
    for one in (model, mv.load(model.save(tmp_path / "model.npz"))):
        np.testing.assert_array_equal(one.impute(0)[:, 8:], nearly)


@given(st.integers(1, 40))
def test_columns_of_a_view_with_few_rows_are_as_full_as_any(n_rows):
    X = np.full((400, 3), np.nan)
    X[:n_rows] = 1.0
    assert observed_columns(as_views([X, np.ones((400, 2))], allow_missing=True)) is None


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("place", [0, 1, 3])
def test_an_unobserved_view_changes_nothing(make, place, tmp_path):
    views, _ = blobs()
    plain = make().fit(views)
    more = [*views[:place], np.full((60, 4), np.nan), *views[place:]]
    with pytest.warns(UserWarning, match=f"view 'view{place}' has no values"):
        model = make().fit(more)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.view_weights_, np.insert(plain.view_weights_, place, 0))
    assert not model.sample_weights_[:, place].any() and not model.reliance_[:, place].any()
    assert model.components_[place].shape == (3, 4) and not model.components_[place].any()
    assert model.coefficients_[place].shape == (60, 3)
    loaded = mv.load(model.save(tmp_path / "model.npz"))
    np.testing.assert_array_equal(loaded.predict(more), plain.predict(views))


@pytest.mark.parametrize("make", MODELS)
def test_an_unobserved_row_changes_nothing(make):
    views, _ = blobs()
    plain = make().fit(views)
    longer = [np.insert(X, [0] * 99 + [30, 60], np.nan, axis=0) for X in views]
    nowhere = np.isnan(longer[0]).all(axis=1)
    with pytest.warns(UserWarning, match="101 samples .*the first is row 0.* label -1"):
        model = make().fit(longer)
    assert (model.labels_[nowhere] == -1).all()
    np.testing.assert_array_equal(model.labels_[~nowhere], plain.labels_)
    np.testing.assert_array_equal(model.view_weights_, plain.view_weights_)
    np.testing.assert_array_equal(model.sample_weights_[~nowhere], plain.sample_weights_)
    assert [V.shape for V in model.coefficients_] == [(161, 3)] * 3
    assert not model.sample_weights_[nowhere].any() and np.isfinite(model.reliance_).all()
    found = model.predict(longer)
    assert (found[nowhere] == -1).all()
    np.testing.assert_array_equal(found[~nowhere], plain.predict(views))
    assert np.isfinite(model.transform(longer)).all()


@pytest.mark.parametrize("make", MODELS)
def test_nothing_observed_is_a_sentence(make):
    nothing = [np.full((20, 2), np.nan), np.full((20, 3), np.nan)]
    with pytest.raises(ValueError, match=r"none of the views \['view0', 'view1'\] has values"):
        make().fit(nothing)


def test_named_empty_columns_are_told_once_by_name():
    pd = pytest.importorskip("pandas")
    views, _ = blobs()
    frame = pd.DataFrame(views[0], columns=[f"gene{j}" for j in range(8)])
    frame["Unnamed: 8"] = np.nan
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        mv.RobustWMNMF(3, random_state=0).fit({"rna": frame, "b": pd.DataFrame(views[1])})
    about = [str(w.message) for w in told if "no values" in str(w.message)]
    assert about == ["view 'rna': 1 of 9 columns have no values and are ignored: 'Unnamed: 8'"]


def test_the_users_own_start_is_narrowed_alike():
    views, _ = blobs()
    rng = np.random.default_rng(0)
    init = {
        "components": [rng.random((3, X.shape[1])) for X in views],
        "coefficients": [rng.random((60, 3)) for _ in views],
    }
    plain = mv.WMNMF(3, missing="allow", init=init, random_state=0).fit(views)
    wider = [np.insert(views[0], 2, np.nan, axis=1), *views[1:]]
    init["components"][0] = np.insert(init["components"][0], 2, 5.0, axis=1)
    model = quietly(mv.WMNMF(3, missing="allow", init=init, random_state=0).fit, wider)
    same_bits(model, plain)


# --- hardly observed ---------------------------------------------------------------------------


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("n_rows", [1, 2, 4])
def test_a_view_of_few_rows_is_told_and_does_not_lead(make, n_rows):
    views, y = blobs(n=120)
    rare = np.full((120, 6), np.nan)
    rare[:n_rows] = np.random.default_rng(0).random((n_rows, 6))
    with pytest.warns(UserWarning, match=rf"'view3' is observed for {n_rows} of 120 samples"):
        model = make().fit([*views, rare])
    assert model.view_weights_[3] < 0.1 * model.view_weights_[:3].min()
    assert adjusted_rand_score(y, model.labels_) > 0.9


def test_a_view_of_few_entries_is_told_and_does_not_lead():
    views, y = blobs(n=120, features=(30, 20, 20))
    rng = np.random.default_rng(0)
    few = [np.where(rng.random(views[0].shape) < 0.03, views[0], np.nan), *views[1:]]
    few[0][0] = views[0][0]
    with pytest.warns(UserWarning, match="'view0' is observed for .* too few to learn 3 parts"):
        model = quietly_but_told(mv.WMNMF(3, missing="allow", random_state=0).fit, few)
    assert model.view_weights_[0] < 0.1 * model.view_weights_[1:].min()
    assert model.sample_weights_[:, 0].mean() < 0.1
    assert adjusted_rand_score(y, model.labels_) > 0.9


def quietly_but_told(fit, *args):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*no values")
        return fit(*args)


def test_a_row_with_one_value_in_a_view_does_not_rely_on_it():
    views, _ = blobs(n=90, features=(20, 12, 15))
    whole = mv.WMNMF(3, missing="allow", random_state=0).fit(views)
    views[0][::4, 1:] = np.nan  # one entry is reconstructed without error by any parts
    model = mv.WMNMF(3, missing="allow", random_state=0).fit(views)
    assert not model.sample_weights_[::4, 0].any()
    assert adjusted_rand_score(whole.labels_, model.labels_) > 0.9


def test_unseen_rows_with_holes_are_placed_one_by_one():
    views, _ = blobs(n=90, features=(20, 12, 15))
    model = mv.WMNMF(3, missing="allow", random_state=0).fit(views)
    new = [X[:9].copy() for X in views]
    new[0][2, :12] = new[1][4] = np.nan
    together = model.transform(new)
    alone = np.vstack([model.transform([X[[i]] for X in new]) for i in range(9)])
    np.testing.assert_allclose(alone, together, rtol=1e-9)


def test_errors_and_gaps_are_compared_by_what_is_observed(rng):
    X, U, V = rng.random((40, 10)), rng.random((10, 3)), rng.random((40, 3))
    full = MaskedView(X)
    r = full.all_residuals(U, V)
    np.testing.assert_array_equal(expected_residuals(full, r), r)
    assert expected_gap(full, 2.0) == 2.0
    X[::2] = np.nan
    half = MaskedView(X)
    assert expected_gap(half, 2.0) == 4.0
    r = half.all_residuals(U, V)
    whole = expected_residuals(half, r)
    assert mean_error(half, r) == pytest.approx(r.sum() / 200)
    np.testing.assert_allclose(whole.mean(), 10 * mean_error(half, r))
    np.testing.assert_array_equal(whole[1::2], r[1::2])


@given(st.lists(st.floats(1e-6, 1e6), min_size=3, max_size=3), st.sampled_from([1, 1.5, 5, 50]))
def test_views_of_full_reach_share_weight_as_ever(gaps, p):
    plain = eq.weights_of_gaps(np.array(gaps), p)
    np.testing.assert_array_equal(eq.weights_of_gaps(np.array(gaps), p, np.ones(3)), plain)
    rare = eq.weights_of_gaps(np.array([*gaps, 1e-12]), p, np.array([1, 1, 1, 0.02]))
    assert rare[3] <= 0.02 * rare[:3].min() * (1 + 1e-12)
    np.testing.assert_allclose(rare[:3] / rare[:3].sum(), plain, rtol=1e-12)


def test_reach_is_full_for_half_of_the_rows_however_few():
    X = np.ones((10, 4))
    X[5:] = np.nan
    assert reaches([MaskedView(X), np.ones((10, 2))], 8).tolist() == [1, 1]
    X[4:] = np.nan
    assert reaches([MaskedView(X), np.ones((10, 2))], 8).tolist() == [0.4, 1]


# --- shift, scale, precision -------------------------------------------------------------------


@pytest.mark.parametrize("make", SHIFTABLE)
@given(st.floats(-1e8, 1e8), st.floats(-6, 6), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=8)
def test_shift_and_scale_change_nothing_in_either_precision(make, shift, power, dtype):
    views, _ = blobs()
    plain = make().fit(views)
    # As large a shift as leaves float64 the digits that float32 has.
    unit = 10.0**power
    model = make(dtype=dtype).fit([X * unit + shift * unit for X in views])
    assert adjusted_rand_score(plain.labels_, model.labels_) == 1
    np.testing.assert_allclose(model.view_weights_, plain.view_weights_, atol=2e-3)


@pytest.mark.parametrize("scale", [None, "auto"])
def test_rounding_that_takes_all_is_told(scale):
    views, _ = blobs()
    far = [X + 1e8 for X in views]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        mv.RobustWMNMF(3, scale=scale, dtype=np.float32, random_state=0).fit(far)
    assert any("rounds away" in str(w.message) for w in told) == (scale is None)
    with pytest.warns(UserWarning) as told:
        mv.WMNMF(3, dtype=np.float32, random_state=0).fit(far)
    sentences = sorted(str(w.message) for w in told)
    for name, sentence in zip(("view0", "view1", "view2"), sentences, strict=True):
        assert sentence.startswith(f"view '{name}': dtype=float32 rounds away")


@pytest.mark.parametrize("scale", ["sum", "sqrt", None])
@pytest.mark.parametrize("level", [1e3, 1e8])
def test_a_view_that_is_nearly_all_level_is_told(scale, level):
    views, _ = blobs()
    model = mv.WMNMF(3, scale=scale, random_state=0)
    with pytest.warns(UserWarning, match="view 'view1' is nearly constant.* scale='minmax'"):
        model.fit([views[0], views[1] + level])
    with warnings.catch_warnings(action="error"):
        model.fit(views)
        mv.WMNMF(3, scale="minmax", random_state=0).fit([views[0], views[1] + level])


def test_float32_from_a_file_is_scaled_before_it_is_cast(tmp_path, monkeypatch):
    views, y = blobs(n=120)
    monkeypatch.setattr("manyview.views.views.LOAD_LIMIT", 0)
    paths = []
    for s, X in enumerate(views):
        paths.append(tmp_path / f"{s}.npy")
        np.save(paths[-1], X + 1e8)
    model = mv.RobustWMNMF(3, dtype=np.float32, random_state=0).fit(paths)
    assert adjusted_rand_score(y, model.labels_) == 1


@pytest.mark.parametrize("make", SHIFTABLE)
def test_spread_near_the_smallest_number_is_right_or_refused(make):
    views, _ = blobs()
    plain = make().fit(views)
    for size in (1e-300, 1e-310, 1e-318):
        try:
            model = make().fit([X * size for X in views])
        except ValueError as error:
            assert "view 'view0': 8 features spread too little" in str(error)
            assert size < 1e-306
        else:
            assert adjusted_rand_score(plain.labels_, model.labels_) == 1
    small = np.hstack([views[0], views[0][:, :1] * 1e-315])
    with pytest.raises(ValueError, match=r"'view0': 1 features spread too little .*\(column 8 by"):
        make().fit([small, *views[1:]])
    with pytest.raises(ValueError, match=r"'view0' has a largest entry of .*divide the view"):
        mv.RobustWMNMF(3, scale=None).fit([X * 1e-200 for X in views])


# --- what was fitted ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_imputing_answers_from_the_fit(kind):
    views, _ = blobs()
    views[0][3] = 0
    views[1][5, 2] = np.nan
    given_views = [sp.csr_array(views[0]) if kind == "sparse" else views[0], *views[1:]]
    model = quietly(mv.RobustWMNMF(3, random_state=0).fit, given_views)
    before = [model.impute(s) for s in range(3)]
    for X in given_views:
        (X.data if sp.issparse(X) else X)[:] = 1e6
    for s in range(3):
        np.testing.assert_array_equal(model.impute(s), before[s])


def test_imputing_keeps_what_was_observed_to_the_last_bit():
    views, _ = blobs()
    views[0] += 1e8
    views[0][5, 2] = np.nan
    views[0][4, 1:] = np.nan  # over half unobserved: treated as missing, and has a value
    filled = quietly(mv.RobustWMNMF(3, dtype="float32", random_state=0).fit, views).impute(0)
    np.testing.assert_array_equal(filled[~np.isnan(views[0])], views[0][~np.isnan(views[0])])
    assert np.isfinite(filled).all()


def test_imputing_keeps_the_shape_of_what_was_given(tmp_path):
    views, _ = blobs()
    views[1] = np.insert(views[1], 1, np.nan, axis=1)
    views[1][7] = np.nan
    for X in views:
        X[9] = np.nan
    data = [views[0], np.full((60, 2), np.nan), *views[1:]]
    fitted = quietly(mv.RobustWMNMF(3, random_state=0).fit, data)
    for model in (fitted, mv.load(fitted.save(tmp_path / "m.npz"))):
        assert [model.impute(s).shape for s in range(4)] == [X.shape for X in data]
        assert np.isnan(model.impute(1)).all()
        filled = model.impute(2)
        assert np.isnan(filled[:, 1]).all() and np.isfinite(np.delete(filled, 1, axis=1)).all()


def test_large_views_that_changed_are_noticed(monkeypatch):
    views, _ = blobs()
    monkeypatch.setattr("manyview.base.LOAD_LIMIT", 100)
    monkeypatch.setattr(manyview.wmnmf, "COPY_LIMIT", 100)
    models = [mv.RobustWMNMF(3, random_state=0).fit(views), mv.WMNMF(3, random_state=0).fit(views)]
    asks = [lambda: models[0].impute(1), lambda: models[1].predict([X[:2] for X in views])]
    for ask in asks:
        ask()
    views[1][0] += 1
    for ask in asks:
        with pytest.raises(ValueError, match="view 'view1' was changed after the fit"):
            ask()


# --- identical samples --------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:every view is constant")  # where all are alike
@pytest.mark.parametrize("make", MODELS)
@given(st.lists(st.integers(0, 3), min_size=8, max_size=30), st.integers(1, 4), st.booleans())
@settings(max_examples=8)
def test_identical_rows_stay_together_however_many_clusters(make, kinds, more, sparse):
    rng = np.random.default_rng(0)
    kinds = np.array(kinds)
    n_kinds = len(np.unique(kinds))
    k = min(n_kinds + more, len(kinds))
    tables = [rng.random((4, m)) + 0.1 for m in (5, 3)]
    views = [sp.csr_array(T[kinds]) if sparse else T[kinds] for T in tables]
    with pytest.warns(UserWarning, match=f"only {n_kinds} distinct samples for n_clusters={k}"):
        model = make(k).fit(views)
    for kind in np.unique(kinds):
        assert len(set(model.labels_[kinds == kind])) == 1
    assert (model.labels_ >= 0).all() and len(set(model.labels_)) <= n_kinds
    if isinstance(model, mv.RobustWMNMF):  # one cluster for all would keep them together, too
        assert len(set(model.labels_)) == model.n_clusters_ == n_kinds
        np.testing.assert_array_equal(model.predict(views), model.labels_)


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::UserWarning")
@given(st.integers(1, 5), st.integers(1, 12), st.booleans())
@settings(max_examples=8)
def test_as_many_clusters_as_categories(n_kinds, copies, alike):
    """A table of categories, given once or in two codings: every category is a cluster."""
    kinds = np.repeat(np.arange(n_kinds), copies + (n_kinds == 1))
    views = [
        np.eye(n_kinds + 1)[kinds],
        np.eye(n_kinds + 1)[kinds] if alike else kinds[:, None] + 1.0,
    ]
    model = mv.RobustWMNMF(n_kinds, random_state=0).fit(views)
    assert len(set(zip(kinds, model.labels_, strict=True))) == len(set(model.labels_)) == n_kinds
    assert np.isfinite(model.confidence_).all()


def test_kinds_of_rows():
    X = np.array([[0.0, 1], [-0.0, 1], [np.nan, 1], [np.nan, 1], [0, 2]])
    assert row_kinds([X], 4).tolist() == [0, 0, 1, 1, 2]
    assert row_kinds([X], 3) is None
    assert row_kinds([X, np.arange(5)[:, None]], 5) is None
    assert row_kinds([sp.csr_array(np.nan_to_num(X))], 4).tolist() == [0, 0, 0, 0, 1]
    assert row_kinds([X], 3, np.array([1, 1, 0, 0, 1], dtype=bool)).tolist() == [0, 0, 0, 0, 1]


def test_clusters_without_members_are_told():
    views, _ = blobs()
    init = {
        "components": [np.ones((4, X.shape[1])) for X in views],
        "coefficients": [np.tile([1.0, 0.5, 0.1, 1e-3], (60, 1)) for _ in views],
    }
    model = mv.WMNMF(4, init=init, assign_labels="argmax", random_state=0)
    with pytest.warns(UserWarning, match="only 1 of 4 clusters have members"):
        model.fit(views)
