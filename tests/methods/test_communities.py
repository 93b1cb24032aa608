"""Communities as clusters: `RobustWMNMF(n_clusters="communities")`."""

import importlib.util
import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score as ari

import manyview as mv
from conftest import blobs
from manyview import fuse
from manyview import labels as module
from manyview.labels import communities, leiden
from manyview.maths.spectrum import modularity

needed = pytest.mark.skipif(
    importlib.util.find_spec(module.PACKAGE) is None, reason="needs the extra communities"
)
UNEQUAL = (90, 45, 20, 10)


def unequal(sizes=UNEQUAL, seed=0):
    """Two views of groups of very unequal size, and the groups."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    views = [rng.normal(3 * rng.standard_normal((len(sizes), m))[y], 1) for m in (12, 15)]
    return views, y


# Modularity cuts a group of 90 at resolution 1, where every member has 20 neighbors.
def fitted(views, **settings):
    return mv.RobustWMNMF("communities", **{"random_state": 0, "resolution": 0.5} | settings).fit(
        views
    )


def cliques(*sizes, link=0.1):
    """Complete graphs, each joined to the next by one edge of this weight."""
    n, starts = sum(sizes), np.cumsum([0, *sizes])
    A = np.zeros((n, n))
    for start, stop in itertools.pairwise(starts):
        A[start:stop, start:stop] = 1
        if stop < n:
            A[stop - 1, stop] = A[stop, stop - 1] = link
    np.fill_diagonal(A, 0)
    return sp.csr_array(A)


# --- the graph ---------------------------------------------------------------------------------


@needed
def test_cliques_are_communities_from_the_largest_to_the_smallest():
    found = communities(cliques(6, 12, 8), 1.0, 0)
    np.testing.assert_array_equal(found.labels, np.repeat([2, 0, 1], [6, 12, 8]))
    assert (found.count, found.n_joined, found.n_apart) == (3, 0, 0)


@needed
def test_tiny_communities_join_the_one_they_share_most_links_with():
    A = cliques(60, 3, 50).tolil()
    A[62, 63] = A[63, 62] = 0.5  # stronger than the link to the first
    found = communities(sp.csr_array(A), 1.0, 0)
    assert (found.count, found.n_joined, found.least) == (2, 1, 5)
    assert set(found.labels[60:]) == {1} and set(found.labels[:60]) == {0}
    with pytest.warns(UserWarning, match="1 communities of fewer than 5 samples were joined"):
        module.tell_tiny(found)
    # As many samples as a community of five, so that nothing is tiny.
    count = np.ones(113)
    count[60:63] = 2
    assert communities(sp.csr_array(A), 1.0, 0, count).count == 3


@needed
def test_tiny_communities_without_links_are_told():
    found = communities(
        sp.csr_array(sp.block_diag([cliques(60, 50).toarray(), np.ones((2, 2))])), 1, 0
    )
    assert (found.count, found.n_joined, found.n_apart) == (3, 0, 1)
    with pytest.warns(UserWarning, match="1 communities have fewer than 5 samples and no link"):
        module.tell_tiny(found)


@needed
@given(st.integers(0, 2**32 - 1), st.floats(0.3, 3))
def test_the_order_of_the_vertices_does_not_matter(seed, resolution):
    rng = np.random.default_rng(seed)
    n = 60
    A = sp.random_array((n, n), density=0.15, rng=rng) + sp.eye_array(n, k=1)
    A = sp.csr_array(A + A.T)
    order = rng.permutation(n)
    one, two = leiden(A, resolution, 7), leiden(A[order][:, order], resolution, 7)
    assert ari(one[order], two) == 1
    np.testing.assert_array_equal(one, leiden(A, resolution, 7))


@needed
def test_more_runs_never_find_a_worse_division(monkeypatch):
    rng = np.random.default_rng(0)
    A = sp.random_array((300, 300), density=0.03, rng=rng)
    A = sp.csr_array(A + A.T)
    many = [modularity(A, leiden(A, 1, seed)) for seed in range(5)]
    monkeypatch.setattr(module, "UP_TO", 5)  # as in a large graph
    few = [modularity(A, leiden(A, 1, seed)) for seed in range(5)]
    assert (np.array(many) >= np.array(few) - 1e-12).all() and max(many) > min(few)


@needed
@pytest.mark.parametrize("repeated", [False, True])
def test_communities_counted_in_a_sample_give_the_same_clusters(monkeypatch, repeated):
    views, y = blobs(n=150)
    if repeated:
        views, y = [np.vstack([X, X[:30]]) for X in views], np.append(y, y[:30])
    whole = fitted(views)
    monkeypatch.setattr(fuse, "COUNT_ROWS", 60)
    some = fitted(views)
    assert ari(some.labels_, whole.labels_) == ari(some.labels_, y) == 1
    np.testing.assert_allclose(some.view_weights_, whole.view_weights_, atol=0.1)


# --- the estimator -----------------------------------------------------------------------------


@needed
def test_groups_of_unequal_size_are_found_without_their_number():
    views, y = unequal()
    model = fitted(views)
    assert model.n_clusters_ == 4 and ari(y, model.labels_) > 0.97
    assert (np.diff(np.bincount(model.labels_)) <= 0).all()
    assert model.confidence_.shape == (len(y), 4)
    np.testing.assert_allclose(model.confidence_.sum(axis=1), 1)
    assert [U.shape for U in model.components_] == [(4, 12), (4, 15)]
    np.testing.assert_array_equal(model.predict(views), model.labels_)


@needed
@pytest.mark.filterwarnings("ignore::UserWarning")  # of tiny communities, and of too few rounds
def test_a_higher_resolution_gives_more_clusters():
    views, _ = unequal()
    numbers = [fitted(views, resolution=r).n_clusters_ for r in (0.05, 0.5, 5)]
    assert numbers == sorted(numbers) and numbers[0] < numbers[2]


@needed
def test_the_seed_decides_and_threads_do_not():
    views, _ = unequal()
    one = fitted(views, n_jobs=1)
    two = fitted(views, n_jobs=3)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.consensus_, two.consensus_)


@needed
def test_the_order_of_observations_does_not_matter(rng):
    views, _ = unequal()
    order = rng.permutation(sum(UNEQUAL))
    one, two = fitted(views), fitted([X[order] for X in views])
    assert one.n_clusters_ == two.n_clusters_
    assert ari(one.labels_[order], two.labels_) > 0.99


@needed
def test_copies_stay_together_and_missing_observations_have_no_community():
    views, y = unequal()
    again = [np.vstack([X, X[:30], X[:10]]) for X in views]
    for X in again:
        X[40] = np.nan
    with pytest.warns(UserWarning, match="1 samples are missing in every view"):
        model = fitted(again)
    labels = model.labels_
    np.testing.assert_array_equal(labels[: len(y)][:30], labels[len(y) : len(y) + 30])
    np.testing.assert_array_equal(labels[:10], labels[-10:])
    assert labels[40] == -1 and model.n_clusters_ == 4


@needed
def test_a_saved_model_keeps_number_and_resolution(tmp_path):
    views, _ = unequal()
    model = fitted(views, resolution=0.8)
    again = mv.load(model.save(tmp_path / "m.npz"))
    found = ("communities", model.n_clusters_, 0.8)
    assert (again.n_clusters, again.n_clusters_, again.resolution) == found
    np.testing.assert_array_equal(again.predict(views), model.predict(views))


@needed
@pytest.mark.filterwarnings("ignore:RobustWMNMF stopped after")
def test_a_checkpoint_goes_on_to_the_same_clusters(tmp_path):
    views, _ = unequal()
    whole = fitted(views)

    class Killed(Exception):
        pass

    def kill(info):
        if info["round"] == 2:
            raise Killed

    path = tmp_path / "c"
    with pytest.raises(Killed):
        fitted(views, checkpoint=(path, 0), callback=kill, tol=0, max_iter=6)
    on = fitted(views, checkpoint=(path, 0), tol=0, max_iter=6)
    straight = fitted(views, tol=0, max_iter=6)
    np.testing.assert_array_equal(on.consensus_, straight.consensus_)
    assert on.n_clusters_ == whole.n_clusters_


@needed
@pytest.mark.parametrize("engine", ["torch", "dask"])
def test_other_engines_find_the_same(engine):
    pytest.importorskip(engine)
    views, _ = unequal()
    device = {"device": "cpu"} if engine == "torch" else {}
    assert ari(fitted(views, engine=engine, **device).labels_, fitted(views).labels_) > 0.99


@needed
def test_stability_looks_for_communities_in_every_part():
    views, _ = unequal()
    sure = mv.stability(fitted(views), views, n_runs=3, random_state=0)
    assert sorted(sure.clusters) == [0, 1, 2, 3] and sure.score > 0.9


@needed
def test_one_group_may_be_one_cluster():
    views, _ = blobs(60, clusters=1)
    with warnings.catch_warnings(action="error"):
        model = fitted(views, resolution=0.01)
    assert model.n_clusters_ == 1 and set(model.labels_) == {0}


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'manyview\[communities\]'"):
        fitted(blobs(30)[0])


def test_the_papers_method_has_no_fused_graph():
    with pytest.raises(ValueError, match="RobustWMNMF"):
        mv.WMNMF("communities").fit(blobs(30)[0])


@pytest.mark.parametrize("resolution", [0, -1, "high"])
def test_a_resolution_is_a_positive_number(resolution):
    with pytest.raises(ValueError, match="resolution"):
        fitted(blobs(30)[0], resolution=resolution)
