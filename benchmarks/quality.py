"""How good are the clusters, on many datasets, clean and corrupted?

    python benchmarks/quality.py --data DIR [--seeds 5] [--sets NAME ...] [--jobs 2] [--out results.csv]

DIR holds NAME.npz files (view_<name> arrays and labels), `load.py` and `corrupt.py`. Every method runs
on every set, clean and under six corruptions; rows already in the output file are not run again. The
tables printed: mean ACC and NMI, mean rank, view weights of noise views, detection of corrupted rows.
"""

import argparse
import csv
import importlib.util
import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

import manyview as mv
from manyview.engines.numpy.distances import Geometry
from manyview.engines.numpy.presence import present_rows
from manyview.engines.numpy.robust_scaling import RobustScaling
from manyview.maths.spectrum import normalized
from manyview.methods.agree import view_graph
from manyview.methods.assign import spectral_from_graph

FIELDS = (
    "set",
    "condition",
    "seed",
    "method",
    "acc",
    "nmi",
    "seconds",
    "noise_weight",
    "noise_last",
    "auc",
)
ELEVEN = [
    *("digits4", "digits6", "bbcsport", "3sources", "mnist_hog4", "100leaves", "bdgp3"),
    *("reuters1200", "scene15", "msrcv1_5", "rosmap"),
]
SETS = [*ELEVEN, "citeseer", "tcga_laml170", "landuse21"]
#: Rows kept of the larger sets (a fixed sample), so that dense corruption and baselines stay cheap.
CAPS = {"mnist_hog4": 2000, "bdgp3": 1500, "scene15": 1500, "citeseer": 1500, "landuse21": 1050}
DIGITS = {
    "digits4": ("fou", "pix", "zer", "fac"),
    "digits6": ("fac", "fou", "kar", "mor", "pix", "zer"),
}
MLRSSC_LIMIT = 600
#: What is told of noise views and corrupted rows.
WATCHED = ("noise_last", "noise_weight", "auc")


def module(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@cache
def load_set(data: Path, name: str):
    views, labels = module(data / "load.py").load(
        data / f"{'handwritten6' if name in DIGITS else name}.npz"
    )
    names = DIGITS.get(name, tuple(views))
    dense = [
        np.asarray(views[v].toarray() if sp.issparse(views[v]) else views[v], float) for v in names
    ]
    if len(labels) > CAPS.get(name, np.inf):
        rows = np.sort(np.random.default_rng(0).permutation(len(labels))[: CAPS[name]])
        dense, labels = [X[rows] for X in dense], labels[rows]
    return dense, np.unique(labels, return_inverse=True)[1]


def geometry(X):
    present = present_rows(X)
    scaling = RobustScaling.fit(X, present, "")
    Z = scaling.apply(np.where(present[:, None], X, 0))
    Z[~present] = 0
    return Geometry(Z, present, scaling.low is None)


@cache
def best_and_worst(data: Path, name: str):
    """The views whose own neighbour graph agrees most and least with the truth."""
    views, labels = load_set(data, name)
    k = labels.max() + 1
    nmi = [
        mv.metrics.scores(
            labels,
            spectral_from_graph(view_graph(geometry(X), 10), k, np.random.default_rng(0), True),
        )["nmi"]
        for X in views
    ]
    return int(np.argmax(nmi)), int(np.argmin(nmi))


def concat_knn_spectral(blocks, k, seed):
    X = np.hstack(blocks)
    model = SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed)
    return model.fit_predict(X)


def filled(views):
    """The baselines know no missing values: feature means stand in."""
    out = []
    for X in views:
        mean = np.nan_to_num(np.nanmean(X, axis=0))
        out.append(np.where(np.isnan(X), mean, X))
    return out


def sum_of_graphs(views, k, seed):
    S = sum(normalized(view_graph(geometry(X), 10)) for X in views)
    return spectral_from_graph(sp.csr_array(S), k, np.random.default_rng(seed), True)


def methods(n):
    def robust(views, k, seed):
        return mv.RobustWMNMF(k, random_state=seed).fit(views)

    def paper(views, k, seed):
        return mv.WMNMF(k, scale="minmax", random_state=seed).fit(filled(views))

    table = {
        "RobustWMNMF": robust,
        "WMNMF": paper,
        "concat z + kNN-spectral": lambda v, k, s: concat_knn_spectral(
            [StandardScaler().fit_transform(X) for X in filled(v)], k, s
        ),
        "concat, our scaling + kNN-spectral": lambda v, k, s: concat_knn_spectral(
            [geometry(X).Z for X in v], k, s
        ),
        "sum of graphs": sum_of_graphs,
        "concat z + k-means": lambda v, k, s: KMeans(k, n_init=10, random_state=s).fit_predict(
            np.hstack([StandardScaler().fit_transform(X) for X in filled(v)])
        ),
    }
    if n <= MLRSSC_LIMIT:
        table["MLRSSC"] = lambda v, k, s: mv.baselines.MLRSSC(k, random_state=s).fit_predict(
            filled(v)
        )
    return table


def run_case(data: str, name: str, condition: str, seed: int, done: set):
    warnings.simplefilter("ignore")
    views, labels = load_set(Path(data), name)
    k, info = int(labels.max()) + 1, {}
    if condition != "clean":
        best, worst = best_and_worst(Path(data), name)
        views, info = module(Path(data) / "corrupt.py").corrupt(views, condition, best, worst, seed)
    rows = []
    for method, fit in methods(len(labels)).items():
        if (name, condition, str(seed), method) in done:
            continue
        start = time.process_time()
        try:
            result = fit(views, k, seed)
        except Exception as error:  # a failing method is a row, not the end
            print(f"{name} {condition} {seed} {method}: {error}", file=sys.stderr)
            continue
        found = getattr(result, "labels_", result)
        row = dict.fromkeys(FIELDS, "") | {
            "set": name,
            "condition": condition,
            "seed": seed,
            "method": method,
            "seconds": round(time.process_time() - start, 2),
        }
        scores = mv.metrics.scores(labels, np.asarray(found))
        row |= {"acc": scores["acc"], "nmi": scores["nmi"]} | weights(result, info, len(labels))
        rows.append(row)
    return rows


def weights(model, info, n):
    if not hasattr(model, "view_weights_"):
        return {}
    alpha = model.view_weights_
    if "noise_view" in info:
        s = info["noise_view"]
        return {"noise_weight": alpha[s], "noise_last": int(alpha[s] <= np.delete(alpha, s).min())}
    if "view" in info:
        corrupted = np.isin(np.arange(n), info["rows"])
        return {"auc": roc_auc_score(corrupted, -model.sample_weights_[:, info["view"]])}
    return {}


def report(rows):
    kinds = list(dict.fromkeys(r["method"] for r in rows))
    cases = {}
    for r in rows:
        cases.setdefault((r["set"], r["condition"]), {}).setdefault(r["method"], []).append(r)
    everywhere = [m for m in kinds if all(m in case for case in cases.values())]

    def mean(field, method, keep):
        picked = [
            np.mean([float(r[field]) for r in case[method]])
            for key, case in cases.items()
            if keep(*key) and method in case
        ]
        return np.mean(picked) if picked else np.nan

    filters = {
        "eleven clean": lambda s, c: s in ELEVEN and c == "clean",
        "eleven noisy": lambda s, c: s in ELEVEN and c != "clean",
        "all clean": lambda s, c: c == "clean",
        "all noisy": lambda s, c: c != "clean",
    }
    ranks = {m: [] for m in everywhere}
    for case in cases.values():
        values = np.array([np.mean([float(r["nmi"]) for r in case[m]]) for m in everywhere])
        for m, v in zip(everywhere, values, strict=True):
            ranks[m].append(
                1 + (values > v + 1e-12).sum() + ((np.abs(values - v) <= 1e-12).sum() - 1) / 2
            )
    print(f"{len(cases)} cases; ACC / NMI, and mean rank by NMI among methods that ran everywhere")
    print(f"{'method':38}" + "".join(f"{f:>16}" for f in filters) + f"{'rank':>8}")
    for m in kinds:
        cells = "".join(
            f"{mean('acc', m, f):>9.3f}/{mean('nmi', m, f):.3f} " for f in filters.values()
        )
        print(f"{m:38}{cells}{np.mean(ranks[m]) if m in ranks else np.nan:8.2f}")
    print("\nclean ACC by set (RobustWMNMF, then the best other)")
    for (name, condition), case in cases.items():
        if condition == "clean":
            acc = {m: np.mean([float(r["acc"]) for r in rs]) for m, rs in case.items()}
            others = {m: a for m, a in acc.items() if m != "RobustWMNMF"}
            if "RobustWMNMF" in acc and others:
                top = max(others, key=others.get)
                print(f"  {name:14}{acc['RobustWMNMF']:.3f}   {others[top]:.3f} {top}")
    for m in ("RobustWMNMF", "WMNMF"):
        last, weight, auc = (told(rows, m, field) for field in WATCHED)
        if last and auc:
            print(
                f"{m}: noise view last in {np.mean(last):.1%} of {len(last)} runs, mean weight "
                f"{np.mean(weight):.3f}; corrupted rows found with mean AUC {np.mean(auc):.3f}"
            )
    others = [np.mean(ranks[m]) for m in everywhere if m != "RobustWMNMF"]
    if "RobustWMNMF" in everywhere and others and {s for s, _ in cases} == set(SETS):
        clean = {
            s: mean("acc", "RobustWMNMF", lambda n, c, s=s: (n, c) == (s, "clean")) for s in DIGITS
        }
        nmi = {f: mean("nmi", "RobustWMNMF", filters[f]) for f in ("eleven clean", "eleven noisy")}
        judge(rows, np.mean(ranks["RobustWMNMF"]), min(others), nmi, clean)


def told(rows, method, field, sets=SETS):
    picked = (r for r in rows if r["method"] == method and r["set"] in sets)
    return [float(r[field]) for r in picked if r[field] != ""]


def judge(rows, rank, next_rank, nmi, clean):
    """What was asked of RobustWMNMF on all sets, and what came out."""
    last, weight, auc = (np.mean(told(rows, "RobustWMNMF", field)) for field in WATCHED)
    eleven = np.mean(told(rows, "RobustWMNMF", "auc", ELEVEN))
    targets = [
        ("mean rank, the best", rank, rank < next_rank),
        ("NMI, eleven sets clean, .70", nmi["eleven clean"], nmi["eleven clean"] >= 0.70),
        ("NMI, eleven sets noisy, .67", nmi["eleven noisy"], nmi["eleven noisy"] >= 0.67),
        ("ACC, digits in four views, .972", clean["digits4"], clean["digits4"] >= 0.972),
        ("ACC, digits in six views, .977", clean["digits6"], clean["digits6"] >= 0.977),
        ("noise view last, 98% of runs", last, last >= 0.98),
        ("its weight, at most .05", weight, weight <= 0.05),
        ("AUC of corrupted rows, eleven sets, .93", eleven, eleven >= 0.93),
        ("AUC of corrupted rows, all sets, .93", auc, auc >= 0.93),
    ]
    print("\ntargets")
    for name, value, met in targets:
        print(f"  {name:42}{value:8.4f}  {'met' if met else 'MISSED'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", default="quality.csv")
    args = parser.parse_args()
    out, rows = Path(args.out), []
    if out.exists():
        rows = list(csv.DictReader(out.open()))
    done = {(r["set"], r["condition"], r["seed"], r["method"]) for r in rows}
    kinds = ("clean", *module(Path(args.data) / "corrupt.py").KINDS)
    tasks = [
        (name, kind, seed) for seed in range(args.seeds) for name in args.sets for kind in kinds
    ]
    with ProcessPoolExecutor(args.jobs) as pool, out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not rows:
            writer.writeheader()
        futures = {pool.submit(run_case, args.data, *task, done): task for task in tasks}
        for count, future in enumerate(as_completed(futures), 1):
            new = future.result()
            writer.writerows(new)
            file.flush()
            rows += [{k: str(v) for k, v in row.items()} for row in new]
            print(f"\r{count}/{len(tasks)} cases", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    report(rows)


if __name__ == "__main__":
    main()
