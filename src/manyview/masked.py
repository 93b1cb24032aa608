"""Products and steps with a view some of whose entries are unobserved (NaN): they simply do not count."""

from __future__ import annotations

import numpy as np

from ._types import Array
from .equations import ratio_step, split_U, split_V, weighted_simplex
from .regularizers import Term


class MaskedView:
    """X with NaN where unobserved; errors are summed over the observed entries only."""

    def __init__(self, X: Array):
        self.observed = ~np.isnan(X)
        self.X = np.where(self.observed, X, 0)
        self.shape, self.dtype = X.shape, X.dtype

    def sum(self) -> float:
        """Total of the view, were the unobserved entries like the observed ones."""
        share = self.observed.mean()
        return float(self.X.sum() / share) if share > 0 else 0.0

    def errors(self, U: Array, V: Array) -> Array:
        """O ∘ (X − VUᵀ)."""
        return np.where(self.observed, self.X - V @ U.T, 0)

    def fitted(self, U: Array, V: Array) -> Array:
        """O ∘ (VUᵀ)."""
        return np.where(self.observed, V @ U.T, 0)

    def step_U(self, U: Array, V: Array, consensus: Array, w2: Array, a: float) -> Array:
        """The multiplicative rule for U, numerator and denominator over observed entries."""
        WV = w2 * V
        fitted = self.fitted(U, V).T @ WV
        return ratio_step(U, *split_U(U, self.X.T @ WV, None, V, consensus, a, fitted))

    def step_V(
        self, U: Array, V: Array, consensus: Array, w2: Array, a: float, beta: float, g: Term
    ) -> Array:
        """The multiplicative rule for V, likewise."""
        fitted, q = self.fitted(U, V) @ U, U.sum(axis=0)
        parts = split_V(V, self.X @ U, None, q, consensus, w2, a, beta, g.split(V), fitted)
        return ratio_step(V, *parts)

    def residuals(self, U: Array, V: Array, quick: bool = False) -> Array:
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
