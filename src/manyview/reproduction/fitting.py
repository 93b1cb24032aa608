"""The commonest cell: one method on one dataset with one seed, scored against the known classes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from manyview.baselines import ORACLES, honest_methods, paper_methods
from manyview.judge.comparison.methods import settings_of
from manyview.methods.robust import RobustWMNMF
from manyview.methods.wmnmf import WMNMF
from manyview.metrics import scores

from . import shared_fit
from .cells import SLOW, TOGETHER, Cell, Options, Tables
from .data import load

LINEAR = ("P-MLRSSC", "C-MLRSSC")
KERNEL = ("P-KMLRSSC", "C-KMLRSSC")
#: Seconds of one fit on one core, roughly: (2000 digits, 5000 synthetic observations).
SECONDS = {
    "MultiNMF1": (45.0, 300.0),
    "MultiNMF2": (45.0, 300.0),
    "P-MLRSSC": (3600.0, 0.0),
    "C-MLRSSC": (1200.0, 0.0),
    "P-KMLRSSC": (150.0, 0.0),
    "C-KMLRSSC": (150.0, 0.0),
    "NMF-W1": (1.2, 4.5),
    "NMF-W2": (1.2, 4.5),
    "WM-NMF": (1.2, 5.0),
    "RobustWMNMF": (1.9, 9.6),
}


def score(
    dataset: str, method: str, seed: int, params: Mapping[str, Any] | None = None, data: str = ""
) -> Tables:
    """The six scores of a clustering, and the view weights where the method has any.

    ``data`` is the fingerprint of a user's dataset: it only tells one such cell from another.
    """
    known = load(dataset)
    shared: dict[str, float] = {}
    if method in (*LINEAR, *KERNEL):
        model, fitted = _mlrssc(dataset, method, data)
        started = time.perf_counter()
        labels = model.relabel(seed)
        # What this run would have taken alone, and how much of it all runs have in common.
        seconds, shared = fitted + time.perf_counter() - started, {"seconds_shared": fitted}
        remark = f"{model.n_iter_} iterations" + ("" if model.converged_ else ", not converged")
    else:
        model = make(method, dataset, known.n_clusters, seed, params or {})
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


def make(method: str, dataset: str, n_clusters: int, seed: int, params: Mapping[str, Any]) -> Any:
    """An unfitted estimator by the name it has in the tables."""
    if method == "RobustWMNMF":
        return RobustWMNMF(n_clusters, random_state=seed, **params)
    if method == "WM-NMF":
        return WMNMF(n_clusters, random_state=seed, **params)
    settings = "digits" if dataset.startswith("digits") else "default"
    return (paper_methods(n_clusters, settings=settings) | honest_methods(n_clusters))[method](seed)


@lru_cache(maxsize=1)
def _mlrssc(dataset: str, method: str, data: str) -> tuple[Any, float]:
    """The fit all seeds share (ADMM draws nothing at random), and its seconds."""
    known = load(dataset)
    model = make(method, dataset, known.n_clusters, 0, {})
    found = shared_fit.read(dataset, method, data)
    if found is None:
        started = time.perf_counter()
        model.find_affinity(known.views)
        found = {
            "affinity": model.affinity_matrix_,
            "n_iter": model.n_iter_,
            "converged": model.converged_,
            "seconds": time.perf_counter() - started,
        }
        shared_fit.write(dataset, method, data, **found)
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
) -> list[Cell]:
    """A cell per method and replication; ``size`` scales the cost guessed for a dataset."""
    cells = []
    for method in methods:
        shared = method in (*LINEAR, *KERNEL)
        for run, seed in options.seeds(at_most):
            settings: dict[str, Any] = {"dataset": dataset, "method": method, "seed": seed}
            settings |= {"params": dict(params)} if params else {}
            settings |= {"data": options.lihc} if dataset == "lihc" else {}
            small, large = SECONDS.get(method, (0.5, 1.5))
            cost = (large if dataset == "synthetic" else small) * size
            if shared and not dataset.startswith("digits"):
                cost = 1.0  # a few hundred observations at most
            if shared and run > 0:
                cost = 0.5  # after the first, MLRSSC only draws its k-means again
            shown = {
                "dataset": dataset,
                "method": method,
                **(labels or {}),
                "run": run,
                "seed": seed,
            }
            group = f"{method} {dataset}" if shared else ""
            phase = SLOW if method in LINEAR and dataset == "digits" else TOGETHER
            cells.append(Cell("fitting.score", settings, shown, cost, group, phase))
    return cells
