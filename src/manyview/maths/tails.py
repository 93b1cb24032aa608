"""Heavy tails: which views need a logarithm, and a logarithm for features of any unit and sign.

A feature scaled to t in [0, 1] is bent to log(1 + b t)/log(1 + b). With b = 0 that is t itself; a
larger b spreads small values and draws large ones together. Nothing depends on the feature's unit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from manyview._arrays import like, namespace, on_host
from manyview._types import Array, Matrix

#: Rows that tell the shape of the features.
SHAPE_ROWS = 2000
#: Entries looked at together when quantiles are found: they stay in the processor's cache.
BLOCK = 2**17
#: Quantiles that tell the shape of a feature.
SHAPE = (0.01, 0.5, 0.75, 0.95, 0.99)
#: Heavy-tailed: the median lies in this part of the range of the feature, from below …
LOWEST = 0.25
#: … and the 99th percentile at least this many times as far from it as the 75th. Normal: 3.5,
#: exponential: 5.6, log-normal with σ = 1: 9.6.
TAIL = 6.0
#: … and this many times as far from the 95th as that is from the 75th. Normal: .7, exponential: 1,
#: log-normal with σ = 1: 1.6. Two modes, such as cells without and with a protein: .5.
FAR = 0.9
#: Why a logarithm is taken.
COUNTS, HEAVY = "counts", "heavy tails"
#: The mean of a feature is treated as at least this share of its range; a larger b changes little.
LEAST_MEAN = 1e-3


def shape_rows(X: Matrix) -> Array:
    """Evenly spaced rows of X as a dense array of this process."""
    n = X.shape[0]
    if n <= SHAPE_ROWS and isinstance(X, np.ndarray):
        return X.astype(float, copy=False)
    chosen = np.unique(np.linspace(0, n - 1, min(n, SHAPE_ROWS)).astype(int))
    rows = X[chosen]
    return rows.toarray() if sp.issparse(rows) else np.asarray(on_host(rows), dtype=float)


def known_quantiles(rows: Array, shares: Sequence[float]) -> Array:
    """Quantiles of the known values of every feature; NaN where none is known.

    The bits of `numpy.nanquantile`, for all features of a block at once: sorted, few numbers lie
    between a quantile and the next.
    """
    step, found = max(1, BLOCK // max(1, len(rows))), np.empty((len(shares), rows.shape[1]))
    dtype = rows.dtype if rows.dtype.kind == "f" else np.dtype(float)
    for start in range(0, rows.shape[1], step):
        part = slice(start, start + step)
        features = np.array(rows[:, part].T, dtype=dtype, order="C")
        features.sort(axis=1)  # NaN comes last
        last = np.full(len(features), features.shape[1] - 1)
        holes = np.flatnonzero(np.isnan(features[:, -1]))
        last[holes] -= np.isnan(features[holes]).sum(axis=1)
        last = last.clip(0)
        place = last[:, None] * np.array(shares)
        below = np.floor(place)
        share, at = place - below, below.astype(np.int64)
        a = np.take_along_axis(features, at, axis=1)
        b = np.take_along_axis(features, np.minimum(at + 1, last[:, None]), axis=1)
        between = np.where(share >= 0.5, b - (b - a) * (1 - share), a + (b - a) * share)
        found[:, part] = between.T
    return found


def why_heavy(rows: Array, quantiles: Array | None = None) -> str:
    """`COUNTS` or `HEAVY` where most features of a view are skewed to the right; otherwise "".

    ``quantiles`` are those of `SHAPE`, where they are known.
    """
    low, middle, upper, last, high = (
        known_quantiles(rows, SHAPE) if quantiles is None else quantiles
    )
    varies = high > low
    if not varies.any():
        return ""
    place = (middle - low)[varies] / (high - low)[varies]
    if np.median(place) > LOWEST:
        return ""
    if are_counts(rows):
        return COUNTS
    told = (upper > middle) & (middle > low)  # unknown where most values are one value
    if 2 * told.sum() <= varies.sum():
        return ""
    if np.median((high - middle)[told] / (upper - middle)[told]) <= TAIL:
        return ""
    far = (high - last)[told] - FAR * (last - upper)[told]
    return HEAVY if np.median(far) > 0 else ""


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
