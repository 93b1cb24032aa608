"""Regularizers, ours and those of others: their values and bounds, and what is wrong is said."""

import numpy as np
import pytest

from manyview.engines.affinity import affinity
from manyview.extend import check_regularizer
from manyview.regularizers import Graph, Orthogonal, Sparse
from own_parts import Ridge

REGULARIZERS = [Graph(3), Graph(3, "heat"), Graph(3, "cosine", mutual=True), Sparse(), Orthogonal()]


def rows_and_coefficients(seed=0, n=12, m=7, k=3):
    rng = np.random.default_rng(seed)
    return rng.random((n, m)), rng.random((n, k))


@pytest.mark.parametrize("regularizer", [*REGULARIZERS, Ridge()])
def test_regularizers_pass_their_check(regularizer):
    check_regularizer(regularizer)


@pytest.mark.parametrize("regularizer", REGULARIZERS)
@pytest.mark.parametrize("seed", range(5))
def test_curvature_bounds_the_regularizer(regularizer, seed):
    X, V = rows_and_coefficients(seed)
    g = regularizer.prepare(X)
    rng = np.random.default_rng(seed)
    negative, positive = g.split(V)
    for size in (1e-3, 1, 30):
        D = size * rng.standard_normal(V.shape)
        bound = g.value(V) + 2 * ((positive - negative) * D).sum() + (g.curvature(V) * D**2).sum()
        assert g.value(V + D) <= bound + 1e-9 * abs(bound)


def test_graph_value_is_the_sum_over_edges():
    X, V = rows_and_coefficients(n=15)
    A = affinity(X, 4, "heat").toarray()
    pairs = sum(A[i, j] * ((V[i] - V[j]) ** 2).sum() for i in range(15) for j in range(15))
    assert Graph(4, "heat").prepare(X).value(V) == pytest.approx(pairs / 2)


def value_that_writes(self, V):
    value = float((V * V).sum())
    V += 1e-9
    return value


BROKEN_TERMS = {
    r"lacks value\(V\) or split": {"split": None, "prepare": lambda self, X, view: object()},
    "not half the gradient": {"split": lambda self, V: (0.0, 2 * V)},
    "must be finite and nonnegative": {"split": lambda self, V: (-V, 0.0)},
    "does not fit V": {"split": lambda self, V: (0.0, V[:3])},
    "must be a pair": {"split": lambda self, V: (0.0, V, V)},
    "one finite number": {"value": lambda self, V: V.sum(axis=1)},
    "is too small": {"curvature": lambda self, V: 0.1},
    "wrote into V": {"value": value_that_writes},
}


@pytest.mark.parametrize("sentence", BROKEN_TERMS)
def test_a_broken_regularizer_is_told_what_is_wrong(sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_regularizer(type("Broken", (Ridge,), BROKEN_TERMS[sentence])())


def test_an_object_without_prepare_is_told_so():
    with pytest.raises(AssertionError, match=r"has no prepare\(X, view\)"):
        check_regularizer(object())
