"""What methods share: laws of the consensus."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from manyview.app.compare.consensus import agreed, consensus, together, typical
from manyview.app.run.meaning import known


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


def test_samples_without_a_cluster_in_a_method_are_placed_by_the_others():
    codes = np.repeat([0, 1], 10)
    lacks = np.where(np.arange(20) % 10 < 2, -1, codes)
    ids = [f"s{i}" for i in range(20)]
    beside = known(ids, {"age": np.arange(20.0)}, None, None, None)
    tables, _ = agreed({"a": [lacks, lacks], "b": [codes]}, ["a", "b"], 2, ids, beside)
    np.testing.assert_array_equal(tables["consensus.csv"]["cluster"], codes)
    np.testing.assert_allclose(tables["consensus.csv"]["support"], 1)
    np.testing.assert_allclose(tables["agreement.csv"]["with:a"], 1)
    assert tables["clinical.csv"]["sizes"].tolist() == ["8, 8", "10, 10", "10, 10"]
