"""Whatever users hold → validated Views. The only file that knows containers."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._types import Array, Matrix, Views


def as_views(
    data: Any,
    views: Sequence[int] | None = None,
    *,
    allow_negative: bool = False,
    allow_missing: bool = False,
    min_samples: int = 2,
    caller: str = "manyview",
) -> Views:
    """Validate ``data`` as several views of the same observations.

    Parameters
    ----------
    data : list or tuple of 2-D arrays, dict of name → array, or one 2-D array
        Arrays may be NumPy, SciPy sparse or pandas DataFrames; DataFrames are aligned on their
        index. A list whose items are 2-D is a list of views; a list of rows is one array.
    views : sequence of int, optional
        For one 2-D array: how many columns each view takes, in order. ``None`` means one view.
    allow_negative : bool
        Whether negative entries pass (a shifting scale will deal with them).
    allow_missing : bool
        Whether NaN passes, and DataFrames may lack ids that others have (they get rows of NaN).
    min_samples : int
        Fewest observations accepted: 2 to fit, 1 to predict.
    caller : str
        Who is asking, for the messages.

    Examples
    --------
    >>> import numpy as np
    >>> v = as_views({"rna": np.ones((4, 3)), "protein": np.ones((4, 2))})
    >>> v.names, v.n_features
    (('rna', 'protein'), (3, 2))
    """
    if hasattr(data, "views") and hasattr(data, "labels"):
        raise ValueError(f"got a whole {type(data).__name__}; pass its .views")
    if views is not None and (isinstance(views, str) or not hasattr(views, "__iter__")):
        raise ValueError(f"views must list how many columns each view takes, got {views!r}")
    names, items = _named_items(data, views)
    if views is not None:
        items = _split_columns(items, views)
        names = [f"view{s}" for s in range(len(items))]
    sample_names, items = _align(names, items, allow_missing)
    features = tuple(_column_names(item) for item in items)
    matrices = [_as_matrix(item, name) for name, item in zip(names, items, strict=True)]
    _check_shapes(matrices, names, min_samples, caller)
    for X, name in zip(matrices, names, strict=True):
        _check_values(X, name, allow_negative, allow_missing, caller)
    return Views(tuple(matrices), tuple(names), features, sample_names)


def is_single(data: Any) -> bool:
    """Whether ``data`` is one 2-D array rather than a collection of views."""
    if sp.issparse(data):  # first: a DOK matrix is a Mapping as well
        return True
    if isinstance(data, Mapping):
        return False
    return not (isinstance(data, list | tuple) and any(_ndim(item) == 2 for item in data))


def _named_items(data: Any, views: Sequence[int] | None) -> tuple[list[str], list[Any]]:
    if is_single(data):
        return ["view0"], [data]
    if views is not None:
        raise ValueError(
            f"views={list(views)} splits the columns of one array, but {len(data)} views were "
            "passed already; leave views=None"
        )
    if isinstance(data, Mapping):
        if len(data) == 0:
            raise ValueError("at least one view is needed, got an empty dict")
        names = [str(name) for name in data]
        if len(set(names)) < len(names):
            raise ValueError(f"view names must differ as text, got {list(data)}")
        return names, list(data.values())
    return [f"view{s}" for s in range(len(data))], list(data)


def _ndim(item: Any) -> int:
    if hasattr(item, "ndim"):
        return item.ndim
    try:
        return np.ndim(item)
    except ValueError:  # ragged
        return 0


def _is_frame(item: Any) -> bool:
    return hasattr(item, "iloc") and hasattr(item, "columns")


def _split_columns(items: list[Any], views: Sequence[int]) -> list[Any]:
    widths = list(views)
    if not widths or any(not isinstance(m, numbers.Integral) or m < 1 for m in widths):
        raise ValueError(
            f"views must list how many columns each view takes (1 or more); got {widths}"
        )
    item: Any = items[0] if hasattr(items[0], "shape") else np.asarray(items[0])
    if item.ndim != 2:
        raise ValueError(f"Expected 2D array to split into views, got {item.ndim}D array instead")
    if sum(widths) != item.shape[1]:
        raise ValueError(
            f"views={widths} adds up to {sum(widths)} columns, but X has {item.shape[1]} features"
        )
    ends = np.cumsum(widths)
    take = item.iloc if _is_frame(item) else item.tocsc() if sp.issparse(item) else item
    return [take[:, end - width : end] for width, end in zip(widths, ends, strict=True)]


def _align(
    names: list[str], items: list[Any], allow_missing: bool
) -> tuple[Array | None, list[Any]]:
    """Bring DataFrames to the order of the first one's index; plain arrays have no ids to align."""
    frames = [s for s, item in enumerate(items) if _is_frame(item)]
    if not frames:
        return None, items
    first = frames[0]
    reference = items[first].index
    for s in frames:
        index = items[s].index
        if not index.is_unique and len(items) > 1:
            twice = index[index.duplicated()][0]
            raise ValueError(
                f"view {names[s]!r} has the sample id {twice!r} more than once; ids must be unique"
            )
    aligned = list(items)
    if allow_missing and len(frames) == len(items):
        for s in frames[1:]:
            reference = reference.append(items[s].index.difference(reference, sort=False))
        return np.asarray(reference), [item.reindex(reference) for item in items]
    for s in frames[1:]:
        index = items[s].index
        if index.equals(reference):
            continue
        shared = len(reference.intersection(index))
        if shared < max(len(reference), len(index)):
            raise ValueError(
                f"views {names[first]!r} ({len(reference)} samples) and {names[s]!r} ({len(index)} "
                f"samples) share only {shared} sample ids; select the shared ids in every view first"
            )
        if len(frames) < len(items):
            raise ValueError(
                f"views {names[first]!r} and {names[s]!r} list the same samples in another order, and "
                "other views are plain arrays without ids; pass DataFrames for all, or one order"
            )
        aligned[s] = items[s].loc[reference]
    return np.asarray(reference), aligned


def _column_names(item: Any) -> Array | None:
    return np.array([str(c) for c in item.columns], dtype=object) if _is_frame(item) else None


def _as_matrix(item: Any, name: str) -> Matrix:
    """A float32 or float64 array or CSR matrix; other numbers become float64."""
    if sp.issparse(item):
        if item.ndim != 2:
            raise ValueError(f"Expected 2D array for view {name!r}, got {item.ndim}D array instead")
        X = sp.csr_array(item)
        if (
            not X.has_canonical_format
        ):  # a copy: the user's buffers are shared, and may be read-only
            X = X.copy()
            X.sum_duplicates()
    else:
        if _is_frame(item):
            item = _numeric_frame(item, name)
        if isinstance(item, np.ma.MaskedArray):
            item = np.ma.filled(item.astype(float), np.nan)
        try:
            X = np.asarray(item)
        except ValueError as error:
            raise ValueError(
                f"view {name!r} is not a rectangular table of numbers: {error}"
            ) from error
        if X.ndim != 2:
            raise ValueError(
                f"Expected 2D array for view {name!r} (observations × features), got {X.ndim}D array "
                "instead. Reshape your data: X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) "
                "if it is one sample"
            )
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: view {name!r} has dtype {X.dtype}")
    if X.dtype.kind in "mMSUV":
        raise ValueError(
            f"view {name!r} has entries that are not numbers (dtype {X.dtype}); encode them as numbers"
        )
    if X.dtype in (np.float32, np.float64):
        return X
    if X.dtype.kind in "biuf":
        return X.astype(np.float32 if X.dtype == np.float16 else np.float64)
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError) as error:
        # An object that can never be a number is a TypeError, a text that is none a ValueError.
        raise type(error)(f"view {name!r} has entries that are not numbers: {error}") from error


def _numeric_frame(frame: Any, name: str) -> Array:
    """The values of a DataFrame; pandas' own missing values become NaN."""
    if all(isinstance(dtype, np.dtype) and dtype.kind in "biufc" for dtype in frame.dtypes):
        return frame.to_numpy()
    columns = []
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        kind = getattr(column.dtype, "kind", "O")
        try:
            if kind in "mM" or (kind not in "biufc" and any(isinstance(v, str) for v in column)):
                raise TypeError(f"dtype {column.dtype}")
            columns.append(column.to_numpy(dtype=float, na_value=np.nan))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"view {name!r} has the non-numeric column {frame.columns[j]!r} ({error}); "
                "drop it, set it as the index, or encode it as numbers"
            ) from error
    return np.column_stack(columns) if columns else np.empty(frame.shape)


def _check_shapes(matrices: list[Matrix], names: list[str], min_samples: int, caller: str) -> None:
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
            f"{caller} needs at least {min_samples} observations, got n_samples = {n}"
            + (" (1 sample)" if n == 1 else "")
        )


def _check_values(
    X: Matrix, name: str, allow_negative: bool, allow_missing: bool, caller: str
) -> None:
    values = X.data if sp.issparse(X) else X
    if values.size == 0:
        return
    # One cheap sum finds most trouble: it is finite unless an entry is not, or the sum overflows.
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum(dtype=np.float64)
    if not np.isfinite(total):
        # NaN in a sparse matrix is refused even where NaN may stand for "missing": a zero row does.
        fine = np.isnan if allow_missing and not sp.issparse(X) else np.zeros_like
        bad = np.flatnonzero(~(np.isfinite(values.ravel()) | fine(values.ravel()).astype(bool)))
        if len(bad):
            row, column = _position(X, bad[0])
            raise ValueError(
                f"view {name!r} has {len(bad)} NaN or infinite entries (the first is "
                f"{values.ravel()[bad[0]]} at row {row}, column {column}); remove or impute them"
            )
    low = np.nanmin(values) if np.isfinite(values).any() else 0.0
    if low < 0 and not allow_negative:
        raise ValueError(
            f"Negative values in data passed to {caller}: view {name!r} has "
            f"{int((values < 0).sum())} negative entries (min {low:g}); shift it, or use "
            "scale='minmax' or scale='standard'"
        )


def _position(X: Matrix, flat: int) -> tuple[int, int]:
    if sp.issparse(X):
        return int(np.searchsorted(X.indptr, flat, side="right") - 1), int(X.indices[flat])
    row, column = np.unravel_index(flat, X.shape)
    return int(row), int(column)
