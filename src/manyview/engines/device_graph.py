"""Sparse symmetric graphs on a device, and the neighbours they are made of.

Everything is added in an order that sorting fixes: two runs give the same bits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from .threads import blocks

#: Entries of a temporary block of distances.
BLOCK = 2**29
#: Neighbours by products of rounded numbers, beyond those wanted; exact distances choose among them.
EXTRA = 4
#: Columns whose smallest entry stands for them when the smallest of many are looked for.
GROUP = 64


class DeviceGraph:
    """A square CSR matrix as three tensors: where rows start, columns, values."""

    def __init__(self, starts: torch.Tensor, columns: torch.Tensor, values: torch.Tensor):
        self.starts, self.columns, self.values = starts, columns, values
        self.shape = (len(starts) - 1, len(starts) - 1)
        self.dtype = values.dtype
        self._matrix: torch.Tensor | None = None

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

    def with_values(self, values: torch.Tensor) -> DeviceGraph:
        return DeviceGraph(self.starts, self.columns, values)

    def double(self) -> DeviceGraph:
        return self.with_values(self.values.double())

    def row_sums(self, values: torch.Tensor | None = None) -> torch.Tensor:
        """Sums over the entries of every row, of these values or its own."""
        values = self.values if values is None else values
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


def smallest_products(
    left: Callable[[slice], torch.Tensor],
    right: Callable[[slice], torch.Tensor],
    n_left: int,
    n_right: int,
    k: int,
    skip_self: bool,
    width: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Columns and values of the k smallest entries in every row of L Rᵀ, smallest first.

    ``left`` and ``right`` give rows of L and R on the device; ``width`` is how many rows of R may
    be there at once (all, if not given).
    """
    width = n_right if width is None else width
    step = max(1, min(n_left, BLOCK // min(width, n_right)))
    whole = right(slice(0, n_right)) if width >= n_right else None
    found = []
    for b in blocks(slice(0, n_left), step):
        L = left(b)
        best: tuple[torch.Tensor, torch.Tensor] | None = None
        for c in blocks(slice(0, n_right), width):
            d = L @ (right(c) if whole is None else whole).T
            if skip_self:
                last = max(c.start, min(b.stop, c.stop))
                inside = torch.arange(min(max(b.start, c.start), last), last, device=d.device)
                d[inside - b.start, inside - c.start] = torch.inf
            values, columns = _smallest(d, min(k, d.shape[1]))
            columns = columns + c.start
            if best is not None:
                values, columns = torch.cat([best[0], values], 1), torch.cat([best[1], columns], 1)
                values, order = values.topk(min(k, values.shape[1]), largest=False)
                columns = columns.gather(1, order)
            best = values, columns
        assert best is not None
        found.append(best)
    return torch.cat([columns for _, columns in found]), torch.cat([v for v, _ in found])


def nearest_rows(X: Any, k: int, queries: Any = None) -> tuple[torch.Tensor, torch.Tensor]:
    """Indices and squared Euclidean distances (each N×k) of the nearest rows of X.

    X is a tensor, or a view that gives dense rows on its device (``dense``).
    """
    rows = X.dense if hasattr(X, "dense") else X.__getitem__
    asking = rows if queries is None else queries.__getitem__
    n_left = (X if queries is None else queries).shape[0]

    def left(b: slice) -> torch.Tensor:
        x = asking(b)
        return torch.hstack([-2 * x, torch.ones_like(x[:, :1])])

    def right(c: slice) -> torch.Tensor:
        x = rows(c)
        return torch.hstack([x, (x * x).sum(1, keepdim=True)])

    n = X.shape[0]
    k = min(k, n - (queries is None))
    wide = min(k + EXTRA, n - (queries is None))
    width = None if getattr(X, "resident", True) else max(1, BLOCK // 4 // X.shape[1])
    near, products = smallest_products(left, right, n_left, n, wide, queries is None, width)
    whole = getattr(X, "X", X)
    if not getattr(X, "resident", True) or getattr(X, "sparse", False):
        own = torch.cat([(left(b)[:, :-1] ** 2).sum(1) / 4 for b in blocks(slice(0, n_left), 4096)])
        return near[:, :k], (products + own[:, None]).clip(0)[:, :k]
    mine = whole if queries is None else queries
    squared = torch.empty(near.shape, dtype=mine.dtype, device=mine.device)
    for b in blocks(slice(0, n_left), max(1, BLOCK // 4 // (wide * X.shape[1]))):
        squared[b] = ((whole[near[b]] - mine[b][:, None]) ** 2).sum(2)
    squared, order = squared.sort(dim=1, stable=True)
    return near.gather(1, order)[:, :k], squared[:, :k]


def mean_distance(X: Any, n_rows: int) -> float:
    """Mean Euclidean distance of evenly spread rows to all rows, themselves included."""
    n, rows = X.shape[0], X.dense if hasattr(X, "dense") else X.__getitem__
    places = np.linspace(0, n - 1, n_rows).astype(int)
    chosen = torch.cat([rows(slice(i, i + 1)) for i in places]) if n_rows < n else rows(slice(0, n))
    step = max(1, BLOCK // 8 // n_rows)
    parts = [torch.cdist(chosen, rows(b)).double().sum() for b in blocks(slice(0, n), step)]
    return float(sum(parts)) / (n_rows * n)


def row_lengths(X: Any) -> torch.Tensor:
    n, rows = X.shape[0], X.dense if hasattr(X, "dense") else X.__getitem__
    step = max(1, BLOCK // 8 // X.shape[1])
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
