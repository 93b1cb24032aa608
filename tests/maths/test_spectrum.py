"""Leading eigenvectors of graphs: connected or not, by every way of finding them."""

import numpy as np
import pytest
import scipy.sparse as sp

from manyview.engines.affinity import affinity
from manyview.maths.spectrum import (
    Sketch,
    diffused,
    diffusion_weights,
    filtered_subspace,
    leading_eigenvectors,
    normalized,
)


@pytest.fixture(autouse=True)
def few_rows_at_a_time(monkeypatch):
    monkeypatch.setattr("manyview.maths.spectrum.BLOCK_ROWS", 50)


def ring_of_cliques(parts=4, size=40, seed=0, links=1):
    rng = np.random.default_rng(seed)
    blocks = [np.triu(rng.random((size, size)) < 0.3, 1) for _ in range(parts)]
    A = sp.block_diag(blocks, format="lil", dtype=float)
    for p in range(parts if links else 0):
        A[p * size, (p * size + size) % (parts * size)] = 1
    return sp.csr_array(A + A.T)


@pytest.mark.parametrize("links", [0, 1])
def test_block_iteration_finds_the_leading_eigenpairs_repeated_ones_too(links):
    S = normalized(ring_of_cliques(links=links))
    values, vectors = filtered_subspace(S, 6, np.random.default_rng(0), sketch=Sketch(tol=1e-10))
    exact = np.linalg.eigvalsh(S.toarray())[-6:]
    np.testing.assert_allclose(np.sort(values), exact, atol=1e-8)
    np.testing.assert_allclose(S @ vectors, vectors * values, atol=1e-6)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(6), atol=1e-10)
    if not links:
        assert (values > 1 - 1e-8).sum() == 4


def test_no_vectors_are_none():
    values, vectors = leading_eigenvectors(
        normalized(ring_of_cliques()), 0, np.random.default_rng(0)
    )
    assert values.shape == (0,) and vectors.shape == (160, 0)


@pytest.mark.parametrize("links", [0, 1])
def test_above_the_limit_the_block_iteration_takes_over(links):
    S = normalized(ring_of_cliques(size=300, links=links))
    rng = np.random.default_rng(0)
    exact, vectors = leading_eigenvectors(S, 5, rng)
    values, found = leading_eigenvectors(S, 5, rng, dense_up_to=100, blocks_above=100)
    np.testing.assert_allclose(values, exact, atol=1e-4)
    # The same four-dimensional space of clusters, whatever its basis.
    overlap = np.linalg.svd(vectors[:, :4].T @ found[:, :4], compute_uv=False)
    np.testing.assert_allclose(overlap, 1, atol=1e-4)


def test_eigenvectors_agree_with_the_dense_ones():
    X = np.random.default_rng(0).random((400, 3))
    A = affinity(X, 8)
    d = 1 / np.sqrt(A.sum(axis=1))
    S = sp.csr_array(A.multiply(d[:, None]).multiply(d[None]))
    _, E = leading_eigenvectors(S, 5, np.random.default_rng(0))
    values, vectors = np.linalg.eigh(S.toarray())
    np.testing.assert_allclose(np.diag(E.T @ S @ E), values[::-1][:5], atol=1e-7)
    overlap = E.T @ vectors[:, ::-1][:, :5]
    np.testing.assert_allclose(np.linalg.svd(overlap)[1], 1, atol=1e-5)


def test_a_normalized_graph_has_the_spectrum_of_a_random_walk():
    """Eigenvalues in [−1, 1], eigenvalue 1 with √degree; vertices without edges stay zero."""
    A = ring_of_cliques()
    A = sp.block_diag([A, sp.csr_array((3, 3))], format="csr")
    S = normalized(sp.csr_array(A))
    values = np.linalg.eigvalsh(S.toarray())
    assert values.min() >= -1 - 1e-12 and values.max() == pytest.approx(1)
    root = np.sqrt(np.asarray(A.sum(axis=1)).ravel())
    np.testing.assert_allclose(S @ root, root, atol=1e-12)
    assert abs(S - S.T).max() < 1e-15 and S[-3:].nnz == 0


@pytest.mark.parametrize("parts", [1, 3])
def test_larger_components_come_first(parts):
    """Every component has eigenvalue 1 once; of more components than asked for the largest are kept."""
    sizes = [30, 20, 10][:parts]
    S = normalized(sp.csr_array(sp.block_diag([np.ones((n, n)) - np.eye(n) for n in sizes])))
    values, vectors = leading_eigenvectors(S, parts, np.random.default_rng(0))
    np.testing.assert_allclose(values, 1)
    for column, start, n in zip(vectors.T, np.cumsum([0, *sizes]), sizes, strict=False):
        inside = np.zeros(sum(sizes), dtype=bool)
        inside[start : start + n] = True
        np.testing.assert_allclose(column[inside], n**-0.5)
        assert (column[~inside] == 0).all()
    fewer, _ = leading_eigenvectors(S, 1, np.random.default_rng(0))
    assert len(fewer) == 1


def test_diffusion_rows_have_unit_length_and_early_vectors_count_more():
    S = normalized(ring_of_cliques())
    P = diffused(*leading_eigenvectors(S, 6, np.random.default_rng(0)))
    np.testing.assert_allclose((P * P).sum(axis=1), 1)
    rho = np.linspace(0, 1, 11)
    weights = diffusion_weights(rho)
    assert weights[0] == 0 and weights[-1] == 4 and (np.diff(weights) > 0).all()
