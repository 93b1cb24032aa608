"""Seconds of whole RobustWMNMF fits by stage, their memory and growth, on one and two threads.

    python benchmarks/whole.py [--sizes 10000 100000] [--threads 1 2] [--million] [--shapes]
    python benchmarks/whole.py --sizes --peers 10000 100000 [--python PATH]     # other pipelines
    python benchmarks/whole.py --sizes --limits 100000        # the least work of each stage

Four views of 100 features in float32, ten clusters. Every fit runs in a process of its own, compiled loops
warmed up. "Recall" is the share of the 20 nearest rows under the fused distance that the lists of the fit
hold, over a sample of rows measured exactly (sparse views along their directions). With `--shapes` wide
views, many clusters, sparse text or cells, too; with `--peers` the pipelines of `whole_peers.py`, which
says what PATH needs. With `--limits` the CPU time of each stage on one thread beside that of the work it
cannot do without: to read its input once from memory, or its multiplications at the speed of a large matrix
product, whichever is longer, both measured in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

import manyview as mv
import whole_data
import whole_peers
from manyview import fuse as agree
from manyview import fuse as stages
from manyview import robust
from manyview.engines.numpy import distances, neighbors
from manyview.engines.numpy.distances import Geometry
from manyview.maths.spectrum import leading_eigenvectors
from whole_data import large

SAMPLE = 200
#: Rows, and seeds, of which labels are compared with those of the exact computation.
COMPARED, SEEDS = 20_000, 5
#: Where each stage is called.
STAGES = {
    "scaling": (stages, "fit_scalings"),
    "distances": (stages, "measure"),
    "view neighbors": (distances.Geometry, "nearest"),
    "fused neighbors": (Geometry, "fused_nearest"),
    "agreement": (agree, "agree"),
    "embedding": (agree, "embed"),
    "start": (stages, "start_labels"),
    "factorization": (robust, "run_robust"),
}


def wide(n: int = 200, m: int = 200_000) -> tuple[list, np.ndarray, int]:
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=n)
    return [rng.standard_normal((4, m))[y] * 0.1 + rng.random((n, m)) for _ in range(3)], y, 4


def many_clusters(n: int = 20_000, k: int = 200) -> tuple[list, np.ndarray, int]:
    rng = np.random.default_rng(0)
    y = rng.integers(k, size=n)
    centers = [0.75 * rng.standard_normal((k, 100)) for _ in range(3)]
    return [c[y] + rng.standard_normal((n, 100)) for c in centers], y, k


def text(n: int = 100_000, m: int = 50_000, k: int = 20) -> tuple[list, np.ndarray, int]:
    """Two views of about 70 words per row; two words in five are of the row's topic."""
    rng = np.random.default_rng(0)
    y, views, common = rng.integers(k, size=n), [], 1 / (np.arange(m) + 10)
    for _ in range(2):
        topics = np.array([rng.permutation(m)[:2000] for _ in range(k)])
        rows = np.repeat(np.arange(n), rng.poisson(60, size=n) + 10)
        own = topics[y[rows], (2000 * rng.random(len(rows)) ** 3).astype(int)]
        any_word = rng.choice(m, size=len(rows), p=common / common.sum())
        words = np.where(rng.random(len(rows)) < 0.4, own, any_word)
        counts = sp.csr_array((np.ones(len(rows)), (rows, words)), shape=(n, m))
        counts.sum_duplicates()
        views.append(counts)
    return views, y, k


def cells(n: int = 15_000, n_types: int = 16) -> tuple[list, np.ndarray, int]:
    """Proteins mix up three pairs of types."""
    pairs = {"adt": [(0, 1), (2, 3), (4, 5)]}
    genes, proteins, y = whole_data.cells(n, n_types, indistinct=pairs)
    return [genes, proteins], y, n_types


DATA: dict[str, Callable[..., tuple[list, np.ndarray, int]]] = {
    "large": large,
    "wide": wide,
    "many clusters": many_clusters,
    "text": text,
    "cells": cells,
}


class Watch:
    """Times the stages of a fit, and keeps the fused lists it sees."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self.fused: Any = None
        for name, (place, function) in STAGES.items():
            setattr(place, function, self.timed(name, getattr(place, function)))

    def timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = self.clock()
            found = work(*args, **kwargs)
            self.seconds[name] += self.clock() - start
            if name == "fused neighbors":
                self.fused = found[0]
            return found

        return call


def recall(views: list[Any], weights: np.ndarray, lists: np.ndarray) -> float:
    """Share of the exact nearest rows under F that the lists of a sample of rows hold."""
    rows = np.random.default_rng(1).choice(len(lists), SAMPLE, replace=False)
    F = sum(
        weight * np.asarray(view.to_all(view.Z[rows], None))
        for weight, view in zip(weights, views, strict=True)
    )
    F[np.arange(SAMPLE), rows] = np.inf
    exact = np.argpartition(F, 19, axis=1)[:, :20]
    return float(
        np.mean([np.isin(e, lists[r][:20]).mean() for r, e in zip(rows, exact, strict=True)])
    )


def fit(kind: str, n: int | None, threads: int) -> dict[str, Any]:
    """One fit in this process, after one of few rows that compiles the loops."""
    views, y, k = DATA[kind]() if n is None else DATA[kind](n)
    mv.RobustWMNMF(2, random_state=0, n_jobs=1).fit([X[:1000] for X in views])
    held = sum(X.data.nbytes for X in views) / 2**20
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    watch = Watch()
    start, cpu = time.perf_counter(), time.process_time()
    model = mv.RobustWMNMF(k, random_state=0, n_jobs=threads).fit(views)
    found: dict[str, Any] = {
        "wall s": time.perf_counter() - start,
        "CPU s": time.process_time() - cpu,
        "stages": watch.seconds,
        "data MiB": held,
        "peak MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "before MiB": before,
        "clusters": len(np.unique(model.labels_)),
        "ARI": adjusted_rand_score(y, model.labels_),
        "labels": hash(model.labels_.tobytes()),
    }
    if watch.fused is not None and len(y) > SAMPLE:
        weights = model._agreement.distance_weights
        found["recall"] = recall(model._geometry, weights, watch.fused)
    return found


def limits(n: int) -> list[tuple[str, float, float, str]]:
    """Stages: seconds on one thread, least seconds, and what the least work is."""
    views, _, k = large(n)
    mv.RobustWMNMF(2, random_state=0, n_jobs=1).fit([X[:1000] for X in views])
    watch, products = Watch(time.process_time), []
    block_step = stages.graphs.block_step

    def counted(threads: Any, S: sp.csr_array) -> Callable[..., Any]:
        step = block_step(threads, S)

        def call(now: np.ndarray, *rest: Any) -> np.ndarray:
            products.append(8 * S.nnz + 4 * 3 * now.size)  # bytes of a product with the graph
            return step(now, *rest)

        return call

    stages.graphs.block_step = counted
    model = mv.RobustWMNMF(k, random_state=0, n_jobs=1).fit(views)
    spent, known = watch.seconds, model._agreement
    block = np.ones((2000, 2000), np.float32)
    per_flop = fastest(lambda: block @ block) / (2 * 2000.0**3)
    much = np.ones(2**26, np.float32)
    per_byte = fastest(much.sum) / much.nbytes
    size, width, count = sum(X.nbytes for X in views), sum(X.shape[1] for X in views), len(views)
    held = sum(view.Z.nbytes for view in model._geometry)
    links = sum(graph.nnz for graph in known.view_graphs) / 2
    near, fused = model.n_neighbors, watch.fused.shape[1]
    product = 2 * n * n * width * per_flop
    pairs = f"measure each listed pair once (all pairs as one product: {product:.1f} s)"

    def least(flops: float, read: float) -> float:
        return max(flops * per_flop, read * per_byte)

    inside = spent["view neighbors"] + spent["fused neighbors"]
    rows = n * width
    return [
        ("scaling, distances", spent["scaling"] + spent["distances"], least(0, 2 * size + held),
         "read the views twice, write them scaled"),
        ("view neighbors", spent["view neighbors"], least(2 * rows * near, held),
         pairs),
        ("fused neighbors", spent["fused neighbors"], least(2 * rows * fused, held),
         pairs),
        ("weights", spent["agreement"] - inside,
         least(2 * links * width * (count - 1) / count, links * 8 * width * (count - 1) / count),
         "measure each link of a view's graph in the other views"),
        ("embedding", spent["embedding"], least(0, sum(products)),
         f"read graph and vectors in each of {len(products)} products"),
        ("factorization", spent["factorization"],
         model.n_iter_ * least(8 * rows * k, 2 * held),
         f"two products with each view in each of {model.n_iter_} iterations"),
    ]  # fmt: skip


def fastest(work: Callable[[], Any]) -> float:
    """Least CPU seconds of five calls."""
    spent = []
    for _ in range(5):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)


def in_a_process(*args: Any) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--one", json.dumps(args)]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if run.returncode:
        raise RuntimeError(run.stderr)
    return json.loads(run.stdout.splitlines()[-1])


def told(title: str, found: dict[str, Any]) -> None:
    print(
        f"| {title} | {found['CPU s']:.1f} | {found['wall s']:.1f} | {found['data MiB']:.0f} | "
        f"{found['peak MiB']:.0f} | {found['ARI']:.3f} | {found.get('recall', float('nan')):.3f} | "
        + ", ".join(f"{name} {s:.1f}" for name, s in found["stages"].items() if s >= 0.05)
        + " |",
        flush=True,
    )


def exactness(n: int = COMPARED) -> dict[str, list[float]]:
    """ARI of labels found approximately with exact ones, beside that of two seeds of the exact."""
    views, _, k = large(n)

    def labels(exact_up_to: int) -> list[np.ndarray]:
        neighbors.EXACT = exact_up_to
        agree.leading_eigenvectors = partial(leading_eigenvectors, blocks_above=exact_up_to)
        return [mv.RobustWMNMF(k, random_state=s).fit_predict(views) for s in range(SEEDS)]

    exact, near = labels(10 * n), labels(n // 10)
    return {
        "approximate and exact": list(map(adjusted_rand_score, exact, near)),
        "two seeds of the exact": [adjusted_rand_score(*two) for two in combinations(exact, 2)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--threads", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--million", action="store_true", help="also a million rows")
    parser.add_argument("--shapes", nargs="*", choices=[s for s in DATA if s != "large"])
    parser.add_argument("--rows", type=int, help="rows of the other shapes, instead of their own")
    parser.add_argument("--exactness", action="store_true", help="labels against exact ones")
    parser.add_argument("--peers", type=int, nargs="+", metavar="N", help="also other pipelines")
    whole_peers.add_options(parser)
    parser.add_argument("--limits", type=int, metavar="N", help="least time of each stage")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    if given.one:
        print(json.dumps(fit(*json.loads(given.one))))
        return
    sizes = [*given.sizes, *([1_000_000] if given.million else [])]
    if sizes or given.shapes:
        print("| fit | CPU s | wall s | data MiB | peak MiB | ARI | recall | stages, wall s |")
        print("|---|---|---|---|---|---|---|---|")
    for threads in given.threads if sizes else ():
        runs = [in_a_process("large", n, threads) for n in sizes]
        for n, found in zip(sizes, runs, strict=True):
            told(f"N={n:,}, threads {threads}, labels {found['labels'] % 10**6}", found)
        if len(sizes) > 1:
            slope = np.polyfit(np.log(sizes), np.log([found["CPU s"] for found in runs]), 1)[0]
            print(f"\nCPU time grows like N to the power {slope:.2f} with {threads} threads\n")
    for kind in given.shapes or ():
        told(kind, in_a_process(kind, given.rows, 1))
    if given.exactness:
        for name, values in exactness().items():
            spread = f"median {np.median(values):.5f}, least {min(values):.5f}"
            print(f"ARI of {name}, N={COMPARED:,}: mean {np.mean(values):.5f}, {spread}")
    if given.limits:
        print("| stage | CPU s | least | ratio | least work |\n|---|---|---|---|---|")
        for stage, spent, least, work in limits(given.limits):
            print(f"| {stage} | {spent:.2f} | {least:.2f} | {spent / least:.1f} | {work} |")
    for n in given.peers or ():
        whole_peers.compare(n, partial(in_a_process, "large", n, 1), given)


if __name__ == "__main__":
    main()
