"""Users' data → Views: samples aligned by their ids, every value checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix, Views
from manyview._warn import warn_user
from manyview.engines.dask.source import DaskMatrix
from manyview.engines.files.disk import DiskMatrix
from manyview.engines.numpy.relations import Relation
from manyview.engines.numpy.sources import is_streamed
from manyview.engines.protocols import LOOK, RowSource, looking_rows
from manyview.engines.threads import Threads, blocks

from .containers import Collection, as_matrix, as_texts, collect
from .ids import align

#: The same for all views, or a function of a view's name.
Rule: TypeAlias = Callable[[str], bool] | bool


def check_values(
    X: Matrix,
    label: str,
    allow_negative: bool,
    allow_missing: bool,
    caller: str,
    remedy: str,
) -> None:
    told = (X.label if is_streamed(X) else label, allow_negative, caller)
    found: Iterable[str | None]
    if isinstance(X, DaskMatrix):
        found = X.each(_complaint, *told, place=True)
    elif is_streamed(X):
        slabs = blocks(slice(0, X.shape[0]), looking_rows(X.shape[1]))
        # Lazily: the first complaint ends the reading.
        found = (_complaint(X.read(b), b.start, *told) for b in slabs)
    else:
        values = X.data if sp.issparse(X) else X
        low, high = _extremes(values) if values.size else (0.0, 0.0)
        if np.isfinite(low + high) and (low >= 0 or allow_negative):
            return
        found = (_complaint(X, None, *told, allow_missing, remedy),)
    for complaint in found:
        if complaint is not None:
            raise ValueError(complaint)


def check_source(X: RowSource, name: str) -> None:
    """Refuse a user's data source whose first row is not what it says of itself."""
    kind = type(X).__name__
    for said in ("shape", "dtype"):
        if not hasattr(X, said):
            raise ValueError(f"view {name!r}: {kind} has no {said}; set self.{said} in __init__")
    if np.dtype(X.dtype) not in (np.float32, np.float64):
        raise ValueError(
            f"view {name!r}: {kind}.dtype is {X.dtype}; use float32 or float64, and return it by read"
        )
    first = X.read(slice(0, min(1, X.shape[0])))
    found = (*np.shape(first)[1:], first.dtype, sp.issparse(first))
    if found != (X.shape[1], np.dtype(X.dtype), X.sparse):
        raise ValueError(
            f"view {name!r}: {kind}.read(slice(0, 1)) returned shape {np.shape(first)}, {first.dtype}, "
            f"sparse={sp.issparse(first)}, but shape is {X.shape}, dtype {X.dtype}, sparse={X.sparse}; "
            "make them agree"
        )


def _extremes(values: Array) -> tuple[float, float]:
    """The smallest and the largest entry, NaN if there is one, looked for on threads."""
    step = max(1, LOOK * len(values) // values.size)
    parts = list(blocks(slice(0, len(values)), step))
    found = Threads(None).each(lambda b: (values[b].min(), values[b].max()), parts)
    low, high = np.array(found, dtype=float).T
    return float(low.min()), float(high.max())


def _complaint(
    block: Matrix,
    start: int | None,
    label: str,
    allow_negative: bool,
    caller: str,
    allow_missing: bool = False,
    remedy: str = "views read by rows must be complete: impute them, or load the view into memory",
) -> str | None:
    """What is wrong with a view, or with its rows that begin with row ``start``, if anything."""
    sparse = sp.issparse(block)
    values = block.data if sparse else block

    def told(wrong: Array, what: str, more: str = "") -> str:
        flat = int(np.flatnonzero(wrong)[0])
        row, column = _position(block, flat)
        where = " has" if start is None else f": rows {start} to {start + block.shape[0] - 1} hold"
        return (
            f"{label}{where} {int(wrong.sum())} {what} entries (the first is {values.ravel()[flat]:g} at "
            f"row {row + (start or 0)}, column {column}{more})"
        )

    # NaN in a sparse matrix is refused even where NaN may stand for "missing": a zero row does.
    bad = np.isinf(values) if allow_missing and not sparse else ~np.isfinite(values)
    if bad.any():
        if not np.isnan(values[bad]).all():
            remedy = "correct them: infinite values are not missing values"
        elif sparse:
            remedy = "a sparse matrix cannot hold missing values; pass a dense array"
        return f"{told(bad, 'NaN or infinite')}; {remedy}"
    if not allow_negative and (values < 0).any():
        return (
            f"Negative values in data passed to {caller}: "
            f"{told(values < 0, 'negative', f'; min {np.nanmin(values):g}')}; shift it, or use "
            "scale='minmax' or scale='standard'"
        )
    return None


def _position(X: Matrix, flat: int) -> tuple[int, int]:
    if sp.issparse(X):
        return int(np.searchsorted(X.indptr, flat, side="right") - 1), int(X.indices[flat])
    row, column = np.unravel_index(flat, X.shape)
    return int(row), int(column)


def _is_symmetric(X: sp.csr_array) -> bool:
    """Whether X is its own transpose."""
    if not X.has_canonical_format or not X.data.all():
        return abs(X - X.T).max() == 0
    if (np.bincount(X.indices, minlength=X.shape[0]) != np.diff(X.indptr)).any():
        return False
    turned = X.tocsc()
    return np.array_equal(X.indices, turned.indices) and np.array_equal(X.data, turned.data)


def hint_at_graphs(matrices: list[Matrix], names: list[str]) -> None:
    """A symmetric sparse table with a column for every sample is most likely a graph."""
    found = [
        name
        for X, name in zip(matrices, names, strict=True)
        if sp.issparse(X) and X.shape[0] == X.shape[1] and X.nnz and X.data.min() >= 0
        if _is_symmetric(X)
    ]
    if found:
        warn_user(
            f"views {found} have as many columns as samples, and are symmetric: if they are links "
            f"between them, pass manyview.GraphView({found[0]})"
        )


#: Files are loaded if they take no more bytes than this together, and read by rows otherwise.
LOAD_LIMIT = 2**28


def as_views(
    data: Any,
    views: Sequence[int] | Sequence[str] | dict[str, Any] | None = None,
    *,
    allow_negative: Rule = False,
    allow_missing: Rule = False,
    zero_is_missing: Rule = True,
    allow_files: bool = False,
    allow_relations: bool = False,
    min_samples: int = 2,
    caller: str = "manyview",
    remedy: str = "remove or impute them",
) -> Views:
    """Validate ``data`` as several views of the same samples.

    Parameters
    ----------
    data : list or tuple of 2-D arrays, dict of name → array, one 2-D array, or a container
        Arrays may be paths of files (.npy, HDF5, Zarr, Parquet, .h5ad), NumPy, SciPy sparse,
        pandas or polars DataFrames, xarray DataArrays or
        AnnData; those with ids of their rows are aligned on them (the ids of a polars frame are its
        one column of text, or one headed as ids). Containers: MuData (modalities), xarray Dataset
        (variables), AnnData. A list whose items are 2-D is a list of views; a list of rows is one
        array.
    views : sequence or dict, optional
        For one 2-D array: how many columns each view takes, in order, or a dict of such numbers or of
        lists of columns by the names of the views; ``None`` means one view. For a
        list: a name for each view. For a dict, a container or a DataFrame with two levels of columns
        (views by the first): which of its parts to use; for one AnnData among "X", the names in
        layers and in obsm.
    allow_negative : bool or function of a view's name
        Whether negative entries pass (a shifting scale will deal with them).
    allow_missing : bool or function of a view's name
        Whether NaN passes, and tables may lack ids that others have: they get rows of NaN, or of
        zeros if sparse.
    zero_is_missing : bool or function of a view's name
        Whether a sparse row of zeros may stand for a missing one.
    allow_files : bool
        Whether large views may stay in their files, read by rows; otherwise they are loaded.
    allow_relations : bool
        Whether graphs, kernels and distances (`GraphView`, …) pass; otherwise views are features.
    min_samples : int
        Fewest samples accepted: 2 to fit, 1 to predict.
    caller : str
        Who is asking, for the messages.
    remedy : str
        What to do about NaN where it is not allowed, for the message.

    Returns
    -------
    Views
        Matrices, names, numbers of features, and names of samples and features where known.

    Examples
    --------
    >>> import numpy as np
    >>> v = as_views({"rna": np.ones((4, 3)), "protein": np.ones((4, 2))})
    >>> v.names, v.n_features
    (('rna', 'protein'), (3, 2))
    """
    negative, missing, zeros = (
        rule if callable(rule) else lambda name, rule=rule: rule
        for rule in (allow_negative, allow_missing, zero_is_missing)
    )
    given = collect(data, views)
    names, matrices = given.names, _loaded(given, allow_files)
    for X, name, item in zip(matrices, names, given.items, strict=True):
        for n, listed in zip(X.shape, (item.ids, item.features), strict=True):
            if listed is not None and len(listed) != n:
                raise ValueError(f"view {name!r} has shape {X.shape} but {len(listed)} names")
    for X, name in zip(matrices, names, strict=True):
        if isinstance(X, Relation):
            if not allow_relations:
                raise ValueError(
                    f"view {name!r} is a {X.kind}, and {caller} works on features; use RobustWMNMF, or "
                    f"pass {type(X).__name__}(...).as_features(), a nonnegative table made of it"
                )
            X.check(name)
    sample_names, matrices, filled = align(given, matrices, missing, zeros)
    n = matrices[0].shape[0]
    for X, name in zip(matrices, names, strict=True):
        if X.shape[1] == 0:
            raise ValueError(
                f"view {name!r} has 0 feature(s) (shape=({X.shape[0]}, 0)) while a minimum of 1 is "
                "required; leave the view out"
            )
        if X.shape[0] != n:
            raise ValueError(
                f"views must describe the same samples: {names[0]!r} has {n} rows, {name!r} has "
                f"{X.shape[0]}"
            )
    if n < min_samples:
        raise ValueError(
            f"{caller} needs at least {min_samples} sample{'s' * (min_samples > 1)}, got "
            f"n_samples = {n}{' (1 sample)' * (n == 1)}" + ("; there are no rows" if n == 0 else "")
        )
    for X, item, name in zip(matrices, given.items, names, strict=True):
        # Of what was loaded from a file, the file is named as well.
        label = item.matrix.label if is_streamed(item.matrix) else f"view {name!r}"
        if not isinstance(X, Relation):
            check_values(X, label, negative(name), missing(name), caller, remedy)
    if allow_relations:
        hint_at_graphs(matrices, names)
    features = tuple(
        as_texts(sample_names)
        if isinstance(X, Relation) and sample_names is not None
        else item.features
        for X, item in zip(matrices, given.items, strict=True)
    )
    return Views(tuple(matrices), tuple(names), features, sample_names, filled)


def _loaded(given: Collection, allow_files: bool) -> list[Matrix]:
    """The views as matrices; large ones stay in their files where that is allowed."""
    held = [item.matrix for item in given.items]
    for X, name in zip(held, given.names, strict=True):
        if isinstance(X, RowSource) and not type(X).__module__.startswith("manyview."):
            check_source(X, name)
    large = sum(X.nbytes for X in held if is_streamed(X)) > LOAD_LIMIT

    def stays(X: Matrix) -> bool:
        # Rows of a dask array would be computed anew for each reading: only workers leave it there.
        return allow_files and (X.keep or (large and not isinstance(X, DaskMatrix)))

    for X in filter(is_streamed, held):
        if stays(X) and isinstance(X, DiskMatrix):
            X.stay()
    return [
        as_matrix(X.load() if is_streamed(X) and not stays(X) else X, name)
        for X, name in zip(held, given.names, strict=True)
    ]
