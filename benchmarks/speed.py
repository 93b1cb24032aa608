"""CPU time of fitting the digits, beside one scikit-learn NMF of the concatenated views.

Interleaved runs in one process, one thread, after warm-up; the ratio of medians is what counts.
"""

import time
import warnings

import numpy as np
from sklearn.decomposition import NMF
from threadpoolctl import threadpool_limits

import manyview as mv


def cpu_seconds(task) -> float:
    start = time.process_time()
    task()
    return time.process_time() - start


def main(repeats: int = 7) -> None:
    warnings.simplefilter("ignore")
    views = mv.datasets.load_handwritten(views="paper").views
    X = np.hstack([view / view.sum() for view in views.values()])
    tasks = {
        "scikit-learn NMF (mu, 91 iterations)": lambda: NMF(
            10, solver="mu", max_iter=91, tol=0, init="random", random_state=0
        ).fit(X),
        "WMNMF (graph, start, loop, labels)": lambda: mv.WMNMF(10, random_state=0).fit(views),
        "WMNMF, hals": lambda: mv.WMNMF(10, solver="hals", random_state=0).fit(views),
    }
    with threadpool_limits(1):
        for task in tasks.values():
            task()
        times = {name: [] for name in tasks}
        for _ in range(repeats):
            for name, task in tasks.items():
                times[name].append(cpu_seconds(task))
    reference = np.median(next(iter(times.values())))
    print(f"{'digits, one thread, median CPU time':40}{'seconds':>10}{'ratio':>8}")
    for name, seconds in times.items():
        median = np.median(seconds)
        print(f"{name:40}{median:10.3f}{median / reference:8.2f}")


if __name__ == "__main__":
    main()
