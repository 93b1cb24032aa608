"""Columns and labels of any library as Python values and integers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def as_list(column: Any) -> list[Any]:
    """Return the entries of a column as Python values; dates stay dates.

    Entries of a tensor are tensors themselves: each would be a label of its own.
    """
    if isinstance(column, np.ndarray):
        # Times in nanoseconds would become integers in a plain list.
        items = list(column) if column.dtype.kind in "mM" else column.tolist()
    else:
        verb = next((v for v in ("tolist", "to_list", "to_pylist") if hasattr(column, v)), None)
        if verb is None and hasattr(column, "__array__"):
            return as_list(np.asarray(column))
        items = list(column) if verb is None else getattr(column, verb)()
    return [_as_value(item) if getattr(item, "shape", None) == () else item for item in items]


def _as_value(item: Any) -> Any:
    if isinstance(item, np.generic):
        return item
    return item.item() if hasattr(item, "item") else np.asarray(item).item()


def class_codes(labels: Any, name: str) -> np.ndarray:
    """Labels as integers. A dictionary, not np.unique: NumPy would make 1 and "1" equal."""
    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "biu":
        items: Any = labels
    else:
        items = _listed(labels, name)
    if len(items) == 0:
        raise ValueError(f"{name} is empty; at least one label is needed")
    if isinstance(items, np.ndarray):
        return np.unique(items, return_inverse=True)[1]
    seen: dict[Any, int] = {}
    return np.array([seen.setdefault(item, len(seen)) for item in items])


def _listed(labels: Any, name: str) -> list[Any]:
    shape = getattr(labels, "shape", None)
    rule = f"{name} must be 1-D, one label per sample"
    if shape is not None and len(shape) != 1:
        raise ValueError(f"{rule}, but has shape {shape}; .ravel() a single column")
    column = isinstance(labels, Iterable) or hasattr(labels, "__array__")
    if isinstance(labels, str | bytes | dict | set) or not column:
        raise ValueError(f"{rule}, but is of type {type(labels).__name__}")
    items = as_list(labels)
    for i, item in enumerate(items):
        if isinstance(item, list | tuple | dict | set) or getattr(item, "ndim", 0) > 0:
            raise ValueError(f"{rule}, but holds a {type(item).__name__} at {i}")
        if item is None or _is_nan(item):
            raise ValueError(f"{name}[{i}] is missing (NaN or None); drop unlabeled samples")
    return items


def _is_nan(item: Any) -> bool:
    try:
        return bool(item != item)
    except (TypeError, ValueError):  # pandas.NA refuses to be a truth value
        return True
