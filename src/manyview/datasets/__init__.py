"""Data to try the methods on: generators and two shipped datasets; missing views and splits for benchmarks.

Every generator and loader returns a `Dataset`: `views` (name to matrix, samples in rows), `labels`,
`description`, and names of features and samples where they are known.
"""

from ._cells import make_single_cells
from ._cohort import make_cohort
from ._dataset import Dataset
from ._missing import missing_views, remove_views, split_samples
from ._shipped import load_handwritten, load_nutrimouse
from ._synthetic import NoisyView, make_synthetic

__all__ = [
    "Dataset",
    "NoisyView",
    "load_handwritten",
    "load_nutrimouse",
    "make_cohort",
    "make_single_cells",
    "make_synthetic",
    "missing_views",
    "remove_views",
    "split_samples",
]
