"""Figures of models and of what their clusters mean (matplotlib, from the extra "app").

Every function but `overview` draws into the Axes given as ``ax`` (by default the current one) and
returns it. ``colors`` (a dict of cluster or level → color, or a list in their order) and ``labels``
(a dict of cluster or level → text) replace the colors and names that are used by default.
"""

from . import _draw
from ._draw import PALETTE as COLORS
from .heatmap import heatmap
from .meaning import crosstab, enrichment, gene_sets, hazards, leave_view_out, survival
from .model import (
    agreement,
    consensus,
    convergence,
    embedding,
    missing_views,
    overview,
    sample_weights,
    top_features,
    view_weights,
)

pyplot = _draw.pyplot

__all__ = [
    "COLORS",
    "agreement",
    "consensus",
    "convergence",
    "crosstab",
    "embedding",
    "enrichment",
    "gene_sets",
    "hazards",
    "heatmap",
    "leave_view_out",
    "missing_views",
    "overview",
    "sample_weights",
    "survival",
    "top_features",
    "view_weights",
]
