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

#: Assumed for the estimate: bytes/s over a worker's network and from its memory, seconds per task.
NETWORK, MEMORY, TASK = 1.25e9, 1e10, 1e-3


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


def measure(
    n: int,
    m: int,
    K: int,
    n_blocks: int,
    n_workers: int,
    iterations: int,
    stealing: bool = False,
) -> dict:
    import dask
    import distributed

    rng = np.random.default_rng(0)
    kind = rng.integers(0, K, n)
    X = np.abs(rng.random((K, m))[kind] + 0.3 * rng.standard_normal((n, m)))
    g = Graph(5).prepare(X)
    V, U, one = rng.random((n, K)), rng.random((m, K)), np.ones(n)
    with (
        # As for the cluster a fit starts itself: idle workers take no blocks from others.
        dask.config.set({"distributed.scheduler.work-stealing": stealing}),
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
        usual, blocks.cut = blocks.cut, lambda source: pieces
        view = cluster.view(X)
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
        model = modelled(view, K)
        found = {w: (after[w] - before[w]) / iterations for w in model}
    return {"model": model, "found": found, "seconds": seconds}


def estimate(n: int, m: int, K: int, k: float, n_workers: int, n_views: int, item: int) -> None:
    """The same model for rows in random order, one block per worker, and the rates assumed below."""
    rows, inner = n / n_workers, 30
    # A block has rows·k edges, spread evenly over n rows: each row of another block is wanted with
    # probability 1 − exp(−k/workers).
    wanted = rows * (1 - np.exp(-k / n_workers)) * (n_workers - 1)
    neighbours = wanted * K * item
    through_driver = (
        3 * n * K + 3 * n
    ) * item  # V out and back, V* out; weights out, residuals back
    search = (n - rows) * m * item
    tasks = n_workers * (n_workers + 2) + 2
    iteration = {
        "read X of the worker": rows * m * item / MEMORY,
        "receive neighbour rows": neighbours / NETWORK,
        "schedule tasks": tasks * TASK,
    }
    per_view = inner * sum(iteration.values()) + through_driver / NETWORK
    # The start (31 iterations) and two rounds of 30.
    total = n_views * (3 * per_view + search / NETWORK)
    print(
        f"N={n:.0e}, {n_views} views of M={m}, K={K}, {k:g} edges per row, {n_workers} workers, "
        f"{item} bytes per number"
    )
    for what, size in {
        "X of a view, per worker": rows * m * item,
        "V of a view, per worker": rows * K * item,
        "neighbour rows per iteration, into a worker": neighbours,
        "U and sums per iteration, a worker": 2 * m * K * item,
        "through the driver per view and round": through_driver,
        "rows for the graph's search, into a worker, once": search,
        "graph of a view, in the driver, once": n * k * (item + 4),
        "V, V* and w, in the driver": n * (n_views * (K + 1) + K) * item,
    }.items():
        print(f"  {what:50s} {size / 2**30:10.3f} GiB")
    for what, seconds in iteration.items():
        print(f"  seconds per iteration to {what:25s} {seconds:10.2f}")
    print(f"  seconds through the driver per view and round      {through_driver / NETWORK:10.1f}")
    print(f"  hours for the whole fit, the search's own work apart {total / 3600:8.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--estimate", action="store_true")
    parser.add_argument("--stealing", action="store_true", help="let idle workers take work")
    parser.add_argument("--iterations", type=int, default=10)
    arguments = parser.parse_args()
    if arguments.estimate:
        for item in (8, 4):
            estimate(10**8, 1000, 20, 8.0, 32, 3, item)
        return
    print(
        "rows features K blocks workers | model KiB  found KiB  found/model per worker | s/iteration"
    )
    for (n, m, K), (n_blocks, n_workers) in product(
        [(4000, 50, 10), (20000, 100, 20)], [(2, 2), (5, 2), (6, 3)]
    ):
        result = measure(n, m, K, n_blocks, n_workers, arguments.iterations, arguments.stealing)
        model, found = result["model"], result["found"]
        ratios = " ".join(f"{found[w] / model[w]:.2f}" for w in model)
        print(
            f"{n:6d} {m:4d} {K:3d} {n_blocks:3d} {n_workers:3d} | "
            f"{np.mean(list(model.values())) / 1024:9.0f} {np.mean(list(found.values())) / 1024:9.0f}  "
            f"{ratios} | {result['seconds']:.2f}"
        )


if __name__ == "__main__":
    main()
