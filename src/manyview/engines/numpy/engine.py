"""The engine of this machine: views in memory, in files, or read block by block from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manyview._types import Array, Matrix, Views
from manyview.engines.protocols import Distances, Engine, EngineSpec, Found

from .distances import FileGeometry, Geometry, LinkGeometry, unit_rows_of_file, written_out
from .masked import MaskedView, unit_sum_rows
from .scaling import Linked
from .sources import UnitRows, is_streamed


class HostEngine:
    """An `Engine` of NumPy arrays."""

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

    def distances(self, Z: Matrix, present: Array, unit_rows: bool) -> Distances:
        if isinstance(Z, Linked):
            return LinkGeometry(Z, present)
        if is_streamed(Z):
            return FileGeometry(Z, present, unit_rows)
        return Geometry(written_out(Z), present, unit_rows)

    def factor_rows(self, view: Distances) -> Any:
        return view.unit_sums()


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
