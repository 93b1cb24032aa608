"""Moments of the features of a view, and the mean squared distance of every row that they give."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from manyview._arrays import converted, is_tensor, like, namespace
from manyview._types import Array, Matrix


def feature_moments(
    Z: Matrix, present: Array, observed: Array | None, mass: Array | None
) -> tuple[Array, Array, Array]:
    """Per feature: mean square, mean and number of the observed values of present rows."""
    if mass is not None:
        return _weighed(Z, observed, mass * present)
    rows = Z if present.all() else Z[present]
    sums = [_square_sums(rows), rows.sum(axis=0, dtype=namespace(rows).float64).reshape(-1)]
    if observed is None:
        n = 0 * sums[0] + float(rows.shape[0])
    else:
        n = observed[present].sum(axis=0, dtype=float)
    mean_sq, mean = (total / n.clip(1) for total in sums)
    return mean_sq, mean, n


def _weighed(Z: Matrix, observed: Array | None, mass: Array) -> tuple[Array, Array, Array]:
    """The same of rows that count as often as ``mass`` says."""
    squares = Z.multiply(Z) if sp.issparse(Z) else Z * Z
    weight = like(mass, Z) if is_tensor(Z) else mass
    n = weight @ observed if observed is not None else 0 * _sums(weight, squares) + mass.sum()
    mean_sq, mean = (_sums(weight, part) / n.clip(1) for part in (squares, Z))
    return mean_sq, mean, n


def _sums(weight: Array, part: Matrix) -> Array:
    """Σ_i weight_i part_im, in double precision."""
    if sp.issparse(part):
        return part.T @ weight
    return converted(weight, namespace(part).float64) @ converted(part, namespace(part).float64)


def _square_sums(rows: Matrix) -> Array:
    """Σ_i z_im² of every feature, in double precision."""
    if sp.issparse(rows) or is_tensor(rows):
        squares = rows.multiply(rows) if sp.issparse(rows) else rows * rows
        return squares.sum(axis=0, dtype=namespace(rows).float64).reshape(-1)
    return np.einsum("im,im->m", rows, rows, dtype=float)


def mean_distances(
    Z: Matrix, observed: Array | None, mean_sq: Array, mean: Array, n: Array
) -> Array:
    """μ_i = (M/|O_i|) Σ_{m∈O_i} (z_im² − 2 z_im mean_m + mean_sq_m)·n_m/(n_m − 1)."""
    correction = (n > 1) * n / (n - 1).clip(1)
    if observed is None:
        level = float(mean_sq @ correction)
        if is_tensor(Z):
            correction, mean = (converted(part, Z.dtype) for part in (correction, mean))
        # All features are observed equally often: one correction.
        own = squares_of_rows(Z) * (correction[0] if len(correction) else 1.0)
        return own - 2 * (Z @ (mean * correction)) + level
    total = (Z * Z) @ correction - 2 * (Z @ (mean * correction)) + observed @ (mean_sq * correction)
    return total * Z.shape[1] / np.maximum(observed.sum(axis=1), 1)


def squares_of_rows(Z: Matrix) -> Array:
    """The same in double precision, where these are differences soon."""
    if is_tensor(Z):
        return (Z * Z).sum(axis=1)
    if sp.issparse(Z):
        return np.ravel(Z.multiply(Z).sum(axis=1, dtype=float))
    return np.einsum("im,im->i", Z, Z, dtype=float)


def squared_norms(Z: Matrix) -> Array:
    """‖z_i‖² of every row."""
    return (Z * Z).sum(axis=1) if is_tensor(Z) else row_norms(Z, squared=True)
