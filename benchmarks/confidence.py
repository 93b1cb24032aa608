"""Does `confidence_` say how likely a refit is to give the same cluster, and how often are labels right?

    python benchmarks/confidence.py --data DIR [--sets NAME ...] [--rows 600] [--refits 16] [--out FILE.npz]

DIR holds NAME.npz files (view_<name> arrays, and labels where classes are known) and `load.py`. A fifth of
the rows of each set is held out. The rest is fitted, with as many clusters as there are classes (4 where
none are known) and with half as many more, and refitted on parts of 80% with other seeds. Printed:

- reliability against refits, per set: mean confidence, and the share of refits that put the sample into
  the same cluster (clusters matched one to one), for fitted and for held-out samples;
- the sharpness that fits all other sets best (log loss), and how it does on the set left out;
- the table of docs/guide/report.md: both in bins of confidence, and on labeled sets the share of samples
  that lie in the cluster of their class.

Made-up sets need no files. Sets in the output file are not run again.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import manyview as mv
from manyview.labels import matched, resamples
from manyview.maths import equations as eq
from quality import module, written_out

#: Name → rows, clusters, distance of their centers, features of each view, shares of the clusters.
MADE_UP = {
    "clear": (500, 4, 2.0, (20, 30), None),
    "middling": (600, 5, 1.0, (20, 30), None),
    "hard": (600, 5, 0.6, (20, 30), None),
    "few": (90, 3, 0.9, (20, 30), None),
    "none": (500, 4, 0.0, (20, 30), None),
    "unequal": (600, 4, 1.1, (20, 30), (0.6, 0.25, 0.1, 0.05)),
    "three views": (500, 6, 0.9, (10, 40, 100), None),
}
SHIPPED = {
    "digits, two views": lambda: mv.datasets.load_handwritten(views=["zer", "mor"]),
    "nutrimouse": mv.datasets.load_nutrimouse,
}
SHARPNESS = np.array([1, 2, 3, 4, 5, 6, 8, 12, 16])
BINS = np.array([0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1 + 1e-9])


def some_rows(data: Path, name: str, rows: int):
    if name in MADE_UP:
        n, K, apart, widths, shares = MADE_UP[name]
        rng = np.random.default_rng(len(name))
        y = rng.choice(K, n, p=shares)
        centers = [3 * apart / d**0.5 * rng.normal(size=(K, d)) for d in widths]
        views = [c[y] + rng.normal(size=(n, c.shape[1])) for c in centers]
    elif name in SHIPPED:
        found = SHIPPED[name]()
        views, y = list(found.views.values()), found.labels
    else:
        found, y = module(data / "load.py").load(data / f"{name}.npz")
        views = [written_out(X) for X in found.values()]
    chosen = np.random.default_rng(0).permutation(len(views[0]))[:rows]
    y = np.full(len(chosen), -1) if y is None else np.unique(y, return_inverse=True)[1][chosen]
    return [X[chosen] for X in views], y


def run(data: Path, name: str, more: float, rows: int, n_refits: int):
    """Confidence by sharpness, share of refits and whether the class is right: fitted and held-out."""
    views, y = some_rows(data, name, rows)
    cut = len(y) // 5
    new, old = [X[:cut] for X in views], [X[cut:] for X in views]
    K = max(2, round(more * (y.max() + 1 if y.max() > 0 else 4)))
    model = mv.RobustWMNMF(K, random_state=0).fit(old)
    K, placed = model.n_clusters_, model._place(model._read(new, reset=False))
    labels = [model.labels_, placed.labels]
    again, seen = [np.zeros(len(own)) for own in labels], np.zeros(len(old[0]))
    rng = np.random.default_rng(1)
    for r, part in enumerate(resamples(len(old[0]), 0.8, n_refits, rng)):
        refit = mv.RobustWMNMF(K, random_state=r + 1).fit([X[part] for X in old])
        both = (model.labels_[part] >= 0) & (refit.labels_ >= 0)
        to = np.append(matched(model.labels_[part][both], refit.labels_[both], K), -1)
        again[0][part] += to[refit.labels_] == model.labels_[part]
        seen[part] += 1
        again[1] += to[refit.predict(new)] == placed.labels
    shares = [again[0] / np.maximum(seen, 1), again[1] / n_refits]
    found = {}
    truth = [y[cut:], y[:cut]]
    size = max(K, y.max() + 1)
    known = labels[0] >= 0
    clusters_of = matched(labels[0][known], truth[0][known], size) if y.max() > 0 else None
    for kind, P, own, share, classes in zip(
        ("fitted", "held out"),
        (model.embedding_, placed.embedding),
        labels,
        shares,
        truth,
        strict=True,
    ):
        here = (own >= 0) & ((seen > 0) if kind == "fitted" else True)
        P, own = P[here], own[here]
        found[f"{kind}:sure"] = np.stack(
            [
                eq.cluster_confidence(P, own, *model._halves, sharpness)[np.arange(len(P)), own]
                for sharpness in SHARPNESS
            ]
        )
        found[f"{kind}:again"] = share[here]
        right = np.full(len(P), np.nan)
        if clusters_of is not None and more == 1:
            right = (clusters_of[classes[here]] == own).astype(float)
        found[f"{kind}:right"] = right
    return found


def log_loss(sure, again):
    sure = np.clip(sure, 1e-3, 1 - 1e-3)
    return -(again * np.log(sure) + (1 - again) * np.log(1 - sure)).mean(axis=-1)


def gap(sure, again):
    """Mean difference between confidence and share in the bins, by their sizes (ECE)."""
    place = np.digitize(sure, BINS) - 1
    sums = [np.bincount(place, values, len(BINS) - 1) for values in (sure, again)]
    return np.abs(sums[0] - sums[1]).sum() / len(sure)


def share_text(value):
    return f"{value:.2f}".removeprefix("0")


def report(results):
    now = int(np.flatnonzero(SHARPNESS == eq.SHARPNESS)[0])
    losses = np.array(
        [
            log_loss(one["fitted:sure"], one["fitted:again"])
            + log_loss(one["held out:sure"], one["held out:again"])
            for one in results.values()
        ]
    )
    sets = [name.rsplit("*", 1)[0] for name in results]
    print(
        "ECE: mean difference between confidence and share of refits. Left out: sharpness that is best"
    )
    print("on all other sets, and the ECE with it on this one.\n")
    print(f"{'':27}{'fitted':>24}{'held out':>24}{'left out':>16}")
    print(f"{'set * clusters':27}" + 2 * "    sure  refits     ECE" + "   sharp     ECE")
    table = []
    for name, one in results.items():
        others = np.array([other != name.rsplit("*", 1)[0] for other in sets])
        best = int(losses[others].mean(axis=0).argmin())
        row = []
        for kind in ("fitted", "held out"):
            sure, again = one[f"{kind}:sure"][now], one[f"{kind}:again"]
            row += [sure.mean(), again.mean(), gap(sure, again)]
        row += [SHARPNESS[best], gap(one["fitted:sure"][best], one["fitted:again"])]
        table.append(row)
        print(f"{name:27}" + "".join(f"{value:8.3f}" for value in row))
    print(f"{'mean':27}" + "".join(f"{value:8.3f}" for value in np.mean(table, axis=0)))
    print("\nsharpness, log loss:")
    for sharpness, loss in zip(SHARPNESS, losses.mean(axis=0), strict=True):
        print(f"{sharpness:6}{loss:8.4f}")
    columns = []
    for kind in ("fitted", "held out"):
        sure, again, right = (
            np.concatenate([one[f"{kind}:{what}"][at] for one in results.values()])
            for what, at in (("sure", now), ("again", slice(None)), ("right", slice(None)))
        )
        place = np.digitize(sure, BINS) - 1
        for values in (sure, again, right):
            known = ~np.isnan(values)
            sums = np.bincount(place[known], values[known], len(BINS) - 1)
            columns.append(sums / np.maximum(np.bincount(place[known], minlength=len(BINS) - 1), 1))
    print(
        "\n| confidence | fitted: mean | refits | right class | held out: mean | refits | right class |"
    )
    print("|" + 7 * "---|")
    for low, row in zip(BINS[:-1], np.transpose(columns), strict=True):
        print(f"| from {share_text(low)} | {' | '.join(map(share_text, row))} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--refits", type=int, default=16)
    parser.add_argument("--out", type=Path, default=Path("confidence.npz"))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    files = sorted(path.stem for path in args.data.glob("*.npz") if path.stem != "acm")
    kept = dict(np.load(args.out)) if args.out.exists() else {}
    for more in (1, 1.5):
        for name in args.sets or [*MADE_UP, *SHIPPED, *files]:
            key = f"{name}*{more}"
            if f"{key}|fitted:sure" not in kept:
                print(key, file=sys.stderr, flush=True)
                found = run(args.data, name, more, args.rows, args.refits)
                kept |= {f"{key}|{what}": values for what, values in found.items()}
                np.savez(args.out, **kept)
    results = {}
    for name, values in kept.items():
        key, what = name.split("|")
        results.setdefault(key, {})[what] = values
    report(results)


if __name__ == "__main__":
    main()
