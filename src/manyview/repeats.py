"""Observations that repeat: which rows are copies of each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ._types import Array
from .engines.arrays import converted, is_tensor, namespace, on_host
from .engines.threads import blocks

#: Entries mixed at a time.
MIXED = 2**20
#: Odd numbers with well-spread bits, as signed integers of 64 bits.
FIRST, SECOND, PLACE = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15


def row_codes(Z: Any) -> Array:
    """A number of 64 bits for every row: equal rows, equal numbers, wherever the rows are.

    Whole numbers are added, so the order of the sum does not matter. That different rows get the same
    number is possible, with a chance of 10⁻⁷ among a million rows.
    """
    if sp.issparse(Z):
        Z = sp.csr_array(Z)
        mixed = _mixed(_bits(Z.data + 0.0), Z.indices.astype(np.int64))
        mixed[Z.data == 0] = 0  # written down or not
        total = np.concatenate([[0], np.cumsum(mixed)])  # whole numbers wrap around, and back
        return total[Z.indptr[1:]] - total[Z.indptr[:-1]]
    columns = np.arange(Z.shape[1])
    columns = namespace(Z).as_tensor(columns, device=Z.device) if is_tensor(Z) else columns
    parts = [
        on_host(_mixed(_bits(Z[b] + 0.0), columns).sum(axis=1))  # −0 is 0
        for b in blocks(slice(0, Z.shape[0]), max(1, MIXED // max(1, Z.shape[1])))
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _bits(x: Any) -> Any:
    """Numbers as whole numbers with the same bits; NaN has many, of which one is taken."""
    xp = namespace(x)
    whole = xp.int32 if x.dtype == xp.float32 else xp.int64
    bits = x.view(whole) if is_tensor(x) else np.ascontiguousarray(x).view(whole)
    return converted(xp.where(xp.isnan(x), 1, bits), xp.int64)


def _mixed(bits: Any, columns: Any) -> Any:
    """Every bit of a number spread over all 64, differently in every column."""
    x = (bits + PLACE * (columns + 1)) * FIRST
    x = (x ^ (x >> 31)) * SECOND
    return x ^ (x >> 29)
