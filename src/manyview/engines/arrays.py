"""Which library an array belongs to, and the few functions the libraries spell differently.

NumPy's functions also serve dask arrays; tensors have their own.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .._types import Array


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
    columns = np.arange(n_columns)
    columns = labels.new_tensor(columns) if is_tensor(labels) else columns
    return 1.0 * (columns == labels[:, None])


def column_dots(A: Any, B: Any) -> Any:
    """Σ_i a_ik b_ik (K), on a device in float64: as many numbers are added as there are rows."""
    if is_tensor(A):
        return (A * B).sum(axis=0, dtype=namespace(A).float64)
    return np.einsum("ik,ik->k", A, B)


def copied(x: Any) -> Any:
    return x.clone() if is_tensor(x) else np.array(x, order="C")


def converted(x: Any, dtype: Any) -> Any:
    """``x`` in another precision; itself if it has it already."""
    return x.to(dtype) if is_tensor(x) else x.astype(dtype, copy=False)


def like(x: Array, model: Any) -> Any:
    """A NumPy array in the library, precision and place of ``model``."""
    return model.new_tensor(x) if is_tensor(model) else x.astype(model.dtype, copy=False)


def on_host(x: Any) -> Array:
    """As a NumPy array, wherever it lives."""
    if is_tensor(x):
        return x.detach().cpu().numpy()
    return np.asarray(x)
