"""Solvers, ours and those of others: what goes together, and what is wrong is said."""

import dataclasses

import numpy as np
import pytest

from conftest import blobs
from manyview import WMNMF
from manyview.engines.numpy.rows import compiled_rule
from manyview.extend import Multiplicative, SimplexHALS, check_solver
from manyview.maths.solvers import SOLVERS, own_name
from own_parts import Halfway, NoCurvature, Ridge


@pytest.mark.parametrize("solver", [Multiplicative(), SimplexHALS(), SimplexHALS(4), Halfway()])
def test_solvers_pass_their_check(solver):
    check_solver(solver)
    check_solver(solver, regularizers=[Ridge()], random_state=3)


def test_only_the_very_rules_of_the_library_have_compiled_forms():
    class Same(SimplexHALS):
        pass

    assert [own_name(kind()) for kind in SOLVERS.values()] == list(SOLVERS)
    for other in (Same(), SimplexHALS(sweeps=3), Halfway()):
        assert own_name(other) is None and compiled_rule(other) is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        SimplexHALS().sweeps = 3


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
        ({"solver": object()}, "manyview.extend.Solver"),
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
        with pytest.raises(ValueError, match=r"does not accept; use solver='multiplicative'"):
            WMNMF(3, solver=solver, missing="allow").fit(views)


def test_tensors_are_for_solvers_that_take_them():
    pytest.importorskip("torch")

    class HostOnly(Halfway):
        takes_tensors = False

    with pytest.raises(
        ValueError, match="engine='torch' would pass tensors to the solver HostOnly"
    ):
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
    "no regularizer of the library has": {"needs": ("hessian",)},
}


@pytest.mark.parametrize("sentence", BROKEN_SOLVERS)
def test_a_broken_solver_is_told_what_is_wrong(sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_solver(broken(**BROKEN_SOLVERS[sentence]))
