"""The pass in plain PyTorch is the step of the solver and its sums, as NumPy has them."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from manyview._types import Split
from manyview.maths import equations as eq
from manyview.maths.solvers import SOLVERS

torch = pytest.importorskip("torch", reason="needs PyTorch")

from manyview.engines.torch.fused import fused, plain_graph, plain_pass  # noqa: E402


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("times_V", [True, False])
@pytest.mark.parametrize("n", [0, 1, 50])
def test_a_pass_is_the_step_and_its_sums(n, times_V, solver):
    rng = np.random.default_rng(n)
    X, U, V, star = (rng.random(shape) for shape in ((n, 7), (7, 3), (n, 3), (n, 3)))
    fit, weight, negative, positive = (rng.random(s) for s in (n, n, (n, 3), (n, 1)))
    fit[::5] = weight[::5] = 0
    V[:, 1] = 0
    split = Split(negative, positive * (V if times_V else np.ones_like(V)), 2 * positive)
    given = (U.T @ U, U.sum(axis=0), star)
    expected = SOLVERS[solver]().update_V(V, X @ U, *given, fit[:, None], 0.3, 0.2, split)
    args = (X, U, V, *given, fit, weight, 0.3, 0.2, negative, positive, 2 * positive)
    args = [torch.tensor(x) if isinstance(x, np.ndarray) else x for x in args]
    new, sums = plain_pass(*args, times_V=times_V, solver=solver)
    np.testing.assert_allclose(new, expected, rtol=1e-12)
    for found, right in zip(
        sums, eq.sums_over_rows(X, expected, star, weight[:, None]), strict=True
    ):
        np.testing.assert_allclose(found, right, rtol=1e-12)


def test_a_step_that_vanishes_leaves_the_row():
    V = torch.rand(5, 3)
    nothing = torch.zeros(3, 3)
    given = (
        nothing,
        nothing[0],
        torch.rand(5, 3),
        torch.rand(5),
        torch.rand(5),
        0.3,
        0.2,
        0.0,
        0.0,
    )
    new, _ = plain_pass(torch.rand(5, 4), torch.zeros(4, 3), V, *given)
    assert torch.equal(new, V)


def test_the_graph_product_is_that_of_scipy():
    A = sp.random_array((30, 30), density=0.2, format="csr", rng=np.random.default_rng(0))
    V, degrees = np.random.default_rng(1).random((30, 4)), A.sum(axis=1)
    out = torch.empty(30, 4, dtype=torch.float64)
    csr = torch.tensor(A.toarray()).to_sparse_csr()
    value = plain_graph(csr, torch.tensor(degrees), torch.tensor(V), out)
    np.testing.assert_allclose(out, A @ V)
    assert float(value) == pytest.approx(np.vdot(V, degrees[:, None] * V - A @ V))


@pytest.fixture
def asked_again():
    fused.cache_clear()
    yield
    fused.cache_clear()


def test_a_triton_it_was_not_tried_with_is_named_and_left_alone(monkeypatch, asked_again):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__version__="2.1.0"))
    with pytest.warns(UserWarning, match=r"Triton 2\.1\.0"):
        assert fused() is None


def test_without_triton_nothing_is_said(monkeypatch, asked_again, recwarn):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setitem(sys.modules, "triton", None)
    assert fused() is None
    assert not recwarn
