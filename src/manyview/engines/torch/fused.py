"""One pass over the rows of a view in plain PyTorch, and the way to the one that reads X once."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from manyview._types import Split, Sums
from manyview._warn import warn_user
from manyview.engines.optional import engine_part
from manyview.maths import equations as eq
from manyview.maths.solvers import SOLVERS

#: Versions of Triton the fused pass compiles with; Gluon, the layer it is written in, still changes.
TRITON = ("3.6.", "3.7.")


@cache
def fused() -> Any:
    """The module `triton_pass`, or None without a CUDA card or without Triton: never required."""
    if not torch.cuda.is_available():
        return None
    try:
        import triton
    except ModuleNotFoundError:
        return None
    if not triton.__version__.startswith(TRITON):
        warn_user(
            f"Triton {triton.__version__} is here, and the fused pass is known to work with "
            f"{' and '.join(version + 'x' for version in TRITON)}; going on with plain PyTorch, slower"
        )
        return None
    try:
        return engine_part("torch", "triton_pass")
    except Exception as error:  # a broken installation of what is never required
        warn_user(f"the fused pass does not load ({error}); going on with plain PyTorch, slower")
        return None


def plain_pass(
    X: torch.Tensor,
    U: torch.Tensor,
    V: torch.Tensor,
    H: torch.Tensor,
    q: torch.Tensor,
    consensus: torch.Tensor,
    fit_weight: torch.Tensor,
    sum_weight: torch.Tensor,
    a: float,
    beta: float,
    negative: Any,
    positive: Any,
    curvature: Any = 0.0,
    *,
    times_V: bool = False,
    solver: str = "multiplicative",
    out: torch.Tensor | None = None,
) -> tuple[torch.Tensor, Sums]:
    """V after one step (into ``out``), and the sums over rows the next step on U needs.

    ``positive`` is multiplied by V where ``times_V`` (the degrees of a graph); one weight per row.
    """
    split = Split(negative, positive * V if times_V else positive, curvature)
    given = (consensus, fit_weight.reshape(-1, 1), a, beta, split)
    new: Any = SOLVERS[solver]().update_V(V, X @ U, H, q, *given)
    new = new if out is None else out.copy_(new)
    return new, eq.sums_over_rows(X, new, consensus, sum_weight.reshape(-1, 1))


def plain_graph(
    A: torch.Tensor, degrees: torch.Tensor, V: torch.Tensor, out: torch.Tensor
) -> torch.Tensor:
    """A V into ``out`` and Tr(VᵀLV), for a sparse CSR tensor A with these row sums (N,)."""
    torch.mm(A, V, out=out)
    return (V * (degrees[:, None] * V - out)).sum(dtype=torch.float64)
