"""Checksums (SHA-256) of texts, files and matrices."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp


def of_bytes(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_arrays(arrays: Iterable[Any], names: Iterable[str] = ()) -> str:
    """Of names, shapes, types and all entries."""
    digest = hashlib.sha256("\0".join(names).encode(errors="surrogatepass"))
    for array in arrays:
        digest.update(f"{array.shape}{array.dtype}".encode())
        _add_entries(digest, array)
    return digest.hexdigest()


def of_blocks(shape: tuple[int, ...], dtype: Any, blocks: Iterable[Any]) -> str:
    """Of one matrix that is read by blocks of rows; if it is dense their size does not matter."""
    digest = hashlib.sha256(str((shape, dtype)).encode())
    for block in blocks:
        _add_entries(digest, block)
    return digest.hexdigest()


def _add_entries(digest: Any, array: Any) -> None:
    parts = [array]
    if sp.issparse(array):
        array = sp.csr_array(array)
        # Places take 4 or 8 bytes, wherever they come from.
        parts = [array.data, array.indices.astype(np.int64), array.indptr.astype(np.int64)]
    for part in parts:
        part = np.ascontiguousarray(part)
        if part.dtype.hasobject:
            digest.update(pickle.dumps(part))
        else:  # numbers as they lie in memory; texts and times give no view of theirs
            digest.update(part.data if part.dtype.kind in "biufc" else part.tobytes())
