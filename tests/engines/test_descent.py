"""The approximate search: good lists, the same for any number of threads, whole whatever the data."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from manyview.engines.numpy import neighbors
from manyview.engines.threads import Threads

pytest.importorskip("numba")
from manyview.engines.numpy.descent import Descent, descended, sharing_rows


def clusters(n, m, seed=0, latent=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((6, m))[rng.integers(6, size=n)]
    X += rng.standard_normal((n, latent)) @ rng.standard_normal((latent, m))
    return (X + 0.1 * rng.standard_normal((n, m))).astype(np.float32)


def exact(X, k):
    gaps = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.fill_diagonal(gaps, np.inf)
    return np.argsort(gaps, axis=1)[:, :k]


def recall(found, expected):
    return np.mean([np.isin(e, f).mean() for f, e in zip(found, expected, strict=True)])


def test_nearly_all_neighbours_are_found():
    X = clusters(1500, 20)
    assert recall(descended(X, 10, 0, Threads(1)), exact(X, 10)) > 0.97


@pytest.mark.parametrize("threads", [2, 3])
def test_the_lists_are_the_same_for_any_number_of_threads(threads, monkeypatch):
    monkeypatch.setattr("manyview.engines.numpy.descent.CHUNK", 64)
    monkeypatch.setattr("manyview.engines.numpy.descent.TURN", 256)
    X = clusters(900, 12)
    one = descended(X, 8, 3, Threads(1))
    np.testing.assert_array_equal(descended(X, 8, 3, Threads(threads)), one)


@settings(max_examples=15, deadline=None)
@given(st.integers(12, 80), st.integers(1, 6), st.integers(1, 4), st.integers(0, 99))
def test_every_list_is_whole(n, k, kinds, seed):
    """k different rows and never the row itself, also where all rows are copies of a few."""
    rng = np.random.default_rng(seed)
    X = rng.integers(kinds, size=(n, 3)).astype(np.float32)
    found = descended(X, k, seed, Threads(1))
    assert found.shape == (n, k) and found.min() >= 0 and found.max() < n
    assert all(len(set(row)) == k and i not in row for i, row in enumerate(found))


def test_lists_become_better_round_by_round():
    X = clusters(1200, 30, latent=10)
    descent, expected, found = Descent(X, 10, 0, Threads(1)), exact(X, 10), []
    for number in range(2):  # the leaves of one tree alone know nobody else
        descent._look_in_leaves(*descent._tree(number))
    for turn in range(3):
        found.append(recall(descent.indices, expected))
        descent._round(turn)
    assert found == sorted(found) and found[-1] > found[0]


def texts(n=1200, words=400, topics=8, seed=0):
    rng = np.random.default_rng(seed)
    likely = rng.dirichlet(np.full(words, 0.05), topics)
    y = rng.integers(topics, size=n)
    counts = np.array([rng.multinomial(30, likely[t]) for t in y], dtype=float)
    return sp.csr_array(np.sqrt(counts / counts.sum(axis=1, keepdims=True)))


def test_sparse_rows_with_much_in_common_are_found():
    Z = texts()
    found = neighbors.index_neighbors(Z, 10, 0)
    assert recall(found, exact(Z.toarray(), 10)) > 0.9
    near = sharing_rows(Z, 20, Threads(1))
    np.testing.assert_array_equal(near, sharing_rows(Z, 20, Threads(2)))
    assert (near != np.arange(len(near))[:, None]).all()


def test_long_rows_are_searched_along_their_leading_directions():
    X = clusters(1500, 300)
    found = neighbors._along_leading(X, 10, 0, Threads(1))
    assert recall(found, exact(X.astype(float), 10)) > 0.97
