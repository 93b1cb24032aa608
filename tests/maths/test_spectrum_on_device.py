"""Eigenpairs of a graph on a device, against those of every part densely."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import block_diag
from scipy.sparse.csgraph import connected_components

from manyview.maths.spectrum import (
    Sketch,
    filtered_subspace,
    leading_eigenvectors,
)

torch = pytest.importorskip("torch", reason="graphs on a device are tensors")

from manyview.engines.torch.graph import DeviceGraph  # noqa: E402


def part(n, seed):
    """A normalized random graph without any structure."""
    A = np.random.default_rng(seed).random((n, n)) ** 8
    A = A + A.T
    scale = A.sum(axis=1) ** -0.5
    return A * scale[:, None] * scale


def on_device(A, dtype=torch.float64):
    edges = sp.coo_array(A)
    i, j = (torch.as_tensor(ends.astype(np.int64)) for ends in edges.coords)
    return DeviceGraph.from_edges(i, j, torch.as_tensor(edges.data).to(dtype), len(A))


@pytest.mark.parametrize("repeated", [False, True])
def test_a_block_finds_the_eigenpairs(repeated):
    A = part(80, 0)
    start = torch.randn((80, 12), generator=torch.Generator().manual_seed(0)).double()
    if repeated:  # a block that spans less than it has vectors
        start[:, 6:] = start[:, :6]
    sketch = Sketch(tol=1e-8, start=start)
    rng = np.random.default_rng(0)
    values, vectors = filtered_subspace(on_device(A), 4, rng, max_rounds=200, sketch=sketch)
    expected, vectors = np.linalg.eigvalsh(A)[-4:], vectors.numpy()
    np.testing.assert_allclose(values, expected, atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(A @ vectors, vectors * expected, atol=1e-7)


def test_a_graph_on_a_device_has_the_vectors_of_the_host():
    A = block_diag(part(700, 0), part(400, 1), part(30, 2), part(3, 3))
    n_vectors, rng = 9, np.random.default_rng(0)
    values, vectors = leading_eigenvectors(on_device(A), n_vectors, rng)
    expected, host = leading_eigenvectors(sp.csr_array(A), n_vectors, rng)
    np.testing.assert_allclose(values, expected, atol=1e-7)
    np.testing.assert_allclose(abs(vectors.numpy()[:, :4]), abs(host[:, :4]), atol=1e-6)
    assert (np.count_nonzero(vectors.numpy(), axis=0)[:4] == [700, 400, 30, 3]).all()


def test_parts_of_a_large_graph_start_from_vectors_nearby():
    A = block_diag(part(300, 0), part(250, 1))
    S, n_vectors, rng = on_device(A, torch.float32), 6, np.random.default_rng(0)
    sketch = Sketch(tol=1e-3)
    given_sizes = {"dense_up_to": 0, "blocks_above": 100}
    values, vectors = leading_eigenvectors(S, n_vectors, rng, sketch, **given_sizes)
    near = Sketch(tol=1e-3, start=vectors)
    again, _ = leading_eigenvectors(S, n_vectors, rng, near, **given_sizes)
    expected = np.sort(np.linalg.eigvalsh(A))[-n_vectors:][::-1]
    np.testing.assert_allclose(values, expected, atol=2e-3)
    np.testing.assert_allclose(again, expected, atol=2e-3)


@given(st.integers(1, 40), st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=60))
def test_components_on_a_device_are_those_of_the_host(n, links):
    A = np.zeros((n, n))
    for i, j in links:
        A[i % n, j % n] = A[j % n, i % n] = 1
    count, found = on_device(A).components()
    expected = connected_components(A, directed=False)
    assert count == expected[0]
    np.testing.assert_array_equal(found, expected[1])
