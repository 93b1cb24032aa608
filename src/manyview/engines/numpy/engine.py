"""The engine of this machine: views in memory, in files, or read block by block from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from manyview._types import Array, Matrix, Views
from manyview.engines.protocols import Distances, Engine, EngineSpec, Found, ScaledThere, Scaling
from manyview.engines.threads import Threads

from . import graph as host_graph
from .distances import FileGeometry, Geometry, LinkGeometry, unit_rows_of_file, written_out
from .masked import MaskedView, unit_sum_rows
from .neighbors import fused_lists
from .relations import Relation
from .scaling import (
    Linked,
    RobustScaling,
    ScaledFile,
    fit_relation,
    fit_scaling,
    relation_rows,
    scaled_rows,
)
from .sources import UnitRows, is_streamed


class HostEngine:
    """An `Engine` of NumPy arrays."""

    weighs_rows = True
    tensors = False

    def loop_views(
        self,
        views: Views,
        fit: Callable[[Views], list[Found]],
        scaled: Callable[[list[Found]], list[Matrix]],
        asked: npt.DTypeLike | None,
        dtype: np.dtype,
    ) -> tuple[list[Matrix], list[Matrix], list[Found]]:
        scalings = fit(views)
        fitted = scaled(scalings)
        return fitted, fitted, scalings

    def bring(self, views: Views, asked: Any, dtype: np.dtype) -> tuple[Views, np.dtype]:
        return views, dtype

    def fit_scaling(self, X: Matrix, present: Array, name: str, kind: str) -> Scaling:
        if isinstance(X, Relation):
            return fit_relation(X)
        return (fit_scaling if is_streamed(X) else RobustScaling.fit)(X, present, name, kind)

    def scaled(self, X: Matrix, scaling: Scaling | None, present: Array, dtype: np.dtype) -> Matrix:
        if isinstance(X, Relation):
            return relation_rows(X, scaling, present, dtype)  # type: ignore[arg-type]
        if isinstance(X, ScaledThere):
            return X.scaled(scaling, present, dtype)
        if is_streamed(X):
            return ScaledFile(X, scaling, present, dtype)
        return scaled_rows(X, scaling, present, dtype)

    def distances(self, Z: Matrix, present: Array, unit_rows: bool) -> Distances:
        if isinstance(Z, Linked):
            return LinkGeometry(Z, present)
        if is_streamed(Z):
            return FileGeometry(Z, present, unit_rows)
        return Geometry(written_out(Z), present, unit_rows)

    def fused_nearest(
        self,
        views: list[Any],
        weights: Array,
        k: int,
        neighbors: list[Array],
        seed: int,
        threads: Threads | None,
    ) -> tuple[Array, Array]:
        return fused_lists(views, weights, k, seed, threads)

    def graph(self, rows: Array, indices: Array, weights: Array, n: int) -> sp.csr_array:
        return host_graph.symmetric(rows, indices, weights, n)

    def block_step(self, threads: Threads | None) -> Any:
        return partial(host_graph.block_step, threads)

    def row_contrasts(
        self, views: list[Distances], graphs: list[Any], threads: Threads | None = None
    ) -> Array:
        return host_graph.row_contrasts(views, graphs, threads)

    def mean_distance(self, view: Distances, graph: Any) -> float | None:
        return host_graph.mean_distance(view, graph)

    def factor_rows(self, view: Distances) -> Any:
        return view.unit_sums()

    def beside(self, array: Array, model: Array) -> Array:
        return array

    def in_precision(self, array: Array, dtype: np.dtype) -> Array:
        return array.astype(dtype)

    def graph_on_host(self, graph: Any) -> sp.csr_array:
        return graph


if TYPE_CHECKING:  # the type checker compares it with the protocol
    _ENGINE: type[Engine] = HostEngine

#: It holds nothing, so that one serves all.
HOST = HostEngine()


def unit_sums(Z: Matrix, observed: Array | None) -> UnitRows | MaskedView:
    """Rows of z with unit L1 norm, in memory or in a file."""
    return unit_rows_of_file(Z) if is_streamed(Z) else unit_sum_rows(Z, observed)


def opened(device: str, forget: Callable[[], None]) -> AbstractContextManager[Engine]:
    return nullcontext(HOST)


SPEC = EngineSpec(opened, takes_holes=True, takes_relations=True)
