"""P-values of random labels: P(p ≤ a) ≤ a, over a grid of designs; exact where that can be counted.

`python benchmarks/calibration.py` prints the whole table; here are the designs that break approximations.
"""

import importlib.util
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from manyview.outcomes import enrichment, markers
from manyview.outcomes.chance import ENOUGH, LEAST, permuted_p, staged_p

spec = importlib.util.spec_from_file_location(
    "calibration", Path(__file__).parents[2] / "benchmarks" / "calibration.py"
)
calibration = importlib.util.module_from_spec(spec)
spec.loader.exec_module(calibration)


def p_of(feature, codes):
    view = np.asarray(feature, float)[:, None]
    return markers(codes, {"x": view}, kinds={"x": "continuous"}).views[0].p_value[:, 0]


def test_a_single_nonzero_is_as_likely_in_a_cluster_as_the_cluster_is_large():
    x = np.zeros(1000)
    x[0] = 7
    assert p_of(x, [0] * 5 + [1] * 995) == pytest.approx([0.005, 0.005])


def test_few_nonzeros_have_the_p_value_of_fishers_test():
    c = np.zeros(1000)
    c[[0, 100, 200, 300, 400]] = [3, 1, 2, 4, 7]
    codes = np.array([0] * 10 + [1] * 990)
    exact = stats.fisher_exact([[1, 9], [4, 986]]).pvalue  # .049
    assert p_of(c, codes) == pytest.approx([exact, exact])
    column = enrichment(codes, {"mets": c}).table.iloc[0]
    assert column["test"] == "Mann–Whitney" and column["p_value"] == pytest.approx(exact)


def test_rare_features_of_a_rare_cluster_do_not_pass():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((1000, 3000)) < 0.005, rng.exponential(size=(1000, 3000)), 0)
    for seed in range(3):
        codes = np.random.default_rng(seed).random(1000) < 0.02
        for view in (X, sp.csr_array(X)):
            found = markers(codes, {"x": view}, kinds={"x": "continuous"}).views[0]
            assert (found.q_value <= 0.05).sum() <= 1


@given(
    st.lists(st.sampled_from([-1.0, 0.0, 0.0, 0.0, 1.0, 2.5, 4.0]), min_size=5, max_size=11),
    st.integers(1, 5),
)
def test_small_designs_are_exact_over_all_labels(values, size):
    """Over every choice of members, no more than a share a of the p-values is at most a."""
    n = len(values)
    chosen = [np.isin(np.arange(n), own) for own in combinations(range(n), min(size, n - 1))]
    # The labels stay, and the values change places: one feature per choice of members.
    X = np.array([np.r_[np.array(values)[own], np.array(values)[~own]] for own in chosen]).T
    codes = np.arange(n) >= min(size, n - 1)
    p = markers(codes, {"x": X}, kinds={"x": "continuous"}).views[0].p_value
    p = p[np.argmax(~np.isnan(p).all(axis=1))]
    if np.isnan(p).all():
        assert len(set(values)) == 1 or min(codes.sum(), (~codes).sum()) < 3
        return
    for a in np.unique(p):
        assert (p <= a * (1 + 1e-9)).mean() <= a + 1e-9


def test_untied_p_values_are_those_of_mann_and_whitney():
    rng = np.random.default_rng(0)
    codes = np.arange(300) % 3
    X = rng.normal(size=(300, 60)) + rng.normal(size=(3, 60))[codes] * 0.3
    ours = markers(codes, {"x": X}).views[0].p_value
    theirs = [
        [stats.mannwhitneyu(X[codes == k, j], X[codes != k, j]).pvalue for j in range(60)]
        for k in range(3)
    ]
    gap = stats.norm.isf(ours / 2) - stats.norm.isf(np.array(theirs) / 2)
    assert np.abs(gap).max() < 0.3 and abs(np.mean(gap)) < 0.1


@given(st.integers(0, 10_000))
def test_p_values_do_not_depend_on_the_scale_or_the_order_of_samples(seed):
    rng = np.random.default_rng(seed)
    codes, X = rng.integers(0, 3, 60), rng.poisson(rng.exponential(2, 8), (60, 8)).astype(float)
    codes[:9] = np.arange(9) % 3
    X[rng.random(X.shape) < 0.1] = np.nan
    order = rng.permutation(60)
    kinds = {"x": "continuous"}
    one = markers(codes, {"x": X}, kinds=kinds).views[0].p_value
    other = markers(codes[order], {"x": np.exp(X[order])}, kinds=kinds).views[0].p_value
    np.testing.assert_array_equal(one, other)


def test_stopping_early_keeps_p_values_above_those_that_go_on():
    rng, found = np.random.default_rng(0), []
    for _ in range(2000):
        p, drawn = staged_p(rng.random(), rng.random, 1999)
        assert drawn == 1999 or (drawn == LEAST and p > ENOUGH / (LEAST + 1))
        found.append(p)
    for a in (0.05, 0.02, 0.01):
        assert np.mean(np.array(found) <= a) <= a + 4 * np.sqrt(a / 2000)
    assert staged_p(2.0, rng.random, 99) == (permuted_p(2.0, np.zeros(99)), 99)


QUICK = {
    "markers": ("N 200, cluster 2%, zeros 9", "N 40, cluster 10%, zeros 50%"),
    "markers, binary": ("N 200, cluster 2%, zeros 99%",),
    "markers, sparse counts": ("N 200, cluster 2%",),
    "markers, leave_view_out": ("N 200, cluster 10%, zeros 90%",),
    "enrichment, 2 clusters": ("N 200, cluster 2%, zeros 99%, ties counts",),
    "enrichment, 3 clusters": ("N 200, cluster 2%, zeros 90%, ties counts",),
    "enrichment, categories, 3 clusters": ("N 40, cluster 10%, missing 30%",),
    "survival, all and pairs": ("N 40, cluster 10%, censored 70%, times tied",),
    "gene sets": ("N 40, cluster 40%, correlation 0.4", "N 200, cluster 10%, correlation 0.1"),
    "gene sets, features differ": ("N 40, cluster 10%, correlation 0,",),
    "survival, Cox": ("N 40, cluster 10%, censored 70%",),
}  # fmt: skip


@pytest.mark.parametrize("test", QUICK)
def test_random_labels_keep_the_level(test):
    if test == "survival, Cox":
        pytest.importorskip("lifelines")
    ran = []
    for j, (name, design, function, arguments, draws) in enumerate(calibration.designs()):
        if name == test and design.startswith(QUICK[test]):
            ran.append(function(np.random.default_rng([1, j]), **arguments, draws=draws))
            n, shares, too_large = calibration.judged(ran[-1])
            assert not too_large, (design, n, shares)
    assert ran, "no design of that name"
