"""manyview: cluster observations measured in several ways, and learn whom to trust."""

from manyview import (
    baselines,
    datasets,
    metrics,
    outcomes,
    plot,
    regularizers,
    solvers,
    sources,
    testing,
    tl,
)
from manyview.covariates import Adjusted, adjust
from manyview.data.annotate import annotate
from manyview.data.views import as_views
from manyview.engines.files.disk import on_disk
from manyview.judge.selection import NoClustersWarning, Selection, select_n_clusters
from manyview.judge.stability import Stability, stability
from manyview.methods.robust import RobustWMNMF
from manyview.methods.wmnmf import WMNMF
from manyview.output.run import write_run
from manyview.storage.store import load

from ._types import CollapseWarning, Stop
from ._version import __version__ as __version__
from .compare import Comparison, compare

__all__ = [
    "WMNMF",
    "Adjusted",
    "CollapseWarning",
    "Comparison",
    "NoClustersWarning",
    "RobustWMNMF",
    "Selection",
    "Stability",
    "Stop",
    "adjust",
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
    "solvers",
    "sources",
    "stability",
    "testing",
    "tl",
    "write_run",
]
