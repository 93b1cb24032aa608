"""Batches: the coordinates of every view in which cells of several batches lie side by side.

The coordinates of a row in all views together are moved by a shift of its batch, then by what is left
between batches in each cluster. The shift of a batch is the one that puts most of its k-means centers
next to centers of other batches: types that one batch lacks take no part, and move with the others.
What is left is a ridge regression on the batch within each of many soft clusters, as in Harmony
(Korsunsky et al. 2019), but nothing rewards clusters for holding all batches: that would merge types
which only one batch has.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans

from manyview._types import Array, Matrix, storable
from manyview._warn import warn_user

from .distances import Geometry
from .masked import unit_sum_rows
from .sources import leading_directions, project

#: Rows for each k-means center of a batch, most centers, and most rows that are looked at for them.
CENTER_ROWS, MOST_CENTERS, CENTERED_ROWS = 15, 30, 6000
#: Most soft clusters in which batches are compared, and how soft they are: the squared distance between
#: unit vectors at which membership falls by e. Both are Harmony's.
MOST_CLUSTERS, SOFTNESS = 100, 0.1
#: Rows that the ridge adds to each batch in a cluster: batches with few rows there are hardly moved.
RIDGE = 1.0
#: Rounds of clusters and regressions, and of centers within a round.
ROUNDS, STEPS = 5, 3
#: Fewest rows that tell the shift of a batch.
FEWEST = 30
#: Centers of two batches are next to each other up to this many times the usual squared distance of centers
#: of one batch: effects differ from type to type. With 1, two large types that one batch each lacks were
#: matched in 5 of 12 synthetic sets with such effects, with 4 and with 8 in none.
NEXT_TO = 4.0
#: Of equally good shifts the smallest wins.
SHORTEST = 1e-3
#: Centers of a group are mostly within this many times that distance of each other. Synthetic batches
#: with a smaller share of such centers than `FEW_SHARED` mostly have merged types
#: (`benchmarks/single_cell.py --batches`).
SAME, FEW_SHARED = 2.0, 0.5


@storable
@dataclass(frozen=True)
class Directions:
    """How scaled rows of one view become coordinates, which all views have in one unit."""

    directions: Array
    center: Array
    means: Array
    unit: float

    @classmethod
    def of(cls, Z: Matrix, present: Array, seed: int = 0) -> Directions:
        rows, means = _filled(Z, None)
        rows = rows if present.all() else rows[present]
        directions = leading_directions(rows)
        if directions.shape[0] > directions.shape[1]:
            # Any halves of the directions see the same structure.
            turn = np.random.default_rng(seed).standard_normal((directions.shape[1],) * 2)
            directions = directions @ np.linalg.qr(turn)[0]
        along = project(rows, directions).astype(float)
        center = along.mean(axis=0)
        size = float(((along - center) ** 2).sum(axis=1).mean())
        return cls(directions, center, means, 1 / np.sqrt(size) if size > 0 else 1.0)

    def coordinates(self, Z: Matrix, present: Array) -> Array:
        """Coordinates of rows; 0, the middle, where the view is missing."""
        along = project(_filled(Z, self.means)[0], self.directions).astype(float)
        return np.where(present[:, None], (along - self.center) * self.unit, 0)

    def moved(self, Z: Matrix, by: Array) -> Matrix:
        """Dense rows of features as far as their coordinates were moved; sparse ones stay as they are."""
        if sp.issparse(Z):
            return Z
        return (Z - (by / self.unit) @ self.directions.T).astype(Z.dtype)


def _filled(Z: Matrix, means: Array | None) -> tuple[Matrix, Array]:
    """Rows with the mean of a feature where it is unobserved, and these means."""
    if not isinstance(Z, np.ndarray):
        return Z, np.zeros(0)
    holes = np.isnan(Z)
    if means is None or not means.size:
        known = np.maximum((~holes).sum(axis=0), 1)
        means = np.where(holes, 0, Z).sum(axis=0, dtype=float) / known
    return (np.where(holes, means, Z) if holes.any() else Z), means


@storable
@dataclass(frozen=True)
class Batches:
    """What moves rows of each batch, also of batches that were not in the fit."""

    names: tuple[str, ...]
    views: tuple[Directions, ...]
    #: The shift of every batch.
    shifts: Array
    #: Unit vectors of the soft clusters (K×D), their means, and how each batch differs there (K×B×D).
    clusters: Array
    means: Array
    effects: Array
    #: Centers of all rows next to which an unseen batch is put, and their squared distance.
    centers: Array
    mass: Array
    near: float
    #: How much of every batch and of larger ones has a counterpart in the other, after the shift.
    shared: Array

    def tell_few_shared(self) -> None:
        """Warn of batches that seem to share few groups with larger ones."""
        for name, share in zip(self.names, self.shared, strict=True):
            _tell_few_shared(name, share)

    def move(
        self, Zs: Sequence[Matrix], present: Sequence[Array], batch: Sequence[Any]
    ) -> tuple[list[Array], list[Matrix]]:
        """Coordinates of unseen rows in every view, and their features."""
        before, labels = _joint(self.views, Zs, present), np.asarray(batch)
        Y = before.copy()
        for name in dict.fromkeys(labels):
            rows = np.flatnonzero(labels == name)
            if name in self.names:
                b = self.names.index(name)
                Y[rows] = self._settled(Y[rows] + self.shifts[b], self.effects[:, b])
                continue
            centers, mass = _centers(Y[rows])
            shift = _shift(self.centers, self.mass, centers, mass, self.near)
            moved = Y[rows] + shift
            if len(rows) >= FEWEST:
                share = _shared(self.centers, self.mass, centers + shift, mass, self.near)
                _tell_few_shared(str(name), share, "the samples of the fit")
            # What is left in each cluster, whose means stay as they are.
            R = _memberships(moved, self.clusters)
            left = (R.T @ moved - R.sum(axis=0)[:, None] * self.means) / (
                R.sum(axis=0)[:, None] + RIDGE
            )
            Y[rows] = self._settled(moved, left)
        return _by_view(self.views, Zs, before, Y)

    def _settled(self, moved: Array, effects: Array) -> Array:
        """Rows less the effects of the clusters in which they end up."""
        Y = moved
        for _ in range(STEPS):
            Y = moved - _memberships(Y, self.clusters) @ effects
        return Y


def aligned(
    Zs: Sequence[Matrix], present: Sequence[Array], batch: Array
) -> tuple[Batches, list[Array], list[Matrix]]:
    """What moves the rows of every batch, and all rows in every view: coordinates, and features."""
    names, codes, sizes = np.unique(batch, return_inverse=True, return_counts=True)
    views = tuple(Directions.of(Z, here) for Z, here in zip(Zs, present, strict=True))
    before = Y = _joint(views, Zs, present)
    shifts = np.zeros((len(names), Y.shape[1]))
    parts = [_centers(Y[codes == b]) for b in range(len(names))]
    near = NEXT_TO * _typical_gap([centers for centers, _ in parts])
    order = np.argsort(-sizes, kind="stable")
    centers, mass = parts[order[0]]
    shared = np.ones(len(names))
    for b in order[1:]:
        own, share = parts[b]
        shifts[b] = _shift(centers, mass, own, share, near)
        if sizes[b] >= FEWEST:
            shared[b] = _shared(centers, mass, own + shifts[b], share, near)
        centers, mass = np.vstack([centers, own + shifts[b]]), np.append(mass, share)
        centers, mass = _merged(centers, mass)
    moved = Y + shifts[codes]
    Y, clusters, means, effects = _compared(moved, codes, len(names))
    called = tuple(map(str, names))
    found = Batches(called, views, shifts, clusters, means, effects, centers, mass, near, shared)
    return found, *_by_view(views, Zs, before, Y)


def _joint(views: Sequence[Directions], Zs: Sequence[Matrix], present: Sequence[Array]) -> Array:
    """Coordinates of rows in all views together."""
    parts = zip(views, Zs, present, strict=True)
    return np.hstack([view.coordinates(Z, here) for view, Z, here in parts])


def _by_view(
    views: Sequence[Directions], Zs: Sequence[Matrix], before: Array, Y: Array
) -> tuple[list[Array], list[Matrix]]:
    """Coordinates and features of every view after rows were moved from ``before`` to ``Y``."""
    ends = np.cumsum([view.directions.shape[1] for view in views])[:-1]
    by = np.split(before - Y, ends, axis=1)
    rows = [view.moved(Z, part) for view, Z, part in zip(views, Zs, by, strict=True)]
    return np.split(Y, ends, axis=1), rows


def _compared(moved: Array, codes: Array, n_batches: int) -> tuple[Array, Array, Array, Array]:
    """Rows less what their batch differs by in soft clusters; these, their means, the differences."""
    n, D = moved.shape
    K, Y = int(np.clip(n // CENTER_ROWS, 1, MOST_CLUSTERS)), moved
    some = _evenly(n, CENTERED_ROWS)
    clusters = KMeans(K, n_init=1, random_state=0).fit(_unit(Y[some])).cluster_centers_
    means, effects = np.zeros((K, D)), np.zeros((K, n_batches, D))
    for _ in range(ROUNDS):
        N = _unit(Y)
        for _ in range(STEPS):
            R = _memberships(N, _unit(clusters))
            clusters = R.T @ N
        clusters = _unit(clusters)
        R = _memberships(N, clusters)
        count = np.zeros((K, n_batches))
        total = np.zeros((K, n_batches, D))
        for b in range(n_batches):
            part = R[codes == b]
            count[:, b], total[:, b] = part.sum(axis=0), part.T @ moved[codes == b]
        # Ridge with a free mean: [N, n; nᵀ, diag(n + 1)] of every cluster.
        A = np.zeros((K, n_batches + 1, n_batches + 1))
        A[:, 0, 0], A[:, 0, 1:], A[:, 1:, 0] = count.sum(axis=1) + 1e-9, count, count
        A[:, np.arange(1, n_batches + 1), np.arange(1, n_batches + 1)] = count + RIDGE
        solved = np.linalg.solve(A, np.concatenate([total.sum(axis=1)[:, None], total], axis=1))
        means, effects = solved[:, 0], solved[:, 1:]
        Y = moved.copy()
        for b in range(n_batches):
            Y[codes == b] -= R[codes == b] @ effects[:, b]
    return Y, clusters, means, effects


def _memberships(Y: Array, clusters: Array) -> Array:
    """Soft memberships of rows in clusters; rows of R sum to 1."""
    gap = 2 * (1 - _unit(Y) @ clusters.T)
    R = np.exp((gap.min(axis=1, keepdims=True) - gap) / SOFTNESS)
    return R / R.sum(axis=1, keepdims=True)


def _unit(Y: Array) -> Array:
    length = np.linalg.norm(Y, axis=1, keepdims=True)
    return Y / np.where(length > 0, length, 1)


def _evenly(n: int, count: int) -> Array:
    return np.unique(np.linspace(0, n - 1, min(n, count)).astype(int))


def _centers(Y: Array) -> tuple[Array, Array]:
    """k-means centers of the rows of a batch, and the share of its rows in each."""
    some = Y[_evenly(len(Y), CENTERED_ROWS)]
    K = min(int(np.clip(len(Y) // CENTER_ROWS, 2, MOST_CENTERS)), len(np.unique(some, axis=0)))
    model = KMeans(K, n_init=3, random_state=0).fit(some)
    return model.cluster_centers_, np.bincount(model.labels_, minlength=K) / len(some)


def _merged(centers: Array, mass: Array) -> tuple[Array, Array]:
    """At most `MOST_CENTERS` centers of centers."""
    if len(centers) <= 2 * MOST_CENTERS:
        return centers, mass
    model = KMeans(2 * MOST_CENTERS, n_init=3, random_state=0).fit(centers, sample_weight=mass)
    return model.cluster_centers_, np.bincount(model.labels_, mass, 2 * MOST_CENTERS)


def _squared(A: Array, B: Array) -> Array:
    d = (A * A).sum(axis=1)[:, None] + (B * B).sum(axis=1) - 2 * A @ B.T
    return np.maximum(d, 0)


def _typical_gap(parts: list[Array]) -> float:
    """Median squared distance of centers to the next one of their batch."""
    gaps = []
    for centers in parts:
        if len(centers) > 1:
            gaps.append(
                (_squared(centers, centers) + np.diag(np.full(len(centers), np.inf))).min(axis=1)
            )
    return max(float(np.median(np.concatenate(gaps))), 1e-12) if gaps else 1.0


def _shift(there: Array, weight: Array, centers: Array, mass: Array, near: float) -> Array:
    """The shift that puts most mass of ``centers`` next to those that are there.

    Tried are all that put one center on another, none, and the difference of the means.
    """
    D = centers.shape[1]
    middle = weight @ there / weight.sum() - mass @ centers / mass.sum()
    tried = np.vstack([np.zeros(D), middle, (there[:, None] - centers).reshape(-1, D)])
    support = [mass @ np.exp(-_squared(centers + s, there).min(axis=1) / near) for s in tried]
    length = (tried**2).sum(axis=1)
    shift = tried[np.argmax(np.array(support) - SHORTEST * length / max(length.max(), 1e-12))]
    for _ in range(10):
        gap = _squared(centers + shift, there)
        w = mass * np.exp(-gap.min(axis=1) / near)
        if w.sum() > 0:
            shift = w @ (there[gap.argmin(axis=1)] - centers) / w.sum()
    return shift


def _shared(there: Array, weight: Array, centers: Array, mass: Array, near: float) -> float:
    """The share of two sets of centers that has a counterpart in the other, mean of both."""
    gap, same = _squared(centers, there), near * SAME / NEXT_TO
    one, other = (w @ (gap.min(axis=a) < same) / w.sum() for a, w in ((1, mass), (0, weight)))
    return float(one + other) / 2


def _tell_few_shared(name: str, share: float, others: str = "larger batches") -> None:
    if share < FEW_SHARED:
        warn_user(
            f"after alignment only {share:.0%} of batch {name!r} and {others} have a counterpart in the "
            "other: they seem to have few clusters in common, or differ in more than a shift. Alignment "
            "may have merged different clusters; compare with a fit without batches, or fit this batch "
            "by itself"
        )


@storable
class BatchGeometry(Geometry):
    """Distances between rows in coordinates in which batches lie side by side; parts are of features."""

    takes_holes = False

    def __init__(
        self,
        Y: Array,
        present: Array,
        source: Matrix,
        batch: Array | None,
        mass: Array | None = None,
    ):
        super().__init__(Y, present, False, mass)
        self.source, self.batch = source, batch

    def distinct(self, first: Array, mass: Array | None) -> Geometry:
        new: Any = super().distinct(first, mass)
        new.source = self.source[first]
        new.batch = None if self.batch is None else self.batch[first]
        return new

    def rows(self, chosen: Array) -> Geometry:
        own, mass = self.source[chosen], self.mass_of(chosen)
        return BatchGeometry(self.Z[chosen], self.present[chosen], own, None, mass)

    def half(self, columns: Array) -> Geometry:
        return Geometry(self.Z[:, columns], self.present, False, self.mass)

    def unit_sums(self) -> Any:
        if sp.issparse(self.source):
            return unit_sum_rows(self.source, None)
        holes = np.isnan(self.source)
        return unit_sum_rows(np.where(holes, 0, self.source), ~holes if holes.any() else None)

    def for_model(self, sparse: bool) -> Geometry:
        return copy(self)
