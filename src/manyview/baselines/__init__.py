"""The methods the paper compares to, and strong simple ones: all with ``fit_predict(views)``."""

from .catalogue import DESCRIPTIONS, ORACLES, honest_methods, paper_methods
from .graphs import KNNSpectral, SumOfGraphs
from .mlrssc import MLRSSC, CostWarning
from .multinmf import MultiNMF
from .wrappers import BestSingleView, ConcatViews

__all__ = [
    "DESCRIPTIONS",
    "MLRSSC",
    "ORACLES",
    "BestSingleView",
    "ConcatViews",
    "CostWarning",
    "KNNSpectral",
    "MultiNMF",
    "SumOfGraphs",
    "honest_methods",
    "paper_methods",
]
