"""What happens above the limits of the exact methods, forced on small data."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from conftest import blobs
from manyview import WMNMF, RobustWMNMF, load
from manyview.engines import affinity
from manyview.engines.numpy import graph, neighbors
from manyview.engines.numpy.sources import Scaled
from manyview.engines.threads import Threads
from manyview.maths import spectrum
from manyview.methods import assign
from manyview.methods import working_views as estimators
from manyview.methods.assign import kmeans, spectral


def ring_of_cliques(parts=4, size=40, seed=0, links=1):
    rng = np.random.default_rng(seed)
    blocks = [np.triu(rng.random((size, size)) < 0.3, 1) for _ in range(parts)]
    A = sp.block_diag(blocks, format="lil", dtype=float)
    for p in range(parts if links else 0):
        A[p * size, (p * size + size) % (parts * size)] = 1
    return sp.csr_array(A + A.T)


@pytest.mark.parametrize("links", [0, 1])
def test_block_iteration_finds_the_leading_eigenpairs_repeated_ones_too(links):
    S = spectrum.normalized(ring_of_cliques(links=links))
    values, vectors = spectrum.filtered_subspace(
        S, 6, np.random.default_rng(0), sketch=spectrum.Sketch(tol=1e-10)
    )
    exact = np.linalg.eigvalsh(S.toarray())[-6:]
    np.testing.assert_allclose(np.sort(values), exact, atol=1e-8)
    np.testing.assert_allclose(S @ vectors, vectors * values, atol=1e-6)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(6), atol=1e-10)
    if not links:
        assert (values > 1 - 1e-8).sum() == 4


@pytest.mark.parametrize("links", [0, 1])
def test_above_the_limit_the_block_iteration_takes_over(links, monkeypatch):
    S = spectrum.normalized(ring_of_cliques(size=300, links=links))
    rng = np.random.default_rng(0)
    exact, vectors = spectrum.leading_eigenvectors(S, 5, rng)
    monkeypatch.setattr(spectrum, "BLOCK_ITERATION", 100)
    monkeypatch.setattr(spectrum, "DENSE_LIMIT", 100)
    values, found = spectrum.leading_eigenvectors(S, 5, rng)
    np.testing.assert_allclose(values, exact, atol=1e-4)
    # The same four-dimensional space of clusters, whatever its basis.
    overlap = np.linalg.svd(vectors[:, :4].T @ found[:, :4], compute_uv=False)
    np.testing.assert_allclose(overlap, 1, atol=1e-4)


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
def test_points_of_a_diffusion_map_stay_where_they_are(links, near, monkeypatch):
    """Eigenvectors only as exact as they count, from vectors nearby: the same distances."""
    A, rng = ring_of_cliques(size=300, links=links), np.random.default_rng(0)
    exact = spectrum.diffusion_map(A, 12, rng)
    monkeypatch.setattr(spectrum, "BLOCK_ITERATION", 100)
    monkeypatch.setattr(spectrum, "DENSE_LIMIT", 100)
    sketch = spectrum.Sketch(
        partial(graph.block_step, None), spectrum.diffusion_weights, spectrum.PLACING
    )
    if near:
        other = ring_of_cliques(size=300, links=1 - links)
        _, start = spectrum.leading_eigenvectors(spectrum.normalized(other), 12, rng, sketch)
        sketch = replace(sketch, start=start)
    found = spectrum.diffusion_map(A, 12, rng, sketch)
    np.testing.assert_allclose(found @ found.T, exact @ exact.T, atol=0.02)


@pytest.mark.parametrize("method", ["spectral", "njw"])
def test_labels_by_landmarks_are_those_of_the_exact_method(method, monkeypatch):
    views, y = blobs(n=1500, clusters=4)
    exact = assign.assign(views[0], 4, method, np.random.default_rng(0))
    monkeypatch.setattr(assign, "LANDMARKS_ABOVE", 500)
    monkeypatch.setattr(assign, "LANDMARKS", 400)
    found = assign.assign(views[0], 4, method, np.random.default_rng(0))
    assert adjusted_rand_score(exact, found) >= 0.99
    assert adjusted_rand_score(y, found) >= 0.99


def test_spectral_labels_of_a_disconnected_graph_are_its_parts():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), 100)
    X = 100.0 * y[:, None] + rng.random((500, 3))
    assert adjusted_rand_score(y, spectral(X, 5, np.random.default_rng(0))) == 1


def test_kmeans_starts_tried_on_a_sample(monkeypatch):
    views, y = blobs(n=900)
    monkeypatch.setattr(assign, "KMEANS_SAMPLE", 200)
    assert adjusted_rand_score(y, kmeans(views[0], 3, np.random.default_rng(0), 5)) == 1


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
    centres = members.T @ X / members.sum(axis=0)[:, None]
    assert mass @ ((X - centres[labels]) ** 2).sum(axis=1) < 1.03 * best


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_index_gives_nearly_the_exact_graph(form, monkeypatch):
    pytest.importorskip("numba")
    X = form(np.abs(np.random.default_rng(0).standard_normal((600, 20))))
    exact, d_exact = affinity.nearest_neighbors(X, 5)
    monkeypatch.setattr(neighbors, "EXACT", 100)
    found, d = affinity.nearest_neighbors(X, 5)
    recall = np.mean([np.isin(a, b).mean() for a, b in zip(exact, found, strict=True)])
    assert recall > 0.95 and (found != np.arange(600)[:, None]).all()
    assert (d >= d_exact - 1e-9).all() and (np.diff(d, axis=1) >= 0).all()


def test_a_poor_index_says_so(monkeypatch):
    pytest.importorskip("numba")
    X = np.random.default_rng(0).random((500, 4))
    wrong = np.tile(np.arange(5), (500, 1))
    monkeypatch.setattr(neighbors, "descended", lambda *args: wrong)
    with pytest.warns(UserWarning, match="finds only .* of the 5 nearest neighbours"):
        neighbors.index_neighbors(X, 5, 0)


def test_a_large_robust_fit_has_the_same_bits_on_any_threads(monkeypatch):
    pytest.importorskip("numba")
    views, y = blobs(n=900, features=(20, 150, 18))
    monkeypatch.setattr(neighbors, "EXACT", 100)
    monkeypatch.setattr(spectrum, "BLOCK_ITERATION", 100)
    monkeypatch.setattr(spectrum, "DENSE_LIMIT", 100)
    monkeypatch.setattr("manyview.engines.threads.CHUNK_ROWS", 100)
    monkeypatch.setattr("manyview.engines.numpy.descent.CHUNK", 64)
    one, two = (RobustWMNMF(3, random_state=0, n_jobs=jobs).fit(views) for jobs in (1, 2))
    np.testing.assert_array_equal(one.consensus_, two.consensus_)
    np.testing.assert_array_equal(one.graph_.data, two.graph_.data)
    assert adjusted_rand_score(y, one.labels_) > 0.98


def test_a_fit_above_all_limits(monkeypatch):
    pytest.importorskip("numba")
    views, y = blobs(n=900, features=(20, 5, 18))
    for module, name in ((neighbors, "EXACT"), (assign, "LANDMARKS_ABOVE")):
        monkeypatch.setattr(module, name, 300)
    monkeypatch.setattr(assign, "LANDMARKS", 250)
    assert adjusted_rand_score(y, WMNMF(3, random_state=0).fit_predict(views)) > 0.98


@pytest.mark.parametrize("scale", ["sum", "minmax", "sqrt", None])
def test_large_views_are_scaled_when_read_and_give_the_same_fit(scale, monkeypatch, tmp_path):
    views, _ = blobs(n=300)
    new = [X[:40] for X in views]
    kept = WMNMF(3, scale=scale, random_state=0).fit(views)
    monkeypatch.setattr(estimators, "COPY_LIMIT", 0)
    read = WMNMF(3, scale=scale, random_state=0).fit(views)
    assert all(isinstance(X, Scaled) for X in read._fitted_views)
    np.testing.assert_allclose(read.consensus_, kept.consensus_, rtol=1e-7)
    np.testing.assert_array_equal(read.labels_, kept.labels_)
    np.testing.assert_array_equal(read.predict(new), kept.predict(new))
    assert read.score(new) == pytest.approx(kept.score(new))
    again = load(read.save(tmp_path / "m.npz"))
    np.testing.assert_array_equal(again.predict(new), read.predict(new))
