"""What the cells of the experiments compute: each task gives rows by the name of their table.

The table "" is the experiment's main one. `TASKS` has the tasks by the names that stored cells know.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from manyview._types import Array, Factors, FitResult
from manyview.base import generator
from manyview.baselines import ORACLES, honest_methods, paper_methods
from manyview.datasets import Dataset, load_handwritten, load_nutrimouse, make_synthetic
from manyview.engines.affinity import affinity
from manyview.engines.numpy.rows import Rows
from manyview.initialize import starting_factors
from manyview.io import checksum
from manyview.labels import assign, largest_first, n_neighbors
from manyview.maths import equations as eq
from manyview.maths.solvers import Multiplicative
from manyview.maths.spectrum import part_sizes
from manyview.metrics import scores
from manyview.regularizers import Graph, Term
from manyview.robust import RobustWMNMF
from manyview.wmnmf import WMNMF, Loop

from . import costs
from .costs import BETA, INNER, P, scaled

Row = dict[str, Any]
Tables = dict[str, list[Row]]

MLRSSC = ("P-MLRSSC", "C-MLRSSC", "P-KMLRSSC", "C-KMLRSSC")
#: The settings of MLRSSC: its own defaults, which the paper used, or those its authors chose on the digits.
DEFAULT, TUNED = "default", "digits"
#: Terms of the objective.
TERMS = ("reconstruction", "consensus", "regularizer", "objective")
#: Rounds × iterations per view and round. The paper's figure counts updates of everything once.
SCHEMES = {"recipe": (2, 30), "one at a time": (100, 1)}
#: How clusters are read from V*: the estimator's ``assign_labels`` and ``connect``.
READINGS = {
    "spectral": ("spectral", False),
    "njw": ("njw", False),
    "spectral, connected": ("spectral", True),
    "njw, connected": ("njw", True),
}
#: Share of the samples that get noise, and its sd in units of the feature's own.
SHARE, LEVEL = 0.2, 3.0
#: The noisy views of the synthetic data, and the views they are noisy copies of.
COPIES = {"view5": "view1", "view6": "view3"}
#: Rounds of a fit that goes on after the recipe's two.
ROUNDS = 20
#: (tU, V/t) for these t.
SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
#: The user's data, set in every process that runs cells.
GIVEN: Dataset | None = None


# --- Data ---


@lru_cache(maxsize=2)
def load(name: str) -> Dataset:
    """digits, digits-50 (the first 50 of each class), synthetic, nutrimouse or lihc, nonnegative."""
    if name == "digits":
        return load_handwritten(views="paper")
    if name.startswith("digits-"):
        return _first_of_each(load_handwritten(views="paper"), int(name.split("-")[1]))
    if name == "synthetic":
        return make_synthetic(random_state=0)
    if name == "nutrimouse":
        return nonnegative(load_nutrimouse())
    if name == "lihc" and GIVEN is not None:
        return GIVEN
    raise ValueError(f"there is no dataset {name!r} here")


def nonnegative(dataset: Dataset) -> Dataset:
    """Views with negative entries shifted, each feature to smallest value 0: factorizations need it."""
    views = {name: X - X.min(axis=0) if X.min() < 0 else X for name, X in dataset.views.items()}
    return replace(dataset, views=views)


def read_given(folder: Path) -> tuple[str, Dataset]:
    """The user's files as the experiments use them, and a fingerprint of these."""
    from .lihc import load_lihc  # needs pandas

    dataset = nonnegative(load_lihc(folder))
    codes = np.unique(dataset.labels, return_inverse=True)[1]
    used = replace(dataset, labels=codes, sample_names=None)
    return checksum.of_arrays([*used.views.values(), codes], used.views), used


def _first_of_each(dataset: Dataset, n: int) -> Dataset:
    classes = np.unique(dataset.labels)
    rows = np.concatenate([np.flatnonzero(dataset.labels == c)[:n] for c in classes])
    views = {name: X[rows] for name, X in dataset.views.items()}
    return replace(
        dataset, views=views, labels=dataset.labels[rows], sample_names=None, name=f"digits-{n}"
    )


# --- One method on one dataset, scored against the known classes ---


def score(
    dataset: str, method: str, seed: int, params: Mapping[str, Any] | None = None, data: str = ""
) -> Tables:
    """The six scores of a clustering, and the view weights where the method has any.

    ``data`` is the fingerprint of a user's dataset: it only tells one such cell from another.
    """
    known = load(dataset)
    model = make(method, known.n_clusters, seed, params or {})
    started = time.perf_counter()
    labels = model.fit_predict(known.views, *((known.labels,) if method in ORACLES else ()))
    row: Row = {**scores(known.labels, labels), "remark": ""}
    row |= {"seconds": time.perf_counter() - started, "params": params_of(model)}
    if method in ORACLES:
        row["remark"] = f"view {model.best_view_}, chosen by the true classes"
    if isinstance(model, WMNMF):
        last = {name: float(values[-1]) for name, values in model.history_.items()}
        n = int((model.history_["view"] >= 0).sum())
        row["consensus_share"] = last["consensus"] / last["objective"]
        row["remark"] = f"{model.n_iter_} rounds, {n} iterations"
    tables: Tables = {"": [row]}
    if isinstance(model, WMNMF | RobustWMNMF):
        alpha = zip(model.view_names_in_, model.view_weights_.tolist(), strict=True)
        tables["weights"] = [{"view": str(view), "alpha": value} for view, value in alpha]
    return tables


def relabeled(
    dataset: str, method: str, seeds: Sequence[int], tuning: str = DEFAULT, data: str = ""
) -> Tables:
    """The scores of MLRSSC: ADMM draws nothing at random, so one fit has its k-means for every seed."""
    known = load(dataset)
    model = make(method, known.n_clusters, 0, {}, tuning)
    started = time.perf_counter()
    model.find_affinity(known.views)
    shared = time.perf_counter() - started
    remark = f"{model.n_iter_} iterations" + ("" if model.converged_ else ", not converged")
    rows: list[Row] = []
    for run_, seed in enumerate(seeds):
        started = time.perf_counter()
        found = scores(known.labels, model.relabel(seed))
        # What this run would have taken alone.
        seconds = shared + time.perf_counter() - started
        rows.append({"run": run_, "seed": seed, **found, "remark": remark, "seconds": seconds})
    return {"": [row | {"params": params_of(model)} for row in rows]}


def params_of(model: Any) -> dict[str, Any]:
    """All parameters as JSON has them, but for the seed, which has a column of its own."""
    plain = (str, int, float, bool, type(None))
    given = model.get_params(deep=False).items()
    return {k: v if isinstance(v, plain) else repr(v) for k, v in given if k != "random_state"}


def make(
    method: str, n_clusters: int, seed: int, params: Mapping[str, Any], tuning: str = DEFAULT
) -> Any:
    """An unfitted estimator by the name it has in the tables."""
    own = {"RobustWMNMF": RobustWMNMF, "WM-NMF": WMNMF}
    if method in own:
        return own[method](n_clusters, random_state=seed, **params)
    return (paper_methods(n_clusters, settings=tuning) | honest_methods(n_clusters))[method](seed)


# --- WM-NMF round by round ---


class Rounds:
    """The state of a fit that can be looked at after every round; labels as the estimator's."""

    def __init__(self, views: Any, n_clusters: int, seed: int):
        self.n_clusters, self.Xs = n_clusters, scaled(views)
        self.terms: list[Term] = [Graph().prepare(X) for X in self.Xs]
        self.rng = generator(seed)
        self.start: Factors = starting_factors(
            self.Xs, "gnmf", n_clusters, self.terms, Multiplicative(), P, self.rng
        )

    def each(self, n_rounds: int, inner_iter: int = INNER, **settings: Any) -> Iterator[FitResult]:
        """Fits of one round each, every one from where the last ended: the loop keeps nothing else."""
        factors = self.start
        for _ in range(n_rounds):
            given = {"p": P, "beta": BETA, "max_iter": 1, "inner_iter": inner_iter}
            loop = Loop(self.Xs, self.terms, Multiplicative(), **(given | settings))
            result = loop.run(factors)
            factors = result.factors
            yield result

    def labels(self, factors: Factors, method: str = "spectral", connect: bool = False) -> Array:
        # A copy: the draws must be those of a fit that ends here.
        rng = deepcopy(self.rng)
        return largest_first(
            assign(factors.consensus, self.n_clusters, method, rng, connect=connect)
        )


def terms(dataset: str, scheme: str, seed: int, data: str = "") -> Tables:
    """Terms after every inner iteration (recipe), or after every round of one iteration per view."""
    known = load(dataset)
    n_rounds, inner = SCHEMES[scheme]
    fit = Rounds(known.views, known.n_clusters, seed)
    rows: list[Row] = []
    for round_, result in enumerate(fit.each(n_rounds, inner), start=1):
        history = result.history
        # Entry 0 is where the round before ended; a round's last entry follows the weights.
        entries = range(int(bool(rows)), len(history["round"])) if scheme == "recipe" else (-1,)
        for i in entries:
            view = int(history["view"][i])
            rows.append(
                {
                    "iteration": len(rows) if scheme == "recipe" else round_,
                    "round": round_,
                    "step": "weights" if view < 0 else list(known.views)[view],
                    **{term: float(history[term][i]) for term in TERMS},
                }
            )
    return {"": rows}


def readings(dataset: str, seed: int) -> Tables:
    """The scores of every reading of one fit, and whether a small part of V*'s graph is cut off."""
    known = load(dataset)
    fit = Rounds(known.views, known.n_clusters, seed)
    *_, last = fit.each(2)
    V = last.factors.consensus
    smallest = int(np.min(part_sizes(affinity(V, n_neighbors(len(V)), "binary"))))
    parts = {"smallest_part": smallest, "cut_off": smallest < len(V) / known.n_clusters / 4}
    rows = []
    for name, how in READINGS.items():
        found = scores(known.labels, fit.labels(last.factors, *how))
        rows.append({"reading": name, **found, "failed": float(found["acc"] < 0.9), **parts})
    return {"": rows}


def collapse(dataset: str, seed: int) -> Tables:
    """α, scores and objective after every round of the recipe."""
    known = load(dataset)
    fit = Rounds(known.views, known.n_clusters, seed)
    rows: list[Row] = []
    weights: list[Row] = []
    for round_, result in enumerate(fit.each(ROUNDS), start=1):
        alpha = result.factors.alpha.tolist()
        found = scores(known.labels, fit.labels(result.factors))
        objective = float(result.history["objective"][-1])
        rows.append({"round": round_, **found, "objective": objective, "max_alpha": max(alpha)})
        weights += [
            {"round": round_, "view": view, "alpha": a}
            for view, a in zip(known.views, alpha, strict=True)
        ]
    return {"": rows, "weights": weights}


def escape(dataset: str, seed: int) -> Tables:
    """Without rescaling: the sizes of U and V by round; and O at (tU, V/t) for a fitted U, V."""
    known = load(dataset)
    fit = Rounds(known.views, known.n_clusters, seed)
    rows: list[Row] = []
    for rescale in (True, False):
        for round_, result in enumerate(fit.each(ROUNDS, rescale=rescale), start=1):
            U, V = result.factors.U, result.factors.V
            terms = {name: float(result.history[name][-1]) for name in ("regularizer", "objective")}
            rows.append(
                {
                    "rescale": rescale,
                    "round": round_,
                    "column_sum_of_U": float(np.mean([Us.sum(axis=0).mean() for Us in U])),
                    "size_of_V": float(np.mean([Vs.mean() for Vs in V])),
                    **terms,
                }
            )
    *_, last = fit.each(2)
    return {"sizes": rows, "scales": [_at(fit, last.factors, t) for t in SCALES]}


def _at(fit: Rounds, factors: Factors, t: float) -> Row:
    """Every term of O computed anew at (tU, V/t)."""
    U, V = [t * Us for Us in factors.U], [Vs / t for Vs in factors.V]
    errors = np.array(
        [
            eq.reconstruction(Rows(X, Multiplicative()).all_residuals(U[s], V[s]), factors.w[:, s])
            for s, X in enumerate(fit.Xs)
        ]
    )
    gaps = np.array(
        [
            eq.consensus_gap(Vs, Us.sum(axis=0), factors.consensus)
            for Us, Vs in zip(U, V, strict=True)
        ]
    )
    penalties = np.array([g.value(Vs) for g, Vs in zip(fit.terms, V, strict=True)])
    return {"t": t, **eq.objective(errors, gaps, factors.alpha, P, penalties, BETA)}


# --- Do the weights fall where noise is? ---


def weights(dataset: str, method: str, seed: int, share: float, level: float) -> Tables:
    """α of every noisy view and its mean w, with noise and without, for every scenario.

    ``w_noisy`` is the mean over the samples with noise (all of a replaced or an added view),
    ``w_clean`` over the others, where there are any. ``alpha_before`` and ``w_before`` are those of the
    same view and samples in the fit without noise with the same seed (of the synthetic data, with exact
    copies instead of noisy ones). An added view is not in that fit: it is compared with equal weights,
    1/(number of views), and with the mean w of the other views of its own fit.
    """
    known = load(dataset)
    clean = dict(known.views)
    scenarios = [("clean", ""), *(("some samples", v) for v in clean), *(("replaced", v) for v in clean),
                 ("added", "noise")]  # fmt: skip
    if dataset == "synthetic":
        clean |= {name: clean[source] for name, source in COPIES.items()}
        scenarios = [("as given", "")]

    def fit(views: Mapping[str, Array]) -> tuple[Any, Row]:
        model = make(method, known.n_clusters, seed, {})
        labels = model.fit_predict(dict(views))
        return model, {**scores(known.labels, labels), "params": params_of(model)}

    before, plain = fit(clean)
    rows: list[Row] = []
    for scenario, view in scenarios:
        draw = np.random.default_rng([seed, 1])
        views, noisy = corrupted(known.views, scenario, view, draw, share, level)
        after, found = (before, plain) if scenario == "clean" else fit(views)
        alpha, w = after.view_weights_, after.sample_weights_
        for s, name in enumerate(views):
            if name not in noisy:
                continue
            has = noisy[name]
            row: Row = {"scenario": scenario, "of_view": name, "alpha": float(alpha[s])}
            row |= {"w_noisy": float(w[has, s].mean())}
            row["w_clean"] = None if has.all() else float(w[~has, s].mean())
            if scenario == "added":
                row |= {"alpha_before": 1 / len(views), "w_before": np.delete(w, s, 1).mean()}
            else:
                row |= {"alpha_before": before.view_weights_[s]}
                row |= {"w_before": before.sample_weights_[has, s].mean()}
            rows.append(
                {k: float(v) if isinstance(v, np.floating) else v for k, v in row.items()} | found
            )
        if not noisy:
            rows.append({"scenario": scenario, "of_view": "", "alpha": None} | found)
    return {"": rows}


def corrupted(
    views: Mapping[str, np.ndarray],
    scenario: str,
    view: str,
    rng: np.random.Generator,
    share: float = SHARE,
    level: float = LEVEL,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Views with noise, and by view which samples have it there."""
    views = dict(views)
    n = len(next(iter(views.values())))
    if scenario == "clean":
        return views, {}
    if scenario == "as given":  # the synthetic data: views 5 and 6 are noisy on their first rows
        first = zip(COPIES, (0.06, 0.2), strict=True)
        return views, {name: np.arange(n) < round(part * n) for name, part in first}
    if scenario == "some samples":
        noisy = rng.permutation(n) < round(share * n)
        X = views[view].copy()
        X[noisy] += level * X.std(axis=0) * rng.standard_normal((noisy.sum(), X.shape[1]))
        views[view] = np.maximum(X, 0)
        return views, {view: noisy}
    source = views[view] if view in views else next(iter(views.values()))
    # Every feature drawn anew over its own range: the scale of a view, and nothing of its clusters.
    views[view] = rng.uniform(source.min(axis=0), source.max(axis=0), source.shape)
    return views, {view: np.ones(n, bool)}


TASKS: dict[str, Callable[..., Tables]] = {
    "fitting.score": score,
    "mlrssc.relabeled": relabeled,
    "convergence.terms": terms,
    "seeds.readings": readings,
    "degeneracy.collapse": collapse,
    "degeneracy.escape": escape,
    "noise.weights": weights,
    "operations.counts": lambda dataset, **_: costs.counts(load(dataset).views),
    "runtime.ours": costs.ours,
    "runtime.numpy": costs.numpy,
}
