"""The loop: descent, positivity, and the methods it contains as special cases."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from conftest import blobs
from manyview._types import CollapseWarning, Split, Stop
from manyview.engines.numpy.rows import residual_rows
from manyview.initialize import gnmf, starting_factors
from manyview.maths import equations as eq
from manyview.maths.solvers import Multiplicative, SimplexHALS
from manyview.regularizers import Graph, NoPenalty, Orthogonal, Sparse
from manyview.robust import RobustWMNMF
from manyview.wmnmf import WMNMF, Loop

REGULARIZERS = {
    "graph": Graph(3),
    "heat": Graph(3, "heat", mutual=True),
    "sparse": Sparse(),
    "orthogonal": Orthogonal(),
    "none": NoPenalty(),
}
SOLVERS = {"multiplicative": Multiplicative, "hals": SimplexHALS}
NOTHING = Split(0.0, 0.0, 0.0)


def random_views(rng, n=20, features=(6, 4, 5)):
    views = [rng.random((n, m)) * rng.integers(1, 4) for m in features]
    views[0][rng.random(views[0].shape) < 0.3] = 0
    return views


def random_problem(seed, solver, regularizer, k=3):
    rng = np.random.default_rng(seed)
    Xs = random_views(rng)
    terms = [regularizer.prepare(X, "") for X in Xs]
    start = starting_factors(Xs, "random", k, terms, solver, 3, rng)
    return Xs, start, terms


@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", range(4))
def test_the_objective_never_rises(solver, regularizer, seed):
    solver = SOLVERS[solver]()
    beta = [0.01, 1.0, 100.0, 0.3][seed]
    Xs, start, terms = random_problem(seed, solver, REGULARIZERS[regularizer])
    result = Loop(Xs, terms, solver, 3, beta, 6, 8, rescale=False).run(start)
    values = result.history["objective"]
    assert np.diff(values).max() <= 1e-10 * values[0]
    assert values[-1] < values[0]
    factors = result.factors
    for array in (*factors.U, *factors.V, factors.consensus, factors.alpha, factors.w):
        assert np.isfinite(array).all() and (array >= 0).all()
    assert factors.alpha.sum() == pytest.approx(1)
    np.testing.assert_allclose(factors.w.sum(axis=1), 1)
    if solver.unit_sums:
        for U in factors.U:
            np.testing.assert_allclose(U.sum(axis=0), 1)


@pytest.mark.parametrize("solver", SOLVERS)
def test_history_ends_at_the_objective_written_out(solver):
    solver = SOLVERS[solver]()
    Xs, start, terms = random_problem(0, solver, Graph(3))
    result = Loop(Xs, terms, solver, 3, 0.2, 3, 4).run(start)
    f = result.factors
    expected = 0.0
    for s, X in enumerate(Xs):
        gap = f.V[s] @ np.diag(f.U[s].sum(axis=0)) - f.consensus
        expected += ((f.w[:, [s]] * (X - f.V[s] @ f.U[s].T)) ** 2).sum()
        expected += f.alpha[s] ** 3 * (gap**2).sum() + 0.2 * terms[s].value(f.V[s])
    assert result.history["objective"][-1] == pytest.approx(expected, rel=1e-10)
    lengths = {len(column) for column in result.history.values()}
    assert lengths == {1 + 3 * (3 * 4 + 1)}


def test_entries_of_a_positive_start_stay_positive():
    solver = Multiplicative()
    Xs, start, terms = random_problem(1, solver, Graph(3))
    Xs[0][:, 0] = 0
    Xs[1][3] = 0
    result = Loop(Xs, terms, solver, 3, 0.1, 4, 10).run(start)
    for array in (*result.factors.U, *result.factors.V, result.factors.consensus):
        assert (array > 0).all()


def test_without_consensus_and_weights_the_steps_are_gnmf():
    rng = np.random.default_rng(0)
    X = random_views(rng)[0]
    U, V = rng.random((6, 3)), rng.random((20, 3))
    g, solver, weight = Graph(3).prepare(X), Multiplicative(), 2.0
    U, V = eq.unit_columns(U, V)
    one = np.ones((20, 1))
    H, q = U.T @ U, np.ones(3)
    V1 = solver.update_V(V, X @ U, H, q, 0 * V, one, 0.0, weight, Split(*g.split(V), 0.0))
    U1 = solver.update_U(U, eq.sums_over_rows(X, V1, 0 * V, one), 0.0)
    theirs_U, theirs_V = gnmf(X, U, V, g, weight, 1)
    np.testing.assert_allclose(eq.unit_columns(U1, V1)[0], theirs_U, rtol=1e-12)
    np.testing.assert_allclose(eq.unit_columns(U1, V1)[1], theirs_V, rtol=1e-12)


def test_with_unit_columns_the_steps_are_multinmf():
    """a given, w = 1, β = 0: V ← V∘(XU + aV*)/(VUᵀU + aV), and its U step, written out."""
    rng = np.random.default_rng(0)
    X, V_star, a = random_views(rng)[0], rng.random((20, 3)), 0.3
    U, V = eq.rescale(rng.random((6, 3)), rng.random((20, 3)))
    solver, one = Multiplicative(), np.ones((20, 1))
    V1 = V * (X @ U + a * V_star) / (V @ U.T @ U + a * V)
    H, q = U.T @ U, U.sum(axis=0)
    np.testing.assert_allclose(
        solver.update_V(V, X @ U, H, q, V_star, one, a, 0.0, NOTHING), V1, rtol=1e-12
    )
    top = X.T @ V + a * (V * V_star).sum(axis=0)
    bottom = U @ V.T @ V + a * (V**2).sum(axis=0) * U.sum(axis=0)
    np.testing.assert_allclose(
        solver.update_U(U, eq.sums_over_rows(X, V, V_star, one), a), U * top / bottom, rtol=1e-12
    )


def test_hals_steps_are_optimal_in_each_coordinate():
    """One sweep with the regularizer absent: the last column changed is at its exact minimum."""
    rng = np.random.default_rng(3)
    X, V_star, a = random_views(rng)[0], rng.random((20, 3)), 0.3
    U, V = eq.rescale(rng.random((6, 3)), rng.random((20, 3)))
    w2 = rng.random((20, 1))
    solver = SimplexHALS()
    V = solver.update_V(V, X @ U, U.T @ U, np.ones(3), V_star, w2, a, 0.0, NOTHING)
    negative, positive = eq.split_V(V, X @ U, U.T @ U, np.ones(3), V_star, w2, a, 0.0, (0.0, 0.0))
    gradient = (positive - negative)[:, -1]
    assert np.abs(gradient[V[:, -1] > 0]).max() < 1e-12 and gradient.min() > -1e-12


def test_hals_is_ahead_of_the_multiplicative_rule():
    rng = np.random.default_rng(0)
    Xs = random_views(rng, n=60, features=(20, 15))
    results = {}
    for name, kind in SOLVERS.items():
        terms = [NoPenalty()] * 2
        start = starting_factors(Xs, "random", 4, terms, SimplexHALS(), 3, np.random.default_rng(1))
        results[name] = (
            Loop(Xs, terms, kind(), 3, 0.0, 2, 20).run(start).history["reconstruction"][-1]
        )
    assert results["hals"] <= results["multiplicative"]


def test_residuals_where_the_difference_cancels():
    rng = np.random.default_rng(0)
    U, V = rng.random((30, 3)), rng.random((50, 3))
    X = V @ U.T + 1e-9 * rng.random((50, 30))
    exact = ((X - V @ U.T) ** 2).sum(axis=1)
    x_sq = (X**2).sum(axis=1)
    for matrix in (X, sp.csr_array(X)):
        np.testing.assert_allclose(
            residual_rows(matrix, X @ U, U, V, x_sq, U.T @ U), exact, rtol=1e-5
        )


def test_stop_reasons_and_warnings():
    views, _ = blobs()
    assert WMNMF(3, random_state=0).fit(views).stop_reason_ is Stop.ROUNDS
    with pytest.warns(CollapseWarning, match="'view2' has 94%"):
        model = WMNMF(3, random_state=0, solver="hals", tol=1e-3, max_iter=100).fit(views)
    assert model.stop_reason_ is Stop.CONVERGED and model.n_iter_ < 100
    with pytest.warns(ConvergenceWarning, match="stopped after 2 rounds"):
        model = WMNMF(3, random_state=0, tol=1e-12).fit(views)
    assert model.stop_reason_ is Stop.MAX_ITER
    seen = []

    def stop_soon(info):
        seen.append(info["objective"])
        return len(seen) == 7

    model = WMNMF(3, random_state=0, callback=stop_soon).fit(views)
    assert model.stop_reason_ is Stop.CALLBACK and len(seen) == 7 and model.n_iter_ == 1
    with pytest.warns(CollapseWarning, match="has 100% of the view weight"):
        WMNMF(3, random_state=0, p=1).fit(views)


@pytest.mark.parametrize("estimator", [WMNMF, RobustWMNMF])
def test_a_callback_gets_the_frozen_state(estimator):
    views, _ = blobs()
    kept, last = [], {}

    def look(info):
        kept.append(info)
        last.update(V=info.state.V[info["view"]], U=info.state.U)
        with pytest.raises(FrozenInstanceError):
            info.state.U = ()

    model = estimator(3, random_state=0, callback=look).fit(views)
    assert last["V"].shape == (len(views[0]), 3)
    assert [U.shape for U in last["U"]] == [(X.shape[1], 3) for X in views]
    assert all(info.state is None and "objective" in info for info in kept)
    plain = estimator(3, random_state=0).fit(views)
    assert np.array_equal(model.consensus_, plain.consensus_)


class Ridge:
    """A user's own regularizer, g(V) = ‖V‖²."""

    def prepare(self, X, view):
        return self

    def value(self, V):
        return float((V**2).sum())

    def split(self, V):
        return 0.0, V


class CurvedRidge(Ridge):
    def curvature(self, V):
        return 1.0


def test_a_users_own_regularizer():
    views, _ = blobs()
    WMNMF(3, random_state=0, regularizer=Ridge()).fit(views)
    # Only with unit column sums can V not escape the penalty by growing U.
    strong, weak = (
        WMNMF(3, random_state=0, solver="hals", regularizer=CurvedRidge(), beta=beta).fit(views)
        for beta in (1.0, 0.001)
    )
    assert strong.consensus_.sum() < 0.9 * weak.consensus_.sum()
    with pytest.raises(ValueError, match=r"needs a regularizer with curvature\(V\), and Ridge"):
        WMNMF(3, solver="hals", regularizer=Ridge()).fit(views)
    with pytest.raises(ValueError, match="regularizer must be 'graph'"):
        WMNMF(3, regularizer="ridge").fit(views)


@pytest.mark.parametrize("init", ["gnmf", "random", "nndsvd"])
def test_starts_are_positive_and_seeded(init):
    views, _ = blobs()
    solver, terms = Multiplicative(), [Graph(5).prepare(X) for X in views]
    one, same, other = (
        starting_factors(views, init, 9, terms, solver, 5, np.random.default_rng(seed))
        for seed in (0, 0, 1)
    )
    for s in range(3):
        assert (one.U[s] > 0).all() and (one.V[s] > 0).all()
        np.testing.assert_array_equal(one.V[s], same.V[s])
        assert not np.array_equal(one.V[s], other.V[s])


def test_a_stop_is_a_stop_for_all_starts():
    views, _ = blobs()
    seen = []

    def stop(info):
        seen.append(info["total"])
        return np.bool_(len(seen) == 5)

    model = WMNMF(3, random_state=0, n_init=3, callback=stop).fit(views)
    assert model.stop_reason_ is Stop.CALLBACK and len(seen) == 5
    assert seen[0] == 3 * 2 * 30 * 3


def test_more_starts_are_stacked():
    views, _ = blobs()
    model = WMNMF(3, random_state=0, n_init=4).fit(views)
    assert model.consensus_.shape == (60, 12)
    assert model.transform(views).shape == (60, 12)
    assert len(model.get_feature_names_out()) == 12
    first = WMNMF(3, random_state=0).fit(views)
    np.testing.assert_array_equal(model.consensus_[:, :3], first.consensus_)


def test_bad_own_starts_get_a_sentence():
    views, _ = blobs()
    good = WMNMF(3, random_state=0).fit(views)
    init = {"components": good.components_, "coefficients": good.coefficients_}
    WMNMF(3, init=init).fit(views)
    for change, message in (
        ({"components": good.components_[:2]}, "2 arrays for 3 views"),
        ({"coefficients": [-V for V in good.coefficients_]}, "finite, nonnegative"),
        ({"components": good.coefficients_}, r"of shape \(3, 8\)"),
    ):
        with pytest.raises(ValueError, match=message):
            WMNMF(3, init=init | change).fit(views)
    with pytest.raises(ValueError, match="'components' and 'coefficients'"):
        WMNMF(3, init={"U": 1}).fit(views)
