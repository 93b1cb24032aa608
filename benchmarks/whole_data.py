"""Large made-up sets that benchmarks share; `large` needs NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np

CLUSTERS = 10
GENES, COUNTS = 2000, 450


def large(n: int, m: int = 100, n_views: int = 4) -> tuple[list, np.ndarray, int]:
    """Clusters whose rows vary in eight directions of their own per view, and some noise."""
    rng = np.random.default_rng(0)
    y, views = rng.integers(CLUSTERS, size=n), []
    for _ in range(n_views):
        X = rng.random((CLUSTERS, m), dtype=np.float32)[y]
        turn = 0.3 * rng.standard_normal((8, m), dtype=np.float32)
        X += rng.standard_normal((n, 8), dtype=np.float32) @ turn
        X += 0.3 * rng.standard_normal((n, m), dtype=np.float32)
        views.append(X)
    return views, y, CLUSTERS


def cells(n: int, n_types: int = 15, **options: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """2,000 genes, log-normalized, 85% zeros; 150 proteins, centered logarithms; the types.

    Genes alone tell nearly all types apart. ``options`` are those of `make_single_cells`.
    """
    import scipy.sparse as sp

    import manyview as mv

    sizes = {"adt": 150}
    drawn = mv.datasets.make_single_cells(
        n, n_types, ("adt",), n_features=sizes, random_state=0, **options
    )
    y, rng = drawn.labels, np.random.default_rng(0)
    marks = (rng.random((n_types, GENES)) < 0.05) * rng.normal(0, 2, (n_types, GENES))
    means = rng.lognormal(0, 1.2, GENES) * np.exp(marks)
    means *= COUNTS / means.sum(axis=1, keepdims=True)
    parts = []
    for start in range(0, n, 4096):
        types = y[start : start + 4096]
        depth = rng.lognormal(0, 0.3, (len(types), 1))
        parts.append(sp.csr_array(rng.poisson(means[types] * depth).astype(np.float32)))
    genes = sp.csr_array(sp.vstack(parts))
    total = np.ravel(genes.sum(axis=1))
    genes.data = np.log1p(genes.data * np.repeat(np.median(total) / total, np.diff(genes.indptr)))
    proteins = np.log1p(drawn.views["adt"])
    proteins -= proteins.mean(axis=1, keepdims=True)
    return genes, proteins.astype(np.float32), y
