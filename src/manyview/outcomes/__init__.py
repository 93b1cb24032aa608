"""What clusters mean: survival, clinical columns, known classes, and the features and gene
sets that mark them.

Plain functions on labels, usable with any clustering.
"""

from .cohort import predict_cohort
from .enrich import crosstab, enrichment
from .mark import markers
from .sets import gene_sets
from .survive import survival

__all__ = ["crosstab", "enrichment", "gene_sets", "markers", "predict_cohort", "survival"]
