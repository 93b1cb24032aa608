"""MultiNMF: the original program's numbers, descent, and the undoing of rounds."""

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import blobs
from golden_files import load, tiny
from manyview import metrics
from manyview.baselines import MultiNMF, multinmf
from manyview.maths import equations as eq

VIEWS = (1, 2, 3)


def close(ours, theirs, tol=1e-8):
    np.testing.assert_allclose(ours, theirs, rtol=tol, atol=tol * np.abs(theirs).max())


def objective(X, U, V, consensus, a):
    return ((X - V @ U.T) ** 2).sum() + a * ((V * U.sum(axis=0) - consensus) ** 2).sum()


@pytest.mark.parametrize("s", VIEWS)
@pytest.mark.parametrize("n", [1, 5, 20])
def test_plain_nmf(s, n):
    views, _, U, V, _ = tiny()
    golden = load("multinmf")
    ours_U, ours_V = multinmf.nmf(views[s - 1], U[s - 1], V[s - 1], n)
    close(ours_U, golden[f"nmf_U_it{n}_{s}"])
    close(ours_V, golden[f"nmf_V_it{n}_{s}"])


@pytest.mark.parametrize("s", VIEWS)
@pytest.mark.parametrize("n", [1, 5, 20])
@pytest.mark.parametrize("name, a", [("a1", 0.01), ("a25", 0.25)])
def test_inner_iterations_of_one_view(s, n, name, a):
    views, _, U, V, z = tiny()
    golden = load("multinmf")
    X = views[s - 1]
    ours_U, ours_V = multinmf.pulled_nmf(X, U[s - 1], V[s - 1], z["Vstar"], a, n)
    close(ours_U, golden[f"pv_U_{name}_it{n}_{s}"])
    close(ours_V, golden[f"pv_V_{name}_it{n}_{s}"])
    close(objective(X, ours_U, ours_V, z["Vstar"], a), golden[f"pv_obj_{name}_it{n}_{s}"][-1])


@pytest.mark.parametrize("name, a", [("a1", 0.01), ("a33", 1 / 3)])
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_rounds(name, a, rounds):
    views, *_ = tiny()
    golden = load("multinmf_loop")
    U, V = ([golden[f"{f}0_{s}"] for s in VIEWS] for f in "UV")
    joint = multinmf.factorize(views, U, V, a, rounds, 20)
    close(joint.consensus, golden[f"Vstar_{name}_r{rounds}"])
    close(joint.history["objective"], golden[f"log_{name}_r{rounds}"].ravel()[1:])
    for s in VIEWS:
        close(joint.U[s - 1], golden[f"U_{name}_r{rounds}_{s}"])
        close(joint.V[s - 1], golden[f"V_{name}_r{rounds}_{s}"])


def test_each_inner_iteration_descends():
    views, _, U, V, z = tiny()
    seen = []
    u, v = eq.rescale(U[0], V[0])
    for _ in range(100):
        seen.append(objective(views[0], u, v, z["Vstar"], 0.25))
        u, v = multinmf.pulled_nmf(views[0], u, v, z["Vstar"], 0.25, 1)
    assert (np.diff(seen) <= 1e-12 * seen[0]).all()
    close(u.sum(axis=0), np.ones(3), 1e-12)


@pytest.mark.parametrize("weight", ["equal", 0.01])
def test_accepted_rounds_never_raise_the_objective(weight):
    views, y = blobs()
    model = MultiNMF(3, weight=weight, max_iter=15, inner_iter=30, random_state=0).fit(views)
    accepted = model.history_["objective"][model.history_["accepted"]]
    assert model.n_iter_ == len(accepted) == 15
    assert (np.diff(accepted) <= 0).all()
    assert metrics.accuracy(y, model.labels_) > 0.95


def test_a_round_that_raises_the_objective_is_undone_and_the_fit_ends(monkeypatch):
    views, *_ = tiny()
    golden = load("multinmf_loop")
    U, V = ([golden[f"{f}0_{s}"] for s in VIEWS] for f in "UV")
    # Inner iterations that only make things worse: every round but the first must be undone.
    monkeypatch.setattr(
        multinmf, "pulled_nmf", lambda X, U, V, consensus, a, n: eq.rescale(U, 2 * V + 1)
    )
    joint = multinmf.factorize(views, U, V, 0.01, 5, 20, max_redo=4)
    assert joint.history["accepted"] == [True] + [False] * 5
    for s in range(3):
        np.testing.assert_array_equal(joint.V[s], V[s])


def test_result_has_the_promised_shapes_and_ignores_units():
    views, _ = blobs()
    params = {"max_iter": 3, "inner_iter": 10, "start_iter": 20, "random_state": 0}
    model = MultiNMF(3, n_components=4, **params).fit(views)
    assert model.consensus_.shape == (60, 4)
    assert [U.shape for U in model.components_] == [(4, 8), (4, 5), (4, 6)]
    assert [V.shape for V in model.coefficients_] == [(60, 4)] * 3
    for U, V in zip(model.components_, model.coefficients_, strict=True):
        assert (U >= 0).all() and (V >= 0).all()
        close(U.sum(axis=1), np.ones(4), 1e-12)
    other = MultiNMF(3, n_components=4, **params).fit([1e6 * X for X in views])
    close(other.consensus_, model.consensus_)


def test_sparse_equals_dense():
    views, _ = blobs()
    views = [np.where(X > 1, X, 0) for X in views]
    params = {"max_iter": 3, "inner_iter": 10, "start_iter": 20, "random_state": 0}
    dense = MultiNMF(3, **params).fit(views)
    sparse = MultiNMF(3, **params).fit([sp.csr_matrix(X) for X in views])
    close(sparse.consensus_, dense.consensus_)
