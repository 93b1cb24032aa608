"""The steps that `WMNMF` can take on its factors, and the protocol of your own (`Solver`)."""

from manyview.maths.solvers import Multiplicative, SimplexHALS, Solver

__all__ = ["Multiplicative", "SimplexHALS", "Solver"]
