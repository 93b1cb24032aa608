"""What a row of zeros says: a value in some views, and that nothing was measured in others."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import manyview as mv
from conftest import blobs
from manyview.app.cli.terminal import caught_warnings, reported

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
RNG = np.random.default_rng(0)
OTHER, Y = blobs(n=90)[0][0], blobs(n=90)[1]
BINARY = (RNG.random((90, 6)) < 0.15 + 0.3 * (Y[:, None] == 1)).astype(float)
EMPTY = ~BINARY.any(axis=1)
KINDS = {
    "zeros and ones": (BINARY, "observed"),
    "with holes": (np.where(RNG.random(BINARY.shape) < 0.02, np.nan, BINARY), "observed"),
    "one column": (5.0 * (Y == 1)[:, None], "observed"),
    "signed": (BINARY * RNG.choice([-1.0, 2.0], BINARY.shape), "observed"),
    "counts": (BINARY * RNG.integers(1, 5, BINARY.shape), "missing"),
    "shares": (BINARY * RNG.random(BINARY.shape), "missing"),
    "nothing": (np.zeros_like(BINARY), "missing"),
}


def fitted(X, **settings):
    return mv.RobustWMNMF(3, random_state=0, **settings).fit({"x": X, "other": OTHER})


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_of_a_view_says_what_its_rows_of_zeros_are(kind):
    X, says = KINDS[kind]
    model = fitted(X)
    assert model.zero_rows_["x"] == says
    asked = fitted(X, zero_rows={"x": says})
    np.testing.assert_array_equal(model.sample_weights_, asked.sample_weights_)
    np.testing.assert_array_equal(model.labels_, asked.labels_)
    if not np.isnan(X).any() and X.min() >= 0:  # most sparse views below zero are refused
        sparse = fitted(sp.csr_array(X))
        assert sparse.zero_rows_ == model.zero_rows_
        np.testing.assert_allclose(sparse.sample_weights_, model.sample_weights_, atol=1e-12)


def test_explicit_settings_go_before_the_kind():
    for says in ("missing", "observed"):
        for X, _ in KINDS.values():
            if says == "missing" or np.nansum(abs(X)):
                assert fitted(X, zero_rows=says).zero_rows_["x"] == says


@pytest.mark.parametrize("kind", ["zeros and ones", "signed", "counts"])
def test_unseen_rows_are_read_as_those_of_the_fit_whatever_they_look_like(kind, tmp_path):
    X, says = KINDS[kind]
    model = mv.load(fitted(X).save(tmp_path / "m.npz"))
    labels = model.predict({"x": np.zeros((2, 6))})  # two rows alone are of no kind
    assert (labels == -1).all() if says == "missing" else (labels >= 0).all()


def test_samples_that_a_sparse_view_lacks_are_missing_and_stay_so_in_refits():
    pandas, anndata = pytest.importorskip("pandas"), pytest.importorskip("anndata")
    ids = [f"p{i}" for i in range(90)]
    part = anndata.AnnData(sp.csr_matrix(BINARY[:80]), pandas.DataFrame(index=ids[:80]))
    tables = {"x": part, "other": pandas.DataFrame(OTHER, index=ids)}
    model = mv.RobustWMNMF(3, random_state=0)
    assert model.fit(tables).zero_rows_["x"] == "missing"
    assert not model.sample_weights_[80:, 0].any()
    assert mv.adjust(tables, {"batch": Y % 2}).arrays["x"][80:].shape == (10, 6)
    assert np.isnan(mv.adjust(tables, {"batch": Y % 2}).arrays["x"][80:]).all()
    fresh = mv.stability(mv.RobustWMNMF(3), tables, n_runs=3, random_state=0)
    asked = mv.RobustWMNMF(3, zero_rows={"x": "missing", "other": "observed"})
    np.testing.assert_array_equal(
        fresh.runs, mv.stability(asked, tables, n_runs=3, random_state=0).runs
    )


def test_a_mudata_whose_cells_differ_is_clustered_and_its_zeros_are_missing():
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    ids = [f"c{i}" for i in range(90)]
    peaks = anndata.AnnData(sp.csr_matrix(BINARY[:80]))
    peaks.obs_names = ids[:80]
    rna = anndata.AnnData(OTHER)
    rna.obs_names = ids
    with warnings.catch_warnings(action="ignore"):
        cells = mudata.MuData({"rna": rna, "peaks": peaks})
    model = mv.tl.cluster(cells, n_clusters=3)
    assert model.zero_rows_["peaks"] == "missing" and not model.sample_weights_[80:, 1].any()
    assert (model.labels_ >= 0).all()


def test_the_sentence_names_the_setting_where_the_reader_is():
    counts = KINDS["counts"][0]
    with pytest.warns(UserWarning, match=r"use zero_rows=\{'x': 'observed'\}"):
        fitted(counts)
    with reported("fit"), caught_warnings() as said:
        fitted(counts)
    told = next(text for text in said if "zero throughout" in text)
    assert "--zero-rows x=observed" in told and "zero_rows" not in told
