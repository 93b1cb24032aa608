"""Rows of docs/paper_map.md that no other test holds: starts, kernel, tolerance."""

import numpy as np
import pytest

import manyview as mv
from conftest import blobs
from manyview import wmnmf
from manyview.engines.affinity import affinity
from manyview.initialize import gnmf, starting_factors
from manyview.maths.solvers import Multiplicative, SimplexHALS
from manyview.regularizers import Graph


@pytest.mark.parametrize("weight", [0.0, 10.0, 50.0])
def test_lambda_of_the_start_is_the_weight_of_its_graph(weight):
    views, _ = blobs(n=60)
    X = views[0] / views[0].sum() * len(views[0])
    term = Graph().prepare(X)
    start = starting_factors(
        [X], "gnmf", 3, [term], Multiplicative(), 5, np.random.default_rng(0), gnmf_weight=weight
    )
    rng = np.random.default_rng(0)
    U, V = 1 - rng.random((X.shape[1], 3)), (1 - rng.random((60, 3))) * X.sum()
    U, V = gnmf(X, U, V, term, weight, n_iter=31)
    np.testing.assert_array_equal(start.U[0], U)
    np.testing.assert_array_equal(start.V[0], V)


def test_the_weight_of_the_start_is_a_parameter_of_the_model():
    views, _ = blobs(n=60)
    plain = mv.WMNMF(3, random_state=0).fit(views)
    same = mv.WMNMF(3, gnmf_weight=10.0, random_state=0).fit(views)
    other = mv.WMNMF(3, gnmf_weight=0.0, random_state=0).fit(views)
    assert np.array_equal(plain.consensus_, same.consensus_)
    assert not np.allclose(plain.consensus_, other.consensus_)
    with pytest.raises(ValueError, match="gnmf_weight"):
        mv.WMNMF(3, gnmf_weight=-1).fit(views)


def test_nmf_w2_starts_with_the_graph_it_does_not_keep(monkeypatch):
    views, _ = blobs(n=60)
    starts = []
    make = wmnmf.starting_factors
    monkeypatch.setattr(
        wmnmf,
        "starting_factors",
        lambda *args, **more: starts.append(make(*args, **more)) or starts[-1],
    )
    for model in (mv.WMNMF, mv.WMNMF.nmf_w1, mv.WMNMF.nmf_w2):
        model(3, random_state=0).fit(views)
    for other in starts[1:]:
        for U, V, mine, own in zip(starts[0].U, starts[0].V, other.U, other.V, strict=True):
            np.testing.assert_array_equal(U, mine)
            np.testing.assert_array_equal(V, own)


def test_the_papers_heat_kernel_is_binary_at_its_scale():
    for X in mv.datasets.load_handwritten(views="paper").views.values():
        X = X[::10]
        n = len(X)
        ours, papers = n * X / X.sum(), X / X.sum()
        binary = affinity(ours, 5, "binary")
        heat = affinity(ours, 5, "heat", float(n) ** 2)
        assert abs(heat - binary).max() <= 1e-4 / n
        assert abs(heat - affinity(papers, 5, "heat", 1.0)).max() <= 1e-12
    model = mv.WMNMF(10, regularizer=Graph(affinity="heat", width=float(n) ** 2), random_state=0)
    views = [X[::10] for X in mv.datasets.load_handwritten(views="paper").views.values()]
    plain = mv.WMNMF(10, random_state=0)
    np.testing.assert_allclose(
        model.fit(views).consensus_, plain.fit(views).consensus_, rtol=1e-4, atol=1e-8
    )


@pytest.mark.parametrize("solver", ["multiplicative", "hals"])
def test_the_inner_tolerance_ends_a_views_iterations(solver):
    views, _ = blobs(n=60)
    tol, inner = 1e-3, 40
    model = mv.WMNMF(3, solver=solver, inner_iter=inner, inner_tol=tol, random_state=0).fit(views)
    history = model.history_
    short = 0
    for round_ in (1, 2):
        for s in range(3):
            here = (history["round"] == round_) & (history["view"] == s)
            last = np.flatnonzero(here)
            before = np.r_[history["objective"][last[0] - 1], history["objective"][last]]
            change = np.abs(np.diff(before)) / before[:-1]
            assert (change[:-1] > tol).all() and (len(last) == inner or change[-1] <= tol)
            short += len(last) < inner
    assert short  # else nothing was tested
    # Where a view stopped early, w is that of its last factors.
    errors = [
        ((X / X.sum() * 60 - V @ U) ** 2).sum(axis=1)
        for X, V, U in zip(views, model.coefficients_, model.components_, strict=True)
    ]
    w = 1 / np.stack(errors, axis=1)
    np.testing.assert_allclose(model.sample_weights_, w / w.sum(axis=1, keepdims=True), rtol=1e-6)


def test_the_papers_absolute_tolerance_is_as_large_as_its_objective():
    views = {n: X[::10] for n, X in mv.datasets.load_handwritten(views="paper").views.items()}
    model = mv.WMNMF(10, random_state=0).fit(views)
    # Entries that sum to 1, not to N: O is smaller by N squared.
    assert model.objective_ / 200**2 < 100 * 9e-8
    whole = mv.WMNMF(10, random_state=0).fit(mv.datasets.load_handwritten(views="paper").views)
    assert whole.objective_ / 2000**2 < 9e-8


def test_the_papers_scale_changes_the_units_of_the_objective_and_nothing_else():
    views, _ = blobs(n=60)
    rows, whole = (mv.WMNMF(3, scale=s, random_state=0).fit(views) for s in ("sum", "total"))
    np.testing.assert_allclose(whole.view_weights_, rows.view_weights_)
    np.testing.assert_allclose(whole.consensus_ * 60, rows.consensus_)
    np.testing.assert_allclose(whole.history_["objective"] * 60**2, rows.history_["objective"])
    assert np.array_equal(whole.labels_, rows.labels_)
    with pytest.raises(ValueError, match="'total' for all views or for none"):
        mv.WMNMF(3, scale={"view1": "total"}).fit(views)


def test_the_start_of_w_and_of_the_consensus_can_be_chosen():
    views, _ = blobs(n=60)
    start = {"max_iter": 1, "inner_iter": 1, "learn_sample_weights": False, "random_state": 0}
    for name, share in (("views", 1 / 3), ("samples", 1 / 60)):
        w = mv.WMNMF(3, init_sample_weights=name, **start).fit(views).sample_weights_
        np.testing.assert_allclose(w, share)
    # U of unit column sums has Q = I; the GNMF start has not.
    fitted = mv.WMNMF(3, random_state=0).fit(views)
    init = {"components": fitted.components_, "coefficients": fitted.coefficients_}
    for given, same in ((init, True), ("gnmf", False)):
        first = [
            mv.WMNMF(3, init=given, init_consensus=name, random_state=0).fit(views).history_
            for name in ("mean", "scaled")
        ]
        assert np.isclose(*(h["consensus"][0] for h in first), rtol=1e-6) == same


@pytest.mark.parametrize("name", ["components", "coefficients"])
def test_zeros_of_a_given_start_stay_zero_and_are_told(name):
    views, _ = blobs(n=60)
    fitted = mv.WMNMF(3, random_state=0).fit(views)
    init = {
        "components": [U.copy() for U in fitted.components_],
        "coefficients": [V.copy() for V in fitted.coefficients_],
    }
    mv.WMNMF(3, init=init, random_state=0).fit(views)  # nothing to tell
    init[name][1][:, 0] = 0
    with pytest.warns(
        UserWarning, match=rf"init\['{name}'\]\[1\] has .* entries that are 0"
    ) as told:
        model = mv.WMNMF(3, init=init, random_state=0).fit(views)
    assert len(told) == 1
    assert not getattr(model, f"{name}_")[1][:, 0].any()
    hals = mv.WMNMF(3, init=init, solver="hals", random_state=0).fit(views)
    assert getattr(hals, f"{name}_")[1][:, 0].any()
    assert isinstance(hals._solver, SimplexHALS)
