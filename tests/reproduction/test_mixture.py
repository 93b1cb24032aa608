"""benchmarks/mixture.py: the laws of the paper's weights in a mixture model."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import mixture
from mixture import Fit, View, best, reliability_gap, simulated, soft, starts


def made(seed, n=60, kinds="gbm"):
    """Views of three families on the same three clusters, and soft memberships to start from."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    normal = rng.normal(size=(3, 5))[y] * 2 + rng.normal(size=(n, 5))
    binary = (rng.random((n, 8)) < rng.random((3, 8))[y]).astype(float)
    counts = rng.poisson(rng.gamma(0.3, 1.5, size=(3, 12))[y]).astype(float)
    counts[:, 0] += 1
    made = {"g": normal, "b": binary, "m": counts}
    return [made[kind] for kind in kinds], soft(rng.integers(3, size=n), 3), y


@given(
    seed=st.integers(0, 10**6),
    p=st.sampled_from([1.2, 1.5, 2.0, 5.0, 11.0]),
    delta=st.sampled_from([0.0, 0.1, 1.0]),
    missing=st.floats(0, 0.5),
)
@settings(max_examples=25, deadline=None)
def test_J_never_rises(seed, p, delta, missing):
    views, r, _ = made(seed)
    rng = np.random.default_rng(seed)
    views[0] = np.where(rng.random(views[0].shape) < missing, np.nan, views[0])
    views[2][rng.random(len(r)) < missing] = np.nan
    fit = Fit([View(X) for X in views], r, p=p, delta=delta, max_iter=25, tol=0)
    assert len(fit.history) > 3
    assert (np.diff(fit.history) <= 1e-9 * np.abs(fit.history[0])).all()
    assert_allclose(fit.r.sum(axis=1), 1)
    assert_allclose(fit.alpha.sum(), 1)
    assert_allclose(fit.w.sum(axis=1), 1)


def test_the_weights_minimize_J():
    """No other weights are better than those of a fit, for the same memberships and deviances."""
    given, r, _ = made(3)
    views, p, rng = [View(X) for X in given], 3.0, np.random.default_rng(0)
    own = 1 + np.column_stack([(r * v.deviance(r)).sum(axis=1) / v.single for v in views])
    fit = Fit(views, r, p=p, delta=1.0, max_iter=1)
    for size in (0.001, 0.01, 0.1):
        for _ in range(30):
            other = np.abs(fit.alpha + size * rng.normal(size=fit.alpha.shape))
            assert fit.alpha**p @ own.sum(axis=0) < (other / other.sum()) ** p @ own.sum(axis=0)
            w = np.abs(fit.w + size * rng.normal(size=fit.w.shape))
            w /= w.sum(axis=1, keepdims=True)
            assert ((fit.w**2 * own).sum(axis=1) <= (w**2 * own).sum(axis=1) * (1 + 1e-12)).all()


@pytest.mark.parametrize("delta", [0.0, 1.0])
def test_orders_units_and_repetition_change_nothing(delta):
    views, r, _ = made(1)
    plain = Fit([View(X) for X in views], r, delta=delta, tol=0, max_iter=40)

    def same(fit, rows=slice(None), order=(0, 1, 2)):
        assert_allclose(fit.r, plain.r[rows], atol=1e-6)
        assert_allclose(fit.alpha, plain.alpha[list(order)], atol=1e-8)

    settings = {"delta": delta, "tol": 0, "max_iter": 40}
    rows = np.random.default_rng(0).permutation(len(r))
    same(Fit([View(X[rows]) for X in views], r[rows], **settings), rows)
    same(Fit([View(views[s]) for s in (2, 0, 1)], r, **settings), order=(2, 0, 1))
    same(Fit([View(X[:, ::-1]) for X in views], r, **settings))
    same(Fit([View(7 * views[0] - 3), *map(View, views[1:])], r, **settings))
    twice = np.repeat(np.arange(len(r)), 2)
    same(Fit([View(X[twice]) for X in views], r[twice], **settings), twice)


def test_an_unobserved_view_changes_no_sample_that_lacks_it():
    """A sample without a view has weight 0 there; a view nobody has changes no membership."""
    views, r, _ = made(2)
    views[0][:10] = np.nan
    fit = Fit([View(X) for X in views], r)
    assert (fit.w[:10, 0] == 0).all()
    assert (fit.w[10:] > 0).all()
    one = np.where(np.arange(5) == 2, np.nan, made(2, kinds="g")[0][0])
    narrow = np.delete(one, 2, axis=1)
    kappa = {"kappa": 2.0, "tol": 0, "max_iter": 30}
    assert_allclose(Fit([View(one)], r, **kappa).r, Fit([View(narrow)], r, **kappa).r, atol=1e-10)


def test_one_view_with_unit_weights_is_scikit_learns_mixture():
    size = {"n": 400, "m": 8, "K": 3, "spread": 1.5}
    off, *_ = mixture.against_gaussian_mixture(**size, max_iter=1000, tol=1e-13)
    assert off < 1e-5  # both at their limit, whatever memberships scikit-learn started from


def test_separate_clusters_are_found_with_sure_probabilities_and_noise_is_one_cluster():
    views, y = simulated("independent", 3, np.random.default_rng(1), n=150)
    (_, icl), fit = mixture.chosen_K(views, 3, 0, full=True)
    assert icl == 3
    assert reliability_gap(y, fit.r, fit.labels) == pytest.approx(0, abs=0.02)
    noise, _ = simulated("independent", 1, np.random.default_rng(1), n=150)
    assert mixture.chosen_K(noise, 1, 0, full=True)[0] == [1, 1]


def test_the_best_start_is_never_worse_than_one_of_them():
    given, _ = simulated("overlapping", 3, np.random.default_rng(0), n=120)
    views = [View(X) for X in given]
    starting = starts(given, views, 3, 0)
    found = best(views, starting).history[-1]
    assert all(found <= Fit(views, start).history[-1] for start in starting)
