"""The formulas against finite differences, brute force, and their own optimality."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from manyview.maths import equations as eq
from manyview.regularizers import Graph, NoPenalty, Orthogonal, Sparse

REGULARIZERS = [Graph(3), Graph(3, "heat"), Graph(3, "cosine", mutual=True), Sparse(), Orthogonal()]


def problem(seed=0, n=12, m=7, k=3):
    rng = np.random.default_rng(seed)
    X, U, V = rng.random((n, m)), rng.random((m, k)), rng.random((n, k))
    return X, U, V, rng.random((n, k)), rng.random(n)


def value(X, U, V, V_star, w, a, beta, g):
    """O of one view, written out without the library."""
    weighted = np.diag(w) @ (X - V @ U.T)
    return (
        (weighted**2).sum() + a * ((V @ np.diag(U.sum(0)) - V_star) ** 2).sum() + beta * g.value(V)
    )


def numerical_gradient(f, A, step=1e-6):
    G = np.zeros_like(A)
    for i in np.ndindex(A.shape):
        D = np.zeros_like(A)
        D[i] = step
        G[i] = (f(A + D) - f(A - D)) / (2 * step)
    return G


@pytest.mark.parametrize("regularizer", [*REGULARIZERS, NoPenalty()])
def test_gradient_parts_are_half_the_gradient(regularizer):
    X, U, V, V_star, w = problem()
    g, a, beta = regularizer.prepare(X), 0.7, 0.3
    w2 = w[:, None] ** 2
    negative, positive = eq.split_U(U, eq.sums_over_rows(X, V, V_star, w2), a)
    expected = numerical_gradient(lambda A: value(X, A, V, V_star, w, a, beta, g), U)
    np.testing.assert_allclose(2 * (positive - negative), expected, rtol=1e-5, atol=1e-6)
    assert (negative >= 0).all() and (positive >= 0).all()
    negative, positive = eq.split_V(
        V, X @ U, U.T @ U, U.sum(axis=0), V_star, w2, a, beta, g.split(V)
    )
    expected = numerical_gradient(lambda A: value(X, U, A, V_star, w, a, beta, g), V)
    np.testing.assert_allclose(2 * (positive - negative), expected, rtol=1e-5, atol=1e-6)


def test_objective_is_the_sum_of_its_written_out_terms():
    X, U, V, V_star, w = problem()
    other = problem(1)
    weights = np.column_stack([w, other[4]])
    alpha, p, beta, g = np.array([0.4, 0.6]), 3.0, 0.2, Orthogonal()
    sets = [(X, U, V), other[:3]]
    terms = eq.objective(
        [
            eq.reconstruction(eq.squared_residuals((x**2).sum(1), x @ u, v, u.T @ u), weights[:, s])
            for s, (x, u, v) in enumerate(sets)
        ],
        np.array([eq.consensus_gap(v, u.sum(0), V_star) for _, u, v in sets]),
        alpha,
        p,
        np.array([g.value(v) for *_, v in sets]),
        beta,
    )
    expected = sum(
        value(x, u, v, V_star, weights[:, s], alpha[s] ** p, beta, g)
        for s, (x, u, v) in enumerate(sets)
    )
    assert terms["objective"] == pytest.approx(expected, rel=1e-12)
    assert sum(list(terms.values())[:3]) == pytest.approx(terms["objective"])


gaps = arrays(float, st.integers(1, 5), elements=st.floats(1e-100, 1e100))


@given(gaps, st.floats(1.01, 200))
def test_view_weights_are_optimal(A, p):
    alpha = eq.weights_of_gaps(A, p)
    assert alpha.sum() == pytest.approx(1) and (alpha >= 0).all()
    # Optimality on the simplex: α_s^{p−1} A_s is the same for every view that has weight.
    if p < 20 and alpha.min() > 1e-10 and A.max() / A.min() < 1e8:
        level = alpha ** (p - 1) * (A / A.min())
        np.testing.assert_allclose(level, level[0], rtol=1e-6)


def test_view_weights_at_the_edges():
    np.testing.assert_allclose(eq.weights_of_gaps([3.0, 1.0, 2.0], 1), [0, 1, 0])
    np.testing.assert_allclose(eq.weights_of_gaps([1.0, 1.0, 2.0], 1), [0.5, 0.5, 0])
    np.testing.assert_allclose(eq.weights_of_gaps([0.0, 0.0, 2.0], 5), [0.5, 0.5, 0])
    np.testing.assert_allclose(eq.weights_of_gaps([2.0, 2.0], 3), [0.5, 0.5])
    np.testing.assert_allclose(
        eq.weights_of_gaps([1.0, 9.0, 4.0], 1e9), np.full(3, 1 / 3), rtol=1e-6
    )


@given(arrays(float, (4, 3), elements=st.just(0.0) | st.floats(1e-100, 1e100)))
def test_sample_weights_sum_to_one_and_are_optimal(r):
    w = eq.weights_of_residuals(r)
    np.testing.assert_allclose(w.sum(axis=1), 1)
    assert (w >= 0).all()
    for weights, row in zip(w, r, strict=True):
        if (row == 0).any():
            np.testing.assert_allclose(weights, (row == 0) / (row == 0).sum())
        else:
            # The minimum of Σ w²r on the simplex is 1/Σ(1/r).
            smallest = row.min()
            assert (weights**2 * (row / smallest)).sum() == pytest.approx(
                1 / (smallest / row).sum(), rel=1e-9
            )


def test_consensus_minimizes_the_consensus_term():
    rng = np.random.default_rng(0)
    V, q = [rng.random((5, 2)) for _ in range(3)], [rng.random(2) for _ in range(3)]
    alpha, p = np.array([0.2, 0.3, 0.5]), 4

    def term(flat):
        return sum(
            a**p * eq.consensus_gap(v, u, flat.reshape(5, 2))
            for a, v, u in zip(alpha, V, q, strict=True)
        )

    best = minimize(lambda x: 1e4 * term(x), np.zeros(10), tol=1e-12).x
    np.testing.assert_allclose(eq.consensus(V, q, alpha, p).ravel(), best, atol=1e-5)


def test_consensus_survives_a_power_that_underflows():
    V = [np.ones((2, 2)), 3 * np.ones((2, 2))]
    one = np.ones(2)
    np.testing.assert_allclose(eq.consensus(V, [one, one], np.array([0.5, 0.5]), 5000), 2)


def test_rescaling_keeps_the_product_and_the_scaled_coefficients():
    _, U, V, *_ = problem()
    for rescaled in (eq.rescale, eq.unit_columns):
        U2, V2 = rescaled(U, V)
        np.testing.assert_allclose(V2 @ U2.T, V @ U.T)
        np.testing.assert_allclose(V2 * U2.sum(0), V * U.sum(0))
    np.testing.assert_allclose(eq.rescale(U, V)[0].sum(axis=0), 1)
    U[:, 0] = 0
    assert np.isfinite(eq.rescale(U, V)[0]).all()


@given(arrays(float, (3, 4), elements=st.floats(-1e3, 1e3)))
def test_simplex_projection_is_the_nearest_point(Y):
    P = eq.simplex_rows(Y)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-9)
    # Optimality: ⟨y − p, z − p⟩ ≤ 0 for every vertex z of the simplex.
    for y, p in zip(Y, P, strict=True):
        assert (((y - p) * (np.eye(4) - p)).sum(axis=1) <= 1e-8 * (1 + np.abs(y).max())).all()


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_centers_are_weighted_means_however_many_weights_are_zero(share):
    rng = np.random.default_rng(0)
    weights = rng.random((80, 30)) * (rng.random((80, 30)) < share)
    weights[:, 4] = 0  # a cluster without members
    P = rng.standard_normal((80, 7))
    total = np.where(weights.sum(axis=0) > 0, weights.sum(axis=0), 1)
    centers = eq.cluster_centers(P, weights)
    np.testing.assert_allclose(centers, (weights.T @ P) / total[:, None], atol=1e-12)
    gaps = ((P[:, None] - centers) ** 2).sum(axis=2)
    np.testing.assert_allclose(eq.cluster_distances(P, centers), gaps, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e3])
def test_the_compiled_simplex_threshold_ends_whatever_the_rounding(scale):
    """Equal entries differ by roundings, and one that has dropped out must not come back for ever."""
    kernels = pytest.importorskip("manyview.engines.numpy.kernels")
    rng = np.random.default_rng(0)
    for _ in range(2000):
        y = scale * rng.integers(0, 3, size=5) / 3 + rng.integers(-2, 3, size=5) * np.spacing(scale)
        found = np.maximum(y - kernels.simplex_threshold(y), 0)
        np.testing.assert_allclose(found, eq.simplex_rows(y[None])[0], atol=1e-9 * scale)
