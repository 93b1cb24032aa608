"""Whatever users hold → Views: samples aligned by their ids, every value checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix, Views
from manyview._warn import warn_user
from manyview.engines.dask.source import DaskMatrix
from manyview.engines.numpy.relations import Relation
from manyview.engines.numpy.sources import is_streamed, looking_rows
from manyview.engines.threads import blocks

from .containers import collect
from .ids import keys_of, places, refuse_lookalikes, refuse_repeated, take_rows
from .items import TOO_LARGE, Collection, as_texts

#: Files are loaded if they take no more bytes than this together, and read by rows otherwise.
LOAD_LIMIT = 2**28


def as_views(
    data: Any,
    views: Sequence[int] | Sequence[str] | None = None,
    *,
    allow_negative: bool = False,
    allow_missing: bool = False,
    zero_is_missing: Callable[[str], bool] | bool = True,
    allow_files: bool = False,
    allow_relations: bool = False,
    min_samples: int = 2,
    caller: str = "manyview",
) -> Views:
    """Validate ``data`` as several views of the same observations.

    Parameters
    ----------
    data : list or tuple of 2-D arrays, dict of name → array, one 2-D array, or a container
        Arrays may be paths of files (.npy, HDF5, Zarr, Parquet, .h5ad), NumPy, SciPy sparse,
        pandas or polars DataFrames, xarray DataArrays or
        AnnData; those with ids of their rows are aligned on them (the ids of a polars frame are its
        one column of text, or one headed as ids). Containers: MuData (modalities), xarray Dataset
        (variables), AnnData. A list whose items are 2-D is a list of views; a list of rows is one
        array.
    views : sequence of int or of str, optional
        For one 2-D array: how many columns each view takes, in order; ``None`` means one view. For a
        dict or container: which of its parts to use; for one AnnData among "X", the names in
        layers and in obsm.
    allow_negative : bool
        Whether negative entries pass (a shifting scale will deal with them).
    allow_missing : bool
        Whether NaN passes, and tables may lack ids that others have: they get rows of NaN, or of
        zeros if sparse.
    zero_is_missing : bool or callable
        Whether a sparse row of zeros may stand for a missing one; or what tells it of a view's name.
    allow_files : bool
        Whether large views may stay in their files, read by rows; otherwise they are loaded.
    allow_relations : bool
        Whether graphs, kernels and distances (`GraphView`, …) pass; otherwise views are features.
    min_samples : int
        Fewest observations accepted: 2 to fit, 1 to predict.
    caller : str
        Who is asking, for the messages.

    Returns
    -------
    Views
        Matrices, names, numbers of features, and names of observations and features where known.

    Examples
    --------
    >>> import numpy as np
    >>> v = as_views({"rna": np.ones((4, 3)), "protein": np.ones((4, 2))})
    >>> v.names, v.n_features
    (('rna', 'protein'), (3, 2))
    """
    given = collect(data, views)
    names = given.names
    held = [item.matrix for item in given.items]
    large = sum(X.nbytes for X in held if is_streamed(X)) > LOAD_LIMIT
    # Rows of a dask array would be computed anew for each reading: only workers leave it where it is.
    stay = [
        allow_files and (X.keep or (large and not isinstance(X, DaskMatrix)))
        if is_streamed(X)
        else True
        for X in held
    ]
    matrices = [
        _as_matrix(X if stays else X.load(), name)
        for name, X, stays in zip(names, held, stay, strict=True)
    ]
    for X, name, item in zip(matrices, names, given.items, strict=True):
        for n, listed in zip(X.shape, (item.ids, item.features), strict=True):
            if listed is not None and len(listed) != n:
                raise ValueError(f"view {name!r} has shape {X.shape} but {len(listed)} names")
    for X, name in zip(matrices, names, strict=True):
        if isinstance(X, Relation):
            _check_relation(X, name, allow_relations, caller)
    sample_names, matrices = _align(given, matrices, allow_missing, zero_is_missing)
    _check_shapes(matrices, names, min_samples, caller)
    for X, given_X, name in zip(matrices, held, names, strict=True):
        # Of what was loaded from a file, the file is named as well.
        label = given_X.label if is_streamed(given_X) else f"view {name!r}"
        if isinstance(X, Relation):
            continue
        _check_values(X, label, allow_negative, allow_missing, caller)
    if allow_relations:
        _hint_at_graphs(matrices, names)
    features = tuple(
        as_texts(sample_names)
        if isinstance(X, Relation) and sample_names is not None
        else item.features
        for X, item in zip(matrices, given.items, strict=True)
    )
    return Views(tuple(matrices), tuple(names), features, sample_names)


def _hint_at_graphs(matrices: list[Matrix], names: list[str]) -> None:
    """A symmetric sparse table with a column for every observation is most likely a graph."""
    found = [
        name
        for X, name in zip(matrices, names, strict=True)
        if sp.issparse(X) and X.shape[0] == X.shape[1] and X.nnz and X.data.min() >= 0
        if abs(X - X.T).max() == 0
    ]
    if found:
        warn_user(
            f"views {found} have as many columns as observations, and are symmetric: if they are links "
            f"between them, pass manyview.GraphView({found[0]})"
        )


def _check_relation(X: Relation, name: str, allowed: bool, caller: str) -> None:
    if not allowed:
        raise ValueError(
            f"view {name!r} is a {X.kind}, and {caller} works on features; use RobustWMNMF, or pass "
            f"{type(X).__name__}(...).as_features(), a nonnegative table made of it"
        )
    X.check(name)


def _align(
    given: Collection,
    matrices: list[Matrix],
    allow_missing: bool,
    zero_is_missing: Callable[[str], bool] | bool,
) -> tuple[Array | None, list[Matrix]]:
    """Bring views with ids to one order, by default the first one's; plain arrays have none.

    Where only one table has ids, or all views are parts of one, nothing is moved: as many rows come
    out as were given, whatever their ids are.
    """
    names, ids = given.names, [item.ids for item in given.items]
    named = [s for s, listed in enumerate(ids) if listed is not None]
    if not named:
        return None, matrices
    labels = {s: f"view {names[s]!r}" for s in named}
    first = named[0]
    reference = np.asarray(ids[first])
    keys = {first: keys_of(reference, labels[first])}
    if given.index is None and all(ids[s] is ids[first] for s in named):
        return reference, matrices
    keys |= {s: keys_of(ids[s], labels[s]) for s in named[1:]}  # type: ignore[arg-type]
    for s in named:
        refuse_repeated(keys[s], labels[s])
    wanted = keys[first]
    everywhere = len(named) == len(names)
    if allow_missing and everywhere:
        reference, wanted = _everyone(given, keys, labels)
    elif any(keys[s] != wanted for s in named):
        refuse_lookalikes([keys[s] for s in named], [labels[s] for s in named])
    aligned = list(matrices)
    for s in named:
        if keys[s] == wanted:
            continue
        rows = places(wanted, keys[s])
        lacking = int((rows < 0).sum())
        if not (allow_missing and everywhere):
            _check_same_samples(names, first, s, len(wanted), len(keys[s]), lacking, everywhere)
        stands_in = zero_is_missing(names[s]) if callable(zero_is_missing) else zero_is_missing
        if lacking and sp.issparse(matrices[s]) and not stands_in:
            raise ValueError(
                f"view {names[s]!r} is sparse and lacks {lacking} of the {len(wanted)} samples, and a "
                "row of zeros is a value here; pass it dense, or use RobustWMNMF with "
                "zero_rows='missing'"
            )
        if is_streamed(matrices[s]):
            raise ValueError(
                f"{matrices[s].label} lists the samples in another order than {names[first]!r}, or not "
                "the same ones; views read from files by rows must list the same samples in one order"
            )
        aligned[s] = take_rows(matrices[s], rows)
    return reference, aligned


def _everyone(
    given: Collection, keys: dict[int, list[Any]], labels: dict[int, str]
) -> tuple[Array, list[Any]]:
    """The ids of all observations, as they are and as they are compared: the container's, or the union."""
    if given.index is None:
        if any(keys[s] != keys[0] for s in keys):
            _refuse_strangers(given.names, list(keys.values()))
            refuse_lookalikes(list(keys.values()), list(labels.values()))
        return _union([np.asarray(item.ids) for item in given.items], list(keys.values()))
    wanted = keys_of(given.index, "the container")
    refuse_repeated(wanted, "the container")
    known = set(wanted)
    for s, listed in keys.items():
        unknown = [key for key in listed if key not in known]
        if unknown:
            raise ValueError(
                f"{labels[s]} has {len(unknown)} observations that the container's obs_names lack, the "
                f"first being {unknown[0]!r}; call its update() first"
            )
    return given.index, wanted


def _check_same_samples(
    names: list[str], first: int, s: int, n_first: int, n: int, lacking: int, everywhere: bool
) -> None:
    shared = n_first - lacking
    if shared < max(n_first, n):
        raise ValueError(
            f"views {names[first]!r} ({n_first} samples) and {names[s]!r} ({n} samples) share only "
            f"{shared} sample ids; select the shared ids in every view first"
        )
    if not everywhere:
        raise ValueError(
            f"views {names[first]!r} and {names[s]!r} list the same samples in another order, and "
            "other views are plain arrays without ids; pass DataFrames for all, or one order"
        )


def _refuse_strangers(names: list[str], keys: list[list[Any]]) -> None:
    """Every view must share an id with the others, if only over a third one."""
    reached, waiting = set(keys[0]), list(range(1, len(keys)))
    while waiting:
        new = [s for s in waiting if not reached.isdisjoint(keys[s])]
        if not new:
            s = waiting[0]
            raise ValueError(
                f"view {names[s]!r} shares no sample id with the others: {names[0]!r} has "
                f"{next(iter(keys[0]), None)!r}, {names[s]!r} has {next(iter(keys[s]), None)!r}; "
                "give one sample one id everywhere, as text or as a number"
            )
        reached.update(*(keys[s] for s in new))
        waiting = [s for s in waiting if s not in new]


def _union(listed: list[Array], keys: list[list[Any]]) -> tuple[Array, list[Any]]:
    """Every id once, in order of appearance; of the ids' own type where all have the same."""
    seen: dict[Any, Any] = {}
    for ids, found in zip(listed, keys, strict=True):
        samples = list(ids) if ids.dtype.kind in "mM" else ids.tolist()
        for sample, key in zip(samples, found, strict=True):
            seen.setdefault(key, sample)
    if len(seen) == len(listed[0]):
        return listed[0], keys[0]
    union = np.empty(len(seen), dtype=object)
    union[:] = list(seen.values())
    same = all(ids.dtype == listed[0].dtype for ids in listed)
    return union.astype(listed[0].dtype) if same else union, list(seen)


def _as_matrix(item: Any, name: str) -> Matrix:
    """A float32 or float64 array or CSR matrix; other numbers become float64."""
    if is_streamed(item) or isinstance(item, Relation):
        return item
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
        if isinstance(item, np.ma.MaskedArray) and item.dtype != object:
            item = np.ma.filled(item.astype(float), np.nan)
        try:
            # One memory order, so that every container gives the same bits.
            X = np.asarray(item, order="C")
        except ValueError as error:
            raise ValueError(
                f"view {name!r} is not a rectangular table of numbers: {error}"
            ) from error
        if X.ndim == 0:
            raise ValueError(
                f"Expected 2D array for view {name!r} (observations × features), got a "
                f"{type(item).__name__}; pass an array or a table of numbers"
            )
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
    except OverflowError as error:
        row, column = next(
            (i, j)
            for i, j in np.ndindex(X.shape)
            if isinstance(X[i, j], int) and _overflows(X[i, j])
        )
        raise ValueError(
            f"view {name!r} has an entry too large for a floating-point number at row {row}, column "
            f"{column}; {TOO_LARGE}"
        ) from error
    except (TypeError, ValueError) as error:
        # An object that can never be a number is a TypeError, a text that is none a ValueError.
        raise type(error)(f"view {name!r} has entries that are not numbers: {error}") from error


def _overflows(number: int) -> bool:
    return abs(number) > float(np.finfo(np.float64).max)  # exact: one of Python's is an integer


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
            f"{caller} needs at least {min_samples} observation{'s' * (min_samples > 1)}, got "
            f"n_samples = {n}{' (1 sample)' * (n == 1)}" + ("; there are no rows" if n == 0 else "")
        )


def _check_values(
    X: Matrix, label: str, allow_negative: bool, allow_missing: bool, caller: str
) -> None:
    if is_streamed(X):
        _check_file(X, allow_negative, caller)
        return
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
