"""One pass over the rows of a view in plain PyTorch: any dtype, any device, no special kernels.

`triton_pass` does the same from one read of X; tests hold both to `equations`.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import torch

from .._types import Sums

Tensor = torch.Tensor
#: Sweeps of HALS over the coordinates of a row.
SWEEPS = 2


@cache
def fused() -> Any:
    """The module `triton_pass`, or None without a CUDA card or without Triton: never required."""
    if not torch.cuda.is_available():
        return None
    try:
        from . import triton_pass
    except ModuleNotFoundError:
        return None
    except (ImportError, AttributeError) as error:  # Gluon is young: other versions, other names
        warnings.warn(
            f"triton is installed but too old or too new for the fused pass ({error}); "
            "going on with plain PyTorch, slower",
            UserWarning,
            stacklevel=2,
        )
        return None
    return triton_pass


def plain_pass(
    X: Tensor,
    U: Tensor,
    V: Tensor,
    H: Tensor,
    q: Tensor,
    consensus: Tensor,
    fit_weight: Tensor,
    sum_weight: Tensor,
    a: float,
    beta: float,
    negative: Any,
    positive: Any,
    curvature: Any = 0.0,
    *,
    times_V: bool = False,
    solver: str = "multiplicative",
    out: Tensor | None = None,
) -> tuple[Tensor, Sums]:
    """V after one step (into ``out``), and the sums over rows the next step on U needs.

    ``positive`` is multiplied by V where ``times_V`` (the degrees of a graph); the weights are (N,).
    """
    w = fit_weight[:, None]
    positive = positive * V if times_V else positive
    if solver == "hals":
        linear = w * (X @ U) + a * consensus + beta * (negative - positive + curvature * V)
        new = _hals(V, linear, H, w, w * H.diagonal() + (a + beta * curvature))
    else:
        top = w * (X @ U) + a * (consensus * q) + beta * negative
        bottom = w * (V @ H) + a * (V * (q * q)) + beta * positive
        usable = bottom > torch.finfo(V.dtype).tiny
        new = torch.where(usable, V * top / torch.where(usable, bottom, 1), V)
    new = new if out is None else out.copy_(new)
    return new, plain_sums(X, new, consensus, sum_weight)


def plain_sums(X: Tensor, V: Tensor, consensus: Tensor, sum_weight: Tensor) -> Sums:
    """`equations.sums_over_rows`."""
    WV = sum_weight[:, None] * V
    return Sums((WV.T @ X).T, V.T @ WV, (V * consensus).sum(dim=0), (V * V).sum(dim=0))


def _hals(V: Tensor, linear: Tensor, H: Tensor, w: Tensor, quadratic: Tensor) -> Tensor:
    """`SimplexHALS.update_V` with V H kept up to date."""
    V, fitted = V.clone(), V @ H
    movable = quadratic > 0
    scale = torch.where(movable, quadratic, 1)
    for _ in range(SWEEPS):
        for k in range(V.shape[1]):
            target = linear[:, k] - w[:, 0] * (fitted[:, k] - V[:, k] * H[k, k])
            new = torch.where(movable[:, k], (target / scale[:, k]).clamp(min=0), V[:, k])
            fitted += (new - V[:, k])[:, None] * H[k]
            V[:, k] = new
    return V


def plain_graph(A: Tensor, degrees: Tensor, V: Tensor, out: Tensor) -> Tensor:
    """A V into ``out`` and Tr(VᵀLV), for a sparse CSR tensor A with these row sums (N,)."""
    torch.mm(A, V, out=out)
    return (V * (degrees[:, None] * V - out)).sum(dtype=torch.float64)
