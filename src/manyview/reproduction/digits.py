"""The handwritten digits: the paper's table of 13 methods, and the methods it left out."""

from __future__ import annotations

from manyview.baselines import honest_methods, paper_methods

from .cells import Cell, Experiment, Options
from .fitting import LINEAR, grid

METHODS = tuple(paper_methods(10))
HONEST = ("WM-NMF", *honest_methods(10), "RobustWMNMF")
#: Digits of each class for the linear MLRSSC where all 2000 are not asked for.
FEW = 50


def cells(options: Options) -> list[Cell]:
    whole = METHODS if options.linear_mlrssc == "full" else [m for m in METHODS if m not in LINEAR]
    found = grid(options, "digits", whole)
    if options.linear_mlrssc == "small":
        found += grid(options, f"digits-{FEW}", LINEAR, size=1 / 60)
    return found


def honest_cells(options: Options) -> list[Cell]:
    return grid(options, "digits", HONEST)


DIGITS = Experiment(
    "digits",
    "Handwritten digits: the paper's table",
    "2000 digits, views fou, pix, zer and fac, 10 clusters; p=5, β=0.01, 5 neighbours; MLRSSC with its "
    "authors' settings for the digits; best single views are chosen by the true classes, as in the paper.",
    cells,
)
HONEST_DIGITS = Experiment(
    "honest",
    "Handwritten digits: what the paper left out",
    "The same 2000 digits; plain methods on scaled features, and RobustWMNMF with its defaults.",
    honest_cells,
)
