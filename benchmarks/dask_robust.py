"""RobustWMNMF on a Dask cluster: CPU seconds, and bytes over the network, by stage, beside a model of them.

    python benchmarks/dask_robust.py [--rows 200000] [--features 20] [--workers 2] [--alone [SEEDS]]
    python benchmarks/dask_robust.py --estimate     # the model for 100 million observations, 50 workers

A local cluster of single-threaded workers; four views in float32, left on the workers whatever their size.
With `--alone` the same data are fitted in memory, too, with two seeds or as many as given. Labels of the
cluster are as good as those in memory if they are as near to them as two seeds are to each other.
Up to 30,000 rows the driver looks at every pair; `--rows 20000 --exact 2000` shows the search on workers
at a small size.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

import manyview as mv
from dask_bytes import local
from manyview import fuse as agree
from manyview import fuse as stages
from manyview import robust
from manyview import robust as robust_model
from manyview.engines.dask import cells
from manyview.engines.dask.cluster import Cluster
from manyview.engines.dask.distances import WIDER, WorkerGeometry
from manyview.engines.numpy import neighbors
from manyview.engines.numpy.sources import DIRECTIONS, PASSES
from manyview.maths import agreement as ag
from whole_data import large

BLOCKS, VIEWS = 8, 4
#: Where each stage is called; what a stage calls counts for that alone.
STAGES = {
    "presence and scaling": (stages, "fit_scalings"),
    "coordinates": (stages, "measure"),
    "view neighbours": (WorkerGeometry, "nearest"),
    "fused neighbours": (WorkerGeometry, "fused_nearest"),
    "agreement": (agree, "agree"),
    "embedding": (agree, "embed"),
    "start": (stages, "start_labels"),
    "factorisation": (robust, "run_robust"),
}


class Watch:
    """CPU seconds of every stage, and what went to the driver, to workers, and out of the driver."""

    def __init__(self, client: Any):
        self.client, self.given, self.inner = client, 0, [np.zeros(5)]
        self.found: dict[str, np.ndarray] = {name: np.zeros(5) for name in STAGES}
        self.usual = {name: getattr(*place) for name, place in STAGES.items()}
        for name, (place, function) in STAGES.items():
            setattr(place, function, self.watched(name, self.usual[name]))
        keep = Cluster.keep

        def counted(cluster: Cluster, value: Any, home: str | None = None) -> Any:
            self.given += size(value)
            return keep(cluster, value, home)

        Cluster.keep = counted  # type: ignore[method-assign]

    def end(self) -> None:
        for name, (place, function) in STAGES.items():
            setattr(place, function, self.usual[name])

    def now(self) -> np.ndarray:
        """CPU seconds here and of workers; bytes workers sent, those workers got, those given out here."""
        counters = self.client.run(
            lambda dask_worker: (
                dask_worker.transfer_outgoing_bytes_total,
                sum(entry["total"] for entry in dask_worker.transfer_incoming_log),
                time.process_time(),
            )
        )
        sent, received, cpu = np.sum(list(counters.values()), axis=0)
        return np.array([time.process_time(), cpu, sent, received, self.given], dtype=float)

    def watched(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            before = self.now()
            self.inner.append(np.zeros(5))
            result = work(*args, **kwargs)
            took, inside = self.now() - before, self.inner.pop()
            self.found[name] += took - inside
            self.inner[-1] += took
            return result

        return call


def size(value: Any) -> int:
    """Bytes of the arrays in a value."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(map(size, value)) if isinstance(value, (tuple, list)) else 0


# --- the model ---------------------------------------------------------------------------------


def search_bytes(n: float, d: int, k: int, workers: int) -> tuple[float, float]:
    """To the driver and between workers, of one search for k neighbours in d coordinates."""
    n_cells = min(cells.MOST, max(cells.FEWEST, -(-cells.EACH * n // cells.CELL)))
    to_driver = 8 * n * k + 4 * min(n, cells.LOOKED_AT * n_cells) * d
    elsewhere = cells.EACH * n * (workers - 1) / workers
    return to_driver, elsewhere * ((8 + 4 * d) + (8 + 8 * k))


def modelled(
    n: float, m: int, views: int, K: int, workers: int, iterations: float
) -> dict[str, tuple[float, float, float]]:
    """By stage: bytes to the driver, between workers, and from the driver to workers (float32 data)."""
    d, item = min(m, DIRECTIONS), 4
    near = int(WIDER * ag.in_proportion(10, int(n)))
    fused = int(WIDER * max(ag.in_proportion(k, int(n)) for k in (*ag.SCALES, ag.NEIGHBORS)))
    passes = 0 if m <= DIRECTIONS else (PASSES * m * DIRECTIONS + m) * 8 * pieces(n, m, item)
    one = search_bytes(n, d, near, workers)
    width = views * d
    joint = search_bytes(
        n, min(width, DIRECTIONS) if width >= 2 * DIRECTIONS else width, fused, workers
    )
    return {
        "coordinates": (views * (4 * n * d + passes), 0, 0),
        "view neighbours": (views * one[0], views * one[1], 0),
        "fused neighbours": (*joint, 0),
        "factorisation": (
            # V of every iteration and the residuals of the first; V and U go out, with V* and weights.
            views * (iterations * n * K + n) * item,
            0,
            views * (iterations + 1) * n * (2 * K + 2) * item,
        ),
    }


def pieces(n: float, m: int, item: int) -> float:
    return max(1, n * m * item / 2**26)


def told(found: dict[str, np.ndarray], model: dict[str, Any]) -> None:
    print(
        "| stage | driver, CPU s | workers, CPU s | to the driver, MiB | model | between workers, MiB | "
        "model | out, MiB | model |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, (here, there, sent, received, given) in found.items():
        up, across, out = model.get(name, (0, 0, 0))
        sizes = [sent - received, up, received, across, given, out]
        mib = " | ".join(f"{x / 2**20:.1f}" for x in sizes)
        print(f"| {name} | {here:.1f} | {there:.1f} | {mib} |")


def estimate(n: float, m: int, views: int, K: int, workers: int, iterations: int) -> None:
    """The same for a size nobody ran."""
    model = modelled(n, m, views, K, workers, iterations)
    d = min(m, DIRECTIONS)
    print(f"N={n:.0e}, {views} views of {m} features in float32, K={K}, {workers} workers")
    print("| stage | to the driver, GiB | between workers, GiB | per worker, GiB | out, GiB |")
    print("|---|---|---|---|---|")
    for name, (up, across, out) in model.items():
        row = [up, across, across / workers, out]
        print(f"| {name} | " + " | ".join(f"{x / 2**30:.1f}" for x in row) + " |")
    edges = 16 * views + 2 * 1.6 * max(*ag.SCALES, ag.NEIGHBORS)
    held = {
        "rows of a worker": n / workers * m * views * 4,
        "coordinates of a worker": n / workers * d * views * 4,
        "coordinates in the driver": n * d * views * 4,
        "graphs in the driver": n * edges * 12,
        "embedding in the driver, and its vectors": 2 * n * int(2 * ag.VECTORS * K) * 4,
        "V of all views, V*, weights in the driver": n * ((views + 2) * K + 2 * views) * 4,
    }
    for name, held_bytes in held.items():
        print(f"{name}: {held_bytes / 2**30:.0f} GiB")


# --- the run -----------------------------------------------------------------------------------


def read_rows(path: str, start: int, stop: int) -> np.ndarray:
    return np.load(path, mmap_mode="r")[start:stop].copy()


def on_workers(path: Path, X: np.ndarray) -> Any:
    """A dask array whose blocks are read where they are needed."""
    import dask
    import dask.array as da

    np.save(path, X)
    ends = np.linspace(0, len(X), BLOCKS + 1).astype(int)
    parts = [
        da.from_delayed(
            dask.delayed(read_rows)(str(path), int(a), int(b)), (int(b - a), X.shape[1]), X.dtype
        )
        for a, b in pairwise(ends)
    ]
    return da.concatenate(parts)


def run(n: int, m: int, workers: int, seeds: int) -> None:
    views, y, K = large(n, m, VIEWS)
    with tempfile.TemporaryDirectory() as folder, local(workers) as client:
        lazy = [on_workers(Path(folder) / f"{s}.npy", X) for s, X in enumerate(views)]
        robust_model.LOAD_LIMIT = 0
        client.run(sys.path.append, str(Path(__file__).parent))
        start, watch = time.perf_counter(), Watch(client)
        model = mv.RobustWMNMF(K, random_state=0, engine="dask", dtype=np.float32).fit(lazy)
        seconds = time.perf_counter() - start
        peaks = client.run(peak_memory)
        watch.end()
    print(f"N={n:,}, {VIEWS} views of {m} features, {workers} workers: {seconds:.1f} s")
    told(watch.found, modelled(n, m, VIEWS, K, workers, model.n_iter_))
    print(f"peak memory: driver {peak_memory():.0f} MiB, workers {max(peaks.values()):.0f} MiB")
    print(f"iterations {model.n_iter_}, ARI {adjusted_rand_score(y, model.labels_):.4f}")
    if seeds:
        in_memory(views, K, model.labels_, seeds)


def in_memory(views: list, K: int, ours: np.ndarray, seeds: int) -> None:
    """ARI of the cluster's labels with those of fits in memory, beside that of two seeds in memory."""
    found = []
    for seed in range(seeds):
        start, cpu = time.perf_counter(), time.process_time()
        model = mv.RobustWMNMF(K, random_state=seed, dtype=np.float32).fit(views)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        found.append(model.labels_)
        ari = adjusted_rand_score(model.labels_, ours)
        print(
            f"in memory, seed {seed}: {seconds:.1f} s, CPU {cpu:.1f} s; ARI with the cluster's {ari:.4f}"
        )
    for a, b in combinations(range(seeds), 2):
        print(f"ARI of seeds {a} and {b} in memory {adjusted_rand_score(found[a], found[b]):.4f}")


def peak_memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--alone", type=int, nargs="?", const=2, default=0, metavar="SEEDS", help="also in memory"
    )
    parser.add_argument("--exact", type=int, default=neighbors.EXACT, help="rows all compared")
    parser.add_argument("--estimate", action="store_true")
    given = parser.parse_args()
    if given.estimate:
        estimate(1e8, 1000, 4, 20, 50, 50)
    else:
        neighbors.EXACT = given.exact
        run(given.rows, given.features, given.workers, given.alone)


if __name__ == "__main__":
    main()
