"""The neighbor graph of a view: its laws for every kind of edge, and the approximate index."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity, euclidean_distances

from manyview.engines.affinity import AFFINITIES, affinity, links, nearest_neighbors
from manyview.engines.numpy import neighbors


def some_rows(n=40, m=5, seed=0):
    return np.random.default_rng(seed).random((n, m))


@given(st.integers(0, 100), st.integers(1, 8), st.sampled_from(AFFINITIES), st.booleans())
def test_a_graph_is_symmetric_nonnegative_and_without_loops(seed, k, kind, mutual):
    A = affinity(some_rows(seed=seed), k, kind, mutual=mutual)
    assert abs(A - A.T).max() == 0 and (A.data > 0).all() and (A.data <= 1 + 1e-12).all()
    assert (A.diagonal() == 0).all()
    degrees = np.diff(A.indptr)
    assert (degrees <= k).all() if mutual else (degrees >= k).all()


def test_mutual_edges_are_edges_of_the_union():
    X = some_rows()
    mutual, union = (affinity(X, 4, mutual=both).toarray() > 0 for both in (True, False))
    assert (mutual <= union).all() and mutual.sum() < union.sum()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_edges_weigh_what_their_kind_says(form):
    X = some_rows()
    d = euclidean_distances(X)
    expected = {
        "binary": np.ones_like(d),
        "heat": np.exp(-(d**2) / (2 * d.mean() ** 2)),
        "cosine": cosine_similarity(X),
    }
    for kind in AFFINITIES:
        A = affinity(form(X), 5, kind).toarray()
        np.testing.assert_allclose(A, expected[kind] * (A > 0), atol=1e-9, err_msg=kind)
    narrow = affinity(form(X), 5, "heat", width=0.1).toarray()
    np.testing.assert_allclose(narrow, np.exp(-(d**2) / 0.1) * (narrow > 0), atol=1e-9)


@pytest.mark.parametrize("kind", AFFINITIES)
def test_permuting_rows_permutes_the_graph(kind):
    X, order = some_rows(), np.random.default_rng(1).permutation(40)
    A, B = affinity(X, 5, kind).toarray(), affinity(X[order], 5, kind).toarray()
    np.testing.assert_allclose(B, A[order][:, order], atol=1e-12)


@pytest.mark.parametrize("kind", AFFINITIES)
def test_links_of_fitted_rows_are_their_own_edges_and_themselves(kind):
    X = some_rows()
    found = links(X, X, 6, kind).toarray()
    assert ((found > 0).sum(axis=1) == 6).all()
    np.testing.assert_allclose(np.diag(found), 1)
    np.fill_diagonal(found, 0)
    np.testing.assert_allclose(
        np.maximum(found, found.T), affinity(X, 5, kind).toarray(), atol=1e-9
    )


def test_rows_with_holes_are_compared_by_what_both_have():
    X = some_rows(n=30, m=8)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    X[:, 0] = np.arange(30)
    indices, squared = nearest_neighbors(X, 3)
    gap = X[:, None] - X[None]
    d = np.nanmean(gap**2, axis=2) * 8
    np.fill_diagonal(d, np.inf)
    np.testing.assert_allclose(squared, np.sort(d, axis=1)[:, :3])
    np.testing.assert_allclose(np.take_along_axis(d, indices, 1), squared)


def test_an_unknown_kind_of_edge_is_a_sentence():
    with pytest.raises(ValueError, match="affinity must be one of"):
        affinity(some_rows(), 3, "linear")


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_index_gives_nearly_the_exact_graph(form, monkeypatch):
    pytest.importorskip("numba")
    X = form(np.abs(np.random.default_rng(0).standard_normal((600, 20))))
    exact, d_exact = nearest_neighbors(X, 5)
    monkeypatch.setattr(neighbors, "EXACT", 100)
    found, d = nearest_neighbors(X, 5)
    recall = np.mean([np.isin(a, b).mean() for a, b in zip(exact, found, strict=True)])
    assert recall > 0.95 and (found != np.arange(600)[:, None]).all()
    assert (d >= d_exact - 1e-9).all() and (np.diff(d, axis=1) >= 0).all()


def test_the_index_never_writes_sparse_rows_out(monkeypatch):
    """Nor does it change them: columns that are not in order stay so."""
    pytest.importorskip("numba")
    n, m, rng = 600, 40_000, np.random.default_rng(0)
    columns = rng.integers(20, m, (n, 4))
    columns[:, :3] = rng.integers(20, size=(n, 3)) + np.array([40, 20, 0])
    entries = (rng.random(4 * n).astype(np.float32), columns.ravel(), np.arange(0, 4 * n + 1, 4))
    X = sp.csr_array(entries, shape=(n, m))
    exact, _ = nearest_neighbors(sp.csr_array(X.toarray()), 5)
    monkeypatch.setattr(neighbors, "EXACT", 100)
    whole, written = sp.csr_array.toarray, []
    noted = lambda X: written.append(X.shape[0]) or whole(X)  # noqa: E731
    monkeypatch.setattr(sp.csr_array, "toarray", noted)
    found, _ = nearest_neighbors(X, 5)
    assert max(written, default=0) < n / 4  # means of cells
    np.testing.assert_array_equal(X.indices, columns.ravel())
    assert np.mean([np.isin(a, b).mean() for a, b in zip(exact, found, strict=True)]) > 0.95


def test_a_poor_index_says_so(monkeypatch):
    pytest.importorskip("numba")
    X = np.random.default_rng(0).random((500, 4))
    wrong = np.tile(np.arange(5), (500, 1))
    monkeypatch.setattr(neighbors, "searched", lambda *args: (wrong, np.arange(len(wrong))))
    with pytest.warns(UserWarning, match="finds only .* of the 5 nearest neighbors"):
        neighbors.index_neighbors(X, 5, 0)
