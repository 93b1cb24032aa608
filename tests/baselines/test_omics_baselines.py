"""SNF, NEMO and PIntMF: formulas by hand, laws, and clusters that anybody would find."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Lasso
from sklearn.metrics import adjusted_rand_score

from conftest import blobs
from manyview.baselines import NEMO, SNF, ConcatLeiden, PIntMF
from manyview.baselines.fusion import fused_network, relative_similarity, similarity
from manyview.baselines.graphs import as_many_as
from manyview.baselines.pintmf import descend

METHODS = [SNF, NEMO, PIntMF, ConcatLeiden]


def test_similarity_by_hand():
    """Three points on a line at 0, 1 and 3; one neighbor each: distances squared 1, 4, 9."""
    squared = np.array([[0.0, 1, 9], [1, 0, 4], [9, 4, 0]])
    W = similarity(squared, 1, 0.5)
    # Nearest: 1, 1, 4. Between 0 and 1: s = 0.5 (1 + 1 + 1)/3 = 0.5, so exp(−2)/(√2π 0.5).
    assert W[0, 1] == pytest.approx(np.exp(-2) / (np.sqrt(2 * np.pi) * 0.5))
    # Between 1 and 3: s = 0.5 (1 + 4 + 4)/3 = 1.5 and d = 4.
    assert W[1, 2] == pytest.approx(np.exp(-((4 / 1.5) ** 2) / 2) / (np.sqrt(2 * np.pi) * 1.5))
    np.testing.assert_array_equal(W, W.T)


def test_fused_network_by_hand():
    """One round with one neighbor, written out entry by entry."""
    A = np.array([[1.0, 2, 1], [2, 1, 3], [1, 3, 1]])
    B = np.array([[1.0, 1, 4], [1, 1, 2], [4, 2, 1]])

    def kept(W):
        others = [sum(W[i, k] for k in range(3) if k != i) for i in range(3)]
        P = [[0.5 if i == j else W[i, j] / (2 * others[i]) for j in range(3)] for i in range(3)]
        return (np.array(P) + np.transpose(P)) / 2

    a, b = kept(A), kept(B)
    assert all((P.argmax(axis=1) == range(3)).all() for P in (a, b))  # each is nearest to itself
    expected = kept((kept(b) + kept(a)) / 2)
    np.testing.assert_allclose(fused_network([A, B], 1, 1), expected)


def test_relative_similarity_by_hand():
    W = np.array([[4.0, 2, 1], [2, 3, 0.5], [1, 0.5, 5]])
    # The two largest of each row, as shares: (4, 2)/6, (2, 3)/5, (1, 5)/6.
    kept = np.array([[4 / 6, 2 / 6, 0], [2 / 5, 3 / 5, 0], [1 / 6, 0, 5 / 6]])
    np.testing.assert_allclose(relative_similarity(W, 2), kept + kept.T)


@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(2, 12))
def test_fused_networks_are_symmetric_and_do_not_care_about_the_order_of_rows(seed, views, n):
    rng = np.random.default_rng(seed)
    points = [rng.random((n, 3)) for _ in range(views)]
    order = rng.permutation(n)

    def fused(rows):
        squared = [((X[rows][:, None] - X[rows]) ** 2).sum(axis=2) for X in points]
        k = min(3, n - 1)
        return fused_network([similarity(d, k, 0.5) for d in squared], k, 4)

    W = fused(np.arange(n))
    np.testing.assert_allclose(W, W.T, atol=1e-12)
    assert (W >= 0).all() and np.isfinite(W).all()
    np.testing.assert_allclose(fused(order), W[order][:, order], rtol=1e-6, atol=1e-9)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.9))
def test_descent_is_the_lasso_of_scikit_learn(seed, share):
    rng = np.random.default_rng(seed)
    W, X = rng.random((20, 3)), rng.standard_normal((20, 4))
    penalty = share * np.abs(W.T @ X).max()
    H = descend(W.T @ W, W.T @ X, penalty, False)
    reference = Lasso(alpha=penalty / 20, fit_intercept=False, tol=1e-10, max_iter=20_000).fit(W, X)

    def objective(A):
        return 0.5 * ((X - W @ A) ** 2).sum() + penalty * np.abs(A).sum()

    assert objective(H) <= objective(reference.coef_.T) * (1 + 1e-4) + 1e-9
    assert (descend(W.T @ W, W.T @ X, penalty, True) >= 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_well_separated_groups_are_found_and_repeated(method):
    if method is ConcatLeiden:
        pytest.importorskip("graspologic_native")
    views, y = blobs(n=60)
    model = method(3, random_state=0).fit(views)
    assert adjusted_rand_score(y, model.labels_) == 1
    np.testing.assert_array_equal(model.labels_, method(3, random_state=0).fit_predict(views))


def test_pintmf_has_weights_that_add_up_to_one_and_profiles_with_zeros():
    views, _ = blobs(n=60)
    noisy = [np.hstack([X, np.random.default_rng(0).random((60, 30))]) for X in views]
    model = PIntMF(3, random_state=0).fit(noisy)
    assert (model.consensus_ >= 0).all()
    np.testing.assert_allclose(model.consensus_.sum(axis=1), 1)
    assert any((H == 0).any() for H in model.components_) and 0 < model.explained_ <= 1
    dense = PIntMF(3, penalty=0.0, random_state=0).fit(noisy)
    assert dense.explained_ >= model.explained_ - 1e-6


def test_costs_are_told_before_memory_is_taken():
    small, large = (SNF().estimate_cost(n, 3) for n in (100, 10_000))
    assert large["bytes"] == 1e4 * small["bytes"] and large["seconds"] > small["seconds"] > 0
    assert NEMO().estimate_cost(10_000, 3)["seconds"] < large["seconds"]


def test_cliques_are_the_communities():
    """A ring of six cliques of five, joined by single edges: at resolution 1 each is a community."""
    pytest.importorskip("graspologic_native")
    A = np.kron(np.eye(6), 1 - np.eye(5))
    for i in range(6):
        A[5 * i, (5 * i + 7) % 30] = A[(5 * i + 7) % 30, 5 * i] = 1
    graph = sp.csr_array(A)
    labels, _ = as_many_as(graph, 6, 0)
    assert adjusted_rand_score(np.repeat(np.arange(6), 5), labels) == 1
    assert [as_many_as(graph, k, 0)[0].max() + 1 for k in (1, 3, 30)] == [1, 3, 30]


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("manyview.labels.PACKAGE", "no_such_package")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'manyview\[communities\]'"):
        ConcatLeiden(2).fit(blobs(n=20)[0])


def test_leiden_says_when_it_finds_another_number_of_communities():
    pytest.importorskip("graspologic_native")
    X = np.repeat(np.eye(4), 8, axis=0) * 100 + np.random.default_rng(0).normal(size=(32, 4)) * 0.01
    with pytest.warns(UserWarning, match="found 4 communities instead of the requested 2"):
        model = ConcatLeiden(2, n_neighbors=3, scale=None, random_state=0).fit([X])
    assert len(set(model.labels_)) == 4
