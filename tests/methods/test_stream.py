"""partial_fit: batches of rows, of which only sums are remembered."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from conftest import blobs
from manyview import WMNMF, RobustWMNMF, load, stream
from manyview._types import Factors, Stop, Sums
from manyview.engines.numpy.rows import rows_of
from manyview.maths.solvers import SOLVERS


def batches(n=600, parts=4):
    views, y = blobs(n=n)
    rows = np.array_split(np.random.default_rng(0).permutation(n), parts)
    return [[X[part] for X in views] for part in rows], [y[part] for part in rows], views, y


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("regularizer", ["graph", "sparse", None])
def test_clusters_keep_their_names_from_batch_to_batch(solver, regularizer):
    parts, truths, views, y = batches()
    model, labels = WMNMF(3, solver=solver, regularizer=regularizer, beta=1e-3, random_state=0), []
    for views_of_part in parts:
        model.partial_fit(views_of_part)
        labels.append(model.labels_)
        assert len(model.consensus_) == len(model.labels_) == len(views_of_part[0])
        for U in model.components_:
            assert (U >= 0).all() and np.isfinite(U).all()
            np.testing.assert_allclose(U.sum(axis=1), 1, rtol=1e-6)
    assert model.view_weights_.sum() == pytest.approx(1)
    assert adjusted_rand_score(np.concatenate(truths), np.concatenate(labels)) > 0.98
    assert adjusted_rand_score(y, model.predict(views)) > 0.98
    assert model.transform(views).shape == (600, 3) and model.stop_reason_ is Stop.BATCH


def test_the_first_batch_is_a_fit_and_a_fit_starts_anew():
    parts, *_ = batches()
    first = WMNMF(3, random_state=0).partial_fit(parts[0])
    fitted = WMNMF(3, random_state=0).fit(parts[0])
    np.testing.assert_array_equal(first.consensus_, fitted.consensus_)
    # Going on from a fit is the same as going on from a first batch.
    for a, b in zip(*(m.partial_fit(parts[1]).components_ for m in (first, fitted)), strict=True):
        np.testing.assert_array_equal(a, b)
    again = first.fit(parts[0])
    np.testing.assert_array_equal(
        again.consensus_, WMNMF(3, random_state=0).fit(parts[0]).consensus_
    )


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_is_remembered_is_the_sum_over_all_rows(solver, rng):
    """Without forgetting, sums of batches add up to those of all rows, whatever the batches."""
    solver = SOLVERS[solver]()
    X, U, V, V_star, w = (
        rng.random(shape) for shape in ((60, 7), (7, 3), (60, 3), (60, 3), (60, 1))
    )

    def sums(rows):
        factors = Factors((U,), (V[rows],), V_star[rows], np.ones(1), w[rows])
        return stream.batch_sums([rows_of(X[rows], solver)], factors)[0]

    old, new, both = sums(slice(0, 40)), sums(slice(40, 60)), sums(slice(0, 60))
    for total, a, b in zip(both, old, new, strict=True):
        np.testing.assert_allclose(a + b, total)
    for total, a, b in zip(stream.added(old, new), old, new, strict=True):
        np.testing.assert_allclose(stream.FORGET * a + b, total)


def test_steps_on_the_sums_lower_the_error_they_describe(rng):
    solver = SOLVERS["multiplicative"]()
    X, U, V = rng.random((60, 7)), rng.random((7, 3)), rng.random((60, 3))
    factors = Factors((U,), (V,), V, np.ones(1), np.ones((60, 1)))
    sums = stream.batch_sums([rows_of(X, solver)], factors)
    new, scaled, _ = stream.updated_basis(factors, sums, solver, 5.0, rescale=True)

    def objective(f):
        line = stream.batch_history([rows_of(X, solver)], f, 5.0, 1)
        return line["objective"][0]

    assert objective(new) < objective(factors)
    # The sums follow the scale that V was given.
    again = stream.batch_sums([rows_of(X, solver)], new)
    for a, b in zip(scaled[0], again[0], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    assert isinstance(scaled[0], Sums)


def test_a_stream_goes_on_after_saving(tmp_path):
    parts, *_ = batches()
    model = WMNMF(3, random_state=0).partial_fit(parts[0]).partial_fit(parts[1])
    again = load(model.save(tmp_path / "m.npz"))
    one, other = model.partial_fit(parts[2]), again.partial_fit(parts[2])
    np.testing.assert_array_equal(one.consensus_, other.consensus_)
    np.testing.assert_array_equal(one.view_weights_, other.view_weights_)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_cluster_outlives_batches_without_it(solver):
    views, y = blobs(n=450)
    three, one, last = np.arange(0, 150), np.flatnonzero(y == 0), np.arange(300, 450)
    one = one[(one >= 150) & (one < 300)]
    model = WMNMF(3, solver=solver, random_state=0)
    model.partial_fit([X[three] for X in views])
    for _ in range(3):
        model.partial_fit([X[one] for X in views])
        assert len(np.unique(model.labels_)) == 1
    assert adjusted_rand_score(y[last], model.predict([X[last] for X in views])) > 0.9
    model.partial_fit([X[last] for X in views])
    assert adjusted_rand_score(y[last], model.labels_) > 0.9
    kept = model._remembered_labels()
    assert len(kept) == len(model._stacked) == len(model._starts[0].V[0])


def test_what_is_remembered_is_bounded_and_renewed(rng):
    old = np.repeat([0, 1, 2], [stream.REMEMBERED, stream.REMEMBERED, 10])
    new = np.repeat([0, 2], [1000, 1000])
    a, b = stream.which_to_remember(new, old)
    half = stream.REMEMBERED // 2
    assert np.bincount(new[a]).tolist() == [half, 0, stream.REMEMBERED - 10]
    assert np.bincount(old[b]).tolist() == [half, stream.REMEMBERED, 10]
    assert len(np.unique(a)) == len(a) and len(np.unique(b)) == len(b)


def test_what_cannot_be_streamed_is_told():
    parts, *_ = batches()
    for params in ({"n_init": 2}, {"missing": "allow"}):
        with pytest.raises(ValueError, match="partial_fit needs n_init=1 and missing='error'"):
            WMNMF(3, **params).partial_fit(parts[0])
    with pytest.raises(AttributeError, match="use WMNMF for a stream"):
        _ = RobustWMNMF(3).partial_fit
    model = WMNMF(3, random_state=0).partial_fit(parts[0])
    with pytest.raises(ValueError, match="view 'view1' has 4 features"):
        model.partial_fit([parts[1][0], parts[1][1][:, :4], parts[1][2]])


def test_batches_keep_the_number_of_components():
    views, _ = blobs(n=60)
    model = WMNMF(3, random_state=0).partial_fit(views)
    with pytest.raises(ValueError, match="3 components, and now 5 are requested"):
        model.set_params(n_clusters=5).partial_fit(views)
