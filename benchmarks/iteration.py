"""Time of one iteration of one view: against the machine's limits, plain NumPy and scikit-learn.

Everything here is measured side by side: every round runs each contender once, medians are compared.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF

from manyview._types import Factors
from manyview.engines.numpy.rows import Rows
from manyview.engines.threads import Threads
from manyview.maths import equations as eq
from manyview.maths.solvers import Multiplicative, SimplexHALS
from manyview.regularizers import GraphTerm, NoPenalty
from manyview.wmnmf import Loop

Task = Callable[[], object]
#: Iterations (and reads of X, and products) timed together.
IN_A_ROW = 10


def interleaved(tasks: dict[str, Task], rounds: int, clock=time.process_time) -> dict[str, float]:
    """Median seconds of every task; each round runs all of them, after one round of warm-up."""
    seconds = {name: [] for name in tasks}
    for round_ in range(rounds + 1):
        for name, task in tasks.items():
            start = clock()
            task()
            if round_:
                seconds[name].append(clock() - start)
    return {name: float(np.median(times)) for name, times in seconds.items()}


def in_a_row(task: Task) -> Task:
    """As in a fit: an iteration finds in the cache what the one before left there."""

    def several() -> None:
        for _ in range(IN_A_ROW):
            task()

    return several


def problem(n: int, m: int, k: int, dtype=np.float64, seed: int = 0):
    """A view, factors, and a graph of five neighbors whose rows lie anywhere in memory."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, m), dtype=dtype)
    U, V, V_star = (rng.random(shape, dtype=dtype) for shape in ((m, k), (n, k), (n, k)))
    U /= U.sum(axis=0)
    place = rng.permutation(n)
    i = np.repeat(place, 5)
    j = place[(np.arange(n)[:, None] + np.arange(1, 6)) % n].ravel()
    A = sp.csr_array((np.ones(len(i), dtype=dtype), (i, j)), shape=(n, n))
    return X, U, V, V_star, GraphTerm(sp.csr_array(A.maximum(A.T)))


def roofline(X: np.ndarray, k: int) -> dict[str, Task]:
    """What the machine can do: reading X once, and a large matrix product."""
    side = 1200
    A = np.random.default_rng(0).random((side, side), dtype=X.dtype)
    flat, sink = X.ravel(), np.empty(2**15, dtype=X.dtype)

    def read() -> None:  # copied into a buffer that stays in the cache: reads, and hardly writes
        for start in range(0, flat.size - sink.size + 1, sink.size):
            np.copyto(sink, flat[start : start + sink.size])

    return {"read": read, "gemm": lambda: A @ A}


def limit(seconds: dict[str, float], X: np.ndarray, k: int) -> float:
    """max(reading X once, 4NMK flops at the measured rate of a matrix product)."""
    rate = 2 * 1200**3 / seconds["gemm"]
    return max(seconds["read"], 4 * X.size * k / rate)


def our_iteration(X, U, V, V_star, g, solver, threads=1) -> Task:
    rows = Rows(X, solver, Threads(threads))
    w2 = np.full(len(X), 0.25)
    rows.begin(V, V_star, w2, w2, g, basis=True)
    rows.sum(V)
    state = [U, V]

    def iterate() -> None:
        state[0] = rows.step_U(state[0], 0.1)
        state[1] = rows.step_V(state[0], state[1], 0.1, 0.01)
        rows.error(state[0])
        rows.gap(state[0], state[1])

    return iterate


def plain_numpy(X, U, V, V_star, g) -> Task:
    """The same iteration as one would write it: two products with X, SciPy's graph product."""
    w2 = np.full((len(X), 1), 0.25, dtype=X.dtype)
    x_sq = (X * X).sum(axis=1)
    state = [U, V]

    def iterate() -> None:
        U, V = state
        sums = eq.sums_over_rows(X, V, V_star, w2)
        U = eq.ratio_step(U, *eq.split_U(U, sums, 0.1)).astype(X.dtype)
        XU, H, q = X @ U, U.T @ U, U.sum(axis=0)
        V = eq.ratio_step(V, *eq.split_V(V, XU, H, q, V_star, w2, 0.1, 0.01, g.split(V)))
        r = eq.squared_residuals(x_sq, XU, V, H)
        _ = w2[:, 0] @ r, eq.consensus_gap(V, q, V_star), g.value(V)
        state[:] = U, V

    return iterate


def sklearn_iterations(X, solver: str, k: int, n_iter: int) -> Task:
    model = NMF(k, solver=solver, max_iter=n_iter, tol=0, init="random", random_state=0)
    return lambda: model.fit(X)


def against_everyone(n: int, m: int = 200, k: int = 10, dtype=np.float64, rounds: int = 7) -> dict:
    """One row of the table: seconds per iteration of ours and of the others, and the limit."""
    X, U, V, V_star, g = problem(n, m, k, dtype)
    short, long = 2, 2 + IN_A_ROW
    repeated = {
        "multiplicative": our_iteration(X, U, V, V_star, g, Multiplicative()),
        "hals": our_iteration(X, U, V, V_star, g, SimplexHALS()),
        "numpy": plain_numpy(X, U, V, V_star, g),
        **roofline(X, k),
    }
    tasks = {
        **{name: in_a_row(task) for name, task in repeated.items()},
        **{
            f"{solver} {count}": sklearn_iterations(X, solver, k, count)
            for solver in ("mu", "cd")
            for count in (short, long)
        },
    }
    seconds = interleaved(tasks, rounds)
    seconds |= {name: seconds[name] / IN_A_ROW for name in repeated}
    row = {name: seconds[name] for name in ("multiplicative", "hals", "numpy")}
    for solver in ("mu", "cd"):  # a difference: the start and the checks of a fit cancel
        row[solver] = (seconds[f"{solver} {long}"] - seconds[f"{solver} {short}"]) / (long - short)
    return {"n": n, "m": m, "k": k, "dtype": np.dtype(dtype).name, **row} | {
        "limit": limit(seconds, X, k),
        "read": seconds["read"],
        "gemm_gflops": 2e-9 * 1200**3 / seconds["gemm"],
    }


def threads_gain(n: int = 200_000, m: int = 200, k: int = 10, rounds: int = 5) -> dict:
    """Wall time with one and two threads: ours, and a matrix product."""
    from threadpoolctl import threadpool_limits

    X, U, V, V_star, g = problem(n, m, k)
    A = np.random.default_rng(0).random((2000, 2000))

    def gemm(threads: int) -> Task:
        def product() -> None:
            with threadpool_limits(threads):
                A @ A

        return product

    def ours(threads: int) -> Task:
        iterate = our_iteration(X, U, V, V_star, g, Multiplicative(), threads)

        def one() -> None:
            with threadpool_limits(1):
                iterate()

        return one

    tasks = {f"ours {t}": ours(t) for t in (1, 2)} | {f"gemm {t}": gemm(t) for t in (1, 2)}
    seconds = interleaved(tasks, rounds, time.perf_counter)
    gain = {who: seconds[f"{who} 1"] / seconds[f"{who} 2"] for who in ("ours", "gemm")}
    return gain | {"share": gain["ours"] / gain["gemm"]}


def time_to_objective(n: int = 20_000, m: int = 200, k: int = 10, rounds: int = 3) -> dict:
    """CPU time HALS needs for the value the multiplicative rule has after 60 and 1000 iterations.

    One view; α, w and V* fixed, V* being the coefficients both start from, as in a fit; unit column
    sums (which the multiplicative rule need not keep: without a graph O does not depend on them).
    """
    rng = np.random.default_rng(0)
    y = rng.integers(k, size=n)
    X = rng.random((k, m))[y] * rng.uniform(0.5, 1.5, (n, 1)) + 0.1 * rng.random((n, m))
    U, V = eq.rescale(rng.random((m, k)), rng.random((n, k)))
    V = V * X.sum() / V.sum()
    start = Factors((U,), (V,), V, np.ones(1), np.ones((n, 1)))
    found: dict[int, list[float]] = {60: [], 1000: []}
    for _ in range(rounds):
        values, clocks = {}, {}
        for name, solver, count in (
            ("mu", Multiplicative(), 1000),
            ("hals", SimplexHALS(), 400),
        ):
            times: list[float] = []

            def clock(info: dict, times=times) -> None:
                times.append(time.process_time())

            begun = time.process_time()
            loop = Loop(
                [X], [NoPenalty()], solver, 1.0, 0.0, 1, count, learn_view_weights=False,
                learn_sample_weights=False, callback=clock,
            )  # fmt: skip
            history = loop.run(start).history["objective"][1:-1]
            values[name], clocks[name] = history, np.array(times) - begun
        for count in found:
            reached = np.flatnonzero(values["hals"] <= values["mu"][count - 1] * (1 + 1e-9))
            ratio = clocks["mu"][count - 1] / clocks["hals"][reached[0]] if len(reached) else 0.0
            found[count].append(float(ratio))
    return {count: float(np.median(ratios)) for count, ratios in found.items()}


def exponents(rounds: int = 3) -> dict:
    """Growth of an iteration's time with N, M, K and the number of views: fitted slopes of logs."""
    base = {"n": 50_000, "m": 100, "k": 10, "views": 1}
    ranges = {
        "n": (50_000, 100_000, 200_000, 400_000, 1_000_000),
        "m": (100, 200, 400, 800),
        "k": (5, 10, 20, 40),
        "views": (1, 2, 4),
    }
    slopes = {}
    for name, values in ranges.items():
        seconds = []
        for value in values:
            size = base | {name: value}
            n_views = size.pop("views")
            tasks = [
                our_iteration(*problem(**size, dtype=np.float32, seed=s), Multiplicative())
                for s in range(n_views)
            ]
            timed = interleaved({"all": lambda tasks=tasks: [task() for task in tasks]}, rounds)
            seconds.append(timed["all"])
            del tasks
        slopes[name] = float(np.polyfit(np.log(values), np.log(seconds), 1)[0])
    return slopes


def loop_memory(n: int = 200_000, m: int = 200, k: int = 10, n_views: int = 4) -> dict:
    """Peak memory of the loop beyond the data, the graphs given, as a share of the data."""
    from manyview._types import Views
    from manyview.engines.numpy.sources import Scaled
    from manyview.initialize import starting_factors
    from manyview.nonnegative import fit_nonnegative

    rng = np.random.default_rng(0)
    data = [rng.random((n, m)) for _ in range(n_views)]
    terms = [problem(n, 1, 1, seed=s)[4] for s in range(n_views)]
    names = tuple(map(str, range(n_views)))
    tracemalloc.start()
    views = Views(tuple(data), names, (None,) * n_views)
    scalings = fit_nonnegative(views, "sum")
    Xs = [Scaled(X, s, np.dtype(float)) for X, s in zip(data, scalings, strict=True)]
    solver = Multiplicative()
    start = starting_factors(Xs, "random", k, terms, solver, 5.0, rng)
    Loop(Xs, terms, solver, 5.0, 0.01, 2, 2).run(start)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    size = sum(X.nbytes for X in data)
    return {"data_mib": size / 2**20, "peak_mib": peak / 2**20, "share": peak / size}
