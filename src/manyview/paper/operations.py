"""Operations per iteration: the paper's Appendix D with a dense graph, and ours with a sparse one."""

from __future__ import annotations

from manyview.engines.affinity import affinity
from manyview.scaling import fit_scaling
from manyview.views.views import as_views

from .cells import (
    Cell,
    Experiment,
    Options,
    Row,
    Tables,
)
from .data import load

N_COMPONENTS, N_NEIGHBORS = 10, 5
KINDS = ("additions", "multiplications", "divisions")


def of_U(n: int, m: int, k: int) -> tuple[int, int, int]:
    """Additions, multiplications and divisions of the update of U.

    U ∘ [XᵀW²V + a·Σ(V∘V*)] / [U(VᵀW²V) + a·q∘Σ(V∘V)], from the left to the right.
    """
    squares, weighted = n, n * k  # w², and W²V once for each of the two products it is in
    product = (m * (n - 1) * k, m * n * k)
    gram = ((n - 1) * k * k, n * k * k)
    back = (m * k * (k - 1), m * k * k)
    pulls = 2 * (n - 1) * k, 2 * n * k + 3 * k
    sums = (m - 1) * k + 2 * m * k  # q, and the two sums of matrices
    additions = product[0] + gram[0] + back[0] + pulls[0] + sums
    last = m * k  # U times the ratio
    multiplications = squares + 2 * weighted + product[1] + gram[1] + back[1] + pulls[1] + last
    return additions, multiplications, m * k


def of_V(n: int, m: int, k: int, edges: int) -> tuple[int, int, int]:
    """The same of the update of V, with a graph of so many entries, whose row sums are known.

    V ∘ [W²XU + a·V*Q + β·AV] / [W²V(UᵀU) + a·VQ² + β·DV]; a dense graph has n² entries.
    """
    product = (n * (m - 1) * k, n * m * k)
    gram = ((m - 1) * k * k, m * k * k)
    back = (n * k * (k - 1), n * k * k)
    graph = ((edges - n) * k, edges * k)
    sums = (m - 1) * k + 4 * n * k  # q, and the four sums of matrices
    additions = product[0] + gram[0] + back[0] + graph[0] + sums
    # W² twice, a and q in both, β twice, the row sums, the ratio; q² and βd once.
    others = 2 * n * k + 4 * n * k + n * k + n * k + n * k + k + n
    return additions, product[1] + gram[1] + back[1] + graph[1] + others, n * k


def counts(dataset: str, counted: int = 2, data: str = "") -> Tables:
    """For each view all operations, and the leading terms: M N K of a product with X, and the graph's."""
    views = as_views(load(dataset).views, allow_negative=False, caller="reproduce")
    rows: list[Row] = []
    whole: list[Row] = []
    K, n = N_COMPONENTS, views.n_samples
    for name, X, scaling in zip(
        views.names, views.matrices, fit_scaling(views, "sum"), strict=True
    ):
        nnz = int(affinity(scaling.apply(X), N_NEIGHBORS, "binary", None).nnz)
        m = X.shape[1]
        product = m * n * K
        about = {"view": name, "N": n, "M": m, "K": K, "nnz": nnz}
        leading = {"U_paper": product, "U_ours": product}
        leading |= {"V_paper": product + n * n * K, "V_ours": product + nnz * K}
        rows.append(about | leading)
        for update, found in (
            ("U", of_U(n, m, K)),
            ("V, dense graph", of_V(n, m, K, n * n)),
            ("V, sparse graph", of_V(n, m, K, nnz)),
        ):
            whole.append({"view": name, "update": update, **dict(zip(KINDS, found, strict=True))})
    return {"": rows, "whole": whole}


def cells(options: Options) -> list[Cell]:
    names = ["digits", "synthetic", *(["lihc"] if options.lihc else [])]
    return [
        Cell(
            "operations.counts",
            # The number is raised when more is counted: a stored cell has less.
            {"dataset": name, "counted": 2} | ({"data": options.lihc} if name == "lihc" else {}),
            {"dataset": name},
        )
        for name in names
    ]


OPERATIONS = Experiment(
    "operations",
    "Operations per iteration (Appendix D)",
    "One update of U and one of V of every view, K=10, 5 neighbours; nnz(A) is counted on the graph "
    "itself. The leading terms, and all additions, multiplications and divisions of the formulas.",
    cells,
)
