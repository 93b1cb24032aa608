"""Communities of the fused graph beside k-means at the true number of clusters, on real data.

    python benchmarks/communities.py --data DIR [--sets NAME ...] [--resolution 0.5 1 2] [--seeds 2]
    python benchmarks/communities.py --data DIR [--sets NAME ...] --merged

DIR holds NAME.npz files and `load.py` (as for `quality.py`). A row is a set: adjusted Rand index and NMI of
`RobustWMNMF` at the true number, then the number of communities and the same scores at each resolution.
With --merged: labels at the true number of clusters, by the fit (k-means start) and by communities at the
smallest resolution found that gives as many or more, merged in the order of modularity. Needs the extra
"communities".
"""

import argparse
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import manyview as mv
from manyview.labels import leiden
from quality import module

SETS = (
    *("pairedtag_h3k4me3", "handwritten6", "msrcv1_5", "mnist_hog4", "bbcsport", "3sources"),
    *("100leaves", "scene15", "citeseer", "reuters1200", "bdgp3", "bdgp3_missing_p05", "landuse21"),
    *("rosmap", "tcga_laml170", "liver_toxicity", "proteinfold12", "webkb_texas", "webkb_cornell"),
)


def scores(truth: np.ndarray, found: np.ndarray) -> np.ndarray:
    """ARI and NMI of those samples that have a label."""
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


def merged_to(graph: sp.csr_array, n_clusters: int) -> np.ndarray:
    """Communities at the resolution, found by bisection, that gives K or just more; then merged to K."""
    low, high = 0.02, 0.05
    while (found := leiden(graph, high, 0, trials=2)).max() + 1 < n_clusters and high < 400:
        low, high = high, 1.8 * high
    for _ in range(7):
        middle = (low * high) ** 0.5
        labels = leiden(graph, middle, 0, trials=2)
        if labels.max() + 1 >= n_clusters:
            high, found = middle, labels
        else:
            low = middle
    while found.max() + 1 > n_clusters:
        members = sp.csr_array((np.ones(len(found)), (np.arange(len(found)), found)))
        links = (members.T @ graph @ members).toarray()
        strength = links.sum(axis=1)
        gain = links / links.sum() - high * np.outer(strength, strength) / links.sum() ** 2
        np.fill_diagonal(gain, -np.inf)
        one, other = np.unravel_index(gain.argmax(), gain.shape)
        found = np.unique(np.where(found == other, one, found), return_inverse=True)[1]
    return found


def starts(folder: Path, names: list[str]) -> None:
    """ARI and NMI at the true number, by the fit and by merged communities."""
    load, rows = module(folder / "load.py").load, []
    print(
        "| set | true K | k-means start | communities merged to K |\n|---|---|---|---|", flush=True
    )
    for name in names:
        views, truth = load(folder / f"{name}.npz")
        K = len(np.unique(truth))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = mv.RobustWMNMF(K, random_state=0).fit(views)
        here = model.labels_ >= 0
        labels = np.full(len(here), -1)
        labels[here] = merged_to(model.graph_[here][:, here], K)
        rows.append([*scores(truth, model.labels_), *scores(truth, labels)])
        cells = "{:.3f}/{:.3f} | {:.3f}/{:.3f}".format(*rows[-1])
        print(f"| {name} | {K} | {cells} |", flush=True)
    print(
        "| mean of {} | | {:.3f}/{:.3f} | {:.3f}/{:.3f} |".format(len(rows), *np.mean(rows, axis=0))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--resolution", nargs="+", type=float, default=[0.5, 1.0, 2.0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--merged", action="store_true", help="starts at the true number instead")
    args = parser.parse_args()
    if args.merged:
        return starts(args.data, args.sets)
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
