import numpy as np
import pytest
from sklearn.cluster import DBSCAN, KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import manyview as mv
from conftest import blobs
from manyview.baselines import ConcatViews
from manyview.labels import pairwise_ari, resamples, shared_ari
from manyview.reliability import Stability, stability, summarize


def brute_force(labels, runs):
    """Co-assignment from N×N matrices, the definition."""
    n = len(labels)
    together, apart = np.zeros(n), np.zeros(n)
    for i in range(n):
        own, other = [], []
        for run in runs:
            if run[i] < 0:
                continue
            for values, wanted in ((own, True), (other, False)):
                peers = [
                    j
                    for j in range(n)
                    if j != i and run[j] >= 0 and (labels[j] == labels[i]) == wanted
                ]
                values.append(np.mean(run[peers] == run[i]) if peers else float(wanted))
        together[i], apart[i] = np.mean(own), np.mean(other)
    return together, apart


def test_tables_give_the_same_as_the_definition(rng):
    labels = rng.integers(3, size=30)
    runs = np.where(rng.random((6, 30)) < 0.8, rng.integers(4, size=(6, 30)), -1)
    found = summarize(labels, runs)
    together, apart = brute_force(labels, runs)
    np.testing.assert_allclose(found.samples, together)
    np.testing.assert_allclose(found.strangers, apart)


def test_adjusted_rand_index_is_scikit_learns_on_shared_entries(rng):
    a, b = rng.integers(4, size=50), rng.integers(3, size=50)
    a[:10], b[5:15] = -1, -1
    both = (a >= 0) & (b >= 0)
    assert shared_ari(a, b) == pytest.approx(adjusted_rand_score(a[both], b[both]))
    assert shared_ari(a, a) == 1
    assert len(pairwise_ari(np.array([a, b, a]))) == 3


@pytest.mark.parametrize("fraction", [0.5, 0.8, 1.0])
def test_every_row_is_left_out_equally_often(fraction, rng):
    rows = list(resamples(37, fraction, 11, rng))
    assert {len(r) for r in rows} == {round(fraction * 37)}
    counts = np.bincount(np.concatenate(rows), minlength=37)
    assert np.ptp(counts) <= 1


@pytest.mark.filterwarnings("ignore::manyview.wmnmf.CollapseWarning")  # of a small part of the rows
@pytest.mark.parametrize(
    "model", [mv.RobustWMNMF(3), mv.WMNMF(3, max_iter=10), ConcatViews(KMeans(3, n_init=3))]
)
def test_clear_clusters_are_stable_under_any_estimator(model):
    views, y = blobs(60)
    sure = stability(model, views, n_runs=3, random_state=0)
    assert isinstance(sure, Stability) and sure.n_runs == 3
    assert sure.score > 0.95 and adjusted_rand_score(y, sure.labels) > 0.95
    assert all(value > 0.9 for value in sure.clusters.values())
    assert not hasattr(model, "labels_")  # cloned, never changed
    assert repr(sure).startswith("<Stability of 3 clusters over 3 runs")
    assert len(str(sure).splitlines()) == 5


def test_values_lie_between_0_and_1_and_noise_is_unstable(rng):
    noise = [rng.random((60, 6)), rng.random((60, 5))]
    sure = stability(mv.RobustWMNMF(4), noise, n_runs=4, random_state=0)
    for values in (sure.samples, sure.strangers, np.array(list(sure.clusters.values()))):
        assert ((values >= 0) & (values <= 1)).all()
    assert sure.score < 0.6


def test_an_observation_between_two_clusters_is_the_least_sure(rng):
    X = np.concatenate([rng.normal(0, 0.3, 40), rng.normal(4, 0.3, 40), [2.0]])[:, None]
    sure = stability(KMeans(2, n_init=2), X, n_runs=20, random_state=0)
    assert sure.samples.argmin() == 80


def test_the_same_seed_gives_the_same_answer_in_any_container():
    views, _ = blobs(45, noise=1.5)
    one = stability(mv.RobustWMNMF(3), views, n_runs=3, random_state=1)
    two = stability(mv.RobustWMNMF(3), dict(zip("abc", views, strict=True)), 3, random_state=1)
    np.testing.assert_array_equal(one.samples, two.samples)
    single = np.hstack(views)
    split = stability(mv.RobustWMNMF(3, views=[8, 5, 6]), single, n_runs=3, random_state=1)
    np.testing.assert_array_equal(one.samples, split.samples)


def test_observations_missing_everywhere_have_no_stability():
    views, _ = blobs(45)
    for X in views:
        X[7] = np.nan
    with pytest.warns(UserWarning, match="missing in every view"):
        sure = stability(mv.RobustWMNMF(3), views, n_runs=3, random_state=0)
    assert np.isnan(sure.samples[7]) and sure.labels[7] == -1
    assert -1 not in sure.clusters


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"n_runs": 1}, "n_runs must be an integer of at least 2"),
        ({"fraction": 0.2}, "fraction must be between 0.5 and 1"),
        ({"views": [np.ones((3, 2)), np.ones((4, 2))]}, "same samples"),
    ],
)
def test_bad_input_is_answered_by_a_sentence(change, sentence):
    call = {"model": mv.RobustWMNMF(2), "views": blobs(20)[0]} | change
    with pytest.raises(ValueError, match=sentence):
        stability(**call)
    with pytest.raises(TypeError, match="fit_predict"):
        stability(mv.RobustWMNMF, blobs(20)[0])


def test_a_run_that_labels_nothing_holds_no_cluster_together():
    labels = np.array([0, 0, 1, 1, -1])
    nothing = np.full(5, -1)
    found = summarize(labels, np.array([labels, nothing]))
    assert found.clusters == {0: 0.5, 1: 0.5}
    np.testing.assert_array_equal(found.samples[:4], 1)  # of the run that saw them
    assert found.score == 0 and found.reference_ari.tolist() == [1, 0]
    none = summarize(nothing, np.array([labels, nothing]))
    assert none.clusters == {} and np.isnan(none.samples).all()


@pytest.mark.parametrize("eps", [0.8, 0.6, 0.5, 0.3])
def test_a_clusterer_that_may_call_everything_noise(eps, rng):
    X = rng.standard_normal((12, 2))
    model = DBSCAN(eps=eps, min_samples=4)
    sure = stability(model, X, n_runs=8, random_state=0)
    assert len(sure.clusters) == sure.labels.max() + 1
    assert all(0 <= value <= 1 for value in sure.clusters.values())


def test_more_clusters_than_rows_in_a_run_is_answered_with_the_remedy():
    views, _ = blobs(10)
    sentence = r"a run has 8 rows \(fraction=0.8 of 10\).*n_clusters=9; raise fraction"
    with pytest.raises(ValueError, match=sentence):
        stability(mv.RobustWMNMF(9), views, n_runs=2)
    with pytest.warns(ConvergenceWarning, match="stopped after 200 iterations"):
        assert stability(mv.RobustWMNMF(9), views, n_runs=2, fraction=1).n_runs == 2
    with pytest.raises(ValueError, match="n_samples=10"):  # no fraction would do
        stability(mv.RobustWMNMF(11), views, n_runs=2)


def test_a_chosen_number_of_clusters_is_not_chosen_again(monkeypatch):
    import manyview.robust as robust

    views, _ = blobs(45)
    model = mv.RobustWMNMF("auto", random_state=0).fit(views)
    calls, choose = [], robust.choose
    monkeypatch.setattr(robust, "choose", lambda *a, **k: calls.append(1) or choose(*a, **k))
    sure = stability(model, views, n_runs=2, random_state=0)
    assert calls == [] and len(sure.clusters) == model.n_clusters_ == 3
    assert model.n_clusters == "auto"
    stability(mv.RobustWMNMF("auto"), views, n_runs=2, random_state=0)
    assert calls == [1]


def test_labels_of_other_observations_are_not_judged():
    pd = pytest.importorskip("pandas")
    frames = {
        f"v{s}": pd.DataFrame(X, index=[f"s{i}" for i in range(60)])
        for s, X in enumerate(blobs(60)[0])
    }
    one, two = ({v: X.iloc[rows] for v, X in frames.items()} for rows in (range(30), range(1, 31)))
    model = mv.RobustWMNMF(3, random_state=0).fit(one)
    model.labels_[:] = 7
    assert (stability(model, one, n_runs=2, random_state=0).labels == 7).all()
    assert len(stability(model, two, n_runs=2, random_state=0).clusters) == 3
