"""Methods for comparison, of the paper, of omics, and simple ones: all with ``fit_predict(views)``."""

from ._base import Baseline
from .catalogue import DESCRIPTIONS, ORACLES, honest_methods, omics_methods, paper_methods
from .fusion import NEMO, SNF
from .graphs import ConcatLeiden, KNNSpectral, SumOfGraphs
from .mlrssc import MLRSSC, CostWarning
from .multinmf import MultiNMF
from .pintmf import PIntMF
from .wrappers import BestSingleView, ConcatViews

__all__ = [
    "DESCRIPTIONS",
    "MLRSSC",
    "NEMO",
    "ORACLES",
    "SNF",
    "Baseline",
    "BestSingleView",
    "ConcatLeiden",
    "ConcatViews",
    "CostWarning",
    "KNNSpectral",
    "MultiNMF",
    "PIntMF",
    "SumOfGraphs",
    "honest_methods",
    "omics_methods",
    "paper_methods",
]
