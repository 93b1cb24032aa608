"""Do the weights fall where noise is? Noise on some observations, in place of a view, or as a view."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from manyview.metrics import scores

from .cells import (
    Cell,
    Experiment,
    Options,
    Row,
    Tables,
)
from .data import load
from .fitting import SECONDS, make, params_of

METHODS = ("WM-NMF", "RobustWMNMF")
#: Share of the observations that get noise, and its sd in units of the feature's own.
SHARE, LEVEL = 0.2, 3.0
RUNS = 10
#: The noisy views of the synthetic data, and the views they are noisy copies of.
COPIES = {"view5": "view1", "view6": "view3"}


class Fit(NamedTuple):
    """What is looked at of a fit."""

    alpha: np.ndarray
    w: np.ndarray
    labels: np.ndarray
    seconds: float
    params: dict[str, Any]


def weights(
    dataset: str, method: str, scenario: str, view: str, seed: int, share: float, level: float
) -> Tables:
    """α of every view; and for each noisy view its α and mean w, with noise and without.

    ``w_noisy`` is the mean over the observations with noise (all of a replaced or an added view),
    ``w_clean`` over the others, where there are any. ``alpha_before`` and ``w_before`` are those of the
    same view, and of the same observations, in the fit without noise with the same seed. An added view
    is not in that fit: its reference are equal weights, 1/(number of views), and the mean w of the
    other views of its own fit.
    """
    known = load(dataset)
    views, noisy = corrupted(
        known.views, scenario, view, np.random.default_rng([seed, 1]), share, level
    )
    clean = _clean(dataset, method, seed)
    fit = clean if scenario == "clean" else _fit(views, dataset, method, known.n_clusters, seed)
    alpha, w = fit.alpha, fit.w
    common: Row = {**scores(known.labels, fit.labels), "n_views": len(views)}
    common |= {"seconds": fit.seconds, "params": fit.params}
    rows: list[Row] = []
    for s, name in enumerate(views):
        if name not in noisy:
            continue
        has = noisy[name]
        row: Row = {"of_view": name, "alpha": float(alpha[s])}
        row |= {"rank": int((alpha > alpha[s]).sum()) + 1, "w_noisy": float(w[has, s].mean())}
        row["w_clean"] = None if has.all() else float(w[~has, s].mean())
        if scenario == "added":
            before = 1 / len(views), np.delete(w, s, axis=1).mean()
        else:
            before = clean.alpha[s], clean.w[has, s].mean()
        row |= {"alpha_before": float(before[0]), "w_before": float(before[1])}
        rows.append(row | common)
    pairs = zip(views, alpha.tolist(), strict=True)
    return {
        "": rows or [{"of_view": "", "alpha": None} | common],
        "weights": [{"of_view": name, "alpha": a} for name, a in pairs],
    }


@lru_cache(maxsize=1)
def _clean(dataset: str, method: str, seed: int) -> Fit:
    """The fit without noise that all scenarios of a seed are held against."""
    known = load(dataset)
    views = dict(known.views)
    for name, source in COPIES.items() if dataset == "synthetic" else ():
        views[name] = views[source]
    return _fit(views, dataset, method, known.n_clusters, seed)


def _fit(
    views: dict[str, np.ndarray], dataset: str, method: str, n_clusters: int, seed: int
) -> Fit:
    model = make(method, n_clusters, seed, {})
    started = time.perf_counter()
    labels = model.fit_predict(views)
    seconds = time.perf_counter() - started
    return Fit(model.view_weights_, model.sample_weights_, labels, seconds, params_of(model))


def corrupted(
    views: dict[str, np.ndarray],
    scenario: str,
    view: str,
    rng: np.random.Generator,
    share: float = SHARE,
    level: float = LEVEL,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Views with noise, and by view which observations have it there."""
    views = dict(views)
    n = len(next(iter(views.values())))
    if scenario == "clean":
        return views, {}
    if scenario == "as given":  # the synthetic data: views 5 and 6 are noisy on their first rows
        first = zip(COPIES, (0.06, 0.2), strict=True)
        return views, {name: np.arange(n) < round(part * n) for name, part in first}
    if scenario == "some observations":
        noisy = rng.permutation(n) < round(share * n)
        X = views[view].copy()
        X[noisy] += level * X.std(axis=0) * rng.standard_normal((noisy.sum(), X.shape[1]))
        views[view] = np.maximum(X, 0)
        return views, {view: noisy}
    source = views[view] if view in views else next(iter(views.values()))
    # Every feature drawn anew over its own range: the scale of a view, and nothing of its clusters.
    views[view] = rng.uniform(source.min(axis=0), source.max(axis=0), source.shape)
    return views, {view: np.ones(n, bool)}


def scenarios() -> list[tuple[str, str, str]]:
    """Dataset, scenario, view concerned."""
    names = list(load("digits").views)
    return [
        ("digits", "clean", ""),
        *[("digits", "some observations", name) for name in names],
        *[("digits", "replaced", name) for name in names],
        ("digits", "added", "noise"),
        ("synthetic", "as given", ""),
    ]


def cells(options: Options) -> list[Cell]:
    most = {"digits": 2, "synthetic": 1} if options.quick else {"digits": RUNS, "synthetic": 3}
    found = []
    for dataset, scenario, view in scenarios():
        for method in METHODS:
            for run, seed in options.seeds(most[dataset]):
                about = {"dataset": dataset, "method": method, "scenario": scenario, "view": view}
                settings = about | {"seed": seed, "share": SHARE, "level": LEVEL}
                labels = about | {"run": run, "seed": seed}
                # In one process, the scenarios of a seed share the fit without noise.
                group = f"noise {dataset} {method} {seed}"
                cost = 2 * SECONDS[method][1] if dataset == "synthetic" else SECONDS[method][0]
                found.append(Cell("noise.weights", settings, labels, cost, group))
    return found


NOISE = Experiment(
    "noise",
    "Do the weights fall where the noise is?",
    "Digits, at most 10 seeds: noise of 3 standard deviations on a random 20 % of the observations of one "
    "view; one view replaced by uniform noise over each feature's range; one such view added. Synthetic "
    "data, at most 3 seeds: views 5 and 6 as given, with noise on 6 % and 20 % of the observations. Each "
    "beside the fit of the same seed without noise, on the synthetic data with exact copies instead; an "
    "added view beside equal α and the mean w of the other views.",
    cells,
)
