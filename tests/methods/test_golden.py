"""The original programs' numbers, reproduced."""

import numpy as np
import pytest
import scipy.sparse as sp

from golden_files import load, tiny
from manyview._types import Split
from manyview.engines.affinity import affinity, automatic_width
from manyview.initialize import gnmf, starting_factors
from manyview.maths import equations as eq
from manyview.maths.solvers import Multiplicative
from manyview.regularizers import GraphTerm, NoPenalty
from manyview.wmnmf import Loop

VIEWS = (1, 2, 3)


def close(ours, theirs, tol=1e-10):
    np.testing.assert_allclose(ours, theirs, rtol=tol, atol=tol * np.abs(theirs).max())


@pytest.mark.parametrize("s", VIEWS)
@pytest.mark.parametrize("which", ["norm", "raw"])
def test_graphs(s, which):
    views, raw, *_ = tiny()
    X = (views if which == "norm" else raw)[s - 1]
    golden = load("graph")
    close(np.sqrt(automatic_width(X) / 2), golden[f"t_default_{which}_{s}"])
    for theirs, ours in (("Binary", "binary"), ("HeatKernel", "heat"), ("Cosine", "cosine")):
        close(affinity(X, 5, ours).toarray(), golden[f"W_{theirs}_{which}_{s}"])


@pytest.mark.parametrize("s", VIEWS)
def test_heat_kernel_of_fixed_width(s):
    _, raw, *_ = tiny()
    ours = affinity(raw[s - 1], 5, "heat", width=2.0).toarray()
    close(ours, load("graph")[f"W_HeatKernel_t1_raw_{s}"])


@pytest.mark.parametrize("s", VIEWS)
@pytest.mark.parametrize("n", [1, 5, 30])
def test_inner_iterations_of_one_view(s, n):
    """U and V after n iterations, and the objective after each."""
    views, _, U, V, z = tiny()
    golden = load("perview")
    X, U, V, w = views[s - 1], U[s - 1], V[s - 1], z["w"][:, s - 1]
    a, beta, g = z["alphas"][s - 1] ** 5, 0.01, GraphTerm(sp.csr_array(golden[f"W_{s}"]))
    w2, solver = w[:, None] ** 2, Multiplicative()
    x_sq = (X**2).sum(axis=1)

    def objective():
        r = eq.squared_residuals(x_sq, X @ U, V, U.T @ U)
        gap = eq.consensus_gap(V, U.sum(axis=0), z["Vstar"])
        return eq.reconstruction(r, w) + a * gap + beta * g.value(V)

    seen = [objective()]
    for _ in range(n):
        U = solver.update_U(U, eq.sums_over_rows(X, V, z["Vstar"], w2), a)
        H, q, split = U.T @ U, U.sum(axis=0), Split(*g.split(V), 0.0)
        V = solver.update_V(V, X @ U, H, q, z["Vstar"], w2, a, beta, split)
        seen.append(objective())
    close(seen, golden[f"obj_it{n}_{s}"], 1e-9)
    U, V = eq.rescale(U, V)
    close(U, golden[f"U_it{n}_{s}"], 1e-9)
    close(V, golden[f"V_it{n}_{s}"], 1e-9)


@pytest.mark.parametrize("s", VIEWS)
@pytest.mark.parametrize("weight", [0, 1, 10])
@pytest.mark.parametrize("n", [1, 20])
def test_gnmf(s, weight, n):
    views, _, U, V, _ = tiny()
    golden, graphs = load("gnmf"), load("perview")
    g = GraphTerm(sp.csr_array(graphs[f"W_{s}"]))
    ours_U, ours_V = gnmf(views[s - 1], U[s - 1], V[s - 1], g, weight, n)
    close(ours_U, golden[f"U_it{n}_a{weight}_{s}"], 1e-9)
    close(ours_V, golden[f"V_it{n}_a{weight}_{s}"], 1e-9)


@pytest.mark.parametrize("s", VIEWS)
def test_gnmf_after_the_iterations_of_the_program(s):
    views, _, U, V, _ = tiny()
    golden, graphs = load("gnmf"), load("perview")
    g = GraphTerm(sp.csr_array(graphs[f"W_{s}"]))
    n_iter = int(golden[f"nIter_conv_a1_{s}"])
    ours_U, ours_V = gnmf(views[s - 1], U[s - 1], V[s - 1], g, 1, n_iter)
    close(ours_U, golden[f"U_conv_a1_{s}"], 1e-8)
    close(ours_V, golden[f"V_conv_a1_{s}"], 1e-8)


@pytest.mark.parametrize("scaled", [0, 1])
def test_first_round_of_the_whole_method(scaled):
    """U, V, α and V* after one round of 30 inner iterations (w enters only in the second)."""
    views, *_ = tiny()
    golden = load("gmulti")
    init = {
        "components": [golden[f"U0_{s}"].T for s in VIEWS],
        "coefficients": [golden[f"V0_sc{scaled}_{s}"] for s in VIEWS],
    }
    terms = [GraphTerm(sp.csr_array(golden[f"W_{s}"])) for s in VIEWS]
    solver = Multiplicative()
    rng = np.random.default_rng(0)
    start = starting_factors(views, init, 3, [NoPenalty()] * 3, solver, 5, rng)
    factors = Loop(views, terms, solver, 5, 0.01, 1, 30).run(start).factors
    close(factors.alpha, golden[f"alphas_sc{scaled}_r1"], 1e-9)
    close(factors.consensus, golden[f"Vstar_sc{scaled}_r1"], 1e-9)
    for s in VIEWS:
        close(factors.U[s - 1], golden[f"U_sc{scaled}_r1_{s}"], 1e-9)
        close(factors.V[s - 1], golden[f"V_sc{scaled}_r1_{s}"], 1e-9)


def test_sum_of_inverse_residuals():
    views, _, U, V, _ = tiny()
    r = np.column_stack(
        [
            eq.squared_residuals((X**2).sum(axis=1), X @ u, v, u.T @ u)
            for X, u, v in zip(views, U, V, strict=True)
        ]
    )
    total = (1 / r).sum(axis=1)
    close(total, load("whelp")["wt_sum"].ravel())
    close(eq.weights_of_residuals(r), 1 / r / total[:, None])
