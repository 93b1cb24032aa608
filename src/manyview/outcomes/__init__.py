"""What clusters mean: survival, clinical columns, known classes, and the features that mark them.

Plain functions on labels, usable with any clustering.
"""

from .enrich import Association, ClinicalColumn, Crosstab, Enrichment, crosstab, enrichment
from .mark import Markers, ViewMarkers, markers
from .survive import Cox, Curve, LogRank, Survival, survival

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
    "ViewMarkers",
    "crosstab",
    "enrichment",
    "markers",
    "survival",
]
