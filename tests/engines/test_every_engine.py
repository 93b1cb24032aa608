"""Laws of a fit that hold wherever the rows live: in memory, in files, on Dask workers, on a device."""

import warnings

import numpy as np
import pytest

import manyview as mv
from conftest import blobs
from manyview.extend import Multiplicative
from own_parts import Halfway

K = 3


def wmnmf(**params):
    """Few iterations: on Dask every one of them is a task for every view."""
    usual = {"random_state": 0, "init": "random", "max_iter": 1, "inner_iter": 4}
    return mv.WMNMF(K, **(usual | params))


def robust(**params):
    return mv.RobustWMNMF(K, **({"random_state": 0, "tol": 1e-3} | params))


both = pytest.mark.parametrize("make", [wmnmf, robust])


@pytest.fixture(scope="module")
def expected():
    """The fits of arrays in memory."""
    views, _ = blobs()
    return {make: make().fit(views) for make in (wmnmf, robust)}


@both
def test_a_fit_is_that_of_arrays_in_memory(place, make, expected):
    views, _ = blobs()
    model, wanted = make(**place.params).fit(place.views(views)), expected[make]
    np.testing.assert_array_equal(model.labels_, wanted.labels_)
    # Distances between rows of files are those of their coordinates in single precision.
    tolerance = 1e-3 if make is robust and place.name == "files" else 1e-7
    for name in ("view_weights_", "sample_weights_", "reliance_"):
        found = getattr(model, name)
        assert isinstance(found, np.ndarray), name
        np.testing.assert_allclose(found, getattr(wanted, name), rtol=tolerance, atol=tolerance)
    inner = [V @ V.T for V in (model.consensus_, wanted.consensus_)]  # in any order of components
    np.testing.assert_allclose(*inner, rtol=tolerance, atol=tolerance)
    # Eigenvectors are found by other means on a device, to some digits.
    np.testing.assert_allclose(model.objective_, wanted.objective_, rtol=max(tolerance, 1e-4))


@both
def test_two_fits_have_the_same_bits(place, make):
    views = place.views(blobs(noise=1.0)[0])
    one, other = (make(**place.params).fit(views) for _ in range(2))
    for name in ("labels_", "view_weights_", "sample_weights_", "consensus_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("make", [lambda **p: wmnmf(solver="hals", **p), robust])
def test_the_objective_never_rises(place, make):
    model = make(**place.params).fit(place.views(blobs(noise=1.0, seed=1)[0]))
    objective = np.asarray(model.history_["objective"])
    assert len(objective) > 1
    assert (np.diff(objective) <= 1e-9 * objective[0]).all()


@both
def test_a_saved_model_predicts_as_the_one_that_was_fitted(place, make, tmp_path):
    views, _ = blobs()
    there = place.views(views)
    model = make(**place.params).fit(there)
    labels = model.predict(views)
    if make is robust:
        np.testing.assert_array_equal(labels, model.labels_)
    files = [X.path for X in there] if place.name == "files" and make is wmnmf else ()
    again = mv.load(model.save(tmp_path / "m.npz"), fitted_on=files)
    np.testing.assert_array_equal(again.predict(views), labels)


def test_the_order_of_views_permutes_their_weights(place):
    views, _ = blobs(noise=0.6)
    forth = robust(**place.params).fit(place.views(views))
    back = robust(**place.params).fit(place.views(views[::-1]))
    np.testing.assert_allclose(back.view_weights_[::-1], forth.view_weights_, rtol=0.02, atol=1e-3)


@both
def test_the_unit_of_a_view_does_not_matter(place, make):
    views, _ = blobs(noise=0.6)
    here = make(**place.params).fit(place.views(views))
    there = make(**place.params).fit(place.views([views[0] * 2.0**20, *views[1:]]))
    np.testing.assert_array_equal(here.labels_, there.labels_)
    np.testing.assert_allclose(here.view_weights_, there.view_weights_, rtol=1e-4, atol=1e-6)


def test_rows_that_lack_a_view_follow_the_others(place):
    views, y = blobs()
    views[1][5:20] = np.nan
    model = robust(**place.params)
    if place.name == "files":
        with pytest.raises(ValueError, match="views read by rows must be complete"):
            model.fit(place.views(views))
        return
    model.fit(place.views(views))
    assert (model.sample_weights_[5:20, 1] == 0).all()
    assert mv.metrics.accuracy(y, model.labels_) == 1


def test_a_solver_of_others_is_run_itself(place):
    views, _ = blobs()
    before = Halfway.calls
    solvers = (Halfway(), Multiplicative(), "multiplicative")
    halfway, own, named = (
        wmnmf(solver=solver, **place.params).fit(place.views(views)) for solver in solvers
    )
    assert Halfway.calls - before >= len(views) * 4
    np.testing.assert_array_equal(own.consensus_, named.consensus_)
    assert np.abs(halfway.consensus_ - own.consensus_).max() > 1e-6


def test_a_row_of_zeros_says_the_same_wherever_rows_are(place):
    rng = np.random.default_rng(0)
    views, y = blobs()
    binary = (rng.random((len(y), 6)) < 0.15 + 0.2 * (y[:, None] == 1)).astype(float)
    counts = binary * rng.integers(1, 5, binary.shape)
    empty = np.flatnonzero(~binary.any(axis=1))
    assert len(empty) > 3
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        model = robust(**place.params).fit(place.views([views[0], binary, -binary, counts]))
    assert list(model.zero_rows_.values())[1:] == ["observed", "observed", "missing"]
    assert (model.sample_weights_[empty, 3] == 0).all()
    assert (model.sample_weights_[empty][:, 1:3] > 0).any()
