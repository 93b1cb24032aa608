"""The synthetic data: four clean views and two with noise on some observations."""

from __future__ import annotations

from manyview.baselines import honest_methods

from .cells import Cell, Experiment, Options
from .fitting import grid

#: Without MLRSSC (dense 5000×5000 arrays) and MultiNMF (minutes a run), and without spectral clustering
#: of raw features, whose kernel is 0 for all pairs at these distances.
METHODS = (
    "BSV-kmeans",
    "ConcatK",
    "NMF-W1",
    "NMF-W2",
    "WM-NMF",
    *honest_methods(10),
    "RobustWMNMF",
)


def cells(options: Options) -> list[Cell]:
    return grid(options, "synthetic", METHODS)


SYNTHETIC = Experiment(
    "synthetic",
    "Synthetic data",
    "5000 observations, 10 Gaussian clusters, views of 100, 150, 50 and 200 features, and noisy copies of "
    "the first (noise on 300 observations) and the third (on 1000); one dataset, seed 0. MLRSSC needs "
    "dense 5000×5000 arrays and MultiNMF minutes a run: both are left out here, as is spectral "
    "clustering of raw features, whose kernel exp(−d²) vanishes at these distances.",
    cells,
)
