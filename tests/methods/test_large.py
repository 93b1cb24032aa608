"""What large data change: eigenvectors as exact as they count, starts on samples, bits on threads."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from conftest import blobs
from manyview import RobustWMNMF
from manyview import fuse as agree
from manyview import labels as assign
from manyview.engines.numpy import graph, neighbors
from manyview.engines.threads import Threads
from manyview.labels import kmeans
from manyview.maths import spectrum


def ring_of_cliques(parts=4, size=40, seed=0, links=1):
    rng = np.random.default_rng(seed)
    blocks = [np.triu(rng.random((size, size)) < 0.3, 1) for _ in range(parts)]
    A = sp.block_diag(blocks, format="lil", dtype=float)
    for p in range(parts if links else 0):
        A[p * size, (p * size + size) % (parts * size)] = 1
    return sp.csr_array(A + A.T)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_step_of_a_block_iteration_is_the_same_on_any_threads(threads, monkeypatch):
    monkeypatch.setattr("manyview.engines.threads.CHUNK_ROWS", 50)
    S, rng = spectrum.normalized(ring_of_cliques()), np.random.default_rng(0)
    now, before = rng.standard_normal((2, S.shape[0], 7))
    one = graph.block_step(None, S)(now, before, 0.7, -0.2, 1.5)
    np.testing.assert_allclose(one, 0.7 * (S @ now) - 0.2 * now + 1.5 * before, atol=1e-5)
    several = graph.block_step(Threads(threads), S)(now, before, 0.7, -0.2, 1.5)
    np.testing.assert_array_equal(several, one)


@pytest.mark.parametrize("links", [0, 1])
@pytest.mark.parametrize("near", [False, True])
def test_points_of_a_diffusion_map_stay_where_they_are(links, near):
    """Eigenvectors only as exact as they count, from vectors nearby: the same distances."""
    A, rng = ring_of_cliques(size=300, links=links), np.random.default_rng(0)
    exact = spectrum.diffused(*spectrum.leading_eigenvectors(spectrum.normalized(A), 12, rng))
    blockwise = partial(spectrum.leading_eigenvectors, dense_up_to=100, blocks_above=100)
    sketch = spectrum.Sketch(
        partial(graph.block_step, None), spectrum.diffusion_weights, spectrum.PLACING
    )
    if near:
        other = ring_of_cliques(size=300, links=1 - links)
        _, start = blockwise(spectrum.normalized(other), 12, rng, sketch)
        sketch = replace(sketch, start=start)
    found = spectrum.diffused(*blockwise(spectrum.normalized(A), 12, rng, sketch))
    np.testing.assert_allclose(found @ found.T, exact @ exact.T, atol=0.02)


def test_starts_of_many_clusters_are_as_good_in_fewer_coordinates(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(40, size=1200)
    X = rng.standard_normal((40, 90))[y] + 0.6 * rng.standard_normal((1200, 90))
    mass = rng.integers(1, 4, size=1200).astype(float)
    best = KMeans(40, n_init=10, random_state=0).fit(X, None, mass).inertia_
    monkeypatch.setattr(assign, "EASY", 0)
    monkeypatch.setattr(assign, "FEWEST_ROWS", 800)
    monkeypatch.setattr(assign, "ROWS_PER_CLUSTER", 10)
    labels = kmeans(X, 40, np.random.default_rng(0), 10, mass)
    members = np.eye(40)[labels] * mass[:, None]
    centers = members.T @ X / members.sum(axis=0)[:, None]
    assert mass @ ((X - centers[labels]) ** 2).sum(axis=1) < 1.03 * best


@pytest.fixture
def everything_large(monkeypatch):
    """A few hundred rows are searched, embedded and cut into chunks as a million is."""
    pytest.importorskip("numba")
    monkeypatch.setattr(neighbors, "EXACT", 100)
    blockwise = partial(spectrum.leading_eigenvectors, dense_up_to=100, blocks_above=100)
    monkeypatch.setattr(agree, "leading_eigenvectors", blockwise)
    monkeypatch.setattr("manyview.engines.threads.CHUNK_ROWS", 100)
    monkeypatch.setattr("manyview.engines.numpy.neighbors.ASKING", 64)
    monkeypatch.setattr("manyview.maths.spectrum.BLOCK_ROWS", 100)
    monkeypatch.setattr("manyview.engines.numpy.neighbors.CELL", 50)
    monkeypatch.setattr("manyview.engines.numpy.neighbors.ANSWERING", 128)


@pytest.mark.usefixtures("everything_large")
def test_a_large_robust_fit_has_the_same_bits_on_any_threads():
    views, y = blobs(n=900, features=(20, 150, 18))
    one, two = (RobustWMNMF(3, random_state=0, n_jobs=jobs).fit(views) for jobs in (1, 2))
    np.testing.assert_array_equal(one.consensus_, two.consensus_)
    np.testing.assert_array_equal(one.graph_.data, two.graph_.data)
    assert adjusted_rand_score(y, one.labels_) > 0.98


@pytest.mark.usefixtures("everything_large")
def test_the_order_of_rows_and_views_hardly_matters_to_a_large_fit(rng):
    """Cells and samples are drawn by place: lists are not the same, but weights and labels nearly are."""
    views, _ = blobs(n=900, features=(20, 150, 18))
    model = RobustWMNMF(3, random_state=0).fit(views)
    order = rng.permutation(900)
    other = RobustWMNMF(3, random_state=0).fit([views[s][order] for s in (2, 0, 1)])
    assert adjusted_rand_score(model.labels_[order], other.labels_) > 0.98
    np.testing.assert_allclose(model.view_weights_[[2, 0, 1]], other.view_weights_, atol=0.01)
