"""Communities of the fused graph beside k-means at the true number of clusters, on real data.

    python benchmarks/communities.py --data DIR [--sets NAME ...] [--resolution 0.5 1 2] [--seeds 2]

DIR holds NAME.npz files and `load.py` (as for `quality.py`). A row is a set: adjusted Rand index and NMI of
`RobustWMNMF` at the true number, then the number of communities and the same scores at each resolution.
Needs the extra "communities".
"""

import argparse
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import manyview as mv
from quality import module

SETS = (
    *("pairedtag_h3k4me3", "handwritten6", "msrcv1_5", "mnist_hog4", "bbcsport", "3sources"),
    *("100leaves", "scene15", "citeseer", "reuters1200", "bdgp3", "bdgp3_missing_p05", "landuse21"),
    *("rosmap", "tcga_laml170", "liver_toxicity", "proteinfold12", "webkb_texas", "webkb_cornell"),
)


def scores(truth: np.ndarray, found: np.ndarray) -> np.ndarray:
    """ARI and NMI of those observations that have a label."""
    known = found >= 0
    return np.array(
        [
            adjusted_rand_score(truth[known], found[known]),
            normalized_mutual_info_score(truth[known], found[known]),
        ]
    )


def fitted(views: dict, seeds: int, **settings: object) -> tuple[list[int], np.ndarray]:
    """Numbers of clusters and labels, for every seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [mv.RobustWMNMF(random_state=s, **settings).fit(views) for s in range(seeds)]
    return [model.n_clusters_ for model in models], np.array([model.labels_ for model in models])


def cell(truth: np.ndarray, numbers: list[int], labels: np.ndarray) -> str:
    ari, nmi = np.mean([scores(truth, found) for found in labels], axis=0)
    count = f"{min(numbers)}" if min(numbers) == max(numbers) else f"{min(numbers)}-{max(numbers)}"
    return f"{count}: {ari:.3f}/{nmi:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--resolution", nargs="+", type=float, default=[0.5, 1.0, 2.0])
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    load = module(args.data / "load.py").load
    heads = ["set", "true K", "k-means start", *(f"communities, {r:g}" for r in args.resolution)]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|", flush=True)
    for name in args.sets:
        views, truth = load(args.data / f"{name}.npz")
        K = len(np.unique(truth))
        found = [fitted(views, args.seeds, n_clusters=K)]
        found += [
            fitted(views, args.seeds, n_clusters="communities", resolution=r)
            for r in args.resolution
        ]
        cells = [name, str(K), *(cell(truth, *one) for one in found)]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
