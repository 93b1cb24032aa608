# mypy: ignore-errors
"""Entries of L Rᵀ that are at most a limit of their row, on CUDA cards with Triton.

The product never reaches memory: of a tile, only the few entries below their row's limit are written,
each to the next free place of its row.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

#: Rows and columns of a tile, depth of a step, tiles side by side, warps and steps under way: measured
#: on Hopper with rows of 128 to 1024 numbers, where four times as large a tile takes a third longer.
ROWS, COLUMNS, DEPTH, BESIDE, WARPS, STAGES = 128, 128, 64, 16, 8, 3

#: If an entry is at most its limit: count it, and write its column and value where there is room. One
#: branch that most entries do not take; as operations on the whole tile it is seven times the work.
KEEP = tl.constexpr(
    """{
    .reg .pred p;
    .reg .u32 place;
    .reg .u64 at;
    mov.u32 $0, 0;
    setp.le.f32 p, $1, $2;
    @!p bra NO;
    mad.wide.u32 at, $3, 4, $5;
    atom.relaxed.gpu.global.add.u32 place, [at], 1;
    setp.lt.u32 p, place, $8;
    @!p bra NO;
    mad.lo.u32 place, $3, $8, place;
    mad.wide.u32 at, place, 4, $6;
    st.global.b32 [at], $4;
    mad.wide.u32 at, place, 4, $7;
    st.global.f32 [at], $1;
    NO:
    }"""
)


@triton.jit(do_not_specialize=["n_left", "n_right", "room"])  # compiled once for all sizes
def _kernel(
    L, R, limits, counts, columns, values, n_left, n_right, room, D,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, BESIDE: tl.constexpr,
):  # fmt: skip
    tile, across = tl.program_id(0), tl.cdiv(n_right, COLUMNS)
    first = tile // (BESIDE * across) * BESIDE
    beside = tl.minimum(tl.cdiv(n_left, ROWS) - first, BESIDE)
    rest = tile % (BESIDE * across)
    i = (first + rest % beside) * ROWS + tl.arange(0, ROWS)
    j = rest // beside * COLUMNS + tl.arange(0, COLUMNS)
    d = tl.arange(0, DEPTH)
    left = L + (i % n_left).to(tl.int64)[:, None] * D + d[None, :]
    right = R + (j % n_right).to(tl.int64)[None, :] * D + d[:, None]
    products = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for _ in range(0, D, DEPTH):
        products = tl.dot(tl.load(left), tl.load(right), products)
        left += DEPTH
        right += DEPTH
    limit = tl.load(limits + i, mask=i < n_left, other=-float("inf"))
    limit = tl.where((j < n_right)[None, :], limit[:, None], -float("inf"))
    tl.inline_asm_elementwise(
        KEEP, "=r,f,f,r,r,l,l,l,r",
        [products, limit, i[:, None], j[None, :],
         counts.to(tl.uint64), columns.to(tl.uint64), values.to(tl.uint64), room],
        dtype=tl.int32, is_pure=False, pack=1,
    )  # fmt: skip


def entries_within(
    L: torch.Tensor, R: torch.Tensor, limits: torch.Tensor, room: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """`limits.entries_within` without the products in memory; rows come in any order of columns."""
    n_left, D = L.shape
    counts = torch.zeros(n_left, dtype=torch.int32, device=L.device)
    columns = torch.zeros((n_left, room), dtype=torch.int32, device=L.device)
    values = torch.full((n_left, room), torch.inf, device=L.device)
    tiles = triton.cdiv(n_left, ROWS) * triton.cdiv(len(R), COLUMNS)
    cut = {"ROWS": ROWS, "COLUMNS": COLUMNS, "DEPTH": DEPTH, "BESIDE": BESIDE}
    how = {"num_warps": WARPS, "num_stages": STAGES}
    given = (L, R, limits, counts, columns, values, n_left, len(R), room, D)
    _kernel[(tiles,)](*given, **cut, **how)
    return counts, columns, values
