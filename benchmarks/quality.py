"""How good are the clusters, on every labeled dataset of a folder, clean and corrupted?

    python benchmarks/quality.py --data DIR [--seeds 5] [--sets NAME ...] [--methods NAME ...]
                                 [--conditions clean ...] [--jobs 2] [--limit 120] [--out quality.csv]
                                 [--against older.csv] [--page docs/quality.md]

DIR holds NAME.npz files (view_<name> arrays and labels), `load.py` and `corrupt.py`. `compare_datasets`
runs every method on every set, and on those named in `CORRUPTED` under six corruptions, each drawn as
often as there are seeds. Printed as Markdown, and with ``--page`` written between the two marks of that
page: NMI of every set, paired differences from the first method with intervals, published results, the
mean under each corruption, and the size of each set. The file ``--out`` has every run; finished runs of
the same code are kept beside it, so that an interrupted command continues. ``--against`` is the file of
another version, whose RobustWMNMF becomes the method "before".
"""

import argparse
import importlib.util
import os
import re
import shlex
import sys
import warnings
from functools import cache
from itertools import groupby, product
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

import manyview as mv
from manyview.app.compare.benchmark import Benchmark
from manyview.io import checksum

OURS = "RobustWMNMF"
#: An ablation, and the most accurate of all views. `compare_datasets` sets their numbers of clusters.
OWN = {
    "equal weights": mv.RobustWMNMF(8, view_weights="equal"),
    "best view (oracle)": mv.baselines.BestSingleView(mv.RobustWMNMF(8)),
}
METHODS = [OURS, *OWN, "SumOfGraphs", "ConcatSpectral-z", "ConcatK-z", "ConcatLeiden", "SNF", "NEMO",
           "PIntMF", "MultiNMF2", "P-MLRSSC", "WM-NMF"]  # fmt: skip
CORRUPTED = ["digits4", "digits6", "bbcsport", "3sources", "mnist_hog4", "100leaves", "bdgp3",
             "reuters1200", "scene15", "msrcv1_5", "rosmap", "citeseer", "tcga_laml170",
             "landuse21"]  # fmt: skip
#: Rows kept of the larger ones (a fixed sample), so that dense views stay cheap; other sets are whole.
CAPS = {"mnist_hog4": 2000, "bdgp3": 1500, "scene15": 1500, "citeseer": 1500, "landuse21": 1050}
DIGITS = {
    "digits4": ("fou", "pix", "zer", "fac"),
    "digits6": ("fac", "fou", "kar", "mor", "pix", "zer"),
}
BIGMC = "BIGMC (Li & He, IEEE TKDE 2020)"
#: Sets by what the samples are; bdgp3 is both, images and words.
KINDS = {
    "text": ["3sources", "bbcsport", "reuters1200"],
    "images": ["100leaves", "digits4", "digits6", "landuse21", "mnist_hog4", "msrcv1_5", "scene15"],
    "omics": ["liver_toxicity", "proteinfold12", "rosmap", "tcga_laml170"],
    "cells": ["pairedtag_h3k4me3"],
    "links": ["acm", "citeseer", "webkb_cornell", "webkb_texas"],
}
#: Set → method and source, ACC, NMI, ARI. Views and scaling of the sets may differ from ours.
PUBLISHED = {
    "3sources": (BIGMC, 0.797, 0.705, 0.661),
    "100leaves": (BIGMC, 0.921, 0.960, 0.883),
    "digits6": ("MLAN (Nie et al., IEEE TIP 2018)", 0.973, 0.939, 0.940),
    "msrcv1_5": ("SFMC (Li et al., IEEE TPAMI 2022)", 0.810, 0.721, 0.663),
    "pairedtag_h3k4me3": (
        "JSNMF (Ma et al., Briefings in Bioinformatics 2022)",
        None,
        0.854,
        0.836,
    ),
}


def module(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def labeled_sets(data: Path):
    """Names of the sets with labels; the digits twice, with four and six views."""
    names = [p.stem for p in sorted(data.glob("*.npz")) if "labels" in np.load(p).files]
    return [s for name in names for s in (DIGITS if name == "handwritten6" else [name])]


@cache
def load_set(data: Path, name: str):
    file = "handwritten6" if name in DIGITS else name
    views, labels = module(data / "load.py").load(data / f"{file}.npz")
    found = [views[v] for v in DIGITS.get(name, views)]
    if name in CORRUPTED:
        found = [written_out(X) for X in found]
    if len(labels) > CAPS.get(name, np.inf):
        rows = np.sort(np.random.default_rng(0).permutation(len(labels))[: CAPS[name]])
        found, labels = [X[rows] for X in found], labels[rows]
    return found, np.unique(labels, return_inverse=True)[1]


def written_out(X):
    return np.asarray(X.toarray() if sp.issparse(X) else X, float)


@cache
def best_and_worst(data: Path, name: str):
    """The views that, clustered alone, agree most and least with the classes."""
    views, labels = load_set(data, name)
    k = len(np.unique(labels))
    found = [mv.RobustWMNMF(k, random_state=0).fit_predict([X]) for X in views]
    nmi = [mv.metrics.scores(labels, y)["nmi"] for y in found]
    return int(np.argmax(nmi)), int(np.argmin(nmi))


def case(data: Path, name: str, kind: str, draw: int):
    """Views, labels, and what was corrupted."""
    views, labels = load_set(data, name)
    if kind == "clean":
        return views, labels, {}
    corrupt = module(data / "corrupt.py").corrupt
    views, info = corrupt(views, kind, *best_and_worst(data, name), draw)
    return views, labels, info


def kept(out: Path):
    """The folder of finished runs: those of other code are others."""
    code = b"".join(p.read_bytes() for p in sorted(Path(mv.__file__).parent.rglob("*.py")))
    return out.with_suffix(".runs") / checksum.of_bytes(code)[:12]


def run(args, kinds):
    """The runs of all methods: table of runs by condition, and the comparisons of the clean sets."""
    methods = [{m: OWN[m]} if m in OWN else m for m in args.methods]
    tables, clean = [], {}
    for kind in kinds:
        names = [s for s in args.sets if kind == "clean" or s in CORRUPTED]
        for draw in range(1 if kind == "clean" else args.seeds):
            found = mv.compare_datasets(
                {name: case(args.data, name, kind, draw)[:2] for name in names},
                methods,
                seeds=args.seeds if kind == "clean" else 1,
                random_state=draw,
                out=kept(args.out),
                n_jobs=args.jobs,
                max_seconds=args.limit,
                progress=sys.stderr.isatty(),
            )
            tables.append(found.table.assign(condition=kind, draw=draw))
            clean |= found.comparisons if kind == "clean" else {}
            pd.concat(tables).to_csv(args.out, index=False)
    return pd.concat(tables, ignore_index=True), clean


def markdown(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def paired(found: Benchmark):
    """Differences from the first method with intervals."""
    header = ["method", "sets", f"NMI of {OURS} minus its NMI", "95% interval",
              "better/equal/worse", "p (Holm)"]  # fmt: skip
    rows = [
        [t.method, t.n, f"{t.difference:+.3f}", f"{t.low:+.3f} to {t.high:+.3f}",
         f"{t.wins}/{t.ties}/{t.losses}", f"{t.p_holm:.2g}"]
        for t in found.tests(OURS).itertuples()
    ]  # fmt: skip
    return markdown(header, rows)


def by_kind(table):
    """Mean NMI over all sets and over those of a kind, for methods with a result on each of them."""
    means = table.groupby(["dataset", "method"], sort=False)["nmi"].mean().unstack()
    means = means[list(dict.fromkeys(table["method"]))]
    kinds = {"all": list(means.index)} | {
        k: [s for s in sets if s in means.index] for k, sets in KINDS.items()
    }
    rows = [
        [f"{kind} ({len(sets)})", *("–" if np.isnan(x) else f"{x:.3f}" for x in of_kind)]
        for kind, sets in kinds.items() if sets
        for of_kind in [means.loc[sets].mean(skipna=False)]
    ]  # fmt: skip
    return markdown(["kind (sets)", *means.columns], rows)


def published(table):
    means = table[table["method"] == OURS].groupby("dataset")[["acc", "nmi", "ari"]].mean()
    rows = [
        [name, source, "/".join("–" if x is None else f"{x:.3f}" for x in scores),
         "/".join(f"{x:.3f}" for x in means.loc[name])]
        for name, (source, *scores) in PUBLISHED.items() if name in means.index
    ]  # fmt: skip
    return markdown(["set", "best published result found", "its ACC/NMI/ARI", OURS], rows)


def inputs(comparisons):
    rows = [
        [name, c.settings["n_samples"], c.settings["n_classes"], widths(c.settings["views"].values())]
        for name, c in comparisons.items()
    ]  # fmt: skip
    return markdown(["set", "samples", "classes", "features of the views"], rows)


def widths(features):
    runs = [(len(list(same)), width) for width, same in groupby(features)]
    return ", ".join(f"{n}×{width}" if n > 1 else str(width) for n, width in runs)


def corruptions(table, metric="nmi"):
    """Mean over the corrupted sets by condition, for methods with a result everywhere."""
    some = table[table["dataset"].isin(table.loc[table["condition"] != "clean", "dataset"])]
    means = some.groupby(["method", "condition", "dataset"], sort=False)[metric].mean()
    wide = means.unstack("method").dropna(axis=1).groupby("condition", sort=False).mean()
    rows = [[kind, *(f"{x:.3f}" for x in row)] for kind, *row in wide.itertuples()]
    return markdown(["condition", *wide.columns], rows)


def weights(args, kinds):
    """Weights of noise views, and how well sample weights find corrupted rows, in fits of RobustWMNMF."""
    found = {kind: [] for kind in kinds if kind not in ("clean", "views_missing")}
    sets = [name for name in args.sets if name in CORRUPTED]
    for kind, name, draw in product(found, sets, range(args.seeds)):
        views, labels, info = case(args.data, name, kind, draw)
        model = mv.RobustWMNMF(len(np.unique(labels)), random_state=draw).fit(views)
        if "noise_view" in info:
            alpha, s = model.view_weights_, info["noise_view"]
            found[kind].append((alpha[s], alpha[s] <= np.delete(alpha, s).min()))
        else:
            corrupted = np.isin(np.arange(len(labels)), info["rows"])
            found[kind].append(roc_auc_score(corrupted, -model.sample_weights_[:, info["view"]]))
    lines = []
    for kind, values in found.items():
        if kind == "rows_corrupted":
            lines.append(
                f"- {kind}: sample weights find the rows with an AUC of {np.mean(values):.3f}"
            )
        else:
            weight, lowest = np.array(values, float).T
            lines.append(
                f"- {kind}: the view of noise or of other samples has a weight of {weight.mean():.3f} "
                f"({weight.max():.3f} at most), the lowest in {lowest.sum():.0f} of {len(lowest)} fits"
            )
    return "\n".join(lines)


def troubles(table):
    """Why there is no result, other than the limit of time: a line for each method and reason."""
    lost = table[table["status"] != "ok"].drop_duplicates(["dataset", "method"])
    slow = lost["reason"].str.contains("max_seconds")
    every = table["dataset"].nunique()
    why = (
        lost[~slow]
        .groupby(["method", "reason"], sort=False)["dataset"]
        .agg(lambda names: "all" if len(names) == every else ", ".join(names))
    )
    lines = [f"- {method}: {reason} ({sets})" for (method, reason), sets in why.items()]
    if slow.any():
        lines.insert(0, "- All other missing results: longer than the time limit")
    return ["\n".join(lines)] if lines else []


def said(parser, args):
    """The command without what is a default, or belongs to the place where it ran."""
    words = [Path(sys.argv[0]).name, "--data", "DIR"]
    for key, value in vars(args).items():
        if key not in ("data", "jobs", "out", "page", "against") and value != parser.get_default(
            key
        ):
            words += [f"--{key}", *map(str, value if isinstance(value, list) else [value])]
    return f"Command: `python benchmarks/{shlex.join(words)}`."


def fill_page(page: Path, text: str):
    """Put the text between the two marks of a page."""
    mark, end = f"<!-- {Path(sys.argv[0]).name} -->", "<!-- end -->"
    old = page.read_text(encoding="utf-8")
    new, n = re.subn(f"(?s){mark}.*?{end}", lambda _: f"{mark}\n\n{text}\n\n{end}", old)
    if not n:
        sys.exit(f"{page} lacks the marks {mark} and {end}")
    page.write_text(new, encoding="utf-8")


def report(args, kinds, table, clean):
    """The generated part of the page."""
    parts = [args.command]
    if clean:
        found = Benchmark(table[table["condition"] == "clean"], "nmi", clean)
        if args.against:
            before = pd.read_csv(args.against).rename(columns={"set": "dataset"})
            keep = (before["condition"] == "clean") & (before["method"] == OURS)
            before = before[keep & before["dataset"].isin(found.table["dataset"])]
            before = before.assign(method="before", status="ok", oracle=False)
            found.table = pd.concat([found.table, before], ignore_index=True)
        parts.append(
            f"NMI in percent, seeds: {args.seeds}, mean ± sd:\n\n{found.to_markdown().strip()}"
        )
        parts.append(f"Mean NMI by kind of data:\n\n{by_kind(found.table)}")
        if OURS in args.methods and len(args.methods) + bool(args.against) > 1:
            parts.append(f"Paired by dataset:\n\n{paired(found)}")
        if OURS in args.methods:
            parts.append(f"Published results:\n\n{published(found.table)}")
        parts += troubles(found.table)
        parts.append(f"Data:\n\n{inputs(clean)}")
    if len(kinds) > bool(clean):
        parts.append(f"Mean NMI of the corrupted sets:\n\n{corruptions(table)}")
        if OURS in args.methods:
            parts.append(f"Weights of {OURS}:\n\n{weights(args, kinds)}")
    return "\n\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", nargs="*", help="by default all with labels")
    parser.add_argument("--methods", nargs="*", default=METHODS, help="or any name of `compare`")
    parser.add_argument("--conditions", nargs="*", help="only these: clean, or corruptions")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=int, default=120, help="seconds for one run")
    parser.add_argument("--out", type=Path, default=Path("quality.csv"))
    parser.add_argument("--against", type=Path, help="output file of another version")
    parser.add_argument("--page", type=Path, help="the page whose tables are replaced")
    args = parser.parse_args()
    args.command = said(parser, args)
    args.sets = args.sets or labeled_sets(args.data)
    kinds = ["clean", *module(args.data / "corrupt.py").KINDS]
    kinds = [kind for kind in kinds if not args.conditions or kind in args.conditions]
    warnings.simplefilter("ignore")
    text = report(args, kinds, *run(args, kinds))
    print(text)
    if args.page:
        fill_page(args.page, text)


if __name__ == "__main__":
    main()
