"""Labels from the consensus: graphs connected, disconnected, degenerate; above the limits of exactness."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import adjusted_rand_score

from conftest import blobs
from manyview import WMNMF
from manyview import labels as assign_module
from manyview import labels as seeding
from manyview.engines.affinity import affinity
from manyview.engines.numpy import neighbors
from manyview.labels import (
    SharedSeeding,
    assign,
    assign_new,
    consensus_graph,
    kmeans,
    n_neighbors,
    spectral,
    spectral_from_graph,
)
from manyview.maths.spectrum import part_sizes


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


@pytest.mark.parametrize("weighed", [False, True])
def test_shared_distances_give_the_seeds_that_scikit_learn_draws(weighed):
    X = rng().standard_normal((300, 6)) + 5 * rng().integers(4, size=(300, 1))
    weight = rng().integers(1, 5, size=300).astype(float) if weighed else None
    ours = SharedSeeding(X, weight).chosen(12, np.random.RandomState(0))
    _, theirs = kmeans_plusplus(X, 12, sample_weight=weight, random_state=np.random.RandomState(0))
    np.testing.assert_array_equal(ours, theirs)


def test_fewer_distinct_rows_than_seeds_are_no_error():
    X = np.repeat(np.eye(3), 5, axis=0)
    assert len(SharedSeeding(X).chosen(6, np.random.RandomState(0))) == 6


def test_hard_kmeans_finds_many_clusters(monkeypatch):
    y = np.arange(600) % 30
    X = 10 * np.eye(30)[y] + rng().random((600, 30))
    monkeypatch.setattr(assign_module, "EASY", 1000)
    monkeypatch.setattr(assign_module, "FEWEST_ROWS", 100)
    monkeypatch.setattr(assign_module, "ROWS_PER_CLUSTER", 15)
    assert adjusted_rand_score(y, kmeans(X, 30, rng(), 10)) == 1
    monkeypatch.setattr(seeding, "SHARED_PAIRS", 0)  # each start measures its own
    assert adjusted_rand_score(y, kmeans(X, 30, rng(), 10)) == 1


def test_a_fit_with_approximate_neighbors(monkeypatch):
    pytest.importorskip("numba")
    views, y = blobs(n=900, features=(20, 5, 18))
    monkeypatch.setattr(neighbors, "EXACT", 300)
    assert adjusted_rand_score(y, WMNMF(3, random_state=0).fit_predict(views)) > 0.98


# --- small parts of the consensus's graph ---


def cut_off(n=400, clusters=4, few=8):
    """Clusters that touch, and a few rows of the first far away from all, in a corner of their own."""
    random = rng()
    y = np.arange(n) % clusters
    V = 0.8 * np.eye(clusters)[y] + 0.8 * random.random((n, clusters))
    lonely = np.flatnonzero(y == 0)[:few]
    V[lonely] = 0.01 * random.random((few, clusters)) + np.r_[3.0, np.zeros(clusters - 1)]
    return V, y


@pytest.mark.parametrize("method", ["spectral", "njw"])
def test_a_small_part_of_the_graph_is_told_and_can_be_connected(method):
    V, y = cut_off()
    with pytest.warns(UserWarning, match="falls into . parts, the smallest of 8 samples"):
        plain = assign(V, 4, method, rng())
    assert adjusted_rand_score(y, plain) < 0.9  # the part has taken a cluster
    assert adjusted_rand_score(y, assign(V, 4, method, rng(), connect=True)) >= 0.95


def test_connecting_changes_nothing_where_no_part_is_small():
    V, _ = cut_off(few=0)
    apart = np.eye(4)[np.arange(200) % 4] + 0.05 * rng().random((200, 4))  # four large parts
    for X in (V, apart):
        A = affinity(X, n_neighbors(len(X)), "binary")
        assert (consensus_graph(X, 4, connect=True) != A).nnz == 0


def test_rows_of_small_parts_keep_their_edges_and_get_others():
    V, _ = cut_off()
    k = n_neighbors(len(V))
    A = affinity(V, k, "binary")
    sizes = part_sizes(A)
    tied = consensus_graph(V, 4, connect=True)
    assert (tied < A).nnz == 0 and (abs(tied - tied.T) > 0).nnz == 0
    alone = sizes == 8
    outside = (tied[alone][:, ~alone] > 0).sum(axis=1)
    assert alone.sum() == 8 and (np.asarray(outside) >= k).all()
    assert (tied[~alone][:, ~alone] != A[~alone][:, ~alone]).nnz == 0


def test_a_fit_tells_of_small_parts_once_and_not_where_it_connects_them():
    V, _ = cut_off()
    views = [V, V[:, ::-1] + 0.01]
    with pytest.warns(UserWarning, match="set connect=True") as told:
        WMNMF(4, random_state=0).fit(views)
    assert len(told) == 1
    WMNMF(4, connect=True, random_state=0).fit(views)  # a warning would be an error
