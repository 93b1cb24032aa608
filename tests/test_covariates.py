"""Covariates regressed out of views."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import manyview as mv


@given(seed=st.integers(0, 10_000), gaps=st.booleans())
def test_what_is_left_is_uncorrelated_with_the_covariates(seed, gaps):
    rng = np.random.default_rng(seed)
    n = 40
    batch, age = rng.integers(0, 3, n), rng.normal(60, 10, n)
    X = rng.normal(size=(n, 6)) + rng.normal(size=(3, 6))[batch] + 0.1 * age[:, None]
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
        X[0] = np.nan
    found = mv.adjust([X], {"batch": [f"b{b}" for b in batch], "age": age})
    Y = found.arrays["view0"]
    np.testing.assert_array_equal(np.isnan(Y), np.isnan(X))
    np.testing.assert_allclose(np.nanmean(Y, axis=0), np.nanmean(X, axis=0), atol=1e-8)
    for column in Y.T:
        seen = ~np.isnan(column)
        y = column[seen] - column[seen].mean()
        Z = np.column_stack([age[seen], *(batch[seen] == b for b in range(3))])
        assert np.abs((Z - Z.mean(axis=0)).T @ y).max() < 1e-6 * np.abs(Z).max() * n
    again = mv.adjust([Y], {"batch": [f"b{b}" for b in batch], "age": age})
    np.testing.assert_allclose(again.arrays["view0"], Y, atol=1e-8)
    assert again.explained["view0"] == pytest.approx(0, abs=1e-8)


def test_a_batch_hides_the_clusters_and_adjustment_shows_them(rng):
    cohort = mv.datasets.make_cohort(batch_effect=4, missing=0, random_state=3)
    hidden = mv.RobustWMNMF(4, random_state=0).fit(cohort.views).labels_
    found = mv.adjust(cohort.views, {"batch": cohort.clinical["batch"]})
    shown = mv.RobustWMNMF(4, random_state=0).fit(found.views).labels_
    ari = {n: mv.metrics.scores(cohort.labels, k)["ari"] for n, k in (("h", hidden), ("s", shown))}
    assert ari["s"] > 0.8 > ari["h"]
    assert mv.metrics.scores(cohort.clinical["batch"], shown)["ari"] < 0.05
    assert found.explained["expression"] > 0.3 > found.explained["mutation"]


def test_ids_decide_which_row_is_whose(rng):
    ids = [f"p{i}" for i in range(30)]
    X = pd.DataFrame(rng.normal(size=(30, 4)), index=ids)
    batch = pd.DataFrame({"batch": rng.choice(["a", "b"], 30)}, index=ids)
    straight = mv.adjust({"x": X}, batch).arrays["x"]
    turned = mv.adjust({"x": X}, batch.iloc[::-1]).arrays["x"]
    np.testing.assert_array_equal(straight, turned)


def test_rows_that_pandas_numbered_are_matched(rng):
    X, batch = rng.normal(size=(40, 3)), pd.DataFrame({"batch": ["a", "b"] * 20})
    right = mv.adjust({"x": pd.DataFrame(X)}, batch).arrays["x"]
    order = rng.permutation(40)
    shuffled = mv.adjust({"x": pd.DataFrame(X).iloc[order]}, batch).arrays["x"]
    np.testing.assert_allclose(shuffled, right[order], atol=1e-12)


def test_counts_lose_their_depth_and_sparse_views_their_zeros(rng):
    counts = rng.poisson(20, (40, 6)) * rng.integers(1, 5, (40, 1))
    batch = {"batch": np.repeat(["a", "b"], 20)}
    found = mv.adjust({"rna": sp.csr_array(counts.astype(float))}, batch)
    np.testing.assert_allclose(
        found.arrays["rna"], mv.adjust({"rna": counts.astype(float)}, batch).arrays["rna"]
    )
    assert "counts" in found.notes[0] and found.arrays["rna"].max() < 10


@pytest.mark.parametrize(
    ("covariates", "sentence"),
    [
        ({"b": ["x"] * 30}, "has one value only"),
        ({"b": ["2019-01-01"] * 30}, "it holds dates"),
        ({"b": [f"s{i % 10}" for i in range(30)]}, "name fewer, or join rare levels"),
        ({"b": ["x", "y"]}, "covariates has 2 rows for 30 samples"),
        ({}, "has no column"),
    ],
)
def test_what_cannot_be_regressed_out_gets_a_sentence(covariates, sentence, rng):
    with pytest.raises(ValueError, match=sentence):
        mv.adjust([rng.normal(size=(30, 3))], covariates)


def test_batches_called_by_numbers_go_like_batches_called_by_words(rng):
    batch = rng.integers(1, 4, size=60)
    # The second batch stands out: no straight line through 1, 2, 3 takes that away.
    X = rng.normal(size=(60, 5)) + 4 * (batch == 2)[:, None]
    found = mv.adjust({"rna": X}, {"batch": batch})
    words = mv.adjust({"rna": X}, {"batch": [f"b{b}" for b in batch]})
    np.testing.assert_allclose(found.arrays["rna"], words.arrays["rna"], atol=1e-10)
    assert found.notes == ("'batch' has 3 whole numbers, each treated as a separate level.",)
    aged = mv.adjust({"rna": X}, {"age": np.arange(60)})
    assert aged.notes == ()


def test_missing_covariates_are_told(rng):
    batch = ["a"] * 14 + ["b"] * 14 + [None, None]
    found = mv.adjust([rng.normal(size=(30, 3))], {"batch": batch})
    assert found.notes == ("'batch' is missing for 2 samples: a level of its own.",)
    assert "batch" in repr(found)


@pytest.mark.parametrize("kind", ["numbers", "counts", "sparse"])
def test_rows_of_zeros_stay_missing_and_change_nothing_for_the_others(rng, kind):
    X = rng.random((40, 6)) if kind == "numbers" else rng.poisson(5.0, size=(40, 6)) + 0.0
    batch = np.array([f"b{b}" for b in rng.integers(0, 3, size=40)])
    X[[3, 17]] = 0
    there = X.any(axis=1)
    given = sp.csr_array(X) if kind == "sparse" else X
    found = mv.adjust({"x": given}, {"batch": batch})
    Y = found.arrays["x"]
    assert np.isnan(Y[~there]).all()
    np.testing.assert_allclose(
        Y[there], mv.adjust({"x": X[there]}, {"batch": batch[there]}).arrays["x"], atol=1e-10
    )
    assert any("2 rows of zeros" in note for note in found.notes)
    observed = mv.adjust({"x": given}, {"batch": batch}, zero_rows={"x": "observed"}).arrays["x"]
    assert np.isfinite(observed).all()
    with pytest.raises(ValueError, match="'missing' or 'observed', got 'absent'"):
        mv.adjust({"x": given}, {"batch": batch}, zero_rows="absent")
