"""How good is the start under one rule for the view weights or another?

    python benchmarks/view_weights.py --data DIR [--sets NAME ...] [--condition noise_added] [--seeds 3]

DIR holds NAME.npz files (view_<name> arrays and labels), `load.py` and `corrupt.py`. What views say
about each other is measured once; every rule then gives weights, a fused graph, an embedding and the
k-means start, whose ACC, NMI and ARI are printed, and with a condition the weight of the added view.
"""

import argparse
import os
import warnings
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

import manyview as mv
from manyview.engines.numpy.lists import for_all_rows, fused_lists, view_lists
from manyview.maths import agreement as ag
from manyview.maths.spectrum import normalized
from manyview.methods.assign import kmeans
from quality import DIGITS, best_and_worst, module


def by_eigenvector(rows, halves, spread, redundancy):
    """The rule before: agreement without a unit, its leading eigenvector, distances as they are."""
    return ag.perron(ag.agreement_matrix(rows, 0.1 * halves)), np.ones_like(spread)


def by_evidence(rows, halves, spread, redundancy):
    """The rule of the library."""
    delta = mv.RobustWMNMF().reliability_weight
    weights = ag.view_weights(ag.effects(rows, spread), halves / spread, redundancy, delta)
    return weights, spread


def without_unit(rows, halves, spread, redundancy):
    return by_evidence(rows, halves, np.ones_like(spread), redundancy)


def without_redundancy(rows, halves, spread, redundancy):
    return by_evidence(rows, halves, spread, np.eye(len(spread)))


def with_squared_redundancy(rows, halves, spread, redundancy):
    return by_evidence(rows, halves, spread, redundancy**2)


RULES = {
    "eigenvector": by_eigenvector,
    "evidence": by_evidence,
    "no unit": without_unit,
    "no redundancy": without_redundancy,
    "redundancy²": with_squared_redundancy,
}


def load_views(data, name, condition):
    stored = data / f"{'handwritten6' if name in DIGITS else name}.npz"
    views, labels = module(data / "load.py").load(stored)
    names = DIGITS.get(name, tuple(views))
    views, labels = [views[v] for v in names], np.unique(labels, return_inverse=True)[1]
    if condition == "clean":
        return views, labels, None
    dense = [X.toarray() if sp.issparse(X) else X for X in views]
    best, worst = best_and_worst(data, name)
    changed, info = module(data / "corrupt.py").corrupt(dense, condition, best, worst, 0)
    return changed, labels, info["noise_view"]


def stage_0(views):
    """The parts of `agreement.agree` that no rule changes."""
    model = mv.RobustWMNMF()
    read = model._read(views, reset=True)
    geometry = model._geometries(read, model._presence(read))
    n = geometry[0].n_samples
    k = ag.in_proportion(ag.NEIGHBORS, n)
    lists = [view_lists(view, k, 0) for view in geometry]
    graphs = [ag.self_tuned(indices, d, n, rows) for rows, indices, d in lists]
    neighbors = [for_all_rows(rows, indices, n) for rows, indices, _ in lists]
    spread, redundancy = ag.compare_distances(geometry, neighbors, 0)
    told = ag.row_contrasts(geometry, graphs), ag.split_half(geometry, k, 0), spread, redundancy
    return geometry, graphs, neighbors, told


def agreement_under(rule, geometry, graphs, neighbors, told):
    alpha, spread = rule(*told)
    n = geometry[0].n_samples
    sizes = [ag.in_proportion(k, n) for k in (*ag.SCALES, ag.NEIGHBORS)]
    weights = ag.distance_weights(alpha, spread)
    indices, F = fused_lists(geometry, weights, max(sizes), neighbors, 0)
    scales = [normalized(ag.self_tuned(indices[:, :k], F[:, :k], n)) for k in sizes]
    empty = np.zeros((0, 0))
    parts = ag.Agreement(empty, empty, empty, spread, alpha, empty, empty, graphs, empty, empty)
    return replace(parts, fused=sum(scales[:-1]) / len(ag.SCALES), fused_single=scales[-1])


def score(agreement, present, labels, seed):
    n_clusters, rng = int(labels.max()) + 1, np.random.default_rng(seed)
    P = ag.embed(agreement, n_clusters, rng)
    anywhere = present @ agreement.alpha > 1e-3
    found = np.full(len(labels), n_clusters)
    found[anywhere] = kmeans(P[anywhere], n_clusters, rng, 30)
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
    print(f"{'ACC/NMI/ARI':20}" + "".join(f"{rule:>24}" for rule in args.rules))
    for name in args.sets:
        views, labels, added = load_views(args.data, name, args.condition)
        geometry, *rest = stage_0(views)
        present = np.column_stack([view.present for view in geometry])
        cells, line = [], f"{name:20}"
        for rule in args.rules:
            agreement = agreement_under(RULES[rule], geometry, *rest)
            runs = [score(agreement, present, labels, seed) for seed in range(args.seeds)]
            cells.append(np.mean(runs, axis=0))
            weight = "" if added is None else f" ({agreement.alpha[added]:.3f})"
            line += f"{'/'.join(f'{x:.3f}' for x in cells[-1]) + weight:>24}"
        table.append(cells)
        print(line, flush=True)
    means = ["/".join(f"{x:.3f}" for x in cell) for cell in np.mean(table, axis=0)]
    print(f"{'mean':20}" + "".join(f"{cell:>24}" for cell in means))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
