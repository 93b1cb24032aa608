"""Distances between the rows of a view on a device; neighbours by looking at all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._types import Array
from .engines.arrays import on_host
from .engines.device_graph import EXTRA, DeviceGraph, smallest_products
from .geometry import Geometry

#: Entries gathered at a time for distances of pairs.
GATHERED = 2**27


class TorchGeometry(Geometry):
    """A `Geometry` whose rows are a tensor; who is present stays known to the host."""

    def __init__(self, Z: torch.Tensor, present: Array, unit_rows: bool = False):
        super().__init__(Z, present, unit_rows)
        self.device = Z.device
        self.here = torch.as_tensor(self.comparable, device=Z.device)

    def pairs(self, i: Any, j: Any) -> Any:
        """d of the pairs (i, j); 1 where a member is missing. NumPy in, NumPy out."""
        if isinstance(i, np.ndarray):
            tensors = (torch.as_tensor(x, device=self.device) for x in (i, j))
            return on_host(self.pairs(*tensors)).astype(float)
        d = torch.empty(len(i), dtype=self.Z.dtype, device=self.device)
        step = max(1, GATHERED // max(1, self.n_features))
        for start in range(0, len(i), step):
            a, b = i[start : start + step], j[start : start + step]
            squared = (self.Z[a] - self.Z[b]).square_().sum(1)
            norm = self.root_mu[a] * self.root_mu[b]
            known = (norm > 0) & self.here[a] & self.here[b]
            d[start : start + step] = torch.where(known, squared / norm.clip(1e-30), 1)
        return d

    def nearest(self, k: int) -> tuple[Array, Any, Any]:
        """The k nearest rows of every comparable row: (rows, indices, d), nearest first."""
        rows = np.flatnonzero(self.comparable)
        k = min(k, len(rows) - 1)
        if k < 1:
            return rows[:0], self.Z.new_empty((0, 1)).long(), self.Z.new_empty((0, 1))
        chosen = torch.as_tensor(rows, device=self.device)
        Z, root_mu = (
            (self.Z, self.root_mu)
            if len(rows) == self.n_samples
            else (
                self.Z[chosen],
                self.root_mu[chosen],
            )
        )
        left, right = self._side(Z, root_mu, left=True), self._side(Z, root_mu, left=False)
        near = _near(left, right, k)
        return rows, *ordered([self], np.ones(1), chosen, chosen[near], k)


def fused_nearest(views: list[TorchGeometry], alpha: Array, k: int) -> tuple[Any, Any]:
    """The k nearest rows of every row under F = Σ α_s d^s, nearest first.

    F is one product: the sides of all views next to each other, and for views that miss rows
    α(1 − c_i c_j), c telling who is there.
    """
    lefts, rights = [], []
    for a, view in zip(alpha, views, strict=True):
        if a <= 0:
            continue
        here = view.here.to(view.Z.dtype)[:, None]
        lefts.append(float(a) * view._side(view.Z, view.root_mu, left=True) * here)
        rights.append(view._side(view.Z, view.root_mu, left=False) * here)
        if not view.comparable.all():
            lefts.append(float(a) * torch.cat([torch.ones_like(here), -here], dim=1))
            rights.append(torch.cat([torch.ones_like(here), here], dim=1))
    n = views[0].n_samples
    k = min(k, n - 1)
    near = _near(torch.cat(lefts, dim=1), torch.cat(rights, dim=1), k)
    everyone = torch.arange(n, device=views[0].device)
    return ordered(views, alpha, everyone, near, k)


def _near(left: torch.Tensor, right: torch.Tensor, k: int) -> torch.Tensor:
    n = len(left)
    k = min(k + EXTRA, n - 1)
    sides = (lambda b: left[b]), (lambda b: right[b])
    return smallest_products(*sides, n, n, k, skip_self=True)[0]


def ordered(
    views: list[TorchGeometry], alpha: Array, rows: torch.Tensor, near: torch.Tensor, k: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The best k of the rows' candidates by their exact distances."""
    i, j = rows.repeat_interleave(near.shape[1]), near.reshape(-1)
    d: Any = sum(float(a) * v.pairs(i, j) for a, v in zip(alpha, views, strict=True) if a > 0)
    d, order = d.reshape(near.shape).sort(dim=1, stable=True)
    return near.gather(1, order)[:, :k], d[:, :k]


def row_contrasts(views: list[TorchGeometry], graphs: list[DeviceGraph]) -> Array:
    """`agreement.row_contrasts` from both halves of symmetric graphs."""
    n_views, n = len(views), views[0].n_samples
    rows = np.full((n_views, n_views, n), np.nan)
    for t, graph in enumerate(graphs):
        i, j, weight = graph.edges()
        for s, view in enumerate(views):
            if s != t and len(i):
                known = weight * (view.here[i] & view.here[j])
                total = graph.row_sums(known)
                distance = graph.row_sums(known * view.pairs(i, j))
                contrast = torch.where(total > 0, 1 - distance / total, torch.nan)
                rows[s, t] = on_host(contrast)
    return rows


def to_host(view: TorchGeometry) -> Geometry:
    """The same for the host, nothing computed again."""
    host = Geometry.__new__(Geometry)
    for name in ("present", "comparable", "unit_rows", "n_samples", "n_features"):
        setattr(host, name, getattr(view, name))
    host.observed = None
    host.Z, host.sq, host.root_mu = (on_host(x) for x in (view.Z, view.sq, view.root_mu))
    host._moments_ = tuple(on_host(part) for part in view._moments_)  # type: ignore[assignment]
    return host
