"""How RobustWMNMF makes views comparable: percentiles, roots of counts, embeddings, relations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from manyview._arrays import is_tensor, like, namespace, on_host
from manyview._types import Array, Matrix, storable
from manyview.engines.protocols import RowSource, ScaledThere, engine_part
from manyview.engines.threads import blocks
from manyview.maths.coordinates import (
    closed_neighborhoods,
    discounts,
    own_links,
    principal_coordinates,
)
from manyview.maths.tails import (
    SHAPE,
    are_counts,
    bends,
    bent,
    known_quantiles,
    shape_rows,
    unbent,
    why_heavy,
)

from .presence import present_rows
from .relations import Dissimilarity, GraphView, KernelView, Relation
from .repeats import fewest_copies
from .sources import is_streamed, looking_rows, over

#: From the first share of zeros to the second a view changes from percentiles to square roots in unit rows.
#: Counts of more than a few kinds change earlier: percentiles do not divide out how much a row has in all.
ZEROS, COUNT_ZEROS = (0.3, 0.9), (0.1, 0.4)
#: Features in one unit have ranges of at most this many times the median one; others keep percentiles.
ONE_UNIT = 10.0
#: Entries looked at together when percentiles are found.
PERCENTILES = 2**22


class Scaling:
    """How the features of a view were made comparable: ``apply`` makes z of data, ``undo`` data of z."""

    #: Which of `SCALINGS` it is, or which relation it is of.
    kind: str
    #: Whether rows of z have unit length; halves of their features then get it again.
    unit_rows: bool = False
    #: Whether all it knows is a range of every feature: rows can then be compared before they are scaled.
    by_range: bool = False
    #: Why "auto" log-transformed a view: counts, or heavy tails.
    because: str = ""

    def apply(self, X: Matrix) -> Matrix:
        """z; NaN stays NaN."""
        raise NotImplementedError

    def undo(self, Z: Array) -> Array:
        """Dense z back in the units of the data."""
        raise ValueError("relations are not filled in")

    def refit(self, X: Matrix, present: Array, name: str) -> Scaling:
        """The same for a second cohort; itself, unless it has a range of every feature."""
        return self


@storable
@dataclass(frozen=True)
class Unscaled(Scaling):
    """A view as it is."""

    kind = "none"

    def apply(self, X: Matrix) -> Matrix:
        return X.copy() if sp.issparse(X) else X

    def undo(self, Z: Array) -> Array:
        return Z


@storable
@dataclass(frozen=True)
class RootScaling(Scaling):
    """Counts → rows of unit length of their square roots."""

    kind = "sqrt"
    unit_rows = True

    def apply(self, X: Matrix) -> Matrix:
        if sp.issparse(X):
            root = X.copy()
            root.data = np.sign(root.data) * np.sqrt(np.abs(root.data))
            return normalize(root, copy=False)
        return unit_rows(namespace(X).sign(X) * abs(X) ** 0.5)

    def undo(self, Z: Array) -> Array:
        """Counts divided by the sum of their row."""
        return np.sign(Z) * Z * Z


@storable
@dataclass(frozen=True)
class RobustScaling(Scaling):
    """Features to [0, 1] by their 1st and 99th percentile.

    Every feature counts alike whatever its unit, and outliers are clipped. Features with heavy tails are
    bent like a logarithm (`tails`).
    """

    low: Array
    gain: Array
    bend: Array | None = None
    #: Why "auto" log-transformed it: counts, or heavy tails.
    because: str = ""

    by_range = True

    @classmethod
    def fit(cls, rows: Matrix, name: str, kind: str = "auto") -> RobustScaling:
        """``kind``: "log" or "quantile"; "auto" checks the tails."""
        low, high, quantiles = _percentiles(rows)
        if sp.issparse(rows) and (low < 0).any():
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
    def kind(self) -> str:  # type: ignore[override]
        return "quantile" if self.bend is None else "log"

    def apply(self, X: Matrix) -> Matrix:
        """z; NaN stays NaN. The zeros of a sparse view stay zeros: their place is below ``low``."""
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
        spread = np.divide(1, self.gain, out=np.zeros_like(self.gain), where=self.gain > 0)
        return self.low + (Z if self.bend is None else unbent(Z, self.bend)) * spread

    def refit(self, X: Matrix, present: Array, name: str) -> RobustScaling:
        """With the range of every feature in other rows; of features that do not vary there, its own."""
        low, gain = self.low.copy(), self.gain.copy()
        dense = X.toarray() if sp.issparse(X) else np.asarray(X)
        measured = np.flatnonzero(~np.isnan(dense[present]).all(axis=0))
        if present.sum() > 1 and len(measured):
            rows = telling_rows(dense[:, measured], present)
            new = RobustScaling.fit(rows, name, "quantile")
            varies = new.gain > 0
            low[measured[varies]], gain[measured[varies]] = new.low[varies], new.gain[varies]
        return replace(self, low=low, gain=gain)


@storable
@dataclass(frozen=True)
class PartRootScaling(Scaling):
    """q^(1−λ) r^λ of percentiles q and square roots r: λ grows with the share of zeros.

    Features of few zeros have units of their own; where most entries are zeros, values are mostly counts in
    one unit, of which each row has another total.
    """

    quantile: RobustScaling
    #: λ, and the mean length of rows of square roots.
    share: float
    size: float

    kind = "part sqrt"

    @property
    def because(self) -> str:  # type: ignore[override]
        return self.quantile.because

    def apply(self, X: Matrix) -> Matrix:
        q, r = self.quantile.apply(X), RootScaling().apply(X)
        if sp.issparse(q):  # an entry at the low end of its feature is a zero of q alone
            return (q.power(1 - self.share)).multiply(r.power(self.share)).tocsr()
        return q ** (1 - self.share) * abs(r) ** self.share

    def undo(self, Z: Array) -> Array:
        """By bisection, in rows of the usual size."""
        low, high = (
            np.zeros_like(Z),
            np.broadcast_to(self.quantile.undo(np.ones(Z.shape[1])), Z.shape),
        )
        wanted = Z * self.size**self.share
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            reached = self.quantile.apply(middle) ** (1 - self.share) * middle ** (self.share / 2)
            low, high = (
                np.where(reached < wanted, middle, low),
                np.where(reached < wanted, high, middle),
            )
        return high

    def refit(self, X: Matrix, present: Array, name: str) -> PartRootScaling:
        return replace(self, quantile=self.quantile.refit(X, present, name))


#: Halvings of the range of a feature when `PartRootScaling` is undone.
BISECTIONS = 40


def root_share(rows: Matrix) -> tuple[float, bool]:
    """λ of `PartRootScaling`; 1 for square roots in unit rows. And whether these are counts."""
    zeros, values = share_of_zeros(rows), rows.data if sp.issparse(rows) else rows
    if bool((values < 0).any()) or not bool(((values > 0) & (values != 1)).any()):
        return float(zeros > ZEROS[1]), False  # signed, or yes and no
    counts = are_counts(shape_rows(rows))
    first, last = COUNT_ZEROS if counts else ZEROS
    return float(np.clip((zeros - first) / (last - first), 0, 1)), counts


def telling_rows(X: Matrix, present: Array) -> Matrix:
    """The rows that are present, no more copies of any than needed."""
    rows = X if present.all() else X[present]
    return rows[fewest_copies(rows)]


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
    step = max(1, PERCENTILES // max(1, X.shape[0]))
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


#: Most columns of an embedding; principal components correlate with each other by less than this.
WIDEST, UNCORRELATED = 512, 1e-3


def is_embedding(X: Matrix, present: Array, name: str) -> bool:
    """Whether a view holds coordinates of an embedding: by a name like X_pca, or as components.

    Its columns have one unit and values below 0; principal components are uncorrelated, the first one
    varying most.
    """
    if sp.issparse(X) or is_streamed(X) or not 3 <= X.shape[1] <= WIDEST or not present.any():
        return False
    rows = shape_rows(X if present.all() else X[present])
    if np.isnan(rows).any() or not (rows < 0).any(axis=0).all():
        return False
    if name.rpartition(":")[2].startswith("X_"):
        return True
    if len(rows) < X.shape[0] or len(rows) <= 2 * X.shape[1]:
        rows = np.asarray(on_host(X if present.all() else X[present]), dtype=float)
    spread = rows.std(axis=0)
    if len(rows) <= X.shape[1] or not spread.all() or (np.diff(spread) > 1e-6 * spread[0]).any():
        return False
    Z = (rows - rows.mean(axis=0)) / spread
    between = abs(Z.T @ Z / len(Z) - np.eye(Z.shape[1]))
    return bool(between.max() < UNCORRELATED)


@storable
@dataclass(frozen=True)
class EmbeddingScaling(Scaling):
    """Coordinates of an embedding → rows of unit length from the middle, randomly rotated.

    No column is stretched, so later components weigh as little as they vary. Length says how
    extreme a row is, in cells mostly its depth. Any half of the rotated columns sees the same structure.
    """

    center: Array
    turn: Array
    origin: Array
    size: float

    kind = "embedding"

    @classmethod
    def fit(cls, X: Matrix, present: Array, name: str) -> EmbeddingScaling:
        dense = not (sp.issparse(X) or is_streamed(X))
        rows = np.asarray(on_host(X if present.all() else X[present]) if dense else np.nan, float)
        if np.isnan(rows).any():
            raise ValueError(
                f"view {name!r} is sparse, in a file or has unobserved entries; scale='embedding' is for "
                "dense coordinates in memory: use scale='auto', or fill them in"
            )
        center = rows.mean(axis=0)
        turn = np.random.default_rng(ROTATION).standard_normal((len(center),) * 2)
        turn = np.linalg.qr(turn)[0]
        turned = (rows - center) @ turn
        origin = unit_rows(turned).min(axis=0)
        return cls(center, turn, origin, float(np.linalg.norm(turned, axis=1).mean()))

    def apply(self, X: Matrix) -> Matrix:
        turned = (X - like(self.center, X)) @ like(self.turn, X)
        return (unit_rows(turned) - like(self.origin, X)).clip(0)

    def undo(self, Z: Array) -> Array:
        return (Z + self.origin) @ self.turn.T * self.size + self.center


#: Of the random rotation of principal coordinates: the same for the same distances.
ROTATION = 0


class Linked(NamedTuple):
    """Coordinates of fitted samples, and the links they come from (itself included)."""

    Z: Matrix
    closed: sp.csr_array
    own: Array
    discount: Array

    @property
    def shape(self) -> tuple[int, int]:
        return self.Z.shape


@storable
@dataclass(frozen=True)
class LinkScaling(Scaling):
    """Links to samples → closed neighborhoods with unit rows, discounted for hubs."""

    discount: Array

    kind = "links"

    @classmethod
    def fit(cls, X: GraphView) -> LinkScaling:
        A = X.links()
        return cls(discounts(sp.csr_array(A + sp.diags_array(own_links(A)))))

    def apply(self, X: GraphView) -> Matrix | Linked:
        if X.unseen:
            return closed_neighborhoods(X.matrix, self.discount)
        A = X.links()
        own = own_links(A)
        closed = sp.csr_array(A + sp.diags_array(own))
        closed.sort_indices()
        return Linked(closed_neighborhoods(closed, self.discount), closed, own, self.discount)


@storable
@dataclass(frozen=True)
class CoordinateScaling(Scaling):
    """Squared distances to samples → principal coordinates that start at 0."""

    #: Which samples have distances, and how those to them become coordinates.
    known: Array
    map: Array
    means: Array
    origin: Array
    #: s_ii of a kernel; None for distances.
    diagonal: Array | None = None

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "distances" if self.diagonal is None else "kernel"

    @classmethod
    def fit(cls, X: Dissimilarity) -> CoordinateScaling:
        known = X.present()
        squared = X.squared()[np.ix_(known, known)]
        if len(squared) == 0:
            return cls(known, np.zeros((0, 1)), np.zeros(0), np.zeros(1))
        own = X.matrix.diagonal()[known].copy() if isinstance(X, KernelView) else None
        rng = np.random.default_rng(ROTATION)
        return cls(known, *principal_coordinates(squared, rng), own)

    def apply(self, X: Dissimilarity) -> Array:
        if isinstance(X, KernelView) and X.unseen and self.diagonal is not None:
            own = X.own_similarity(self.diagonal)
            S = X.matrix[:, self.known]
            squared = np.maximum(own[:, None] + self.diagonal[None] - 2 * S, 0)
        else:
            squared = X.squared()[:, self.known]
        return np.maximum(-0.5 * (squared - self.means) @ self.map + self.origin, 0)


#: What users may ask for besides "auto", which chooses one of them, and how reports say it.
SCALINGS = {
    "log": "log-transformed",
    "quantile": "scaled by quantiles",
    "sqrt": "square-rooted",
    "embedding": "used as an embedding",
}


def fit_scaling(X: Matrix, present: Array, name: str, kind: str | None = "auto") -> Scaling:
    """How the features of a view are made comparable; ``kind`` is one of `SCALINGS`, "auto" or None."""
    if kind is None:
        return Unscaled()
    if isinstance(X, GraphView):
        return LinkScaling.fit(X)
    if isinstance(X, Dissimilarity):
        return CoordinateScaling.fit(X)
    if kind == "embedding" or (kind == "auto" and is_embedding(X, present, name)):
        return EmbeddingScaling.fit(X, present, name)
    some, whole = present, X
    if is_streamed(X):
        here = np.flatnonzero(present)
        whole = X.take(here[sampled(len(here), X.shape[1], getattr(X, "sample", None))])
        some = np.ones(whole.shape[0], dtype=bool)
    rows = telling_rows(whole, some)
    share, counts = root_share(rows) if kind == "auto" and rows.shape[0] > 0 else (0.0, False)
    if kind == "sqrt" or share == 1 or rows.shape[0] == 0:
        return RootScaling()
    found = RobustScaling.fit(rows, name, kind)
    flat = np.flatnonzero(found.gain == 0)
    if len(some) < present.sum() and len(flat):  # constant in the sample: their range in all rows
        lows, highs = zip(*over(X, _extremes, flat, bool(present.all())), strict=True)
        low, high = np.min(lows, axis=0), np.max(highs, axis=0)
        spread = high - low
        found.low[flat] = low
        found.gain[flat] = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
    spreads = 1 / found.gain[found.gain > 0]
    if share > 0 and len(spreads) and (counts or spreads.max() <= ONE_UNIT * np.median(spreads)):
        known = shape_rows(rows)
        size = np.sqrt(np.nansum(known, axis=1)).mean()
        return PartRootScaling(found, share, float(size))
    return found


def scaled(X: Matrix, scaling: Scaling, present: Array, dtype: np.dtype) -> Matrix:
    """z of a view; rows that are not present are zero."""
    if isinstance(X, Relation):
        found: Any = scaling.apply(X)
        Z = (found.Z if isinstance(found, Linked) else found).astype(dtype)
        if not sp.issparse(Z):
            Z[~present] = 0
        return found._replace(Z=Z) if isinstance(found, Linked) else Z
    if isinstance(X, ScaledThere):
        return X.scaled(scaling, present, dtype)
    if is_tensor(X):
        return engine_part("torch", "distances").scaled_tensor(X, present, scaling, dtype)
    return (ScaledFile if is_streamed(X) else scaled_rows)(X, scaling, present, dtype)


#: Sparse rows that are scaled at a time.
SPARSE_ROWS = 2**13
#: Entries of a sample of rows: what it tells (percentiles, agreement of halves) needs no more.
SAMPLE = 2**22
#: Fewest rows of a sample.
FEWEST = 500


@storable
class ScaledFile(RowSource):
    """z of a view in a file, row by row when read; rows missing there are zero."""

    on_disk = True

    def __init__(self, X: Any, scaling: Scaling, present: Array, dtype: np.dtype):
        self.X, self.scaling, self.present = X, scaling, present
        self.shape, self.dtype, self.sparse = X.shape, np.dtype(dtype), X.sparse

    def read(self, rows: slice) -> Matrix:
        return scaled(self.X.read(rows), self.scaling, self.present[rows], self.dtype)

    def recipe(self, rows: slice) -> Callable[[Matrix], Matrix]:
        """What makes z of these rows of the data; it holds no data."""
        present = self.present[rows]
        return partial(scaled_rows, scaling=self.scaling, present=present, dtype=self.dtype)

    def take(self, rows: Array) -> Matrix:
        return scaled_rows(self.X.take(rows), self.scaling, self.present[rows], self.dtype)


def scaled_rows(X: Matrix, scaling: Scaling, present: Array, dtype: np.dtype) -> Matrix:
    """z of some rows; those missing there are zero.

    Scaled in float64 a block at a time, then cast: float32 could not tell raw numbers of 10⁸ apart.
    """
    if sp.issparse(X):
        parts = [
            scaling.apply(X[b].astype(np.float64, copy=False)).astype(dtype, copy=False)
            for b in blocks(slice(0, max(1, X.shape[0])), SPARSE_ROWS)
        ]
        Z = parts[0] if len(parts) == 1 else sp.csr_array(sp.vstack(parts))
    else:
        Z = np.empty(X.shape, dtype=dtype)
        for b in blocks(slice(0, X.shape[0]), looking_rows(X.shape[1])):
            Z[b] = scaling.apply(X[b].astype(np.float64, copy=False))
    if not sp.issparse(Z):
        Z[~present] = 0
    return Z


def sampled(n: int, n_features: int, size: int | None = None) -> Array:
    """Evenly spaced row numbers, as many as a sample of this many entries may have."""
    most = max(FEWEST, (SAMPLE if size is None else size) // max(1, n_features))
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(int)


def _extremes(block: Matrix, columns: Array, complete: bool) -> tuple[Array, Array]:
    """Smallest and largest value of some features in the rows of a block that are present."""
    part = (block if complete else block[present_rows(block)])[:, columns]
    part = part.toarray() if sp.issparse(part) else on_host(part)
    return part.min(axis=0, initial=np.inf), part.max(axis=0, initial=-np.inf)
