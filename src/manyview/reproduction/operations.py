"""Multiplications per iteration: the paper's Appendix D with a dense graph, and ours with a sparse one."""

from __future__ import annotations

from manyview.data.views import as_views
from manyview.engines.affinity import affinity
from manyview.methods.scaling import fit_scaling

from .cells import Cell, Experiment, Options, Tables
from .data import load

N_COMPONENTS, N_NEIGHBORS = 10, 5


def counts(dataset: str, data: str = "") -> Tables:
    """Leading terms for each view: M N K for a product with X, and the graph's N²K or nnz(A) K."""
    views = as_views(load(dataset).views, allow_negative=False, caller="reproduce")
    rows = []
    K, n = N_COMPONENTS, views.n_samples
    for name, X, scaling in zip(
        views.names, views.matrices, fit_scaling(views, "sum"), strict=True
    ):
        nnz = int(affinity(scaling.apply(X), N_NEIGHBORS, "binary", None).nnz)
        product = X.shape[1] * n * K
        rows.append(
            {
                "view": name,
                "N": n,
                "M": X.shape[1],
                "K": K,
                "nnz": nnz,
                "U_paper": product,
                "U_ours": product,
                "V_paper": product + n * n * K,
                "V_ours": product + nnz * K,
            }
        )
    return {"": rows}


def cells(options: Options) -> list[Cell]:
    names = ["digits", "synthetic", *(["lihc"] if options.lihc else [])]
    return [
        Cell(
            "operations.counts",
            {"dataset": name} | ({"data": options.lihc} if name == "lihc" else {}),
            {"dataset": name},
        )
        for name in names
    ]


OPERATIONS = Experiment(
    "operations",
    "Operations per iteration (Appendix D)",
    "Multiplications of the leading terms, K=10, 5 neighbours; nnz(A) is counted on the graph itself.",
    cells,
)
