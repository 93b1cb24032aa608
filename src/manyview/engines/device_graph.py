"""Sparse symmetric graphs on a device, and the neighbours they are made of.

Everything is added in an order that sorting fixes: two runs give the same bits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from .threads import blocks

#: Entries of a temporary block of distances, on a GPU and in the memory of the host.
BLOCK, HOST_BLOCK = 2**29, 2**24
#: Relative error of a product of two numbers that tensor cores round to 11 bits.
ROUNDING = 2.0**-10
#: Neighbours by products of rounded numbers, beyond those wanted; exact distances choose among them.
#: Many more where the products are those of tensor cores, which keep 11 bits of every factor.
EXTRA, EXTRA_TF32 = 4, 16
#: Columns whose smallest entry stands for them when the smallest of many are looked for.
GROUP = 64


class DeviceGraph:
    """A square CSR matrix as three tensors: where rows start, columns, values."""

    def __init__(self, starts: torch.Tensor, columns: torch.Tensor, values: torch.Tensor):
        self.starts, self.columns, self.values = starts, columns, values
        self.shape = (len(starts) - 1, len(starts) - 1)
        self.dtype = values.dtype
        self._matrix: torch.Tensor | None = None
        self._arrays: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None

    @classmethod
    def from_edges(
        cls, i: torch.Tensor, j: torch.Tensor, values: torch.Tensor, n: int, reduce: str = "sum"
    ) -> DeviceGraph:
        """Entries (i, j); repeated ones are summed, or the largest ("max") is kept."""
        keys, order = torch.sort(i * n + j, stable=True)
        keys, counts = torch.unique_consecutive(keys, return_counts=True)
        values = values[order]
        merged = torch.segment_reduce(values, reduce, lengths=counts) if len(keys) else values
        return cls._from_keys(keys, merged, n)

    @classmethod
    def _from_keys(cls, keys: torch.Tensor, values: torch.Tensor, n: int) -> DeviceGraph:
        rows = torch.div(keys, n, rounding_mode="floor")
        starts = torch.searchsorted(rows, torch.arange(n + 1, device=keys.device))
        return cls(starts, keys - rows * n, values)

    def edges(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Rows, columns and values of all entries."""
        rows = torch.arange(self.shape[0], device=self.values.device)
        return torch.repeat_interleave(rows, self.starts.diff()), self.columns, self.values

    def arrays(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Row starts, columns and values as kernels want them."""
        if self._arrays is None:
            self._arrays = self.starts.int(), self.columns.int(), self.values.float()
        return self._arrays

    def pattern(self) -> sp.csr_array:
        """Who is linked, for the host."""
        starts, columns = (part.int().cpu().numpy() for part in (self.starts, self.columns))
        return sp.csr_array((np.ones(len(columns), np.int8), columns, starts), shape=self.shape)

    def part(self, rows: Any) -> DeviceGraph:
        """The graph among some of the rows."""
        rows = torch.as_tensor(rows, device=self.values.device)
        place = torch.full((self.shape[0],), -1, device=self.values.device)
        place[rows] = torch.arange(len(rows), device=self.values.device)
        i, j, values = self.edges()
        inside = (place[i] >= 0) & (place[j] >= 0)
        return self.from_edges(place[i[inside]], place[j[inside]], values[inside], len(rows))

    def with_values(self, values: torch.Tensor) -> DeviceGraph:
        return DeviceGraph(self.starts, self.columns, values)

    def double(self) -> DeviceGraph:
        return self.with_values(self.values.double())

    def row_sums(self, values: torch.Tensor | None = None) -> torch.Tensor:
        """Sums over the entries of every row, of these values or its own."""
        values = self.values if values is None else values
        if len(values) == 0:
            return values.new_zeros(self.shape[0])
        return torch.segment_reduce(values, "sum", offsets=self.starts)

    def sum(self, axis: int | None = None) -> torch.Tensor:
        return self.values.sum() if axis is None else self.row_sums()

    def inverse_root_degrees(self) -> torch.Tensor:
        degrees = self.row_sums()
        return torch.where(degrees > 0, degrees, torch.inf) ** -0.5

    def normalized(self) -> DeviceGraph:
        """D^{-1/2} A D^{-1/2}; 0 where a degree is 0."""
        scale = self.inverse_root_degrees()
        i, j, values = self.edges()
        return self.with_values(values * scale[i] * scale[j])

    def __matmul__(self, Y: torch.Tensor) -> torch.Tensor:
        if self._matrix is None or self._matrix.dtype != Y.dtype:
            self._matrix = csr(self.starts, self.columns, self.values.to(Y.dtype), self.shape)
        return self._matrix @ Y

    def __add__(self, other: DeviceGraph) -> DeviceGraph:
        if isinstance(other, int) and other == 0:  # so that sum() works
            return self
        i, j, values = (torch.cat(p) for p in zip(self.edges(), other.edges(), strict=True))
        return DeviceGraph.from_edges(i, j, values, self.shape[0])

    __radd__ = __add__

    def __mul__(self, factor: float) -> DeviceGraph:
        return self.with_values(self.values * float(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> DeviceGraph:
        return self * (1 / float(divisor))

    def placed(self, array: Any) -> torch.Tensor:
        return torch.as_tensor(array, dtype=self.values.dtype, device=self.values.device)

    def to_scipy(self) -> sp.csr_array:
        parts = [t.cpu().numpy() for t in (self.values, self.columns, self.starts)]
        return sp.csr_array(tuple(parts), shape=self.shape)


def csr(
    starts: torch.Tensor, columns: torch.Tensor, values: torch.Tensor, shape: tuple[int, int]
) -> torch.Tensor:
    """PyTorch's own CSR tensor, without its announcement that these are a beta feature."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        given = {"size": shape, "check_invariants": False}
        return torch.sparse_csr_tensor(starts.int(), columns.int(), values, **given)


def symmetric(
    rows: torch.Tensor, indices: torch.Tensor, weights: torch.Tensor, n: int
) -> DeviceGraph:
    """(A + Aᵀ)/2 of neighbour lists."""
    i, j, half = rows.repeat_interleave(indices.shape[1]), indices.reshape(-1), weights.reshape(-1)
    half = half / 2
    return DeviceGraph.from_edges(torch.cat([i, j]), torch.cat([j, i]), torch.cat([half, half]), n)


def united(indices: torch.Tensor, weights: torch.Tensor, mutual: bool) -> DeviceGraph:
    """An edge where either end names the other, with the larger weight; or where both do."""
    n, k = indices.shape
    i, j = torch.arange(n, device=indices.device).repeat_interleave(k), indices.reshape(-1)
    v = weights.reshape(-1)
    i, j, v = (x[v > 0] for x in (i, j, v))
    both = (torch.cat([i, j]), torch.cat([j, i]), torch.cat([v, v]), n)
    graph = DeviceGraph.from_edges(*both, reduce="max")
    if not mutual:
        return graph
    # Entries named twice hold two equal weights: their sum is above their maximum.
    twice = DeviceGraph.from_edges(*both).values > graph.values
    i, j, v = (x[twice] for x in graph.edges())
    return DeviceGraph._from_keys(i * n + j, v, n)


def has_tensor_cores(X: torch.Tensor) -> bool:
    return X.is_cuda and X.dtype == torch.float32


def block_entries(X: torch.Tensor) -> int:
    """Distances to hold at a time: an eighth of the card's free memory at most."""
    if not X.is_cuda:
        return HOST_BLOCK
    return min(BLOCK, torch.cuda.mem_get_info(X.device)[0] // (8 * X.element_size()))


@contextmanager
def tensor_cores(wanted: bool) -> Iterator[None]:
    """TF32 products where wanted, and the user's setting again afterwards."""
    matmul = torch.backends.cuda.matmul
    name, value = (
        ("fp32_precision", "tf32") if hasattr(matmul, "fp32_precision") else ("allow_tf32", True)
    )
    if not wanted:
        yield
        return
    before = getattr(matmul, name)
    setattr(matmul, name, value)
    try:
        yield
    finally:
        setattr(matmul, name, before)


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
    row; its smallest entries are candidates, ``distances(rows, candidates)`` orders them. With tensor
    cores the rounding is coarse: rows whose k-th distance does not lie safely below everything that
    is no candidate are looked for again without. ``own`` is each row's own place on the right.
    """
    probe = left(slice(0, 1))
    coarse, most = has_tensor_cores(probe), n_right - (own is not None)
    k = min(k, most)
    wide = min(k + (EXTRA_TF32 if coarse else EXTRA), most)
    products = SmallestProducts(right, n_right, own, width)
    everyone = torch.arange(n_left, device=probe.device)
    near, values, lengths = products.find(left, n_left, everyone, wide, coarse)
    d, order = distances(everyone, near).sort(dim=1, stable=True)
    near = near.gather(1, order)
    if coarse and wide < most:
        constant = (d - values.gather(1, order)).median(1).values  # what the product leaves out
        safe = values.amax(1) + constant - ROUNDING * lengths * products.longest
        doubtful = torch.nonzero(d[:, k - 1] > safe)[:, 0]
        if len(doubtful):
            rows = _rows_of(left, doubtful, n_left)
            again, _, _ = products.find(rows.__getitem__, len(rows), doubtful, wide, False)
            exact, order = distances(doubtful, again).sort(dim=1, stable=True)
            near[doubtful], d[doubtful] = again.gather(1, order), exact
    return near[:, :k], d[:, :k]


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
        self, left: Rows, n_left: int, rows: torch.Tensor, k: int, coarse: bool
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Columns and values of the k smallest entries per row, and the lengths of the rows of L."""
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
                with tensor_cores(coarse):
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


def _merged(best: list[torch.Tensor], more: list[torch.Tensor], k: int) -> list[torch.Tensor]:
    """The k smallest of two lists per row."""
    if not best:
        return more
    values, columns = (torch.cat(pair, 1) for pair in zip(best, more, strict=True))
    values, order = values.topk(min(k, values.shape[1]), largest=False)
    return [values, columns.gather(1, order)]


def nearest_rows(X: Any, k: int, queries: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Indices and squared Euclidean distances (each N×k) of the nearest rows of X.

    X is a tensor, or a view that gives dense rows on its device (``dense``).
    """
    rows = X.dense if hasattr(X, "dense") else X.__getitem__
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
        squared = torch.empty(near.shape, dtype=origin.dtype, device=origin.device)
        step = max(1, block_entries(origin) // 4 // max(1, near.shape[1] * X.shape[1]))
        for b in blocks(slice(0, len(i)), step):
            mine = _gathered(X if queries is None else queries, i[b])
            squared[b] = (_gathered(X, near[b]) - mine[:, None]).square_().sum(2)
        return squared

    resident = getattr(X, "resident", True) and not getattr(X, "sparse", False)
    width = None if resident else max(1, block_entries(origin) // 4 // X.shape[1])
    own = torch.arange(n, device=origin.device) if queries is None else None
    return nearest_by_products(left, right, distances, n_left, n, k, own, width)


def _gathered(X: Any, rows: torch.Tensor) -> torch.Tensor:
    """Dense rows of X in the shape of ``rows``, on its device."""
    if not hasattr(X, "dense"):
        return X[rows]
    return X.gathered(rows.reshape(-1)).reshape(*rows.shape, -1)


def mean_distance(X: Any, n_rows: int) -> float:
    """Mean Euclidean distance of evenly spread rows to all rows, themselves included."""
    n, rows = X.shape[0], X.dense if hasattr(X, "dense") else X.__getitem__
    places = np.linspace(0, n - 1, n_rows).astype(int)
    chosen = torch.cat([rows(slice(i, i + 1)) for i in places]) if n_rows < n else rows(slice(0, n))
    step = max(1, block_entries(chosen) // 8 // n_rows)
    parts = [torch.cdist(chosen, rows(b)).double().sum() for b in blocks(slice(0, n), step)]
    return float(sum(parts)) / (n_rows * n)


def row_lengths(X: Any) -> torch.Tensor:
    n, rows = X.shape[0], X.dense if hasattr(X, "dense") else X.__getitem__
    step = max(1, block_entries(rows(slice(0, 1))) // 8 // X.shape[1])
    return torch.cat([(rows(b) ** 2).sum(1) ** 0.5 for b in blocks(slice(0, n), step)])


def _smallest(d: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Values and columns of the k smallest entries per row.

    Of many columns, only the k groups with the smallest members can hold them: one look at
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


def kmeans(
    X: torch.Tensor,
    n_clusters: int,
    rng: np.random.Generator,
    n_init: int,
    sample: int,
    max_iter: int = 300,
) -> torch.Tensor:
    """Lloyd's iterations from ``n_init`` k-means++ starts at once, tried on a sample of many rows."""
    tried = X
    if len(X) > sample:
        chosen = np.sort(rng.choice(len(X), sample, replace=False))
        tried = X[torch.as_tensor(chosen, device=X.device)]
    centres = _plus_plus(tried, n_clusters, rng, n_init)
    centres, inertia = _lloyd(tried, centres, max_iter)
    best = centres[inertia.argmin()][None]
    if tried is not X:
        best, _ = _lloyd(X, best, max_iter)
    return _squared(X, best)[0].argmin(1)


def _squared(X: torch.Tensor, centres: torch.Tensor) -> torch.Tensor:
    """Squared distances, starts × rows × clusters, without ‖x‖², which changes no choice."""
    starts, K, dim = centres.shape
    products = X @ centres.reshape(starts * K, dim).T
    squares = (centres**2).sum(2).reshape(-1)
    return (squares - 2 * products).reshape(len(X), starts, K).movedim(1, 0)


def _plus_plus(
    X: torch.Tensor, n_clusters: int, rng: np.random.Generator, n_init: int
) -> torch.Tensor:
    """Starts whose centres are rows drawn far from those drawn before (n_init × K × dim)."""
    first = torch.as_tensor(rng.integers(len(X), size=n_init), device=X.device)
    centres, norms = X[first][:, None], (X**2).sum(1)
    while centres.shape[1] < n_clusters:
        d = (_squared(X, centres).amin(2) + norms).clip(0).double()  # n_init × rows
        total = d.cumsum(1)
        draw = torch.as_tensor(rng.random(n_init), device=X.device)[:, None] * total[:, -1:]
        drawn = torch.searchsorted(total, draw).clip(max=len(X) - 1)[:, 0]
        centres = torch.cat([centres, X[drawn][:, None]], dim=1)
    return centres


def _lloyd(
    X: torch.Tensor, centres: torch.Tensor, max_iter: int
) -> tuple[torch.Tensor, torch.Tensor]:
    n_clusters = centres.shape[1]
    spread, norms = float(X.var(0).mean()), (X**2).sum()
    for done in range(max_iter):
        d = _squared(X, centres)
        members = torch.nn.functional.one_hot(d.argmin(2), n_clusters).to(X.dtype)
        sizes = members.sum(1)[:, :, None]
        moved = torch.where(sizes > 0, members.transpose(1, 2) @ X / sizes.clip(1), centres)
        shift = ((moved - centres) ** 2).sum((1, 2)).amax()
        centres = moved
        # Looked at now and then only: the answer has to come from the device.
        if done % 8 == 7 and float(shift) <= 1e-4 * spread:
            break
    return centres, _squared(X, centres).amin(2).double().sum(1) + norms
