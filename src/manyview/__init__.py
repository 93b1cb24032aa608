"""manyview: cluster observations measured in several ways, and learn whom to trust.

Names are loaded when they are first asked for: `manyview --help` needs no estimator.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__

if TYPE_CHECKING:
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
    from manyview.app.run import write_run
    from manyview.covariates import Adjusted, adjust
    from manyview.engines.files.disk import on_disk
    from manyview.engines.numpy.relations import DistanceView, GraphView, KernelView
    from manyview.models import load
    from manyview.reliability import Stability, stability
    from manyview.robust import RobustWMNMF
    from manyview.selection import NoClustersWarning, Selection, select_n_clusters
    from manyview.views.annotate import annotate
    from manyview.views.views import as_views
    from manyview.wmnmf import WMNMF

    from ._types import CollapseWarning, Stop
    from .app.compare.comparison import Comparison, compare

#: Where a name comes from; modules are themselves. No module may have the name of a function: once it is
#: imported, it would be found in the function's place.
_HOMES = {
    "WMNMF": "wmnmf",
    "Adjusted": "covariates",
    "CollapseWarning": "_types",
    "Comparison": "app.compare.comparison",
    "DistanceView": "engines.numpy.relations",
    "GraphView": "engines.numpy.relations",
    "KernelView": "engines.numpy.relations",
    "NoClustersWarning": "selection",
    "RobustWMNMF": "robust",
    "Selection": "selection",
    "Stability": "reliability",
    "Stop": "_types",
    "adjust": "covariates",
    "annotate": "views.annotate",
    "as_views": "views.views",
    "compare": "app.compare.comparison",
    "load": "models",
    "on_disk": "engines.files.disk",
    "select_n_clusters": "selection",
    "stability": "reliability",
    "write_run": "app.run",
}

__all__ = [
    "WMNMF",
    "Adjusted",
    "CollapseWarning",
    "Comparison",
    "DistanceView",
    "GraphView",
    "KernelView",
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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOMES.get(name, name)}")
    found = getattr(module, name) if name in _HOMES else module
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
