"""Which numbers of clusters the commands try."""

from __future__ import annotations

import numpy as np

from manyview.data.read import ReadViews
from manyview.engines.numpy.presence import present_rows


def most_clusters(data: ReadViews) -> int:
    """The largest number of clusters tried unless asked: 14, and fewer than samples with data."""
    here = np.any([present_rows(X) for X in data.views.values()], axis=0)
    return max(2, min(14, int(here.sum()) - 1))
