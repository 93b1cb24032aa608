"""Laws of equal distances and of repeated values: ties go by row index, repeated rows repeat labels."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

import manyview as mv
from manyview.engines.affinity import nearest_neighbors
from manyview.engines.files.disk import DiskMatrix
from manyview.engines.numpy import distances as geometry_module
from manyview.engines.numpy import neighbors as neighbors_module
from manyview.engines.numpy.distances import FileGeometry, Geometry
from manyview.engines.numpy.neighbors import lists_in_block, merged
from manyview.engines.numpy.repeats import (
    crowds_of,
    expanded_graph,
    fewest_copies,
    repeats_of,
    row_codes,
)

K = 7
#: Rows, features, and how many values a feature has: few values make ties, few features make copies.
SHAPES = [(90, 1, 5), (120, 3, 4), (150, 20, 3), (80, 40, 16), (600, 5, 3)]


def whole_numbers(n: int, m: int, values: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, values, (n, m))


def by_index(X: np.ndarray, k: int) -> np.ndarray:
    """The k nearest other rows of whole numbers: by squared distance, which is exact, then index."""
    gap = X[:, None].astype(int) - X[None].astype(int)
    d = (gap * gap).sum(axis=2).astype(float)
    np.fill_diagonal(d, np.inf)
    return np.argsort(d, axis=1, kind="stable")[:, :k]


# --- ties --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("unit", [1.0, 1 / 7, 3e-5])
def test_ties_go_to_the_smaller_index_in_every_form(shape, unit):
    X = whole_numbers(*shape)
    expected, scaled = by_index(X, K), X * unit
    forms = [scaled, np.asfortranarray(scaled), sp.csr_array(scaled), scaled.astype(np.float32)]
    for form in forms:
        found, squared = nearest_neighbors(form, K)
        np.testing.assert_array_equal(found, expected)
        gap = scaled[:, None] - scaled[found]
        np.testing.assert_allclose(squared, (gap * gap).sum(axis=2), rtol=1e-4, atol=1e-12)
    new, _ = nearest_neighbors(scaled, K + 1, queries=scaled)
    own = np.arange(len(X))
    first = [np.flatnonzero((row == X).all(axis=1))[0] for row in X]  # of the copies of a row
    np.testing.assert_array_equal(new[:, 0], first)
    few = np.array([(row == X).all(axis=1).sum() <= K for row in X])
    rest = [row[row != i][:K] for row, i in zip(new[few], own[few], strict=True)]
    np.testing.assert_array_equal(np.reshape(rest, (-1, K)), expected[few])


@given(st.integers(0, 10**6), st.integers(31, 400), st.sampled_from(SHAPES))
@settings(max_examples=8)
def test_any_blocks_give_the_same_lists(seed, size, shape):
    X = whole_numbers(*shape, seed=seed) / 7
    parts = [X[start : start + size] for start in range(0, len(X), size)]
    found = [
        merged(
            [
                lists_in_block(held, asking, K, c * size, b * size if b == c else None)
                for c, held in enumerate(parts)
            ],
            K,
            1e-9,
        )[0]
        for b, asking in enumerate(parts)
    ]
    np.testing.assert_array_equal(np.concatenate(found), by_index((X * 7).round(), K))


@pytest.mark.parametrize("shape", SHAPES)
def test_files_read_in_pieces_give_the_same_lists(shape, tmp_path, monkeypatch):
    X = whole_numbers(*shape) / 7
    np.save(tmp_path / "x.npy", X)
    expected = by_index((X * 7).round(), K)
    for asking in (2**22, 37 * shape[1]):
        monkeypatch.setattr(neighbors_module, "READ_QUERIES", asking)
        found, _ = nearest_neighbors(DiskMatrix(tmp_path / "x.npy"), K)
        np.testing.assert_array_equal(found, expected)


def test_ties_with_unobserved_entries_go_by_index():
    X = whole_numbers(60, 6, 3).astype(float)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    gap = X[:, None] - X[None]
    shared = (~np.isnan(gap)).sum(axis=2)
    d = np.nansum(gap**2, axis=2) * (60 / np.maximum(shared, 1))  # whole numbers: 60 = 3·4·5
    np.fill_diagonal(d, np.inf)
    expected = np.argsort(np.where(shared > 0, d.round(6), np.inf), axis=1, kind="stable")[:, :K]
    np.testing.assert_array_equal(nearest_neighbors(X / 7, K)[0], expected)


@pytest.mark.parametrize("block", [2**19, 1000])
@pytest.mark.parametrize("shape", SHAPES[2:4])
def test_the_robust_lists_do_not_depend_on_blocks(shape, block, monkeypatch):
    present = np.ones(shape[0], dtype=bool)
    Zs = [whole_numbers(*shape, seed=s) / 7 for s in (0, 1)]
    views, alpha = [Geometry(Z, present) for Z in Zs], np.array([0.3, 0.7])
    exact = [view.pairs(*map(np.ravel, np.indices((shape[0],) * 2))) for view in views]
    exact = [d.reshape(shape[0], -1) for d in exact]
    monkeypatch.setattr(geometry_module, "BLOCK", block)
    for view, d in zip(views, exact, strict=True):
        np.testing.assert_array_equal(view.nearest(K).indices, rounded_order(d))
    fused = views[0].fused_nearest(views, alpha, K, 0)[0]
    np.testing.assert_array_equal(
        fused, rounded_order(sum(a * d for a, d in zip(alpha, exact, strict=True)))
    )


def rounded_order(d: np.ndarray) -> np.ndarray:
    d = d.round(11)
    np.fill_diagonal(d, np.inf)
    return np.argsort(d, axis=1, kind="stable")[:, :K]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_device_has_the_lists_of_the_host(shape, monkeypatch):
    torch = pytest.importorskip("torch")
    from manyview.engines.torch import neighbors as torch_neighbors
    from manyview.engines.torch.distances import TorchGeometry

    X = whole_numbers(*shape)
    present = np.random.default_rng(0).random((2, len(X))) > 0.1
    Zs = [(X + 1) / 7 * present[0][:, None], (X[:, ::-1] ** 2 + 1) / 3 * present[1][:, None]]
    hosts = [Geometry(Z, here) for Z, here in zip(Zs, present, strict=True)]
    views = [TorchGeometry(torch.as_tensor(v.Z), v.present) for v in hosts]
    for room in (2**24, 5000):
        monkeypatch.setattr(torch_neighbors, "HOST_BLOCK", room)
        found, _ = nearest_neighbors(torch.as_tensor(X / 7), K)
        np.testing.assert_array_equal(found.numpy(), by_index(X, K))
        for host, view in zip(hosts, views, strict=True):
            mine, theirs = view.nearest(K), host.nearest(K)
            np.testing.assert_array_equal(mine.indices.numpy(), theirs.indices)
        alpha = np.array([0.4, 0.6])
        fused = views[0].fused_nearest(views, alpha, K, 0)[0]
        np.testing.assert_array_equal(fused.numpy(), hosts[0].fused_nearest(hosts, alpha, K, 0)[0])


def clusters(n: int, n_clusters: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % n_clusters
    return [
        4 * rng.normal(size=(n_clusters, m))[kind] + 0.5 * rng.normal(size=(n, m)) for m in (6, 4)
    ]


def fit(views, n_clusters=3, **params):
    with warnings.catch_warnings(action="ignore"):
        return mv.RobustWMNMF(n_clusters, random_state=0, **params).fit(views)


def holes(views, rng):
    X = views[0].copy()
    X[rng.random(X.shape) < 0.1] = np.nan
    views[1][:4] = np.nan
    return [X, views[1]]


def counts(views, rng):
    kind = np.arange(len(views[0])) % 3
    often = 4 * (rng.random((3, 300)) < 0.05)
    return [views[0], sp.csr_array(rng.poisson(0.02 + often[kind]).astype(float))]


@pytest.mark.parametrize("change", [lambda views, rng: views, holes, counts])
@pytest.mark.parametrize("repeat", [np.repeat, lambda rows, k: np.tile(rows, k)])
@pytest.mark.parametrize("k", [2, 25])
def test_repeating_every_row_repeats_everything(change, repeat, k):
    views = change(clusters(60, 3), np.random.default_rng(1))
    rows = repeat(np.arange(60), k)
    once, often = fit(views), fit([X[rows] for X in views])
    np.testing.assert_array_equal(often.view_weights_, once.view_weights_)
    np.testing.assert_array_equal(often.sample_weights_, once.sample_weights_[rows])
    np.testing.assert_array_equal(often.labels_, once.labels_[rows])
    np.testing.assert_allclose(often.confidence_, once.confidence_[rows], atol=1e-3)
    np.testing.assert_array_equal(often.predict(views), once.predict(views))


@given(st.lists(st.integers(1, 40), min_size=9, max_size=9), st.integers(0, 10**6))
@settings(max_examples=8)
def test_points_with_any_number_of_copies(copies, seed):
    centers = np.array([[1, 1], [11, 1], [1, 11]])
    points = np.vstack([np.add(center, [[0, 0], [0.5, 0.5], [0.5, 0]]) for center in centers])
    rows = np.random.default_rng(seed).permutation(np.repeat(np.arange(9), copies))
    X = points[rows]
    model = fit([X, X @ [[1, 0.3], [0.2, 1]]])
    assert adjusted_rand_score(rows // 3, model.labels_) == 1
    assert model.graph_.shape == (len(rows), len(rows))
    np.testing.assert_array_equal(model.predict([X, X @ [[1, 0.3], [0.2, 1]]]), model.labels_)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("n_clusters", [1, 2, 3])
def test_very_few_distinct_rows(n, n_clusters):
    rows = np.arange(60) % n
    X = np.array([[1.0, 9], [9, 1], [1.2, 8], [8.5, 1.5]])[rows]
    model = fit([X, X[:, ::-1] + 1], n_clusters)
    for row in range(n):
        assert len(set(model.labels_[rows == row])) == 1
    assert len(set(model.labels_)) <= min(n, n_clusters)
    np.testing.assert_allclose(model.consensus_.sum(axis=1), 1)
    if (n, n_clusters) in [(2, 2), (4, 2)]:
        assert adjusted_rand_score(rows % 2, model.labels_) == 1


@pytest.mark.parametrize(("frequent", "told"), [(1, False), (9, False), (10, True), (200, True)])
def test_few_distinct_rows_of_very_unequal_frequency_are_told(frequent, told):
    points = np.array([[1, 1], [1.5, 1.5], [11, 1], [11.5, 1.5], [1, 11], [1.5, 11.5]])
    X = np.repeat(points, [frequent, 1, 1, frequent, 1, 1], axis=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mv.RobustWMNMF(3, random_state=0).fit([X, 2 * X])
    about = [str(w.message) for w in caught if "are distinct" in str(w.message)]
    assert len(about) == told
    if told:
        assert f"the most frequent {frequent} times as frequent as the rarest" in about[0]


def test_resampled_rows_do_not_help_a_view_of_noise():
    """Copies of a row are near each other in any view: that is no agreement."""
    views = [*clusters(80, 3), np.random.default_rng(5).normal(size=(80, 6))]
    rows = np.random.default_rng(0).integers(0, 80, 300)
    once, model = fit(views), fit([X[rows] for X in views])
    assert model.view_weights_[2] < 0.05 and once.view_weights_[2] < 0.05
    assert adjusted_rand_score(rows % 3, model.labels_) == 1


def test_a_saved_model_of_repeated_rows_predicts_the_same(tmp_path):
    rows = np.random.default_rng(0).integers(0, 40, 120)
    views = [X[rows] for X in clusters(40, 3)]
    model = fit(views)
    model.save(tmp_path / "model.npz")
    read = mv.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(read.transform(views), model.transform(views))


def test_repeats_are_found_where_all_views_repeat():
    first, second = np.array([[1.0], [1], [0], [-0.0], [1]]), np.array([[2.0], [2], [3], [3], [4]])
    views = [Geometry(X, np.ones(5, dtype=bool)) for X in (first, second)]
    found = repeats_of(views)
    np.testing.assert_array_equal(found.first, [0, 2, 4])
    np.testing.assert_array_equal(found.of, [0, 0, 1, 1, 2])
    np.testing.assert_array_equal(found.mass, [2, 2, 1])
    assert repeats_of([Geometry(np.arange(5.0)[:, None], np.ones(5, dtype=bool))]) is None
    # Missing there, and present with the same numbers, is not the same.
    present = np.array([True, False, True, True, True])
    assert len(repeats_of([Geometry(first, present), views[1]]).first) == 4


def test_a_graph_of_distinct_rows_for_all():
    found = repeats_of([Geometry(np.array([[0.0], [1], [0], [2]]), np.ones(4, dtype=bool))])
    graph = sp.csr_array(np.array([[0, 0.5, 0.2], [0.5, 0, 0], [0.2, 0, 0]]))
    expected = np.zeros((4, 4))
    expected[[0, 0, 0, 1, 3, 2], [1, 3, 2, 0, 0, 0]] = [0.5, 0.2, 1, 0.5, 0.2, 1]
    np.testing.assert_array_equal(expanded_graph(graph, found).toarray(), expected)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=8), st.integers(1, 5))
def test_fewest_copies_keep_the_shares(counts, k):
    rows = np.repeat(np.arange(len(counts)), np.array(counts) * k)
    kept = rows[fewest_copies(rows[:, None] / 3)]
    np.testing.assert_array_equal(
        np.bincount(kept), np.array(counts) // np.gcd.reduce(np.array(counts))
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_codes_tell_rows_apart(dtype):
    X = whole_numbers(3000, 12, 2).astype(dtype)
    n = len(np.unique(X, axis=0))
    assert len(np.unique(row_codes(X))) == n == len(np.unique(row_codes(sp.csr_array(X))))
    stored = sp.csr_array((np.array([0.0, 1]), np.array([0, 1]), np.array([0, 2, 3])[:2]), (1, 2))
    assert row_codes(stored) == row_codes(sp.csr_array(np.array([[0.0, 1]])))


# --- values that repeat in one view ------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("by_kind", [False, True])
def test_one_hot_views_with_noise(seed, by_kind):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 4, 400)
    kind = np.sort(kind) if by_kind else kind  # files are often sorted
    noisy = [np.where(rng.random(400) < 0.1, rng.integers(0, 4, 400), kind) for _ in range(3)]
    model = fit([np.eye(4)[x] for x in noisy], 4)
    assert adjusted_rand_score(kind, model.labels_) >= 0.95
    np.testing.assert_allclose(model.view_weights_, 1 / 3, atol=0.05)


@pytest.mark.parametrize("by_kind", [False, True])
def test_a_category_of_noise_gets_no_weight_beside_numbers(by_kind):
    rng = np.random.default_rng(0)
    views, kind = clusters(300, 3), np.arange(300) % 3
    views += [np.eye(3)[kind], np.eye(4)[rng.integers(0, 4, 300)]]
    rows = np.argsort(kind, kind="stable") if by_kind else np.arange(300)
    model = fit([X[rows] for X in views])
    assert adjusted_rand_score(kind[rows], model.labels_) == 1
    assert model.view_weights_[3] < 0.05 < model.view_weights_[2]


@given(st.integers(0, 10**6), st.integers(2, 12), st.booleans())
def test_lists_of_a_crowd_are_spread_by_mass(seed, k, heavy):
    rng = np.random.default_rng(seed)
    value = rng.integers(0, 3, 90)
    view = Geometry(value[:, None].astype(float), np.ones(90, dtype=bool))
    view.mass = rng.integers(1, 9, 90).astype(float) if heavy else None
    mass = np.ones(90) if view.mass is None else view.mass
    found = crowds_of(view, np.arange(90), k)
    sizes = np.bincount(value, mass)
    np.testing.assert_array_equal(np.sort(found.rows), np.flatnonzero(sizes[value] - 1 >= k))
    assert (value[found.near] == value[found.rows][:, None]).all()
    np.testing.assert_allclose(found.stands_for.sum(axis=1), sizes[value[found.rows]])
    # Over all members every row is met about as often as its mass says.
    met = np.zeros(90)
    np.add.at(met, found.near, (mass[found.rows] / sizes[value[found.rows]])[:, None])
    crowded = np.isin(np.arange(90), found.rows)
    share = (k * mass / sizes[value])[crowded]
    assert np.abs(met[crowded] - share).max() <= 2 + 0.5 * share.max()


def test_coordinates_of_a_file_repeat_like_its_rows(tmp_path):
    X = np.repeat(clusters(60, 3)[0], 3, axis=0)
    np.save(tmp_path / "x.npy", X)
    view = FileGeometry(DiskMatrix(tmp_path / "x.npy"), np.ones(180, dtype=bool))
    found = repeats_of([view])
    np.testing.assert_array_equal(found.first, np.arange(0, 180, 3))
    few = view.distinct(found.first, found.mass)
    chosen = np.array([0, 5, 59])
    np.testing.assert_allclose(few.rows(chosen).Z, X[found.first][chosen])
