"""The sections of the page of a fit: figures, tables, and what they mean in plain words."""

from .certainty import sure
from .classes import classes
from .clinical import clinical
from .clusters import clusters
from .features import features
from .making import (
    baseline,
    chosen,
    convergence,
    data,
)
from .methods import methods
from .reliance import reliance
from .summary import in_short
from .survival import survival
from .views import views

__all__ = [
    "baseline",
    "chosen",
    "classes",
    "clinical",
    "clusters",
    "convergence",
    "data",
    "features",
    "in_short",
    "methods",
    "reliance",
    "sure",
    "survival",
    "views",
]
