"""Labels from the consensus: graphs connected, disconnected, degenerate; above the limits of exactness."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from conftest import blobs
from manyview import WMNMF
from manyview.engines.numpy import neighbors
from manyview.methods.assign import assign, assign_new, kmeans, spectral, spectral_from_graph


def rng():
    return np.random.default_rng(0)


def rings(sizes):
    """Disjoint cycles: a graph with a known number of components."""
    blocks = [
        sp.diags_array([np.ones(n - 1)], offsets=[1], shape=(n, n), format="csr") for n in sizes
    ]
    A = sp.block_diag(blocks, format="lil")
    for start, n in zip(np.cumsum([0, *sizes[:-1]]), sizes, strict=True):
        A[start, start + n - 1] = 1
    return sp.csr_array((A + A.T).tocsr())


@pytest.mark.parametrize("sizes", [(300, 250, 220), (500, 40, 30, 20), (30, 20)])
@pytest.mark.parametrize("unit_rows", [False, True])
def test_components_are_clusters(sizes, unit_rows):
    truth = np.repeat(np.arange(len(sizes)), sizes)
    labels = spectral_from_graph(rings(sizes), len(sizes), rng(), unit_rows)
    assert adjusted_rand_score(truth, labels) == 1


@pytest.mark.parametrize("method", ["spectral", "njw", "kmeans", "argmax"])
def test_separated_consensus(method):
    y = np.arange(90) % 3
    V = np.eye(3)[y] + 0.05 * rng().random((90, 3))
    labels = assign(V, 3, method, rng())
    assert adjusted_rand_score(y, labels) == 1
    new = np.eye(3) + 0.02
    assert adjusted_rand_score(range(3), assign_new(new, V, labels, method)) == 1
    np.testing.assert_array_equal(assign_new(V, V, labels, method), labels)


def test_kernels_that_underflow_do_not_crash():
    X = 1e4 * rng().random((60, 3))
    labels = spectral(X, 4, rng(), kind="heat", width=1.0)
    assert labels.shape == (60,)
    far = np.vstack([rng().random((30, 2)) * 0.1, [[500.0, 500.0]]])
    assert len(np.unique(spectral(far, 2, rng(), kind="heat"))) == 2


@pytest.mark.parametrize("method", ["spectral", "njw"])
def test_labels_by_landmarks_are_those_of_the_exact_method(method):
    views, y = blobs(n=1500, clusters=4)
    exact = assign(views[0], 4, method, rng())
    found = assign(views[0], 4, method, rng(), landmarks=400, above=500)
    assert adjusted_rand_score(exact, found) >= 0.99
    assert adjusted_rand_score(y, found) >= 0.99


def test_spectral_labels_of_a_disconnected_graph_are_its_parts():
    y = np.repeat(np.arange(5), 100)
    X = 100.0 * y[:, None] + rng().random((500, 3))
    assert adjusted_rand_score(y, spectral(X, 5, rng())) == 1


def test_kmeans_starts_tried_on_a_sample():
    views, y = blobs(n=900)
    found = kmeans(views[0], 3, rng(), 5, sample=200)
    assert adjusted_rand_score(y, found) == 1


def test_a_fit_with_approximate_neighbours(monkeypatch):
    pytest.importorskip("numba")
    views, y = blobs(n=900, features=(20, 5, 18))
    monkeypatch.setattr(neighbors, "EXACT", 300)
    assert adjusted_rand_score(y, WMNMF(3, random_state=0).fit_predict(views)) > 0.98
