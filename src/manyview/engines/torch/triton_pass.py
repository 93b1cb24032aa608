"""The pass over a view from one read of X, on CUDA cards with Triton; plain PyTorch where it cannot.

Import it through `fused.fused`, which says whether it can be used at all.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from manyview._types import Sums

from .fused import plain_pass
from .triton_kernels import pass_kernel

WARPS = 8
#: "tf32x3" is as accurate as float32; "tf32" keeps 11 bits of every factor; "ieee" is plain PyTorch.
PRECISIONS = ("ieee", "tf32x3", "tf32")
#: Entries of X from which a compilation pays.
WORTH_COMPILING = 10**7
#: Numbers of A V a program of the graph kernel computes.
GRAPH_BLOCK = 1024


class Plan(NamedTuple):
    """How a pass is cut up; see `triton_kernels.pass_kernel`."""

    R: int
    C: int
    Q: int
    S: int
    KA: int
    KB: int
    KP: int


@cache
def plan(M: int, K: int, shared_memory: int, hals: bool = False) -> Plan | None:
    """The cut for M features and K components, or None where U and XᵀWV have no room on the chip."""
    if not 1 <= K <= 64:
        return None
    KP = 16 if K <= 16 else 32 if K <= 32 else 64
    KA, KB = (KP // 2, KP // 4) if KP > 16 and K <= 3 * KP // 4 else (KP, 0)
    C = 16 if M <= 16 * WARPS else 32
    Q = -(-M // (C * WARPS))
    R = 16 if Q > 2 or KP == 64 else 32 if Q == 2 or KP == 32 else 64
    kept = Q * (KA + KB) * C * WARPS + WARPS * R * KA * (2 if KB else 1) + KP * (4 * R + KP)
    kept += KP * KP if hals else 0
    S = min((shared_memory // 4 - kept) // (WARPS * R * C), Q + 3)
    registers = Q * (KA + KB) * C // 32
    return Plan(R, C, Q, S, KA, KB, KP) if S >= Q and registers <= 128 else None


def _plan_on(M: int, K: int, device: torch.device, hals: bool = False) -> Plan | None:
    card = torch.cuda.get_device_properties(device)
    return plan(M, K, card.shared_memory_per_block_optin, hals) if card.major >= 8 else None


def worthwhile(
    N: int, M: int, K: int, dtype: torch.dtype, device: torch.device, hals: bool = False
) -> bool:
    """Whether to read X once rather than call plain PyTorch.

    Measured on Hopper, where it is faster wherever a plan fits; smaller views are not worth the second
    or two of the first compilation.
    """
    if device.type != "cuda" or dtype != torch.float32 or N * M < WORTH_COMPILING:
        return False
    hopper = torch.cuda.get_device_properties(device).major == 9
    return hopper and _plan_on(M, K, device, hals) is not None


def fused_pass(
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
    precision: str = "tf32x3",
    out: torch.Tensor | None = None,
) -> tuple[torch.Tensor, Sums]:
    """`fused.plain_pass` reading X once: V after the step, and its sums over rows in float64.

    No atomics, sums in a fixed order: the same input gives the same bits. Float32 and contiguous;
    ``negative``, ``positive`` and ``curvature`` may be numbers or anything that broadcasts to V.
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}; got {precision!r}")
    N, M = X.shape
    K = V.shape[1]
    out = torch.empty_like(V) if out is None else out
    cut = _plan_on(M, K, X.device, solver == "hals")
    if N == 0 or cut is None or precision == "ieee" or X.dtype != torch.float32:
        rest = (consensus, fit_weight, sum_weight, a, beta, negative, positive, curvature)
        new, found = plain_pass(X, U, V, H, q, *rest, times_V=times_V, solver=solver, out=out)
        sums: Any = found
        return new, Sums(*(part.double() for part in sums))
    programs = min(torch.cuda.get_device_properties(X.device).multi_processor_count, -(-N // cut.R))
    parts = torch.empty((programs, (M + K + 2) * K), dtype=X.dtype, device=X.device)
    align = 4 if M % 4 == 0 and X.data_ptr() % 16 == 0 else 1
    given = (X, U, V, H, q, consensus, fit_weight, sum_weight)
    hals = solver == "hals"
    pass_kernel[(programs,)](
        *(part.contiguous() for part in given),
        *_term(negative, V), *_term(positive, V), *_term(curvature if hals else negative, V),
        out, parts, float(a), float(beta), N, M // align, K,
        ALIGN=align, TIMES_V=times_V, HALS=hals, X3=precision == "tf32x3",
        **cut._asdict(), num_warps=WARPS,
    )  # fmt: skip
    total = parts.sum(dim=0, dtype=torch.float64).view(M + K + 2, K)
    return out, Sums(total[:M], total[M : M + K], total[M + K], total[M + K + 1])


def _term(part: Any, V: torch.Tensor) -> tuple[torch.Tensor, int, int]:
    """A part of the regulariser with the strides that broadcast it to V."""
    # new_full rather than as_tensor for numbers: nothing is copied from the host.
    part = part.to(V.dtype) if isinstance(part, torch.Tensor) else V.new_full((), part)
    whole = part.expand(V.shape)
    return whole, whole.stride(0), whole.stride(1)


@triton.jit
def _graph_kernel(  # type: ignore[no-untyped-def]
    INDPTR, INDICES, DATA, DEGREES, V, OUT, PARTS, N, K: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """BLOCK consecutive numbers of A V, and their share of Tr(VᵀLV)."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row, k = at // K, at % K
    inside = row < N
    start = tl.load(INDPTR + row, inside, other=0)
    degree = tl.load(INDPTR + row + 1, inside, other=0) - start
    total = tl.zeros([BLOCK], tl.float32)
    for e in range(tl.max(degree, 0)):
        more = e < degree
        column = tl.load(INDICES + start + e, more, other=0).to(tl.int64)
        weight = tl.load(DATA + start + e, more, other=0.0)
        total += weight * tl.load(V + column * K + k, more, other=0.0)
    v = tl.load(V + at, inside, other=0.0)
    own = tl.load(DEGREES + row, inside, other=0.0) * v
    tl.store(OUT + at, total, inside)
    tl.store(PARTS + tl.program_id(0), tl.sum(v * (own - total), 0))


def graph_product(
    indptr: torch.Tensor,
    indices: torch.Tensor,
    data: torch.Tensor,
    degrees: torch.Tensor,
    V: torch.Tensor,
    out: torch.Tensor,
) -> torch.Tensor:
    """A V into ``out``, and Tr(VᵀLV) as a tensor, for CSR arrays (int32) and row sums (N,)."""
    N, K = V.shape
    programs = triton.cdiv(N * K, GRAPH_BLOCK)
    parts = torch.empty(programs, dtype=torch.float32, device=V.device)
    if programs:
        args = (indptr, indices, data, degrees, V, out, parts, N)
        _graph_kernel[(programs,)](*args, K=K, BLOCK=GRAPH_BLOCK, num_warps=4)
    return parts.sum(dtype=torch.float64)
