"""The commonest cell: one method on one dataset with one seed, scored against the known classes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from manyview.app.compare.methods import settings_of
from manyview.baselines import ORACLES, honest_methods, paper_methods
from manyview.metrics import scores
from manyview.robust import RobustWMNMF
from manyview.wmnmf import WMNMF

from . import shared_fit
from .cells import (
    SLOW,
    TOGETHER,
    Cell,
    Options,
    Tables,
)
from .data import load

LINEAR = ("P-MLRSSC", "C-MLRSSC")
KERNEL = ("P-KMLRSSC", "C-KMLRSSC")
MLRSSC = (*LINEAR, *KERNEL)
#: The settings of MLRSSC: its own defaults, which the paper used, or those its authors chose on the digits.
DEFAULT, TUNED = "default", "digits"
#: Seconds of one fit on one core, roughly: (2000 digits, 5000 synthetic observations).
SECONDS = {
    "MultiNMF1": (45.0, 300.0),
    "MultiNMF2": (45.0, 300.0),
    "P-MLRSSC": (100.0, 0.0),
    "C-MLRSSC": (100.0, 0.0),
    "P-KMLRSSC": (120.0, 0.0),
    "C-KMLRSSC": (120.0, 0.0),
    "NMF-W1": (1.2, 4.5),
    "NMF-W2": (1.2, 4.5),
    "WM-NMF": (1.2, 5.0),
    "RobustWMNMF": (1.9, 9.6),
}
#: The same for the exact variants, whose ADMM does all the iterations it is allowed.
TUNED_SECONDS = {"P-MLRSSC": 8000.0, "C-MLRSSC": 2600.0}


def score(
    dataset: str,
    method: str,
    seed: int,
    params: Mapping[str, Any] | None = None,
    data: str = "",
    tuning: str = DEFAULT,
) -> Tables:
    """The six scores of a clustering, and the view weights where the method has any.

    ``data`` is the fingerprint of a user's dataset: it only tells one such cell from another.
    ``tuning`` names the settings of MLRSSC.
    """
    known = load(dataset)
    shared: dict[str, float] = {}
    if method in MLRSSC:
        model, fitted = _mlrssc(dataset, method, data, tuning)
        started = time.perf_counter()
        labels = model.relabel(seed)
        # What this run would have taken alone, and how much of it all runs have in common.
        seconds, shared = fitted + time.perf_counter() - started, {"seconds_shared": fitted}
        remark = f"{model.n_iter_} iterations" + ("" if model.converged_ else ", not converged")
    else:
        model = make(method, known.n_clusters, seed, params or {})
        started = time.perf_counter()
        if method in ORACLES:
            labels = model.fit_predict(known.views, known.labels)
            remark = f"view {model.best_view_}, chosen by the true classes"
        else:
            labels, remark = model.fit_predict(known.views), ""
        seconds = time.perf_counter() - started
    row = {**scores(known.labels, labels), "remark": remark, "seconds": seconds, **shared}
    tables: Tables = {"": [row | {"params": params_of(model)}]}
    if isinstance(model, WMNMF | RobustWMNMF):
        alpha = zip(model.view_names_in_, model.view_weights_.tolist(), strict=True)
        tables["weights"] = [{"view": str(view), "alpha": value} for view, value in alpha]
    return tables


def params_of(model: Any) -> dict[str, Any]:
    """All parameters in plain JSON, but for the seed, which is told beside them."""
    given = model.get_params(deep=False).items()
    return {name: settings_of(value) for name, value in given if name != "random_state"}


def make(
    method: str, n_clusters: int, seed: int, params: Mapping[str, Any], tuning: str = DEFAULT
) -> Any:
    """An unfitted estimator by the name it has in the tables."""
    if method == "RobustWMNMF":
        return RobustWMNMF(n_clusters, random_state=seed, **params)
    if method == "WM-NMF":
        return WMNMF(n_clusters, random_state=seed, **params)
    return (paper_methods(n_clusters, settings=tuning) | honest_methods(n_clusters))[method](seed)


@lru_cache(maxsize=1)
def _mlrssc(dataset: str, method: str, data: str, tuning: str) -> tuple[Any, float]:
    """The fit all seeds share (ADMM draws nothing at random), and its seconds."""
    known = load(dataset)
    model = make(method, known.n_clusters, 0, {}, tuning)
    found = shared_fit.read(dataset, method, data, tuning)
    if found is None:
        started = time.perf_counter()
        model.find_affinity(known.views)
        found = {
            "affinity": model.affinity_matrix_,
            "n_iter": model.n_iter_,
            "converged": model.converged_,
            "seconds": time.perf_counter() - started,
        }
        shared_fit.write(dataset, method, data, tuning, **found)
    model.affinity_matrix_, model.n_iter_ = found["affinity"], found["n_iter"]
    model.converged_ = found["converged"]
    return model, found["seconds"]


def grid(
    options: Options,
    dataset: str,
    methods: Iterable[str],
    *,
    params: Mapping[str, Any] | None = None,
    labels: Mapping[str, Any] | None = None,
    size: float = 1.0,
    at_most: int | None = None,
    tuning: str = DEFAULT,
    pooled: bool = False,
) -> list[Cell]:
    """A cell per method and replication; ``size`` scales the cost guessed for a dataset.

    With ``pooled``, WM-NMF has more runs than the others.
    """
    cells = []
    for method in methods:
        shared = method in MLRSSC
        seeds = options.pooled() if pooled and method == "WM-NMF" else options.seeds(at_most)
        for run, seed in seeds:
            settings: dict[str, Any] = {"dataset": dataset, "method": method, "seed": seed}
            settings |= {"params": dict(params)} if params else {}
            settings |= {"data": options.lihc} if dataset == "lihc" else {}
            settings |= {"tuning": tuning} if shared else {}
            shown = {"dataset": dataset, "method": method, **(labels or {})}
            shown |= {"run": run, "seed": seed}
            group = f"{method} {dataset} {tuning}" if shared else ""
            slow = shared and tuning == TUNED and method in LINEAR and dataset == "digits"
            cost = _cost(dataset, method, run, tuning, size)
            phase = SLOW if slow else TOGETHER
            cells.append(Cell("fitting.score", settings, shown, cost, group, phase))
    return cells


def _cost(dataset: str, method: str, run: int, tuning: str, size: float) -> float:
    """Seconds of a cell, roughly."""
    if method in MLRSSC and run > 0:
        return 0.5  # after the first, MLRSSC only draws its k-means again
    if method in MLRSSC and not dataset.startswith("digits"):
        return 1.0  # a few hundred observations at most
    small, large = SECONDS.get(method, (0.5, 1.5))
    small = TUNED_SECONDS.get(method, small) if tuning == TUNED else small
    return (large if dataset == "synthetic" else small) * size
