"""Cluster samples that are measured in several ways, and learn how much weight each view deserves.

Names are loaded when they are first used: `manyview --help` needs no estimator.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from manyview import baselines, datasets, extend, metrics, outcomes, plot, tl
    from manyview.app.compare.benchmark import compare_datasets
    from manyview.app.compare.comparison import compare
    from manyview.app.run import write_run
    from manyview.covariates import adjust
    from manyview.engines.files.disk import on_disk
    from manyview.engines.numpy.relations import DistanceView, GraphView, KernelView
    from manyview.models import load
    from manyview.reliability import stability
    from manyview.robust import RobustWMNMF
    from manyview.selection import select_n_clusters
    from manyview.wmnmf import WMNMF

#: The module of each name; those that are not listed are modules themselves. No module may have the name of
#: a function: once imported, it would replace the function.
_HOMES = {
    "WMNMF": "wmnmf",
    "DistanceView": "engines.numpy.relations",
    "GraphView": "engines.numpy.relations",
    "KernelView": "engines.numpy.relations",
    "RobustWMNMF": "robust",
    "adjust": "covariates",
    "compare": "app.compare.comparison",
    "compare_datasets": "app.compare.benchmark",
    "load": "models",
    "on_disk": "engines.files.disk",
    "select_n_clusters": "selection",
    "stability": "reliability",
    "write_run": "app.run",
}

__all__ = [
    "WMNMF",
    "DistanceView",
    "GraphView",
    "KernelView",
    "RobustWMNMF",
    "adjust",
    "baselines",
    "compare",
    "compare_datasets",
    "datasets",
    "extend",
    "load",
    "metrics",
    "on_disk",
    "outcomes",
    "plot",
    "select_n_clusters",
    "stability",
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
    return sorted([*__all__, "__version__", "__doc__", "__file__", "__name__", "__path__"])
