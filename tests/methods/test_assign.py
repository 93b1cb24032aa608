"""Labels from graphs: connected, disconnected, degenerate."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from manyview.maths.spectrum import leading_eigenvectors
from manyview.methods.assign import assign, assign_new, spectral, spectral_from_graph


def rng():
    return np.random.default_rng(0)


def rings(sizes):
    """Disjoint cycles: a graph with a known number of components."""
    blocks = [
        sp.diags_array([np.ones(n - 1)], offsets=[1], shape=(n, n), format="csr") for n in sizes
    ]
    A = sp.block_diag(blocks, format="csr")
    for start, n in zip(np.cumsum([0, *sizes[:-1]]), sizes, strict=True):
        A[start, start + n - 1] = 1
    return sp.csr_array(A + A.T)


@pytest.mark.parametrize("sizes", [(300, 250, 220), (500, 40, 30, 20), (30, 20)])
@pytest.mark.parametrize("unit_rows", [False, True])
def test_components_are_clusters(sizes, unit_rows):
    truth = np.repeat(np.arange(len(sizes)), sizes)
    labels = spectral_from_graph(rings(sizes), len(sizes), rng(), unit_rows)
    assert adjusted_rand_score(truth, labels) == 1


def test_eigenvectors_agree_with_the_dense_ones():
    X = rng().random((400, 3))
    from manyview.engines.affinity import affinity

    A = affinity(X, 8)
    d = 1 / np.sqrt(A.sum(axis=1))
    S = sp.csr_array(A.multiply(d[:, None]).multiply(d[None]))
    _, E = leading_eigenvectors(S, 5, rng())
    values, vectors = np.linalg.eigh(S.toarray())
    np.testing.assert_allclose(np.diag(E.T @ S @ E), values[::-1][:5], atol=1e-7)
    overlap = E.T @ vectors[:, ::-1][:, :5]
    np.testing.assert_allclose(np.linalg.svd(overlap)[1], 1, atol=1e-5)


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
