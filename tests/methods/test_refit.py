"""Refits that share what a model measured: on some views the same labels, on parts the same clusters."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score as adjusted_rand

import manyview as mv
from conftest import blobs
from manyview.engines.protocols import Lists
from manyview.outcomes.mark import fitted_on
from manyview.reliability import Refits, among
from manyview.views.views import as_views

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def views_of(kind):
    views = [X.copy() for X in blobs(n=90)[0]]
    if kind == "sparse":
        rng = np.random.default_rng(0)
        views = [sp.csr_array(rng.poisson(np.exp(X[:, :15] / 2))) for X in views]
    if kind == "wide":
        views = [np.hstack([X, X**2, X[:, ::-1] ** 3, X + X[:, ::-1]]) for X in views]
    if kind == "missing":
        views[0][:9] = np.nan
        views[2][80:] = np.nan
    if kind == "copies":
        views = [np.vstack([X, X[:12]]) for X in views]
    return {f"v{s}": X for s, X in enumerate(views)}


@pytest.mark.parametrize(
    ("kind", "given"),
    [("plain", ""), ("sparse", ""), ("missing", ""), ("copies", ""), ("plain", "scale"),
     ("copies", "scale"), ("plain", "view_weights"), ("copies", "view_weights")],
)  # fmt: skip
def test_on_some_views_the_labels_are_those_of_a_fit_of_these(kind, given):
    views = views_of(kind)
    more = {"": {}, "scale": {"scale": {"v0": None}}, "view_weights": {"view_weights": [1, 1, 2]}}
    model = mv.RobustWMNMF(3, random_state=0, **more[given]).fit(views)
    refits, read = Refits(model), as_views(views, None, allow_negative=True, allow_missing=True)
    for some in ([0], [1], [2], [1, 2], [0, 2], [0, 1]):
        found, fitted = refits.on(some), fitted_on(model, read, some, 3)
        if kind == "missing" and some in ([0], [2]):
            assert found is None  # some samples have no such view
            continue
        np.testing.assert_array_equal(found.labels, fitted.labels_)
        one, other = (r.stability(3, 0.8, 0) for r in (found, Refits(fitted)))
        np.testing.assert_array_equal(one.runs, other.runs)


def test_where_some_views_are_another_problem_it_says_so():
    views = views_of("plain")
    views["v0"][3] = views["v1"][3] = np.nan  # only v2 has it
    model = mv.RobustWMNMF(3, random_state=0).fit(views)
    assert Refits(model).on([0, 1]) is None
    assert Refits(model).on([1, 2]) is not None
    weighed = mv.RobustWMNMF(3, view_weights=[1, 0, 0], random_state=0).fit(views_of("plain"))
    assert Refits(weighed).on([1, 2]) is None


@pytest.mark.parametrize("kind", ["plain", "sparse", "missing", "copies"])
@pytest.mark.parametrize("n_clusters", [3, "communities"])
def test_parts_of_clear_clusters_give_the_same_clusters(kind, n_clusters):
    pytest.importorskip("graspologic_native")
    views = views_of(kind)
    if kind == "missing":
        for X in views.values():
            X[50] = np.nan  # nobody has it: label −1
    model = mv.RobustWMNMF(n_clusters, random_state=0).fit(views)
    known = np.flatnonzero(model.labels_ >= 0)
    rows = np.sort(np.random.default_rng(1).choice(known, 75, replace=False))
    found = Refits(model).part(rows, np.random.default_rng(0))
    again = Refits(model).part(rows, np.random.default_rng(0))
    np.testing.assert_array_equal(found, again)
    assert adjusted_rand(model.labels_[rows], found) > 0.95


@pytest.mark.parametrize("kind", ["plain", "sparse", "missing"])
def test_neighbors_among_a_part_are_nearly_those_of_the_part_alone(kind):
    model = mv.RobustWMNMF(3, random_state=0).fit(views_of(kind))
    rows = np.sort(np.random.default_rng(1).choice(90, 72, replace=False))
    for view in Refits(model).distinct:
        found, alone = among(view.nearest(30), rows, 90, 10), view.rows(rows).nearest(10)
        np.testing.assert_array_equal(found.rows, alone.rows)
        # The unit of each row's distances is that of all rows, so that a few near ties fall otherwise.
        both = zip(found.indices, alone.indices, strict=True)
        shared = [len(np.intersect1d(*lists)) for lists in both]
        assert np.mean(shared) > 9.8


@pytest.mark.parametrize("kind", ["wide", "sparse"])
def test_what_refits_make_is_neither_kept_nor_saved(kind, tmp_path):
    """Products of all rows, which wide and small views have once somebody asked for neighbors."""
    model = mv.RobustWMNMF(3, random_state=0).fit(views_of(kind))
    refits = Refits(model)
    refits.part(np.arange(75), np.random.default_rng(0))
    assert any(view._products is not None for view in refits.spaces)
    assert all(view._products is None for view in model._geometry)
    model._geometry[0].nearest(5)  # whoever else asks
    again = mv.load(model.save(tmp_path / "model.npz"))
    assert all(view._products is None for view in again._geometry)
    new = {name: X[:5] for name, X in views_of(kind).items()}
    np.testing.assert_array_equal(again.predict(new), model.predict(new))


def test_lists_too_short_repeat_their_nearest():
    near = Lists(
        np.arange(3), np.array([[1, 2], [0, 2], [1, 0]]), np.array([[1.0, 2], [1, 3], [3, 4]])
    )
    found = among(near, np.array([0, 2]), 3, 2)
    np.testing.assert_array_equal(found.rows, [0, 1])
    np.testing.assert_array_equal(found.indices, [[1, 1], [0, 0]])
    np.testing.assert_array_equal(found.d, [[2, 2], [4, 4]])
    assert len(among(near, np.array([1]), 3, 2).rows) == 0


def test_models_whose_data_stay_in_files_or_of_other_kinds_are_not_shared(tmp_path):
    views = views_of("plain")
    assert Refits.possible(mv.RobustWMNMF(3, random_state=0).fit(views))
    positive = {name: np.abs(X) for name, X in views.items()}
    assert not Refits.possible(mv.WMNMF(3, random_state=0).fit(positive))
    np.save(tmp_path / "v.npy", views["v0"])
    on_disk = mv.RobustWMNMF(3, random_state=0).fit({"v": tmp_path / "v.npy"})
    in_file = any(not isinstance(v.Z, np.ndarray) for v in on_disk._geometry)
    assert Refits.possible(on_disk) is not in_file


def test_a_saved_model_gives_the_same_refits(tmp_path):
    views = views_of("missing")
    model = mv.RobustWMNMF(3, random_state=0).fit(views)
    loaded = mv.load(model.save(tmp_path / "m.npz"))
    rows = np.arange(5, 85)
    one, other = (Refits(m).part(rows, np.random.default_rng(0)) for m in (model, loaded))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(Refits(model).on([0, 2]).labels, Refits(loaded).on([0, 2]).labels)
