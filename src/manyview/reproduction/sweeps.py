"""One parameter of WM-NMF varies, the others stay at p=5, β=0.01, K=10: the paper's tuning figures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from .cells import Cell, Experiment, Options
from .fitting import grid

#: The paper's values of the estimator's parameters.
P = (2, 4, 5, 8, 11)
BETA = (0.005, 0.010, 0.015, 0.020, 0.025)
K = (8, 9, 10, 11, 12)
DEFAULTS = {"p": 5, "beta": 0.01, "n_components": 10}


def cells(parameter: str, values: Sequence[float], options: Options) -> list[Cell]:
    found = []
    for dataset, at_most in (("digits", None), ("synthetic", 1 if options.quick else None)):
        for value in values:
            # At its default the cell is that of the tables, and is not run twice.
            params = {} if value == DEFAULTS[parameter] else {parameter: value}
            found += grid(
                options,
                dataset,
                ["WM-NMF"],
                params=params,
                labels={"value": value},
                at_most=at_most,
            )
    return found


def _experiment(name: str, parameter: str, values: Sequence[float], title: str) -> Experiment:
    rest = ", ".join(f"{key}={value}" for key, value in DEFAULTS.items() if key != parameter)
    about = (
        f"WM-NMF on the digits and the synthetic data; {parameter} varies, {rest}; always 10 clusters. "
        "With fewer than 10 replications, one on the synthetic data."
    )
    return Experiment(name, title, about, partial(cells, parameter, values))


SWEEP_P = _experiment("p", "p", P, "Tuning p: how sparse the view weights are")
SWEEP_BETA = _experiment("beta", "beta", BETA, "Tuning β: the weight of the graph")
SWEEP_K = _experiment("k", "n_components", K, "Tuning K: the number of components")
