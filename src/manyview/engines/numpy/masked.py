"""Products and steps with a view some of whose entries are unobserved (NaN): they simply do not count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from manyview._types import Array, Matrix
from manyview.maths.equations import (
    consensus_gap,
    ratio_step,
    split_U,
    split_V,
    sums_over_rows,
    weighted_simplex,
)
from manyview.maths.solvers import Solver, own_name
from manyview.maths.terms import Term

from .sources import UnitRows

Fill = Callable[[int, Array], Array]
#: Fewest rows, per component and as a share of all, from which a view's parts can be learned.
ROWS_PER_COMPONENT, FEWEST_SHARE = 10, 0.05


def unit_sum_rows(Z: Matrix, observed: Array | None) -> UnitRows | MaskedView:
    """x: rows of z with unit L1 norm, over all features where some are unobserved."""
    total = np.ravel(abs(Z).sum(axis=1))
    if observed is not None:
        total = total * Z.shape[1] / np.maximum(observed.sum(axis=1), 1)
    scale = np.divide(1, total, out=np.zeros_like(total), where=total > 0)
    if observed is None:
        return UnitRows(Z, scale)
    return MaskedView(np.where(observed, Z * scale[:, None], np.nan))


def least_entries(n_features: int, n_components: int) -> int:
    """Fewest entries that tell where a row is: as many as coefficients, or half of the features."""
    return max(1, min(n_components, -(-n_features // 2)))


def views_that_tell(Xs: list[Any]) -> Array | None:
    """Which views can tell of each row (N×n_v), or None if all can of all.

    Of a row of which no view has enough, those that have anything.
    """
    if not any(isinstance(X, MaskedView) for X in Xs):
        return None
    all_rows = np.ones(Xs[0].shape[0], dtype=bool)
    enough, any_value = (
        np.column_stack([part(X) if isinstance(X, MaskedView) else all_rows for X in Xs])
        for part in (lambda X: X.here, lambda X: X.counts > 0)
    )
    return np.where(enough.any(axis=1, keepdims=True), enough, any_value)


def mean_error(X: Any, residuals: Array) -> float:
    """Mean squared error of an observed entry, from the squared residuals of the rows."""
    entries = X.counts.sum() if isinstance(X, MaskedView) else np.prod(X.shape)
    return float(residuals.sum()) / max(1.0, float(entries))


def expected_residuals(X: Any, residuals: Array, typical: float | None = None) -> Array:
    """The residuals of whole rows: an unobserved entry counts like an observed one on average.

    Left out, it would be treated as reconstructed without error, and the view that hardly has a row would
    explain it best. ``typical`` is the error of an entry on average, by default that of these rows.
    """
    if not isinstance(X, MaskedView):
        return residuals
    typical = mean_error(X, residuals) if typical is None else typical
    return residuals + (X.shape[1] - X.counts) * typical


def expected_gap(X: Any, gap: float) -> float:
    """The gap of all rows, from that of the rows of which the view has enough."""
    if not isinstance(X, MaskedView) or X.here.all():
        return gap
    return gap * len(X.here) / max(1, int(X.here.sum()))


def reaches(Xs: list[Any], n_components: int) -> Array:
    """1 for every view, but the share it has of the rows for one that has too few to learn from.

    Its parts can follow any consensus, so that a small gap says nothing. Half of the rows are enough.
    """
    # How many rows the observed entries of rows with enough of them would fill.
    shares = np.array(
        [
            X.counts[X.here].sum() / np.prod(X.shape) if isinstance(X, MaskedView) else 1.0
            for X in Xs
        ]
    )
    fewest = max(ROWS_PER_COMPONENT * n_components / Xs[0].shape[0], FEWEST_SHARE)
    return np.where(shares >= min(fewest, 0.5), 1.0, shares)


class MaskedView:
    """X with NaN where unobserved; errors are summed over the observed entries only.

    Rows of which less than ``least`` entries are observed are no part of the gap to the consensus,
    either: it could be followed there at no cost.
    """

    #: Steps on U use the entries each time: no sums over rows are stored.
    sums = None

    def __init__(self, X: Array, least: int = 1):
        self.observed = ~np.isnan(X)
        self.counts = self.observed.sum(axis=1)
        self.here = self.counts >= least
        self.X = np.where(self.observed, X, 0)
        self.shape, self.dtype = X.shape, X.dtype

    def total(self) -> float:
        """Total of the view, were the unobserved entries like the observed ones."""
        share = self.observed.mean()
        return float(self.X.sum() / share) if share > 0 else 0.0

    @property
    def x_sq(self) -> Array:
        """‖x_i‖² over the observed entries."""
        return np.einsum("im,im->i", self.X, self.X)

    def errors(self, U: Array, V: Array) -> Array:
        """O ∘ (X − VUᵀ)."""
        return np.where(self.observed, self.X - V @ U.T, 0)

    def fitted(self, U: Array, V: Array) -> Array:
        """O ∘ (VUᵀ)."""
        return np.where(self.observed, V @ U.T, 0)

    def as_rows(self, solver: Solver) -> MaskedView:
        """Itself: its steps on U and V are those of the multiplicative rule, whatever the solver."""
        if own_name(solver) != "multiplicative":
            raise ValueError("views with unobserved entries need the multiplicative rule")
        return self

    def begin(
        self, V: Array, consensus: Array, fit_weight: Array, sum_weight: Array, g: Term, basis: bool
    ) -> None:
        self.consensus, self.g = consensus, g
        self.w2 = fit_weight.reshape(-1, 1).astype(self.dtype)
        self.sum(V)

    def sum(self, V: Array) -> None:
        self.V, self.penalty = V, self.g.value(V)

    def step_U(self, U: Array, a: float) -> Array:
        """The multiplicative rule for U, numerator and denominator over observed entries."""
        rows = (self.X, self.V, self.consensus, self.w2)
        sums = sums_over_rows(*rows if self.here.all() else (part[self.here] for part in rows))
        fitted = self.fitted(U, self.V).T @ (self.w2 * self.V)
        return ratio_step(U, *split_U(U, sums, a, fitted))

    def step_V(self, U: Array, V: Array, a: float, beta: float, residuals: bool = False) -> Array:
        """The multiplicative rule for V, likewise."""
        fitted, q = self.fitted(U, V) @ U, U.sum(axis=0)
        g = self.g.split(V)
        parts = split_V(V, self.X @ U, None, q, self.consensus, self.w2, a, beta, g, fitted)
        self.sum(ratio_step(V, *parts))
        if residuals:
            self.residuals = self.all_residuals(U, self.V)
        return self.V

    def collect(self, V: Array) -> Array:
        return V

    def release(self) -> None:
        """Nothing here is kept for iterations alone."""

    def error(self, U: Array) -> float:
        return np.dot(self.w2[:, 0], self.all_residuals(U, self.V))

    def gap(self, U: Array, V: Array) -> float:
        return self.gap_to(self.consensus, U, V)

    def gap_to(self, consensus: Array, U: Array, V: Array) -> float:
        """‖VQ − V*‖² over the rows of which enough is observed."""
        if not self.here.all():
            V, consensus = V[self.here], consensus[self.here]
        return consensus_gap(V, U.sum(axis=0), consensus)

    def all_residuals(self, U: Array, V: Array) -> Array:
        E = self.errors(U, V)
        return np.einsum("im,im->i", E, E)

    def update_V(
        self, U: Array, V: Array, consensus: Array, precision: float, lam: float, sweeps: int = 2
    ) -> Array:
        """Coordinate descent on precision·‖O∘(x − Uv)‖² + λ‖v − v*‖², every row for itself."""
        V, E = V.copy(), self.errors(U, V)
        mask = self.observed.astype(U.dtype)
        for _ in range(sweeps):
            for k in range(V.shape[1]):
                curvature = precision * (mask @ U[:, k] ** 2) + lam
                pull = precision * (E @ U[:, k]) + lam * (consensus[:, k] - V[:, k])
                new = np.maximum(0, V[:, k] + pull / curvature)
                E -= mask * np.outer(new - V[:, k], U[:, k])
                V[:, k] = new
        return V

    def update_U(self, U: Array, V: Array, w: Array, sweeps: int = 2) -> Array:
        """Columns of U by the weighted simplex projection that matches the observed entries."""
        U, E = U.copy(), self.errors(U, V)
        mask = self.observed.astype(U.dtype)
        for _ in range(sweeps):
            for k in range(U.shape[1]):
                curvature = mask.T @ (w * V[:, k] ** 2)
                if curvature.max() <= np.finfo(U.dtype).eps:
                    continue
                target = E.T @ (w * V[:, k]) + curvature * U[:, k]
                new = weighted_simplex(target, curvature)
                E -= mask * np.outer(V[:, k], new - U[:, k])
                U[:, k] = new
        return U
