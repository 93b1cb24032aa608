"""Do the weights fall where noise is? Noise on some observations, in place of a view, or as a view."""

from __future__ import annotations

import time

import numpy as np

from ..metrics import scores
from .cells import Cell, Experiment, Options, Row, Tables
from .data import load
from .fitting import SECONDS, make

METHODS = ("WM-NMF", "RobustWMNMF")
#: Share of the observations that get noise, and its sd in units of the feature's own.
SHARE, LEVEL = 0.2, 3.0
RUNS = 10


def weights(dataset: str, method: str, scenario: str, view: str, seed: int) -> Tables:
    """α of every view; of each noisy view its rank, and the mean w of noisy and clean observations."""
    known = load(dataset)
    views, noisy = corrupted(known.views, scenario, view, np.random.default_rng([seed, 1]))
    started = time.perf_counter()
    model = make(method, dataset, known.n_clusters, seed, {})
    labels = model.fit_predict(views)
    seconds = time.perf_counter() - started
    alpha, w = model.view_weights_, model.sample_weights_
    common = {**scores(known.labels, labels), "n_views": len(views), "seconds": seconds}
    rows: list[Row] = []
    for name, rows_of_noise in noisy.items():
        s = list(views).index(name)
        row: Row = {"of_view": name, "alpha": float(alpha[s])}
        row |= {"rank": int((alpha > alpha[s]).sum()) + 1, "w_noisy": None, "w_clean": None}
        if not rows_of_noise.all():
            row["w_noisy"] = float(w[rows_of_noise, s].mean())
            row["w_clean"] = float(w[~rows_of_noise, s].mean())
        rows.append(row | common)
    pairs = zip(views, alpha.tolist(), strict=True)
    return {
        "": rows or [{"of_view": "", "alpha": None} | common],
        "weights": [{"of_view": name, "alpha": a} for name, a in pairs],
    }


def corrupted(
    views: dict[str, np.ndarray], scenario: str, view: str, rng: np.random.Generator
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Views with noise, and by view which observations have it there."""
    views = dict(views)
    n = len(next(iter(views.values())))
    if scenario == "clean":
        return views, {}
    if scenario == "as given":  # the synthetic data: views 5 and 6 are noisy on their first rows
        first = {"view5": 0.06, "view6": 0.2}
        return views, {name: np.arange(n) < round(share * n) for name, share in first.items()}
    if scenario == "some observations":
        noisy = rng.permutation(n) < round(SHARE * n)
        X = views[view].copy()
        X[noisy] += LEVEL * X.std(axis=0) * rng.standard_normal((noisy.sum(), X.shape[1]))
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
                settings = {
                    "dataset": dataset,
                    "method": method,
                    "scenario": scenario,
                    "view": view,
                }
                labels = settings | {"run": run, "seed": seed}
                cost = SECONDS[method][dataset == "synthetic"]
                found.append(Cell("noise.weights", settings | {"seed": seed}, labels, cost))
    return found


NOISE = Experiment(
    "noise",
    "Do the weights fall where the noise is?",
    "Digits, at most 10 seeds: noise of 3 standard deviations on a random 20 % of the observations of one "
    "view; one view replaced by uniform noise over each feature's range; one such view added. Synthetic "
    "data, at most 3 seeds: views 5 and 6 as given, with noise on 6 % and 20 % of the observations.",
    cells,
)
