"""Boxplots per score on omics data: the user's LIHC files, and the small set that is shipped."""

from __future__ import annotations

from manyview.baselines import honest_methods, paper_methods

from .cells import Cell, Experiment, Options
from .fitting import grid

METHODS = (*paper_methods(2), *honest_methods(2), "RobustWMNMF")


def lihc_cells(options: Options) -> list[Cell]:
    return grid(options, "lihc", METHODS, size=0.2)


def nutrimouse_cells(options: Options) -> list[Cell]:
    return grid(options, "nutrimouse", METHODS, size=0.05)


LIHC = Experiment(
    "lihc",
    "LIHC: liver tumours and normal tissue",
    "The user's own files: gene expression, copy number and methylation, the 100 most variable features of "
    "each; features of views with negative values are shifted to minimum 0. MLRSSC with its defaults.",
    lihc_cells,
    needs_data=True,
)
NUTRIMOUSE = Experiment(
    "nutrimouse",
    "Nutrimouse: a small omics set that is shipped",
    "40 mice, gene expression and fatty acids, two genotypes; the LIHC figure's form on data anyone has. "
    "Features of views with negative values are shifted to minimum 0. MLRSSC with its defaults.",
    nutrimouse_cells,
)
