"""The approximate search: good lists, the same for any number of threads, whole whatever the data."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from manyview.engines.numpy import distances, neighbors
from manyview.engines.numpy.compiled import compiled
from manyview.engines.numpy.distances import Geometry
from manyview.engines.numpy.engine import HOST
from manyview.engines.numpy.neighbors import (
    Part,
    Sides,
    parts_of,
)
from manyview.engines.threads import Threads

pytest.importorskip("numba")


def clusters(n, m, seed=0, latent=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6, m))[rng.integers(6, size=n)]
    X += rng.standard_normal((n, latent)) @ rng.standard_normal((latent, m))
    return (X + 0.1 * rng.standard_normal((n, m))).astype(np.float32)


def exact(X, k):
    gaps = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(gaps, np.inf)
    return np.argsort(gaps, axis=1)[:, :k]


def recall(found, expected):
    return np.mean([np.isin(e, f).mean() for f, e in zip(found, expected, strict=True)])


@pytest.fixture(autouse=True)
def small_cells(monkeypatch):
    monkeypatch.setattr(neighbors, "CELL", 40)
    monkeypatch.setattr(neighbors, "SPARSE_CELL", 40)
    monkeypatch.setattr(neighbors, "ASKING", 128)
    monkeypatch.setattr(neighbors, "ASKED", 100)
    monkeypatch.setattr(neighbors, "SUMMED", 70)


def sides_of(X):
    return Sides.of([Part(1.0, X, np.ones(len(X)), np.ones(len(X), dtype=bool))])


def in_cells(X, k, seed=0, threads=1, n_sample=20):
    rows = np.random.default_rng(seed).choice(len(X), n_sample, replace=False)
    near = exact(X, k)[rows]
    gaps = np.take_along_axis(((X[rows, None] - X[None]) ** 2).sum(axis=2), near, axis=1)
    sample = neighbors.Sample(rows, near, gaps[:, -1])
    return neighbors.nearest_in_cells(sides_of(X), k, sample, seed, Threads(threads))[0]


def test_nearly_all_neighbors_are_found():
    X = clusters(1500, 20)
    assert recall(in_cells(X, 10), exact(X, 10)) > 0.95


def test_only_some_of_the_pairs_are_looked_at(monkeypatch):
    X, looked = clusters(1500, 20), []
    kernels = compiled()
    look_into = kernels.look_into

    def counting(left, right, own, starts, order, chosen, *args):
        looked.append(int((chosen * np.diff(starts)[:, None]).sum()))
        look_into(left, right, own, starts, order, chosen, *args)

    monkeypatch.setattr(kernels, "look_into", counting)
    in_cells(X, 10)
    assert sum(looked) < 0.6 * len(X) ** 2


def test_many_copies_of_a_row_are_a_cell_of_which_some_are_listed():
    """A cell larger than the rows among whom products are looked for at a time."""
    X = clusters(1500, 20)
    X[200:] = X[0]
    found = in_cells(X, 10)
    assert (X[found[500:]] == X[0]).all()


@pytest.mark.parametrize("threads", [2, 3])
def test_the_lists_are_the_same_for_any_number_of_threads(threads):
    X = clusters(900, 12)
    np.testing.assert_array_equal(in_cells(X, 8, 3, threads), in_cells(X, 8, 3))


@settings(max_examples=8)
@given(st.integers(24, 200), st.integers(1, 6), st.integers(1, 4), st.integers(0, 99))
def test_every_list_is_whole(n, k, kinds, seed):
    """k different rows and never the row itself, also where all rows are copies of a few."""
    rng = np.random.default_rng(seed)
    X = rng.integers(kinds, size=(n, 3)).astype(np.float32)
    found = in_cells(X, k, seed)
    assert found.shape == (n, k) and found.min() >= 0 and found.max() < n
    assert all(len(set(row)) == k and i not in row for i, row in enumerate(found))


@given(st.integers(3, 60), st.integers(1, 9), st.integers(0, 99))
def test_the_smallest_products_are_those_of_all_pairs(n, k, seed):
    X, k = np.random.default_rng(seed).random((n, 4)).astype(np.float32), min(k, n - 1)
    near, values = neighbors.smallest_products(sides_of(X), k, Threads(1))
    gaps = ((X[:, None].astype(float) - X[None]) ** 2).sum(axis=2)
    np.fill_diagonal(gaps, np.inf)
    np.testing.assert_allclose(values, np.sort(gaps, axis=1)[:, :k], atol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(gaps, near, axis=1), values, atol=1e-5)


def three_views(seed, n=80):
    """A dense, a short and a sparse view, in each of which some rows are missing."""
    rng = np.random.default_rng(seed)
    views = []
    for m in (5, 2, 9):
        present = rng.random(n) < 0.8
        Z = rng.random((n, m)) * (rng.random((n, m)) < 0.6) + 0.01
        Z[~present] = 0
        views.append(Geometry(sp.csr_array(Z) if m == 9 else Z, present))
    return views


@given(st.integers(0, 999), st.lists(st.floats(0, 1), min_size=3, max_size=3))
def test_products_of_the_sides_are_sums_of_distances(seed, weights):
    """Whoever is missing where, whatever the weights, dense or sparse."""
    views, alpha = three_views(seed), np.array([*weights[:2], weights[2] + 0.1])
    everyone = np.arange(views[0].n_samples)
    sides = Sides.of(parts_of(views, alpha, everyone))
    F = sum(a * view.between(everyone) for a, view in zip(alpha, views, strict=True))
    near, values = neighbors.smallest_products(sides, len(everyone) - 1, Threads(1))
    products = values.astype(float) + sides.constant
    gaps = np.abs(products - np.take_along_axis(F, near, axis=1))
    assert (gaps <= sides.slack()[:, None]).all()


@pytest.mark.parametrize("seed", range(3))
def test_lists_by_products_are_those_of_all_distances(seed):
    views, alpha = three_views(seed)[:2], np.array([0.7, 0.3])
    everyone = np.arange(views[0].n_samples)
    assert all(view.products() is None for view in views)
    near, d, unsure = neighbors.by_products(views, alpha, everyone, 6, Threads(1))
    expected, d_expected = neighbors.looked_at(views, alpha, everyone, everyone, 6, Threads(1))
    assert not unsure.all()  # rows that are missing everywhere are as far from all
    np.testing.assert_array_equal(near[~unsure], expected[~unsure])
    np.testing.assert_allclose(d[~unsure], d_expected[~unsure])


def test_a_view_that_tells_nobody_apart_adds_the_same_to_all_distances(rng):
    n = 60
    one, none = (Geometry(X, np.ones(n, dtype=bool)) for X in (rng.random((n, 3)), np.ones((n, 2))))
    everyone, alpha = np.arange(n), np.array([0.5, 0.5])
    near, d, unsure = neighbors.by_products([one, none], alpha, everyone, 4, Threads(1))
    expected, d_expected = neighbors.looked_at(
        [one, none], alpha, everyone, everyone, 4, Threads(1)
    )
    assert not unsure.any()
    np.testing.assert_array_equal(near, expected)
    np.testing.assert_allclose(d, d_expected)
    near, d = none.fused_nearest([none, one], np.array([1.0, 0]), 4, 0)
    np.testing.assert_array_equal(near[9], [0, 1, 2, 3])
    assert (d == 1).all()


@pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")
@pytest.mark.parametrize("n, k", [(12, 5), (12, 11), (60, 5)])
@pytest.mark.parametrize("large", [1e18, 1e20, 1e25, 1e39])
def test_numbers_too_large_for_single_precision_do_no_harm(rng, large, n, k):
    X, everyone = rng.random((n, 2)), np.arange(n)
    X[0, 0], X[3, 1] = large, -large
    view = Geometry(X, np.ones(n, dtype=bool))
    near, d = neighbors.all_pairs([view], np.ones(1), everyone, k, everyone[:0], None)
    expected, d_expected = neighbors.looked_at(
        [view], np.ones(1), everyone, everyone, k, Threads(1)
    )
    np.testing.assert_array_equal(near, expected)
    np.testing.assert_allclose(d, d_expected)


@pytest.mark.parametrize("unit", [1e-8, 1e-3, 1, 1e4, 1e8])
def test_lists_by_products_are_sure_in_any_unit(rng, unit):
    view, everyone = Geometry(unit * rng.random((200, 6)), np.ones(200, dtype=bool)), np.arange(200)
    near, _, unsure = neighbors.by_products([view], np.ones(1), everyone, 5, Threads(1))
    assert not unsure.any()
    expected, _ = neighbors.looked_at([view], np.ones(1), everyone, everyone, 5, Threads(1))
    np.testing.assert_array_equal(near, expected)


def test_views_with_holes_are_searched_and_measured_over_shared_features(rng):
    X = clusters(700, 12).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    view, everyone = Geometry(X, np.ones(700, dtype=bool)), np.arange(700)
    assert Sides.of(parts_of([view], np.ones(1), everyone)).right.dtype == np.float32
    near, d = neighbors.approximate([view], np.ones(1), everyone, 5, 0, Threads(1))
    expected, _ = neighbors.looked_at([view], np.ones(1), everyone, everyone, 5, Threads(1))
    assert recall(near, expected) > 0.9
    i = np.repeat(everyone, 5)
    np.testing.assert_allclose(d.ravel(), view.pairs(i, near.ravel()))


@settings(max_examples=8)
@given(st.integers(0, 999), st.integers(1, 30), st.sampled_from([1, 7, 60]))
def test_a_sample_has_the_lists_of_all_distances(seed, k, step):
    """Whoever is missing where, dense, sparse or with holes, and however many answer at a time."""
    rng, views, alpha = np.random.default_rng(seed), three_views(seed), rng_weights(seed)
    Z = np.where(rng.random((80, 6)) < 0.1, np.nan, rng.random((80, 6)))
    views = [*views, Geometry(Z, np.ones(80, dtype=bool))]
    rows = np.flatnonzero(rng.random(80) < 0.9)
    asking = rng.choice(len(rows), 9, replace=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbors, "ANSWERING", step)
        near, last = neighbors.sample_lists(views, alpha, asking, rows, k, Threads(2))
    _, d = neighbors.looked_at(views, alpha, rows[asking], rows, k, Threads(1))
    np.testing.assert_allclose(last, d[:, -1])
    F = neighbors.pair_distances(views, alpha, np.repeat(rows[asking], k), rows[near].ravel())
    np.testing.assert_allclose(F.reshape(d.shape), d)  # rows at equal distances may change places
    assert (rows[near] != rows[asking][:, None]).all()
    assert all(len(set(one)) == k for one in near)


def rng_weights(seed):
    return np.random.default_rng(seed + 1).dirichlet(np.ones(4))


@pytest.mark.parametrize("width", [1e-2, 3e-4, 1e-4])
def test_a_sample_knows_its_neighbors_in_tight_groups_far_from_0(rng, width):
    """In single precision the rows of a group differ by less than their norms are rounded."""
    X = 5 + rng.random((20, 60))[rng.integers(20, size=1200)] + width * rng.random((1200, 60))
    view = Geometry(X.astype(np.float32), np.ones(1200, dtype=bool))
    asking, everyone = rng.choice(1200, 40, replace=False), np.arange(1200)
    near, _ = neighbors.sample_lists([view], np.ones(1), asking, everyone, 6, Threads(1))
    Z = view.Z.astype(float)
    gaps = ((Z[asking, None] - Z) ** 2).sum(
        axis=2
    ) / view.root_mu  # of each row, its own unit apart
    gaps[np.arange(40), asking] = np.inf
    assert recall(near, np.argsort(gaps, axis=1)[:, :6]) > 0.99


def test_a_sample_of_many_rows_takes_little_room(rng):
    n = 60_000
    view, everyone = Geometry(rng.random((n, 20)), np.ones(n, dtype=bool)), np.arange(n)
    taken = room(
        neighbors.sample_lists, [view], np.ones(1), everyone[:200], everyone, 5, Threads(1)
    )
    assert taken < 0.7 * 200 * n * 8


def test_products_that_are_no_number_are_nobody(rng):
    products = rng.random((1, 200)).astype(np.float32)
    products[0, ::3] = np.nan
    near, values = neighbors.no_lists(1, 5)
    starts, all_of_it = np.array([0, 200]), np.ones((1, 1), dtype=bool)
    nothing = neighbors.shared_features(None, starts)
    left, own, right = np.ones((1, 1), np.float32), np.array([1]), products.T.copy()
    compiled().look_into(left, right, own, starts, own * 0, all_of_it, nothing, near, values)
    products[0, 1] = np.nan
    np.testing.assert_array_equal(near[0], np.argsort(products[0])[:5])


def texts(n=1200, words=400, topics=8, seed=0):
    rng = np.random.default_rng(seed)
    likely = rng.dirichlet(np.full(words, 0.05), topics)
    y = rng.integers(topics, size=n)
    counts = np.array([rng.multinomial(30, likely[t]) for t in y], dtype=float)
    return sp.csr_array(np.sqrt(counts / counts.sum(axis=1, keepdims=True)))


def test_the_smallest_products_of_sparse_rows_are_those_of_dense_ones():
    """Block by block; some rows are empty, and some zeros are written down."""
    Z = texts(350).toarray()
    Z[::50] = 0
    written = sp.csr_array(Z + 1.0 * (Z == 0) * (np.arange(400) % 9 == 0))
    written.data[written.data == 1] = 0
    rows = np.arange(0, 350, 3)
    dense = neighbors.smallest_products(sides_of(Z), 12, Threads(1), rows)[1]
    part = Part(1.0, written, np.ones(350), np.ones(350, dtype=bool))
    near, values = neighbors.smallest_products(Sides.of([part]), 12, Threads(2), rows)
    np.testing.assert_allclose(values, dense, atol=1e-5)
    gaps = ((Z[rows, None] - Z[near]) ** 2).sum(axis=2)
    np.testing.assert_allclose(gaps, dense, atol=1e-5)


def test_many_sparse_rows_are_as_far_apart_as_the_same_dense_rows():
    """Of rank 32: the leading directions hold all that is there, also of some of the rows."""
    rng, n = np.random.default_rng(0), distances.MANY_SPARSE + 100
    block = rng.integers(8, size=n)
    X = np.zeros((n, 160))
    bases = rng.random((8, 4, 20))
    for b in range(8):
        X[block == b, 20 * b : 20 * b + 20] = rng.random(((block == b).sum(), 4)) @ bases[b]
    present = np.arange(n) % 50 > 0
    X[~present] = 0
    sparse, dense = HOST.distances(sp.csr_array(X), present, False), Geometry(X, present)
    assert isinstance(sparse, distances.SparseGeometry) and sparse.Z.shape[1] == 64
    i, j = rng.integers(n, size=(2, 2000))
    np.testing.assert_allclose(sparse.pairs(i, j), dense.pairs(i, j), atol=1e-4)
    some = np.flatnonzero(rng.random(n) < 0.2)
    parts = sparse.rows(some), dense.rows(some)
    i, j = rng.integers(len(some), size=(2, 2000))
    np.testing.assert_allclose(*(part.pairs(i, j) for part in parts), atol=1e-9)


def test_sparse_rows_with_much_in_common_are_found():
    Z = texts()
    found = neighbors.index_neighbors(Z, 10, 0)
    assert recall(found, exact(Z.toarray(), 10)) > 0.9
    assert (found != np.arange(len(found))[:, None]).all()
    np.testing.assert_array_equal(found, neighbors.index_neighbors(Z, 10, 0, Threads(2)))


def test_long_rows_are_searched_along_their_leading_directions():
    X = clusters(1500, 300)
    found = neighbors.index_neighbors(X, 10, 0)
    assert recall(found, exact(X.astype(float), 10)) > 0.97


@pytest.mark.parametrize("exact_up_to", [50, 10**6])
def test_of_a_crowd_only_the_first_are_looked_at(monkeypatch, rng, exact_up_to):
    """Rows with a value that many have are known to be near each other: pairs of them are too many."""
    monkeypatch.setattr(neighbors, "EXACT", exact_up_to)
    n, k, asked = 900, 5, []
    X = np.eye(4)[rng.integers(4, size=n)]
    alone = np.flatnonzero(rng.random(n) < 0.1)
    X[alone] += 0.1 * rng.random((len(alone), 4))
    view, parts_of = Geometry(X, np.ones(n, dtype=bool)), neighbors.parts_of
    monkeypatch.setattr(
        neighbors, "parts_of", lambda *args: asked.append(args[-1]) or parts_of(*args)
    )
    found = view.nearest(k, 0)
    assert len(asked[0]) == len(alone) + 4 * (k + 1)
    expected, d = neighbors.looked_at([view], np.ones(1), np.arange(n), np.arange(n), k, Threads(1))
    np.testing.assert_array_equal(found.indices[alone], expected[alone])
    np.testing.assert_allclose(found.d, d, atol=1e-12)


def room(work, *args):
    tracemalloc.start()
    try:
        work(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_several_views_take_no_more_room_than_one_when_few_rows_ask(rng):
    n, everyone = 3000, np.arange(3000)
    views = [Geometry(rng.random((n, 200)).astype(np.float32), everyone >= 0) for _ in range(5)]
    one = room(neighbors.looked_at, views[:1], np.ones(1), everyone[:20], everyone, 5, Threads(1))
    all_five = room(neighbors.looked_at, views, np.ones(5), everyone[:20], everyone, 5, Threads(1))
    assert all_five < 1.3 * one


def test_the_sides_are_made_in_one_piece(rng):
    n = 40_000  # many blocks
    parts = [Part(0.5, rng.random((n, 60)), np.ones(n), np.ones(n, dtype=bool)) for _ in range(2)]
    assert room(Sides.of, parts) < 1.6 * Sides.of(parts).right.nbytes


def test_copies_of_a_row_list_the_first_of_them(monkeypatch):
    X, k, searched, n_searched = clusters(900, 20), 5, neighbors.searched, []
    X[100:600], X[600:] = X[0], X[1]

    def counting(parts, *args):
        n_searched.append(len(parts[0].here))
        return searched(parts, *args)

    monkeypatch.setattr(neighbors, "searched", counting)
    found = neighbors.index_neighbors(X, k, 0)
    assert n_searched == [98 + 2 * (k + 1)]
    np.testing.assert_array_equal(
        found[[0, 300, 700]], [range(100, 105), [0, *range(100, 104)], [1, *range(600, 604)]]
    )
    assert recall(found[2:100], exact(X, k)[2:100]) > 0.9
    alike = neighbors.index_neighbors(np.ones((300, 20)), k, 0)
    assert (np.sort(alike[9:], axis=1) == np.arange(k)).all()
