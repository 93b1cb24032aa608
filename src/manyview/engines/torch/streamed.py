"""RobustWMNMF with views larger than the card: their scaled rows wait in pinned host memory.

Distances are those along the directions in which the rows vary most, as for views in files. On the card
are these coordinates, and the block of rows that is computed with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from manyview._arrays import on_host
from manyview._types import Array
from manyview.engines.numpy.distances import FileGeometry
from manyview.engines.numpy.presence import unobserved
from manyview.engines.numpy.scaling import ScaledFile
from manyview.engines.numpy.sources import DIRECTIONS, reading

from .device import put
from .distances import TorchGeometry, host_parts
from .tensors import TorchView


class HostView:
    """A view in the host's memory; the rows asked for come to the device."""

    on_disk = True  # like a file: its rows are never asked for all at once
    sparse = False
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
        self.centre = along.mean(0)
        TorchGeometry.__init__(self, along - self.centre, present, unit_rows)
        self.n_features = Z.shape[1]

    def unit_sums(self) -> TorchView:
        return self.source.give_rows_unit_sums()

    def for_model(self, sparse: bool) -> FileGeometry:
        """What placing new rows needs: the rows themselves are not kept a second time."""
        host = host_parts(self, FileGeometry, on_host(self.Z))
        host.source = None
        host.directions, host.centre = on_host(self.directions), on_host(self.centre)
        return host


def leading_directions(Z: TorchView) -> torch.Tensor:
    """Directions of feature space (M×d); one of them is nearly that of the mean."""
    m, d = Z.shape[1], DIRECTIONS + 1
    if m <= DIRECTIONS:
        return Z.placed(np.eye(m))
    block = Z.leading_block(d, seed=0)
    vectors = torch.linalg.eigh(block.T @ Z.gram(block)).eigenvectors
    return block @ vectors[:, -d:]
