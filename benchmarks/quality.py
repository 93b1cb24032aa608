"""How good are the clusters, on many datasets, clean and corrupted, before and after?

    python benchmarks/quality.py --data DIR [--seeds 5] [--sets NAME ...] [--jobs 2] [--out results.csv]
                                 [--methods NAME ...] [--conditions clean ...] [--against older.csv]

DIR holds NAME.npz files (view_<name> arrays and labels), `load.py` and `corrupt.py`. Every method runs
on every set that has labels, and on those named in `CORRUPTED` under six corruptions; rows already in
the output file are not run again. Printed: ACC, NMI and ARI of every set beside honest baselines, equal
weights and the best single view (an oracle: no user knows which it is); means and ranks; weights of
noise views, detection of corrupted rows, the loss by an irrelevant view; and which targets are met.
``--against`` names the output file of another version, whose RobustWMNMF becomes the column "before".
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
from manyview.engines.numpy.scaling import (
    ZEROS,
    RobustScaling,
    RootScaling,
    share_of_zeros,
    telling_rows,
)
from manyview.fuse import view_graph
from manyview.labels import spectral_from_graph
from manyview.maths.spectrum import normalized
from quality_tables import COMMUNITIES, ELEVEN, GRAPHS, OURS, SINGLE, report

FIELDS = (
    "set",
    "condition",
    "seed",
    "method",
    "acc",
    "nmi",
    "ari",
    "seconds",
    "noise_weight",
    "noise_last",
    "auc",
)
CORRUPTED = [*ELEVEN, "citeseer", "tcga_laml170", "landuse21"]
#: Sets that are looked at as they are.
CLEAN_ONLY = ["webkb_texas", "webkb_cornell", "proteinfold12", "liver_toxicity", "acm",
              "pairedtag_h3k4me3", "bdgp3_missing_p05"]  # fmt: skip
SETS = [*CORRUPTED, *CLEAN_ONLY]
#: Rows kept of the larger sets (a fixed sample), so that dense corruption and baselines stay cheap. Sets
#: that are looked at clean only are whole, and sparse views stay sparse.
CAPS = {"mnist_hog4": 2000, "bdgp3": 1500, "scene15": 1500, "citeseer": 1500, "landuse21": 1050}
DIGITS = {
    "digits4": ("fou", "pix", "zer", "fac"),
    "digits6": ("fac", "fou", "kar", "mor", "pix", "zer"),
}
MLRSSC_LIMIT = 600
EQUAL = "equal weights"


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
    given = [views[v] for v in names]
    dense = given if name in CLEAN_ONLY else [written_out(X) for X in given]
    if len(labels) > CAPS.get(name, np.inf):
        rows = np.sort(np.random.default_rng(0).permutation(len(labels))[: CAPS[name]])
        dense, labels = [X[rows] for X in dense], labels[rows]
    return dense, np.unique(labels, return_inverse=True)[1]


def is_square(X):
    """Links between the samples, given as a table."""
    return X.shape[0] == X.shape[1]


def written_out(X):
    return np.asarray(X.toarray() if sp.issparse(X) else X, float)


def geometry(X):
    present = present_rows(X)
    rows = telling_rows(X, present)
    scaling = RootScaling() if share_of_zeros(rows) > ZEROS else RobustScaling.fit(rows, "")
    if sp.issparse(X):
        return Geometry(scaling.apply(sp.csr_array(X.astype(float))), present, scaling.unit_rows)
    Z = scaling.apply(np.where(present[:, None], X, 0))
    Z[~present] = 0
    return Geometry(Z, present, scaling.unit_rows)


@cache
def best_and_worst(data: Path, name: str):
    """The views whose own neighbor graph agrees most and least with the truth."""
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
    for X in map(written_out, views):
        mean = np.nan_to_num(np.nanmean(X, axis=0))
        out.append(np.where(np.isnan(X), mean, X))
    return out


def sum_of_graphs(views, k, seed):
    S = sum(normalized(view_graph(geometry(X), 10)) for X in views)
    return spectral_from_graph(sp.csr_array(S), k, np.random.default_rng(seed), True)


def best_single_view(views, labels, k, seed):
    """The labels of the one view whose clusters are nearest to the classes; nobody could choose it."""
    fits = [mv.RobustWMNMF(k, random_state=seed).fit([X]).labels_ for X in views]
    return max(fits, key=lambda found: mv.metrics.scores(labels, found)["nmi"])


def methods(views, labels, clean):
    n = len(labels)

    def robust(views, k, seed):
        return mv.RobustWMNMF(k, random_state=seed).fit(views)

    def equal(views, k, seed):
        return mv.RobustWMNMF(k, view_weights="equal", random_state=seed).fit(views)

    def by_communities(views, k, seed):
        return mv.RobustWMNMF("communities", random_state=seed).fit(views)

    def paper(views, k, seed):
        return mv.WMNMF(k, scale="minmax", random_state=seed).fit(filled(views))

    table = {
        OURS: robust,
        EQUAL: equal,
        "WMNMF": paper,
        "concat z + kNN-spectral": lambda v, k, s: concat_knn_spectral(
            [StandardScaler().fit_transform(X) for X in filled(v)], k, s
        ),
        "concat, our scaling + kNN-spectral": lambda v, k, s: concat_knn_spectral(
            [written_out(geometry(X).Z) for X in v], k, s
        ),
        "sum of graphs": sum_of_graphs,
        "concat z + k-means": lambda v, k, s: KMeans(k, n_init=10, random_state=s).fit_predict(
            np.hstack([StandardScaler().fit_transform(X) for X in filled(v)])
        ),
    }
    if clean:
        table[COMMUNITIES] = by_communities
        if any(is_square(X) for X in views):
            table[GRAPHS] = lambda v, k, s: robust(
                [mv.GraphView(X) if is_square(X) else X for X in v], k, s
            )
        table[SINGLE] = lambda v, k, s: best_single_view(v, labels, k, s)
    if n <= MLRSSC_LIMIT:
        table["MLRSSC"] = lambda v, k, s: mv.baselines.MLRSSC(k, random_state=s).fit_predict(
            filled(v)
        )
    return table


def run_case(data: str, name: str, condition: str, seed: int, asked: list | None, done: set):
    warnings.simplefilter("ignore")
    views, labels = load_set(Path(data), name)
    k, info = int(labels.max()) + 1, {}
    if condition != "clean":
        best, worst = best_and_worst(Path(data), name)
        views, info = module(Path(data) / "corrupt.py").corrupt(views, condition, best, worst, seed)
    rows = []
    for method, fit in methods(views, labels, condition == "clean").items():
        if (asked and method not in asked) or (name, condition, str(seed), method) in done:
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
        row |= {field: scores[field] for field in ("acc", "nmi", "ari")}
        row |= weights(result, info, len(labels))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--methods", nargs="*", help="only these, by their names in the table")
    parser.add_argument("--conditions", nargs="*", help="only these: clean, or corruptions")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", default="quality.csv")
    parser.add_argument("--against", type=Path, help="output file of another version")
    args = parser.parse_args()
    before = [] if args.against is None else list(csv.DictReader(args.against.open()))
    out, rows = Path(args.out), []
    if out.exists():
        rows = list(csv.DictReader(out.open()))
    done = {(r["set"], r["condition"], r["seed"], r["method"]) for r in rows}
    kinds = ("clean", *module(Path(args.data) / "corrupt.py").KINDS)
    tasks = [
        (name, kind, seed)
        for seed in range(args.seeds)
        for name in args.sets
        for kind in (kinds if name in CORRUPTED else ("clean",))
        if not args.conditions or kind in args.conditions
    ]
    with ProcessPoolExecutor(args.jobs) as pool, out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not rows:
            writer.writeheader()
        futures = {
            pool.submit(run_case, args.data, *task, args.methods, done): task for task in tasks
        }
        for count, future in enumerate(as_completed(futures), 1):
            new = future.result()
            writer.writerows(new)
            file.flush()
            rows += [{k: str(v) for k, v in row.items()} for row in new]
            print(f"\r{count}/{len(tasks)} cases", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    report([r for r in rows if r["set"] in args.sets], before)


if __name__ == "__main__":
    main()
