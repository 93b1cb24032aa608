"""Recognize the library of an array, and call functions that the libraries name differently.

NumPy's functions also serve dask arrays; tensors have their own.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._types import Array

#: With a smaller share of nonzeros a product takes less time without the zeros.
FEW = 0.05


def is_tensor(x: Any) -> bool:
    torch = sys.modules.get("torch")  # whoever holds a tensor has imported it
    return torch is not None and isinstance(x, torch.Tensor)


def namespace(x: Any) -> Any:
    """The module whose functions take ``x``: numpy or torch."""
    return sys.modules["torch"] if is_tensor(x) else np


def sorted_rows(Y: Any) -> Any:
    """Every row in ascending order."""
    return Y.sort(axis=1).values if is_tensor(Y) else np.sort(Y, axis=1)


def pick(Y: Any, columns: Any) -> Any:
    """Y[i, columns[i]] as a column."""
    columns = columns[:, None]
    return Y.take_along_dim(columns, 1) if is_tensor(Y) else np.take_along_axis(Y, columns, axis=1)


def one_hot(labels: Any, n_columns: int) -> Any:
    """1 in the column of each row's label, 0 elsewhere."""
    xp = namespace(labels)
    where = {"device": labels.device} if is_tensor(labels) else {}
    return converted(xp.arange(n_columns, **where) == labels[:, None], xp.float64)


def as_numbers(mask: Any, like: Any) -> Any:
    """0 and 1 for a mask, as tensors in the precision of ``like``: PyTorch's default may be any."""
    return converted(mask, like.dtype if is_tensor(like) else np.float64)


def constant(value: float, like: Any) -> Any:
    """One number for every row of ``like``, made where that is."""
    return like.new_full((len(like),), value) if is_tensor(like) else np.full(len(like), value)


def row_sums(weights: Array, rows: Array) -> Array:
    """Σ_i weights_ik rows_i (K×dim), of which the weights that are 0 are left out where most are."""
    few = isinstance(weights, np.ndarray) and np.count_nonzero(weights) < FEW * weights.size
    return (sp.csr_array(weights) if few else weights).T @ rows


def column_dots(A: Any, B: Any) -> Any:
    """Σ_i a_ik b_ik (K), on a device in float64: as many numbers are added as there are rows."""
    if is_tensor(A):
        return (A * B).sum(axis=0, dtype=namespace(A).float64)
    return np.einsum("ik,ik->k", A, B)


def copied(x: Any) -> Any:
    return x.clone() if is_tensor(x) else np.array(x, order="C")


def converted(x: Any, dtype: Any) -> Any:
    """``x`` in another precision (NumPy's or the library's own); itself if it has it already."""
    if not is_tensor(x):
        return x.astype(dtype, copy=False)
    torch = namespace(x)
    return x.to(dtype if isinstance(dtype, torch.dtype) else getattr(torch, np.dtype(dtype).name))


def like(x: Array, model: Any) -> Any:
    """A NumPy array in the library, precision and place of ``model``."""
    return model.new_tensor(x) if is_tensor(model) else x.astype(model.dtype, copy=False)


def beside(x: Array, model: Any) -> Any:
    """A NumPy array as it is, or, where ``model`` is a tensor, in the place and precision of that."""
    return model.new_tensor(x) if is_tensor(model) else x


class DeviceFlag:
    """A yes or no that may have to come from a GPU, which is not waited for.

    `latest` then returns the value of the time before, which has already arrived.
    """

    def __init__(self) -> None:
        self.before: Any = None

    def latest(self, answer: Any) -> bool:
        if not is_tensor(answer) or not answer.is_cuda:
            return bool(answer)
        torch = namespace(answer)
        copy = torch.empty((), dtype=torch.bool, pin_memory=True)
        copy.copy_(answer, non_blocking=True)
        arrived = torch.cuda.Event()
        arrived.record()
        before, self.before = self.before, (arrived, copy)
        if before is None:
            return False
        before[0].synchronize()
        return bool(before[1])


def on_host(x: Any) -> Array:
    """As a NumPy array, wherever it lives."""
    if not is_tensor(x):
        return np.asarray(x)
    return x.detach().cpu().numpy()
