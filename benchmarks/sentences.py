"""Do the sentences of the report about certainty and doubt hold, where classes are known?

    python benchmarks/sentences.py --data DIR [--sets NAME ...] [--seeds 1] [--out sentences.csv]

DIR holds NAME.npz files (view_<name> arrays and labels), `load.py` and `corrupt.py`. Every set is clustered
complete, with all but one view (drawn at random) taken from three in ten samples, and with the rows of
a tenth swapped in one view. Of the samples or clusters that the report points out, and of the rest, it
prints how many lie in the cluster that belongs to their class (one class per cluster, as in ACC). Rows
already in the output file are not made again.
"""

import argparse
import csv
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import confusion_matrix

import manyview as mv
from manyview.app.run import evidence
from manyview.app.run.evidence import refitted
from manyview.app.run.tables import departures
from manyview.views.views import as_views
from quality import load_set, written_out

SETS = ("3sources", "msrcv1_5", "webkb_texas", "rosmap", "tcga_laml170", "bbcsport", "digits4",
        "reuters1200", "mnist_hog4", "scene15", "bdgp3", "landuse21")  # fmt: skip
CONDITIONS = ("complete", "one view", "swapped")
#: Rows of larger sets that are looked at.
MOST = 600
#: Share of the samples that keep one view, and of those that are swapped.
ALONE, SWAPPED = 0.3, 0.1
FIELDS = ("set", "condition", "seed", "sentence", "called", "right", "others", "others_right")


def some_rows(data: Path, name: str):
    views, labels = load_set(data, name)
    views = [written_out(X) for X in views]
    if len(labels) > MOST:
        rows = np.sort(np.random.default_rng(0).permutation(len(labels))[:MOST])
        views, labels = [X[rows] for X in views], labels[rows]
    return views, np.unique(labels, return_inverse=True)[1]


def changed(views, condition: str, seed: int):
    """The views under a condition, and which samples it touched."""
    rng, n = np.random.default_rng(seed), len(views[0])
    views = [X.copy() for X in views]
    touched = np.zeros(n, dtype=bool)
    if condition == "one view":
        touched[rng.permutation(n)[: int(ALONE * n)]] = True
        keeps = rng.integers(len(views), size=n)
        for s, X in enumerate(views):
            X[touched & (keeps != s)] = np.nan
    elif condition == "swapped":
        rows = rng.permutation(n)[: int(SWAPPED * n)]
        touched[rows] = True
        views[0][rows] = views[0][np.roll(rows, 1)]
    return views, touched


def in_its_place(truth, labels):
    """Which samples lie in the cluster that belongs to their class."""
    table = confusion_matrix(truth, np.maximum(labels, 0))
    rows, columns = linear_sum_assignment(-table)
    belongs = np.full(table.shape[0], -1)
    belongs[rows] = columns
    return (labels >= 0) & (belongs[truth] == labels)


def pointed_out(model, views, labels, stable):
    """Sentence → which samples the report points out, and of which others it is said."""
    described = evidence.described(model, views)
    several = described.sum(axis=1) > 1
    everyone = labels >= 0
    sure, _ = evidence.confidence(model)
    unusual = departures(model.reliance_, labels, described)
    silent = several & ~model.sample_weights_.any(axis=1)
    found = {
        "confidence below .5": (everyone & (sure < 0.5), everyone),
        "confidence below .8": (everyone & (sure < 0.8), everyone),
        "one view only": (everyone & ~several, everyone),
        "confidence above .9, one view only": (everyone & ~several & (sure > 0.9), sure > 0.9),
        "unusual reliance": (everyone & (unusual > 0.25), everyone),
        "several views, no support": (everyone & silent, everyone),
    }
    if stable is not None:
        own = np.array([stable.clusters.get(int(k), np.nan) for k in labels])
        found["stability of the sample below .6"] = (stable.samples < 0.6, everyone)
        found["cluster's stability below .6"] = (own < 0.6, everyone)
        found["cluster's stability above .85"] = (own > 0.85, everyone)
    return found


def run(data: Path, name: str, condition: str, seed: int):
    warnings.simplefilter("ignore")
    matrices, truth = some_rows(data, name)
    matrices, touched = changed(matrices, condition, seed)
    views = as_views(matrices, allow_negative=True, allow_missing=True)
    model = mv.RobustWMNMF(int(truth.max()) + 1, random_state=seed).fit(matrices)
    labels = np.asarray(model.labels_)
    right = in_its_place(truth, labels)
    runs = 5 if condition == "complete" else 0
    stable = refitted(model, views, runs, seed, lambda _: None)
    found = pointed_out(model, views, labels, stable)
    if condition == "swapped":
        unusual = found["unusual reliance"][0]
        found["unusual reliance: it was swapped"] = (unusual, labels >= 0)
    rows = []
    for sentence, (called, among) in found.items():
        hit = touched if sentence.endswith("swapped") else right
        others = among & ~called
        rows.append(
            {
                **{"set": name, "condition": condition, "seed": seed, "sentence": sentence},
                **{"called": int(called.sum()), "right": int(hit[called].sum())},
                **{"others": int(others.sum()), "others_right": int(hit[others].sum())},
            }
        )
    if stable is not None:
        score = round(1000 * stable.score)
        nmi = round(1000 * mv.metrics.scores(truth, labels)["nmi"])
        rows.append(
            dict(
                zip(FIELDS, (name, condition, seed, "refits", 1000, score, 1000, nmi), strict=True)
            )
        )
    return rows


def share(right, n):
    return f"{right / n:.3f}" if n else "    –"


def report(rows):
    kinds = dict.fromkeys(
        (r["condition"], r["sentence"]) for r in rows if r["sentence"] != "refits"
    )
    print(f"{'condition':10} {'pointed out':40}{'n':>6} {'right':>6}{'others':>8} {'right':>6}")
    for condition, sentence in kinds:
        own = [r for r in rows if (r["condition"], r["sentence"]) == (condition, sentence)]
        called, right, others, right_too = (sum(int(r[field]) for r in own) for field in FIELDS[4:])
        if called:
            print(
                f"{condition:10} {sentence:40}{called:6} {share(right, called):>6}"
                f"{others:8} {share(right_too, others):>6}"
            )
    refits = [r for r in rows if r["sentence"] == "refits"]
    print("\nset, agreement of refits, NMI with the classes (complete)")
    for r in sorted(refits, key=lambda r: -int(r["right"])):
        print(f"  {r['set']:14}{int(r['right']) / 1000:.2f}  {int(r['others_right']) / 1000:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", default="sentences.csv", type=Path)
    args = parser.parse_args()
    rows = list(csv.DictReader(args.out.open())) if args.out.exists() else []
    done = {(r["set"], r["condition"], r["seed"]) for r in rows}
    with args.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not rows:
            writer.writeheader()
        for seed in range(args.seeds):
            for name in args.sets:
                for condition in CONDITIONS:
                    if (name, condition, str(seed)) in done:
                        continue
                    new = run(args.data, name, condition, seed)
                    writer.writerows(new)
                    file.flush()
                    rows += [{k: str(v) for k, v in row.items()} for row in new]
    report(rows)


if __name__ == "__main__":
    main()
