"""Does `select_n_clusters` find the number of clusters, and none where there are none?

    python benchmarks/choose_k.py [--seed 0]
    python benchmarks/choose_k.py --null RUNS [--kinds NAME ...] [--samples 200]
    python benchmarks/choose_k.py --data DIR [--sets NAME ...] [--seed 0]

Without options: made-up data with a known number of clusters. With --null: the share of data without
clusters in which clusters are reported, for each kind. With DIR (NAME.npz files and `load.py`, as for
`quality.py`): the adjusted Rand index that `n_clusters="auto"` loses against the true number.
--reasons prints the sentences as well.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import manyview as mv
from communities import SETS, fitted, scores
from manyview.selection import Selection
from quality import module

#: Data without clusters.
NULL = ("blob", "long", "uniform", "square", "lognormal", "ring", "line", "ring, rows missing",
        "line, rows missing", "blob, rows missing", "counts", "binary", "heavy tails", "eight factors",
        "wide noise", "three columns")  # fmt: skip


def null(kind: str, n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Two views (one of the square) of n samples without clusters."""
    name, _, missing = kind.partition(", ")
    widths = {"wide noise": (300, 500), "three columns": (3, 3)}.get(name, (10, 15))

    def factors(count: int) -> list[np.ndarray]:
        shared = rng.standard_normal((n, count))
        loadings = [rng.standard_normal((count, m)) for m in widths]
        return [rng.normal(shared @ loading, 0.3) for loading in loadings]

    if name == "square":
        views = [rng.random((n, 2))]
    elif name == "ring":
        angle = rng.uniform(0, 2 * np.pi, n)
        circle = np.c_[np.cos(angle), np.sin(angle)]
        views = [circle + rng.normal(0, 0.05, (n, 2)) for _ in range(2)]
    elif name in ("long", "line", "eight factors"):
        views = factors({"long": 3, "line": 1, "eight factors": 8}[name])
    elif name == "lognormal":
        views = [np.exp(X) for X in factors(2)]
    elif name == "counts":
        depth = rng.lognormal(0, 0.5, (n, 1))
        views = [rng.poisson(depth * rng.gamma(0.5, 4, m)).astype(float) for m in (50, 80)]
    elif name == "binary":
        views = [(rng.random((n, m)) < rng.uniform(0.1, 0.5, m)).astype(float) for m in (30, 40)]
    else:
        draw = {"uniform": rng.random, "heavy tails": lambda size: rng.standard_t(2, size)}
        views = [draw.get(name, rng.standard_normal)((n, m)) for m in widths]
    if missing:
        for X in views:
            X[rng.random(n) < 0.3] = np.nan
    return views


def known(seed: int) -> dict[str, tuple[dict | list, str]]:
    """Name → views and the number of clusters, in words."""
    rng = np.random.default_rng(seed)

    def blobs(labels: np.ndarray, spread: float, features: tuple[int, int] = (10, 15)) -> list:
        size = (labels.max() + 1,)
        return [rng.normal(spread * rng.standard_normal((*size, m))[labels], 1) for m in features]

    nine, coarse = np.arange(360) % 9, np.arange(360) % 3
    grouped = [3 * rng.standard_normal((3, m))[coarse] for m in (10, 15)]
    fine = [rng.normal(X + 1.2 * rng.standard_normal((9, X.shape[1]))[nine], 1) for X in grouped]
    return {
        "synthetic, 2000 rows": (mv.datasets.make_synthetic(2000, random_state=seed).views, "10"),
        "digits": (mv.datasets.load_handwritten("paper").views, "10"),
        "two blobs": (blobs(np.arange(300) % 2, 2), "2"),
        "three groups of three": (fine, "3 or 9"),
        "sizes 200 to 10": (blobs(np.repeat(np.arange(6), [200, 100, 50, 25, 15, 10]), 2), "6"),
        "sixty clusters": (blobs(np.arange(1200) % 60, 2), "60"),
    }


def chosen(views: dict | list, seed: int) -> Selection:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "no clusters" is an answer here
        return mv.select_n_clusters(views, random_state=seed)


def on_null_data(runs: int, kinds: list[str], n: int) -> None:
    print("| data without clusters | clusters reported | runs |\n" + "|---" * 3 + "|", flush=True)
    shares = []
    for kind in kinds:
        rng = np.random.default_rng(NULL.index(kind))
        found = [chosen(null(kind, n, rng), seed).found for seed in range(runs)]
        shares.append(np.mean(found))
        print(f"| {kind} | {shares[-1]:.1%} | {runs} |", flush=True)
    print(f"| all | {np.mean(shares):.1%} | {runs * len(kinds)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reasons", action="store_true", help="print the sentences as well")
    parser.add_argument("--null", type=int, metavar="RUNS", help="runs of each kind")
    parser.add_argument("--kinds", nargs="+", choices=NULL, default=NULL, help="with --null")
    parser.add_argument("--samples", type=int, default=200, help="with --null")
    parser.add_argument("--data", type=Path, help="folder of real data sets")
    parser.add_argument("--sets", nargs="+", default=SETS, help="with --data")
    args = parser.parse_args()
    if args.null:
        on_null_data(args.null, args.kinds, args.samples)
        return
    cases: dict = known(args.seed)
    if args.data:
        load = module(args.data / "load.py").load
        cases = dict.fromkeys(args.sets)
    print("| set | true | chosen | ARI chosen | ARI true | s |\n" + "|---" * 6 + "|", flush=True)
    both = []
    for name in cases:
        views, truth = load(args.data / f"{name}.npz") if args.data else cases[name]
        start = time.perf_counter()
        found = chosen(views, args.seed)
        seconds, cells = time.perf_counter() - start, ["", ""]
        if args.data:
            K = len(np.unique(truth))
            labels = [fitted(views, 1, n_clusters=k)[1][0] for k in (found.n_clusters, K)]
            both.append([scores(truth, one)[0] for one in labels])
            truth, cells = K, [f"{ari:.3f}" for ari in both[-1]]
        row = [name, truth, found.answer, *cells, f"{seconds:.0f}"]
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
        if args.reasons:
            print("".join(f"    {reason}\n" for reason in found.reasons))
    if both:
        print("| mean | | | {:.3f} | {:.3f} | |".format(*np.mean(both, axis=0)))


if __name__ == "__main__":
    main()
