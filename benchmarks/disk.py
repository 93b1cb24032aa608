"""Fits from files against fits in memory: time per iteration, peak memory, the disk's own speed.

    python benchmarks/disk.py [--rows 40000] [--features 2500] [--kind npy] [--method wmnmf]

Every fit runs in a process of its own. Memory is the peak of RssAnon (file cache is not counted), and
what of it the process had before the fit (interpreter, libraries, compiled loops). Time per iteration is
the median between two calls of the callback within a view's loop.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

N_VIEWS, CLUSTERS = 2, 10
#: What the names of the files end with.
KINDS = {"npy": ".npy", "h5": ".h5", "zarr": ".zarr", "plain-zarr": "-plain.zarr"}


def write(folder: Path, rows: int, features: int, ending: str) -> list[str]:
    """Nonnegative views of ten groups in float32, written a block at a time."""
    files = []
    for s in range(N_VIEWS):
        rng = np.random.default_rng(s)
        centers = rng.random((CLUSTERS, features), dtype=np.float32)
        path = folder / f"view{s}{ending}"
        out = open_for_writing(path, rows, features)
        for start in range(0, rows, 1000):
            stop = min(rows, start + 1000)
            y = np.arange(start, stop) % CLUSTERS
            out[start:stop] = centers[y] + rng.random((stop - start, features), dtype=np.float32)
        del out
        files.append(str(path))
    return files


def open_for_writing(path: Path, rows: int, features: int) -> Any:
    shape = (rows, features)
    if path.suffix == ".npy":
        return np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    if path.suffix == ".h5":
        import h5py

        return h5py.File(path, "w").create_dataset("x", shape, np.float32, chunks=(256, features))
    import zarr

    packing = {"compressors": None} if path.stem.endswith("plain") else {}
    return zarr.create_array(str(path), shape=shape, dtype="f4", chunks=(256, features), **packing)


def anonymous() -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.split("RssAnon:")[1].split()[0]) * 1024


def measure(files: list[str], where: str, method: str, graph: bool) -> dict[str, Any]:
    """One fit in this process, watched."""
    import manyview as mv
    from manyview.engines.numpy.neighbors import index_neighbors

    warnings.simplefilter("ignore")
    common = {"random_state": 0, "dtype": np.float32}
    if not graph:
        common |= {"regularizer": None, "init": "random", "assign_labels": "argmax"}
    make: dict[str, Any] = {
        "wmnmf": lambda **p: mv.WMNMF(CLUSTERS, max_iter=1, inner_iter=12, **common, **p),
        "robust": lambda **p: mv.RobustWMNMF(CLUSTERS, max_iter=12, tol=0, **common, **p),
    }
    small = np.random.default_rng(0).random((300, 40), dtype=np.float32)
    make[method]().fit([small, small + 1])  # compiles
    if graph:
        index_neighbors(small, 6, 0)  # compiles, too
    if where == "memory":
        views = [mv.on_disk(file).load() for file in files]
    else:
        views = [mv.on_disk(file) for file in files]
    calls: list[tuple[int, float]] = []
    before, peak, done = anonymous(), [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            peak[0] = max(peak[0], anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    started = time.perf_counter()
    note = lambda info: calls.append((info["view"], time.perf_counter())) and None  # noqa: E731
    model = make[method](callback=note).fit(views)
    total = time.perf_counter() - started
    done.set()
    watcher.join()
    steps = [b - a for (v, a), (u, b) in pairwise(calls) if u == v]
    found = {
        "before": before,
        "peak": peak[0],
        "iteration": float(np.median(steps)),
        "total": total,
    }
    return found | {"labels": model.labels_.tolist()}


def disk_speed(files: list[str]) -> float:
    """Bytes per second of reading the files from the disk, their cache dropped first where allowed."""
    size, started = 0, time.perf_counter()
    for file in files:
        if not Path(file).is_file():
            return float("nan")
        with open(file, "rb", buffering=0) as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while chunk := opened.read(2**21):
                size += len(chunk)
    return size / (time.perf_counter() - started)


def in_process(files: list[str], where: str, method: str, graph: bool) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", where, "--method", method, *files]
    command += [] if graph else ["--no-graph"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--measure", choices=["memory", "disk"])
    parser.add_argument("--method", choices=["wmnmf", "robust"], default="wmnmf")
    parser.add_argument("--kind", choices=KINDS, default="npy")
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--features", type=int, default=2500)
    parser.add_argument("--no-graph", action="store_true", help="WMNMF without its neighbor graph")
    parser.add_argument(
        "--only-files", action="store_true", help="no fit in memory to compare with"
    )
    asked = parser.parse_args()
    graph = not asked.no_graph
    if asked.measure:
        print(json.dumps(measure(asked.files, asked.measure, asked.method, graph)))
        return
    from sklearn.metrics import adjusted_rand_score

    with tempfile.TemporaryDirectory() as folder:
        files = write(Path(folder), asked.rows, asked.features, KINDS[asked.kind])
        data = N_VIEWS * asked.rows * asked.features * 4
        speed = disk_speed(files)
        wheres = ["disk"] if asked.only_files else ["memory", "disk"]
        found = {where: in_process(files, where, asked.method, graph) for where in wheres}
    print(f"{asked.method} {asked.kind}{'' if graph else ' without graph'}: {N_VIEWS} × {asked.rows} × "
          f"{asked.features} float32, {data / 2**20:.0f} MiB; reading from the disk: "
          f"{speed / 2**20:.0f} MiB/s")  # fmt: skip
    print("| views in | iteration s | fit s | peak RssAnon MiB | before the fit | peak / data |")
    print("|---|---|---|---|---|---|")
    for name, seen in found.items():
        numbers = f"{seen['iteration']:.3f} | {seen['total']:.0f} | {seen['peak'] / 2**20:.0f}"
        print(f"| {name} | {numbers} | {seen['before'] / 2**20:.0f} | {seen['peak'] / data:.2f} |")
    print(f"one reading of a view at the disk's speed: {data / N_VIEWS / speed:.3f} s")
    if not asked.only_files:
        memory, disk = found["memory"], found["disk"]
        print(f"time per iteration, disk / memory: {disk['iteration'] / memory['iteration']:.2f}")
        ari = adjusted_rand_score(memory["labels"], disk["labels"])
        print(f"agreement of labels (ARI): {ari:.3f}")


if __name__ == "__main__":
    main()
