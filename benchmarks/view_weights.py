"""What the view weights make of a second view, and what that does to the clusters.

    python benchmarks/view_weights.py [--seeds 5] [--jobs 2] [--samples 40 120 500 2000]
                                      [--figure docs/view_weights.png] [--locate --data DIR]

Made-up pairs of views: the first has clusters; the second the same clusters, as clear or hardly
visible, other clusters, continuous factors, or noise; narrow and wide views of both kinds. Printed: NMI
with learned and with equal weights, and the weight of the second view. With --locate, on sets in DIR
reduced to two views: how well the sample weights find rows turned to noise in one of the views
(AUC of `reliance_`), and the agreement notices rows that were exchanged (AUC of `sample_agreement_`).
"""

import argparse
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.metrics import roc_auc_score

import manyview as mv
from quality import load_set

KINDS = (
    "same clusters",
    "hardly visible",
    "other clusters",
    "eight factors",
    "two factors",
    "noise",
)
WIDTHS = ((30, 60), (100, 3), (3, 100), (2, 200), (200, 2))
CLUSTERS = {40: 3, 120: 4, 500: 5, 2000: 6, 5000: 8}
LOCATED = ("scene15", "100leaves", "digits6", "msrcv1_5", "mnist_hog4", "bbcsport", "3sources",
           "reuters1200")  # fmt: skip


def clusters(rng, y, n_features, distance=5.0):
    """Gaussian clusters in up to ten features, noise in the others."""
    informative = min(n_features, 10)
    centers = np.zeros((y.max() + 1, n_features))
    centers[:, :informative] = rng.standard_normal((y.max() + 1, informative))
    centers *= distance / np.sqrt(informative)
    return centers[y] + rng.standard_normal((len(y), n_features))


def factors(rng, n, n_features, count):
    loadings = rng.standard_normal((count, n_features)) / np.sqrt(count)
    scores = rng.standard_normal((n, count))
    return 1.5 * scores @ loadings + 0.5 * rng.standard_normal((n, n_features))


def made_up(kind, n, widths, seed):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % CLUSTERS[n])
    second = {
        "same clusters": lambda m: clusters(rng, y, m),
        "hardly visible": lambda m: clusters(rng, y, m, 2.5),
        "other clusters": lambda m: clusters(rng, rng.permutation(y), m),
        "eight factors": lambda m: factors(rng, n, m, 8),
        "two factors": lambda m: factors(rng, n, m, 2),
        "noise": lambda m: rng.standard_normal((n, m)),
    }
    return [clusters(rng, y, widths[0]), second[kind](widths[1])], y


def judge(case):
    warnings.simplefilter("ignore")
    views, y = made_up(*case)
    found = []
    for weights in ("learned", "equal"):
        model = mv.RobustWMNMF(int(y.max()) + 1, view_weights=weights, random_state=0).fit(views)
        found += [mv.metrics.scores(y, model.labels_)["nmi"], model.view_weights_[1]]
    return case, found[0], found[2], found[1]


def table(args, pool):
    cases = [
        (kind, n, widths, seed)
        for kind in KINDS
        for n in args.samples
        for widths in WIDTHS
        for seed in range(args.seeds)
    ]
    rows = list(pool.map(judge, cases))
    print(
        "| second view | samples | NMI learned | equal | weight of the second view |\n"
        + "|---" * 5
        + "|"
    )
    for kind in KINDS:
        for n in (*args.samples, None):
            some = [row for row in rows if row[0][0] == kind and n in (None, row[0][1])]
            learned, equal, weight = np.mean([row[1:] for row in some], axis=0)
            print(f"| {kind} | {n or 'all'} | {learned:.3f} | {equal:.3f} | {weight:.2f} |")
    if args.figure:
        draw(rows, args.figure)


def draw(rows, path):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(WIDTHS), figsize=(13, 3.2), sharey=True, layout="constrained"
    )
    for ax, widths in zip(axes, WIDTHS, strict=True):
        weights = [[r[3] for r in rows if r[0][0] == k and r[0][2] == widths] for k in KINDS]
        ax.boxplot(weights, vert=False, widths=0.6, whis=(0, 100), medianprops={"color": "black"})
        ax.axvline(0.5, color="0.8", zorder=0)
        ax.set_xlim(0, 1)
        ax.set_title(f"{widths[0]} and {widths[1]} features", fontsize=10)
        ax.set_yticks(range(1, len(KINDS) + 1), KINDS)
        ax.invert_yaxis()
        ax.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("weight of the second view; the first has clusters", fontsize=10)
    figure.savefig(path, dpi=130)


def locate(data, case):
    """AUC of finding 10% noise rows, of noticing 10% exchanged rows, in view ``s`` of two."""
    warnings.simplefilter("ignore")
    name, s = case
    views, labels = load_set(data, name)
    rows = np.sort(np.random.default_rng(0).permutation(len(labels))[:1500])
    views, labels = [np.asarray(X[rows], float) for X in views[:2]], labels[rows]
    rng = np.random.default_rng(1)
    bad = rng.permutation(len(rows))[: len(rows) // 10]
    found = []
    for new in (rng.permuted(views[s], axis=0)[bad], views[s][np.roll(bad, 1)]):
        changed = [X.copy() for X in views]
        changed[s][bad] = new
        model = mv.RobustWMNMF(len(np.unique(labels)), random_state=0).fit(changed)
        truth = np.isin(np.arange(len(rows)), bad)
        w = model.sample_weights_ + 1e-9
        found.append(roc_auc_score(truth, (w[:, 1 - s] / w.sum(axis=1))))
        found.append(roc_auc_score(truth, -np.nan_to_num(model.sample_agreement_)))
    return case, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--samples", type=int, nargs="+", default=[40, 120, 500, 2000])
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--locate", action="store_true")
    parser.add_argument("--data", type=Path)
    args = parser.parse_args()
    with ProcessPoolExecutor(args.jobs) as pool:
        if not args.locate:
            table(args, pool)
            return
        cases = [(name, s) for name in LOCATED for s in (0, 1)]
        print("| set, view | noise located | noise noticed | exchange located | exchange noticed |")
        print("|---" * 5 + "|")
        every = []
        for (name, s), found in pool.map(partial(locate, args.data), cases):
            every.append(found)
            print(f"| {name}, {s + 1} | " + " | ".join(f"{x:.2f}" for x in found) + " |")
        print("| mean | " + " | ".join(f"{x:.2f}" for x in np.mean(every, axis=0)) + " |")


if __name__ == "__main__":
    main()
