"""Survival of clusters: equal to lifelines, right under permutation, honest about little data."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, kstest

from manyview.outcomes import survival
from manyview.outcomes.chance import permuted_p, rounds
from manyview.outcomes.survive import _Events, kaplan_meier, logrank


def cohort(n=120, k=3, seed=0, ties=False):
    rng = np.random.default_rng(seed)
    labels = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    death, end = rng.exponential(10 + 5 * labels), rng.exponential(20, n)
    time = np.minimum(death, end)
    return labels, np.ceil(time) if ties else time, (death <= end).astype(int)


def by_hand(time, event, codes):
    """O − E and V of a log-rank test, term by term."""
    k = codes.max() + 1
    gap, V = np.zeros(k), np.zeros((k, k))
    for t in np.unique(time[event == 1]):
        at_risk = time >= t
        d, Y = int((event[time == t] == 1).sum()), int(at_risk.sum())
        share = np.bincount(codes[at_risk], minlength=k) / Y
        dying = np.bincount(codes[(time == t) & (event == 1)], minlength=k)
        gap += dying - d * share
        if Y > 1:
            V += d * (Y - d) / (Y - 1) * (np.diag(share) - np.outer(share, share))
    return gap, V


# --- equal to the field's library ----------------------------------------------------------------


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_logrank_equals_lifelines(k, ties):
    statistics = pytest.importorskip("lifelines.statistics")
    labels, time, event = cohort(k=k, ties=ties, seed=k)
    theirs = statistics.multivariate_logrank_test(time, labels, event)
    ours = survival(labels, time, event, permutations=9)
    assert ours.test.statistic == pytest.approx(theirs.test_statistic, rel=1e-10)
    assert ours.test.p_asymptotic == pytest.approx(theirs.p_value, rel=1e-10)
    pairs = statistics.pairwise_logrank_test(time, labels, event).summary
    for (a, b), test in ours.pairs.items():
        assert test.statistic == pytest.approx(pairs.loc[(a, b), "test_statistic"], rel=1e-10)


@pytest.mark.parametrize("ties", [False, True])
def test_curves_equal_lifelines(ties):
    lifelines = pytest.importorskip("lifelines")
    labels, time, event = cohort(ties=ties)
    for curve in survival(labels, time, event, permutations=0).curves:
        own = labels == curve.cluster
        theirs = lifelines.KaplanMeierFitter().fit(time[own], event[own])
        np.testing.assert_allclose(curve.time, theirs.timeline)
        np.testing.assert_allclose(curve.survival, theirs.survival_function_.iloc[:, 0], atol=1e-10)
        band = theirs.confidence_interval_survival_function_.to_numpy()
        alive = curve.survival > 0
        np.testing.assert_allclose(curve.lower[alive], band[alive, 0], atol=1e-10)
        np.testing.assert_allclose(curve.upper[alive], band[alive, 1], atol=1e-10)
        np.testing.assert_array_equal(curve.at_risk, theirs.event_table["at_risk"])
        assert curve.median == theirs.median_survival_time_
        mean = lifelines.utils.restricted_mean_survival_time(theirs, t=12)
        assert curve.restricted_mean(12)[0] == pytest.approx(mean, rel=1e-10)


def test_cox_equals_lifelines_and_finds_the_adjusted_ratio():
    lifelines = pytest.importorskip("lifelines")
    labels, time, event = cohort(300, 3)
    rng = np.random.default_rng(1)
    clinical = pd.DataFrame({"age": rng.normal(60, 9, 300), "sex": rng.choice(["f", "m"], 300)})
    ours = survival(labels, time, event, covariates=clinical, permutations=0).cox
    sex = clinical["sex"] == ours.covariate_table["term"][1].removeprefix("sex=")
    frame = pd.DataFrame({"age": clinical["age"], "sex": sex, "T": time, "E": event})
    others = ours.table["cluster"].tolist()
    for c in others:
        frame[f"c{c}"] = labels == c
    theirs = lifelines.CoxPHFitter().fit(frame.astype(float), "T", "E")
    expected = [theirs.hazard_ratios_[f"c{c}"] for c in others]
    np.testing.assert_allclose(ours.table["hazard_ratio"], expected, rtol=1e-5)
    known = theirs.summary.loc[[*(f"c{c}" for c in others), "age", "sex"]]
    columns = ["hazard_ratio", "lower", "upper", "wald_p"]
    named = ["exp(coef)", "exp(coef) lower 95%", "exp(coef) upper 95%", "p"]
    found = pd.concat([ours.table[columns], ours.covariate_table[columns]])
    np.testing.assert_allclose(found, known[named], rtol=1e-5)
    alone = survival(labels, time, event, covariates={}, permutations=0)
    for k, row in alone.ratios.iloc[:3].iterrows():
        one = pd.DataFrame({"c": labels == k, "T": time, "E": event}).astype(float)
        theirs_alone = lifelines.CoxPHFitter().fit(one, "T", "E").summary[named]
        np.testing.assert_allclose([row[columns].astype(float)], theirs_alone, rtol=1e-5)
    less = lifelines.CoxPHFitter().fit(frame[["age", "sex", "T", "E"]].astype(float), "T", "E")
    gap = 2 * (theirs.log_likelihood_ - less.log_likelihood_)
    assert ours.test.statistic == pytest.approx(gap, rel=0.1)  # score and likelihood ratio


def test_hazard_ratios_that_change_over_time_are_told_and_others_are_not():
    pytest.importorskip("lifelines")
    rng, labels, p = np.random.default_rng(0), np.arange(200) % 2, []
    for _ in range(12):
        time = rng.exponential(10 + 10 * labels)
        found = survival(labels, time, rng.random(200) < 0.8, covariates={}, permutations=0)
        p.append(found.ratios["proportional_p"][0])
    assert 0.2 < np.mean(p) < 0.8 and np.min(p) > 0.001
    crossing = np.where(labels == 0, rng.exponential(10, 200), rng.uniform(8, 12, 200))
    found = survival(labels, crossing, np.ones(200), covariates={}, permutations=0)
    assert found.ratios["proportional_p"][0] < 0.001 and told(found, "changes over time")


def test_without_an_effect_of_covariates_cox_tests_what_the_log_rank_test_does():
    labels, time, event = cohort(100, 3)
    codes, rng = np.unique(labels, return_inverse=True)[1], np.random.default_rng
    plain = logrank(time, event, codes, 99, rng(0))
    same = logrank(time, event, codes, 99, rng(0), np.full(100, 0.3))
    assert same.p_value == plain.p_value
    assert same.statistic == pytest.approx(plain.statistic)


# --- laws -----------------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.integers(2, 5), st.booleans())
def test_the_batched_statistic_is_the_one_by_hand(seed, k, ties):
    labels, time, event = cohort(30, k, seed, ties)
    table = _Events(time, event)
    if not event.any():
        return
    gap, V = table.parts(labels[table.order][None], k)
    expected, covariance = by_hand(time, event, labels)
    np.testing.assert_allclose(gap[0], expected[:-1], atol=1e-10)
    np.testing.assert_allclose(V[0], covariance[:-1, :-1], atol=1e-10)


@given(st.integers(0, 10_000), st.booleans())
def test_a_curve_falls_and_its_numbers_add_up(seed, ties):
    _, time, event = cohort(25, 1, seed, ties)
    curve = kaplan_meier(time, event, "a")
    assert curve.survival[0] <= 1 and (np.diff(curve.survival) <= 0).all()
    assert curve.at_risk[0] == 25 and curve.events.sum() == event.sum()
    assert (curve.events + curve.censored).sum() == 25
    defined = ~np.isnan(curve.lower)
    assert (curve.lower[defined] <= curve.survival[defined] + 1e-12).all()
    assert (curve.upper[defined] >= curve.survival[defined] - 1e-12).all()
    asked = np.r_[0, time, time.max() + 1]
    np.testing.assert_array_equal(curve.at_risk_at(asked), [(time >= t).sum() for t in asked])
    steps = curve.steps()
    assert len({len(corners) for corners in steps.values()}) == 1
    assert (np.diff(steps["time"]) >= 0).all() and steps["time"][-1] == curve.last
    np.testing.assert_allclose(
        np.trapezoid(steps["survival"], steps["time"]), curve.restricted_mean(curve.last)[0]
    )


def test_nothing_depends_on_the_order_of_observations_or_the_names_of_clusters():
    labels, time, event = cohort()
    order = np.random.default_rng(3).permutation(len(labels))
    one = survival(labels, time, event, permutations=99)
    names = np.array(["x", "y", "z"])[labels][order]
    other = survival(names, time[order], event[order], permutations=99)
    assert one.test.statistic == pytest.approx(other.test.statistic)
    assert [c.median for c in one.curves] == [c.median for c in other.curves]
    np.testing.assert_allclose(one.restricted_mean_error, other.restricted_mean_error)


def test_the_error_of_the_restricted_mean_is_that_of_repeated_studies():
    means, errors = [], []
    for seed in range(300):
        _, time, event = cohort(80, 1, seed)
        mean, error = kaplan_meier(time, event, 0).restricted_mean(10)
        means.append(mean)
        errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.12)


# --- permutation ----------------------------------------------------------------------------------


def null_p(sizes, repeats, seed, events=0.6):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    found = []
    for _ in range(repeats):
        time = rng.exponential(10, len(codes)).round(1)
        event = (rng.random(len(codes)) < events).astype(int)
        found.append(logrank(time, event, codes, 199, rng))
    return np.array([t.p_value for t in found]), np.array([t.p_asymptotic for t in found])


@pytest.mark.parametrize("sizes", [(40, 30, 30), (60, 3, 3), (90, 3), (50, 30, 3)])
def test_permuted_p_values_are_uniform_without_a_difference(sizes):
    p, _ = null_p(sizes, 600, seed=sum(sizes))
    assert kstest(p, "uniform").pvalue > 0.01
    # Of 600, 5% is 30 ± 5.3.
    assert 14 <= (p <= 0.05).sum() <= 46


def test_the_asymptotic_p_value_is_wrong_for_tiny_clusters_and_the_permuted_one_is_not():
    permuted, asymptotic = null_p((120, 1, 1), 500, seed=5)
    assert (asymptotic < 0.001).sum() > 5 * 500 * 0.001
    assert (permuted <= 0.01).sum() <= 12


def test_clusters_observed_for_unequal_times_keep_the_level():
    """The statistic has its own variance in every draw, so that censoring may differ (Neuhaus)."""
    rng, codes, p = np.random.default_rng(0), np.repeat([0, 1], [70, 50]), []
    for _ in range(400):
        death, end = rng.exponential(10, 120), rng.uniform(0, np.where(codes == 0, 6, 40))
        event = (death <= end).astype(int)
        p.append(logrank(np.minimum(death, end), event, codes, 99, rng).p_value)
    assert 9 <= (np.array(p) <= 0.05).sum() <= 32  # 20 ± 4.4


def test_a_permuted_p_value_counts_the_observed_arrangement():
    assert permuted_p(3.0, np.array([1.0, 2.0, 3.0 - 1e-12, 4.0])) == 3 / 5
    assert permuted_p(9.0, np.zeros(99)) == 1 / 100


def test_few_observations_get_all_permutations_and_many_get_fewer():
    assert rounds(None, 500) == 9_999 and rounds(None, 100_000) == 499 and rounds(7, 10) == 7
    with pytest.raises(ValueError, match="permutations must be 0"):
        rounds(-1, 10)


def test_pairs_are_adjusted_over_all_pairs():
    table = survival(*cohort(k=4), permutations=199).pair_table
    np.testing.assert_allclose(table["q_value"], false_discovery_control(table["p_value"]))


# --- little data: a sentence, never a wrong number ------------------------------------------------


def told(found, *words):
    text = " ".join(found.notes)
    return all(word in text for word in words) and all(note in repr(found) for note in found.notes)


def test_no_event():
    found = survival([0, 0, 1, 1], [1, 2, 3, 4], [0, 0, 0, 0])
    assert np.isnan(found.p_value) and found.test.permutations == 0
    assert all(np.isnan(c.median) for c in found.curves) and "not reached" in repr(found)
    assert told(found, "None of the 4 samples has an event", "no interval")
    assert np.isnan(found.restricted_mean_error).all()
    assert (found.restricted_mean == found.horizon).all()


def test_events_that_compare_nobody():
    found = survival([0] * 10 + [1] * 10, np.arange(1, 21), [1] + [0] * 19, permutations=999)
    assert 0.9 < found.p_value <= 1  # the event falls on one of two equal clusters
    assert told(found, "A test of 1 event in all")
    found = survival([0, 0, 1], [1, 2, 9], [0, 0, 1])
    assert np.isnan(found.p_value) and told(found, "no event happens while")
    found = survival([0, 0, 1, 1], [5, 5, 5, 5], [1, 1, 1, 1])  # all at once
    assert np.isnan(found.p_value) and [c.median for c in found.curves] == [5, 5]
    assert all(np.isnan(c.lower[-1]) and np.isnan(c.upper[-1]) for c in found.curves)


def test_one_cluster():
    found = survival(["a"] * 5, [1, 2, 3, 4, 5], [1, 0, 1, 1, 0])
    assert np.isnan(found.p_value) and not found.pairs and told(found, "Fewer than two clusters")
    assert len(found.pair_table) == 0 and found.pair_table.to_csv().count("\n") == 1


def test_tiny_clusters_are_named_and_may_be_left_out_of_the_tests():
    labels, time, event = cohort(100, 2)
    labels[:3] = 9
    found = survival(labels, time, event, permutations=99)
    assert told(found, "Small clusters", "9 (3 members")
    without = survival(labels, time, event, permutations=99, min_size=5)
    assert without.test.degrees == 1 and list(without.pairs) == [(0, 1)]
    assert len(without.curves) == 3 and told(without, "Cluster 9 is not tested")


def test_a_claim_of_the_approximation_that_does_not_hold_is_told():
    # 1 of 200 dies on the first day: the χ² approximation is certain, permutation is not.
    time, event = np.r_[0.5, np.arange(1, 200)], np.r_[1, np.arange(1, 200) % 2]
    found = survival(["odd"] + ["rest"] * 199, time, event)
    assert found.test.p_asymptotic < 1e-20 and found.p_value >= 1 / 200 * 0.5
    assert told(found, "is not valid here")


def test_a_cluster_censored_before_the_first_event_adds_no_degree_of_freedom():
    labels = [0] * 5 + [1] * 5 + [2] * 3
    time = [*range(5, 10), *range(6, 11), 1, 1, 2]
    found = survival(labels, time, [1] * 10 + [0] * 3, permutations=99)
    assert found.test.degrees == 1 and told(found, "no member at risk")
    alone = survival(labels[:10], time[:10], [1] * 10, permutations=99)
    assert found.test.statistic == pytest.approx(alone.test.statistic)


def test_a_horizon_beyond_the_observation_of_a_cluster_gives_no_mean():
    labels = [0] * 6 + [1] * 6
    time = [*range(1, 7), *range(11, 17)]
    found = survival(labels, time, [1, 0] * 6, horizon=15, permutations=0)
    assert np.isnan(found.restricted_mean[0]) and found.restricted_mean[1] > 11
    assert told(found, "not observed up to time 15")
    # A curve that came down to 0 is known for ever.
    died = survival(labels, time, [1] * 12, horizon=16, permutations=0)
    assert not np.isnan(died.restricted_mean).any()


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.1, 0.3]))
def test_at_the_horizon_enough_of_every_cluster_are_at_risk_and_later_not(seed, share):
    found = survival(*cohort(90, 3, seed), min_at_risk=share, pairwise=False, permutations=0)
    needed = [max(5, share * c.n) for c in found.curves]

    def enough(time):
        return all(c.at_risk_at(time) >= n for c, n in zip(found.curves, needed, strict=True))

    assert enough(found.horizon) and not enough(np.nextafter(found.horizon, np.inf))
    table = found.table
    assert set(table["horizon"]) == {found.horizon}
    at_risk = [int(c.at_risk_at(found.horizon)) for c in found.curves]
    assert list(table["at_risk_at_horizon"]) == at_risk and "are at risk" in repr(found)


def test_one_patient_with_a_long_follow_up_does_not_make_a_difference_of_means():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 60)
    death, end = rng.exponential(60, 120), rng.uniform(10, 120, 120)
    time, event = np.minimum(death, end), (death <= end).astype(int)
    time[0], event[0] = 1000, 0
    time[60], event[60] = 1010, 1
    found = survival(codes, time, event)
    assert found.horizon < 120 and not told(found, "still at risk")
    far = survival(codes, time, event, horizon=1000, permutations=0)
    assert told(far, "Few members are still at risk at the horizon, time 1000", "0 (1 of 60)")
    with pytest.raises(ValueError, match="min_at_risk must be a share"):
        survival(codes, time, event, min_at_risk=10)


def test_a_horizon_is_a_time():
    for bad in (0, -1, np.nan, np.inf):
        with pytest.raises(ValueError, match="horizon must be a time above 0"):
            survival(*cohort(), horizon=bad, permutations=0)


def test_left_out_observations_are_told_and_do_not_count():
    labels, time, event = cohort(60)
    labels, time, event = labels.astype(float), time.copy(), event.astype(float)
    whole = survival(labels[4:], time[4:], event[4:], permutations=0)
    labels[0], labels[1], time[2], event[3] = -1, np.nan, np.nan, np.nan
    found = survival(labels, time, event, permutations=0)
    assert found.test == whole.test
    assert told(found, "2 samples without a cluster", "2 samples without time or event")


def test_a_cluster_without_any_time_is_left_out_and_told():
    found = survival([0, 0, 1, 1, 2], [1, 2, 3, 4, None], [1, 1, 1, 0, 1], permutations=9)
    assert found.clusters == (0, 1) and told(found, "Cluster 2 is left out")


def test_covariates_that_cannot_serve_are_told():
    pytest.importorskip("lifelines")
    labels, time, event = cohort(200, 3)
    labels[labels == 2] = np.where(event[labels == 2], 1, 2)  # cluster 2 keeps no event
    clinical = {
        "age": [None, *range(199)],
        "site": ["a"] * 200,
        "seen": ["2010-01-01"] * 200,
        "noted": [f"note {i}" for i in range(200)],
    }
    found = survival(labels, time, event, covariates=clinical, permutations=0)
    assert found.cox.covariates == ("age",) and found.cox.n < 200
    ratio = found.cox.table.set_index("cluster")["hazard_ratio"]
    assert np.isnan(ratio[2]) and not np.isnan(found.cox.test.p_value)
    assert told(
        found, "'site' has one value", "'seen' is not used: it holds dates", "'noted' is not"
    )
    assert told(found, "1 sample without a covariate", "without an event in the Cox model (2)")


def test_coefficients_are_counted_once():
    pytest.importorskip("lifelines")
    rng = np.random.default_rng(0)
    labels, time, some = np.arange(60) % 3, rng.exponential(size=60), rng.normal(size=(2, 60))
    covariates = dict(zip("ab", some, strict=True))
    found = survival(labels, time, np.arange(60) < 39, covariates=covariates, permutations=0)
    assert "has 4 coefficients for 39 events" in " ".join(found.notes)


def test_a_covariate_that_repeats_the_clusters_gives_no_cox_model():
    labels, time, event = cohort(100, 2)
    found = survival(labels, time, event, covariates={"arm": labels * 2.0}, permutations=0)
    assert np.isnan(found.cox.test.p_value) and told(found, "repeat each other")


# --- tables ---------------------------------------------------------------------------------------


def test_every_table_is_a_frame_and_a_seed_repeats_it():
    one, two = (survival(*cohort(), permutations=9, random_state=4) for _ in range(2))
    for name, table in one.tables.items():
        assert len(table)
        pd.testing.assert_frame_equal(table, two.tables[name])
    assert one.table["n"].sum() == 120
    assert one.at_risk([0, 5])["0"].tolist() == [c.n for c in one.curves]
