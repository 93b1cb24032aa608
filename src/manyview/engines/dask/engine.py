"""The engine that leaves passes over rows and the search for neighbours to Dask workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manyview._types import Array, Matrix, Views
from manyview.engines.numpy.engine import HostEngine
from manyview.engines.numpy.neighbors import use_index
from manyview.engines.numpy.presence import refuse_holes
from manyview.engines.numpy.sources import UnitRows
from manyview.engines.protocols import Distances, Engine, Found
from manyview.engines.threads import Threads

from .cluster import Cluster
from .distances import WorkerGeometry, best_of, joint_candidates
from .scaled import ScaledOnWorkers


class DaskEngine(HostEngine):
    """The host's engine with rows of the factorisation on the workers of a cluster."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster

    def loop_views(
        self,
        views: Views,
        fit: Callable[[Views], list[Found]],
        scaled: Callable[[list[Found]], list[Matrix]],
        asked: npt.DTypeLike | None,
        dtype: np.dtype,
    ) -> tuple[list[Matrix], list[Matrix], list[Found]]:
        _, fitted, scalings = super().loop_views(views, fit, scaled, asked, dtype)
        refuse_holes(fitted, views.names)
        return [self.cluster.view(X) for X in fitted], fitted, scalings

    def distances(self, Z: Matrix, present: Array, unit_rows: bool) -> Distances:
        if isinstance(Z, ScaledOnWorkers):
            return WorkerGeometry(self.cluster, Z, present, unit_rows)
        return super().distances(Z, present, unit_rows)

    def fused_nearest(
        self,
        views: list[Any],
        weights: Array,
        k: int,
        neighbors: list[Array],
        seed: int,
        threads: Threads | None,
    ) -> tuple[Array, Array]:
        n = views[0].n_samples
        if use_index(n) and all(isinstance(view, WorkerGeometry) for view in views):
            k = min(k, n - 1)
            joint = joint_candidates(views, weights, k, seed)
            return best_of(views, weights, k, [joint, *neighbors], threads)
        return super().fused_nearest(views, weights, k, neighbors, seed, threads)

    def factor_rows(self, view: Distances) -> Any:
        rows = view.unit_sums()
        # A view with unobserved entries is factorised in this process.
        return self.cluster.view(rows) if isinstance(rows, UnitRows) else rows


if TYPE_CHECKING:  # the type checker compares it with the protocol
    _ENGINE: type[Engine] = DaskEngine
