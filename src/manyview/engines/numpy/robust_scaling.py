"""How RobustWMNMF makes features comparable: percentiles, or square roots of counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from manyview._arrays import is_tensor, like, namespace, on_host
from manyview._types import Array, Matrix, storable
from manyview.maths.tails import (
    SHAPE,
    bends,
    bent,
    known_quantiles,
    shape_rows,
    unbent,
    why_heavy,
)

from .repeats import fewest_copies

#: A view with more zeros than this is counts or text: square roots, unit rows.
ZEROS = 0.9
#: Entries looked at together when percentiles are found.
BLOCK = 2**22


@storable
@dataclass(frozen=True)
class RobustScaling:
    """Features to [0, 1] by their 1st and 99th percentile, or counts to unit rows of square roots.

    Every feature of a dense view counts alike whatever its unit, and outliers are clipped. Features
    with heavy tails are bent like a logarithm (`tails`).
    """

    low: Array | None
    gain: Array | None
    bend: Array | None = None
    #: Why it was bent though nobody asked for it: counts, or heavy tails.
    because: str = ""

    @classmethod
    def fit(cls, X: Matrix, present: Array, name: str, kind: str = "auto") -> RobustScaling:
        """``kind``: "auto" looks at the view; "sqrt", "log" or "quantile" is what it may find."""
        rows = X if present.all() else X[present]
        rows = rows[fewest_copies(rows)]
        mostly_zero = kind == "auto" and (rows.shape[0] == 0 or share_of_zeros(rows) > ZEROS)
        if kind == "sqrt" or mostly_zero or rows.shape[0] == 0:
            return cls(None, None)
        low, high, quantiles = _percentiles(rows)
        if sp.issparse(X) and (low < 0).any():
            raise ValueError(
                f"view {name!r} is sparse and has negative entries (a feature's 1st percentile is "
                f"{low.min():g}): scaling would fill its zeros; pass it as a dense array"
            )
        with np.errstate(over="ignore"):
            spread = high - low
        refuse_extreme(spread, name)
        gain = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
        if kind == "quantile":
            return cls(low, gain)
        shape = shape_rows(rows)
        known = quantiles if shape.shape == rows.shape else None
        because = "" if kind == "log" else why_heavy(shape, known)
        bend = bends(shape, low, gain) if kind == "log" or because else None
        return cls(low, gain, bend, because)

    @property
    def kind(self) -> str:
        """Which of "sqrt", "log" and "quantile" it is."""
        if self.low is None:
            return "sqrt"
        return "quantile" if self.bend is None else "log"

    def apply(self, X: Matrix) -> Matrix:
        """z; NaN stays NaN. The zeros of a sparse view stay zeros: their place is below ``low``."""
        if self.low is None or self.gain is None:
            if sp.issparse(X):
                root = X.copy()
                root.data = np.sign(root.data) * np.sqrt(np.abs(root.data))
                return normalize(root, copy=False)
            return unit_rows(namespace(X).sign(X) * abs(X) ** 0.5)
        if is_tensor(X):
            t = ((X - like(self.low, X)) * like(self.gain, X)).clip(0, 1)
            return t if self.bend is None else bent(t, self.bend)
        low, gain = self.low.astype(X.dtype), self.gain.astype(X.dtype)
        bend = None if self.bend is None else self.bend.astype(X.dtype)
        if sp.issparse(X):
            t = X.data - low.take(X.indices) if low.any() else X.data.copy()
            alike = len(gain) > 0 and bool((gain == gain[0]).all())
            t *= gain[0] if alike else gain.take(X.indices)
            np.clip(t, 0, 1, out=t)
            if bend is not None:
                t = bent(t, bend[X.indices])
            Z = type(X)((t, X.indices.copy(), X.indptr.copy()), shape=X.shape)
            Z.eliminate_zeros()
            return Z
        t = X - low
        t *= gain
        np.clip(t, 0, 1, out=t)
        return t if bend is None else bent(t, bend)

    def undo(self, Z: Array) -> Array:
        """Dense z back to the units of the data (counts: to shares of their row)."""
        if self.low is None or self.gain is None:
            return np.sign(Z) * Z * Z
        spread = np.divide(1, self.gain, out=np.zeros_like(self.gain), where=self.gain > 0)
        return self.low + (Z if self.bend is None else unbent(Z, self.bend)) * spread


def refuse_extreme(spread: Array, name: str, lost: Array | bool = False) -> None:
    """Features whose spread has no inverse, is no number, or is ``lost`` otherwise."""
    bad = ~np.isfinite(spread) | ((spread > 0) & (spread < np.finfo(float).tiny)) | lost
    if bad.any():
        j = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"view {name!r}: {int(bad.sum())} features spread too little or too much to compute with "
            f"(column {j} by {spread[j]:g}); multiply them by a constant, or leave them out"
        )


def unit_rows(X: Array) -> Array:
    """Rows of unit length over what is observed; a row of zeros stays."""
    xp = namespace(X)
    norms = xp.nansum(X * X, axis=1, keepdims=True) ** 0.5
    return X / xp.where(norms > 0, norms, 1)


def share_of_zeros(X: Matrix) -> float:
    if sp.issparse(X):
        return 1 - X.count_nonzero() / max(1, X.shape[0] * X.shape[1])
    return float((X == 0).sum()) / max(1.0, float((~namespace(X).isnan(X)).sum()))


def _device_percentiles(X: Any) -> tuple[Array, Array]:
    """The same of a tensor: NaN sorts to the end of its feature."""
    ordered = X.double().sort(axis=0).values
    known = (~X.isnan()).sum(axis=0)
    last = (known - 1).clip(0)
    ends = [ordered[0], ordered.take_along_dim(last[None], 0)[0]]
    found = []
    for q in (0.01, 0.99):
        place = q * last
        below = place.floor().long()
        pair = [ordered.take_along_dim(r[None], 0)[0] for r in (below, (below + 1).clip(max=last))]
        found.append(pair[0] + (place - below) * (pair[1] - pair[0]))
    flat = ~(found[1] > found[0])
    chosen = (e.where(flat, f) for e, f in zip(ends, found, strict=True))
    return tuple(np.nan_to_num(on_host(part)) for part in chosen)  # type: ignore[return-value]


def _percentiles(X: Matrix) -> tuple[Array, Array, Array | None]:
    """1st and 99th percentile of every feature; its minimum and maximum where these coincide.

    And the quantiles of `SHAPE`, which come along on the host.
    """
    low, high = np.empty(X.shape[1]), np.empty(X.shape[1])
    shape = None if is_tensor(X) else np.empty((len(SHAPE), X.shape[1]))
    X = X.tocsc() if sp.issparse(X) else X
    step = max(1, BLOCK // max(1, X.shape[0]))
    for start in range(0, X.shape[1], step):
        part = slice(start, start + step)
        if is_tensor(X):
            low[part], high[part] = _device_percentiles(X[:, part])
            continue
        block = X[:, part].toarray() if sp.issparse(X) else X[:, part]
        shape[:, part] = known_quantiles(block, SHAPE)  # type: ignore[index]
        quantiles = shape[[0, -1], part]  # type: ignore[index]
        flat = ~(quantiles[1] > quantiles[0]) & ~np.isnan(quantiles[0])
        if flat.any():
            edges = np.array([np.nanmin(block[:, flat], axis=0), np.nanmax(block[:, flat], axis=0)])
            quantiles[:, flat] = edges
        low[part], high[part] = quantiles
    return np.nan_to_num(low), np.nan_to_num(high), shape
