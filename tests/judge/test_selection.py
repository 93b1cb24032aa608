"""How many clusters: found where they are, none where there are none, whatever the form of the data."""

import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import manyview as mv
from conftest import blobs
from manyview import criteria
from manyview.criteria import cloud, number_by_gap, separation
from manyview.engines.numpy.distances import Geometry
from manyview.fuse import fused_graphs
from manyview.maths.spectrum import modularity
from manyview.selection import NoClustersWarning, Selection, select_n_clusters, usual_candidates


def groups(n_clusters, n=150, features=(30, 40), seed=0, spread=1.5):
    """Gaussian groups around random centers, negative values included."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_clusters
    return [rng.normal(spread * rng.standard_normal((n_clusters, m))[y], 1) for m in features]


def quick(views, candidates=range(2, 7), **more):
    return select_n_clusters(views, candidates, **{"random_state": 0} | more)


# --- the right number ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_clusters", [2, 8, 20])
def test_separated_groups_are_found(n_clusters):
    chosen = quick(groups(n_clusters, n=max(150, 12 * n_clusters)), None)
    assert chosen.found and chosen.n_clusters == n_clusters and not chosen.doubtful


@pytest.mark.parametrize(("n_features", "n_views"), [(2, 1), (5, 2)])
def test_two_distant_groups_are_found_in_narrow_views(n_features, n_views):
    """A single cluster of few features can be cut into pieces of high modularity, too."""
    rng, y = np.random.default_rng(0), np.arange(200) % 2
    views = [rng.standard_normal((200, n_features)) + 8 * y[:, None] for _ in range(n_views)]
    found = select_n_clusters(views, random_state=0)
    assert found.found and found.n_clusters == 2 and not found.doubtful
    assert "falls into 2 separate parts" in str(found)


def test_ten_clusters_of_the_synthetic_data():
    data = mv.datasets.make_synthetic(400, random_state=0)
    assert quick(data.views, None).n_clusters == 10


def test_clusters_of_very_unequal_size_are_not_two():
    rng, y = np.random.default_rng(0), np.repeat(np.arange(5), [120, 60, 30, 15, 12])
    views = [rng.normal(2 * rng.standard_normal((5, m))[y], 1) for m in (10, 15)]
    assert quick(views).n_clusters in (4, 5)


def noise(rng):
    return [rng.standard_normal((150, m)) for m in (12, 15)]


def long(rng):
    shared = rng.standard_normal((200, 2)) * [3, 1]
    return [shared @ rng.standard_normal((2, m)) + rng.normal(0, 0.3, (200, m)) for m in (6, 8)]


def skewed(rng):
    shared = rng.standard_normal((200, 2))
    loadings = [rng.standard_normal((2, m)) for m in (8, 10)]
    return [np.exp(rng.normal(shared @ loading, 0.3)) for loading in loadings]


def long_with_missing_rows(rng):
    views = long(rng)
    for X in views:
        X[rng.random(200) < 0.4] = np.nan
    return views


@pytest.mark.parametrize("spread", [0.7, 3])
@pytest.mark.parametrize("sizes", [(150, 50), (140, 30, 30)])
def test_few_distant_clusters_are_not_denied(sizes, spread):
    """Few distant clusters stretch the covariance: a cloud with it has high modularity at many clusters."""
    rng, y = np.random.default_rng(len(sizes)), np.repeat(range(len(sizes)), sizes)
    views = [rng.normal(spread * rng.standard_normal((len(sizes), m))[y], 1) for m in (30, 40)]
    with warnings.catch_warnings(action="ignore", category=NoClustersWarning):
        chosen = quick(views, range(2, 11))
    assert chosen.found or (chosen.doubtful and chosen.runner_up == len(sizes))


@pytest.mark.parametrize("cloud", [noise, long, skewed, long_with_missing_rows])
@pytest.mark.parametrize("seed", range(2))
def test_a_cloud_has_no_clusters(cloud, seed):
    with pytest.warns(NoClustersWarning, match="no number of clusters stands out"):
        chosen = quick(cloud(np.random.default_rng(seed)), range(2, 11))
    assert not chosen.found and chosen.n_clusters == 1
    assert str(chosen).startswith("no clusters found")
    assert not chosen.table["chosen"].any()


def test_few_candidates_do_not_make_clusters_of_a_cloud():
    with pytest.warns(NoClustersWarning):
        assert not quick(noise(np.random.default_rng(0)), [2, 3]).found


def test_the_runner_up_is_another_peak():
    """Four pairs of near clusters: 8, or 4."""
    rng, y = np.random.default_rng(0), np.arange(160) % 8
    centers = np.zeros((8, 12))
    centers[range(8), np.arange(8) // 2], centers[range(8), 4 + np.arange(8)] = 8, 2.5
    chosen = quick([rng.normal(centers[y], 1) for _ in range(2)], range(2, 13))
    assert (chosen.n_clusters, chosen.runner_up) == (8, 4)
    assert chosen.answer == "8 clusters; also 4"


def test_the_largest_candidate_is_recommended_with_a_warning():
    with pytest.warns(UserWarning, match=r"largest candidate \(4\).*add larger candidates"):
        assert quick(groups(6), [2, 3, 4]).n_clusters == 4


@pytest.mark.parametrize(
    ("shift", "found", "doubtful"),
    [(4.5, False, True), (5.5, True, True), (3.0, False, False), (9.0, True, False)],
)
def test_there_is_no_cliff_at_the_threshold(shift, found, doubtful, monkeypatch):
    """Whatever side of the threshold the test is on, the number is named and called doubtful."""
    graphs = iter(range(13))

    def of(graph, candidates, rng):
        """Every other cloud exceeds its mean at 3 clusters by .066."""
        place = next(graphs)
        swing = 0.066 * (-1) ** place if place else 0.036 * (1 + shift * np.sqrt(12 / 11))
        none = np.zeros(len(candidates))
        return np.where(np.equal(candidates, 3), 0.2 + swing, 0.1), none, none, none

    monkeypatch.setattr(criteria, "separation", of)
    with warnings.catch_warnings(action="ignore", category=NoClustersWarning):
        chosen = quick(groups(3), [2, 3, 4])
    assert (chosen.found, chosen.doubtful) == (found, doubtful)
    assert chosen.n_clusters == (3 if found else 1)
    assert chosen.runner_up == (3 if doubtful and not found else None)
    assert f"The difference is {shift:.1f} standard deviations; 5 are required" in str(chosen)


# --- laws ---------------------------------------------------------------------------------------


def test_order_of_samples_and_of_views_and_units_do_not_matter():
    views = groups(3)
    order = np.random.default_rng(1).permutation(150)
    moved = quick([1000 * X[order] for X in views[::-1]])
    assert moved.n_clusters == quick(views).n_clusters == 3


def test_the_same_seed_gives_the_same_table():
    one, two = (quick(groups(3, n=90), [2, 3, 4]) for _ in range(2))
    for name, column in one.table.items():
        np.testing.assert_array_equal(column, two.table[name])
    assert one.reasons == two.reasons


def test_the_model_passed_in_is_left_alone():
    model = mv.RobustWMNMF(n_neighbors=7, views=[30, 40])
    before = dict(vars(model))
    assert quick(np.hstack(groups(3)), model=model).n_clusters == 3
    assert vars(model) == before


def test_auto_asks_the_same_question():
    views = groups(3, n=200)
    own = mv.RobustWMNMF("auto", random_state=0).fit(views).selection_
    asked = select_n_clusters(views, random_state=0)
    assert own.reasons == asked.reasons and own.n_clusters == asked.n_clusters == 3
    assert own.table["n_clusters"].tolist() == [*range(2, 15), 16, 18, 20]
    assert usual_candidates(1000)[-3:] == [60, 80, 100]


# --- forms of input -----------------------------------------------------------------------------


def test_missing_views_missing_entries_and_sparse_views():
    rng = np.random.default_rng(0)
    views = groups(3)
    views[0][:20] = np.nan
    views[1][rng.random(views[1].shape) < 0.05] = np.nan
    views[1][25:30] = np.nan
    views[0][25] = np.nan  # missing everywhere
    counts = rng.poisson(np.where(np.arange(60) % 3 == np.arange(150)[:, None] % 3, 0.3, 0.01))
    with warnings.catch_warnings(action="error"):
        chosen = quick([*views, sp.csr_array(counts)], [2, 3, 4])
    assert chosen.n_clusters == 3


def test_large_data_are_sampled():
    chosen = quick(groups(3, n=400), max_samples=120)
    assert chosen.n_clusters == 3
    assert "120 of the 400 samples" in chosen.reasons[0]


@pytest.mark.filterwarnings("ignore")
def test_copies_are_no_candidates():
    P = np.repeat(np.array([[1, 1], [2, 1], [9, 1], [9, 2], [1, 9], [2, 9]]) + 0.5, 20, axis=0)
    selection = quick(views=[P, P], candidates=range(2, 15))
    assert list(selection.table["n_clusters"]) == [2, 3, 4, 5, 6]
    assert "Only 6 samples are distinct: no more clusters were tried." in selection.reasons
    assert len(mv.RobustWMNMF("auto", random_state=0).fit([P, P]).labels_) == 120
    with pytest.raises(ValueError, match="only 6 distinct samples, fewer than every candidate"):
        quick(views=[P, P], candidates=[7, 8])
    with pytest.raises(ValueError, match="at least 3 distinct samples, got 2 of 40; set"):
        quick(views=[P[:40], P[:40]], candidates=[2])


@pytest.mark.parametrize("n_kinds", [3, 4])
@pytest.mark.parametrize("n_views", [1, 2])
def test_clean_categories_are_clusters(n_kinds, n_views):
    y = np.arange(200) % n_kinds
    with warnings.catch_warnings(action="error", category=UserWarning):
        warnings.simplefilter("ignore", ConvergenceWarning)  # of k-means on three points
        found = quick([np.eye(n_kinds)[y]] * n_views, range(2, 8))
    assert found.found and found.n_clusters == n_kinds


def test_frequent_kinds_among_rare_ones_are_named():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4
    noisy = [np.where(rng.random(200) < 0.1, rng.integers(4, size=200), y) for _ in range(2)]
    with warnings.catch_warnings(action="ignore"):
        found = quick([np.eye(4)[z] for z in noisy], range(2, 8))
    assert found.n_clusters == 4 or "set n_clusters=4" in str(found)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"candidates": []}, "candidates must be numbers of clusters.*got none"),
        ({"candidates": [0, 2]}, "integers of at least 1; got 0"),
        ({"candidates": [2.5]}, "got 2.5"),
        ({"candidates": 5}, "got 5"),
        ({"candidates": [1]}, "1 alone leaves nothing to choose"),
        ({"candidates": [2, 61]}, "more than the 60 samples"),
        ({"candidates": [2, 40], "max_samples": 30}, "only 30 samples are used"),
        ({"max_samples": 5}, "max_samples must be an integer of at least 10"),
        ({"views": [np.full((60, 2), np.inf)]}, "infinite"),
    ],
)
def test_bad_input_is_answered_by_a_sentence(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        quick(**{"views": blobs(60)[0]} | change)


def test_only_the_recommended_estimator_has_the_graph():
    with pytest.raises(TypeError, match="stability\\(model, views\\)"):
        quick(blobs(60)[0], model=mv.baselines.MultiNMF(3))


# --- the result ---------------------------------------------------------------------------------


def test_words_table_and_figure(monkeypatch):
    chosen = quick(groups(3), [2, 3, 4])
    assert repr(chosen).startswith("<Selection: 3 clusters")
    assert "highest at 3 clusters" in str(chosen)
    table = chosen.table
    assert table["n_clusters"][table["chosen"]].tolist() == [3]
    bound = table["modularity"] + np.sqrt(table["n_clusters"]) * table["gap"]
    np.testing.assert_allclose(table["score"], bound)
    close = Selection(3, True, [], table, 4, True)
    assert close.answer == "3 clusters; also 4 (doubtful)"
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = chosen.figure()
    assert len(figure.axes) == 1 and figure.axes[0].get_title() == chosen.answer
    figure.canvas.draw()
    matplotlib.pyplot.close(figure)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ModuleNotFoundError, match=r"manyview\[app\]"):
        chosen.figure()


# --- parts --------------------------------------------------------------------------------------


def blocks(sizes, between=0.0):
    """A graph of complete parts."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    A = np.where(y[:, None] == y, 1.0, between)
    np.fill_diagonal(A, 0)
    return sp.csr_array(A), y


def test_modularity_is_that_of_its_definition(rng):
    A, y = blocks([20, 30, 10], 0.1)
    B = A.toarray()
    d, total = B.sum(axis=1), B.sum()
    for labels in (y, rng.integers(4, size=60), np.zeros(60, int)):
        same = labels[:, None] == labels
        expected = ((B - np.outer(d, d) / total) * same).sum() / total
        assert modularity(A, labels) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n_parts", [2, 5, 12])
def test_parts_of_a_graph_are_counted(n_parts):
    A, y = blocks([15] * n_parts, 0.01)
    K = [*range(2, 15), 16, 20]
    Q, gap, share, smallest = separation(A, K, np.random.default_rng(0))
    assert K[Q.argmax()] == n_parts == K[gap.argmax()] == K[share.argmax()]
    assert smallest[K.index(n_parts)] == 15
    assert Q.max() == pytest.approx(modularity(A, y))


def test_a_cloud_has_the_covariance_of_the_views(rng):
    X = groups(4)[0]
    two, wide = X[:, :3] @ rng.standard_normal((3, 5)), np.hstack([X] * 20)  # 600 columns
    views = [Geometry(Z, np.ones(len(Z), bool)) for Z in (X, two, wide)]
    own = fused_graphs(views, np.ones(3) / 3, 0)[0]
    drawn = [cloud(views, own, np.random.default_rng(seed)) for seed in range(40)]
    # Of 6000 rows, so that covariances are known to about 2%; within a view and between two.
    clouds = [np.concatenate([draw[s].Z for draw in drawn]) for s in range(3)]
    centered = [Z - Z.mean(axis=0) for Z in (X, two)]
    wanted, found = (np.cov(np.hstack(parts).T, bias=True) for parts in (centered, clouds[:2]))
    assert np.linalg.norm(found - wanted) < 0.05 * np.linalg.norm(wanted)
    # Of the wide view the columns are turned, which leaves the distances: the spectrum is the same.
    flat = wide - wide.mean(axis=0)
    spectra = [np.linalg.svd(Z, compute_uv=False)[:5] ** 2 / len(Z) for Z in (clouds[2], flat)]
    np.testing.assert_allclose(*spectra, rtol=0.1)


def test_clouds_share_as_much_between_views_whatever_rows_are_missing(rng):
    factor = rng.standard_normal((200, 1))
    tables = [factor @ np.ones((1, m)) + rng.normal(0, 0.1, (200, m)) for m in (4, 6)]
    kept = rng.integers(3, size=200)  # by the first view alone, by the second alone, by both
    views = [Geometry(Z, kept != s) for s, Z in enumerate(tables)]
    fused = fused_graphs(views, np.ones(2) / 2, 0)[0]
    both, shared = views[0].present & views[1].present, []
    for _ in range(10):
        one, other = cloud(views, fused, rng)
        np.testing.assert_array_equal(other.present, views[1].present)
        shared.append(np.corrcoef(one.Z[both].mean(axis=1), other.Z[both].mean(axis=1))[0, 1])
    assert np.mean(shared) > 0.95  # by the rows that both views have alone it would be .5


def test_a_missing_row_without_neighbors_has_no_part_in_a_cloud(rng):
    present = np.array([True, True, False, False])
    links = sp.csr_array(np.array([[0, 0, 1, 0], [0, 0, 2, 0], [1, 2, 0, 0], [0, 0, 0, 0.0]]))
    drawn = cloud([Geometry(rng.standard_normal((4, 3)), present)], links, rng)
    np.testing.assert_array_equal(drawn[0].present, present)
    assert np.isfinite(drawn[0].Z).all()


def test_the_largest_gap_counts_the_parts_of_a_graph():
    class Fused:
        fused = blocks([15] * 7, 0.01)[0]

    assert number_by_gap(Fused) == 7
