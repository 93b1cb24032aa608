"""The torch engine beside the limits of the card it runs on: iterations and whole fits.

    python benchmarks/gpu.py [--out FILE] [--only iterations fits digits million streamed] [--cpu]
    taskset -c 0,1 python benchmarks/gpu.py --only fits --cpu    # against two cores of the host

Iterations are medians of many, timed by the device's own clock; the ceiling is reading X once, in the
same run. ``--cpu`` fits the same data with two threads of the NumPy engine for comparison.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import adjusted_rand_score

from manyview import WMNMF, RobustWMNMF
from manyview.datasets import load_handwritten
from manyview.engines.torch import device
from manyview.engines.torch.graph import DeviceGraph
from manyview.engines.torch.rows import TorchView
from manyview.maths.solvers import SOLVERS
from manyview.regularizers import GraphTerm

IN_A_ROW = 10
CPU = "numpy, two threads"
PARTS = ("iterations", "digits", "fits", "million", "streamed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--cpu", action="store_true", help="also two threads of the NumPy engine")
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    args = parser.parse_args()
    if not torch.cuda.is_available() and not args.cpu:
        raise SystemExit("no GPU here: nothing to measure (--cpu measures the NumPy engine alone)")
    found = measure(args.only, args.cpu)
    print(markdown(found))
    if args.out:
        args.out.write_text(json.dumps(found, indent=1))


def measure(parts: Any, cpu: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = {"machine": machine()}
    print(found["machine"], flush=True)
    return found | {part: globals()[part](cpu) for part in parts}


def markdown(found: dict) -> str:
    lines = [
        "## On a GPU",
        "",
        "Machine: " + ", ".join(f"{k} {v}" for k, v in found["machine"].items()),
    ]
    if found.get("iterations"):
        lines += ["", "| N | M | K | solver | float32 products | ms | reading X once, ms | ratio |"]
        lines.append("|---|---|---|---|---|---|---|---|")
    for r in found.get("iterations", []):
        exact = "exact" if r["matmul"] == "highest" else "TF32"
        lines.append(
            f"| {r['n']:,} | {r['m']} | {r['k']} | {r['solver']} | {exact} | {r['ms']:.2f} "
            f"| {r['read_ms']:.2f} | {r['ratio']:.1f} |"
        )
    fitted = [r for part in PARTS[1:] for r in found.get(part, [])]
    if fitted:
        lines += ["", "| whole fit, labels included | engine | s | two CPU cores / this "]
        lines[-1] += "| ARI with the truth | GiB on the card |"
        lines.append("|---|---|---|---|---|---|")
    for r in fitted:
        cpu = [c["seconds"] for c in fitted if c["what"] == r["what"] and c["how"] == CPU]
        ratio = f"{cpu[-1] / r['seconds']:.1f}" if cpu and r["how"] != CPU else ""
        numbers = f"{r['seconds']:.2f} | {ratio} | {r['ari']:.3f} | {r['peak_gib']:.1f}"
        lines.append(f"| {r['what']} | {r['how']} | {numbers} |")
    return "\n".join(lines)


def machine() -> dict:
    card = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    return {"card": card, "torch": torch.__version__, "numpy": np.__version__}


# --- iterations --------------------------------------------------------------------------------


def median_ms(task: Any, rounds: int = 30) -> float:
    """Median milliseconds of a task by the device's clock, after warming up."""
    for _ in range(3):
        task()
    times = []
    for _ in range(rounds):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(IN_A_ROW):  # as in the loop, which does not wait between iterations
            task()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) / IN_A_ROW)
    return float(np.median(times))


def chain(n: int, device: str, reach: int = 4) -> DeviceGraph:
    """A neighbor graph in local order: every row linked to the four before and after it."""
    i = torch.arange(n, device=device)
    edges = [(i[:-r], i[r:]) for r in range(1, reach + 1)]
    a, b = (torch.cat(side) for side in zip(*edges, strict=True))
    ones = torch.ones(2 * len(a), device=device)
    return DeviceGraph.from_edges(torch.cat([a, b]), torch.cat([b, a]), ones, n)


def iterations(cpu: bool) -> list[dict]:
    if not torch.cuda.is_available():
        return []
    rows = []
    for n, m, k in ((1_000_000, 1000, 20), (1_000_000, 100, 10), (200_000, 250, 10)):
        X = torch.rand(n, m, device="cuda")
        read = median_ms(lambda X=X: torch.sum(X))
        graph = chain(n, "cuda")
        for solver in SOLVERS:
            for precision in ("highest", "high"):
                torch.set_float32_matmul_precision(precision)
                ms = median_ms(iteration(X, k, graph, SOLVERS[solver]()))
                row = {"n": n, "m": m, "k": k, "solver": solver, "matmul": precision}
                row |= {"ms": ms, "read_ms": read, "ratio": ms / read}
                rows.append(row)
                print(
                    f"N={n} M={m} K={k} {solver:15s} {precision:8s} {ms:7.2f} ms, reading X once "
                    f"{read:.2f} ms: {ms / read:.1f}×",
                    flush=True,
                )
        torch.set_float32_matmul_precision("highest")
        del X, graph
        torch.cuda.empty_cache()
    return rows


def iteration(X: torch.Tensor, k: int, graph: DeviceGraph, solver: Any) -> Any:
    """One step on U and one on V and the terms of the objective, as the loop makes them."""
    n, m = X.shape
    view = TorchView(X, X.device).as_rows(solver)
    U, V = solver.start(torch.rand(m, k, device="cuda"), torch.rand(n, k, device="cuda"))
    weights = torch.rand(n, device="cuda")
    view.begin(V, torch.rand_like(V), weights, weights, GraphTerm(graph, graph.row_sums()), True)
    view.sum(V)
    state = [U, V]

    def task() -> None:
        state[0] = view.step_U(state[0], 0.1)
        state[1] = view.step_V(state[0], state[1], 0.1, 0.01)
        view.error(state[0])
        view.gap(*state)

    return task


# --- whole fits --------------------------------------------------------------------------------


def mixture(
    n: int, m: int, n_views: int = 4, k: int = 10, seed: int = 0
) -> tuple[dict, np.ndarray]:
    """Clusters seen in several views, float32."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    views = {}
    for s in range(n_views):
        centers = rng.random((k, m), dtype=np.float32)
        noise = rng.standard_normal((n, m), dtype=np.float32)
        views[f"view{s}"] = np.maximum(centers[labels] + 0.3 * noise, 0)
    return views, labels


def fit(model: Any, views: dict, labels: np.ndarray, what: str, how: str) -> dict:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
        started = time.perf_counter()
        model.fit(views)
        seconds = time.perf_counter() - started
    peak = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else 0.0
    ari = adjusted_rand_score(labels, model.labels_)
    told = f"{what:32s} {how:20s} {seconds:7.2f} s, ARI {ari:.3f}"
    print(f"{told}, peak {peak:.1f} GiB on the card", flush=True)
    return {"what": what, "how": how, "seconds": seconds, "ari": ari, "peak_gib": peak}


def engines(cpu: bool) -> dict[str, dict]:
    there = {"torch, cuda": {"engine": "torch", "device": "cuda"}}
    return (there if torch.cuda.is_available() else {}) | ({CPU: {"n_jobs": 2}} if cpu else {})


def digits(cpu: bool) -> list[dict]:
    """Small problems: every engine and device, after a first fit."""
    data, rows = load_handwritten(views="paper"), []
    auto = {"torch, auto": {"engine": "torch", "device": "auto"}}
    for estimator in (WMNMF, RobustWMNMF):
        for name, how in (engines(True) | auto).items():
            for _ in range(3):
                model = estimator(10, random_state=0, **how)
                row = fit(model, data.views, data.labels, f"digits, {estimator.__name__}", name)
            rows.append(row)
    return rows


def fits(cpu: bool, n: int = 200_000, m: int = 250) -> list[dict]:
    """Large problems; "first" is the first fit of this process on the card."""
    if cpu:  # compiled loops are not what is compared
        small, labels = mixture(35_000, 20)
        for estimator in (WMNMF, RobustWMNMF):
            fit(estimator(10, n_jobs=2, dtype=np.float32), small, labels, "warming up", CPU)
    views, labels = mixture(n, m)
    rows = []
    for estimator in (WMNMF, RobustWMNMF):
        for name, how in engines(cpu).items():
            for again in ("", " again") if name != CPU else ("",):
                model = estimator(10, random_state=0, dtype=np.float32, **how)
                what = f"N={n:,}, 4×{m}, {estimator.__name__}"
                rows.append(fit(model, views, labels, what, name + again))
    return rows


def million(cpu: bool) -> list[dict]:
    return fits(cpu, 1_000_000, 100)


def streamed(cpu: bool, n: int = 200_000, m: int = 1000) -> list[dict]:
    """Views on the card, and the same views as if the card had room for none of them."""
    views, labels = mixture(n, m)
    share, rows = device.SHARE_FOR_DATA, []
    for estimator in (WMNMF, RobustWMNMF):
        for how, room in (("on the card", share), ("streamed", 0.0)):
            model = estimator(10, random_state=0, engine="torch", device="cuda", dtype=np.float32)
            what = f"N={n:,}, 4×{m}, {estimator.__name__}"
            device.SHARE_FOR_DATA = room
            try:
                rows.append(fit(model, views, labels, what, how) | {"iterations": model.n_iter_})
            finally:
                device.SHARE_FOR_DATA = share
    return rows


if __name__ == "__main__":
    main()
