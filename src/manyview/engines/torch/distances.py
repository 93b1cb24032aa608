"""Distances between the rows of a view on a device; neighbors by looking at all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from manyview._arrays import on_host
from manyview._types import Array, Matrix
from manyview.engines.numpy.distances import Geometry
from manyview.engines.numpy.neighbors import masses
from manyview.engines.numpy.repeats import crowds_of
from manyview.engines.protocols import Lists
from manyview.engines.threads import Threads, blocks

from .device import put, torch_dtype
from .neighbors import GATHERED, nearest_by_products, squared_gaps
from .rows import TorchView


class TorchGeometry(Geometry):
    """A `Geometry` whose rows are a tensor; who is present stays known to the host."""

    def __init__(
        self, Z: torch.Tensor, present: Array, unit_rows: bool = False, mass: Array | None = None
    ):
        super().__init__(Z, present, unit_rows, mass)
        self.device = Z.device
        self.here = torch.as_tensor(self.comparable, device=Z.device)

    def distinct(self, first: Array, mass: Array | None) -> Geometry:
        new: Any = super().distinct(first, mass)
        new.here = torch.as_tensor(new.comparable, device=self.device)
        return new

    def nearest(self, k: int, seed: int = 0, threads: Threads | None = None) -> Lists:
        """The k nearest rows of every comparable row."""
        rows = np.flatnonzero(self.comparable)
        k = min(k, len(rows) - 1)
        if k < 1:
            none = self.Z.new_empty((0, 1))
            return Lists(rows[:0], none.long(), none)
        crowds = crowds_of(self, rows, k)
        chosen = torch.as_tensor(rows, device=self.device)
        near = torch.empty((len(rows), k), dtype=torch.long, device=self.device)
        d = torch.zeros((len(rows), k), dtype=self.Z.dtype, device=self.device)
        alone = np.ones(len(rows), dtype=bool)
        if crowds is not None:
            places = np.searchsorted(rows, crowds.rows)
            alone[places] = False
            listed = torch.as_tensor(crowds.near, device=self.device)
            near[torch.as_tensor(places, device=self.device)] = listed
        if alone.any():
            whole = len(rows) == self.n_samples
            left, right = (side if whole else side[chosen] for side in self.sides())
            own = torch.as_tensor(np.flatnonzero(alone), device=self.device)
            left = left if alone.all() else left[own]
            found, d[own] = _nearest([self], np.ones(1), left, right, chosen, k, own)
            near[own] = chosen[found]
        return Lists(rows, near, d, masses(self, rows, near, crowds))

    def fused_nearest(
        self,
        views: list[Any],
        weights: Array,
        k: int,
        seed: int,
        threads: Threads | None = None,
    ) -> tuple[Any, Any]:
        """The k nearest rows of every row under F = Σ α_s d^s, nearest first.

        F is one product: the sides of all views next to each other, and for views that miss rows
        α(1 − c_i c_j), c telling who is there.
        """
        lefts, rights = [], []
        for a, view in zip(weights, views, strict=True):
            if a <= 0:
                continue
            here = view.here.to(view.Z.dtype)[:, None]
            left, right = view.sides()
            lefts.append(float(a) * left * here)
            rights.append(right * here)
            if not view.comparable.all():
                lefts.append(float(a) * torch.cat([torch.ones_like(here), -here], dim=1))
                rights.append(torch.cat([torch.ones_like(here), here], dim=1))
        everyone = torch.arange(self.n_samples, device=self.device)
        k = min(k, self.n_samples - 1)
        sides = torch.cat(lefts, dim=1), torch.cat(rights, dim=1)
        return _nearest(views, weights, *sides, everyone, k, everyone)

    def pairs(self, i: Any, j: Any) -> Any:
        """d of the pairs (i, j); 1 where a member is missing. NumPy in, NumPy out."""
        if isinstance(i, np.ndarray):
            tensors = (torch.as_tensor(x, device=self.device) for x in (i, j))
            return on_host(self.pairs(*tensors)).astype(float)
        norm = self.root_mu[i] * self.root_mu[j]
        known = (norm > 0) & self.here[i] & self.here[j]
        return torch.where(known, squared_gaps(self.Z, i, j) / norm.clip(1e-30), 1)

    def sides(self) -> list[torch.Tensor]:
        """What has d as its products. Around the mean, where numbers are small and round well."""
        Z = self.Z - self.Z[self.here].mean(0) if self.here.any() else self.Z
        left, right = (self._side(Z, self.root_mu, left=left) for left in (True, False))
        # Long and short columns made alike: the bound on rounding errors is a product of lengths.
        size = ((Z * Z).sum(1).mean() ** 0.5).clip(1e-30)
        for side, factor in ((left, size), (right, 1 / size)):
            side[:, -2] /= factor
            side[:, -1] *= factor
        return [left, right]

    def unit_sums(self) -> TorchView:
        """The rows with unit L1 norm, as a pass of the factorization reads them."""
        total = abs(self.Z).sum(axis=1, keepdims=True)
        return TorchView(self.Z / torch.where(total > 0, total, 1), self.Z.device)

    def for_model(self, sparse: bool) -> Geometry:
        """The same for the host; sparse where the view came so."""
        return host_parts(self, Geometry, sparse_rows(self.Z) if sparse else on_host(self.Z))


def _nearest(
    views: list[TorchGeometry],
    alpha: Array,
    left: torch.Tensor,
    right: torch.Tensor,
    chosen: torch.Tensor,
    k: int,
    own: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The k nearest among the chosen rows, by exact distances Σ α_s d^s.

    ``right`` is the right side of the chosen rows, ``left`` the left one of those at ``own`` of them.
    """

    def distances(i: torch.Tensor, near: torch.Tensor) -> torch.Tensor:
        pairs = chosen[own[i]].repeat_interleave(near.shape[1]), chosen[near.reshape(-1)]
        each = (float(a) * v.pairs(*pairs) for a, v in zip(alpha, views, strict=True) if a > 0)
        d: Any = sum(each)
        return d.reshape(near.shape)

    sides = left.__getitem__, right.__getitem__
    return nearest_by_products(*sides, distances, len(left), len(right), k, own)


def scaled_tensor(X: torch.Tensor, present: Array, scaling: Any, dtype: np.dtype) -> torch.Tensor:
    """z in the precision of the computation, from float64 block by block; missing rows are zero."""
    Z = torch.empty(X.shape, dtype=torch_dtype(dtype), device=X.device)
    for b in blocks(slice(0, len(X)), max(1, GATHERED // X.shape[1])):
        part = torch.where(torch.as_tensor(present[b], device=X.device)[:, None], X[b].double(), 0)
        Z[b] = scaling.apply(part).to(Z.dtype)
    Z[torch.as_tensor(~present, device=X.device)] = 0
    return Z


def dense_tensor(X: Any, device: Any, dtype: np.dtype) -> torch.Tensor:
    tensor = torch.empty(X.shape, dtype=torch_dtype(dtype), device=device)
    X = X.tocsr()
    for b in blocks(slice(0, X.shape[0]), max(1, GATHERED // X.shape[1])):
        tensor[b] = put(X[b].toarray(), device, dtype)
    return tensor


def host_parts(view: TorchGeometry, kind: type, Z: Matrix) -> Any:
    """A geometry of the host with the rows ``Z`` and what is known of them, nothing computed again."""
    host: Any = object.__new__(kind)
    for name in ("present", "comparable", "unit_rows", "n_samples", "n_features"):
        setattr(host, name, getattr(view, name))
    host.observed, host.Z = None, Z
    host.sq, host.root_mu = on_host(view.sq), on_host(view.root_mu)
    host._moments_ = tuple(on_host(part) for part in view._moments_)
    return host


def sparse_rows(Z: torch.Tensor) -> sp.csr_array:
    step = max(1, GATHERED // Z.shape[1])
    parts = [sp.csr_array(on_host(Z[b])) for b in blocks(slice(0, len(Z)), step)]
    return sp.csr_array(sp.vstack(parts))
