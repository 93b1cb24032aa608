"""Laws of the view weights: continuity, copies, order, units, and what counts where nobody agrees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyview.maths.agreement import (
    blamed,
    distance_weights,
    effects,
    own_levels,
    pooled_spread,
    reliance,
    repeated_views,
    sample_weights,
    structure_for_weights,
    view_weights,
    votes,
)

#: A change of 5% in one entry of agreement or reliability moves no weight by more than this.
MOST_MOVED = 0.03


def symmetric(rng, n_views, values):
    upper = np.triu(values, 1)
    return upper + upper.T


def evidence(seed):
    """Agreement, reliability and redundancy of two to twelve views, of very different kinds."""
    rng = np.random.default_rng(seed)
    n_views = int(rng.integers(2, 13))
    M = rng.random((n_views, n_views)) ** rng.choice([1, 3])
    kind = rng.integers(5)
    if kind == 1:  # most pairs do not agree at all
        M *= rng.random(M.shape) < 0.3
    if kind == 2:  # two camps, equally strong
        camp = rng.integers(2, size=n_views)
        M = np.equal.outer(camp, camp) * rng.uniform(0.3, 0.5)
    if kind == 3:  # hardly any agreement
        M *= 10.0 ** -rng.integers(3, 9)
    reliability = rng.random(n_views) ** rng.choice([0.2, 1, 3])
    if kind == 4:
        reliability *= rng.random(n_views) < 0.5
    shared = rng.random((n_views, n_views)) * (rng.random((n_views, n_views)) < 0.4)
    redundancy = symmetric(rng, n_views, shared) + np.eye(n_views)
    return symmetric(rng, n_views, M), reliability, redundancy, rng


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.95, 1.05]))
def test_small_changes_move_weights_little(seed, factor):
    M, reliability, redundancy, rng = evidence(seed)
    before = view_weights(M, reliability, redundancy, 0.1)
    assert (before >= 0).all() and before.sum() == pytest.approx(1)
    s, t = rng.choice(len(M), 2, replace=False)
    changed = M.copy()
    changed[s, t] *= factor
    changed[t, s] = changed[s, t]
    after = view_weights(changed, reliability, redundancy, 0.1)
    assert np.abs(after - before).max() <= MOST_MOVED
    less = reliability.copy()
    less[s] *= factor
    after = view_weights(M, less, redundancy, 0.1)
    assert np.abs(after - before).max() <= MOST_MOVED


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_copies_share_the_weight_of_the_view_they_repeat(seed, n_copies):
    M, reliability, _, rng = evidence(seed)
    s, redundancy = int(rng.integers(len(M))), np.eye(len(M))
    again = [*range(len(M)), *[s] * n_copies]
    with_copies = view_weights(
        M[np.ix_(again, again)], reliability[again], redundancy[np.ix_(again, again)], 0.1
    )
    alone = view_weights(M, reliability, redundancy, 0.1)
    copies = np.flatnonzero(np.array(again) == s)
    others = np.setdiff1d(np.arange(len(M)), s)
    np.testing.assert_allclose(with_copies[copies], alone[s] / len(copies), atol=1e-12)
    np.testing.assert_allclose(with_copies[others], alone[others], atol=1e-12)


@given(st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6))
def test_weights_follow_the_views_and_know_no_unit(seed, unit):
    M, reliability, redundancy, rng = evidence(seed)
    order = rng.permutation(len(M))
    mixed = np.ix_(order, order)
    alpha = view_weights(M, reliability, redundancy, 0.1)
    moved = view_weights(M[mixed] * unit, reliability[order] * unit, redundancy[mixed], 0.1)
    np.testing.assert_allclose(moved, alpha[order], rtol=1e-9, atol=1e-12)


def test_without_agreement_clusters_decide_among_reliable_views():
    nobody, one = np.zeros((3, 3)), np.eye(3)
    structure = np.array([0.9, 0.6, 0.9])
    reliable = np.array([0.35, 0.37, 0.0])
    alpha = view_weights(nobody, reliable, one, 0.1, 0.0, structure)
    # Clear clusters count more than in proportion.
    np.testing.assert_allclose(alpha, [0.9**5, 0.6**5, 0] / np.sum([0.9**5, 0.6**5]))
    np.testing.assert_allclose(view_weights(nobody, reliable, one, 0.1), [0.5, 0.5, 0])
    np.testing.assert_allclose(view_weights(nobody, np.zeros(3), one, 0.1), 1 / 3)
    assert view_weights(np.zeros((1, 1)), np.zeros(1), np.eye(1), 0.1) == 1


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.95, 1.05]))
def test_clusters_of_its_own_give_a_view_more_weight_continuously(seed, factor):
    M, reliability, redundancy, rng = evidence(seed)
    structure = rng.uniform(0.05, 1, size=len(M))
    before = view_weights(M, reliability, redundancy, 0.1, 0.01, structure)
    assert (before >= 0).all() and before.sum() == pytest.approx(1)
    s = int(rng.integers(len(M)))
    changed = structure.copy()
    changed[s] *= factor
    after = view_weights(M, reliability, redundancy, 0.1, 0.01, changed)
    assert np.abs(after - before).max() <= 3 * MOST_MOVED
    assert (after[s] - before[s]) * (factor - 1) >= -1e-12


def test_structure_counts_as_far_as_it_exceeds_its_error():
    structure = np.array([0.9, 0.5])
    clear = structure_for_weights(structure, np.array([0.001, 0.001]))
    doubtful = structure_for_weights(structure, np.array([0.5, 0.5]))
    np.testing.assert_allclose(clear, structure, atol=1e-4)
    assert np.ptp(doubtful) < 0.04 and doubtful.mean() == pytest.approx(0.7)
    np.testing.assert_array_equal(structure_for_weights(np.ones(3), np.zeros(3)), np.ones(3))


# --- sample weights ----------------------------------------------------------------------------


def two_views(seed, n=300):
    """Contrasts of two views that disagree on 30 samples, where the second has no evidence of its own."""
    rng = np.random.default_rng(seed)
    bad = np.arange(n) < 30
    contrast = np.where(bad, 0.02, 0.5) + 0.05 * rng.standard_normal(n)
    rows = np.full((2, 2, n), np.nan)
    rows[0, 1] = rows[1, 0] = contrast
    own = 0.5 + 0.05 * rng.standard_normal((2, n))
    own[1, bad] -= 0.4
    return rows, own, bad


@pytest.mark.parametrize("seed", range(3))
def test_of_two_views_the_inconsistent_one_loses_its_weight(seed):
    rows, own, bad = two_views(seed)
    present, alpha = np.ones((300, 2), bool), np.array([0.5, 0.5])
    plain, _, agreement, _ = sample_weights(rows, present, alpha, np.eye(2))
    np.testing.assert_array_equal(plain[:, 0], plain[:, 1])
    assert agreement[bad].max() < agreement[~bad].min()
    w, _, same, _ = sample_weights(rows, present, alpha, np.eye(2), own=own)
    np.testing.assert_array_equal(agreement, same)
    assert (w >= 0).all() and (w <= 1).all()
    assert w[bad, 1].max() < 0.1 and np.median(w[bad, 0]) > 0.5
    swapped, *_ = sample_weights(rows, present, alpha, np.eye(2), own=own[::-1])
    np.testing.assert_allclose(swapped, w[:, ::-1])


def test_without_evidence_of_their_own_both_views_are_blamed_alike():
    rows, own, _ = two_views(0)
    present, alpha = np.ones((300, 2), bool), np.array([0.5, 0.5])
    plain, _, agreement, _ = sample_weights(rows, present, alpha, np.eye(2))
    # Evidence that is high where the views disagree says nothing about who is wrong.
    for useless in (np.zeros((2, 300)), -np.tile(agreement, (2, 1))):
        w, *_ = sample_weights(rows, present, alpha, np.eye(2), own=useless)
        np.testing.assert_allclose(w, plain)
    levels = np.array([own_levels(r, agreement) for r in own])
    halved = blamed(np.full((300, 2), 0.9), own, levels)
    np.testing.assert_allclose(halved.sum(axis=1), 1.8)


def test_a_view_that_lacks_a_sample_has_no_say_about_it():
    """NaN is no voter: the mean is that of the views that know the sample."""
    known = np.array([[0.8, 0.8], [np.nan, 0.2]])
    np.testing.assert_allclose(votes(known, known, np.array([0.5, 0.5])), [0.8, 0.5])


def test_agreement_on_a_sample_needs_two_views():
    rows, own, _ = two_views(0)
    present = np.ones((300, 2), bool)
    present[:5, 1] = False
    rows[:, :, :5] = np.nan
    w, _, agreement, _ = sample_weights(rows, present, np.array([0.5, 0.5]), np.eye(2), own=own)
    assert np.isnan(agreement[:5]).all() and np.isfinite(agreement[5:]).all()
    assert not w[:5].any()


@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 0.2))
def test_what_chance_reaches_decides_nothing(seed, chance):
    """Reliabilities within a tenth of what chance reaches, some of them 0: weights stay nearly equal."""
    rng = np.random.default_rng(seed)
    n_views = int(rng.integers(2, 13))
    noise = chance * rng.random(n_views) * (rng.random(n_views) < 0.5) / 10
    nobody = np.zeros((n_views, n_views))
    alpha = view_weights(nobody, noise, np.eye(n_views), 0.1, chance, 0.3)
    np.testing.assert_allclose(alpha, 1 / n_views, rtol=0.02)
    alpha = view_weights(nobody, noise, np.eye(n_views), 0.1, chance)  # with clear clusters
    np.testing.assert_allclose(alpha, 1 / n_views, atol=0.05)
    # And beside evidence they count for next to nothing.
    M, reliability, redundancy, _ = evidence(seed)
    known = view_weights(M, reliability, redundancy, 0.1)
    told = view_weights(M, reliability, redundancy, 0.1, 1e-3 * reliability.max())
    if reliability.min() > 0.05 * reliability.max():
        np.testing.assert_allclose(told, known, atol=1e-3)


def test_the_better_supported_of_two_like_views_keeps_more():
    M = np.array([[0, 0.9, 0.5], [0.9, 0, 0.3], [0.5, 0.3, 0]])
    redundancy = np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]])
    alpha = view_weights(M, np.full(3, 0.5), redundancy, 0.1)
    assert alpha[0] > 1.5 * alpha[1]
    assert alpha[:2].sum() < view_weights(M, np.full(3, 0.5), np.eye(3), 0.1)[:2].sum()


def test_contrasts_that_chance_explains_count_little():
    noise = np.random.default_rng(0).standard_normal((2, 400))
    noise = (noise - noise.mean(axis=1, keepdims=True)) / noise.std(axis=1, keepdims=True)
    rows = np.full((2, 2, 400), np.nan)
    rows[0, 1], rows[1, 0] = 0.2 * noise
    error = 0.2 / np.sqrt(400)
    by_chance = effects(rows + error, np.ones(2))[0, 1]
    clear = effects(rows + 20 * error, np.ones(2))[0, 1]
    assert by_chance == pytest.approx(error / 5)
    assert clear == pytest.approx(20 * error, rel=0.02)


def test_distances_count_in_units_of_their_spread():
    rng = np.random.default_rng(0)
    random, near = 1 + 0.1 * rng.standard_normal(2000), 0.8 + 0.1 * rng.standard_normal(2000)
    spread = pooled_spread(random, near)
    assert spread == pytest.approx(np.concatenate([random, near]).std(), rel=0.01)
    assert pooled_spread(10 * random, 10 * near) == pytest.approx(10 * spread)
    assert pooled_spread(np.ones(5), np.ones(5)) == 1 == pooled_spread(np.full(3, np.nan), near)
    weights = distance_weights(np.array([0.5, 0.5]), np.array([0.1, 0.4]))
    np.testing.assert_allclose(weights, [0.8, 0.2])


def test_views_that_repeat_each_other_are_listed_over_a_third():
    redundancy = np.eye(4)
    for s, t in [(0, 2), (2, 3)]:
        redundancy[s, t] = redundancy[t, s] = 0.97
    (group,) = repeated_views(redundancy)
    assert group.tolist() == [0, 2, 3]
    assert repeated_views(np.eye(3)) == []


# --- reliance ----------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
def test_reliance_is_shared_by_the_views_that_describe_an_observation(seed):
    rng = np.random.default_rng(seed)
    n, n_views = 20, int(rng.integers(1, 5))
    described = rng.random((n, n_views)) < 0.6
    alpha = rng.random(n_views) * (rng.random(n_views) < 0.7)
    w = rng.random((n, n_views)) * (rng.random((n, n_views)) < 0.7)
    found = reliance(alpha, w, described)
    somewhere = described.any(axis=1)
    np.testing.assert_allclose(found.sum(axis=1), somewhere)
    assert (found >= 0).all() and not found[~described].any()
    alone = described.sum(axis=1) == 1
    np.testing.assert_allclose(found[alone], described[alone])
    product = alpha * w * described
    weighed = product.sum(axis=1) > 0
    share = product[weighed] / product[weighed].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[weighed], share)
