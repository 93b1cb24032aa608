"""What links between samples are worth: none, as plain features, as a GraphView.

    python benchmarks/graphs.py --data DIR [--seeds 3] [--sets NAME ...] [--rewire SHARE]

DIR holds NAME.npz files (view_<name> arrays and labels) and `load.py`. A square view is one of links.
Printed, by set: mean ACC/NMI over seeds of the best of the other views alone, of the best link view
alone, of all views with links as features and with links as `GraphView`, and the weight of the links in
the last. ``--rewire`` moves that share of the links to random places first: what a graph that says
nothing costs.
"""

import argparse
import importlib.util
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

import manyview as mv

SETS = ("citeseer", "acm", "webkb_texas", "webkb_cornell")


def load_set(data: Path, name: str):
    spec = importlib.util.spec_from_file_location("load", data / "load.py")
    loader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loader)
    views, labels = loader.load(data / f"{name}.npz")
    return views, np.unique(labels, return_inverse=True)[1]


def rewired(A, share, seed):
    """The same graph with a share of its links between samples drawn at random."""
    edges, rng = sp.coo_array(A), np.random.default_rng(seed)
    moved = rng.random(edges.nnz) < share
    n = A.shape[0]
    i, j = (np.where(moved, rng.integers(n, size=edges.nnz), ends) for ends in edges.coords)
    return sp.csr_array((edges.data, (i, j)), shape=A.shape)


def scored(views, labels, seeds):
    """Mean ACC and NMI, and the view weights of the last seed."""
    found = []
    for seed in range(seeds):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = mv.RobustWMNMF(labels.max() + 1, random_state=seed).fit(views)
        scores = mv.metrics.scores(labels, model.labels_)
        found.append((scores["acc"], scores["nmi"]))
    return np.mean(found, axis=0), dict(zip(views, model.view_weights_, strict=True))


def row(data: Path, name: str, seeds: int, share: float):
    views, labels = load_set(data, name)
    links = [v for v, X in views.items() if X.shape[0] == X.shape[1]]
    if share:
        views |= {v: rewired(views[v], share, 0) for v in links}
    graphs = {v: mv.GraphView(views[v]) for v in links}
    alone = {v: scored({v: graphs.get(v, X)}, labels, 1)[0] for v, X in views.items()}

    def best(names):
        return max((alone[v] for v in names), key=lambda found: found[1])

    plain, _ = scored(views, labels, seeds)
    related, weights = scored(views | graphs, labels, seeds)
    told = [best(v for v in views if v not in links), best(links), plain, related]
    cells = [f"{acc:.3f}/{nmi:.3f}".replace("0.", ".") for acc, nmi in told]
    weight = ", ".join(f"{v} {weights[v]:.2f}" for v in links)
    return f"| {name} | {' | '.join(cells)} | {weight} |"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rewire", type=float, default=0.0)
    args = parser.parse_args()
    print("| set | features alone | links alone | links as features | as GraphView | weights |")
    print("|---|---|---|---|---|---|")
    for name in args.sets:
        print(row(args.data, name, args.seeds, args.rewire), flush=True)


if __name__ == "__main__":
    main()
