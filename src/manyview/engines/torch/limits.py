"""The smallest entries of every row of L Rᵀ, by limits that samples of the columns give.

The k-th smallest entry among some of the columns is at least the k-th smallest among all. A small
sample is looked at as a whole; its k-th smallest entries limit what of an eight times larger one has to
be kept, and so on up to all columns, of which about 8k entries per row are ever written down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

from manyview.engines.optional import engine_part

#: How many times the columns of a sample there are in the next one.
GROWTH = 8
#: Columns from which limits pay, columns that are looked at as a whole, entries wanted at most.
WORTHWHILE, FEW, MOST_WANTED = 2**15, 2**13, 128
#: The products are those of numbers with 11 bits, as on tensor cores; scaled so that none is too large
#: for 16 bits. Half the bytes of TF32, which keeps as many bits.
LARGEST = 7
#: Columns come in steps of this many numbers: zeros fill the last one.
DEPTH = 64
#: Relative difference of two ways to add up the same products.
ADDING = 2.0**-18

#: Counts, columns and values of the entries of L Rᵀ up to the limits of rows, with room for so many.
Within = Callable[
    [torch.Tensor, torch.Tensor, torch.Tensor, int],
    tuple[torch.Tensor, torch.Tensor, torch.Tensor],
]


class Level(NamedTuple):
    """A sample: its rows of R, which columns these are, and each column's place in it, −1 if none."""

    R: torch.Tensor
    columns: torch.Tensor
    place: torch.Tensor


class Smallest(NamedTuple):
    """Of every row the columns and values of its smallest entries, and whether all are there."""

    columns: torch.Tensor
    values: torch.Tensor
    complete: torch.Tensor


def entries_within(
    L: torch.Tensor, R: torch.Tensor, limits: torch.Tensor, room: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """How many entries of a row of L Rᵀ are at most its limit; columns and values of ``room`` of them.

    Places that stay free have the value ∞ and column 0.
    """
    products = L.float() @ R.float().T
    hit = products <= limits[:, None]
    place = hit.cumsum(1) - 1
    i, j = torch.nonzero(hit & (place < room), as_tuple=True)
    columns = torch.zeros((len(L), room), dtype=torch.int32, device=L.device)
    values = torch.full((len(L), room), torch.inf, device=L.device)
    columns[i, place[i, j]], values[i, place[i, j]] = j.int(), products[i, j]
    return hit.sum(1), columns, values


class LimitedProducts:
    """Finds the k smallest entries of rows of L Rᵀ, all of R at once."""

    def __init__(self, R: torch.Tensor, within: Within = entries_within):
        n, self.within = len(R), within
        rounded, self.factor = halved(R)
        self.longest = rounded.float().norm(dim=1).amax()
        order = torch.randperm(n, generator=torch.Generator().manual_seed(0)).to(R.device)
        everyone = torch.arange(n, device=R.device)
        self.levels = [Level(rounded, everyone, everyone)]
        while len(self.levels[0].R) > FEW:
            columns = order[: len(self.levels[0].R) // GROWTH].sort().values
            place = torch.full((n,), -1, device=R.device)
            place[columns] = torch.arange(len(columns), device=R.device)
            self.levels.insert(0, Level(rounded[columns], columns, place))

    def row_entries(self, k: int) -> int:
        """Numbers that are held for every row of a block."""
        return max(len(self.levels[0].R), 3 * room_for(k))

    def find(self, L: torch.Tensor, k: int, own: torch.Tensor | None) -> Smallest:
        """The k smallest entries of every row but that in its column ``own``."""
        first, *larger = self.levels
        rounded, factor = halved(L)
        margin = ADDING * rounded.float().norm(dim=1) * self.longest
        limit = self._kth(rounded, first, k, own)
        complete = torch.ones(len(L), dtype=torch.bool, device=L.device)
        columns, values = torch.zeros((2, len(L), k), device=L.device)
        for level in larger:
            room = room_for(k)
            counts, columns, values = self.within(rounded, level.R, limit + margin, room)
            columns = level.columns[columns]
            if own is not None:
                values.masked_fill_(columns == own[:, None], torch.inf)
            values, order = values.topk(k, largest=False)
            columns, limit = columns.gather(1, order), values[:, -1]
            complete &= (counts <= room) & limit.isfinite()
            limit = torch.where(limit.isfinite(), limit, -torch.inf)
        return Smallest(columns, values / (factor * self.factor), complete)

    def _kth(self, L: torch.Tensor, level: Level, k: int, own: torch.Tensor | None) -> torch.Tensor:
        products = L.float() @ level.R.float().T
        if own is not None:
            at = level.place[own][:, None]
            value = products.gather(1, at.clip(0)).masked_fill(at >= 0, torch.inf)
            products.scatter_(1, at.clip(0), value)
        return products.topk(k, largest=False).values[:, -1]


def room_for(k: int) -> int:
    """Entries kept of a row: eight times those wanted, and what chance may add."""
    return -(-int(GROWTH * (k + 6 * k**0.5)) // 32) * 32


def halved(X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """X in 16 bits, zeros added to its rows, and the power of two it was multiplied by."""
    exponent = LARGEST - X.abs().amax().clip(1e-30).log2().ceil()
    factor = torch.exp2(exponent)
    n, m = X.shape
    rounded = torch.zeros((n, -(-m // DEPTH) * DEPTH), dtype=torch.float16, device=X.device)
    rounded[:, :m] = X * factor
    return rounded, factor


def limited(R: torch.Tensor, k: int) -> LimitedProducts | None:
    """What finds k smallest entries in the columns of R, where there is a kernel for it and it pays."""
    worth = R.is_cuda and len(R) >= WORTHWHILE and k <= MOST_WANTED
    if not worth or torch.cuda.get_device_properties(R.device).major < 8:
        return None
    try:
        kernel = engine_part("torch", "triton_limits")
    except ModuleNotFoundError:  # no Triton
        return None
    return LimitedProducts(R, kernel.entries_within)
