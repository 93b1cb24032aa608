"""The engine that leaves the passes of the factorisation to Dask workers; the stages before run here."""

from __future__ import annotations

from typing import Any

from manyview.engines.host import HostEngine
from manyview.engines.numpy.sources import UnitRows
from manyview.engines.protocols import Distances

from .cluster import Cluster


class DaskEngine(HostEngine):
    """The host's engine with rows of the factorisation on the workers of a cluster."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster

    def factor_rows(self, view: Distances) -> Any:
        rows = view.unit_sums()
        # A view with unobserved entries is factorised in this process.
        return self.cluster.view(rows) if isinstance(rows, UnitRows) else rows
