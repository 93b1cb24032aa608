"""How good are the clusters when views are missing? One table, manyview and iMML on the same data.

    pip install imml      # optional; without it its rows are left out
    python benchmarks/missing.py --data DIR [--seeds 2] [--shares .1 .3 .5] [--sets NAME ...]
                                 [--methods NAME ...] [--limit 60] [--jobs 2] [--out missing.csv]
                                 [--page docs/guide/benchmarks.md]

DIR holds NAME.npz files and `load.py`. `datasets.remove_views` removes the share of all pairs of a sample
and a view at random, another draw for each seed, for every method the same. iMML's methods get z-scored
features and their defaults otherwise. Printed as Markdown, and with ``--page`` written between the two
marks of that page: NMI in percent, mean over seeds, one number for each share; the mean rank of methods
with a result everywhere; reasons of empty cells. Finished runs of the same code are kept beside ``--out``.
"""

import argparse
import os
import sys
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

import manyview as mv
from manyview.app.compare.benchmark import Benchmark
from quality import fill_page, kept, load_set, markdown, said, troubles, written_out

#: Rows of a set, a fixed sample where it has more.
SETS = {"3sources": 169, "msrcv1_5": 210, "rosmap": 250, "digits6": 250, "bbcsport": 250}
OURS = ["RobustWMNMF", "WM-NMF", "NEMO", "SNF", "SumOfGraphs", "PIntMF", "MultiNMF2",
        "ConcatSpectral-z", "ConcatK-z", "P-MLRSSC"]  # fmt: skip
#: Those of iMML that need neither Octave nor torch; they are its class names.
IMML = ["DAIMC", "IMSR", "PIMVC", "EEIMVC", "LFIMVC", "OPIMC", "SIMCADC", "NEMO"]


class Imml:
    """A method of iMML with the interface of a baseline."""

    def __init__(self, kind, n_clusters, seed):
        self.kind, self.n_clusters, self.seed = kind, n_clusters, seed

    def fit_predict(self, views):
        kind = getattr(import_module("imml.cluster"), self.kind)
        scaled = [pd.DataFrame(StandardScaler().fit_transform(X)) for X in views.values()]
        return kind(self.n_clusters, random_state=self.seed).fit_predict(scaled)


def methods(asked):
    """Ours by name, and those of iMML where it is installed, as `compare_datasets` takes them."""
    try:
        import_module("imml.cluster")
        theirs = {f"iMML {kind}": partial(Imml, kind) for kind in IMML}
    except ImportError:
        theirs = {}
    names = asked or [*OURS, *theirs]
    return [{name: theirs[name]} if name in theirs else name for name in names]


def cases(args, draw):
    """The sets with views removed, by "set share"."""
    found = {}
    for name in args.sets:
        views, labels = load_set(args.data, name)
        rows = np.arange(len(labels))
        if len(rows) > SETS[name]:
            rows = np.sort(np.random.default_rng(0).permutation(len(labels))[: SETS[name]])
        whole = {f"view{s}": written_out(X[rows]) for s, X in enumerate(views)}
        for share in args.shares:
            removed = mv.datasets.remove_views(whole, share, seed=draw)
            found[f"{name} {share:.0%}"] = removed, labels[rows]
    return found


def report(table, sets):
    """The table by set, NMI for each share in a cell."""
    found = Benchmark(table, "nmi", {}).summary()
    found["set"] = found["dataset"].str.split().str[0]
    shown = (100 * found["mean"]).map("{:.0f}".format)
    empty = (
        found["status"]
        .where(found["status"] == "not applicable", "–")
        .replace("not applicable", "n/a")
    )
    found["text"] = shown.where(found["n_ok"] > 0, empty)
    # Ranks among the methods with a result everywhere: means over different cases do not compare.
    everywhere = found.groupby("method")["mean"].agg(lambda means: means.notna().all())
    full = Benchmark(table[table["method"].map(everywhere)], "nmi", {}).summary()
    ranks = full.groupby("method")["rank"].mean().sort_values()
    rows = []
    for method in [*ranks.index, *(m for m in found["method"].unique() if m not in ranks)]:
        texts = found[found["method"] == method].groupby("set")["text"].agg(list)
        cells = ["n/a" if set(texts[s]) == {"n/a"} else "/".join(texts[s]) for s in sets]
        rows.append([method, *cells, f"{ranks[method]:.1f}" if method in ranks else ""])
    return markdown(["method", *sets, "rank"], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--shares", type=float, nargs="*", default=[0.1, 0.3, 0.5])
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--methods", nargs="*", help="only these, by their names in the table")
    parser.add_argument("--limit", type=int, default=60, help="seconds for one run")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("missing.csv"))
    parser.add_argument("--page", type=Path, help="the page whose table is replaced")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    runs = [
        mv.compare_datasets(
            cases(args, draw), methods(args.methods), seeds=1, random_state=draw, n_jobs=args.jobs,
            out=kept(args.out), max_seconds=args.limit, progress=sys.stderr.isatty(),
        ).table.assign(draw=draw)
        for draw in range(args.seeds)
    ]  # fmt: skip
    table = pd.concat(runs, ignore_index=True)
    table.to_csv(args.out, index=False)
    table_of_means = (
        f"NMI in percent with {', '.join(f'{s:.0%}' for s in args.shares)} of the views missing"
    )
    parts = [said(parser, args), table_of_means + ":", report(table, args.sets), *troubles(table)]
    text = "\n\n".join(parts)
    print(text)
    if args.page:
        fill_page(args.page, text)


if __name__ == "__main__":
    main()
