"""What is refused of the matrices of views: their shapes and values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview._warn import warn_user
from manyview.engines.dask.source import DaskMatrix
from manyview.engines.numpy.relations import Relation
from manyview.engines.numpy.sources import LOOK, is_streamed, looking_rows
from manyview.engines.threads import Threads, blocks


def check_shapes(matrices: list[Matrix], names: list[str], min_samples: int, caller: str) -> None:
    for X, name in zip(matrices, names, strict=True):
        if X.shape[1] == 0:
            raise ValueError(
                f"view {name!r} has 0 feature(s) (shape=({X.shape[0]}, 0)) while a minimum of 1 is "
                "required; leave the view out"
            )
        if X.shape[0] != matrices[0].shape[0]:
            raise ValueError(
                f"views must describe the same observations: {names[0]!r} has "
                f"{matrices[0].shape[0]} rows, {name!r} has {X.shape[0]}"
            )
    n = matrices[0].shape[0]
    if n < min_samples:
        raise ValueError(
            f"{caller} needs at least {min_samples} observation{'s' * (min_samples > 1)}, got "
            f"n_samples = {n}{' (1 sample)' * (n == 1)}" + ("; there are no rows" if n == 0 else "")
        )


def check_values(
    X: Matrix, label: str, allow_negative: bool, allow_missing: bool, caller: str
) -> None:
    if is_streamed(X):
        _check_file(X, allow_negative, caller)
        return
    values = X.data if sp.issparse(X) else X
    if values.size == 0:
        return
    low, high = _extremes(values)
    if not np.isfinite(low + high):
        # NaN in a sparse matrix is refused even where NaN may stand for "missing": a zero row does.
        fine = np.isnan if allow_missing and not sp.issparse(X) else np.zeros_like
        bad = np.flatnonzero(~(np.isfinite(values.ravel()) | fine(values.ravel()).astype(bool)))
        if len(bad):
            row, column = _position(X, bad[0])
            raise ValueError(
                f"{label} has {len(bad)} NaN or infinite entries (the first is "
                f"{values.ravel()[bad[0]]} at row {row}, column {column}); remove or impute them"
            )
        low = np.nanmin(values) if np.isfinite(values).any() else 0.0
    if low < 0 and not allow_negative:
        raise ValueError(
            f"Negative values in data passed to {caller}: {label} has "
            f"{int((values < 0).sum())} negative entries (min {low:g}); shift it, or use "
            "scale='minmax' or scale='standard'"
        )


def _extremes(values: Array) -> tuple[float, float]:
    """The smallest and the largest entry, NaN if there is one, looked for on threads."""
    step = max(1, LOOK * len(values) // values.size)
    parts = list(blocks(slice(0, len(values)), step))
    found = Threads(None).each(lambda b: (values[b].min(), values[b].max()), parts)
    low, high = np.array(found, dtype=float).T
    return float(low.min()), float(high.max())


def _check_file(X: Any, allow_negative: bool, caller: str) -> None:
    """The same for a view in a file, block by block; NaN is refused even as a sign of missing values."""
    found: Iterable[str | None]
    if isinstance(X, DaskMatrix):
        found = X.each(_complaint, X.label, allow_negative, caller, place=True)
    else:
        slabs = blocks(slice(0, X.shape[0]), looking_rows(X.shape[1]))
        # Lazily: the first complaint ends the reading.
        found = (_complaint(X.read(b), b.start, X.label, allow_negative, caller) for b in slabs)
    for complaint in found:
        if complaint is not None:
            raise ValueError(complaint)


def _complaint(
    block: Matrix, start: int, label: str, allow_negative: bool, caller: str
) -> str | None:
    """What is wrong with some rows, if anything."""
    values = block.data if sp.issparse(block) else block
    where = f"{label}: rows {start} to {start + block.shape[0] - 1} hold"
    bad = ~np.isfinite(values)
    if bad.any():
        return (
            f"{where} {int(bad.sum())} NaN or infinite entries ({_first(block, start, bad)}); views "
            "read by rows must be complete: impute them, or load the view into memory"
        )
    if not allow_negative and values.min(initial=0) < 0:
        return (
            f"Negative values in data passed to {caller}. {where} {int((values < 0).sum())} negative "
            f"entries ({_first(block, start, values < 0)}; min {values.min():g}); shift them, or use "
            "scale='minmax' or scale='standard'"
        )
    return None


def _first(block: Matrix, start: int, bad: Array) -> str:
    """The first bad entry of rows that begin with row ``start`` of the view."""
    flat = int(np.flatnonzero(bad)[0])
    row, column = _position(block, flat)
    value = (block.data if sp.issparse(block) else block).ravel()[flat]
    return f"the first is {value:g} at row {start + row}, column {column}"


def _position(X: Matrix, flat: int) -> tuple[int, int]:
    if sp.issparse(X):
        return int(np.searchsorted(X.indptr, flat, side="right") - 1), int(X.indices[flat])
    row, column = np.unravel_index(flat, X.shape)
    return int(row), int(column)


def check_relation(X: Relation, name: str, allowed: bool, caller: str) -> None:
    if not allowed:
        raise ValueError(
            f"view {name!r} is a {X.kind}, and {caller} works on features; use RobustWMNMF, or pass "
            f"{type(X).__name__}(...).as_features(), a nonnegative table made of it"
        )
    X.check(name)


def _is_symmetric(X: sp.csr_array) -> bool:
    """Whether X is its own transpose."""
    if not X.has_canonical_format or not X.data.all():
        return abs(X - X.T).max() == 0
    if (np.bincount(X.indices, minlength=X.shape[0]) != np.diff(X.indptr)).any():
        return False
    turned = X.tocsc()
    return np.array_equal(X.indices, turned.indices) and np.array_equal(X.data, turned.data)


def hint_at_graphs(matrices: list[Matrix], names: list[str]) -> None:
    """A symmetric sparse table with a column for every observation is most likely a graph."""
    found = [
        name
        for X, name in zip(matrices, names, strict=True)
        if sp.issparse(X) and X.shape[0] == X.shape[1] and X.nnz and X.data.min() >= 0
        if _is_symmetric(X)
    ]
    if found:
        warn_user(
            f"views {found} have as many columns as observations, and are symmetric: if they are links "
            f"between them, pass manyview.GraphView({found[0]})"
        )
