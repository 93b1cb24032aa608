"""Groups far from all others that are too small to be found are told of."""

import warnings

import numpy as np
import pandas as pd
import pytest

import manyview as mv

LOST = "lie far from all others but are in cluster"


def with_a_minority(n, size, far=15, seed=0, order=None):
    """Two views of one cloud, and a few samples far away in one feature of each."""
    rng = np.random.default_rng(seed)
    views = [rng.standard_normal((n, 6)) for _ in range(2)]
    for X in views:
        X[:size, 0] += far
    return views if order is None else [X[order] for X in views]


def told(views, n_clusters=2, **params):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = mv.RobustWMNMF(n_clusters, random_state=0, **params).fit(views)
    return model, [str(w.message) for w in caught if LOST in str(w.message)]


@pytest.mark.parametrize("far", [15, 1000])
@pytest.mark.parametrize(("n", "size"), [(1000, 6), (2000, 12)])
def test_a_lost_minority_is_told(n, size, far):
    """Features are limited to their 1st to 99th percentile: what is less than 1% is hidden."""
    model, messages = told(with_a_minority(n, size, far))
    assert size not in np.bincount(model.labels_)
    assert len(messages) == 1 and messages[0].startswith(f"{size} samples (rows 0, 1, 2, 3, 4 and")
    assert "scale=None" in messages[0]


@pytest.mark.parametrize("far", [15, 1000])
@pytest.mark.parametrize(("n", "size"), [(1000, 12), (1000, 15), (2000, 30)])
def test_a_minority_far_away_is_found_at_two_clusters(n, size, far):
    model, messages = told(with_a_minority(n, size, far))
    assert (model.labels_[:size] == model.labels_[0]).all() and not messages
    assert (model.labels_ == model.labels_[0]).sum() == size


def test_two_minorities_leave_the_others_the_remaining_clusters():
    views = with_a_minority(1000, 12)
    for X in views:
        X[12:30, 1] -= 20
    labels = told(views, n_clusters=3)[0].labels_
    assert sorted(np.bincount(labels)) == [12, 18, 970]


def test_a_minority_that_is_found_is_not_told():
    model, messages = told(with_a_minority(1000, 30))
    assert 30 in np.bincount(model.labels_) and not messages
    model, messages = told(with_a_minority(1000, 12), n_clusters=6)
    assert 12 in np.bincount(model.labels_) and not messages


def test_the_remedy_for_a_hidden_minority_helps():
    views = with_a_minority(1000, 8)
    pytest.importorskip("graspologic_native", reason="needs the extra 'communities'")
    model, messages = told(views, n_clusters="communities", scale=None)
    assert 8 in np.bincount(model.labels_) and not messages


def test_samples_are_named_in_any_order_of_rows_and_with_copies():
    order = np.random.default_rng(1).permutation(1000)
    ids = np.array([f"p{i}" for i in range(1000)])[order]
    frames = {
        name: pd.DataFrame(X, index=ids, columns=list("abcdef"))
        for name, X in zip("vw", with_a_minority(1000, 8, order=order), strict=True)
    }
    _, messages = told(frames)
    first = [i for i in ids if int(i[1:]) < 8][:5]
    assert messages[0].startswith(f"8 samples (samples {', '.join(first)} and 3 more)")
    twice = [np.repeat(X, 2, axis=0) for X in with_a_minority(1000, 8)]
    assert told(twice)[1][0].startswith("16 samples (rows 0, 1, 2, 3, 4 and 11 more)")


@pytest.mark.parametrize("draw", ["standard_normal", "standard_exponential", "standard_cauchy"])
@pytest.mark.parametrize(("n", "m"), [(30, 4), (200, 1), (500, 20)])
def test_clouds_hold_no_distant_groups(draw, n, m):
    rng = np.random.default_rng(0)
    assert not told([getattr(rng, draw)((n, m)) for _ in range(2)], n_clusters=4)[1]


def test_clusters_that_share_one_are_told():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 100)
    views = [rng.standard_normal((300, 5)) + 20 * np.eye(5)[y] for _ in range(2)]
    assert told(views, n_clusters=2)[1] and not told(views, n_clusters=3)[1]
