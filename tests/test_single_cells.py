"""Synthetic single cells: counts whose types, batches and scrambled cells are known."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from manyview.datasets import make_single_cells
from manyview.metrics import scores

NAMES = ("rna", "adt", "atac")
SMALL = {"rna": 30, "adt": 6, "atac": 40}


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def log_shares(X):
    X = dense(X)
    return np.log1p(1e3 * X / np.maximum(X.sum(axis=1, keepdims=True), 1))


@given(
    st.integers(6, 40), st.integers(1, 6), st.integers(1, 3), st.floats(0, 1),
    st.sampled_from(["noise", "other"]), st.integers(0, 99),
)  # fmt: skip
def test_counts_shapes_shares_and_the_seed(n, types, batches, share, how, seed):
    def draw(modalities=NAMES, **changed):
        options = {"scrambled": share, "scrambled_by": how, "n_batches": batches, **changed}
        options |= {"n_features": SMALL, "random_state": seed}
        return make_single_cells(n, types, modalities, **options)

    data, again = draw(), draw()
    sizes = np.bincount(data.labels, minlength=types)
    assert (sizes >= 1).all() and (np.diff(sizes) <= 1).all()
    assert sum(data.clinical["scrambled"]) == round(share * n)
    assert set(data.clinical["batch"]) <= {f"batch{b}" for b in range(batches)}
    for name, X in data.views.items():
        assert X.shape == (n, SMALL[name])
        assert (dense(X) >= 0).all() and (dense(X) == np.round(dense(X))).all()
        np.testing.assert_array_equal(dense(X), dense(again.views[name]))
        # Other modalities change nothing, and scrambling changes proteins of scrambled cells alone.
        np.testing.assert_array_equal(dense(X), dense(draw((name, "adt")).views[name]))
    kept = ~np.array(data.clinical["scrambled"])
    plain = draw(scrambled=0).views
    np.testing.assert_array_equal(data.views["adt"][kept], plain["adt"][kept])
    np.testing.assert_array_equal(dense(data.views["rna"]), dense(plain["rna"]))


def test_types_are_recovered_where_they_differ_and_not_where_they_are_indistinct():
    same = {"adt": [(0, 1)], "rna": [(2, 3)]}
    data = make_single_cells(600, 5, indistinct=same, random_state=0)
    train, test = np.arange(400), np.arange(400, 600)
    found = {}
    for name, X in data.views.items():
        Z, y = log_shares(X), data.labels
        found[name] = LogisticRegression(max_iter=500).fit(Z[train], y[train]).predict(Z[test])
        known = ~np.isin(y[test], same[name][0])
        assert (found[name] == y[test])[known].mean() > 0.95
        one = y[test] == same[name][0][0]
        assert 0.2 < (found[name] == y[test])[~known].mean() < 0.8 and one.any()


@pytest.mark.parametrize("how", ["noise", "other"])
def test_scrambled_proteins_say_nothing_or_something_false(how):
    data = make_single_cells(800, 4, scrambled=0.3, scrambled_by=how, random_state=1)
    wrong = np.array(data.clinical["scrambled"])
    Z, y = log_shares(data.views["adt"]), data.labels
    found = LogisticRegression(max_iter=500).fit(Z[~wrong], y[~wrong]).predict(Z)
    assert (found == y)[~wrong].mean() > 0.95
    assert (found == y)[wrong].mean() < (0.6 if how == "noise" else 0.02)


def test_batches_shift_every_feature_and_may_lack_types():
    absent = [[1, 1, 1], [1, 0, 3]]
    data = make_single_cells(3000, 3, n_batches=2, batch_types=absent, random_state=0)
    batch = np.array(data.clinical["batch"])
    assert not (data.labels[batch == "batch1"] == 1).any()
    odds = np.bincount(data.labels[batch == "batch1"], minlength=3) / np.bincount(data.labels)
    np.testing.assert_allclose(odds, [1 / 2, 0, 3 / 4], atol=0.05)
    X = dense(data.views["rna"])[data.labels == 0]
    one, two = (X[batch[data.labels == 0] == b].mean(axis=0) for b in ("batch0", "batch1"))
    seen = np.minimum(one, two) > 1
    assert 0.55 < np.log(one[seen] / two[seen]).std() < 0.85  # of two factors: .5 √2
    plain = make_single_cells(3000, 3, n_batches=2, batch_effect=0, random_state=0)
    assert scores(plain.labels, plain.clinical["batch"])["nmi"] < 0.01


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_types": 30}, "only 20 cells"),
        ({"modalities": ["rna", "protein"]}, "must be one of 'rna', 'adt', 'atac', not 'protein'"),
        ({"scrambled": 2}, "scrambled is a share from 0 to 1"),
        ({"scrambled": 0.1, "modalities": ["rna"]}, "include 'adt'"),
        ({"n_batches": 2, "batch_types": [[0, 1], [0, 1]]}, "some above 0 for every type"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_single_cells(**{"n_cells": 20, "n_types": 2, **options})
