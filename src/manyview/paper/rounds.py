"""WM-NMF round by round, from the same parts and random draws as the estimator."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np

from manyview._types import Array, Factors, FitResult
from manyview.base import generator
from manyview.initialize import starting_factors
from manyview.labels import assign
from manyview.maths.solvers import Multiplicative
from manyview.regularizers import Graph, Term
from manyview.scaling import fit_scaling
from manyview.views.views import as_views
from manyview.wmnmf import Problem, Settings, run

#: The estimator's defaults.
P, BETA, INNER = 5.0, 0.01, 30


class Rounds:
    """The state of a fit that can be looked at after every round; labels as the estimator's."""

    def __init__(self, views: Any, n_clusters: int, seed: int):
        data = as_views(views, allow_negative=False, caller="reproduce")
        scalings = fit_scaling(data, "sum")
        self.n_clusters = n_clusters
        self.Xs = [
            scaling.apply(X.astype(np.float64))
            for X, scaling in zip(data.matrices, scalings, strict=True)
        ]
        self.terms: list[Term] = [Graph().prepare(X) for X in self.Xs]
        self.rng = generator(seed)
        self.start: Factors = starting_factors(
            self.Xs, "gnmf", n_clusters, self.terms, Multiplicative(), P, self.rng
        )

    def each(self, n_rounds: int, inner_iter: int = INNER, **settings: Any) -> Iterator[FitResult]:
        """Fits of one round each, every one from where the last ended: the loop keeps nothing else."""
        factors = self.start
        for _ in range(n_rounds):
            given = {"p": P, "beta": BETA, "max_iter": 1, "inner_iter": inner_iter}
            problem = Problem(self.Xs, self.terms, Multiplicative())
            result = run(problem, factors, Settings(**(given | settings)))
            factors = result.factors
            yield result

    def labels(self, factors: Factors, method: str = "spectral", connect: bool = False) -> Array:
        # A copy: the draws must be those of a fit that ends here.
        rng = deepcopy(self.rng)
        return assign(factors.consensus, self.n_clusters, method, rng, connect=connect)
