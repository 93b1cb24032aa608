"""Speed as ratios, in one command: `make bench` (a quick look) or `python benchmarks/speed.py --full`.

Prints Markdown and writes it, and the same numbers as JSON, where --out says. CPU time, one thread,
medians of interleaved runs; only ratios mean anything across machines. `--million` also fits a
million samples (ten minutes or so).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "2")

import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_limits

import digits_peers
import iteration
import manyview as mv


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="all sizes, growth, memory, threads")
    parser.add_argument("--million", action="store_true", help="also fit a million samples")
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict = {"machine": machine()}
    with threadpool_limits(1):
        sizes = [(2000, float), (20_000, float), (20_000, np.float32)]
        if args.full:
            sizes += [(200_000, float), (200_000, np.float32)]
        found["iterations"] = [iteration.against_everyone(n, dtype=dtype) for n, dtype in sizes]
        found["digits"] = digits_peers.table()
        found["hals"] = iteration.time_to_objective(rounds=3 if args.full else 1)
        if args.full:
            found["growth"] = iteration.exponents()
            found["memory"] = iteration.loop_memory()
    if args.full:
        found["threads"] = iteration.threads_gain()
    if args.million:
        found["million"] = million()
    if gpu_here():
        import gpu

        print("on the GPU:", flush=True)
        found["gpu"] = gpu.measure(("iterations", "digits", "fits"), cpu=args.full)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "speed.json").write_text(json.dumps(found, indent=1))
    text = markdown(found)
    (args.out / "speed.md").write_text(text)
    print(text)


def gpu_here() -> bool:
    try:
        import torch
    except ModuleNotFoundError:
        return False
    return torch.cuda.is_available()


def machine() -> dict:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line for line in lines if line.startswith("model name")]
    return {
        "processor": names[0].split(":")[1].strip() if names else platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def million(n: int = 1_000_000, m: int = 100, n_views: int = 4, k: int = 10) -> dict:
    """WMNMF on a million samples, float32, labels included: wall time and peak memory."""
    rng = np.random.default_rng(0)
    y = rng.integers(k, size=n)
    views = []
    for _ in range(n_views):
        X = rng.uniform(0, 3, (k, m)).astype(np.float32)[y]
        X += rng.standard_normal((n, 8), dtype=np.float32) @ (
            0.3 * rng.standard_normal((8, m))
        ).astype(np.float32)
        X += 0.3 * rng.standard_normal((n, m), dtype=np.float32)
        views.append(np.abs(X, out=X))
    start = time.perf_counter()
    labels = mv.WMNMF(k, dtype=np.float32, random_state=0).fit_predict(views)
    return {
        "minutes": (time.perf_counter() - start) / 60,
        "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "acc": float(mv.metrics.accuracy(y, labels)),
    }


def markdown(found: dict) -> str:
    lines = ["Machine: " + ", ".join(f"{k} {v}" for k, v in found["machine"].items()), ""]
    lines += [
        "## One iteration of one view (M=200, K=10)",
        "",
        "| N | precision | / limit | hals / limit | / plain NumPy | / scikit-learn mu | / cd |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in found["iterations"]:
        ours = r["multiplicative"]
        lines.append(
            f"| {r['n']:,} | {r['dtype']} | {ours / r['limit']:.2f} | {r['hals'] / r['limit']:.2f} "
            f"| {ours / r['numpy']:.2f} | {ours / r['mu']:.2f} | {ours / r['cd']:.2f} |"
        )
    lines += ["", "## Whole fits of the digits", ""]
    lines += ["| method | CPU s | ACC | runs |", "|---|---|---|---|"]
    lines += [
        f"| {r['method']} | {r['cpu_seconds']:.2f} | {r['acc']:.3f} | {r['runs']} |"
        for r in found["digits"]
    ]
    lines += ["", "## Time to an objective", ""]
    for count, ratio in found["hals"].items():
        how = f"{ratio:.1f} times sooner" if ratio else "not within 400 iterations of its own"
        lines.append(
            f"- HALS reaches the multiplicative rule's value after {count} iterations {how}"
        )
    if "growth" in found:
        slopes = ", ".join(f"{name} {slope:.2f}" for name, slope in found["growth"].items())
        lines += ["", "## Growth", "", f"Fitted exponents of the time of an iteration: {slopes}"]
    if "memory" in found:
        r = found["memory"]
        lines += [
            "",
            f"Loop memory, four views of 200,000×200, graphs given: {r['peak_mib']:.0f} MiB beyond "
            f"{r['data_mib']:.0f} MiB of data ({r['share']:.0%})",
        ]
    if "threads" in found:
        r = found["threads"]
        lines += [
            "",
            f"Two threads at N=200,000: {r['ours']:.2f} times faster; a matrix product "
            f"{r['gemm']:.2f} times ({r['share']:.2f} of it)",
        ]
    if "million" in found:
        r = found["million"]
        lines += [
            "",
            f"WMNMF, N=1,000,000, four views of 100 features, float32: {r['minutes']:.1f} minutes, "
            f"peak {r['peak_gib']:.1f} GiB, ACC {r['acc']:.3f}",
        ]
    if "gpu" in found:
        import gpu

        lines += ["", gpu.markdown(found["gpu"])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
