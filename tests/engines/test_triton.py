"""The fused pass against float64 NumPy, on fresh random problems of awkward shapes."""

import numpy as np
import pytest
import scipy.sparse as sp

from manyview._types import Split
from manyview.maths import equations as eq
from manyview.maths.solvers import SOLVERS

torch = pytest.importorskip("torch", reason="the fused pass needs PyTorch")
if not torch.cuda.is_available():
    pytest.skip("the fused pass needs a CUDA card", allow_module_level=True)
pytest.importorskip("triton.experimental.gluon", reason="the fused pass needs Triton with Gluon")

from manyview.engines.torch import triton_pass  # noqa: E402
from manyview.engines.torch.triton_pass import fused_pass, graph_product, plan, worthwhile  # noqa: E402

SHAPES = [(1, 1, 1), (257, 1, 5003), (7, 2, 31), (1500, 2, 1000), (100, 5, 5003), (1000, 5, 31)]
SHAPES += [(1000, 20, 5003), (257, 20, 1000), (1, 20, 31), (1500, 20, 1000), (100, 33, 1000)]
SHAPES += [
    (1000, 20, 12007),
    (257, 33, 5003),
    (7, 64, 1),
    (257, 64, 1000),
    (1000, 64, 31),
    (1000, 20, 0),
    (100, 5, 0),
]
# Where the cut changes with the number of components.
SHAPES += [(200, k, 1001) for k in (16, 17, 24, 25, 32, 48, 49)]
#: Shared memory of a Hopper card, bytes per block.
HOPPER = 232448
#: Of the new V (the steps of HALS are differences, which cost digits), and of the sums of that V.
TOLERANCE = {"multiplicative": {"tf32": 3e-3, None: 1e-6}, "hals": {"tf32": 3e-2, None: 3e-5}}
SUMS = {"tf32": 3e-3, None: 1e-6}


def problem(m, k, n, seed=None):
    """Fresh inputs: rows of weight 0, an empty row, a component that is nowhere used."""
    rng = np.random.default_rng(seed)
    X, U, V, star = (rng.random(s, dtype=np.float32) for s in ((n, m), (m, k), (n, k), (n, k)))
    fit, weight, degrees = (rng.random(n, dtype=np.float32) for _ in range(3))
    negative = rng.random((n, k), dtype=np.float32)
    U /= U.sum(axis=0)
    X[n // 3 : n // 3 + 1] = 0
    fit[n // 2 :: 7] = weight[n // 2 :: 7] = 0
    if k > 1:
        V[:, 1] = 0
    H, q = U.T @ U, U.sum(axis=0)
    return [X, U, V, H, q, star, fit, weight, 0.3, 0.2, negative, degrees[:, None]]


def on_card(args):
    return [torch.tensor(x, device="cuda") if isinstance(x, np.ndarray) else x for x in args]


def far(found, expected):
    found = found.cpu().numpy().astype(float)
    assert found.shape == expected.shape
    return np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-300)


@pytest.mark.parametrize("precision", ["ieee", "tf32x3", "tf32"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("m", "k", "n"), SHAPES, ids=[f"M{m}xK{k}xN{n}" for m, k, n in SHAPES])
def test_the_fused_pass_is_the_step_and_its_sums(m, k, n, solver, precision):
    args = problem(m, k, n)
    X, U, V, H, q, star, fit, weight, a, beta, negative, degrees = (
        np.asarray(x, dtype=float) for x in args
    )
    split = Split(negative, degrees * V, 2 * degrees)
    given = (H, q, star, fit[:, None], float(a), float(beta), split)
    expected = SOLVERS[solver]().update_V(V, X @ U, *given)
    out = torch.full((n, k), torch.nan, device="cuda")
    card = on_card(args)
    how = {"times_V": True, "solver": solver, "precision": precision}
    new, sums = fused_pass(*card, 2 * card[-1], **how, out=out)
    assert new is out
    digits = "tf32" if precision == "tf32" else None
    assert far(new, expected) <= TOLERANCE[solver][digits]
    sums_of_new = eq.sums_over_rows(X, new.cpu().numpy().astype(float), star, weight[:, None])
    for found, right in zip(sums, sums_of_new, strict=True):
        assert far(found, right) <= SUMS[digits]


@pytest.mark.parametrize("solver", SOLVERS)
def test_two_runs_give_the_same_bits(solver):
    card = on_card(problem(300, 20, 4001))
    first, again = (fused_pass(*card, 0.5, times_V=True, solver=solver) for _ in range(2))
    assert torch.equal(first[0], again[0])
    assert all(torch.equal(x, y) for x, y in zip(first[1], again[1], strict=True))


def test_numbers_and_columns_stand_for_whole_regularisers():
    card = on_card(problem(100, 20, 999))
    whole = fused_pass(*card[:-2], torch.zeros_like(card[2]), torch.full_like(card[2], 0.5))
    short = fused_pass(*card[:-2], 0.0, 0.5)
    assert torch.equal(whole[0], short[0])


def test_a_step_that_vanishes_leaves_the_row():
    args = problem(300, 20, 50)
    args[1][:] = args[3][:] = args[4][:] = args[10][:] = 0
    args[11][:] = 0
    card = on_card(args)
    new, _ = fused_pass(*card, times_V=True)
    assert torch.equal(new, card[2])


def test_unaligned_rows_are_read_right():
    args = problem(101, 5, 203)
    card = on_card(args)
    room = torch.empty(203 * 101 + 1, device="cuda")
    room[1:] = card[0].ravel()
    shifted = room[1:].view(203, 101)
    plain, moved = fused_pass(*card), fused_pass(shifted, *card[1:])
    assert torch.equal(plain[0], moved[0])
    assert torch.equal(plain[1].P, moved[1].P)


@pytest.mark.parametrize("k", [1, 5, 20, 64])
@pytest.mark.parametrize("n", [0, 1, 1000])
def test_the_graph_product_is_that_of_scipy(n, k):
    rng = np.random.default_rng()
    A = sp.random_array((n, n), density=min(1, 8 / max(n, 1)), format="csr", dtype=np.float32)
    degrees, V = A.sum(axis=1), rng.random((n, k), dtype=np.float32)
    csr = (A.indptr.astype(np.int32), A.indices.astype(np.int32), A.data, degrees, V)
    out = torch.full((n, k), torch.nan, device="cuda")
    value = graph_product(*on_card(csr), out)
    V = V.astype(float)
    expected = A.astype(float) @ V
    assert far(out, expected) < 1e-6
    right = np.vdot(V, degrees[:, None] * V - expected)
    assert float(value) == pytest.approx(right, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize(("m", "k"), [(1536, 16), (1024, 32), (512, 64), (1000, 20), (7, 1)])
def test_there_is_a_plan_for_what_the_documentation_promises(m, k):
    assert plan(m, k, HOPPER) is not None
    card = torch.cuda.get_device_properties(0)
    if card.major == 9:
        assert worthwhile(10**8, m, k, torch.float32, torch.device("cuda"))


def test_plans_fit_the_chip_and_the_choice_follows_them():
    card = torch.cuda.get_device_properties(0)
    for m in (1, 100, 1000, 5000):
        for k in (1, 20, 64):
            cut = plan(m, k, card.shared_memory_per_block_optin)
            if cut is not None:
                assert m <= cut.Q * cut.C * triton_pass.WARPS
                assert k <= cut.KA + cut.KB
    device = torch.device("cuda", 0)
    assert not worthwhile(10**6, 5000, 20, torch.float32, device)
    assert not worthwhile(10**6, 100, 20, torch.float64, device)
    assert not worthwhile(10**6, 100, 20, torch.float32, torch.device("cpu"))


def test_an_unknown_precision_is_named():
    with pytest.raises(ValueError, match="tf32x3"):
        fused_pass(*on_card(problem(7, 2, 31)), precision="half")
