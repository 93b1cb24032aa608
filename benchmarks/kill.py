"""Kill a fit (SIGKILL) at random moments, resume it each time, and compare with an undisturbed one.

    python benchmarks/kill.py [--kills 20] [--seed 0]

Moments are spread over the whole fit, before the first checkpoint and while one is written too. The
fit is killed again and again until so many kills have hit it; every bit of the result is compared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

FIT = """
import sys, hashlib, numpy as np, manyview as mv
folder, method = sys.argv[1:]
rng = np.random.default_rng(0)
centers = rng.random((4, 60))
views = [np.abs(centers[np.arange(3000) % 4] + 0.5 * rng.random((3000, 60))) for _ in range(3)]
common = {"random_state": 0, "checkpoint": (folder + "/state", 0.05)}
print("ready", flush=True)
if method == "wmnmf":
    model = mv.WMNMF(4, n_init=2, max_iter=3, inner_iter=60, **common)
else:
    model = mv.RobustWMNMF(4, max_iter=300, tol=0, **common)
model.fit(views)
digest = hashlib.sha256()
for array in (*model.components_, *model.coefficients_, model.consensus_, model.labels_):
    digest.update(np.ascontiguousarray(array).tobytes())
print(digest.hexdigest(), flush=True)
"""


def start(folder: Path, method: str) -> subprocess.Popen:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", FIT, str(folder), method]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def finish(process: subprocess.Popen) -> str:
    assert process.stdout is not None
    found = process.stdout.readline().strip()
    process.wait()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="+", default=["wmnmf", "robust"])
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    for method in asked.methods:
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            expected = finish(start(Path(folder), method))
            whole = time.perf_counter() - began
        kills = same = finished = 0
        while kills < asked.kills:
            with tempfile.TemporaryDirectory() as folder:
                # A fit is killed up to three times; then it is let go to its end.
                for _ in range(min(3, asked.kills - kills)):
                    process = start(Path(folder), method)
                    time.sleep(rng.uniform(0, 0.6 * whole))
                    if process.poll() is None:
                        process.kill()
                        kills += 1
                    process.wait()
                found = finish(start(Path(folder), method))
                finished += 1
                same += found == expected and not list(Path(folder).iterdir())
        print(f"{method}: {kills} kills in {finished} fits of about {whole:.0f} s; "
              f"{same} of {finished} ended in the bits of the undisturbed fit")  # fmt: skip
        if same < finished:
            raise SystemExit(f"{method}: a resumed fit differs")


if __name__ == "__main__":
    main()
