"""Eigenpairs of all parts of a graph at once, against those of every part densely."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import block_diag
from scipy.sparse.csgraph import connected_components

from manyview.maths.spectrum import (
    Sketch,
    diffusion_weights,
    leading_eigenvectors,
)
from manyview.maths.subspaces import filtered_parts

torch = pytest.importorskip("torch", reason="graphs on a device are tensors")

from manyview.engines.torch.graph import DeviceGraph  # noqa: E402


def part(n, seed):
    """A normalised random graph without any structure."""
    A = np.random.default_rng(seed).random((n, n)) ** 8
    A = A + A.T
    scale = A.sum(axis=1) ** -0.5
    return A * scale[:, None] * scale


def on_device(A, dtype=torch.float64):
    edges = sp.coo_array(A)
    i, j = (torch.as_tensor(ends.astype(np.int64)) for ends in edges.coords)
    return DeviceGraph.from_edges(i, j, torch.as_tensor(edges.data).to(dtype), len(A))


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("sizes", [[60], [80, 50, 40]])
def test_every_part_has_its_own_eigenpairs(sizes, repeated):
    blocks = [part(n, seed) for seed, n in enumerate(sizes)]
    start = torch.randn((sum(sizes), 12), generator=torch.Generator().manual_seed(0)).double()
    if repeated:  # a block that spans less than it has vectors
        start[:, 6:] = start[:, :6]
    S = on_device(block_diag(*blocks))
    found = filtered_parts(S, sizes, start, 4, 1e-8, max_rounds=200)
    for (values, vectors), block in zip(found, blocks, strict=True):
        expected = np.linalg.eigvalsh(block)[-4:]
        np.testing.assert_allclose(values, expected, atol=1e-9)
        vectors = vectors.numpy()
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-9)
        np.testing.assert_allclose(block @ vectors, vectors * expected, atol=1e-7)


def test_weights_say_which_vectors_need_not_be_exact():
    S, start = on_device(part(300, 0)), torch.randn((300, 14)).double()

    class Counted:
        products = 0

        def __matmul__(self, Y):
            self.products += 1
            return S @ Y

    alike, first = Counted(), Counted()
    filtered_parts(alike, [300], start, 8, 1e-6)
    filtered_parts(first, [300], start, 8, 1e-6, diffusion_weights)
    assert first.products < alike.products


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


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=60))
def test_components_on_a_device_are_those_of_the_host(n, links):
    A = np.zeros((n, n))
    for i, j in links:
        A[i % n, j % n] = A[j % n, i % n] = 1
    count, found = on_device(A).components()
    expected = connected_components(A, directed=False)
    assert count == expected[0]
    np.testing.assert_array_equal(found, expected[1])
