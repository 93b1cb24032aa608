"""Bytes over the network per iteration and worker: the model of docs/scaling.md beside Dask's counters.

python benchmarks/dask_bytes.py                    # measure on a local cluster, and print the model
python benchmarks/dask_bytes.py --estimate         # the model for 100 million observations, 32 workers
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise, product

import numpy as np

from manyview.engines.cluster import Cluster
from manyview.regularizers import Graph
from manyview.solvers import SOLVERS


def modelled(view, n_components: int) -> dict[str, float]:
    """Bytes each worker sends in an iteration: neighbour rows, its blocks' sums, and U if it has it.

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


def sent_so_far(client) -> dict[str, int]:
    return client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)


def measure(n: int, m: int, K: int, n_blocks: int, n_workers: int, iterations: int) -> dict:
    import dask
    import distributed

    # As for the cluster a fit starts itself: idle workers take no blocks from others.
    dask.config.set({"distributed.scheduler.work-stealing": False})
    rng = np.random.default_rng(0)
    kind = rng.integers(0, K, n)
    X = np.abs(rng.random((K, m))[kind] + 0.3 * rng.standard_normal((n, m)))
    g = Graph(5).prepare(X)
    V, U, one = rng.random((n, K)), rng.random((m, K)), np.ones(n)
    with (
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as workers,
        distributed.Client(workers) as client,
        Cluster() as cluster,
    ):
        import manyview.engines.blocks as blocks

        ends = np.linspace(0, n, n_blocks + 1).astype(int)
        pieces = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        blocks.chunks = lambda n_rows: pieces
        view = cluster.view(X)
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
        model = modelled(view, K)
        found = {w: (after[w] - before[w]) / iterations for w in model}
    return {"model": model, "found": found, "seconds": seconds}


def estimate(n: int, m: int, K: int, k: float, n_workers: int, item: int, network: float) -> None:
    """The same model, for rows in random order and one block per worker; ``network`` in bytes/s."""
    rows = n / n_workers
    # A block has rows·k edges, spread evenly over n rows: each row of another block is wanted with
    # probability 1 − exp(−k/workers).
    wanted = rows * (1 - np.exp(-k / n_workers)) * (n_workers - 1)
    neighbours, U = wanted * K * item, m * K * item
    per_round = 4 * n * K * item  # V there and back, V* there, and w: through the driver
    print(
        f"N={n:.0e}, M={m}, K={K}, {k:g} edges per row, {n_workers} workers, {8 * item}-bit numbers"
    )
    print(f"  X per worker                      {rows * m * item / 2**30:8.2f} GiB")
    print(f"  V per worker and view             {rows * K * item / 2**30:8.2f} GiB")
    print(f"  neighbour rows per iteration      {neighbours / 2**30:8.2f} GiB into each worker")
    print(f"    at {network / 1e9:g} GB/s                    {neighbours / network:8.2f} s")
    print(f"  U and sums per iteration          {2 * U / 2**20:8.2f} MiB")
    print(f"  tasks per iteration               {n_workers * (n_workers + 2) + 2:8d}")
    print(f"  through the driver per inner loop {per_round / 2**30:8.2f} GiB")
    print(f"    at {network / 1e9:g} GB/s                    {per_round / network:8.2f} s")
    print(f"  V of a view in the driver         {n * K * item / 2**30:8.2f} GiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--estimate", action="store_true")
    parser.add_argument("--iterations", type=int, default=10)
    arguments = parser.parse_args()
    if arguments.estimate:
        for item in (8, 4):
            estimate(10**8, 1000, 20, 8.0, 32, item, 1.25e9)
        return
    print(
        "rows features K blocks workers | model KiB  found KiB  found/model per worker | s/iteration"
    )
    for (n, m, K), (n_blocks, n_workers) in product(
        [(4000, 50, 10), (20000, 100, 20)], [(2, 2), (5, 2), (6, 3)]
    ):
        result = measure(n, m, K, n_blocks, n_workers, arguments.iterations)
        model, found = result["model"], result["found"]
        ratios = " ".join(f"{found[w] / model[w]:.2f}" for w in model)
        print(
            f"{n:6d} {m:4d} {K:3d} {n_blocks:3d} {n_workers:3d} | "
            f"{np.mean(list(model.values())) / 1024:9.0f} {np.mean(list(found.values())) / 1024:9.0f}  "
            f"{ratios} | {result['seconds']:.2f}"
        )


if __name__ == "__main__":
    main()
