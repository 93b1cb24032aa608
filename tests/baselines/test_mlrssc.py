"""MLRSSC: the original program's numbers, and what must hold for any data."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from conftest import blobs
from golden_files import load, tiny
from manyview import metrics
from manyview.baselines import MLRSSC, CostWarning, admm, mlrssc

KINDS = {"pair": "pairwise", "cent": "centroid"}
VARIABLES = ("A", "C1", "C2", "C3", "L1", "L2", "L3", "L4")
EXACT = {"mu": 10, "low_rank": 0.4, "consensus": 0.7, "thr": 1e-3}


def close(ours, theirs, tol=1e-8):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tol * max(1e-12, np.abs(theirs).max()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noisy", [0, 1])
def test_one_step(kind, noisy):
    golden = load("mlrssc")
    _, raw, *_ = tiny()
    start = {name: golden[f"step_in_{name}"] for name in VARIABLES[1:]}
    state = admm.AdmmState(A=np.zeros_like(start["C1"]), **start | ({"L1": None} if noisy else {}))
    weights = admm.Penalties(*golden["step_in_lambda"])
    count, X = (2 if kind == "pair" else 1), (None if noisy else raw[0])
    new = admm.step(golden["step_in_K"], X, state, golden["step_in_Csum"], count, 10.0, weights)
    for name in VARIABLES:
        if not (noisy and name == "L1"):
            close(getattr(new, name), golden[f"step_{kind}_noisy{noisy}_{name}"])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noisy", [0, 1])
@pytest.mark.parametrize("n_iter", [1, 2, 3, 300])
def test_affinity_of_linear_variants(kind, noisy, n_iter):
    _, raw, *_ = tiny()
    golden = load("mlrssc")
    most = None if n_iter == 300 else n_iter
    given = {"kind": KINDS[kind], "accumulate": kind == "cent", **EXACT}
    model = MLRSSC(3, noisy=bool(noisy), max_iter=most, random_state=0, **given).fit(raw)
    assert model.n_iter_ == golden[f"iters_{kind}_noisy{noisy}_it{n_iter}"]
    assert model.converged_ == (n_iter == 300)
    tol = 1e-6 if n_iter == 300 and not noisy else 1e-8
    close(model.affinity_matrix_, golden[f"Af_{kind}_noisy{noisy}_it{n_iter}"], tol)


@pytest.mark.parametrize("kind", KINDS)
def test_affinity_of_kernel_variants(kind):
    _, raw, *_ = tiny()
    golden = load("mlrssc")
    for s, X in enumerate(raw, start=1):
        close(mlrssc._kernel(X, "rbf", 1.0), golden[f"Kgauss_{s}"])
    given = {"mu": 1e3, "low_rank": 0.7, "consensus": 0.7, "thr": 1e-5, "random_state": 0}
    given |= {"kind": KINDS[kind], "accumulate": kind == "cent"}
    model = MLRSSC(3, kernel="rbf", **given).fit(raw)
    assert model.n_iter_ == golden[f"iters_{kind}_gauss"]
    close(model.affinity_matrix_, golden[f"Af_{kind}_gauss"])


def test_accumulating_the_centroid_changes_its_size_but_no_label_here():
    views, y = blobs()
    params = {"kind": "centroid", "kernel": "rbf", "consensus": 0.7, "random_state": 0}
    plain = MLRSSC(3, **params).fit(views)
    grown = MLRSSC(3, **params, accumulate=True).fit(views)
    assert grown.affinity_matrix_.sum() > 1.1 * plain.affinity_matrix_.sum()
    assert metrics.accuracy(plain.labels_, grown.labels_) == 1
    assert metrics.accuracy(y, plain.labels_) > 0.95
    alone = MLRSSC(3, kernel="rbf", random_state=0).fit(views[:1])  # nobody to agree with
    assert metrics.accuracy(y, alone.labels_) > 0.9


@pytest.mark.parametrize("kind", KINDS.values())
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_affinity_is_symmetric_nonnegative_and_follows_the_observations(kind, kernel, rng):
    views, _ = blobs(n=40)
    params = {"kind": kind, "kernel": kernel, "noisy": True, "random_state": 0}
    A = MLRSSC(3, **params).fit(views).affinity_matrix_
    assert isinstance(A, np.ndarray) and A.dtype == np.float64
    assert (A >= 0).all() and (np.diag(A) == 0).all()
    np.testing.assert_array_equal(A, A.T)
    order = rng.permutation(40)
    B = MLRSSC(3, **params).fit([X[order] for X in views]).affinity_matrix_
    close(B, A[np.ix_(order, order)])
    C = MLRSSC(3, **params).fit(views[::-1]).affinity_matrix_
    close(C, A)


def test_singular_values_and_entries_are_thresholded(rng):
    M = rng.standard_normal((7, 7))
    values = np.linalg.svd(M, compute_uv=False)
    shrunk = np.linalg.svd(admm.soft_singular(M, 1.0), compute_uv=False)
    np.testing.assert_allclose(shrunk, np.maximum(values - 1, 0), atol=1e-12)
    np.testing.assert_allclose(admm.soft(np.array([-3.0, 0.5, 2.0]), 1.0), [-2, 0, 1])


@pytest.mark.parametrize("lowest", [1.0, 1e-3, 1e-6, 0.0])
@pytest.mark.parametrize("t", [0.0, 1e-6, 1e-3, 0.1, 5.0])
def test_thresholding_is_as_precise_as_an_svd_whichever_way_it_goes(t, lowest, rng):
    left, right = (np.linalg.qr(rng.standard_normal((60, 60)))[0] for _ in range(2))
    values = np.linspace(2, lowest, 60) ** 2
    expected = (left * np.maximum(values - t, 0)) @ right
    M = (left * values) @ right
    for loss in (admm.LOSS, 1e-9):  # as usual, and never short
        np.testing.assert_allclose(admm.soft_singular(M, t, loss), expected, atol=2e-13)


def test_the_short_way_to_threshold_is_left_where_it_is_not_precise(rng):
    """Small singular values near a small threshold: eigenvalues of the Gram matrix miss them."""
    left, right = (np.linalg.qr(rng.standard_normal((60, 60)))[0] for _ in range(2))
    values = np.geomspace(1, 1e-7, 60)
    M, t = (left * values) @ right, 1e-6
    expected = (left * np.maximum(values - t, 0)) @ right
    assert np.abs(admm.soft_singular(M, t) - expected).max() < 1e-14
    assert np.abs(admm.soft_singular(M, t, loss=np.inf) - expected).max() > 1e-13


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("noisy", [True, False])
def test_sparse_and_float32_input(noisy):
    views, _ = blobs(n=30)
    views = [np.where(X > 1, np.round(X, 1), 0).astype(np.float32) for X in views]
    params = {"noisy": noisy, "max_iter": 5, "random_state": 0}
    dense = MLRSSC(3, **params).fit(views)
    sparse = MLRSSC(3, **params).fit([sp.csr_matrix(X) for X in views])
    assert dense.affinity_matrix_.dtype == np.float64
    close(sparse.affinity_matrix_, dense.affinity_matrix_)


def test_relabel_repeats_only_k_means():
    views, _ = blobs()
    model = MLRSSC(3, kernel="rbf", random_state=5).fit(views)
    first = model.labels_.copy()
    affinity = model.affinity_matrix_
    again = model.relabel(5)
    np.testing.assert_array_equal(first, again)
    assert again is model.labels_ and model.affinity_matrix_ is affinity


def test_history_and_the_two_endings():
    views, _ = blobs(n=30)
    with pytest.warns(ConvergenceWarning, match="stopped after 2 iterations"):
        model = MLRSSC(3, max_iter=2, random_state=0).fit(views)
    assert not model.converged_
    np.testing.assert_allclose(model.history_["mu"], [100, 150])
    model = MLRSSC(3, random_state=0).fit(views)
    assert model.converged_
    assert max(model.history_[name][-1] for name in admm.RESIDUALS) <= model.thr
    assert {len(column) for column in model.history_.values()} == {model.n_iter_}


def test_kernel_width_by_number_list_or_name():
    views, _ = blobs(n=30)
    named = dict(zip("abc", views, strict=True))
    one = MLRSSC(3, kernel="rbf", kernel_width=[1.0, 2.0, 2.0], random_state=0).fit(named)
    factors = {"a": 1.0, "b": 2.0, "c": 2.0, "unused": 1.0}
    two = MLRSSC(3, kernel="rbf", kernel_width=factors, random_state=0).fit(named)
    np.testing.assert_array_equal(one.affinity_matrix_, two.affinity_matrix_)
    for width, sentence in (
        ([1, 2], "2 factors for 3 views"),
        ({"a": 1}, r"not the views \['b', 'c'\]"),
        ({"a": 1, "b": -2.0, "c": 1}, "kernel_width of view 'b' is -2.0; .* above 0"),
        ([1, "x", 1], "kernel_width of view 'b' is 'x'; .* above 0"),
    ):
        with pytest.raises(ValueError, match=sentence):
            MLRSSC(3, kernel="rbf", kernel_width=width).fit(named)


def test_an_empty_affinity_is_said():
    views, _ = blobs(n=30)
    with pytest.warns(UserWarning, match="affinity is 0 everywhere"):
        model = MLRSSC(3, kernel="rbf", mu=1e5, random_state=0).fit(views)
    assert not model.affinity_matrix_.any()


def test_a_large_fit_says_its_cost_first(monkeypatch, capsys):
    monkeypatch.setattr(mlrssc, "LARGE", 30)
    views, _ = blobs(n=30)
    with pytest.warns(CostWarning, match=r"30 samples in 3 views .* GB .* s per iteration"):
        MLRSSC(3, random_state=0).fit(views)
    MLRSSC(3, random_state=0, verbose=1).fit(views)
    printed = capsys.readouterr().out
    assert "GB of memory" in printed and "iteration 1: mu 100" in printed


def test_cost_grows_with_the_cube_of_n():
    model = MLRSSC(10, kernel="rbf", mu=1e4, low_rank=0.7, thr=1e-5)
    small, large = model.estimate_cost(1000, 2), model.estimate_cost(2000, 4)
    assert large["seconds_per_iteration"] == pytest.approx(16 * small["seconds_per_iteration"])
    assert 0.5e9 < large["bytes"] < 3e9
    assert large["iterations"] == 7 and large["max_iter"] == 300
    assert large["seconds"] <= large["seconds_at_most"]


# With mu_max = 200, thresholds l/mu stay above thr.
@pytest.mark.parametrize(
    "params", [{"thr": 0}, {"rho": 1.0}, {"mu_max": 200}, {"noisy": False, "kernel": None}]
)
def test_a_fit_that_will_not_stop_early_is_estimated_in_full(params):
    views, _ = blobs(n=30)
    model = MLRSSC(3, **{"kernel": "rbf", "max_iter": 12, "thr": 1e-5, "random_state": 0, **params})
    assert model.estimate_cost(30, 3)["iterations"] == 12
    with pytest.warns(ConvergenceWarning):
        assert model.fit(views).n_iter_ == 12


@pytest.mark.filterwarnings("ignore:in MLRSSC no sample")
def test_the_iterations_estimated_are_about_those_done():
    views, _ = blobs(n=30)
    for params in ({}, {"mu": 1e5}, {"mu": 1e9, "rho": 1.0}, {"thr": 1e-4, "rho": 2.0}):
        model = MLRSSC(3, kernel="rbf", random_state=0, **params)
        assert abs(model.estimate_cost(30, 3)["iterations"] - model.fit(views).n_iter_) <= 3, params


def test_bad_parameters_are_answered_by_a_sentence():
    views, _ = blobs(n=30)
    for params, sentence in (
        ({"kind": "bad"}, "kind"),
        ({"rho": 0.5}, "rho"),
        ({"kernel": "rbf", "noisy": False}, "use noisy=True"),
        ({"kind": "centroid", "consensus": 0, "accumulate": True}, "use consensus above 0"),
    ):
        for call in (lambda m: m.fit(views), lambda m: m.estimate_cost(30, 3)):
            with pytest.raises(ValueError, match=sentence):
                call(MLRSSC(3, **params))
