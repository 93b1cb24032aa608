"""Every form of input, and a sentence for every bad one."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from conftest import blobs
from manyview import WMNMF
from manyview.nonnegative import SCALES
from manyview.views.views import as_views

A, B = np.arange(12.0).reshape(4, 3), np.ones((4, 2))


def test_forms_give_the_same_views():
    ids = list("wxyz")
    frames = {"a": pd.DataFrame(A, index=ids, columns=["f", "g", "h"]), "b": pd.DataFrame(B, ids)}
    forms = [
        as_views([A, B]),
        as_views((A.tolist(), B)),
        as_views({"a": A, "b": B}),
        as_views([sp.csc_matrix(A), sp.coo_array(B)]),
        as_views(frames),
        as_views(list(frames.values())),
        as_views(np.hstack([A, B]), views=[3, 2]),
        as_views(sp.csr_array(np.hstack([A, B])), views=(3, 2)),
        as_views(pd.DataFrame(np.hstack([A, B])), views=[3, 2]),
        as_views({"a": A.astype(int), "b": B.astype(bool)}),
    ]
    for views in forms:
        assert views.n_features == (3, 2) and views.n_samples == 4
        for X, expected in zip(views.matrices, (A, B), strict=True):
            np.testing.assert_array_equal(X.toarray() if sp.issparse(X) else X, expected)
    assert forms[4].names == ("a", "b")
    assert list(forms[4].feature_names[0]) == ["f", "g", "h"]
    assert list(forms[4].sample_names) == ids


def test_one_array_and_lists_of_rows_are_one_view():
    assert as_views(A).n_features == (3,)
    assert as_views(A.tolist()).n_features == (3,)
    assert len(as_views([A])) == 1
    assert as_views(sp.dok_array(A)).n_features == (3,)


def test_precision_is_kept_where_it_is_safe():
    assert as_views(A.astype(np.float32)).dtype == np.float32
    assert as_views(A.astype(np.float16)).dtype == np.float32
    assert as_views([A.astype(np.float32), B]).dtype == np.float64
    assert as_views(A.astype(np.longdouble)).dtype == np.float64
    assert as_views(A.astype(np.uint8)).dtype == np.float64


def bad_frames(kind):
    if kind == "text":
        return {"a": pd.DataFrame({"sex": ["m", "f"], "age": [1, 2]})}
    if kind == "twice":
        return {"a": pd.DataFrame(A, index=list("wxyy")), "b": pd.DataFrame(B, index=list("wxyz"))}
    if kind == "strangers":
        return {"a": pd.DataFrame(A, index=list("wxyz")), "b": pd.DataFrame(B, index=list("uvwx"))}
    return {"a": pd.DataFrame(A, list("wxyz")), "b": pd.DataFrame(B, list("zyxw")), "c": B}


BAD = {
    "rows": ([A, B[:3]], {}, "same samples: 'view0' has 4 rows, 'view1' has 3"),
    "nan": (
        {"rna": A * np.nan},
        {},
        "'rna' has 12 NaN or infinite entries .*row 0, column 0.*(impute|missing='allow')",
    ),
    "inf": (
        [A, np.where(B > 0, [[1, np.inf]], 0)],
        {},
        "'view1' has 4 NaN or infinite .*is inf at",
    ),
    "sparse nan": ([sp.csr_array([[0, 1.0], [np.nan, 2.0]])], {}, "row 1, column 0"),
    "negative": (
        {"rna": A - 1},
        {},
        r"'rna' has 1 negative entries .*min -1\); shift it, or use scale",
    ),
    "sparse negative": ([sp.csr_array(A - 1)], {}, "1 negative entries"),
    "text": ({"a": np.array([["x", "y"], ["z", "w"]])}, {}, "'a' has entries that are not numbers"),
    "frame text": ("text", {}, "non-numeric column 'sex'.*encode it as numbers"),
    "complex": ([A + 1j], {}, "Complex data not supported: view 'view0'"),
    "one row": ([A[:1], B[:1]], {}, r"at least 2 samples, got n_samples = 1 \(1 sample\)"),
    "no rows": ([A[:0], B[:0]], {}, "at least 2 samples, got n_samples = 0"),
    "no features": (
        [A, B[:, :0]],
        {},
        r"'view1' has 0 feature\(s\) \(shape=\(4, 0\)\).*leave the view out",
    ),
    "1-D": (A[:, 0], {}, "Expected 2D array for view 'view0'.*got 1D array.*Reshape"),
    "3-D": (np.ones((2, 2, 2)), {}, "got 3D array"),
    "ragged": ([A, [[1, 2], [3]]], {}, "'view1' is not a rectangular table"),
    "empty dict": ({}, {}, "at least one view"),
    "split sum": (A, {"views": [2, 2]}, r"adds up to 4 columns, but X has 3 features"),
    "split zero": (A, {"views": [3, 0]}, "1 or more"),
    "split of several": ([A, B], {"views": [3]}, "leave views=None"),
    "named split of several": (
        [A, B],
        {"views": {"a": 3}},
        "several views were passed; leave views",
    ),
    "named split sum": (A, {"views": {"a": 2, "b": 2}}, "adds up to 4 columns"),
    "split by neither": (A, {"views": {"a": 2, "b": [1]}}, "lists of columns; got"),
    "unknown column": (
        A,
        {"views": {"a": [0, 7]}},
        "column 7 for 'a', but the 3 columns begin with",
    ),
    "no column": (A, {"views": {"a": [0], "b": []}}, "no column for 'b'"),
    "duplicate ids": ("twice", {}, "sample id 'y' more than once"),
    "few shared ids": ("strangers", {}, "share only 2 sample ids"),
    "no ids to align": ("mixed", {}, "pass DataFrames for all"),
    "dates": ([A.astype("M8[D]")], {}, r"not numbers \(dtype datetime64"),
    "views as text": (A, {"views": "12"}, "views must be|'views' parameter"),
    "names that collide": ({1: A, "1": B}, {}, "must differ as text"),
    "masked": ([np.ma.masked_greater(A, 3)], {}, "'view0' has 8 NaN or infinite entries"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_a_sentence(case):
    data, kwargs, message = BAD[case]
    if isinstance(data, str):
        data = bad_frames(data)
    with pytest.raises(ValueError, match=message):
        as_views(data, **kwargs)
    with pytest.raises(ValueError, match=message):
        WMNMF(2, **kwargs).fit(data)


def test_more_clusters_than_observations():
    with pytest.raises(ValueError, match="n_clusters=5 is more than the number of samples"):
        WMNMF(5).fit([A, A])


def test_objects_that_are_no_numbers_are_a_type_error():
    with pytest.raises(TypeError, match="'view0' has entries that are not numbers"):
        as_views(np.array([[{}, 1], [2, 3]], dtype=object))


values = st.one_of(
    st.sampled_from([0.0, 1.0, 1e-150, 1e150, 1e-300, 5e-324, 1.7e308, 2.0, -1.0, np.nan, np.inf]),
    st.floats(0, 10),
)
matrices = st.integers(1, 8).flatmap(
    lambda n: st.lists(
        st.integers(1, 4).flatmap(
            lambda m: (
                arrays(
                    st.sampled_from([np.float64, np.float32, np.int8, np.bool_]),
                    (n, m),
                    elements=None,
                )
                | arrays(np.float64, (n, m), elements=values)
                | arrays(np.float64, (n, m), elements=st.floats(0, 1e150))
            )
        ),
        min_size=1,
        max_size=3,
    )
)


@given(
    matrices,
    st.sampled_from([*SCALES, None]),
    st.sampled_from(["multiplicative", "hals"]),
    st.sampled_from(["gnmf", "random", "nndsvd"]),
    st.sampled_from(["spectral", "njw", "kmeans", "argmax"]),
    st.booleans(),
)
@pytest.mark.filterwarnings("ignore")
def test_no_input_crashes_the_fit(data, scale, solver, init, labels, sparse):
    if sparse:
        data = [sp.csr_array(X) for X in data]
    model = WMNMF(
        2, scale=scale, solver=solver, init=init, assign_labels=labels, inner_iter=3, random_state=0
    )
    n = data[0].shape[0]
    values = [X.data if sparse else X for X in data]
    finite = all(np.isfinite(X.astype(float)).all() for X in values)
    negative = any((X < 0).any() for X in values)
    try:
        model.fit(data)
    except (ValueError, TypeError) as error:
        assert "Input X contains" not in str(error)
        if finite and n >= 2 and not (negative and (sparse or scale not in ("minmax", "standard"))):
            # Sound input: only numbers at the very edge of floating point may be refused.
            assert re.search("too large or too small|too little or too much", str(error)), error
        return
    assert ((model.predict(data) >= 0) & (model.predict(data) < 2)).all()
    assert np.isfinite(model.score(data)) and np.isfinite(model.reliance_).all()
    assert model.labels_.shape == (n,)
    np.testing.assert_allclose(model.sample_weights_.sum(axis=1), 1, rtol=1e-5)
    assert model.view_weights_.sum() == pytest.approx(1)
    for array in (model.consensus_, *model.components_, *model.coefficients_):
        assert np.isfinite(array).all() and (array >= 0).all()


def test_the_users_matrix_is_not_touched():
    X = sp.csr_matrix(([1.0, 2.0, 3.0], [1, 0, 2], [0, 2, 3]), shape=(2, 3))
    X.indices.setflags(write=False)
    X.data.setflags(write=False)
    as_views([X])
    assert list(X.indices) == [1, 0, 2]


def test_odd_frames():
    columns = pd.MultiIndex.from_product([["a"], ["x", "y", "z"]])
    assert as_views([pd.DataFrame(A, columns=columns)]).feature_names[0][0] == "('a', 'x')"
    nullable = pd.DataFrame({"i": pd.array([1, None, 3], "Int64"), "f": [1.0, 2.0, 3.0]})
    assert np.isnan(as_views({"v": nullable}, allow_missing=True).matrices[0]).sum() == 1
    assert as_views(pd.DataFrame(A, index=[0, 0, 1, 1])).n_samples == 4
    with pytest.raises(ValueError, match=r"pass its \.views"):
        from manyview.datasets import load_nutrimouse

        as_views(load_nutrimouse())


def test_zero_rows_constant_columns_and_duplicates_work():
    views, _ = blobs(noise=0.05)
    views[0][5] = 0
    views[1][:, 2] = 7.0
    views = [np.vstack([X, X[:10]]) for X in views]
    labels = WMNMF(3, random_state=0).fit_predict(views)
    assert (labels[:10] == labels[-10:]).mean() >= 0.9


def test_views_without_a_common_id_are_refused_and_chains_are_not():
    a, b, text = pd.DataFrame(A, list("wxyz")), pd.DataFrame(B, list("stuv")), list("1234")
    with pytest.raises(ValueError, match=r"view 'b' shares no sample id.*'w'.*'s'"):
        as_views({"a": a, "b": b}, allow_missing=True)
    with pytest.raises(ValueError, match=r"'a' has 1, view 'b' has '1'.*as text or as a number"):
        as_views(
            {"a": pd.DataFrame(A, [1, 2, 3, 4]), "b": pd.DataFrame(B, text)}, allow_missing=True
        )
    chained = {"a": a, "b": b, "c": pd.DataFrame(B, list("vwab"))}
    assert as_views(chained, allow_missing=True).n_samples == 10


@pytest.mark.parametrize("shared", [1, 10])
def test_tables_whose_columns_agree_better_are_doubted(shared):
    """Genes × samples as views: with missing="allow" every gene would be a sample."""
    names = np.array([f"g{i}" for i in range(80)])
    X = np.random.default_rng(0).random((40, 30))
    rows = {"a": names[:40], "b": names[40 - shared : 80 - shared]}
    views = {v: pd.DataFrame(X, ids, [f"s{i}" for i in range(30)]) for v, ids in rows.items()}
    told = r"100% of their column names .* pass the transposed tables \(frame.T\)"
    with pytest.warns(UserWarning, match=told):
        found = as_views(views, None, allow_missing=True)
    assert found.n_samples == 80 - shared
    with pytest.raises(ValueError, match=told):
        as_views(views, None)
    turned = {view: frame.T for view, frame in views.items()}
    assert as_views(turned, None, allow_missing=True).n_samples == 30  # without a warning
