"""Graphs, kernels and distances as values: what is refused, how they are cut, coordinates they become."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

import manyview as mv
from manyview.engines.numpy.distances import Geometry
from manyview.engines.numpy.engine import HOST
from manyview.engines.numpy.relations import no_relation
from manyview.engines.numpy.scaling import fit_scaling, scaled
from manyview.maths import coordinates as maths

everything = np.dtype(float)


def distances_of(relation):
    here = relation.present()
    scaling = fit_scaling(relation, here, "r", "auto")
    return HOST.distances(scaled(relation, scaling, here, everything), here, False)


def links(n, seed=0, density=0.1):
    A = sp.random_array((n, n), density=density, rng=np.random.default_rng(seed))
    return sp.csr_array(A + A.T)


BAD = [
    (lambda: mv.GraphView(np.array([[0, -1.0], [-1, 0]])), "2 negative entries"),
    (lambda: mv.GraphView(np.array([[0, np.nan], [1, 0]])), "NaN"),
    (lambda: mv.GraphView(np.array([[0, np.inf], [1, 0]])), "infinite"),
    (lambda: mv.GraphView(np.ones(3)), "1 dimension"),
    (lambda: mv.GraphView(np.array([["a", "b"]])), "numbers"),
    (lambda: mv.GraphView(np.eye(3), ids=["a"]), "1 ids"),
    (lambda: mv.DistanceView(-np.ones((2, 2))), "negative"),
    (lambda: mv.DistanceView(sp.csr_array(np.eye(3))), "GraphView"),
    (lambda: mv.KernelView(np.array([[1, np.nan, 0], [0, 1, 0], [0, 0, 1]])), "row 0, column 1"),
    (lambda: mv.KernelView(np.ones((2, 3)), diagonal=[1, 2, 3]), "one number for each row"),
]


@pytest.mark.parametrize(("make", "words"), BAD)
def test_what_is_no_relation_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


FIT_ONLY = [
    (mv.GraphView(np.ones((2, 3))), r"'r' is a graph of shape \(2, 3\)"),
    (mv.KernelView(np.array([[1.0, 0.5], [0.2, 1]])), "'r', a kernel, is not symmetric"),
    (mv.DistanceView(np.array([[0.0, 1], [2, 0]])), "not symmetric"),
    (mv.DistanceView(np.ones((3, 3))), "1 on its diagonal"),
]


@pytest.mark.parametrize(("relation", "words"), FIT_ONLY)
def test_what_relates_no_observations_of_a_fit_is_refused(relation, words):
    with pytest.raises(ValueError, match=words):
        relation.check("r")
    relation.for_unseen(None).check("r")  # rows of unseen ones may be all of these


@given(st.integers(0, 1000))
def test_parts_of_a_relation_are_those_of_its_matrix(seed):
    rng = np.random.default_rng(seed)
    D = cdist(*[rng.random((9, 2))] * 2)
    chosen = rng.permutation(9)[:5]
    assert np.array_equal(mv.DistanceView(D)[chosen].matrix, D[np.ix_(chosen, chosen)])
    A = mv.GraphView(D)
    assert np.array_equal(A[chosen].matrix.toarray(), D[np.ix_(chosen, chosen)])
    taken = A.take(np.append(chosen, -1)).matrix.toarray()
    assert np.array_equal(taken[:5, :5], D[np.ix_(chosen, chosen)]) and not taken[5].any()
    assert np.array_equal(A.for_unseen(None)[chosen].matrix.toarray(), D[chosen])


def test_columns_of_unseen_rows_are_found_by_name():
    rows = mv.GraphView(np.array([[1.0, 2, 3]]), columns=["c", "a", "b"])
    assert rows.for_unseen(np.array(["a", "b", "c"])).matrix.toarray().tolist() == [[2, 3, 1]]
    with pytest.raises(ValueError, match="lacks 1 of the 2 fitted"):
        rows.for_unseen(np.array(["a", "z"]))


def test_links_to_oneself_do_not_count():
    A = np.array([[5.0, 2, 0], [3, 0, 0], [0, 0, 7]])
    view = mv.GraphView(A)
    assert view.links().toarray().tolist() == [[0, 2, 0], [3, 0, 0], [0, 0, 0]]
    assert distances_of(view).present.tolist() == [True, True, False]


def test_a_row_holds_the_links_that_go_out():
    A = np.zeros((5, 5))
    A[[0, 1], 4] = 1  # nobody but 0 and 1 links to anybody
    space = distances_of(mv.GraphView(A))
    assert space.present.tolist() == [True, True, False, False, False]
    assert distances_of(mv.GraphView(A.T)).present.tolist() == [False] * 4 + [True]


def test_the_unit_of_the_weights_does_not_matter():
    A = links(40)
    one, other = (distances_of(mv.GraphView(c * A)) for c in (1, 1e6))
    i, j = np.triu_indices(40, 1)
    np.testing.assert_allclose(one.pairs(i, j), other.pairs(i, j), rtol=1e-9)


def test_linked_observations_are_nearer_than_others():
    A = sp.csr_array(sp.block_diag([np.ones((6, 6)), np.ones((6, 6))]))
    space = distances_of(mv.GraphView(A))
    i, j = np.triu_indices(12, 1)
    d, same = space.pairs(i, j), (i < 6) == (j < 6)
    assert d[same].max() < 1e-9 and d[~same].min() > 1


def test_halves_of_a_graph_share_no_link():
    space = distances_of(mv.GraphView(links(30)))
    order = np.random.default_rng(0).permutation(space.n_features)
    one, other = (space.half(part).Z for part in (order[::2], order[1::2]))
    one, other = (Z.toarray() if sp.issparse(Z) else Z for Z in (one, other))
    off = ~np.eye(30, dtype=bool)
    shared = (one != 0) & (other != 0) & off
    assert not shared.any()
    whole = space.closed.toarray() != 0
    assert (((one != 0) | (other != 0)) == whole)[off].all()
    assert ((one != 0) == (one != 0).T)[np.ix_(*[space.present] * 2)].all()


@settings(max_examples=8)
@given(st.integers(0, 1000), st.integers(1, 6))
def test_distances_give_the_geometry_of_the_features(seed, width):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((25, width))
    direct = Geometry(X, np.ones(25, bool))
    i, j = np.triu_indices(25, 1)
    for relation in (mv.DistanceView(cdist(X, X)), mv.KernelView(X @ X.T)):
        space = distances_of(relation)
        np.testing.assert_allclose(space.pairs(i, j), direct.pairs(i, j), rtol=1e-6, atol=1e-9)
        if width > 1:
            assert (space.nearest(5).indices == direct.nearest(5).indices).all()


def test_a_kernel_and_the_distances_it_induces_are_one_view():
    S = np.exp(-(cdist(*[np.random.default_rng(0).random((20, 3))] * 2) ** 2))
    D = np.sqrt(maths.squared_from_kernel(S, S.diagonal(), S.diagonal()))
    i, j = np.triu_indices(20, 1)
    kernel, distance = distances_of(mv.KernelView(S)), distances_of(mv.DistanceView(D))
    np.testing.assert_allclose(kernel.pairs(i, j), distance.pairs(i, j), rtol=1e-6)


def test_unseen_rows_find_the_fitted_row_that_they_copy():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    for fitted, rows in (
        (mv.DistanceView(cdist(X, X)), mv.DistanceView(cdist(X[:4], X))),
        (mv.KernelView(X @ X.T), mv.KernelView(X[:4] @ X.T, diagonal=(X[:4] ** 2).sum(axis=1))),
    ):
        here = fitted.present()
        scaling = fit_scaling(fitted, here, "r", "auto")
        space = HOST.distances(scaled(fitted, scaling, here, everything), here, False)
        Z = scaled(rows.for_unseen(None), scaling, np.ones(4, bool), everything)
        d, _ = next(iter(space.to_new(Z, None, 10)))
        assert d.argmin(axis=1).tolist() == [0, 1, 2, 3] and d.min() < 1e-9


def test_unseen_rows_of_a_kernel_say_how_similar_they_are_to_themselves():
    X = np.random.default_rng(0).random((6, 2))
    fitted = mv.KernelView(X @ X.T)
    scaling = fit_scaling(fitted, fitted.present(), "r", "auto")
    with pytest.raises(ValueError, match="diagonal"):
        scaling.apply(mv.KernelView(X[:2] @ X.T).for_unseen(None))


def test_missing_observations_of_distances_are_rows_and_columns_of_nan():
    D = cdist(*[np.random.default_rng(0).random((8, 2))] * 2)
    D[3], D[:, 3] = np.nan, np.nan
    space = distances_of(mv.DistanceView(D))
    assert space.present.tolist() == [i != 3 for i in range(8)]
    assert space.pairs(np.array([3, 0]), np.array([1, 3])).tolist() == [1, 1]


@pytest.mark.parametrize("kind", ["graph", "kernel", "distance matrix"])
def test_a_relation_that_nobody_has(kind):
    assert not no_relation(kind, (3, 5)).present().any()


@pytest.mark.parametrize(
    "view",
    [
        mv.GraphView(links(12)),
        mv.DistanceView(cdist(*[np.arange(12.0)[:, None]] * 2)),
        mv.KernelView(np.outer(np.arange(12.0) - 3, np.arange(12.0) - 3)),
    ],
)
def test_features_of_a_relation_are_nonnegative(view):
    X = view.as_features()
    assert X.shape[0] == 12 and X.min() >= 0
    assert "shape (12, 12)" in repr(view)
