"""What RobustWMNMF makes of new samples and missing views.

    python benchmarks/placing.py [--data DIR] [--seeds 5]

The digits: fits where 30% of the samples lack a random view, and held-out digits that lack one view
each. For every NAME.npz of DIR (see `quality.py`): how often fitted rows are predicted as
themselves, and the accuracy on a held-out fifth, clusters named by the fitted rows.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.optimize import linear_sum_assignment

from manyview import RobustWMNMF
from manyview.datasets import load_handwritten
from manyview.labels import contingency
from manyview.metrics import scores
from quality import module

PART, LACKING = 0.8, 0.3


def without_a_view(views: dict, rows: np.ndarray, rng: np.random.Generator) -> dict:
    """The views where each of these rows lacks one at random."""
    holes = {name: X.astype(float).copy() for name, X in views.items()}
    chosen = rng.integers(len(holes), size=len(rows))
    for s, X in enumerate(holes.values()):
        X[rows[chosen == s]] = np.nan
    return holes


def held_out(views: dict, y: np.ndarray, seed: int, lacking: bool = False) -> float:
    """Accuracy on rows that were not fitted."""
    rng, k = np.random.default_rng(seed), y.max() + 1
    order = rng.permutation(len(y))
    known, new = np.split(order, [int(PART * len(y))])
    model = RobustWMNMF(k, random_state=seed).fit({n: X[known] for n, X in views.items()})
    fitted = model.labels_ >= 0
    table = contingency(model.labels_[fitted], y[known][fitted], k, k)
    clusters, classes = linear_sum_assignment(-table)
    name = np.full(k + 1, -1)  # the last is for the label −1
    name[clusters] = classes
    given = {n: X[new] for n, X in views.items()}
    given = without_a_view(given, np.arange(len(new)), rng) if lacking else given
    return float(np.mean(name[model.predict(given)] == y[new]))


def digits(seeds: range) -> None:
    for which in ("paper", "all"):
        data = load_handwritten(views=which)
        views, y = data.views, np.unique(data.labels, return_inverse=True)[1]
        whole, some = [], []
        for seed in seeds:
            rng = np.random.default_rng(seed)
            rows = rng.permutation(len(y))[: int(LACKING * len(y))]
            model = RobustWMNMF(10, random_state=seed)
            whole.append(scores(y, model.fit(views).labels_)["nmi"])
            some.append(scores(y, model.fit(without_a_view(views, rows, rng)).labels_)["nmi"])
        new = [
            np.mean([held_out(views, y, s, lacking) for s in seeds]) for lacking in (False, True)
        ]
        print(
            f"digits, {len(views)} views: NMI {np.mean(whole):.3f}, {np.mean(some):.3f} where "
            f"{LACKING:.0%} lack a view; held-out ACC {new[0]:.3f}, {new[1]:.3f} with one view missing",
            flush=True,
        )


def sets(data: Path, seeds: range) -> None:
    load, found = module(data / "load.py").load, []
    print("| set | predicted as themselves | held-out ACC |", "|---|---|---|", sep="\n")
    for path in sorted(data.glob("*.npz")):
        views, labels = load(path)
        y = np.unique(labels, return_inverse=True)[1]
        model = RobustWMNMF(y.max() + 1, random_state=0).fit(views)
        same = float(np.mean(model.predict(views) == model.labels_))
        found.append((same, np.mean([held_out(views, y, seed) for seed in seeds])))
        print(f"| {path.stem} | {found[-1][0]:.3f} | {found[-1][1]:.3f} |", flush=True)
    same, new = np.mean(found, axis=0)
    print(f"| mean | {same:.3f} | {new:.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with more sets")
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    digits(range(asked.seeds))
    if asked.data:
        sets(asked.data, range(asked.seeds))


if __name__ == "__main__":
    main()
