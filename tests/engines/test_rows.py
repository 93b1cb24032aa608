"""The pass: blocks equal the whole, compiled equals NumPy, threads change no bit."""

import ast
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import manyview
from conftest import blobs
from manyview import WMNMF, RobustWMNMF
from manyview._types import Split, Sums
from manyview.engines import threads
from manyview.engines.numpy import rows as rows_module
from manyview.engines.numpy import sources
from manyview.engines.numpy.rows import Rows
from manyview.engines.numpy.sources import InMemory, UnitRows
from manyview.engines.threads import Threads, available_threads, blocks, chunks
from manyview.maths import equations as eq
from manyview.maths.solvers import SOLVERS
from manyview.regularizers import Graph, NoPenalty, Orthogonal

pytest.importorskip("numba")
DTYPES = {np.float64: 1e-10, np.float32: 2e-4}


def problem(n=50, m=7, k=3, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    X, U, V, V_star = (rng.random(shape) for shape in ((n, m), (m, k), (n, k), (n, k)))
    X[3] = 0
    w2 = rng.random(n)
    w2[5] = 0
    return (*(array.astype(dtype) for array in (X, U / U.sum(axis=0), V, V_star)), w2)


@pytest.fixture
def small_blocks(monkeypatch):
    """Many chunks of a few blocks each, even for a handful of rows."""
    monkeypatch.setattr(threads, "CHUNK_ROWS", 12)
    monkeypatch.setattr(rows_module, "block_rows", lambda source, k: 5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("regularizer", [Graph(3), NoPenalty(), Orthogonal()])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_a_pass_in_blocks_is_the_step_on_the_whole(small_blocks, form, solver, regularizer, dtype):
    X, U, V, V_star, w2 = problem(dtype=dtype)
    solver, a, beta = SOLVERS[solver](), 0.3, 0.2
    g = regularizer.prepare(X)
    w = w2[:, None].astype(dtype)
    split = Split(*g.split(V), g.curvature(V))
    H, q = U.T @ U, U.sum(axis=0)
    expected = solver.update_V(V, X @ U, H, q, V_star, w, a, beta, split)
    sums = eq.sums_over_rows(X, expected, V_star, w)
    rows = Rows(X if form == "dense" else sp.csr_array(X), solver, Threads(2))
    rows.begin(V, V_star, w2, w2, g, basis=True)
    tol = {"rtol": DTYPES[dtype], "atol": DTYPES[dtype]}
    rows.sum(V)
    np.testing.assert_allclose(rows.sums.P, X.T @ (w * V), **tol)
    new = rows.step_V(U, V, a, beta, residuals=True)
    np.testing.assert_allclose(new, expected, **tol)
    for found, whole in zip(rows.sums, sums, strict=True):
        np.testing.assert_allclose(found, whole, **tol)
    residuals = ((X - expected @ U.T) ** 2).sum(axis=1)
    np.testing.assert_allclose(rows.residuals, residuals, **tol)
    np.testing.assert_allclose(rows.all_residuals(U, new), residuals, **tol)
    assert rows.error(U) == pytest.approx(w2 @ residuals, rel=10 * DTYPES[dtype])
    gap = eq.consensus_gap(expected.astype(float), q.astype(float), V_star.astype(float))
    assert rows.gap(U, new) == pytest.approx(gap, rel=10 * DTYPES[dtype])
    assert rows.penalty == pytest.approx(g.value(expected), rel=10 * DTYPES[dtype])
    assert new is not V and rows.step_V(U, new, a, beta) is not new


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_the_compiled_loops_a_fit_is_the_same(solver, monkeypatch):
    views, _ = blobs()
    fast = WMNMF(3, solver=solver, random_state=0).fit(views)
    for module in ("rows", "distances"):
        monkeypatch.setattr(f"manyview.engines.numpy.{module}.compiled", lambda: None)
    plain = WMNMF(3, solver=solver, random_state=0).fit(views)
    np.testing.assert_allclose(fast.consensus_, plain.consensus_, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(fast.labels_, plain.labels_)
    robust = RobustWMNMF(3, random_state=0).fit(views)
    monkeypatch.undo()
    again = RobustWMNMF(3, random_state=0).fit(views)
    np.testing.assert_allclose(robust.consensus_, again.consensus_, atol=1e-8)


@pytest.mark.parametrize("make", [WMNMF, RobustWMNMF, lambda k, **p: WMNMF(k, solver="hals", **p)])
def test_the_number_of_threads_changes_no_bit(make, small_blocks):
    views, _ = blobs(n=200)
    one, three = (make(3, n_jobs=jobs, random_state=0).fit(views) for jobs in (1, 3))
    np.testing.assert_array_equal(one.consensus_, three.consensus_)
    np.testing.assert_array_equal(one.labels_, three.labels_)
    for a, b in zip(one.components_, three.components_, strict=True):
        np.testing.assert_array_equal(a, b)


def test_chunks_depend_on_the_rows_alone_and_cover_them():
    for n in (1, 4096, 4097, 200_000, 1_000_003):
        parts = list(chunks(n))
        assert parts[0].start == 0 and parts[-1].stop == n and len(parts) <= threads.CHUNKS
        assert all(a.stop == b.start for a, b in pairwise(parts))
    assert [b.stop for b in blocks(slice(3, 10), 4)] == [7, 10]
    assert available_threads(3) == 3 and available_threads(-1) >= 1


def test_unit_rows():
    X = problem()[0]
    total = X.sum(axis=1)
    scale = np.divide(1, total, out=np.zeros_like(total), where=total > 0)
    for Z in (X, sp.csr_array(X)):
        block = UnitRows(Z, scale).read(slice(1, 6))
        dense = block.toarray() if sp.issparse(block) else block
        np.testing.assert_allclose(dense.sum(axis=1), [1, 1, 0, 1, 1])
    assert sources.block_rows(InMemory(X), 3) == 2048
    assert sources.block_rows(InMemory(np.zeros((9, 200))), 10) == 125


def test_sums_of_float32_blocks_are_kept_in_float64():
    X, U, V, V_star, w2 = problem(dtype=np.float32)
    rows = Rows(X, SOLVERS["hals"]())
    rows.begin(V, V_star, w2, w2, NoPenalty(), basis=True)
    rows.sum(V)
    assert isinstance(rows.sums, Sums) and rows.sums.P.dtype == np.float64
    assert rows.step_V(U, V, 0.1, 0.0).dtype == np.float32
    assert rows.step_U(U, 0.1).dtype == np.float32


def test_kernels_call_no_kernel_that_is_not_written_out_in_place():
    """A call may reach another copy when kernels are compiled than when they come from the cache."""
    folder = Path(rows_module.__file__).parent
    source = "\n".join(path.read_text(encoding="utf-8") for path in folder.glob("*kernels.py"))
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    kind = {f.name: ast.unparse(f.decorator_list[0]) for f in functions if f.decorator_list}
    called = {
        node.func.id
        for f in functions
        for node in ast.walk(f)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in kind
    }
    assert called and {kind[name] for name in called} == {"inlined"}


@pytest.mark.parametrize("solver", SOLVERS)
def test_factors_of_another_precision_are_taken_in_that_of_the_rows(solver):
    """New rows may be in double precision where the model's factors are not."""
    X, U, V, V_star, w2 = problem()
    solver, found = SOLVERS[solver](), []
    for dtype in (np.float64, np.float32):
        rows = Rows(X, solver)
        rows.begin(V, V_star, w2, w2, NoPenalty(), basis=False)
        found.append(rows.step_V(U.astype(dtype), V.astype(dtype), 0.3, 0.0))
    assert found[1].dtype == np.float64
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_view_at_rest_keeps_no_room_and_goes_on_as_before(solver):
    X, U, V, V_star, w2 = problem()
    found = []
    for resting in (False, True):
        rows = Rows(X, SOLVERS[solver]())
        g, U_now, V_now = Graph(3).prepare(X), U, V
        for _ in range(2):
            rows.begin(V_now, V_star, w2, w2, g, basis=True)
            rows.sum(V_now)
            for _ in range(3):
                U_now = rows.step_U(U_now, 0.3)
                V_now = rows.step_V(U_now, V_now, 0.3, 0.2)
            if resting:
                rows.release()
                assert not rows._buffers
        found.append(V_now)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    "n, m, k", [(1, 7, 3), (64, 7, 1), (65, 1, 3), (130, 40, 5), (40, 2100, 3), (70, 30, 120)]
)
def test_the_compiled_pass_and_its_sums_are_those_of_numpy(n, m, k, solver, dtype):
    rng = np.random.default_rng(n)
    X, U, V, V_star = (
        rng.random(shape).astype(dtype) for shape in ((n, m), (m, k), (n, k), (n, k))
    )
    U /= U.sum(axis=0)
    w2 = rng.random(n) * (rng.random(n) > 0.2)
    w, solver = w2[:, None].astype(dtype), SOLVERS[solver]()
    rows = Rows(np.asfortranarray(X), solver)
    rows.begin(V, V_star, w2, w2, NoPenalty(), basis=True)
    out = rows.step_V(np.asfortranarray(U), np.asfortranarray(V), 0.3, 0.0)
    split = Split(0.0, 0.0, 0.0)
    expected = solver.update_V(V, X @ U, U.T @ U, U.sum(axis=0), V_star, w, 0.3, 0.0, split)
    tolerance = DTYPES[dtype]
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)
    for found, total in zip(rows.sums, eq.sums_over_rows(X, expected, V_star, w), strict=True):
        np.testing.assert_allclose(found, total, rtol=tolerance, atol=tolerance)
    expected_U = solver.update_U(U, Sums(*(part.astype(float) for part in rows.sums)), 0.3)
    np.testing.assert_allclose(rows.step_U(U, 0.3), expected_U, rtol=10 * tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_pass_leaves_out_coefficients_that_are_zero(dtype):
    """Of many components most are 0: the same step and the same sums."""
    n, k = 150, 110
    rng = np.random.default_rng(0)
    U = np.eye(k) + 0.1 * rng.random((k, k))
    U /= U.sum(axis=0)
    V_star = np.eye(k)[rng.integers(k, size=n)]
    X = V_star @ U.T - 1e-3 * rng.random((n, k))  # nothing pulls the others up
    X, U, V_star = (part.astype(dtype) for part in (X, U, V_star))
    w2, solver, scale = rng.random(n), SOLVERS["hals"](), (0.5 + 0.5 * rng.random(n)).astype(dtype)
    rows = Rows(UnitRows(X, scale), solver)
    rows.begin(V_star, V_star, np.full(n, 50.0), w2, NoPenalty(), basis=True)
    out = rows.step_V(U, V_star, 1.0, 0.0)
    assert np.count_nonzero(out) < out.size / 8
    x, split, ones = X * scale[:, None], Split(0.0, 0.0, 0.0), np.full((n, 1), 50.0, dtype=dtype)
    expected = solver.update_V(V_star, x @ U, U.T @ U, U.sum(axis=0), V_star, ones, 1.0, 0.0, split)
    tolerance = 10 * DTYPES[dtype]
    np.testing.assert_allclose(out, expected, rtol=tolerance, atol=tolerance)
    for found, total in zip(
        rows.sums, eq.sums_over_rows(x, expected, V_star, w2[:, None].astype(dtype)), strict=True
    ):
        np.testing.assert_allclose(found, total, rtol=tolerance, atol=tolerance)


def test_kernels_run_without_a_compiler():
    code = """
import numpy as np
from manyview import WMNMF
X = np.random.default_rng(0).random((12, 4))
print(WMNMF(2, random_state=0, max_iter=1, inner_iter=2, n_neighbors=2).fit([X, X + 1]).labels_)
"""
    environment = os.environ | {
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": str(Path(manyview.__file__).parents[1]),
    }
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
