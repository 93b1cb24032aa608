"""Single cells: communities of the fused graph beside the tools of the field, at several resolutions.

    python benchmarks/single_cell.py --data DIR [--set NAME] [--resolution 0.5 1 1.5 2] [--only NAME]
    python benchmarks/single_cell.py --mudata FILE.h5mu --labels COLUMN
    python benchmarks/single_cell.py --synthetic cite|multiome [CELLS]
    python benchmarks/single_cell.py --batches [CELLS]
    python benchmarks/single_cell.py --scrambled [CELLS]
    python benchmarks/single_cell.py --time CELLS

DIR holds NAME.npz files and `load.py` (as for `quality.py`); FILE is any MuData whose ``obs`` has a column
of known cell types. A row is a method: at each resolution the number of clusters, the adjusted Rand index
and NMI, the mean of the index over resolutions, the index at the resolution with the true number of
clusters, then the seconds of CPU until the graph is there. Methods: `mv.tl.cluster` by communities and, at
the true number, by k-means; scanpy's Leiden on the neighbors of each modality (30 principal components; of
chromatin LSI: TF-IDF, and singular vectors without the first);
Leiden on muon's weighted nearest neighbors; Leiden on the neighbors of 15 MOFA+ factors of
the 2,000 most variable features of each modality. Methods whose
package (scanpy with igraph, muon, mofapy2) is not installed are left out, and said to be. Leiden of peers
is igraph's, until it settles, seed 0. All get the same matrices: log-normalized, as the set comes.

--scrambled gives the AUC with which cells with noise as proteins rely less on them, and cells with the
proteins of another type have a lower agreement. --time is one run of 2,000 genes and 150 proteins: CPU
seconds and peak memory of `mv.tl.cluster`, of scanpy's pipeline for the genes, and of muon's weighted
neighbors for both, each in a process of its own after a warm-up.
--batches clusters synthetic CITE-seq of several batches: ARI with the types, NMI with the batches (of the
types themselves: where batches hold other types it is not 0), with `batch=` and without, and the share of
counterparts where the fit warns that batches have few types in common.
"""

import argparse
import contextlib
import io
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import anndata
import mudata
import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds
from sklearn.metrics import (
    adjusted_rand_score,
    normalized_mutual_info_score,
    roc_auc_score,
)

import manyview as mv
import whole_data
from quality import module

COMPONENTS, FACTORS, VARIABLE = 30, 15, 2000


def as_mudata(views: dict[str, Any]) -> mudata.MuData:
    """The views of a set as modalities of the same cells."""
    made = {}
    for name, X in views.items():
        made[name] = anndata.AnnData(X.astype(np.float32))
        made[name].obs_names = [f"cell{i}" for i in range(X.shape[0])]
        made[name].var_names = [f"{name}{j}" for j in range(X.shape[1])]
    return mudata.MuData(made)


# --- graphs of the methods: each leaves neighbors in the object it returns -----------------------


#: Names of modalities of chromatin, for which peers use LSI.
CHROMATIN = ("atac", "histone", "peaks")


def of_modality(data: mudata.MuData, name: str) -> anndata.AnnData:
    import scanpy

    one = data.mod[name].copy()
    if name in CHROMATIN:
        one.obsm["X_lsi"] = lsi(one.X)
        scanpy.pp.neighbors(one, use_rep="X_lsi", random_state=0)
        return one
    scanpy.pp.pca(one, n_comps=min(COMPONENTS, one.n_vars - 1), random_state=0)
    scanpy.pp.neighbors(one, random_state=0)
    return one


def lsi(X: Any) -> np.ndarray:
    """TF-IDF of which peaks are open, and its singular vectors without the first, which is depth."""
    opened = sp.csr_array(X > 0).astype(float)
    depth, cells = (np.maximum(np.asarray(opened.sum(axis=a)).ravel(), 1) for a in (1, 0))
    weighted = sp.diags_array(1e4 / depth) @ opened @ sp.diags_array(len(depth) / cells)
    weighted.data = np.log1p(weighted.data)
    U, length, _ = svds(weighted, COMPONENTS + 1, rng=0)
    return (U * length)[:, np.argsort(length)[::-1][1:]]


def weighted_neighbors(data: mudata.MuData) -> mudata.MuData:
    import muon

    both = mudata.MuData({name: of_modality(data, name) for name in data.mod})
    muon.pp.neighbors(both, random_state=0)
    return both


def _most_variable(X: Any) -> np.ndarray:
    """The features of the largest variance: MOFA+ takes dense views, and its authors advise it."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    return X[:, np.argsort(X.var(axis=0))[::-1][:VARIABLE]]


def mofa_factors(data: mudata.MuData) -> anndata.AnnData:
    import scanpy
    from mofapy2.run.entry_point import entry_point

    model = entry_point()
    matrices = [_most_variable(part.X) for part in data.mod.values()]
    model.set_data_options(scale_views=True)
    model.set_data_matrix([[X] for X in matrices], views_names=list(data.mod))
    model.set_model_options(factors=FACTORS)
    model.set_train_options(seed=0, convergence_mode="fast", quiet=True)
    model.build()
    model.run()
    factors = anndata.AnnData(np.asarray(model.model.nodes["Z"].getExpectation()))
    scanpy.pp.neighbors(factors, use_rep="X", random_state=0)
    return factors


def peers(data: mudata.MuData) -> Iterator[tuple[str, Callable[[], Any], tuple[str, ...]]]:
    """Name, what makes the graph, and which packages it needs."""
    for name in data.mod:
        yield (
            f"scanpy, {name} alone",
            lambda name=name: of_modality(data, name),
            ("scanpy", "igraph"),
        )
    yield (
        "muon, weighted neighbors",
        lambda: weighted_neighbors(data),
        ("muon", "scanpy", "igraph"),
    )
    yield "MOFA+ factors", lambda: mofa_factors(data), ("mofapy2", "scanpy", "igraph")


def leiden(graph: Any, resolution: float, rounds: int = -1) -> np.ndarray:
    import scanpy

    settings = {"flavor": "igraph", "n_iterations": rounds, "directed": False, "random_state": 0}
    scanpy.tl.leiden(graph, resolution=resolution, **settings)
    return graph.obs["leiden"].astype(int).to_numpy()


# --- the table ---------------------------------------------------------------------------------


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):  # MOFA+ prints much
        warnings.simplefilter("ignore")
        found = work()
    return found, time.process_time() - start


def summary(truth: np.ndarray, found: list[np.ndarray], matched: np.ndarray) -> list[str]:
    """Each resolution, the mean over them, and the index at the true number of clusters."""
    aris = [adjusted_rand_score(truth[y >= 0], y[y >= 0]) for y in found]
    return [*(cell(truth, y) for y in found), f"{np.mean(aris):.3f}", cell(truth, matched)]


def at_number(graph: Any, wanted: int) -> np.ndarray:
    """Communities at the resolution whose number is nearest to the one wanted, by bisection."""
    low, high, best = 0.01, 8.0, None
    for _ in range(12):
        middle = np.sqrt(low * high)
        labels = leiden(graph, middle)
        count = len(np.unique(labels))
        if best is None or abs(count - wanted) < abs(len(np.unique(best)) - wanted):
            best = labels
        if count == wanted:
            break
        low, high = (middle, high) if count < wanted else (low, middle)
    return best


def cell(truth: np.ndarray, found: np.ndarray) -> str:
    known = found >= 0
    ari = adjusted_rand_score(truth[known], found[known])
    nmi = normalized_mutual_info_score(truth[known], found[known])
    return f"{len(np.unique(found[known]))}: {ari:.3f} / {nmi:.3f}"


def ours(data: mudata.MuData, truth: np.ndarray, resolutions: list[float]) -> Iterator[list[str]]:
    found, seconds = [], []
    for resolution in resolutions:
        model, spent = timed(lambda r=resolution: mv.tl.cluster(data, resolution=r))
        found.append(model.labels_)
        seconds.append(spent)
    weights = zip(model.view_names_in_, model.view_weights_, strict=True)
    print(
        "weights of the views: " + ", ".join(f"{name} {w:.2f}" for name, w in weights),
        file=sys.stderr,
    )
    model = mv.tl.cluster(data, len(np.unique(truth)))
    yield ["**manyview**", *summary(truth, found, model.labels_), f"{np.median(seconds):.0f}"]


def theirs(
    data: mudata.MuData, truth: np.ndarray, resolutions: list[float], only: str
) -> Iterator[list[str]]:
    for name, make, needs in peers(data):
        if only not in name:
            continue
        absent = [package for package in needs if find_spec(package) is None]
        if absent:
            yield [name, f"not installed: {', '.join(absent)}", *[""] * (len(resolutions) + 2)]
            continue
        graph, seconds = timed(make)
        found = [timed(lambda r=r, graph=graph: leiden(graph, r))[0] for r in resolutions]
        matched = timed(lambda g=graph: at_number(g, len(np.unique(truth))))[0]
        yield [name, *summary(truth, found, matched), f"{seconds:.0f}"]


def batched(n: int) -> Iterator[tuple[str, dict[str, Any], np.ndarray, np.ndarray]]:
    """Name, views, types and batches of synthetic cells."""
    lacking, half, three = np.ones((2, 8)), np.ones((2, 8)), np.ones((3, 8))
    few = {shared: np.ones((2, 8)) for shared in (6, 4, 2, 0)}
    for shared, odds in few.items():
        odds[0, shared::2] = odds[1, shared + 1 :: 2] = 0
    lacking[1, 0] = lacking[0, 3] = half[1, :4] = 0
    three[0, [1, 2]] = three[1, [0, 5]] = three[2, 3] = 0
    for name, options, own in (
        ("two batches", {}, 0.0),
        ("no batch effect", {"batch_effect": 0.0}, 0.0),
        ("strong effect", {"batch_effect": 1.0}, 0.0),
        ("effects differ by type", {}, 0.3),
        ("each lacks a type", {"batch_types": lacking}, 0.0),
        ("each lacks a type, effects differ by type", {"batch_types": lacking}, 0.3),
        ("one lacks half of the types", {"batch_types": half}, 0.0),
        ("three batches lack types", {"n_batches": 3, "batch_types": three}, 0.0),
        *((f"{n} of 8 types in common", {"batch_types": odds}, 0.0) for n, odds in few.items()),
    ):
        data = mv.datasets.make_single_cells(n, 8, **{"n_batches": 2, **options}, random_state=1)
        batch = np.unique(data.clinical["batch"], return_inverse=True)[1]
        rng, views = np.random.default_rng(0), {}
        for view, X in data.views.items():
            X = X.toarray() if sp.issparse(X) else X
            kept = np.exp(-abs(rng.normal(0, own, (batch.max() + 1, 8, X.shape[1]))))
            X = rng.binomial(X.astype(int), kept[batch, data.labels]).astype(float)
            views[view] = np.log1p(1e4 * X / np.maximum(X.sum(axis=1, keepdims=True), 1))
        views["rna"] = sp.csr_array(views["rna"])
        yield name, views, data.labels, batch


def compare_batches(n: int) -> None:
    def clustered(views: dict[str, Any], **batch: Any) -> tuple[np.ndarray, str]:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = mv.RobustWMNMF("communities", random_state=0).fit(views, **batch)
        found = re.findall(r"only (\d+%) of batch", " ".join(str(w.message) for w in told))
        return model.labels_, ", ".join(found) or "no"

    heads = [
        "cells",
        "manyview, batch=",
        "manyview without",
        "types themselves",
        "warning",
    ]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|", flush=True)
    for name, views, types, batch in batched(n):
        found, warned = clustered(views, batch=batch)
        found = [found, clustered(views)[0]]
        cells = [
            f"{adjusted_rand_score(types, labels):.3f} / "
            f"{normalized_mutual_info_score(batch, labels):.3f}"
            for labels in found
        ]
        cells += [f"1 / {normalized_mutual_info_score(batch, types):.3f}", warned]
        print("| " + " | ".join([name, *cells]) + " |", flush=True)


# --- synthetic cells --------------------------------------------------------------------------


def log_shares(X: Any, total: float = 1e4) -> Any:
    X = sp.csr_array(X).astype(float)
    X = sp.csr_array(X.multiply(total / np.maximum(np.asarray(X.sum(axis=1)), 1).reshape(-1, 1)))
    X.data = np.log1p(X.data)
    return X


def synthetic(kind: str, n: int) -> tuple[mudata.MuData, np.ndarray]:
    """Cells of ten types; two pairs of them look alike in one modality each."""
    other = {"cite": "adt", "multiome": "atac"}[kind]
    data = mv.datasets.make_single_cells(
        n, 10, ("rna", other), indistinct={"rna": [(2, 3)], other: [(0, 1)]}, random_state=0
    )
    views = {name: log_shares(X) for name, X in data.views.items()}
    if kind == "cite":
        counts = np.log1p(data.views["adt"])
        views["adt"] = counts - counts.mean(axis=1, keepdims=True)
    return as_mudata(views), data.labels


def find_scrambled(n: int) -> None:
    for how in ("noise", "other"):
        data = mv.datasets.make_single_cells(n, 8, scrambled=0.1, scrambled_by=how, random_state=0)
        wrong, adt = np.array(data.clinical["scrambled"]), np.log1p(data.views["adt"])
        views = {"rna": log_shares(data.views["rna"])}
        views["adt"] = adt - adt.mean(axis=1, keepdims=True)
        model = mv.RobustWMNMF("communities", random_state=0).fit(views)
        sign = -model.reliance_[:, 1] if how == "noise" else -model.sample_agreement_
        what = "reliance on proteins" if how == "noise" else "agreement"
        print(f"proteins of {how}: {what}, AUC {roc_auc_score(wrong, sign):.3f}")


def compare_time(n: int, only: str) -> None:
    """Every method in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        genes, adt, types = whole_data.cells(n)
        sp.save_npz(f"{folder}/rna.npz", genes, compressed=False)
        np.savez(f"{folder}/rest.npz", adt=adt, labels=types)
        print(
            f"{n} cells, {1 - genes.nnz / np.prod(genes.shape):.0%} of the genes zeros", flush=True
        )
        for name in TIMED:
            if only in name:
                subprocess.run([sys.executable, __file__, "--timed", name, folder], check=True)


TIMED = {
    "scanpy, genes": lambda cells: leiden(of_modality(cells, "rna"), 1.0, 2),
    "muon, both": lambda cells: leiden(weighted_neighbors(cells), 1.0, 2),
    "manyview, both": lambda cells: mv.tl.cluster(cells).labels_,
}


def time_one(name: str, folder: str) -> None:
    """CPU seconds after a warm-up with fewer cells, and the peak memory, in which the data are."""
    rest = np.load(f"{folder}/rest.npz")
    cells = as_mudata({"rna": sp.load_npz(f"{folder}/rna.npz"), "adt": rest["adt"]})
    # As many as make peers search approximately, too.
    timed(lambda: TIMED[name](cells[: min(10_000, cells.n_obs)].copy()))
    labels, seconds = timed(lambda: TIMED[name](cells))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    ari = adjusted_rand_score(rest["labels"], labels)
    found = f"{len(np.unique(labels))} clusters, ARI {ari:.3f}"
    print(f"{name}: {seconds:.1f} CPU s, {found}, peak {peak:.2f} GiB", flush=True)


def read(args: argparse.Namespace) -> tuple[mudata.MuData, np.ndarray]:
    if args.synthetic:
        kind, *size = args.synthetic
        return synthetic(kind, int(size[0]) if size else 1500)
    if args.mudata:
        data = mudata.read_h5mu(args.mudata)
        return data, np.unique(data.obs[args.labels].astype(str), return_inverse=True)[1]
    views, truth = module(args.data / "load.py").load(args.data / f"{args.set}.npz")
    return as_mudata(views), truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--set", default="pairedtag_h3k4me3")
    parser.add_argument("--mudata", type=Path)
    parser.add_argument("--labels", default="cell_type")
    parser.add_argument("--resolution", nargs="+", type=float, default=[0.5, 1.0, 1.5, 2.0])
    parser.add_argument("--only", default="", help="methods with this in their name")
    parser.add_argument("--batches", nargs="?", type=int, const=1500, help="synthetic batches")
    parser.add_argument("--synthetic", nargs="+", help="cite or multiome, and a number of cells")
    parser.add_argument("--scrambled", nargs="?", type=int, const=1500, help="wrong proteins")
    parser.add_argument("--time", type=int, help="cells, next to scanpy and muon")
    parser.add_argument("--timed", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    for asked, work in (
        (args.batches, compare_batches),
        (args.scrambled, find_scrambled),
    ):
        if asked:
            return work(asked)
    if args.timed:
        return time_one(*args.timed)
    if args.time:
        return compare_time(args.time, args.only)
    if not (args.data or args.mudata or args.synthetic):
        parser.error("give --data, --mudata, --synthetic, --batches, --scrambled or --time")
    warnings.simplefilter("ignore", FutureWarning)
    data, truth = read(args)
    print(f"{data.n_obs} cells, {len(np.unique(truth))} types, modalities {list(data.mod)}\n")
    heads = ["method", *(f"resolution {r:g}" for r in args.resolution), "mean ARI", "at K", "CPU s"]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|", flush=True)
    mine = ours(data, truth, args.resolution) if args.only in "manyview" else iter(())
    for row in chain(mine, theirs(data, truth, args.resolution, args.only)):
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
