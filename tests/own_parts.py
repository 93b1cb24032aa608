"""A solver and a regularizer as users write them."""

from manyview.extend import Multiplicative, Solver


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
    def prepare(self, X, view):
        return self

    def value(self, V):
        return float((V * V).sum())

    def split(self, V):
        return 0.0, V

    def curvature(self, V):
        return 1.0


class NoCurvature(Ridge):
    curvature = None
