import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import manyview as mv
from conftest import blobs
from manyview import criteria as selection
from manyview.criteria import (
    NoClustersWarning,
    Vote,
    cloud,
    combine,
    consensus_quality,
    heed_copies,
    n_components,
    reference_graph,
)
from manyview.engines.numpy.distances import Geometry
from manyview.fuse import fused_graphs
from manyview.labels import installed
from manyview.selection import METHODS, select_n_clusters

GRAPH = ["stability", "eigengap"]
#: Those that look at candidates one by one.
SCORED = [method for method in METHODS if method != "communities"]


def groups(n_clusters, n=150, features=(30, 40), seed=0, spread=1.5):
    """Gaussian groups around random centres, negative values included."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_clusters
    return [rng.normal(spread * rng.standard_normal((n_clusters, m))[y], 1) for m in features]


def noise(n=150, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, m)) for m in (12, 15)]


def quick(views, candidates=range(2, 7), method="stability", **more):
    return select_n_clusters(views, candidates, method, **{"n_runs": 6, "random_state": 0} | more)


# --- the right answer --------------------------------------------------------------------------


@pytest.mark.parametrize("method", SCORED)
@pytest.mark.parametrize("n_clusters", [2, 4])
def test_every_method_finds_well_separated_groups(method, n_clusters):
    chosen = quick(groups(n_clusters), method=method)
    assert chosen.found and chosen.n_clusters == n_clusters
    assert chosen.votes == {method: n_clusters}


def test_ten_clusters_of_the_synthetic_data():
    data = mv.datasets.make_synthetic(400, random_state=0)
    assert quick(data.views, [2, 5, 8, 9, 10, 11, 12], GRAPH).votes == {
        "stability": 10,
        "eigengap": 10,
    }


@pytest.mark.parametrize("method", SCORED)
def test_noise_is_called_noise(method):
    with pytest.warns(NoClustersWarning, match="no number of clusters stands out"):
        chosen = quick(noise(), method=method)
    assert not chosen.found and chosen.n_clusters == 1
    assert any("no " in reason for reason in chosen.reasons)
    assert "no clusters found" in str(chosen)


@pytest.mark.parametrize("seed", range(4))
def test_an_elongated_blob_is_not_two(seed):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((200, 2)) * [3, 1]
    views = [shared @ rng.standard_normal((2, m)) + rng.normal(0, 0.3, (200, m)) for m in (6, 8)]
    with pytest.warns(NoClustersWarning):
        assert quick(views, method=GRAPH).n_clusters == 1


def test_votes_are_combined_and_ranks_do_not_overrule_the_graph():
    chosen = quick(groups(3), method="all")
    assert list(chosen.votes) == list(METHODS) and chosen.n_clusters == 3
    assert "most support" in chosen.reasons[-1]
    assert any("rank of a factorisation" in reason for reason in chosen.reasons)
    rng = np.random.default_rng(0)  # rank 3, but one cloud
    weights = rng.gamma(2, 1, (200, 3))
    cloud = [
        weights @ rng.gamma(1, 1, (3, m)) + 0.05 * rng.standard_normal((200, m)) for m in (12, 15)
    ]
    with pytest.warns(NoClustersWarning):
        chosen = quick(cloud, method=["stability", "eigengap", "sure"])
    assert chosen.votes["sure"] != 1 and chosen.n_clusters == 1


def test_what_stability_does_not_find_is_not_there():
    chosen = [Vote("eigengap", {}, 4, ""), Vote("stability", {}, 1, ""), Vote("mdl", {}, 5, "")]
    found = combine(chosen)
    assert (found.n_clusters, found.runner_up) == (1, 4)
    assert found.words[-1].startswith("eigengap says 4, but stability finds no clusters")


def test_an_eigengap_that_finds_nothing_is_named():
    chosen = [Vote("stability", {}, 4, ""), Vote("eigengap", {}, 1, ""), Vote("mdl", {}, 5, "")]
    found = combine(chosen)
    assert (found.n_clusters, found.runner_up, found.doubtful) == (4, 5, True)
    assert found.words[-1] == "eigengap finds no clusters: take 4 with care"


def skewed(rng):
    shared = rng.standard_normal((200, 2))
    return [
        np.exp(shared @ rng.standard_normal((2, m)) + rng.normal(0, 0.3, (200, m))) for m in (8, 10)
    ]


def ring(rng):
    angle = rng.uniform(0, 2 * np.pi, 200)
    circle = np.c_[np.cos(angle), np.sin(angle)]
    return [circle + rng.normal(0, 0.05, (200, 2)) for _ in range(2)]


def test_a_gap_in_a_skewed_cloud_is_not_believed():
    views = skewed(np.random.default_rng(1))  # one that has a gap beyond that of the references
    straight = mv.RobustWMNMF(scale="quantile")  # a logarithm would take the gap away
    with pytest.warns(NoClustersWarning, match="but stability finds no clusters"):
        chosen = quick(views, range(2, 15), GRAPH, model=straight)
    assert chosen.n_clusters == 1 and not chosen.found
    assert chosen.votes["stability"] == 1 and chosen.votes["eigengap"] > 1


@pytest.mark.parametrize("n_clusters", [16, 25])  # 25 are just joined, 16 are not
@pytest.mark.parametrize("method", ["eigengap", GRAPH])
def test_more_clusters_than_candidates_are_not_called_none(method, n_clusters):
    views = groups(n_clusters, n=500, features=(10, 10), spread=12)
    with pytest.warns(UserWarning, match=r"largest candidate \(14\).*raise the candidates"):
        chosen = quick(views, range(2, 15), method)
    assert chosen.found and chosen.n_clusters == 14
    assert any("more clusters than the largest candidate" in r for r in chosen.reasons)


def test_an_eigengap_beyond_the_candidates_goes_before_stability():
    more = Vote("eigengap", {}, 14, "", open_ended=True)
    for seen in (1, 12):
        found = combine([Vote("stability", {}, seen, ""), more])
        assert found.n_clusters == 14 and "more clusters than any candidate" in found.words[-1]


@pytest.mark.parametrize("cloud", [noise, lambda: ring(np.random.default_rng(0))])
def test_few_candidates_do_not_make_clusters_of_a_cloud(cloud):
    with pytest.warns(NoClustersWarning):
        assert quick(cloud(), [2, 3], "eigengap").n_clusters == 1


def test_the_largest_candidate_is_recommended_with_a_warning():
    with pytest.warns(UserWarning, match="raise the candidates"):
        assert quick(groups(6), [2, 3, 4], "mdl").n_clusters == 4


# --- invariants --------------------------------------------------------------------------------


def test_scores_lie_in_their_ranges():
    table = quick(groups(3), method=GRAPH).table
    stable = table["method"] == "stability"
    for name in ("ari", "pac"):
        assert (table[name][stable] <= 1).all() and (table[name][stable] >= -0.5).all()
        assert np.isnan(table[name][~stable]).all()
    assert (table["score"] <= 1).all() and (table["error"][stable] >= 0).all()
    assert (table["cophenetic"][stable] <= 1 + 1e-9).all()
    assert {len(column) for column in table.values()} == {10}
    assert table["chosen"].sum() == 2


def test_order_of_observations_and_of_views_does_not_matter():
    views = groups(3)
    order = np.random.default_rng(1).permutation(150)
    moved = [X[order] for X in views[::-1]]
    assert quick(moved, method=GRAPH).votes == quick(views, method=GRAPH).votes


def test_the_same_seed_gives_the_same_table():
    one, two = (quick(groups(3, n=90), [2, 3], [*GRAPH, "bicv"], n_runs=3) for _ in range(2))
    for name, column in one.table.items():
        np.testing.assert_array_equal(column, two.table[name])
    assert one.reasons == two.reasons


@pytest.mark.parametrize("candidates", [[3], range(2, 8)])
def test_what_does_not_depend_on_k_is_done_once(candidates, monkeypatch):
    calls = []
    agree = selection.agree
    monkeypatch.setattr(selection, "agree", lambda *a, **k: calls.append(1) or agree(*a, **k))
    quick(groups(3, n=90), candidates, [*GRAPH, "mdl"], n_runs=3)
    assert len(calls) == 1


def test_the_model_passed_in_is_left_alone():
    model = mv.RobustWMNMF(n_neighbors=7, views=[30, 40])
    before = dict(vars(model))
    assert quick(np.hstack(groups(3)), model=model).n_clusters == 3
    assert vars(model) == before


# --- forms of input ----------------------------------------------------------------------------


def test_missing_views_missing_entries_and_sparse_views():
    rng = np.random.default_rng(0)
    views = groups(3)
    views[0][:20] = np.nan
    views[1][rng.random(views[1].shape) < 0.05] = np.nan
    views[1][25:30] = np.nan
    views[0][25] = np.nan  # missing everywhere
    counts = rng.poisson(np.where(np.arange(60) % 3 == np.arange(150)[:, None] % 3, 0.3, 0.01))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chosen = quick([*views, sp.csr_array(counts)], [2, 3, 4], "all")
    assert chosen.n_clusters == 3


def test_large_data_are_sampled():
    chosen = quick(groups(3, n=400), max_samples=120)
    assert chosen.n_clusters == 3
    assert "120 of the 400 observations" in chosen.reasons[0]


def test_narrow_views_cannot_be_factorised():
    rng = np.random.default_rng(0)
    narrow = [rng.normal(5.0 * (np.arange(90) % 2)[:, None], 1, (90, 1)) for _ in range(2)]
    chosen = quick(narrow, method=["stability", "bicv"])
    assert chosen.votes["bicv"] is None and chosen.n_clusters == 2
    assert "cannot tell" in chosen.reasons[1]


@pytest.mark.filterwarnings("ignore")
def test_copies_are_no_candidates():
    P = np.repeat(np.array([[1, 1], [2, 1], [9, 1], [9, 2], [1, 9], [2, 9]]) + 0.5, 20, axis=0)
    selection = quick(views=[P, P], candidates=range(2, 15))
    assert list(selection.table["n_clusters"]) == [2, 3, 4, 5, 6]
    assert "only 6 observations are distinct: no more clusters were tried" in selection.reasons
    assert len(mv.RobustWMNMF("auto", random_state=0).fit([P, P]).labels_) == 120
    with pytest.raises(ValueError, match="only 6 distinct observations, and no candidate is as"):
        quick(views=[P, P], candidates=[7, 8])
    with pytest.raises(ValueError, match="at least 3 distinct observations, got 2 of 40; say"):
        quick(views=[P[:40], P[:40]], candidates=[2])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"candidates": []}, "candidates must be numbers of clusters.*got none"),
        ({"candidates": [0, 2]}, "integers of at least 1; got 0"),
        ({"candidates": [2.5]}, "got 2.5"),
        ({"candidates": 5}, "got 5"),
        ({"candidates": [1]}, "1 alone leaves nothing to choose"),
        ({"candidates": [2, 61]}, "more than the 60 observations"),
        ({"candidates": [2, 40], "max_samples": 30}, "only 30 observations are looked at"),
        ({"method": "elbow"}, "method must be 'all' or among stability.*'elbow'"),
        ({"method": []}, "empty list"),
        ({"n_runs": 2}, "n_runs must be an integer of at least 3"),
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
    with pytest.raises(ValueError, match="'all' or among bicv, imputation"):
        quick(blobs(60)[0], model=mv.WMNMF(3))


# --- the result --------------------------------------------------------------------------------


def test_words_and_table():
    chosen = quick(groups(3), [2, 3, 4])
    assert repr(chosen) == "<Selection: 3 clusters (stability 3)>"
    assert str(chosen).startswith("3 clusters\n- stability: 3 clusters are found again")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(chosen.table)
    assert frame.loc[frame.chosen, "n_clusters"].tolist() == [3]
    K, score = chosen.scores("stability")
    assert K[score.argmax()] == 3
    with pytest.raises(ValueError, match="method must be one of stability"):
        chosen.scores("mdl")


def test_figure_draws_a_panel_per_method():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    figure = quick(groups(3), [2, 3], [*GRAPH, "imputation", "mdl"], n_runs=3).figure()
    assert sum(ax.get_visible() for ax in figure.axes) == 4
    figure.canvas.draw()
    matplotlib.pyplot.close(figure)


def test_without_matplotlib_the_figure_names_the_extra(monkeypatch):
    chosen = quick(groups(3), [2, 3, 4], "eigengap")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ModuleNotFoundError, match=r"manyview\[app\]"):
        chosen.figure()


# --- parts -------------------------------------------------------------------------------------


def test_a_reference_has_the_covariance_of_the_views_but_no_clusters(rng, monkeypatch):
    X = groups(4)[0]
    two, wide = X[:, :3] @ rng.standard_normal((3, 5)), np.hstack([X] * 20)  # 600 columns
    views = [Geometry(Z, np.ones(len(Z), bool)) for Z in (X, two, wide)]
    own, drawn = fused_graphs(views, np.ones(3) / 3, [], 0)[0], []
    monkeypatch.setattr(
        selection,
        "fused_graphs",
        lambda clouds, *a: drawn.append(clouds) or fused_graphs(clouds, *a),
    )
    for seed in range(40):
        fused = reference_graph(views, own, np.ones(3) / 3, np.random.default_rng(seed))
    assert fused.shape == (150, 150) and abs(fused - fused.T).max() < 1e-12
    # Of 6000 rows, so that covariances are known to about 2%; within a view and between two.
    clouds = [np.concatenate([draw[s].Z for draw in drawn]) for s in range(3)]
    centred = [Z - Z.mean(axis=0) for Z in (X, two)]
    wanted, found = (np.cov(np.hstack(parts).T, bias=True) for parts in (centred, clouds[:2]))
    assert np.linalg.norm(found - wanted) < 0.05 * np.linalg.norm(wanted)
    # Of the wide view the columns are turned, which leaves the distances: the spectrum is the same.
    flat = wide - wide.mean(axis=0)
    spectra = [np.linalg.svd(Z, compute_uv=False)[:5] ** 2 / len(Z) for Z in (clouds[2], flat)]
    np.testing.assert_allclose(*spectra, rtol=0.1)
    # The groups, moved further apart, fall into four pieces; the cloud is one.
    far = Geometry(groups(4, spread=5)[0], np.ones(150, bool))
    assert n_components(fused_graphs([far], np.ones(1), [], 0)[0]) == 4
    assert n_components(fused) == 1


def test_clouds_share_as_much_between_views_whatever_rows_are_missing(rng):
    factor = rng.standard_normal((200, 1))
    tables = [factor @ np.ones((1, m)) + rng.normal(0, 0.1, (200, m)) for m in (4, 6)]
    kept = rng.integers(3, size=200)  # by the first view alone, by the second alone, by both
    views = [Geometry(Z, kept != s) for s, Z in enumerate(tables)]
    fused = fused_graphs(views, np.ones(2) / 2, [], 0)[0]
    both, shared = views[0].present & views[1].present, []
    for _ in range(10):
        one, other = cloud(views, fused, rng)
        np.testing.assert_array_equal(other.present, views[1].present)
        shared.append(np.corrcoef(one.Z[both].mean(axis=1), other.Z[both].mean(axis=1))[0, 1])
    assert np.mean(shared) > 0.95  # by the rows that both views have alone it would be .5


def test_a_missing_row_without_neighbours_has_no_part_in_a_cloud(rng):
    present = np.array([True, True, False, False])
    links = sp.csr_array(np.array([[0, 0, 1, 0], [0, 0, 2, 0], [1, 2, 0, 0], [0, 0, 0, 0.0]]))
    assert selection._stand_ins(present, links).tolist() == [0, 1, 1, -1]


@pytest.mark.parametrize("seed", [2, 3])
def test_a_long_blob_with_missing_rows_has_no_clusters(seed):
    rng = np.random.default_rng(100 + seed)
    factor = rng.standard_normal((200, 2))
    views = [factor @ rng.standard_normal((2, m)) + rng.normal(0, 0.3, (200, m)) for m in (10, 15)]
    for X in views:
        X[rng.random(200) < 0.4] = np.nan
    with pytest.warns(NoClustersWarning):
        assert not quick(views, range(2, 6), GRAPH).found


def test_consensus_of_identical_runs_is_unambiguous(rng):
    labels = rng.integers(3, size=40)
    same = np.array([labels, (labels + 1) % 3, labels])
    assert consensus_quality(same) == pytest.approx((0, 1))
    mixed = rng.integers(3, size=(20, 40))
    assert consensus_quality(mixed)[0] > 0.9


def test_factorisations_of_growing_rank_explain_more(rng):
    X = rng.gamma(1, 1, (40, 4)) @ rng.gamma(1, 1, (4, 30))
    errors = [((X - V @ U.T) ** 2).sum() for V, U in selection.nmf_path(X, [1, 2, 3, 4], rng)]
    assert (np.diff(errors) < 0).all() and errors[-1] < 1e-3 * (X**2).sum()
    for V, U in selection.nmf_path(X, [2, 5], rng):
        assert (V >= 0).all() and (U >= 0).all()


@pytest.mark.parametrize(
    "criterion", [selection.bicv, selection.imputation, selection.mdl, selection.sure]
)
def test_criteria_find_the_rank_of_noisy_products(criterion):
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, 1, (150, 4)) @ rng.gamma(0.5, 1, (4, 60)) + 0.3 * rng.random((150, 60))
    curve = criterion(X, np.ones(X.shape, bool), [1, 2, 3, 4, 5, 6, 7], rng)
    # It falls up to rank 4 and not much further (the mean of the noise may take a part of its own).
    assert curve[3] == curve[:4].min()
    assert curve[3] - curve.min() < 0.2 * (curve[2] - curve.min())


# --- following the choice ----------------------------------------------------------------------


def stable(choice, passed, **more):
    return Vote("stability", {}, choice, "", passed=passed, **more)


def test_of_numbers_that_come_back_alike_the_one_near_the_communities_counts():
    groups = Vote("communities", {}, 9, "", communities=9)
    found = combine([stable(2, {2: 0.96, 5: 0.66, 8: 0.95}), groups])
    assert (found.n_clusters, found.runner_up) == (8, 9)
    assert any("stability counts for 8 (0.95), not 2 (0.96)" in why for why in found.words)
    clear = combine([stable(2, {2: 0.96, 8: 0.70}), groups])
    assert clear.n_clusters == 2 and clear.runner_up == 9
    alone = combine([stable(2, {2: 0.96, 8: 0.95}), Vote("communities", {}, None, "")])
    assert alone.n_clusters == 2


@pytest.mark.parametrize(("shaky", "near"), [((), False), ((8,), False), ((), True)])
def test_a_number_drawn_to_the_communities_is_as_sure_as_it_and_they_are(shaky, near):
    groups = Vote("communities", {}, 9, "", communities=9, doubtful=near)
    vote = stable(2, {2: 0.7, 8: 0.58}, shaky=frozenset(shaky))
    found = combine([vote, groups])
    assert found.n_clusters == 8 and found.doubtful == bool(shaky or near)
    assert any(why.endswith("which is doubtful") for why in found.words) == found.doubtful


def test_where_no_communities_come_back_a_gap_decides_among_numbers_that_do():
    gap, none = Vote("eigengap", {}, 6, ""), Vote("communities", {}, None, "")
    vote = stable(2, {2: 1.0, 4: 0.92, 5: 0.99})
    found = combine([vote, gap, none])
    assert (found.n_clusters, found.runner_up) == (5, 6)
    assert any("doubling or halving of the 6 of eigengap" in why for why in found.words)
    assert combine([vote, Vote("eigengap", {}, 1, ""), none]).n_clusters == 2


def test_clusters_of_very_unequal_size_are_not_two():
    rng, y = np.random.default_rng(0), np.repeat(np.arange(5), [120, 60, 30, 15, 12])
    views = [rng.normal(2 * rng.standard_normal((5, m))[y], 1) for m in (10, 15)]
    assert quick(views, method=METHODS[:3]).n_clusters in (4, 5)


def test_what_comes_back_best_at_the_largest_candidate_is_not_drawn_to_fewer():
    groups = Vote("communities", {}, 30, "", communities=28)
    found = combine([stable(40, {30: 0.5, 40: 0.59}, open_ended=True), groups])
    assert (found.n_clusters, found.runner_up) == (40, 30)


def test_two_methods_outvote_one_and_the_other_is_the_runner_up():
    votes = [stable(3, {3: 0.9}), Vote("eigengap", {}, 5, ""), Vote("communities", {}, 5, "")]
    found = combine(votes)
    assert (found.n_clusters, found.runner_up) == (5, 3)


def judged(monkeypatch, scores, deviations):
    """The vote of stability on numbers from 2 that have these scores and separations."""
    details = {name: np.full(3, 0.5) for name in ("ari", "reference_ari", "pac", "cophenetic")}
    curves = selection.Curves(np.array(scores), np.full(3, 0.01), np.zeros(3), np.zeros(3), details)
    monkeypatch.setattr("manyview.criteria.resampled", lambda *a: curves)
    told = np.array(deviations)
    monkeypatch.setattr("manyview.criteria.separation", lambda *a: told)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoClustersWarning)
        return quick(groups(3), range(2, 5))


@pytest.mark.parametrize("deviations", [2.5, 2.9, 3.1, 3.5])
def test_there_is_no_cliff_where_eigenvalues_barely_exceed_the_clouds(deviations, monkeypatch):
    found = judged(monkeypatch, [0.1, 0.9, 0.2], [9.0, deviations, 0.0])
    assert (found.n_clusters, found.runner_up) == ((1, 3) if deviations < 3 else (3, None))
    assert found.doubtful
    assert f"by {deviations} of their standard deviations, and 3 are asked for, so near" in str(
        found
    )


@pytest.mark.parametrize(
    ("scores", "deviations"), [([0.1, 0.9, 0.2], [9, 2, 0]), ([0.1, 0.3, 0.2], [9, 3.1, 0])]
)
def test_what_is_far_from_one_threshold_is_not_doubtful(scores, deviations, monkeypatch):
    found = judged(monkeypatch, scores, deviations)
    assert not found.found and not found.doubtful


@pytest.mark.parametrize("score", [0.45, 0.49, 0.51, 0.55])
def test_there_is_no_cliff_at_the_threshold(score, monkeypatch):
    """Whatever side of it a score is on, the number is told, and that it is doubtful."""
    K = np.arange(2, 5)
    scores = np.array([0.1, score, 0.2])
    details = {name: np.full(3, 0.5) for name in ("ari", "reference_ari", "pac", "cophenetic")}
    curves = selection.Curves(scores, np.full(3, 0.01), np.zeros(3), np.zeros(3), details)
    monkeypatch.setattr("manyview.criteria.resampled", lambda *a: curves)
    if score < 0.5:
        with pytest.warns(NoClustersWarning):
            found = quick(groups(3), K)
        assert (found.n_clusters, found.runner_up) == (1, 3)
    else:
        found = quick(groups(3), K)
        assert found.n_clusters == 3
    assert found.doubtful and "(doubtful)" in found.answer
    assert f"a score of {score:.2f}, 0.50 is asked for, so near that it is doubtful" in str(found)


def test_default_criteria_and_candidates_are_everybodys(monkeypatch):
    asked = []

    def choose(evidence, candidates, methods, rng, *rest):
        asked.append((list(candidates), list(methods)))
        return selection.Selection(3, True, [], {}, {})

    monkeypatch.setattr("manyview.selection.choose", choose)
    monkeypatch.setattr(selection, "choose", choose)
    views = groups(3, n=200)
    select_n_clusters(views, random_state=0)
    mv.RobustWMNMF("auto", random_state=0).fit(views)
    assert asked[0] == asked[1]
    assert asked[0] == ([*range(2, 15), 16, 18, 20], list(selection.DEFAULT))


@pytest.mark.parametrize("n_kinds", [3, 4])
@pytest.mark.parametrize("n_views", [1, 2])
def test_clean_categories_are_clusters(n_kinds, n_views):
    y = np.arange(200) % n_kinds
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)  # of k-means on three points
        found = quick([np.eye(n_kinds)[y]] * n_views, range(2, 8), GRAPH)
    assert found.found and found.n_clusters == n_kinds


def test_frequent_kinds_among_rare_ones_are_told():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4
    noisy = [np.where(rng.random(200) < 0.1, rng.integers(4, size=200), y) for _ in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = quick([np.eye(4)[z] for z in noisy], range(2, 8), GRAPH)
    assert found.n_clusters == 4 or "say n_clusters=4" in str(found)
    nothing = combine([stable(1, {})])
    told = heed_copies(nothing, np.array([60, 50, 45, 40, 1, 1, 1, 1, 1]), [2, 3, 4])
    assert (told.n_clusters, told.runner_up, told.doubtful) == (1, 4, True)
    assert heed_copies(nothing, np.ones(9), [2, 3, 4]) == nothing


@pytest.mark.skipif(not installed(), reason="needs the extra communities")
def test_communities_vote_where_they_come_back():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), [60, 40, 25, 15])
    views = [rng.normal(3 * rng.standard_normal((4, m))[y], 1) for m in (12, 15)]
    chosen = quick(views, method="communities", model=mv.RobustWMNMF(resolution=0.5))
    assert chosen.votes == {"communities": 4} and "communities: 4 at resolution 0.5" in str(chosen)
    with pytest.warns(NoClustersWarning):
        assert quick(noise(), method="communities").n_clusters == 1


@pytest.mark.skipif(not installed(), reason="needs the extra communities")
def test_stability_tells_which_numbers_pass_so_that_communities_can_decide(monkeypatch):
    details = {name: np.full(3, 0.5) for name in ("ari", "reference_ari", "pac", "cophenetic")}
    score = np.array([0.96, 0.95, 0.2])
    curves = selection.Curves(score, np.full(3, 0.001), np.zeros(3), np.zeros(3), details)
    monkeypatch.setattr("manyview.criteria.resampled", lambda *a: curves)
    found = quick(groups(3), [2, 3, 4], ["stability", "communities"])
    assert found.votes == {"stability": 2, "communities": 3} and found.n_clusters == 3


def test_without_the_extra_communities_abstain_and_say_so(monkeypatch):
    monkeypatch.setattr("manyview.criteria.installed", lambda: False)
    chosen = quick(groups(3), [2, 3, 4], ["stability", "communities"])
    assert chosen.votes == {"stability": 3, "communities": None} and chosen.n_clusters == 3
    assert "pip install 'manyview[communities]'" in str(chosen)
