"""How long `manyview.outcomes` takes: survival of small and large cohorts, markers of wide views.

    python benchmarks/outcomes.py

CPU seconds of one thread. Labels, times and features are drawn at random: the time does not depend
on what is found.
"""

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from manyview.outcomes import enrichment, markers, survival


def cohort(rng, n, k):
    death, end = rng.exponential(10, n), rng.uniform(0, 25, n)
    return rng.integers(0, k, n), np.minimum(death, end), death <= end


def views(rng, n, width):
    return {
        "continuous": rng.normal(size=(n, width)),
        "shares": rng.beta(1, 3, size=(n, width)),
        "counts": rng.poisson(20, size=(n, width)).astype(float),
        "binary": (rng.random((n, width)) < 0.05).astype(float),
    }


def main():
    rng = np.random.default_rng(0)
    small, large = cohort(rng, 500, 4), cohort(rng, 100_000, 5)
    clinical = {f"c{j}": rng.choice(list("abcd"), 500) for j in range(50)}
    wide = views(rng, 500, 20_000)
    tasks = {
        "survival, N=500, K=4, 10,000 permutations": lambda: survival(
            *small, permutations=10_000, pairwise=False
        ),
        "the same with all six pairs": lambda: survival(*small, permutations=10_000),
        "survival, N=100,000, K=5, 499 permutations": lambda: survival(*large, pairwise=False),
        "the same with all ten pairs": lambda: survival(*large),
        "50 clinical columns, N=500, K=4": lambda: enrichment(small[0], clinical),
        "markers, 4 views of 20,000 features, N=500, K=4": lambda: markers(small[0], wide),
    }
    print("| | CPU seconds |\n|---|---|")
    for name, work in tasks.items():
        start = time.process_time()
        work()
        print(f"| {name} | {time.process_time() - start:.1f} |", flush=True)


if __name__ == "__main__":
    main()
