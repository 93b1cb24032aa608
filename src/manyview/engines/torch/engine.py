"""The engine of tensors: views on a device, or in the host's memory where they are too large for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from manyview._arrays import on_host
from manyview._types import Array, Matrix, Views
from manyview._warn import warn_user
from manyview.engines.numpy.engine import HostEngine
from manyview.engines.numpy.presence import check_finite, refuse_holes, unobserved
from manyview.engines.numpy.sources import is_streamed
from manyview.engines.protocols import Engine, Found, Scaling
from manyview.engines.threads import Threads

from .device import choose, fits, precision, put, torch_dtype
from .distances import (
    TorchGeometry,
    dense_tensor,
    fused_nearest,
    refuse_signed,
    scaled_tensor,
)
from .graph import DeviceGraph, symmetric
from .rows import device_views
from .streamed import HostView, StreamedGeometry

#: Copies of the views that half of the card must have room for: at worst there are five, of z, of both
#: sides of its products, and of these next to those of other views.
COPIES = 3


class TorchEngine(HostEngine):
    """An `Engine` of tensors; how features are scaled is told by the host's rules."""

    weighs_rows = False
    tensors = True

    def __init__(self, device: str):
        self.device = device

    def loop_views(
        self,
        views: Views,
        fit: Callable[[Views], list[Found]],
        scaled: Callable[[list[Found]], list[Matrix]],
        asked: npt.DTypeLike | None,
        dtype: np.dtype,
    ) -> tuple[list[Matrix], list[Matrix], list[Found]]:
        refuse_holes(views.matrices, views.names)
        refuse_streamed(views)
        device = choose(self.device, sum(int(np.prod(X.shape)) for X in views.matrices))
        Xs, scalings = device_views(views, fit, device, precision(device, asked, dtype))
        check_finite(Xs, views.names)
        # Unseen rows look for their neighbours on the host.
        return Xs, scaled(scalings), scalings

    def bring(self, views: Views, asked: Any, dtype: np.dtype) -> tuple[Views, np.dtype]:
        return moved(views, self.device, asked, dtype)

    def scaled(self, X: Any, scaling: Scaling | None, present: Array, dtype: np.dtype) -> Matrix:
        if isinstance(X, HostView):
            return X.scaled(scaling, present, dtype)
        return scaled_tensor(X, present, scaling, dtype)

    def distances(self, Z: Any, present: Array, unit_rows: bool) -> TorchGeometry:
        kind = TorchGeometry if isinstance(Z, torch.Tensor) else StreamedGeometry
        return kind(Z, present, unit_rows)

    def fused_nearest(
        self,
        views: list[Any],
        weights: Array,
        k: int,
        neighbors: list[Array],
        seed: int,
        threads: Threads | None,
    ) -> tuple[Any, Any]:
        return fused_nearest(views, weights, k)

    def graph(self, rows: Array, indices: Any, weights: Any, n: int) -> DeviceGraph:
        return symmetric(torch.as_tensor(rows, device=indices.device), indices, weights, n)

    def block_step(self, threads: Threads | None) -> None:
        return None

    def row_contrasts(
        self, views: list[Any], graphs: list[Any], threads: Threads | None = None
    ) -> Array:
        return row_contrasts(views, graphs)

    def mean_distance(self, view: Any, graph: Any) -> float | None:
        i, j, weights = graph.edges()
        if len(i) == 0:
            return None
        return float((weights * view.pairs(i, j)).sum() / weights.sum())

    def beside(self, array: Array, model: Any) -> Any:
        return torch.as_tensor(array, dtype=model.dtype, device=model.device)

    def in_precision(self, array: Any, dtype: np.dtype) -> Any:
        return array.to(torch_dtype(dtype))

    def graph_on_host(self, graph: Any) -> sp.csr_array:
        return graph.to_scipy()


if TYPE_CHECKING:  # the type checker compares it with the protocol
    _ENGINE: type[Engine] = TorchEngine


def row_contrasts(views: list[TorchGeometry], graphs: list[DeviceGraph]) -> Array:
    """`row_contrasts` of the engine of NumPy, from both halves of symmetric graphs."""
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


def refuse_streamed(views: Views) -> None:
    for X in views.matrices:
        if is_streamed(X):
            raise ValueError(
                f"{X.label} is read from its file by rows, which engine='numpy' does; use that, or "
                "load the view into memory"
            )


def moved(views: Views, device_name: str, asked: Any, dtype: np.dtype) -> tuple[Views, np.dtype]:
    """The views as dense tensors, moved once, and the precision of the computation.

    Sparse views are written out on the device: there, neighbours are found by products of dense rows.
    Where the views are too large for it, they stay with the host (`streamed`).
    """
    n_entries = sum(int(np.prod(X.shape)) for X in views.matrices)
    device = choose(device_name, n_entries)
    dtype, tensors = precision(device, asked, dtype), []
    all_fit = fits(COPIES * n_entries * dtype.itemsize, device)
    if not all_fit:
        warn_user(
            f"the views take {n_entries * dtype.itemsize / 2**30:.1f} GiB, too much to compute with on "
            f"{device}: they stay in host memory, and distances are measured along their leading "
            "directions"
        )
    refuse_streamed(views)
    for X, name in zip(views.matrices, views.names, strict=True):
        dense_size = int(np.prod(X.shape)) * dtype.itemsize
        if sp.issparse(X) and not fits(COPIES * dense_size, device):
            raise ValueError(
                f"view {name!r} is sparse, and written out it takes {dense_size / 2**30:.1f} GiB, too "
                f"much to compute with on {device}; use engine='numpy', which keeps it sparse"
            )
        if sp.issparse(X):
            refuse_signed(X, name)
        if sp.issparse(X) and all_fit:
            tensor = dense_tensor(X, device, X.dtype if X.dtype.kind == "f" else dtype)
        elif all_fit:
            tensor = put(X, device)  # scaled there, in float64: raw numbers may not fit float32
            tensor = tensor if tensor.is_floating_point() else tensor.double()
        else:
            tensor = HostView(X, device)
        share = tensor.unobserved if isinstance(tensor, HostView) else unobserved(tensor)
        if ((share > 0) & (share < 1)).any():
            raise ValueError(
                f"view {name!r} is partly unobserved (NaN inside rows), which RobustWMNMF takes with "
                "engine='numpy' only; use that, or fill it in"
            )
        tensors.append(tensor)
    return views.with_matrices(tensors), dtype
