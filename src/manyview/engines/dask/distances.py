"""The distances of a view on Dask workers: neighbors are found there, pairs are measured in the driver."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyview._types import Array
from manyview.engines.numpy.distances import FileGeometry
from manyview.engines.numpy.neighbors import DEPTH, for_all_rows, ranked, use_index
from manyview.engines.numpy.sources import DIRECTIONS, leading_directions
from manyview.engines.threads import Threads

from .cells import nearest_on_workers
from .cluster import Cluster
from .coordinates import Coordinates

#: Candidates asked of workers, per neighbor wanted.
WIDER = 1.5
#: Share of the neighbors in the joint space that is enough: the lists are improved by F itself.
ROUGHLY = 0.75
#: Coordinates in which rows missing in a view are far from everything.
EXTRA = 16


class WorkerGeometry(FileGeometry):
    """Distances along the leading directions; these coordinates are on the workers and here."""

    def __init__(self, cluster: Cluster, Z: Any, present: Array, unit_rows: bool = False):
        self.cluster = cluster
        super().__init__(Z, present, unit_rows)

    def projected(self) -> Array:
        self.held = Coordinates.of(self.cluster, self.source, self.directions)
        return self.held.gathered()

    def search(
        self, rows: Array, k: int, seed: int, threads: Threads | None
    ) -> tuple[Array, Array]:
        wide = min(int(WIDER * k), len(rows) - 1)
        near = rows[nearest_on_workers(self.on_workers(rows), wide, seed)[0]]
        lists = for_all_rows(rows, near, self.n_samples)
        indices, d = ranked([self], np.ones(1), lists, DEPTH, k, threads)
        return indices[rows], d[rows]

    def fused_nearest(
        self,
        views: list[Any],
        weights: Array,
        k: int,
        neighbors: list[Array],
        seed: int,
        threads: Threads | None = None,
    ) -> tuple[Array, Array]:
        """Likewise, among candidates from the workers where all views are there."""
        k = min(k, self.n_samples - 1)
        if not use_index(self.n_samples) or not all(isinstance(v, WorkerGeometry) for v in views):
            return super().fused_nearest(views, weights, k, neighbors, seed, threads)
        candidates = [joint_candidates(views, weights, k, seed), *neighbors]
        # Neighbors in single views are among them: where one view is far more certain they are the ones.
        first, _ = ranked(views, weights, np.hstack(candidates), 0, k, threads)
        return ranked(views, weights, first, DEPTH, k, threads)

    def on_workers(self, rows: Array) -> Coordinates:
        """Coordinates of some rows of this view, not centered."""
        return self.held.only(rows if self.places is None else self.places[rows])

    def for_model(self, sparse: bool) -> FileGeometry:
        kept: Any = FileGeometry.__new__(FileGeometry)
        kept.__dict__.update(super().for_model(sparse).__dict__)
        del kept.cluster, kept.held
        return kept


def joint_candidates(views: list[WorkerGeometry], alpha: Array, k: int, seed: int) -> Array:
    """Rows near every row under F = Σ α_s d^s, nearly: candidates for lists of k.

    Squared Euclidean distances of [√(α_s/mean μ_s) z_s], made on the workers block by block, are nearly F.
    A missing row gets the view's mean and, in extra coordinates, a random vector of squared length α_s/2,
    so that it is about α_s from everything there.
    """
    n = views[0].n_samples
    heard = [(s, a, v) for s, (a, v) in enumerate(zip(alpha, views, strict=True)) if a > 0]
    parts, given = [], []
    for s, a, view in heard:
        if not view.comparable.any():
            continue
        scale = np.sqrt(a / np.mean(view.root_mu[view.comparable] ** 2))
        parts.append(view.on_workers(np.arange(n)))
        given.append((np.float32(scale), np.sqrt(a / 2), view.centre, view.comparable, (seed, s)))
    first, missing = parts[0], any(not here.all() for *_, here, _ in given)
    width = sum(part.shape[1] for part in parts) + EXTRA * missing
    tasks = [
        ([part.blocks[b] for part in parts[1:]], _of_block(given, rows), missing)
        for b, rows in enumerate(first.rows)
    ]
    blocks = first.cluster.begin(first.tasks(_joined, tasks))[0]
    joint = Coordinates(first.cluster, blocks, first.rows, width)
    if width >= 2 * DIRECTIONS:
        joint = joint.along(leading_directions(joint))
    return nearest_on_workers(joint, min(int(WIDER * k), n - 1), seed, ROUGHLY)[0]


def _of_block(given: list[tuple], rows: slice) -> list[tuple]:
    return [
        (*told, here[rows], (*seed, rows.start)) if not here[rows].all() else (*told, None, ())
        for *told, here, seed in given
    ]


def _joined(block: Array, others: list[Array], given: list[tuple], missing: bool) -> Array:
    """The coordinates of all views side by side, scaled; a missing row is in the middle of its view,
    and far from all in coordinates of its own."""
    sides, far = [], np.zeros((len(block), EXTRA), dtype=np.float32)
    for Z, (scale, length, centre, here, seed) in zip([block, *others], given, strict=True):
        side = scale * (Z - centre)
        if here is not None:
            side[~here] = 0
            away = np.random.default_rng(seed).standard_normal((int((~here).sum()), EXTRA))
            away *= length / np.linalg.norm(away, axis=1, keepdims=True)
            far[~here] += away.astype(np.float32)
        sides.append(side)
    return np.hstack([*sides, far] if missing else sides)
