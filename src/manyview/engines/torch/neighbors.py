"""Nearest rows on a device by looking at all pairs: products in blocks, exact distances of the best."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch

from manyview.engines.numpy.neighbors import equal_share, product_error
from manyview.engines.threads import blocks

from .device import free_memory
from .rows import TorchView

#: Entries of a temporary block of distances, on a GPU and in the memory of the host.
BLOCK, HOST_BLOCK = 2**29, 2**24
#: Neighbors by products of rounded numbers, beyond those wanted; exact distances choose among them.
EXTRA = 4
#: Entries gathered at a time for distances of pairs.
GATHERED = 2**27
#: Columns whose smallest entry stands for them when the smallest of many are looked for.
GROUP = 64


def block_entries(X: torch.Tensor) -> int:
    """Distances to hold at a time: an eighth of the card's free memory at most."""
    if not X.is_cuda:
        return HOST_BLOCK
    return min(BLOCK, free_memory(X.device) // (8 * X.element_size()))


@contextmanager
def exact_products() -> Iterator[None]:
    """No TF32 products, and the user's setting again afterwards."""
    matmul = torch.backends.cuda.matmul
    new = hasattr(matmul, "fp32_precision")
    name: str = "fp32_precision" if new else "allow_tf32"
    before, value = getattr(matmul, name), ("ieee" if new else False)
    setattr(matmul, name, value)
    try:
        yield
    finally:
        setattr(matmul, name, before)


def squared_gaps(Z: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
    """‖z_i − z_j‖² of pairs of rows."""
    squared = torch.empty(len(i), dtype=Z.dtype, device=Z.device)
    for pairs in blocks(slice(0, len(i)), max(1, GATHERED // max(1, Z.shape[1]))):
        squared[pairs] = (Z[i[pairs]] - Z[j[pairs]]).square_().sum(1)
    return squared


Rows = Callable[[slice], torch.Tensor]


def nearest_by_products(
    left: Rows,
    right: Rows,
    distances: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    n_left: int,
    n_right: int,
    k: int,
    own: torch.Tensor | None,
    width: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The k nearest of n_right rows for every row on the left: indices and exact distances.

    L Rᵀ (rows given by ``left`` and ``right``) has the distances but for rounding, and a constant per
    row; its smallest entries are candidates, ``distances(rows, candidates)`` orders them, ties by
    index. Rows whose k-th distance does not lie safely below everything that is no candidate are
    looked for again among all rows that may be as near. ``own`` is each row's own place on the right.
    """
    probe = left(slice(0, 1))
    most = n_right - (own is not None)
    k = min(k, most)
    wide = min(k + EXTRA, most)
    products = SmallestProducts(right, n_right, own, width)
    everyone = torch.arange(n_left, device=probe.device)
    near, values, lengths = products.find(left, n_left, everyone, wide)
    d, share, error = distances(everyone, near), *rounding(probe)
    unsure, slack = everyone[:0], error * lengths * products.longest
    constant = (d - values).median(1).values  # what the product leaves out
    if wide < most:
        kth = d.kthvalue(k, dim=1).values
        beyond = values.amax(1) + constant - slack
        unsure = everyone[torch.nonzero(kth * (1 + share) > beyond)[:, 0]]
    near, d = (part[:, :k].contiguous() for part in in_order(near, d, share))
    # Whatever may be as near as the k-th, up to the rounding of the products.
    limit = d[unsure, k - 1] * (1 + share) - constant[unsure] + slack[unsure]
    for b in blocks(slice(0, len(unsure)), max(1, block_entries(probe) // n_right)):
        rows = unsure[b]
        found = products.within(_rows_of(left, rows, n_left), rows, limit[b])
        again = in_order(found, distances(rows, found), share)
        near[rows], d[rows] = (part[:, :k] for part in again)
    return near, d


def rounding(like: torch.Tensor) -> tuple[float, float]:
    """Which distances are equal (see `ties`), and the error of a product, as shares."""
    name = str(like.dtype).removeprefix("torch.")
    return equal_share(name), 2 * product_error(name, like.shape[1])


def in_order(
    near: torch.Tensor, d: torch.Tensor, share: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Candidates by distance; those whose distances differ by less than a share of them by index."""
    d, order = d.sort(dim=1)
    near = near.gather(1, order)
    apart = ~(d[:, 1:] <= d[:, :-1] * (1 + share))
    level = torch.cat([torch.zeros_like(apart[:, :1]), apart], dim=1).cumsum(1)
    order = near.argsort(dim=1)
    order = order.gather(1, level.gather(1, order).argsort(dim=1, stable=True))
    return near.gather(1, order), d.gather(1, order)


def _rows_of(left: Rows, rows: torch.Tensor, n: int) -> torch.Tensor:
    """Rows of the left side by number, found block by block."""
    found = []
    for b in blocks(slice(0, n), 65536):
        inside = rows[(rows >= b.start) & (rows < b.stop)]
        if len(inside):
            found.append(left(b)[inside - b.start])
    return torch.cat(found)


class SmallestProducts:
    """The smallest entries of every row of L Rᵀ, R given by rows; ``width`` of them fit at once."""

    def __init__(self, right: Rows, n_right: int, own: torch.Tensor | None, width: int | None):
        self.right, self.n, self.own = right, n_right, own
        self.width = n_right if width is None else min(width, n_right)
        self.whole = right(slice(0, n_right)) if self.width == n_right else None
        self.longest = torch.tensor(0.0)

    def find(
        self, left: Rows, n_left: int, rows: torch.Tensor, k: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Columns and values of the k smallest entries per row, and the lengths of the rows of L.

        All products are made, a block of rows and columns at a time.
        """
        probe = left(slice(0, 1))
        room = block_entries(probe)
        step = max(1, min(n_left, room // self.width, room // (2 * max(1, probe.shape[1]))))
        found = []
        for b in blocks(slice(0, n_left), step):
            L = left(b)
            best: list[torch.Tensor] = []
            for c in blocks(slice(0, self.n), self.width):
                R = self.right(c) if self.whole is None else self.whole
                self.longest = torch.maximum(self.longest.to(R.device), R.norm(dim=1).amax())
                with exact_products():
                    d = L @ R.T
                if self.own is not None:
                    at = self.own[rows[b]] - c.start
                    inside = torch.nonzero((at >= 0) & (at < d.shape[1]))[:, 0]
                    d[inside, at[inside]] = torch.inf
                values, columns = _smallest(d, min(k, d.shape[1]))
                best = _merged(best, [values, columns + c.start], k)
            found.append((best[1], best[0], L.norm(dim=1)))
        columns, values, lengths = (torch.cat(part) for part in zip(*found, strict=True))
        return columns, values, lengths

    def within(self, L: torch.Tensor, rows: torch.Tensor, limit: torch.Tensor) -> torch.Tensor:
        """Columns of all entries up to a row's limit, and of more where other rows have more."""
        most = torch.zeros(len(L), dtype=torch.long, device=L.device)
        for c in blocks(slice(0, self.n), self.width):
            R = self.right(c) if self.whole is None else self.whole
            with exact_products():
                most += (limit[:, None] >= L @ R.T).sum(1)
        count = min(int(most.max()), self.n - (self.own is not None))
        return self.find(L.__getitem__, len(L), rows, count)[0]


def _merged(best: list[torch.Tensor], more: list[torch.Tensor], k: int) -> list[torch.Tensor]:
    """The k smallest of two lists per row."""
    if not best:
        return more
    values, columns = (torch.cat(pair, 1) for pair in zip(best, more, strict=True))
    values, order = values.topk(min(k, values.shape[1]), largest=False)
    return [values, columns.gather(1, order)]


def reader(X: torch.Tensor | TorchView) -> Rows:
    """How rows of a tensor, or of a view that keeps them elsewhere, are had on the device."""
    return X.__getitem__ if isinstance(X, torch.Tensor) else X.dense


def nearest_rows(
    X: torch.Tensor | TorchView, k: int, queries: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Indices and squared Euclidean distances (each N×k) of the nearest rows of X.

    Of a view that is not on its device as it is, rows are brought there block by block.
    """
    rows = reader(X)
    asking = rows if queries is None else queries.__getitem__
    n, n_left = X.shape[0], (X if queries is None else queries).shape[0]
    # Distances do not care where the origin is; around the mean, numbers are small and round well.
    some = rows(slice(0, 4096))
    origin = some.mean(0)
    # Columns of like size: the bound on rounding errors is a product of lengths.
    size = ((some - origin).square().sum(1).mean() ** 0.5).clip(1e-30)

    def left(b: slice) -> torch.Tensor:
        x = asking(b) - origin
        return torch.hstack([-2 * x, size * torch.ones_like(x[:, :1])])

    def right(c: slice) -> torch.Tensor:
        x = rows(c) - origin
        return torch.hstack([x, (x * x).sum(1, keepdim=True) / size])

    def distances(i: torch.Tensor, near: torch.Tensor) -> torch.Tensor:
        if isinstance(X, torch.Tensor) and queries is None:
            pairs = i.repeat_interleave(near.shape[1]), near.reshape(-1)
            return squared_gaps(X, *pairs).reshape(near.shape)
        squared = torch.empty(near.shape, dtype=origin.dtype, device=origin.device)
        step = max(1, block_entries(origin) // 4 // max(1, near.shape[1] * X.shape[1]))
        for b in blocks(slice(0, len(i)), step):
            mine = _gathered(X if queries is None else queries, i[b])
            squared[b] = (_gathered(X, near[b]) - mine[:, None]).square_().sum(2)
        return squared

    at_hand = isinstance(X, torch.Tensor) or (X.resident and not X.sparse)
    width = None if at_hand else max(1, block_entries(origin) // 4 // X.shape[1])
    own = torch.arange(n, device=origin.device) if queries is None else None
    return nearest_by_products(left, right, distances, n_left, n, k, own, width)


def _gathered(X: torch.Tensor | TorchView, rows: torch.Tensor) -> torch.Tensor:
    """Dense rows of X in the shape of ``rows``, on its device."""
    if isinstance(X, torch.Tensor):
        return X[rows]
    return X.gathered(rows.reshape(-1)).reshape(*rows.shape, -1)


def mean_distance(X: torch.Tensor | TorchView, n_rows: int) -> float:
    """Mean Euclidean distance of evenly spread rows to all rows, themselves included."""
    n, rows = X.shape[0], reader(X)
    places = np.linspace(0, n - 1, n_rows).astype(int)
    chosen = torch.cat([rows(slice(i, i + 1)) for i in places]) if n_rows < n else rows(slice(0, n))
    step = max(1, block_entries(chosen) // 8 // n_rows)
    parts = [torch.cdist(chosen, rows(b)).double().sum() for b in blocks(slice(0, n), step)]
    return float(sum(parts)) / (n_rows * n)


def row_lengths(X: torch.Tensor | TorchView) -> torch.Tensor:
    n, rows = X.shape[0], reader(X)
    step = max(1, block_entries(rows(slice(0, 1))) // 8 // X.shape[1])
    return torch.cat([(rows(b) ** 2).sum(1) ** 0.5 for b in blocks(slice(0, n), step)])


def _smallest(d: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Values and columns of the k smallest entries per row.

    Of many columns, only the k groups with the smallest members can hold them: one pass over
    everything instead of several.
    """
    rows, n = d.shape
    n_groups = n // GROUP
    if n_groups < 4 * k:
        values, columns = d.topk(k, largest=False)
        return values, columns
    grouped = d[:, : n_groups * GROUP].reshape(rows, n_groups, GROUP)
    chosen = grouped.amin(2).topk(k, largest=False, sorted=False).indices
    inside = torch.arange(GROUP, device=d.device)
    candidates = (chosen[:, :, None] * GROUP + inside).reshape(rows, -1)
    tail = torch.arange(n_groups * GROUP, n, device=d.device).expand(rows, -1)
    candidates = torch.cat([candidates, tail], dim=1)
    values, order = d.gather(1, candidates).topk(k, largest=False)
    return values, candidates.gather(1, order)
