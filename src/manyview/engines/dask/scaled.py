"""Scaled rows of a view on Dask workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from manyview._types import Matrix
from manyview.engines.numpy.presence import present_rows
from manyview.engines.numpy.scaling import ScaledFile, scaled_rows


class ScaledOnWorkers(ScaledFile):
    """z of rows on other machines, which are scaled and worked on there."""

    def each(self, work: Callable, *args: Any) -> list[Any]:
        """work(z of a piece, *args) of consecutive pieces."""
        complete = bool(self.present.all())
        return self.X.each(_on_scaled, self.scaling, complete, self.dtype, work, *args)


def _on_scaled(
    X: Matrix, scaling: Any, complete: bool, dtype: np.dtype, work: Callable, *args: Any
) -> Any:
    """Work on z of a piece; rows of zeros are missing, unless all rows of the view are there."""
    present = np.ones(X.shape[0], dtype=bool) if complete else present_rows(X)
    return work(scaled_rows(X, scaling, present, dtype), *args)
