"""The sections of the page of a fit: figures, tables, and what they mean in plain words."""

from .certainty import sure
from .clusters import clusters
from .features import features
from .making import baseline, chosen, convergence, data
from .reliance import reliance
from .summary import in_short
from .views import views

__all__ = [
    "baseline",
    "chosen",
    "clusters",
    "convergence",
    "data",
    "features",
    "in_short",
    "reliance",
    "sure",
    "views",
]
