"""manyview: cluster observations measured in several ways, and learn whom to trust."""

from . import baselines, datasets, metrics, outcomes, plot, regularizers
from ._types import CollapseWarning, Stop
from .annotate import annotate
from .compare import Comparison, compare
from .engines.disk import on_disk
from .estimators import WMNMF
from .robust import RobustWMNMF
from .run import write_run
from .selection import NoClustersWarning, Selection, select_n_clusters
from .stability import Stability, stability
from .store import load
from .views import as_views

__version__ = "0.1.0"
__all__ = [
    "WMNMF",
    "CollapseWarning",
    "Comparison",
    "NoClustersWarning",
    "RobustWMNMF",
    "Selection",
    "Stability",
    "Stop",
    "annotate",
    "as_views",
    "baselines",
    "compare",
    "datasets",
    "load",
    "metrics",
    "on_disk",
    "outcomes",
    "plot",
    "regularizers",
    "select_n_clusters",
    "stability",
    "write_run",
]
