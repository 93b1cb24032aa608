"""What does it cost, or gain, to take rows of zeros as values?

    python benchmarks/zero_rows.py --data DIR [--sets NAME ...] [--seeds 3] [--made]

DIR holds NAME.npz files (view_<name> arrays and labels) and `load.py`. Of every set (1200 rows at most)
ACC and NMI are printed with rows of zeros as missing, as observed, and as observed with a feature of
their own that sets them apart from all others. With ``--made`` rows of zeros are made in one view after the
other, in a fifth of the rows: lost (nothing was measured), or of a panel of so few random features
that nothing was found there.
"""

import argparse
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

import manyview as mv
from manyview.engines.numpy.presence import present_rows
from quality import module

SETS = ("tcga_laml170", "webkb_texas", "webkb_cornell", "bdgp3", "mnist_hog4")
#: Rows of larger sets that are looked at.
MOST = 1200
#: Of the rows, how many are zeros where they are made.
SHARE = 0.2


def load(data: Path, name: str):
    views, labels = module(data / "load.py").load(data / f"{name}.npz")
    if len(labels) > MOST:
        rows = np.sort(np.random.default_rng(0).permutation(len(labels))[:MOST])
        views, labels = {name: X[rows] for name, X in views.items()}, labels[rows]
    return views, np.unique(labels, return_inverse=True)[1]


def with_a_feature_of_zeros(X):
    """X and a column that is 1 in rows of zeros; X itself if there are none."""
    zeros = (~present_rows(X)).astype(float)[:, None]
    if not zeros.any():
        return X
    return sp.csr_matrix(sp.hstack([X, zeros])) if sp.issparse(X) else np.hstack([X, zeros])


def lost(X, rng):
    keep = (rng.random(X.shape[0]) > SHARE).astype(float)
    return sp.csr_matrix(sp.diags_array(keep) @ X) if sp.issparse(X) else X * keep[:, None]


def panel(X, rng):
    table = sp.csc_matrix(X)[:, rng.permutation(X.shape[1])]
    width = next(
        m
        for m in range(1, X.shape[1] + 1)
        if m == X.shape[1] or (~present_rows(table[:, :m].tocsr())).mean() <= SHARE
    )
    small = table[:, :width].tocsr()
    return small if sp.issparse(X) else small.toarray()


def print_made(name, views, labels, seeds):
    for target, X in views.items():
        if X.min() < 0:
            continue
        for make in (lost, panel):
            made = views | {target: make(X, np.random.default_rng(1))}
            cells = [score(made, labels, seeds, zero_rows=says) for says in ("missing", "observed")]
            share = (~present_rows(made[target])).mean()
            print(
                f"{name:16}{cells[0]:>14}{cells[1]:>14}  {target} {make.__name__} {share:.2f}",
                flush=True,
            )


def score(views, labels, seeds, **how):
    found = [
        mv.RobustWMNMF(int(labels.max()) + 1, random_state=seed, **how).fit(views).labels_
        for seed in range(seeds)
    ]
    told = [mv.metrics.scores(labels, each) for each in found]
    return "/".join(f"{np.mean([t[field] for t in told]):.3f}" for field in ("acc", "nmi"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--made", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        f"{'ACC/NMI':16}{'missing':>14}{'observed':>14}{'own feature':>14}  rows of zeros by view"
    )
    for name in args.sets:
        views, labels = load(args.data, name)
        if args.made:
            print_made(name, views, labels, args.seeds)
            continue
        marked = {view: with_a_feature_of_zeros(X) for view, X in views.items()}
        cells = (
            score(views, labels, args.seeds, zero_rows="missing"),
            score(views, labels, args.seeds, zero_rows="observed"),
            score(marked, labels, args.seeds),
        )
        zeros = {view: int((~present_rows(X)).sum()) for view, X in views.items()}
        print(f"{name:16}" + "".join(f"{cell:>14}" for cell in cells) + f"  {zeros}", flush=True)


if __name__ == "__main__":
    main()
