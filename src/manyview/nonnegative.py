"""The views as WMNMF and the baselines factorize them, nonnegative and of comparable size, and warnings.

RobustWMNMF scales by `engines.numpy.scaling`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from manyview._arrays import is_tensor, like, namespace, on_host
from manyview._types import Array, Matrix, Views, storable
from manyview._warn import warn_user
from manyview.base import ByView, of_view
from manyview.engines.numpy.presence import has_nan, looking_threads, read_rows
from manyview.engines.numpy.scaling import refuse_extreme, unit_rows
from manyview.engines.numpy.sources import is_streamed, over
from manyview.engines.protocols import LOOK
from manyview.engines.threads import blocks

SCALES = ("sum", "total", "minmax", "standard", "tfidf", "sqrt")
#: Scalings that move every feature to start at 0, and so accept negative values.
SHIFTING = ("minmax", "standard")
#: Scalings that give rows unit length.
UNIT_ROWS = ("tfidf", "sqrt")
#: A range of fewer roundings than this is hardly known.
ROUNDED = 64
#: Views that vary by less than this share of their sum of squares are hardly more than their level:
#: of 30 real views the least has .005, and of the synthetic ones .0008, which lose nothing.
HARDLY = 1e-4
#: Values this many interquartile ranges from their median are gross outliers, which give a warning if they
#: hold more than this share of a view's sum of squares (3 of 100 real views, which have them).
GROSS, MOSTLY = 100, 0.5
#: Rows at least that tell how much a view varies.
FEWEST = 500


@storable
@dataclass(frozen=True)
class NonnegativeScaling:
    """x → clip((x/unit − shift)·gain), rows to unit length if asked, then times ``factor``.

    Dividing by ``unit`` first keeps squares of very large or small data representable.
    """

    unit: float
    shift: Array | None = None
    gain: Array | None = None
    root: bool = False
    unit_rows: bool = False
    factor: float = 1.0

    def apply(self, X: Matrix) -> Matrix:
        X = _divided(X, self.unit)
        if sp.issparse(X):
            X.data = self._features(X.data, X.indices)
            X.eliminate_zeros()
        else:
            X = self._features(X, slice(None))
        if self.unit_rows:
            X = unit_rows(X) if is_tensor(X) else normalize(X, copy=False)
        return X * self.factor if is_tensor(X) else X * X.dtype.type(self.factor)

    @property
    def constant(self) -> float | None:
        """The factor, where the scaling is nothing but a factor."""
        plain = self.shift is None and self.gain is None and not (self.root or self.unit_rows)
        return self.factor / self.unit if plain else None

    def _features(self, values: Array, columns: Array | slice) -> Array:
        if self.shift is not None:  # an implicit zero below the shift is clipped back to zero
            values = (values - like(self.shift[columns], values)).clip(0)
        if self.gain is not None:
            values = values * like(self.gain[columns], values)
        return values**0.5 if self.root else values


def fit_nonnegative(views: Views, kind: ByView) -> list[NonnegativeScaling]:
    """How to scale each view.

    "sum" divides a view by its mean row sum. "total" divides by the sum of all entries, as the paper
    does; the common constant N changes nothing but the units of O with a graph, whose term is
    quadratic in V like the others. "minmax" and
    "standard" first map each feature to (x − min)/range or (x − min)/sd (a z-score shifted to start
    at 0); "tfidf" weights features by inverse document frequency and "sqrt" takes square roots,
    both then giving rows unit length. All end with "sum", since the consensus compares coefficients
    between views. ``None`` leaves the proportions of the data alone: one power of two, common to
    all views, keeps the arithmetic in range. A dict has the scaling of each view by its name.
    """
    if kind in (None, "none"):
        unit = max(largest(X) for X in views.matrices)
        power = float(2.0 ** np.floor(np.log2(unit))) if unit > 0 else 1.0
        return [NonnegativeScaling(power)] * len(views)
    kinds = [of_view(kind, name, "sum") for name in views.names]
    if "total" in kinds and set(kinds) != {"total"}:
        raise ValueError(
            "scale='total' gives all entries of a view together the sum 1, the others give rows the sum "
            "1 on average: their coefficients cannot be compared; use 'total' for all views or for none"
        )
    return [
        NonnegativeScaling(1.0) if kind is None else _fit_one(X, name, kind)
        for X, name, kind in zip(views.matrices, views.names, kinds, strict=True)
    ]


def _fit_one(X: Matrix, name: str, kind: str) -> NonnegativeScaling:
    if kind in UNIT_ROWS and has_nan(X):
        raise ValueError(
            f"view {name!r} has unobserved (NaN) entries, and scale={kind!r} needs whole rows; use "
            "scale='sum', 'minmax' or 'standard'"
        )
    unit = largest(X) or 1.0
    shift = gain = None
    if kind in SHIFTING:
        lows, highs = zip(*_by_parts(X, _range_of, unit), strict=True)
        low, high = np.min(lows, axis=0), np.max(highs, axis=0)
        if (sp.issparse(X) or (is_streamed(X) and X.sparse)) and (low < 0).any():
            raise ValueError(
                f"view {name!r} is sparse and has negative entries (min {low.min() * unit:g}): "
                f"scale={kind!r} would fill its zeros; pass it as a dense array"
            )
        spread = high - low if kind == "minmax" else _deviations(X, unit, low == high)
        # A feature so small compared with the largest that its squares vanish is not constant.
        refuse_extreme(high - low, name, (high > low) & (spread < np.finfo(float).tiny))
        shift, gain = low, np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
    elif kind == "tfidf":
        present = sum(_over(X, _presence))
        gain = np.log((1 + X.shape[0]) / (1 + present)) + 1
    elif kind not in ("sum", "total", "sqrt"):
        raise ValueError(f"scale must be one of {SCALES} or None, got {kind!r}")
    found = NonnegativeScaling(unit, shift, gain, kind == "sqrt", kind in UNIT_ROWS)
    size = _mean_row_sum(X, found) * (X.shape[0] if kind == "total" else 1)
    return replace(found, factor=1 / size if size > 0 else 1.0)


def _divided(X: Matrix, unit: float) -> Matrix:
    """X/unit. SciPy divides a sparse matrix by multiplying with 1/unit, infinite for a tiny unit."""
    if sp.issparse(X):
        X = X.tocsr().copy()
        X.data = _divided(X.data, unit)
        return X
    if is_tensor(X):
        return X / unit
    mantissa, exponent = np.frexp(unit)
    if mantissa == 0.5 and abs(exponent) < 1000:  # a power of two: its inverse is exact
        return X * X.dtype.type(1 / unit)
    return X / X.dtype.type(unit)


def tell_rounded(X: Matrix, name: str) -> bool:
    """Say so where float32 has hardly a digit for what tells samples apart.

    Only of views in memory, of which nothing is subtracted before they are rounded.
    """
    if not isinstance(X, np.ndarray):
        return False
    low, high = _range(X)
    size = np.maximum(np.abs(low), np.abs(high))
    lost = (high > low) & (high - low < ROUNDED * np.finfo(np.float32).eps * size)
    if lost.any():
        j = int(np.flatnonzero(lost)[0])
        warn_user(
            f"view {name!r}: dtype=float32 rounds away the differences between samples in "
            f"{int(lost.sum())} of {len(lost)} columns (column {j} goes from {low[j]:.12g} to "
            f"{high[j]:.12g}); subtract a constant from them, use dtype=None, or a scale that starts "
            "features at 0"
        )
    return bool(lost.any())


def is_constant(X: Matrix, direction: bool) -> bool:
    """Whether all rows are the same but for rounding; with ``direction``, but for a factor each.

    A single observed row is not compared with any.
    """
    low = high = np.full(X.shape[1], np.nan)
    known = 0
    for rows in blocks(slice(0, X.shape[0]), FEWEST):  # most often the first rows differ already
        part = read_rows(X, rows)
        part = on_host(part) if is_tensor(part) else part
        part = normalize(part) if direction and not has_nan(part) else part
        if sp.issparse(part):
            ends = [_dense_row(part.min(axis=0)), _dense_row(part.max(axis=0))]
        else:
            ends = [np.fmin.reduce(part, axis=0), np.fmax.reduce(part, axis=0)]
        low, high = np.fmin(low, ends[0]), np.fmax(high, ends[1])
        known += part.shape[0] - (np.isnan(part).all(axis=1).sum() if has_nan(part) else 0)
        kind = part.dtype if part.dtype.kind == "f" else float
        size = np.maximum(np.abs(low), np.abs(high))
        if (high - low > ROUNDED * np.finfo(kind).eps * size).any():
            return False
    return known > 1


def tell_outliers(X: Matrix, name: str) -> None:
    """Say so where a few gross outliers hold most of what a view varies by.

    Only of dense views in memory: in sparse ones any value may be far from the zeros.
    """
    if not isinstance(X, np.ndarray):
        return
    some = X[np.linspace(0, len(X) - 1, max(FEWEST, LOOK // X.shape[1])).astype(int)]
    unit = largest(X) or 1.0
    ordered = np.sort(some / unit, axis=0)  # NaN goes to the end
    last = np.maximum((~np.isnan(ordered)).sum(axis=0) - 1, 0)
    columns = np.arange(X.shape[1])
    quarter, median, three = (ordered[(q * last / 4).astype(int), columns] for q in (1, 2, 3))
    spread = three - quarter
    for j in np.flatnonzero(
        spread == 0
    ):  # most values are one value: the typical gap of the others
        unlike = np.abs(ordered[: last[j] + 1, j] - median[j])
        unlike = unlike[unlike > 0]
        spread[j] = np.median(unlike) if len(unlike) else np.inf
    limit = GROSS * spread
    low, high = (end / unit for end in _range(X))
    suspects = np.flatnonzero((high - median > limit) | (median - low > limit))
    if not len(suspects):
        return
    gaps = np.abs(X[:, suspects] / unit - median[suspects])
    far = gaps > limit[suspects]
    held = np.sum(gaps[far] ** 2) / sum(
        np.nansum(part) for part in over(X, _squares_about, unit, median)
    )
    if held > MOSTLY:
        i, j = np.unravel_index(int(np.argmax(np.where(far, gaps, 0))), far.shape)
        warn_user(
            f"view {name!r}: values up to {X[i, suspects[j]]:g} (column {suspects[j]}, row {i}) lie over "
            f"{GROSS} times the spread of their feature from its median; there are {int(far.sum())} such "
            f"values ({far.sum() / X.size:.1%}), with {held:.0%} of the view's variance. WMNMF fits "
            "squared errors, so its clusters may follow these values alone; correct them, set them to "
            "NaN with missing='allow', or use RobustWMNMF, which limits features to their 1st to 99th "
            "percentile"
        )


def tell_level(X: Matrix, name: str) -> None:
    """Say so where a view is nearly all level: products of nonnegative parts then show little else.

    Only of dense views in memory, of which nothing is subtracted.
    """
    if not isinstance(X, np.ndarray):
        return
    some = np.linspace(0, len(X) - 1, max(FEWEST, LOOK // X.shape[1])).astype(int)
    if len(some) < len(X) and _varying_share(X[some])[0] > 10 * HARDLY:
        return  # evenly spaced rows vary far more than that
    share, low, high, n = _varying_share(X)
    if 0 < share < HARDLY:
        j = int(np.argmax(low * (n > 0)))
        warn_user(
            f"view {name!r} is nearly constant: {share:.1g} of its sum of squares is variation (column {j} "
            f"goes from {low[j]:.12g} to {high[j]:.12g}). The parts then describe mostly the mean level, "
            "and clusters may be lost; subtract each feature's smallest value, or use scale='minmax' or "
            "'standard'"
        )


def _varying_share(X: Array) -> tuple[float, Array, Array, Array]:
    """How much of its sum of squares a view varies by; of every feature the range, and how many values."""
    low, high = _range(X)
    unit = largest(X)
    if not unit:
        return 0.0, low, high, np.zeros(X.shape[1])
    n, total, squares = np.sum(over(X, _moments_above, low, unit), axis=0)
    mean = total / np.maximum(n, 1)
    varying = np.sum(np.maximum(squares - n * mean**2, 0))
    share = varying / np.sum(n * (low / unit + mean) ** 2 + squares - n * mean**2)
    return float(share), low, high, n


def _moments_above(part: Array, low: Array, unit: float) -> Array:
    """Of every feature: how many values, their sum and sum of squares above its smallest value."""
    above = part / unit - low / unit
    return np.array(
        [(~np.isnan(above)).sum(axis=0), np.nansum(above, axis=0), np.nansum(above**2, axis=0)]
    )


def largest(X: Matrix) -> float:
    return max(_over(X, _largest_of), default=0.0)


def _largest_of(part: Matrix) -> float:
    if sp.issparse(part) or is_tensor(part):
        return float(abs(part).max())
    return float(np.nanmax(np.abs(part), initial=0))


def _mean_row_sum(X: Matrix, scaling: NonnegativeScaling) -> float:
    """Mean sum of the scaled rows, were the unobserved entries like the observed ones."""
    # Scaled in double precision a whole tensor may not fit its device.
    found = over(X, _sum_of, scaling)
    total, observed = np.sum(found, axis=0)
    return total / observed * X.shape[1] if observed else 0.0


def _sum_of(part: Matrix, scaling: NonnegativeScaling) -> tuple[float, float]:
    """The sum of the observed entries, scaled, and their number."""
    part = scaling.apply(part.double() if is_tensor(part) else part)
    if sp.issparse(part) or is_tensor(part):
        total = float(part.sum(dtype=namespace(part).float64))
    else:
        total = float(np.nansum(part, dtype=float))
    return total, float(np.prod(part.shape) - (np.isnan(part).sum() if has_nan(part) else 0))


def _presence(part: Matrix) -> Array:
    """In how many rows each feature is there."""
    if is_tensor(part):
        return on_host((part != 0).sum(axis=0))
    return np.bincount(part.nonzero()[1], minlength=part.shape[1])


def _over(X: Matrix, work: Callable, *args: Any) -> list[Any]:
    """work(part, *args) of all rows, a part at a time; a tensor is looked at whole."""
    return [work(X, *args)] if is_tensor(X) else over(X, work, *args)


def _by_parts(X: Matrix, work: Callable, *args: Any) -> list[Any]:
    """work(part, *args): of rows in a file a part at a time, of others at once."""
    return over(X, work, *args) if is_streamed(X) else [work(X, *args)]


def _deviations(X: Matrix, unit: float, constant: Array) -> Array:
    """Standard deviation of every feature of X/unit: the mean first, then squares about it."""
    if is_tensor(X):
        variance = on_host(_divided(X, unit).double().var(axis=0, correction=0))
    else:
        n, total = np.sum(_by_parts(X, _totals_of, unit), axis=0)
        n = np.maximum(n, 1)
        variance = np.sum(_by_parts(X, _squares_about, unit, total / n), axis=0) / n
    return np.where(constant, 0, np.sqrt(variance))


def _range_of(part: Matrix, unit: float) -> tuple[Array, Array]:
    return _range(_divided(part, unit))


def _totals_of(part: Matrix, unit: float) -> Array:
    """Of every feature: how many values, and their sum."""
    part = _divided(part, unit)
    if sp.issparse(part):
        return np.array([np.full(part.shape[1], part.shape[0]), np.ravel(part.sum(axis=0))])
    return np.array(
        [np.count_nonzero(~np.isnan(part), axis=0), np.nansum(part, axis=0, dtype=float)]
    )


def _squares_about(part: Matrix, unit: float, mean: Array) -> Array:
    """Σ_i (x_im/unit − mean_m)² of every feature."""
    part = _divided(part, unit)
    if not sp.issparse(part):
        return np.nansum((part - mean) ** 2, axis=0)
    # Zeros that are not stored lie at −mean.
    stored = np.bincount(part.indices, minlength=part.shape[1])
    away = np.bincount(part.indices, (part.data - mean[part.indices]) ** 2, part.shape[1])
    return away + (part.shape[0] - stored) * mean**2


def _range(X: Matrix) -> tuple[Array, Array]:
    """Smallest and largest value of every feature; 0 where none is observed."""
    if isinstance(X, np.ndarray):
        lows, highs = zip(
            *looking_threads(X).map(
                lambda rows: (np.fmin.reduce(X[rows]), np.fmax.reduce(X[rows])), X.shape[0]
            ),
            strict=True,
        )
        low, high = np.fmin.reduce(lows).astype(float), np.fmax.reduce(highs).astype(float)
        return np.nan_to_num(low), np.nan_to_num(high)
    if is_tensor(X):
        return on_host(X.amin(axis=0)).astype(float), on_host(X.amax(axis=0)).astype(float)
    return _dense_row(X.min(axis=0)), _dense_row(X.max(axis=0))


def _dense_row(row: Matrix) -> Array:
    return np.asarray(row.toarray() if sp.issparse(row) else row, dtype=float).ravel()
