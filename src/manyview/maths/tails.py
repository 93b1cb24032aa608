"""Heavy tails: which views need a logarithm, and a logarithm for features of any unit and sign.

A feature scaled to t in [0, 1] is bent to log(1 + b t)/log(1 + b). With b = 0 that is t itself; a
larger b spreads small values and draws large ones together. Nothing depends on the feature's unit.
"""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp

from manyview._arrays import like, namespace, on_host
from manyview._types import Array, Matrix

#: Rows that tell the shape of the features.
SHAPE_ROWS = 2000
#: Entries looked at together when quantiles are found.
BLOCK = 2**22
#: Heavy-tailed: the median lies in this part of the range of the feature, from below …
LOWEST = 0.25
#: … and the 99th percentile at least this many times as far from it as the 75th. Normal: 3.5,
#: exponential: 5.6, log-normal with σ = 1: 9.6.
TAIL = 6.0
#: Why a logarithm is taken.
COUNTS, HEAVY = "counts", "heavy tails"
#: The mean of a feature counts as at least this share of its range; a larger b changes little.
LEAST_MEAN = 1e-3


def shape_rows(X: Matrix) -> Array:
    """Evenly spaced rows of X as a dense array of this process."""
    n = X.shape[0]
    chosen = np.unique(np.linspace(0, n - 1, min(n, SHAPE_ROWS)).astype(int))
    rows = X[chosen]
    return rows.toarray() if sp.issparse(rows) else np.asarray(on_host(rows), dtype=float)


def known_quantiles(rows: Array, shares: list[float]) -> Array:
    """Quantiles of the known values of every feature; NaN where none is known."""
    step, found = max(1, BLOCK // max(1, len(rows))), np.empty((len(shares), rows.shape[1]))
    for start in range(0, rows.shape[1], step):
        block = rows[:, start : start + step]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
            # All features at once where nothing is unknown: the same bits, 13 times faster.
            quantile = np.nanquantile if np.isnan(block).any() else np.quantile
            found[:, start : start + step] = quantile(block, shares, axis=0)
    return found


def why_heavy(rows: Array) -> str:
    """`COUNTS` or `HEAVY` where most features of a view are skewed to the right; otherwise ""."""
    low, middle, upper, high = known_quantiles(rows, [0.01, 0.5, 0.75, 0.99])
    varies = high > low
    if not varies.any():
        return ""
    place = (middle - low)[varies] / (high - low)[varies]
    if np.median(place) > LOWEST:
        return ""
    if are_counts(rows):
        return COUNTS
    told = (upper > middle) & (middle > low)  # where most values are one value, nobody can tell
    if 2 * told.sum() <= varies.sum():
        return ""
    return HEAVY if np.median((high - middle)[told] / (upper - middle)[told]) > TAIL else ""


def are_counts(rows: Array) -> bool:
    """Whether all values are whole numbers from 0, more than a few different ones."""
    known = rows[~np.isnan(rows)]
    return bool(
        known.min(initial=0) >= 0
        and known.max(initial=0) > 10
        and np.array_equal(known, np.round(known))
    )


def bends(rows: Array, low: Array, gain: Array) -> Array:
    """b of every feature: the one that puts the mean of t in the middle; 0 if it lies there or above."""
    t = np.clip((rows - low) * gain, 0, 1)
    known = np.maximum((~np.isnan(t)).sum(axis=0), 1)
    mean = np.clip(np.nansum(t, axis=0) / known, LEAST_MEAN, 0.5)
    return np.where(gain > 0, (1 - 2 * mean) / mean**2, 0)


def bent(t: Array, b: Array) -> Array:
    """log(1 + b t)/log(1 + b), and t where b is 0. ``t`` is an array or a tensor, ``b`` fits its shape."""
    straight = b <= 0
    b = np.where(straight, 1.0, b)
    size = like(np.log1p(b), t)
    return namespace(t).where(like(straight, t) > 0, t, namespace(t).log1p(t * like(b, t)) / size)


def unbent(z: Array, b: Array) -> Array:
    """t of which z = `bent` (t)."""
    safe = np.where(b > 0, b, 1.0)
    return np.where(b > 0, np.expm1(z * np.log1p(safe)) / safe, z)
