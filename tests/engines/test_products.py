"""Distances from products that are kept, and pairs measured one by one: the same, and copies at 0."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from manyview.engines.numpy import distances, repeats
from manyview.engines.numpy.distances import Geometry
from manyview.engines.numpy.engine import HOST
from manyview.engines.numpy.repeats import row_codes
from manyview.maths.tails import known_quantiles


def rows(n=40, m=90, seed=0):
    Z = np.random.default_rng(seed).random((n, m))
    Z[Z < 0.7] = 0
    Z[7] = Z[3]
    return Z


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pairs_are_the_same_before_and_after_products_are_known(form, dtype):
    Z = rows().astype(dtype)
    present = np.ones(len(Z), dtype=bool)
    present[5] = False
    view = Geometry(form(Z), present)
    i, j = (part.ravel() for part in np.indices((len(Z), len(Z))))
    measured = view.pairs(i, j)
    blocks = view.between(np.arange(view.n_samples))
    assert view._products is not None
    looked_up = view.pairs(i, j)
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(looked_up, measured, atol=tolerance)
    np.testing.assert_allclose(blocks.ravel(), measured, atol=10 * tolerance)
    assert view.pairs(np.array([3]), np.array([7]))[0] == 0


def few_kinds(kinds=9, n=60, m=30, seed=0):
    """Rows of a few kinds, each of which occurs several times."""
    rng = np.random.default_rng(seed)
    Z = rng.random((kinds, m)) * (rng.random((kinds, m)) < 0.4)
    return Z[rng.integers(kinds, size=n)]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_products_of_rows_that_repeat_are_made_once(form):
    Z = few_kinds()
    view = Geometry(form(Z), np.arange(len(Z)) != 4)
    blocks = view.between(np.arange(len(Z)))
    assert len(view._products.table) == len(np.unique(Z, axis=0))
    i, j = (part.ravel() for part in np.indices((len(Z), len(Z))))
    measured = view._measured(i, j)
    np.testing.assert_allclose(blocks.ravel(), measured, atol=1e-12)
    np.testing.assert_allclose(view.pairs(i, j), measured, atol=1e-12)
    alike = (view.codes()[i] == view.codes()[j]) & (i != 4) & (j != 4)
    assert (view.pairs(i, j)[alike] == 0).all()


def test_halves_of_rows_that_repeat_add_up():
    Z = few_kinds()
    view = Geometry(Z, np.ones(len(Z), dtype=bool))
    view.nearest(5)
    columns = np.random.default_rng(1).permutation(Z.shape[1])
    for half, part in zip(
        view.halves(columns[::2], columns[1::2]), (columns[::2], columns[1::2]), strict=True
    ):
        assert half._products is not None
        expected = view.half(part).between(np.arange(len(Z)))
        found = half.between(np.arange(len(Z)))
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_products_are_the_same_compiled_and_not(dtype, monkeypatch):
    Z = sp.csr_array(rows(n=150).astype(dtype))  # more than a tile
    found = distances.sparse_products(Z)
    assert found.dtype == dtype
    monkeypatch.setattr(distances, "compiled", lambda: None)
    np.testing.assert_allclose(found, distances.sparse_products(Z), rtol=1e-5)


def test_long_rows_are_multiplied_in_parts(monkeypatch):
    Z = np.random.default_rng(0).random((12, 400)) + 3
    whole = distances.products_of(Z, row_codes(Z)).table
    monkeypatch.setattr(distances, "CENTERED", 12 * 50)
    parts = distances.products_of(Z, row_codes(Z)).table
    np.testing.assert_allclose(whole, parts, rtol=1e-12, atol=1e-12)


def test_a_model_keeps_no_products_and_what_came_sparse_is_sparse():
    Z = sp.csr_array(rows())
    view = HOST.distances(Z, np.ones(Z.shape[0], dtype=bool), False)
    assert isinstance(view.Z, np.ndarray)  # hardly sparse
    view.nearest(5)
    kept = view.for_model(sparse=True)
    assert kept._products is None and sp.issparse(kept.Z) and (kept.Z != Z).nnz == 0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_quantiles_have_the_same_bits_with_and_without_unknown_values(dtype):
    X = np.random.default_rng(0).standard_normal((31, 12)).astype(dtype)
    some = np.vstack([X, np.full((1, 12), np.nan, dtype=dtype)])
    shares = [0.01, 0.5, 0.75, 0.99]
    np.testing.assert_array_equal(known_quantiles(X, shares), known_quantiles(some, shares))
    np.testing.assert_array_equal(known_quantiles(X, shares), np.nanquantile(X, shares, axis=0))
    X[np.random.default_rng(1).random(X.shape) < 0.4] = np.nan
    X[:, 3] = np.nan
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
        expected = np.nanquantile(X, shares, axis=0)
    np.testing.assert_array_equal(known_quantiles(X, shares), expected)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_codes_of_rows_are_the_same_compiled_and_not(dtype, monkeypatch):
    Z = rows().astype(dtype)
    Z[1, 2] = np.nan
    codes = row_codes(Z)
    np.testing.assert_array_equal(codes, row_codes(np.where(Z == 0, -Z, Z)))
    sparse = sp.csr_array(Z)
    sparse.data[:2] = 0, -0.0  # stored, and as if they were not
    few = row_codes(sparse)
    np.testing.assert_array_equal(few[1:] == few[:-1], codes[1:] == codes[:-1])
    monkeypatch.setattr(repeats, "compiled", lambda: None)
    np.testing.assert_array_equal(codes, row_codes(Z))
    np.testing.assert_array_equal(few, row_codes(sparse))
    assert len(np.unique(codes)) == len(Z) - 1 and codes[3] == codes[7]
