"""Which rows and entries of dense views hold values: what the shortcuts say is what looking says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from manyview.engines.numpy.presence import has_nan, present_rows, unobserved

SHAPES = array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=40)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@given(data=st.data())
def test_shortcuts_change_nothing(dtype, data):
    kinds = (
        [0, 1, -2] if dtype == np.int64 else [0, 1, np.nan, np.inf, -np.inf, np.finfo(dtype).max]
    )
    X = data.draw(
        arrays(dtype, data.draw(SHAPES), elements=st.sampled_from(kinds), fill=st.just(0))
    )
    hole = np.isnan(X)
    assert has_nan(X) == hole.any()
    np.testing.assert_array_equal(unobserved(X), hole.sum(axis=1) / max(1, X.shape[1]))
    np.testing.assert_array_equal(present_rows(X), ((X != 0) & ~hole).any(axis=1))
