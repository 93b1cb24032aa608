"""Bytes over the network per iteration and worker: a model, and Dask's counters.

python benchmarks/dask_bytes.py                    # measure on a local cluster, and print the model
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise, product
from typing import Any

import numpy as np

from manyview.engines.dask.cluster import Cluster
from manyview.maths.solvers import SOLVERS
from manyview.regularizers import Graph


def modeled(view, n_components: int) -> dict[str, float]:
    """Bytes each worker sends in an iteration: neighbor rows, its blocks' sums, and U if it has it.

    U goes from one worker to the others and the sums of all blocks to one, so both are counted for
    the mean worker.
    """
    K, item, homes = n_components, view.dtype.itemsize, view.homes
    workers = sorted(set(homes))
    sent = dict.fromkeys(workers, 0.0)
    for b, needed in enumerate(view.edges.needed):
        for c, n_rows in needed.items():
            if homes[b] != homes[c]:
                sent[homes[c]] += n_rows * K * item
    n, M = len(workers), view.shape[1]
    shared = M * K * item * (n - 1) / n  # U, sent by one worker to all others, in the mean
    sums = 8 * (M * K + K * K + 2 * K + 1)
    # The worker that adds the sums keeps its own, and sends the total to the driver.
    travelling = sums * (len(homes) * (n - 1) / n + 1) / n
    return {worker: rows + shared + travelling for worker, rows in sent.items()}


@contextmanager
def local(n_workers: int, stealing: bool = False) -> Iterator[Any]:
    """The client of a cluster of single-threaded workers on this machine.

    As for the cluster a fit starts itself, idle workers take no blocks from others, unless they shall.
    """
    import dask
    import distributed

    settings = {
        "distributed.scheduler.work-stealing": stealing,
        "distributed.admin.low-level-log-length": 10**6,  # transfers are summed from the log
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as workers,
        distributed.Client(workers) as client,
    ):
        yield client


def sent_so_far(client) -> dict[str, int]:
    return client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)


def measure(
    n: int,
    m: int,
    K: int,
    n_blocks: int,
    n_workers: int,
    iterations: int,
    stealing: bool = False,
) -> dict:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, K, n)
    X = np.abs(rng.random((K, m))[kind] + 0.3 * rng.standard_normal((n, m)))
    g = Graph(5).prepare(X)
    V, U, one = rng.random((n, K)), rng.random((m, K)), np.ones(n)
    with local(n_workers, stealing) as client, Cluster() as cluster:
        import manyview.engines.dask.engine as blocks

        ends = np.linspace(0, n, n_blocks + 1).astype(int)
        pieces = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        usual, blocks.cut = blocks.cut, lambda source: pieces
        view = blocks.DaskView.of(cluster, X)
        blocks.cut = usual
        rows = view.as_rows(SOLVERS["multiplicative"]())
        rows.begin(V, V, one, one, g, basis=True)
        rows.sum(V)
        held = rows.step_V(U, V, 0.01, 0.01)
        before, start = sent_so_far(client), time.perf_counter()
        for _ in range(iterations):
            U = rows.step_U(U, 0.01)
            held = rows.step_V(U, held, 0.01, 0.01)
        seconds = (time.perf_counter() - start) / iterations
        after = sent_so_far(client)
        model = modeled(view, K)
        found = {w: (after[w] - before[w]) / iterations for w in model}
    return {"model": model, "found": found, "seconds": seconds}


def n_tasks(n_blocks: int) -> int:
    """Tasks of an iteration: picks for every pair of blocks, three for every block, U and the sum."""
    return n_blocks * (n_blocks + 2) + 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stealing", action="store_true", help="let idle workers take work")
    parser.add_argument("--iterations", type=int, default=10)
    arguments = parser.parse_args()
    print(
        "rows features K blocks workers | model KiB  found KiB  found/model per worker | "
        "s/iteration  ms/task"
    )
    runs = product([(4000, 50, 10), (20000, 100, 20)], [(2, 2), (5, 2), (6, 3)])
    for (n, m, K), (n_blocks, n_workers) in [*runs, ((4000, 50, 10), (16, 2))]:
        result = measure(n, m, K, n_blocks, n_workers, arguments.iterations, arguments.stealing)
        model, found = result["model"], result["found"]
        ratios = " ".join(f"{found[w] / model[w]:.2f}" for w in model)
        print(
            f"{n:6d} {m:4d} {K:3d} {n_blocks:3d} {n_workers:3d} | "
            f"{np.mean(list(model.values())) / 1024:9.0f} {np.mean(list(found.values())) / 1024:9.0f}  "
            f"{ratios} | {result['seconds']:.2f}  {1000 * result['seconds'] / n_tasks(n_blocks):.1f}"
        )


if __name__ == "__main__":
    main()
