"""Scaling of views: comparable sizes, units that do not matter, unseen rows treated alike."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.metrics import adjusted_rand_score

from conftest import blobs
from manyview import WMNMF, RobustWMNMF, load
from manyview import wmnmf as working_views
from manyview.engines.numpy import scaling
from manyview.engines.numpy.scaling import fit_scaling as scale_of_robust
from manyview.engines.numpy.scaling import scaled_rows
from manyview.engines.numpy.sources import Scaled
from manyview.nonnegative import SCALES, fit_nonnegative
from manyview.views.views import as_views


@pytest.mark.parametrize("scale", [*SCALES, None])
@pytest.mark.parametrize("sparse", [False, True])
def test_scaled_views_are_comparable_and_sparse_equals_dense(scale, sparse):
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (30, 6)).astype(float)
    X[:, 5] = 3.0  # constant
    X[4] = 0  # all zero
    X[4, 5] = 3.0
    given = as_views([sp.csr_array(X) if sparse else X])
    scaling = fit_nonnegative(given, scale)[0]
    Z = scaling.apply(given.matrices[0])
    assert sp.issparse(Z) == sparse
    dense = fit_nonnegative(as_views([X]), scale)[0].apply(X)
    np.testing.assert_allclose(Z.toarray() if sparse else Z, dense, rtol=1e-12)
    assert np.isfinite(dense).all() and (dense >= 0).all()
    if scale is not None:
        assert dense.sum() / (1 if scale == "total" else 30) == pytest.approx(1)
    if scale in ("minmax", "standard"):
        assert (dense[:, 5] == 0).all()
        spread = dense[:, :5].std(axis=0) if scale == "standard" else np.ptp(dense[:, :5], axis=0)
        np.testing.assert_allclose(spread, spread[0])
    if scale in ("tfidf", "sqrt"):
        lengths = np.linalg.norm(dense, axis=1)
        np.testing.assert_allclose(lengths, lengths[0])


def test_shifting_scales_accept_negatives_but_not_in_sparse_views():
    A, B = np.arange(12.0).reshape(4, 3) - 5, np.arange(8.0).reshape(4, 2)
    for scale in ("minmax", "standard"):
        WMNMF(2, scale=scale, random_state=0).fit([A, B])
        with pytest.raises(ValueError, match=r"is sparse and has negative entries.*dense array"):
            WMNMF(2, scale=scale).fit([sp.csr_array(A), B])


@pytest.mark.parametrize("scale", SCALES)
def test_the_unit_of_a_view_is_divided_out(scale):
    X = np.random.default_rng(0).random((30, 6))
    here, there = (
        fit_nonnegative(as_views([c * X]), scale)[0].apply(c * X) for c in (1.0, 2.0**40)
    )
    np.testing.assert_allclose(there, here, rtol=1e-12)


@pytest.mark.parametrize("scale", [*SCALES, None])
def test_rows_are_scaled_one_by_one(scale):
    """What a model does with unseen rows: the same as it did with these rows among all."""
    X = np.random.default_rng(0).random((30, 6))
    scaling = fit_nonnegative(as_views([X]), scale)[0]
    np.testing.assert_allclose(scaling.apply(X[7:9]), scaling.apply(X)[7:9], rtol=1e-12)


@pytest.mark.parametrize("scale", ["sum", "minmax", "tfidf"])
def test_rows_scaled_when_read_are_the_scaled_rows(scale):
    X = np.random.default_rng(0).random((50, 7))
    scaling = fit_nonnegative(as_views([X]), scale)[0]
    lazy = Scaled(X, scaling, np.dtype(np.float32))
    np.testing.assert_allclose(lazy.read(slice(2, 9)), scaling.apply(X)[2:9], rtol=1e-6)
    assert lazy.read(slice(0, 1)).dtype == np.float32


@pytest.mark.parametrize("scale", ["sum", "minmax", "sqrt", None])
def test_large_views_are_scaled_when_read_and_give_the_same_fit(scale, monkeypatch, tmp_path):
    views, _ = blobs(n=300)
    new = [X[:40] for X in views]
    kept = WMNMF(3, scale=scale, random_state=0).fit(views)
    monkeypatch.setattr(working_views, "COPY_LIMIT", 0)
    read = WMNMF(3, scale=scale, random_state=0).fit(views)
    assert all(isinstance(X, Scaled) for X in read._fitted_views)
    np.testing.assert_allclose(read.consensus_, kept.consensus_, rtol=1e-7)
    np.testing.assert_array_equal(read.labels_, kept.labels_)
    np.testing.assert_array_equal(read.predict(new), kept.predict(new))
    assert read.score(new) == pytest.approx(kept.score(new))
    again = load(read.save(tmp_path / "m.npz"))
    np.testing.assert_array_equal(again.predict(new), read.predict(new))


def test_none_as_a_word_is_none(rng):
    X = [rng.random((30, 4)), rng.random((30, 3))]
    one, other = (RobustWMNMF(2, scale=s, random_state=0).fit(X) for s in (None, "none"))
    np.testing.assert_array_equal(one.consensus_, other.consensus_)


def with_zeros(share, seed=0, n=300, m=40):
    """Values in one unit of which this share is zero; more zeros are zeros of fewer zeros."""
    rng = np.random.default_rng(seed)
    X, place = rng.gamma(2, size=(n, m)), rng.permutation(n * m).reshape(n, m)
    return np.where(place < share * n * m, 0, X)


def test_zeros_lead_from_percentiles_to_square_roots_without_a_jump():
    here = np.ones(300, bool)

    def distances(share, X):
        scaling = scale_of_robust(with_zeros(share), here, "x")
        Z, sparse = scaling.apply(X), scaling.apply(sp.csr_array(X))
        np.testing.assert_allclose(sparse.toarray(), Z, atol=1e-12)
        return pdist(Z, "sqeuclidean")

    for edge in (0.3, 0.5, 0.9):
        X = with_zeros(edge)
        before, after = distances(edge - 0.002, X), distances(edge + 0.002, X)
        assert np.corrcoef(before, after)[0, 1] > 0.995
    kinds = [scale_of_robust(with_zeros(z), here, "x").kind for z in (0.2, 0.6, 0.95)]
    assert kinds == ["quantile", "part sqrt", "sqrt"]


def test_features_of_unlike_units_keep_their_percentiles(rng):
    X = np.column_stack([rng.random((200, 6)) < 0.2, rng.normal(60, 10, 200)]).astype(float)
    scaling = scale_of_robust(X, np.ones(200, bool), "clinical")
    assert (X == 0).mean() > 0.5 and scaling.kind == "quantile"


def test_depth_is_divided_out_of_counts_with_many_zeros(rng):
    kind = np.arange(300) % 3
    rates = rng.gamma(0.5, size=(3, 200))[kind] * rng.lognormal(0, 1, size=(300, 1)) * 2
    X = rng.poisson(rates).astype(float)
    assert 0.4 < (X == 0).mean() < 0.7
    model = RobustWMNMF(3, random_state=0).fit([sp.csr_array(X)])
    assert model.scaling_ == {"view0": "sqrt"}
    assert adjusted_rand_score(kind, model.labels_) > 0.95


def test_views_scaled_in_part_are_filled_in_within_their_range(rng):
    kind = np.arange(200) % 2
    X = rng.gamma(2, size=(200, 30)) * (rng.random((200, 30)) < np.where(kind, 0.3, 0.6)[:, None])
    Y = X + rng.normal(0, 0.01, X.shape)
    X[:10] = np.nan
    model = RobustWMNMF(2, random_state=0).fit({"x": X, "y": Y})
    assert model.scaling_["x"] == "part sqrt"
    filled = model.impute("x")
    np.testing.assert_array_equal(filled[10:], X[10:])
    assert (filled[:10] >= 0).all() and (filled[:10] <= np.nanmax(X)).all()
    assert 0.3 < filled[:10].mean() / X[10:].mean() < 3


def components(n=400, kinds=4, m=60, seed=0, signal=1.0):
    """Principal components of a modality with clusters, and of one of sparse counts without."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % kinds
    X = rng.normal(size=(n, m)) + signal * 2 * rng.normal(size=(kinds, m))[kind]
    noise = np.log1p(rng.poisson(0.02 * rng.lognormal(0, 0.5, (n, 1)) * np.ones(400)))

    def pca(Y):
        U, s, _ = np.linalg.svd(Y - Y.mean(axis=0), full_matrices=False)
        return U[:, :30] * s[:30]

    return pca(X), pca(noise), kind


def test_embeddings_are_rotated_and_get_unit_rows_and_no_column_is_stretched():
    P, _, _ = components()
    here = np.ones(len(P), dtype=bool)
    found = scale_of_robust(P, here, "rna")
    assert found.kind == "embedding"
    Z = found.apply(P)
    unit = P / np.linalg.norm(P, axis=1, keepdims=True)
    np.testing.assert_allclose(pdist(Z), pdist(unit), rtol=1e-9)
    assert (Z >= 0).all()
    np.testing.assert_allclose(found.apply(P[7:9]), Z[7:9], rtol=1e-12)
    np.testing.assert_allclose(
        scale_of_robust(3 * P + 5, here, "rna").apply(3 * P + 5), Z, atol=1e-9
    )
    turned = P @ np.linalg.qr(np.random.default_rng(1).normal(size=(30, 30)))[0]
    assert scale_of_robust(turned, here, "rna").kind == "quantile"  # columns that are correlated
    for name in ("X_scVI", "rna:obsm:X_pca"):
        assert scale_of_robust(turned, here, name).kind == "embedding"
    assert scale_of_robust(abs(turned), here, "X_counts").kind != "embedding"
    with pytest.raises(ValueError, match="'rna' is sparse, in a file or has unobserved"):
        scale_of_robust(sp.csr_array(P), here, "rna", "embedding")


def test_components_of_a_modality_without_clusters_get_little_weight():
    P, noise, kind = components()
    model = RobustWMNMF(4, random_state=0).fit({"rna": P, "atac": noise})
    assert model.scaling_ == {"rna": "embedding", "atac": "embedding"}
    assert model.view_weights_[1] < 0.2
    assert adjusted_rand_score(kind, model.labels_) > 0.95
    shown = model.impute("rna")
    np.testing.assert_array_equal(shown, P)


def test_two_modes_are_no_heavy_tail():
    """Proteins after CLR: most cells have the background, few carry the protein."""
    rng = np.random.default_rng(0)
    carried = rng.random((800, 20)) < 0.08
    X = rng.normal(size=(800, 20)) * 0.3 + 4 * carried
    assert scale_of_robust(X, np.ones(800, dtype=bool), "adt").kind == "quantile"


@pytest.mark.parametrize("scale", ["auto", "sqrt", "log", "quantile"])
def test_sparse_rows_scaled_some_at_a_time_are_those_of_all_at_once(scale, monkeypatch, rng):
    X = sp.random_array((90, 20), density=0.5, rng=rng, format="csr")
    X.data = np.floor(9 * X.data) + 1
    fitted = scale_of_robust(X, np.ones(90, bool), "v", scale)
    whole = scaled_rows(X, fitted, np.ones(90, bool), np.dtype(float))
    monkeypatch.setattr(scaling, "SPARSE_ROWS", 7)
    parts = scaled_rows(X, fitted, np.ones(90, bool), np.dtype(float))
    np.testing.assert_array_equal(parts.toarray(), whole.toarray())
    assert type(parts) is type(whole)
