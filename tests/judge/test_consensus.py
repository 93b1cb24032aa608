"""What methods share: laws of the consensus."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from manyview.app.compare.consensus import consensus, together, typical


@given(st.integers(0, 10_000), st.integers(2, 4))
@settings(max_examples=15, deadline=None)
def test_a_consensus_of_equal_clusterings_is_that_clustering_whatever_its_names(seed, k):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.r_[np.arange(k), np.arange(k), rng.integers(0, k, 20)])
    names = rng.permutation(k) + 5
    found, support = consensus({"a": [codes], "b": [names[codes], codes]}, k)
    assert adjusted_rand_score(codes, found) == 1
    np.testing.assert_allclose(support, 1)
    sizes = np.bincount(found)
    assert (np.diff(sizes) <= 0).all()


def test_methods_count_alike_and_disputed_samples_have_less_support():
    codes = np.repeat([0, 1], 10)
    other = codes.copy()
    other[:3] = 1
    runs = {"a": [codes] * 8, "b": [codes], "c": [other]}
    shared = together(runs)
    assert shared[0, 5] == pytest.approx(2 / 3) and shared[0, 15] == pytest.approx(1 / 3)
    found, support = consensus(runs, 2)
    assert adjusted_rand_score(codes, found) == 1
    assert support[:3].max() < support[3:10].min() < support[10:].min() + 1e-9
    np.testing.assert_array_equal(typical([codes, other, codes]), codes)
