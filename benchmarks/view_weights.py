"""How good is the start under one rule for the view weights or another?

    python benchmarks/view_weights.py --data DIR [--sets NAME ...] [--condition noise_added] [--seeds 3]

DIR holds NAME.npz files (view_<name> arrays and labels), `load.py` and `corrupt.py`. What views say
about each other is measured once; every rule then gives weights, a fused graph, an embedding and the
k-means start, whose ACC, NMI and ARI are printed, and with a condition the weight of the added view.
"""

import argparse
import os
import warnings
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

import manyview as mv
from manyview import fuse as agree
from manyview import fuse as stages
from manyview.engines.numpy.graph import row_contrasts
from manyview.engines.numpy.neighbors import for_all_rows
from manyview.engines.numpy.repeats import distinct
from manyview.maths import agreement as ag
from manyview.views.views import as_views
from quality import best_and_worst, load_set, module


@dataclass(frozen=True)
class Told:
    """What views say about each other: the parts of `agree` that no rule changes."""

    rows: tuple
    halves: np.ndarray
    spread: np.ndarray
    redundancy: np.ndarray
    chance: np.ndarray


DELTA = mv.RobustWMNMF().reliability_weight


def by_eigenvector(told):
    """The rule before: agreement without a unit, its leading eigenvector, distances as they are."""
    leading = np.abs(np.linalg.eigh(ag.agreement_matrix(told.rows, 0.1 * told.halves))[1][:, -1])
    return leading / leading.sum(), np.ones_like(told.spread)


def by_evidence(told):
    """The rule of the library."""
    effects, reliability = ag.effects(told.rows, told.spread), told.halves / told.spread
    weights = ag.view_weights(effects, reliability, told.redundancy, DELTA, told.chance)
    return weights, told.spread


def without_unit(told):
    return by_evidence(replace(told, spread=np.ones_like(told.spread)))


def without_redundancy(told):
    return by_evidence(replace(told, redundancy=np.eye(len(told.spread))))


def with_squared_redundancy(told):
    return by_evidence(replace(told, redundancy=told.redundancy**2))


def by_counts(told, n_counts):
    """Support counted so often: once, or until it is the leading eigenvector."""
    u = told.halves / told.spread
    prior = np.outer(u, u) + np.outer(told.chance, told.chance)
    support = ag.effects(told.rows, told.spread) * (1 - told.redundancy)
    support += prior * DELTA / np.hypot(u, told.chance).max()
    voice, supported = 1 / told.redundancy.sum(axis=1), np.ones(len(u))
    for _ in range(n_counts):
        supported = support @ (voice * supported)
        supported /= supported.sum()
    alpha = supported**2 / (told.redundancy @ supported)
    return alpha / alpha.sum(), told.spread


RULES = {
    "eigenvector": by_eigenvector,
    "evidence": by_evidence,
    "no unit": without_unit,
    "no redundancy": without_redundancy,
    "redundancy²": with_squared_redundancy,
    "one count": partial(by_counts, n_counts=1),
    "many counts": partial(by_counts, n_counts=500),
}


def load_views(data, name, condition):
    views, labels = load_set(data, name)
    if condition == "clean":
        return views, labels, None
    best, worst = best_and_worst(data, name)
    changed, info = module(data / "corrupt.py").corrupt(views, condition, best, worst, 0)
    return changed, labels, info["noise_view"]


def compared(views):
    """What views say about each other, of distinct rows: the parts of `agree` that no rule changes."""
    read = as_views(views, allow_negative=True, allow_missing=True)
    present = stages.quiet_presence(read)
    scalings = stages.fit_scalings(read, present, "auto")
    spaces, repeats = distinct(stages.measure(read, present, scalings, np.dtype(float)))
    n = spaces[0].n_samples
    k = ag.in_proportion(ag.NEIGHBORS, n)
    lists = [view.nearest(k) for view in spaces]
    graphs = [agree.list_graph(near, n) for near in lists]
    neighbors = [for_all_rows(near.rows, near.indices, n) for near in lists]
    spread, redundancy = agree.compare_distances(spaces, neighbors, 0)
    chance = np.sqrt([view.comparable.sum() for view in spaces]) / n
    halves = agree.split_half(spaces, k, 0)
    told = Told(row_contrasts(spaces, graphs), halves, spread, redundancy, chance)
    return present, repeats, spaces, graphs, neighbors, told


def agreement_under(rule, spaces, graphs, neighbors, told):
    alpha, spread = rule(told)
    weights = ag.distance_weights(alpha, spread)
    fused, single = agree.fused_graphs(spaces, weights, neighbors, 0)
    M, none = ag.agreement_matrix(told.rows, told.halves), np.zeros(0)
    return ag.Agreement(
        M, told.halves, told.redundancy, spread, alpha, none, none, graphs, fused, single, alpha
    )


def score(agreement, present, repeats, labels, seed):
    n_clusters, rng = int(labels.max()) + 1, np.random.default_rng(seed)
    P = agree.embed(agreement, n_clusters, rng)
    anywhere = stages.counted(present, agreement.alpha)
    found = stages.start_labels(P, anywhere, n_clusters, rng, repeats)
    found = np.where(anywhere, found if repeats is None else found[repeats.of], n_clusters)
    told = mv.metrics.scores(labels, found)
    return told["acc"], told["nmi"], adjusted_rand_score(labels, found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--sets", nargs="*", default=["digits4", "digits6", "msrcv1_5"])
    parser.add_argument("--condition", default="clean")
    parser.add_argument("--rules", nargs="*", default=list(RULES))
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    table = []
    print(f"{'ACC/NMI/ARI':20}" + "".join(f"{rule:>28}" for rule in args.rules))
    for name in args.sets:
        views, labels, added = load_views(args.data, name, args.condition)
        present, repeats, *parts = compared(views)
        cells, line = [], f"{name:20}"
        for rule in args.rules:
            agreement = agreement_under(RULES[rule], *parts)
            runs = [score(agreement, present, repeats, labels, seed) for seed in range(args.seeds)]
            cells.append(np.mean(runs, axis=0))
            weight = "" if added is None else f" ({agreement.alpha[added]:.3f})"
            line += f"{'/'.join(f'{x:.3f}' for x in cells[-1]) + weight:>28}"
        table.append(cells)
        print(line, flush=True)
    means = ["/".join(f"{x:.3f}" for x in cell) for cell in np.mean(table, axis=0)]
    print(f"{'mean':20}" + "".join(f"{cell:>28}" for cell in means))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
