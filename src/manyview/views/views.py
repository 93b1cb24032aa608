"""Whatever users hold → Views: samples aligned by their ids, every value checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from manyview._types import Matrix, Views
from manyview.engines.dask.source import DaskMatrix
from manyview.engines.files.disk import DiskMatrix
from manyview.engines.numpy.relations import Relation
from manyview.engines.numpy.sources import is_streamed

from .align import align
from .checks import (
    check_relation,
    check_shapes,
    check_values,
    hint_at_graphs,
)
from .containers import collect
from .items import Collection, as_texts
from .numbers import as_matrix

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
        list: a name for each view. For a dict, a container or a DataFrame with two levels of columns
        (views by the first): which of its parts to use; for one AnnData among "X", the names in
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
    names, matrices = given.names, _loaded(given, allow_files)
    for X, name, item in zip(matrices, names, given.items, strict=True):
        for n, listed in zip(X.shape, (item.ids, item.features), strict=True):
            if listed is not None and len(listed) != n:
                raise ValueError(f"view {name!r} has shape {X.shape} but {len(listed)} names")
    for X, name in zip(matrices, names, strict=True):
        if isinstance(X, Relation):
            check_relation(X, name, allow_relations, caller)
    sample_names, matrices, filled = align(given, matrices, allow_missing, zero_is_missing)
    check_shapes(matrices, names, min_samples, caller)
    for X, item, name in zip(matrices, given.items, names, strict=True):
        # Of what was loaded from a file, the file is named as well.
        label = item.matrix.label if is_streamed(item.matrix) else f"view {name!r}"
        if not isinstance(X, Relation):
            check_values(X, label, allow_negative, allow_missing, caller)
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
