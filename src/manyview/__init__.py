"""manyview: cluster observations measured in several ways, and learn whom to trust."""

from . import datasets, metrics, regularizers
from ._types import CollapseWarning, Stop
from .estimators import WMNMF
from .robust import RobustWMNMF
from .views import as_views

__version__ = "0.1.0"
__all__ = [
    "WMNMF",
    "CollapseWarning",
    "RobustWMNMF",
    "Stop",
    "as_views",
    "datasets",
    "metrics",
    "regularizers",
]
