"""The engine of this machine: views in memory, in files, or read block by block from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from manyview._types import Array, Matrix, Views
from manyview.engines.protocols import Found

from .distances import (
    FileGeometry,
    Geometry,
    LinkGeometry,
    SparseGeometry,
    along_directions,
    unit_rows_of_file,
    written_out,
)
from .masked import MaskedView, unit_sum_rows
from .scaling import Linked
from .sources import UnitRows, is_streamed


class Engine:
    """Where a fit computes, here on the host: it brings the views there. Distances know where they are.

    Derive from it an engine that computes elsewhere.
    """

    def loop_views(
        self,
        views: Views,
        fit: Callable[[Views], list[Found]],
        scaled: Callable[[list[Found]], list[Matrix]],
        asked: npt.DTypeLike | None,
        dtype: np.dtype,
    ) -> tuple[list[Matrix], list[Matrix], list[Found]]:
        """Scaled views for the loop of WMNMF, the same on the host for its model, and their scalings.

        ``fit`` finds how each view is scaled, ``scaled`` does it on the host.
        """
        scalings = fit(views)
        fitted = scaled(scalings)
        return fitted, fitted, scalings

    def bring(self, views: Views, asked: Any, dtype: np.dtype) -> tuple[Views, np.dtype]:
        """The views where this engine computes, and its precision (``asked`` is the user's wish)."""
        return views, dtype

    def distances(self, Z: Matrix, present: Array, unit_rows: bool) -> Geometry:
        """The distances between rows of z; halves of views with ``unit_rows`` get unit rows again."""
        if isinstance(Z, Linked):
            return LinkGeometry(Z, present)
        if is_streamed(Z):
            return FileGeometry(Z, present, unit_rows)
        if sp.issparse(Z) and along_directions(Z, present):
            return SparseGeometry(sp.csr_array(Z), present, unit_rows)
        return Geometry(written_out(Z), present, unit_rows)

    def factor_rows(self, view: Geometry) -> Any:
        """`Geometry.unit_sums` where the factorization runs."""
        return view.unit_sums()


#: It holds nothing, so that one serves all.
HOST = Engine()


def unit_sums(Z: Matrix, observed: Array | None) -> UnitRows | MaskedView:
    """Rows of z with unit L1 norm, in memory or in a file."""
    return unit_rows_of_file(Z) if is_streamed(Z) else unit_sum_rows(Z, observed)
