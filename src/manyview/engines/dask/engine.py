"""The engine that leaves passes over rows to Dask workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from manyview._types import Matrix, Views
from manyview.engines.numpy.distances import Geometry
from manyview.engines.numpy.engine import Engine
from manyview.engines.numpy.presence import refuse_holes
from manyview.engines.numpy.sources import UnitRows
from manyview.engines.protocols import Found

from .cluster import Cluster


class DaskEngine(Engine):
    """The host's engine with rows of the factorization on the workers of a cluster."""

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

    def factor_rows(self, view: Geometry) -> Any:
        rows = view.unit_sums()
        # A view with unobserved entries is factorized in this process.
        return self.cluster.view(rows) if isinstance(rows, UnitRows) else rows
