"""Sparse symmetric graphs on a device.

Everything is added in an order that sorting fixes: two runs give the same bits.
"""

from __future__ import annotations

import warnings
from typing import Any

import scipy.sparse as sp
import torch

from manyview._arrays import on_host
from manyview._types import Array
from manyview.maths.agreement import contrasts


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

    def components(self) -> tuple[int, Array]:
        """How many connected components there are, and which of them every row belongs to.

        Every row points to the smallest row it knows to be linked; rows and those they point to take
        over what their neighbors point to, which halves the way to the smallest each time.
        """
        i, j, _ = self.edges()
        root = torch.arange(self.shape[0], device=self.values.device)
        while True:
            above = root[root]
            near = above.scatter_reduce(0, i, above[j], "amin")
            lower = root.scatter_reduce(0, root, near, "amin")
            lower = torch.minimum(torch.minimum(lower, near), above)
            if torch.equal(lower, root):
                break
            root = lower
        smallest, part = torch.unique(root, return_inverse=True)
        return len(smallest), on_host(part)

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

    def random_block(self, n_columns: int, seed: int) -> torch.Tensor:
        """Random vectors, the same for the same seed on the same kind of device."""
        generator = torch.Generator(self.values.device).manual_seed(seed)
        how = {"dtype": self.values.dtype, "device": self.values.device}
        return torch.randn((self.shape[0], n_columns), generator=generator, **how)

    def contrast(self, view: Any) -> Array:
        """1 − (mean d of a view from i to its neighbors here) of every row; NaN where unknown."""
        i, j, weight = self.edges()
        known = weight * (view.here[i] & view.here[j])
        distance = self.row_sums(known * view.pairs(i, j))
        return on_host(contrasts(distance, self.row_sums(known)))

    def mean_distance(self, view: Any) -> float | None:
        """Mean d of a view over the edges, by their weights; None without an edge."""
        i, j, weights = self.edges()
        if len(i) == 0:
            return None
        return float((weights * view.pairs(i, j)).sum() / weights.sum())

    def to_scipy(self) -> sp.csr_array:
        # As narrow as SciPy would make them, before they travel.
        narrow = torch.int32 if len(self.values) < 2**31 else torch.int64
        places = (part.to(narrow) for part in (self.columns, self.starts))
        parts = [on_host(part) for part in (self.values, *places)]
        return sp.csr_array(tuple(parts), shape=self.shape)


def csr(
    starts: torch.Tensor, columns: torch.Tensor, values: torch.Tensor, shape: tuple[int, int]
) -> torch.Tensor:
    """PyTorch's own CSR tensor, without its announcement that these are a beta feature."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        given = {"size": shape, "check_invariants": False}
        return torch.sparse_csr_tensor(starts.int(), columns.int(), values, **given)


def symmetric(rows: Array, indices: torch.Tensor, weights: torch.Tensor, n: int) -> DeviceGraph:
    """(A + Aᵀ)/2 of neighbor lists."""
    i = torch.as_tensor(rows, device=indices.device).repeat_interleave(indices.shape[1])
    j, half = indices.reshape(-1), weights.reshape(-1)
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
