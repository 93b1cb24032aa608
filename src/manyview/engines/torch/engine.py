"""The engine of tensors: views on a device, or in the host's memory where they are too large for it.

`RobustWMNMF` measures distances of views larger than the card along the directions in which the rows vary
most, as for views in files. On the card are these coordinates, and the block of rows that is computed with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from manyview._arrays import on_host
from manyview._types import Array, Matrix, Views
from manyview._warn import warn_user
from manyview.engines.numpy.distances import FileGeometry
from manyview.engines.numpy.engine import Engine
from manyview.engines.numpy.presence import check_finite, refuse_holes, unobserved
from manyview.engines.numpy.scaling import ZEROS, ScaledFile, share_of_zeros
from manyview.engines.numpy.sources import DIRECTIONS, is_streamed, reading
from manyview.engines.protocols import Found, RowSource

from .device import choose, fits, precision, put
from .distances import TorchGeometry, dense_tensor, host_parts
from .rows import TorchView, device_views

#: Copies of the views that half of the card must have room for: at worst there are five, of z, of both
#: sides of its products, and of these next to those of other views.
COPIES = 3


class TorchEngine(Engine):
    """An `Engine` of tensors."""

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
        # Unseen rows look for their neighbors on the host.
        return Xs, scaled(scalings), scalings

    def bring(self, views: Views, asked: Any, dtype: np.dtype) -> tuple[Views, np.dtype]:
        """The views as dense tensors, moved once, and the precision of the computation.

        Sparse views are written out on the device: there, neighbors are found by products of dense rows.
        Where the views are too large for it, they stay with the host (`streamed`).
        """
        n_entries = sum(int(np.prod(X.shape)) for X in views.matrices)
        device = choose(self.device, n_entries)
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
            # Percentiles would move the zeros of a sparse view that has entries below them.
            if sp.issparse(X) and X.nnz and X.data.min() < 0 and share_of_zeros(X) <= ZEROS[1]:
                raise ValueError(
                    f"view {name!r} is sparse and has negative entries (the smallest is {X.data.min():g}): "
                    "scaling would fill its zeros; pass it as a dense array"
                )
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

    def distances(self, Z: Any, present: Array, unit_rows: bool) -> TorchGeometry:
        kind = TorchGeometry if isinstance(Z, torch.Tensor) else StreamedGeometry
        return kind(Z, present, unit_rows)


def refuse_streamed(views: Views) -> None:
    for X in views.matrices:
        if is_streamed(X):
            raise ValueError(
                f"{X.label} is read from its file by rows, which engine='numpy' does; use that, or "
                "load the view into memory"
            )


class HostView(RowSource):
    """A view in the host's memory; requested rows come to the device."""

    #: Entries of a sample of rows: they are in memory, so it can be large.
    sample = 2**28

    def __init__(self, X: Any, device: Any):
        self.X, self.device, self.shape, self.dtype = X, device, X.shape, X.dtype
        self.unobserved = np.concatenate([unobserved(block) for block in reading(self)])

    def read(self, rows: slice) -> torch.Tensor:
        return self.take(rows)

    def take(self, rows: Any) -> torch.Tensor:
        part = self.X[rows]
        part = put(part.toarray() if sp.issparse(part) else part, self.device)
        return part if part.is_floating_point() else part.double()

    def scaled(self, scaling: Any, present: Array, dtype: np.dtype) -> TorchView:
        # On the card there would be room for some of them, and then none for the neighbors.
        there = self.device.type != "cuda"
        return TorchView(ScaledFile(self, scaling, present, dtype), self.device, dtype, there)


class StreamedGeometry(FileGeometry, TorchGeometry):
    """Distances of streamed rows along the directions in which they vary most; exact for few features."""

    in_memory = TorchGeometry

    def __init__(self, Z: TorchView, present: Array, unit_rows: bool = False):
        self.source, self.directions = Z, leading_directions(Z)
        along = torch.cat([part @ self.directions for _, part in Z.blocks()])
        self.center = along.mean(0)
        TorchGeometry.__init__(self, along - self.center, present, unit_rows)
        self.n_features = Z.shape[1]

    def unit_sums(self) -> TorchView:
        return self.source.give_rows_unit_sums()

    def for_model(self, sparse: bool) -> FileGeometry:
        """What placing new rows needs: the rows themselves are not kept a second time."""
        host = host_parts(self, FileGeometry, on_host(self.Z))
        host.source = None
        host.directions, host.center = on_host(self.directions), on_host(self.center)
        return host


def leading_directions(Z: TorchView) -> torch.Tensor:
    """Directions of feature space (M×d); one of them is nearly that of the mean."""
    m, d = Z.shape[1], DIRECTIONS + 1
    if m <= DIRECTIONS:
        return Z.placed(np.eye(m))
    block = Z.leading_block(d, seed=0)
    vectors = torch.linalg.eigh(block.T @ Z.gram(block)).eigenvectors
    return block @ vectors[:, -d:]
