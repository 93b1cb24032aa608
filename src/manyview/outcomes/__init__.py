"""What clusters mean: survival, clinical columns, known classes, and the features that mark them.

Plain functions on labels, usable with any clustering.
"""

from .associate import Association
from .classes import Crosstab, crosstab
from .cox import Cox
from .enrich import ClinicalColumn, Enrichment, enrichment
from .kaplan_meier import Curve
from .logrank import LogRank
from .mark import markers
from .markers_result import Markers, ViewMarkers
from .survival_result import Survival
from .survive import survival
from .table import Table

__all__ = [
    "Association",
    "ClinicalColumn",
    "Cox",
    "Crosstab",
    "Curve",
    "Enrichment",
    "LogRank",
    "Markers",
    "Survival",
    "Table",
    "ViewMarkers",
    "crosstab",
    "enrichment",
    "markers",
    "survival",
]
