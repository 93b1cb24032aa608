"""Solvers and regularisers of others: their own rule runs everywhere, and what is wrong is said."""

import dataclasses

import numpy as np
import pytest

from conftest import blobs
from manyview import WMNMF
from manyview.engines.numpy.compiled import compiled_forms
from manyview.maths.solvers import SOLVERS, own_name
from manyview.regularizers import Graph, Orthogonal, Sparse
from manyview.solvers import Multiplicative, SimplexHALS, Solver
from manyview.testing import check_regularizer, check_solver


class Halfway(Solver):
    """Half of the multiplicative step: the objective is no higher there, and nothing else is the same."""

    takes_tensors = True
    calls = 0

    def update_U(self, U, sums, a):
        return (U + Multiplicative().update_U(U, sums, a)) / 2

    def update_V(self, V, *given):
        type(self).calls += 1
        return (V + Multiplicative().update_V(V, *given)) / 2


class Ridge:
    def prepare(self, X):
        return self

    def value(self, V):
        return float((V * V).sum())

    def split(self, V):
        return 0.0, V

    def curvature(self, V):
        return 1.0


class NoCurvature(Ridge):
    curvature = None


@pytest.mark.parametrize("solver", [Multiplicative(), SimplexHALS(), SimplexHALS(4), Halfway()])
def test_solvers_pass_their_check(solver):
    check_solver(solver)
    check_solver(solver, regularizers=[Ridge()], random_state=3)


@pytest.mark.parametrize(
    "regularizer", [Graph(3), Graph(3, "heat"), Sparse(), Orthogonal(), Ridge()]
)
def test_regularizers_pass_their_check(regularizer):
    check_regularizer(regularizer)


def test_only_the_very_rules_of_the_library_have_compiled_forms():
    class Same(SimplexHALS):
        pass

    assert [own_name(kind()) for kind in SOLVERS.values()] == list(SOLVERS)
    for other in (Same(), SimplexHALS(sweeps=3), Halfway()):
        assert own_name(other) is None and compiled_forms(other) is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        SimplexHALS().sweeps = 3


@pytest.mark.parametrize("engine", ["numpy", "torch"])
def test_a_solver_of_others_is_run_itself(engine):
    if engine == "torch":
        pytest.importorskip("torch")
    views, _ = blobs()
    before = Halfway.calls
    fits = {
        solver: WMNMF(3, solver=solver, engine=engine, device="cpu", random_state=0).fit(views)
        for solver in (Halfway(), Multiplicative(), "multiplicative", "hals", SimplexHALS(2))
    }
    assert Halfway.calls - before >= 3 * 60
    halfway, own, named, *hals = fits.values()
    np.testing.assert_array_equal(own.consensus_, named.consensus_)
    np.testing.assert_array_equal(hals[0].consensus_, hals[1].consensus_)
    assert np.abs(halfway.consensus_ - own.consensus_).max() > 1e-6


def test_a_solver_object_places_new_rows_and_streams():
    views, _ = blobs(n=120)
    model = WMNMF(3, solver=Halfway(), random_state=0).fit([X[:80] for X in views])
    assert model.predict([X[80:] for X in views]).shape == (40,)
    assert model.partial_fit([X[80:] for X in views]).labels_.shape == (40,)


@pytest.mark.parametrize(
    "params, sentence",
    [
        ({"solver": "newton"}, "solver must be one of 'multiplicative', 'hals' or an object with"),
        ({"solver": SimplexHALS}, r"is a class; pass an object, SimplexHALS\(\)"),
        ({"solver": object()}, "manyview.solvers.Solver"),
        (
            {"solver": "hals", "regularizer": NoCurvature()},
            r"solver='hals' needs .* curvature\(V\)",
        ),
        ({"solver": SimplexHALS(3), "regularizer": NoCurvature()}, "solver SimplexHALS needs"),
    ],
)
def test_what_does_not_go_together_is_a_sentence(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        WMNMF(2, **params).fit(blobs(n=20)[0])


def test_holes_are_for_the_rule_that_knows_them():
    views = [X.copy() for X in blobs(n=40)[0]]
    views[0][::5, 0] = np.nan
    for solver in ("hals", Halfway()):
        with pytest.raises(ValueError, match=r"does not take; use solver='multiplicative'"):
            WMNMF(3, solver=solver, missing="mask").fit(views)


def test_tensors_are_for_solvers_that_take_them():
    pytest.importorskip("torch")

    class HostOnly(Halfway):
        takes_tensors = False

    with pytest.raises(ValueError, match="HostOnly would be handed tensors by engine='torch'"):
        WMNMF(3, solver=HostOnly(), engine="torch", device="cpu").fit(blobs(n=20)[0])


def broken(**methods):
    return type("Broken", (Halfway,), methods)()


def write_into_V(self, V, *given):
    V *= 0.9
    return V.copy()


BROKEN_SOLVERS = {
    "nonnegative": {"update_V": lambda self, V, *given: V - 1},
    "has the shape": {"update_U": lambda self, U, sums, a: U.T},
    "wrote into V": {"update_V": write_into_V},
    "update_V raises the objective": {"update_V": lambda self, V, *given: 3 * V},
    "update_U raises the objective": {"update_U": lambda self, U, sums, a: 9 * U},
    "other coefficients for two halves": {"update_V": lambda self, V, *given: V * len(V) / 25},
    "the columns of U must sum to 1": {"unit_sums": True},
    "no regulariser of the library has": {"needs": ("hessian",)},
}


@pytest.mark.parametrize("sentence", BROKEN_SOLVERS)
def test_a_broken_solver_is_told_what_is_wrong(sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_solver(broken(**BROKEN_SOLVERS[sentence]))


def value_that_writes(self, V):
    value = float((V * V).sum())
    V += 1e-9
    return value


BROKEN_TERMS = {
    r"lacks value\(V\) or split": {"split": None, "prepare": lambda self, X: object()},
    "not half the gradient": {"split": lambda self, V: (0.0, 2 * V)},
    "must be finite and nonnegative": {"split": lambda self, V: (-V, 0.0)},
    "does not fit V": {"split": lambda self, V: (0.0, V[:3])},
    "must be a pair": {"split": lambda self, V: (0.0, V, V)},
    "one finite number": {"value": lambda self, V: V.sum(axis=1)},
    "is too small": {"curvature": lambda self, V: 0.1},
    "wrote into V": {"value": value_that_writes},
}


@pytest.mark.parametrize("sentence", BROKEN_TERMS)
def test_a_broken_regularizer_is_told_what_is_wrong(sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_regularizer(type("Broken", (Ridge,), BROKEN_TERMS[sentence])())


def test_an_object_without_prepare_is_told_so():
    with pytest.raises(AssertionError, match=r"has no prepare\(X\)"):
        check_regularizer(object())
