"""Other pipelines on the data of `whole.py`: seconds, memory, clusters and ARI.

    python benchmarks/whole.py --sizes --peers 10000 100000 [--python PATH] [--limit 600] [--memory 16]

PATH is an interpreter with scikit-learn and the peers: `pip install scanpy igraph muon imml pyamg` and, for
scanpy 1.11, `"pynndescent<0.6"`. manyview need not be there, and a peer that is not there is a line that
says so. Every run is a process of its own on one thread. It imports, fits a few rows to compile what is
compiled, and then measures. `--pipelines scikit-learn iMML` shows the solvers and methods chosen from, too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from whole_data import CLUSTERS, large

#: Rows of the fit before the measured one; muon looks for 200 neighbors.
WARM = 500
ONE_THREAD = dict.fromkeys(
    ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"], "1"
)
MEASURED = ("CPU s", "wall s", "before MiB", "peak MiB", "clusters", "ARI")


def neighbors(data: Any, **options: Any) -> None:
    """Scanpy's neighbors as it finds them from 8,192 rows on, so that few rows compile that."""
    import scanpy

    scanpy.pp.neighbors(data, n_neighbors=15, transformer="pynndescent", **options)


def communities(data: Any) -> Any:
    """Leiden chooses the number of clusters itself."""
    import scanpy

    scanpy.tl.leiden(data, flavor="igraph", n_iterations=2)
    return data.obs["leiden"]


def scanpy_leiden(views: list) -> Any:
    import anndata
    import scanpy

    data = anndata.AnnData(np.hstack(views))
    scanpy.pp.pca(data, n_comps=50)
    neighbors(data)
    return communities(data)


def muon_leiden(views: list) -> Any:
    import anndata
    import muon

    parts = {str(s): anndata.AnnData(X) for s, X in enumerate(views)}
    for part in parts.values():
        neighbors(part, use_rep="X")
    together = muon.MuData(parts)
    muon.pp.neighbors(together)
    return communities(together)


def spectral(solver: str, views: list) -> Any:
    from sklearn.cluster import SpectralClustering

    model = SpectralClustering(
        CLUSTERS, affinity="nearest_neighbors", eigen_solver=solver, random_state=0
    )
    return model.fit_predict(np.hstack(views))


def imml(method: str, views: list) -> Any:
    import imml.cluster

    engine = {"engine": "python"} if method == "MLMF" else {}  # of the others it is the default
    return getattr(imml.cluster, method)(CLUSTERS, random_state=0, **engine).fit_predict(views)


#: Methods of iMML that are written in Python, need no training loop of ours and take K.
IMML = [
    "DAIMC",
    "EEIMVC",
    "IMSR",
    "LFIMVC",
    "MLMF",
    "MONET",
    "NEMO",
    "OPIMC",
    "PIMVC",
    "SIMCADC",
    "SUMO",
]
PEERS: dict[str, Callable[[list], Any]] = {
    "scanpy neighbors + Leiden, concatenated": scanpy_leiden,
    **{f"scikit-learn spectral, {s}": partial(spectral, s) for s in ("arpack", "lobpcg", "amg")},
    **{f"iMML {method}": partial(imml, method) for method in IMML},
    "muon weighted nearest neighbors + Leiden": muon_leiden,
}
#: Of scikit-learn's solvers the fastest; of iMML's methods the fastest and the fastest that finds clusters.
FASTEST = ["scanpy", "scikit-learn spectral, lobpcg", "iMML OPIMC", "iMML LFIMVC", "muon"]


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(name: str, n: int, limit: int, gib: int) -> dict[str, Any]:
    """What a peer takes in this process; a signal ends the process at the limit, whatever it does.

    The limit is of CPU seconds, which depend less than others on what else the machine does.
    """
    views, y, _ = large(n)
    resource.setrlimit(resource.RLIMIT_AS, (gib * 2**30, gib * 2**30))
    try:
        signal.setitimer(signal.ITIMER_PROF, limit)
        PEERS[name]([X[:WARM] for X in views])
        before = peak_mib()
        signal.setitimer(signal.ITIMER_PROF, limit)
        start, cpu = time.perf_counter(), time.process_time()
        labels = PEERS[name](views)
        seconds = time.process_time() - cpu, time.perf_counter() - start
        signal.setitimer(signal.ITIMER_PROF, 0)
    except ImportError as error:
        return {"failed": f"not installed: {error}"}
    except MemoryError:
        return {"failed": f"more than {gib} GiB"}
    score = adjusted_rand_score(y, np.asarray(labels))
    found = (*seconds, before, peak_mib(), len(np.unique(labels)), score)
    return dict(zip(MEASURED, found, strict=True))


def in_a_process(name: str, n: int, given: argparse.Namespace) -> dict[str, Any]:
    command = [given.python, __file__, json.dumps([name, n, given.limit, given.memory])]
    run = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **ONE_THREAD}, check=False
    )
    if run.returncode == -signal.SIGPROF:
        return {"failed": f"not within {given.limit} CPU s"}
    if run.returncode < 0:
        return {"failed": f"ended by {signal.Signals(-run.returncode).name}"}
    if run.returncode:
        return {"failed": run.stderr.strip().splitlines()[-1]}
    return json.loads(run.stdout.splitlines()[-1])


def medians(once: Callable[[], dict[str, Any]], repeats: int) -> dict[str, Any]:
    """Of several runs; one that fails is not repeated."""
    runs: list[dict[str, Any]] = []
    while len(runs) < repeats:
        runs.append(once())
        if "failed" in runs[-1]:
            return runs[-1]
    return {key: median(run[key] for run in runs) for key in MEASURED}


def told(name: str, found: dict[str, Any]) -> None:
    if "failed" in found:
        cells = [found["failed"], *[""] * 5]
    else:
        cells = [
            *(f"{found[key]:.1f}" for key in MEASURED[:2]),
            *(f"{found[key]:.0f}" for key in MEASURED[2:5]),
            f"{found['ARI']:.3f}",
        ]
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the peers")
    parser.add_argument("--limit", type=int, default=600, help="most CPU seconds of a peer")
    parser.add_argument("--memory", type=int, default=16, help="most GiB of a peer's process")
    parser.add_argument(
        "--pipelines",
        nargs="+",
        default=FASTEST,
        help="their names in the table, or how these begin",
    )
    parser.add_argument("--repeats", type=int, default=3, help="runs whose medians are shown")


def compare(n: int, ours: Callable[[], dict[str, Any]], given: argparse.Namespace) -> None:
    """The table of one size, our own fit as its first line."""
    print(f"\n| N={n:,} | " + " | ".join(MEASURED) + " |")
    print("|---" * (len(MEASURED) + 1) + "|")
    told("manyview RobustWMNMF", medians(ours, given.repeats))
    for name in (name for name in PEERS if name.startswith(tuple(given.pipelines))):
        told(name, medians(partial(in_a_process, name, n, given), given.repeats))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print("\n" + json.dumps(measured(*json.loads(sys.argv[1]))))
