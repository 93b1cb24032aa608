"""How good are the clusters when views are missing? One table, manyview and iMML on the same data.

    pip install imml      # optional; without it its rows are left out
    python benchmarks/missing.py --data DIR [--seeds 2] [--shares .1 .3 .5] [--out missing.csv]

DIR holds NAME.npz files and `load.py`. `datasets.remove_views` removes the share of all pairs of a sample
and a view at random, for every method the same. iMML's methods get z-scored features and their defaults
otherwise. Rows in the output file are not run again. Printed: NMI in percent, mean over seeds, one number
per share; the mean rank, of methods with a result everywhere; reasons of empty cells; seconds of CPU.
"""

import argparse
import os
import signal
import time
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

import manyview as mv
from manyview.app.compare.benchmark import Benchmark
from manyview.app.compare.comparison import seed_of
from manyview.app.compare.methods import resolve
from manyview.app.compare.runs import from_zero, takes_none
from quality import module

#: Rows of a set, a fixed sample where it has more.
SETS = {"3sources": 169, "msrcv1_5": 210, "rosmap": 250, "handwritten6": 250, "bbcsport": 250}
OURS = ["RobustWMNMF", "WM-NMF", "NEMO", "SNF", "SumOfGraphs", "PIntMF", "MultiNMF2",
        "ConcatSpectral-z", "ConcatK-z", "P-MLRSSC"]  # fmt: skip
#: Those of iMML that need neither Octave nor torch; they are its class names.
IMML = ["DAIMC", "IMSR", "PIMVC", "EEIMVC", "LFIMVC", "OPIMC", "SIMCADC", "NEMO"]


class Imml:
    """A method of iMML with the interface of a baseline."""

    def __init__(self, kind, n_clusters, seed):
        self.model = getattr(import_module("imml.cluster"), kind)(n_clusters, random_state=seed)

    def fit_predict(self, views):
        scaled = [StandardScaler().fit_transform(X) for X in views.values()]
        return self.model.fit_predict([pd.DataFrame(X) for X in scaled])


def methods(n_clusters):
    found = {method.name: method.make for method in resolve(OURS, n_clusters, missing=True)}
    try:
        import_module("imml.cluster")
    except ImportError:
        return found
    return found | {f"iMML {kind}": partial(Imml, kind, n_clusters) for kind in IMML}


def load_set(data, name):
    views, labels = module(data / "load.py").load(data / f"{name}.npz")
    rows = np.arange(len(labels))
    if len(rows) > SETS[name]:
        rows = np.sort(np.random.default_rng(0).permutation(len(labels))[: SETS[name]])
    views = {
        v: np.asarray(X.toarray() if sp.issparse(X) else X, float)[rows] for v, X in views.items()
    }
    return views, np.unique(labels[rows], return_inverse=True)[1]


def too_long(*_):
    raise TimeoutError


def run(make, views, labels, seed, limit):
    """One row: status, reason, scores and seconds of CPU."""
    start = time.process_time()
    signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        model = make(seed)
        ours = hasattr(model, "__sklearn_tags__")
        if ours and not model.__sklearn_tags__().input_tags.allow_nan:
            return {"status": "not applicable", "reason": "it needs complete views"}
        if takes_none(model):  # as `compare` does
            views = {name: from_zero(X) for name, X in views.items()}
        scores = mv.metrics.scores(labels, np.asarray(model.fit_predict(views)))
    except TimeoutError:
        return {"status": "skipped", "reason": f"more than {limit:g} s of CPU"}
    except Exception as error:
        return {"status": "failed", "reason": f"{type(error).__name__}: {error}"[:200]}
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return {"status": "ok", "reason": "", "seconds": time.process_time() - start, **scores}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--shares", type=float, nargs="*", default=[0.1, 0.3, 0.5])
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--methods", nargs="*", help="only these, by their names in the table")
    parser.add_argument("--limit", type=float, default=60, help="seconds of CPU for one run")
    parser.add_argument("--out", type=Path, default=Path("missing.csv"))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = pd.read_csv(args.out).to_dict("records") if args.out.exists() else []
    done = {(r["set"], r["share"], r["run"], r["method"]) for r in rows}
    for r in range(args.seeds):
        seed = seed_of(0, r)
        for name in args.sets:
            whole, labels = load_set(args.data, name)
            for share in args.shares:
                views = mv.datasets.remove_views(whole, share, seed=r)
                for method, make in methods(int(labels.max()) + 1).items():
                    wanted = not args.methods or method in args.methods
                    if wanted and (name, share, r, method) not in done:
                        place = {"set": name, "share": share, "run": r, "method": method}
                        rows.append(
                            {**place, "oracle": False, **run(make, views, labels, seed, args.limit)}
                        )
                        pd.DataFrame(rows).to_csv(args.out, index=False)
    table = pd.DataFrame(rows)
    table["reason"] = table["reason"].fillna("")
    table["dataset"] = table["set"] + " " + (100 * table["share"]).astype(int).astype(str)
    found = Benchmark(table, "nmi", {}).summary()
    found["set"] = found["dataset"].str.split().str[0]
    shown = (100 * found["mean"]).map("{:.0f}".format)
    empty = found["status"].replace({"not applicable": "n/a", "skipped": "slow"})
    found["text"] = shown.where(found["n_ok"] > 0, empty)
    # Ranks among the methods with a result everywhere: means over different cases do not compare.
    whole = found.groupby("method")["mean"].count() == len(args.sets) * len(args.shares)
    full = table[table["method"].map(whole)]
    ranks = Benchmark(full, "nmi", {}).summary().groupby("method")["rank"].mean().sort_values()
    print("| method |", *(f"{name} |" for name in args.sets), "rank |")
    print("|---|" + "---|" * len(args.sets) + "---:|")
    for method in [*ranks.index, *(m for m in found["method"].unique() if m not in ranks)]:
        mine = found[found["method"] == method].groupby("set")["text"].agg(list)
        texts = [mine.get(name, ["–"]) for name in args.sets]
        cells = [text[0] if len(set(text)) == 1 else "/".join(text) for text in texts]
        rank = f"{ranks[method]:.1f}" if method in ranks else ""
        print("|", " | ".join([method, *cells, rank]), "|")
    ok = table[table["status"] == "ok"]
    print(ok.groupby("method", sort=False)["seconds"].median().round(2).to_string())
    print(
        table.loc[table["status"] != "ok", ["method", "status", "reason"]]
        .value_counts()
        .to_string()
    )


if __name__ == "__main__":
    main()
