"""What clusters mean: survival, clinical columns, known classes, and the features that mark them.

Plain functions on labels, usable with any clustering.
"""

from .enrich import crosstab, enrichment
from .mark import markers
from .survive import survival

__all__ = ["crosstab", "enrichment", "markers", "survival"]
