"""What a report costs beside its fit: seconds of CPU by stage.

    python benchmarks/report.py [--data DIR] [--case NAME ...]

Cases: ``digits`` (shipped; 2000 × 6 views), ``cells`` (made here: 4300 cells, two modalities of sparse
counts, communities) and, with --data, DIR/NAME.npz that `load.py` there reads (as for `quality.py`;
communities). ``fit`` is `RobustWMNMF.fit`; ``results`` what `manyview fit --no-report` computes and writes
beyond it (a plain method beside it, tests of features, a map, tables, the model); ``report`` what the
report adds (refits of parts, clusters without each view, the page). Two ratios: how many times as long
the command takes with its report, and the whole over the fit alone. Reading files is not counted.
"""

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

import manyview as mv
from manyview.app.run import write_run
from quality import module


def cells(n: int = 4300, types: int = 12, seed: int = 0) -> dict[str, sp.csr_array]:
    """Counts of two modalities: every type has genes and regions of its own; depths vary."""
    rng = np.random.default_rng(seed)
    of = rng.choice(types, n, p=rng.dirichlet(np.full(types, 5.0)))
    views = {}
    for name, width, depth in (("rna", 4000, 300), ("atac", 8000, 120)):
        profile = rng.gamma(0.3, 1, (types, width)) * rng.gamma(0.3, 1, width)
        profile = 0.5 * profile + 0.5 * profile.mean(axis=0)
        profile /= profile.sum(axis=1, keepdims=True)
        depths = depth * rng.lognormal(0, 0.5, n)
        parts = [sp.csr_array(rng.poisson(d * profile[t])) for d, t in zip(depths, of, strict=True)]
        views[name] = sp.csr_array(sp.vstack(parts), dtype=np.float32)
    return views


def cases(names: list[str], data: Path | None) -> Iterator[tuple[str, Any, Any]]:
    for name in names:
        if name == "digits":
            yield name, mv.datasets.load_handwritten().views, 10
        elif name == "cells":
            yield name, cells(), "communities"
        elif data is None:
            raise SystemExit(f"{name} is no case without --data DIR")
        else:
            yield name, module(data / "load.py").load(data / f"{name}.npz")[0], "communities"


def measured(views: Any, n_clusters: Any, report: bool) -> dict[str, float]:
    """Seconds of CPU by stage."""
    times = [("fit", time.process_time())]
    model = mv.RobustWMNMF(n_clusters, random_state=0).fit(views)
    with tempfile.TemporaryDirectory() as folder:
        write_run(
            model,
            views,
            Path(folder) / "run",
            report=report,
            stability_runs=None if report else 0,
            progress=lambda words: times.append((words, time.process_time())),
        )
    times.append(("", time.process_time()))
    found: dict[str, float] = {}
    for (words, start), (_, end) in pairwise(times):
        stage = words.partition(",")[0]
        found[stage] = found.get(stage, 0.0) + end - start
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--case", nargs="+", default=["digits", "cells"])
    asked = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    mv.RobustWMNMF(3, random_state=0).fit(mv.datasets.make_synthetic(200).views)  # compiled
    for name, views, n_clusters in cases(asked.case, asked.data):
        plain = measured(views, n_clusters, report=False)
        whole = measured(views, n_clusters, report=True)
        fit, without, total = plain["fit"], sum(plain.values()), sum(whole.values())
        n = (list(views.values()) if isinstance(views, dict) else views)[0].shape[0]
        print(f"\n{name}: {n} samples")
        for stage in whole:
            print(f"  {whole[stage]:7.2f} s  {whole[stage] / total:4.0%}  {stage}")
        print(f"  fit {fit:.1f} s, results {without - fit:.1f} s, report {total - without:.1f} s")
        print(
            f"  with its report {total / without:.2f} times as long; {total / fit:.1f} fits",
            flush=True,
        )


if __name__ == "__main__":
    main()
