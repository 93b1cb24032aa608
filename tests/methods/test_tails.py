"""Heavy tails: who gets a logarithm, and that the logarithm knows no unit and can be undone."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import adjusted_rand_score

from conftest import blobs
from manyview import RobustWMNMF
from manyview.engines.numpy.scaling import fit_scaling
from manyview.maths.tails import bends, bent, unbent, why_heavy


def drawn(kind, n=400, m=30, seed=0):
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal((n, m))
    log_normal = np.exp(1.2 * normal + rng.normal(4, 2, m))
    counts = rng.poisson(rng.gamma(2, np.exp(rng.normal(3, 1.5, m)) / 2, (n, m))).astype(float)
    return {
        "log-normal": log_normal,
        "z-scores of log-normal": (log_normal - log_normal.mean(axis=0)) / log_normal.std(axis=0),
        "expected counts": np.maximum(log_normal - 1, 0),
        "raw counts": counts,
        "normal": normal,
        "uniform": rng.random((n, m)),
        "exponential": rng.exponential(size=(n, m)),
        "log-normalized": np.log1p(counts),
        "gray levels": rng.integers(0, 256, (n, m)).astype(float),
        "binary": (rng.random((n, m)) < 0.3).astype(float),
        "constant": np.ones((n, m)),
    }[kind]


HEAVY = ["log-normal", "z-scores of log-normal", "expected counts", "raw counts"]
LIGHT = [
    *("normal", "uniform", "exponential", "log-normalized", "gray levels", "binary", "constant")
]


@pytest.mark.parametrize("kind", HEAVY)
def test_counts_and_heavy_tails_get_a_logarithm(kind):
    X = drawn(kind)
    here = np.ones(len(X), dtype=bool)
    assert fit_scaling(X, here, "x").kind == "log"
    if kind != "raw counts":
        assert fit_scaling(1e-4 * X - 7, here, "x").kind == "log"
    some = X.copy()
    some[::7, ::3] = np.nan
    assert fit_scaling(some, here, "x").kind == "log"


@pytest.mark.parametrize("kind", LIGHT)
def test_others_are_left_alone(kind):
    X = drawn(kind)
    assert not why_heavy(X)
    assert fit_scaling(X, np.ones(len(X), dtype=bool), "x").kind == "quantile"


@given(
    arrays(float, (6, 3), elements=st.floats(0, 1)),
    arrays(float, 3, elements=st.one_of(st.just(0.0), st.floats(1e-6, 1e6))),
)
def test_bending_keeps_the_order_and_the_ends_and_can_be_undone(t, b):
    z = bent(t, b)
    assert (z >= 0).all() and (z <= 1 + 1e-12).all()
    np.testing.assert_allclose(bent(np.eye(3), b)[np.eye(3) > 0], 1)
    np.testing.assert_allclose(unbent(z, b), t, atol=1e-9)
    order = np.argsort(t, axis=0)
    assert (np.diff(np.take_along_axis(z, order, axis=0), axis=0) >= -1e-12).all()
    np.testing.assert_array_equal(z[:, b == 0], t[:, b == 0])


def test_the_bend_puts_the_mean_in_the_middle_and_goes_to_nothing():
    t = np.array([[0.0, 0.0, 0.1], [0.2, 0.98, 0.95], [0.1, 0.5, 0.9]])
    b = bends(t, np.zeros(3), np.ones(3))
    np.testing.assert_allclose(bent(t.mean(axis=0), b)[:2], 0.5)
    assert b[0] > b[1] > 0 == b[2]
    assert 0 < b[1] < 0.1  # nearly symmetric: nearly straight


def test_sparse_and_single_precision_agree_with_dense_double():
    X = drawn("raw counts", n=60)
    here = np.ones(60, dtype=bool)
    scaling = fit_scaling(X, here, "x")
    Z = scaling.apply(X)
    np.testing.assert_allclose(scaling.apply(sp.csr_array(X)).toarray(), Z, atol=1e-12)
    single = scaling.apply(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, Z, atol=1e-5)
    inside = (Z > 0) & (Z < 1)
    np.testing.assert_allclose(scaling.undo(Z)[inside], X[inside])


def test_tensors_are_bent_alike():
    torch = pytest.importorskip("torch")
    X = drawn("log-normal", n=50)
    scaling = fit_scaling(X, np.ones(50, dtype=bool), "x")
    np.testing.assert_allclose(scaling.apply(torch.as_tensor(X)).numpy(), scaling.apply(X))


def test_the_fit_takes_logarithms_says_so_and_obeys():
    views, y = blobs(n=90, noise=0.3)
    rng = np.random.default_rng(0)
    heavy = np.exp(2 * views[0] / views[0].std() + rng.standard_normal(views[0].shape))
    given_views = {"counts": heavy, "other": views[1]}
    with pytest.warns(UserWarning, match=r"\['counts'\] have heavy tails and were log-transformed"):
        model = RobustWMNMF(3, random_state=0).fit(given_views)
    assert adjusted_rand_score(y, model.labels_) > 0.9
    plain = RobustWMNMF(3, scale={"counts": "quantile", "other": None}, random_state=0)
    assert plain.fit(given_views)._scalings[0].kind == "quantile"
    assert plain._scalings[1].kind == "none"
    forced = RobustWMNMF(3, scale={"other": "log"}, random_state=0).set_params(scale="log")
    assert [scaling.kind for scaling in forced.fit(given_views)._scalings] == ["log", "log"]
