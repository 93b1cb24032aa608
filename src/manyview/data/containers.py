"""The containers users hold, taken apart into matrices with the names of their rows and columns.

Libraries are recognised by the type of what is passed, never imported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._arrays import is_tensor, on_host
from manyview._types import Array
from manyview.engines.dask.source import DaskMatrix, is_lazy
from manyview.engines.files.disk import DiskMatrix, is_open_file
from manyview.engines.files.formats import INSIDE, STREAMABLE
from manyview.engines.files.headings import is_id_heading
from manyview.engines.numpy.relations import Relation

from .pairs import pairs_by_name, pairwise

#: What to do about numbers that have no place among the doubles.
TOO_LARGE = (
    "its size must be below 1.8e308: divide the feature by a constant, or take its logarithm"
)


@dataclass(frozen=True, eq=False)
class Item:
    """One view as it came: a table, and the ids of its rows and names of its columns if known.

    Views that share one array of ids, not just its values, are parts of one table: their rows are the
    same observations without any matching.
    """

    matrix: Any
    ids: Array | None = None
    features: Array | None = None


@dataclass(frozen=True, eq=False)
class Collection:
    """Views as they came: ``by_name`` if they carry names of their own rather than positions.

    ``index`` lists the observations where the container does; ``single`` says that it was one array.
    """

    names: list[str]
    items: list[Item]
    by_name: bool = False
    single: bool = False
    index: Array | None = None


def collect(data: Any, views: Any = None) -> Collection:
    """Whatever users hold → named items; ``views`` splits one array, or names parts of a container."""
    if isinstance(data, Collection):
        return data
    refuse_nothing(data)
    if isinstance(data, Relation):
        raise ValueError(f"got a {type(data).__name__} alone; pass a list or dict of views: [view]")
    if hasattr(data, "views") and hasattr(data, "labels"):
        raise ValueError(f"got a whole {type(data).__name__}; pass its .views")
    if views is not None and (isinstance(views, str) or not hasattr(views, "__iter__")):
        raise ValueError(f"views must list how many columns each view takes, got {views!r}")
    chosen = None if views is None else list(views)
    if _is_a(data, "AnnData"):
        return _from_anndata(data, chosen)
    if _is_a(data, "MuData"):
        return _from_mudata(data, chosen)
    if _is_a(data, "Dataset"):
        return _from_dataset(data, chosen)
    if is_single(data):
        item = as_item(data, "view0", alone=True)
        if chosen is None:
            return Collection(["view0"], [item], single=True)
        items = _split_columns(item, chosen)
        return Collection([f"view{s}" for s in range(len(items))], items, single=True)
    if chosen is not None and not _are_names(chosen):
        raise ValueError(
            f"views={chosen} splits the columns of one array, but {len(data)} views were "
            "passed already; leave views=None"
        )
    if not isinstance(data, Mapping):
        names = [f"view{s}" for s in range(len(data))]
        return Collection(names, [as_item(X, n) for X, n in zip(data, names, strict=True)])
    return _from_mapping(data, chosen)


def refuse_nothing(data: Any) -> None:
    if sp.issparse(data) or _is_a(data, "Dataset"):  # Mappings as well
        return
    if isinstance(data, list | tuple | Mapping) and len(data) == 0:
        raise ValueError(
            f"at least one view is needed, got an empty {type(data).__name__}; pass a 2-D array "
            "(observations × features), or a list or dict of them"
        )


def tensor_among(data: Any) -> Any:
    """The first tensor among the views (its device is where results are wanted), or None."""
    held = data.values() if isinstance(data, Mapping) else data
    held = held if isinstance(held, list | tuple) or isinstance(data, Mapping) else [held]
    return next((item for item in held if is_tensor(item)), None)


def is_single(data: Any) -> bool:
    """Whether ``data`` is one 2-D array rather than a collection of views."""
    if sp.issparse(data):  # first: a DOK matrix is a Mapping as well
        return True
    if isinstance(data, Mapping | Collection) or _is_a(data, "AnnData") or _is_a(data, "MuData"):
        return False
    return not (isinstance(data, list | tuple) and any(_ndim(item) == 2 for item in data))


def as_item(data: Any, name: str, alone: bool = False) -> Item:
    """One table of any kind. ``alone``: all its columns are features, none may be ids."""
    if isinstance(data, Item):
        return data
    if isinstance(data, Relation):
        return Item(data, data.ids)
    if isinstance(data, str | os.PathLike):
        _check_kind(data, name)
        return _from_file(DiskMatrix(data, keep=False, view=name), name)
    if isinstance(data, DiskMatrix):
        return _from_file(copy(data), name)
    if is_lazy(data):
        lazy = DaskMatrix(data, name)
        return Item(lazy, lazy.ids, None if lazy.features is None else _texts(lazy.features))
    if is_open_file(data):
        return _from_file(DiskMatrix.around(data, name), name)
    if _is_a(data, "AnnData"):
        return _annotated(data, data.X, name)
    if _is_polars(data):
        return _from_polars(data, name, alone)
    if _is_a(data, "DataArray"):
        return _from_dataarray(data, name)
    if is_frame(data):
        return Item(_numeric_frame(data, name), np.array(data.index), _texts(data.columns))
    return Item(_from_tensor(data, name) if is_tensor(data) else data)


def _from_tensor(data: Any, name: str) -> Array:
    """As NumPy has it; what it has no type for (bfloat16) in float32."""
    if str(data.layout) != "torch.strided":
        raise ValueError(
            f"view {name!r} is a sparse tensor ({data.layout}); pass a SciPy sparse matrix, which "
            "stays sparse, or data.to_dense()"
        )
    return on_host(data.float() if str(data.dtype) == "torch.bfloat16" else data)


def _check_kind(path: str | os.PathLike[str], name: str) -> None:
    text = os.fspath(path)
    if not text.partition(INSIDE)[0].lower().endswith(STREAMABLE):
        raise ValueError(
            f"view {name!r} is the text {text!r}; as names of files only those ending in "
            f"{', '.join(STREAMABLE)} are views. Read another first, a table for example by "
            f"pandas.read_csv(name, index_col=0), or use the command `manyview fit`, which also reads "
            ".csv, .tsv, .txt, .npz, .mat, .mtx and .h5mu"
        )


def _from_file(matrix: DiskMatrix, name: str) -> Item:
    matrix.view = name
    features = matrix.rows.features
    return Item(matrix, matrix.rows.ids, None if features is None else _texts(features))


def _from_mapping(data: Mapping, chosen: list | None) -> Collection:
    names = [str(name) for name in data]
    if len(set(names)) < len(names):
        raise ValueError(f"view names must differ as text, got {list(data)}")
    held = dict(zip(names, data.values(), strict=True))
    names = names if chosen is None else _selected(chosen, names, "the views")
    return Collection(names, [as_item(held[name], name) for name in names], by_name=True)


def _selected(chosen: list, known: list[str], where: str) -> list[str]:
    if not _are_names(chosen):
        raise ValueError(f"views must name some of {where} {known}, got {chosen}")
    for name in chosen:
        if name not in known:
            raise ValueError(f"views names {name!r}, but {where} are {known}")
    _refuse_twice(chosen)
    return list(chosen)


def _refuse_twice(names: list[str]) -> None:
    for s, name in enumerate(names):
        if name in names[:s]:
            raise ValueError(f"views names {name!r} twice; a view counts once, so leave one out")


def _are_names(chosen: list) -> bool:
    return bool(chosen) and all(isinstance(name, str) for name in chosen)


# --- one array ---------------------------------------------------------------------------------


def _split_columns(item: Item, widths: list) -> list[Item]:
    if not widths or any(
        isinstance(m, bool) or not isinstance(m, Integral) or m < 1 for m in widths
    ):
        raise ValueError(
            f"views must list how many columns each view takes (1 or more); got {widths}"
        )
    X: Any = item.matrix if hasattr(item.matrix, "shape") else np.asarray(item.matrix)
    if isinstance(X, DiskMatrix):
        raise ValueError(f"{X.label} cannot be split by columns; write one file for each view")
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array to split into views, got {X.ndim}D array instead")
    if sum(widths) != X.shape[1]:
        raise ValueError(
            f"views={widths} adds up to {sum(widths)} columns, but X has {X.shape[1]} features"
        )
    X = X.tocsc() if sp.issparse(X) else X
    parts, ends = [], np.cumsum(widths)
    for width, end in zip(widths, ends, strict=True):
        part = slice(end - width, end)
        names = None if item.features is None else item.features[part]
        some = X.columns(part) if isinstance(X, DaskMatrix) else X[:, part]
        parts.append(replace(item, matrix=some, features=names))
    return parts


def _ndim(item: Any) -> int:
    if isinstance(item, str | os.PathLike):  # the name of a file
        return 2
    if hasattr(item, "ndim"):
        return item.ndim
    if hasattr(item, "shape"):  # polars, AnnData
        return len(item.shape)
    try:
        return np.ndim(item)
    except ValueError:  # ragged
        return 0


def is_frame(item: Any) -> bool:
    return hasattr(item, "iloc") and hasattr(item, "columns")


def _texts(names: Any) -> Array:
    return np.array([str(name) for name in names], dtype=object)


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
        except OverflowError as error:
            raise ValueError(
                f"view {name!r} has an entry too large for a floating-point number in the column "
                f"{frame.columns[j]!r}; {TOO_LARGE}"
            ) from error
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"view {name!r} has the non-numeric column {frame.columns[j]!r} ({error}); "
                "drop it, set it as the index, or encode it as numbers"
            ) from error
    return np.column_stack(columns) if columns else np.empty(frame.shape)


# --- other libraries ---------------------------------------------------------------------------

LIBRARIES = {
    "AnnData": "anndata",
    "MuData": "mudata",
    "Dataset": "xarray",
    "DataArray": "xarray",
    "LazyFrame": "polars",
    "DataFrame": "polars",
}


def _is_a(item: Any, cls: str) -> bool:
    return any(
        c.__name__ == cls and c.__module__.split(".")[0] == LIBRARIES[cls]
        for c in type(item).__mro__
    )


def _is_polars(item: Any) -> bool:
    if _is_a(item, "LazyFrame"):
        raise ValueError("got a polars LazyFrame; pass the result of its .collect()")
    return _is_a(item, "DataFrame")


def _from_polars(frame: Any, name: str, alone: bool) -> Item:
    """A polars frame has no index: its one column of text, or one headed as ids, names the rows."""
    texts = [c for c, kind in frame.schema.items() if _holds_text(kind)]
    if not alone and not texts and frame.columns:
        first = frame.columns[0]
        distinct = frame[first].n_unique() == frame.height
        texts = [first] if is_id_heading(first, distinct) else []
    ids = texts[0] if len(texts) == 1 and not alone else None
    features = [column for column in frame.columns if column != ids]
    for column in features:
        kind = frame.schema[column]
        if not kind.is_numeric() and str(kind) not in ("Boolean", "Null"):
            raise ValueError(
                f"view {name!r} has the non-numeric column {column!r} ({kind}); drop it, encode it "
                "as numbers, or, if it holds the sample ids, leave it the only column of text"
                + (" and pass the frame in a dict of views" if alone else "")
            )
    names = None if ids is None else np.array(frame[ids].to_list(), dtype=object)
    matrix = frame.select(features).to_numpy()
    return Item(matrix, names, _texts(features))


def _holds_text(kind: Any) -> bool:
    return str(kind).startswith(("String", "Utf8", "Categorical", "Enum"))


def _from_dataarray(array: Any, name: str, samples: Any = None) -> Item:
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array for view {name!r} (observations × features), got {array.ndim}D "
            f"array instead with the dimensions {list(array.dims)}"
        )
    if samples is not None:
        array = array.transpose(samples, ...)
    rows, columns = (array.indexes.get(dim) for dim in array.dims)
    return Item(
        array.values,
        None if rows is None else np.array(rows),
        None if columns is None else _texts(columns),
    )


def _from_dataset(data: Any, chosen: list | None) -> Collection:
    """Each two-dimensional variable is a view; the dimension they share lists the observations."""
    known = [str(name) for name in data.data_vars]
    names = known if chosen is None else _selected(chosen, known, "the variables of the Dataset")
    variables = [data[name] for name in names]
    for name, variable in zip(names, variables, strict=True):
        if variable.ndim != 2:
            raise ValueError(
                f"the variable {name!r} of the Dataset has {variable.ndim} dimension(s) "
                f"{list(variable.dims)}, a view has two; choose the views by views=[...]"
            )
    if not names:
        raise ValueError("at least one view is needed, got a Dataset without variables")
    shared = [dim for dim in variables[0].dims if all(dim in v.dims for v in variables)]
    if not shared:
        raise ValueError(
            f"the variables {names} of the Dataset share no dimension; the observations must be "
            "one dimension of all of them"
        )
    items = [_from_dataarray(v, n, shared[0]) for v, n in zip(variables, names, strict=True)]
    return Collection(names, _of_one_table(items), by_name=True)


def _of_one_table(items: list[Item]) -> list[Item]:
    return [replace(item, ids=items[0].ids) for item in items]


def _annotated(data: Any, matrix: Any, name: str, features: Any = None) -> Item:
    if matrix is None:
        raise ValueError(f"view {name!r} is an AnnData without X; choose a layer or obsm instead")
    if getattr(data, "isbacked", False) and not data.is_view and _is_X(matrix):
        item = _from_file(DiskMatrix(data.filename, keep=False), name)
        # Names may have been changed since the file was opened.
        return replace(item, ids=np.array(data.obs_names), features=_texts(data.var_names))
    if hasattr(matrix, "to_memory"):  # a file opened in "backed" mode
        matrix = matrix.to_memory()
    if is_frame(matrix):
        features, matrix = matrix.columns, _numeric_frame(matrix, name)
    elif features is None and matrix.shape[1] == data.n_vars:
        features = data.var_names
    return Item(
        matrix if sp.issparse(matrix) else np.asarray(matrix),
        np.array(data.obs_names),
        None if features is None else _texts(features),
    )


def _is_X(matrix: Any) -> bool:
    """Whether a part of a backed AnnData is its X, dense or sparse."""
    return getattr(getattr(matrix, "group", matrix), "name", None) == "/X"


def _from_anndata(data: Any, chosen: list | None) -> Collection:
    """views=["X", "counts", "obsm:protein"]: X, layers and obsm; a bare name if it is unique."""
    places: dict[str, Any] = {} if data.X is None else {"X": lambda: data.X}
    places |= {f"layers:{key}": lambda key=key: data.layers[key] for key in data.layers}
    places |= {f"obsm:{key}": lambda key=key: data.obsm[key] for key in data.obsm}
    if chosen is None:
        if list(places) != ["X"]:
            raise ValueError(
                f"the AnnData holds {', '.join(places)}; say which are views of the same "
                "observations, for example views=['X', 'obsm:protein']"
            )
        chosen = ["X"]
    places |= {f"obsp:{key}": lambda key=key: data.obsp[key] for key in data.obsp}
    if not _are_names(chosen):
        raise ValueError(f"views must name some of {list(places)} of the AnnData, got {chosen}")
    _refuse_twice(chosen)
    items = []
    for name in chosen:
        matching = [place for place in places if name in (place, place.partition(":")[2])]
        if len(matching) != 1:
            raise ValueError(
                f"views names {name!r}, which is {len(matching)} of {list(places)} in the AnnData; "
                "write layers:NAME, obsm:NAME or obsp:NAME"
            )
        place = matching[0]
        if place.startswith("obsp:"):
            items.append(Item(pairwise(places[place](), place), np.array(data.obs_names)))
            continue
        features = None if place.startswith("obsm:") else data.var_names
        matrix = places[place]()
        item = _annotated(data, matrix, name, features)
        items.append(
            item if is_frame(matrix) or features is not None else replace(item, features=None)
        )
    return Collection(list(chosen), _of_one_table(items), by_name=True)


def _from_mudata(data: Any, chosen: list | None) -> Collection:
    if getattr(data, "axis", 0) != 0:
        raise ValueError(
            f"the MuData shares axis {data.axis}; views must share the observations (axis=0)"
        )
    known = [str(name) for name in data.mod]
    pairs = pairs_by_name(data)
    where = "the modalities of the MuData"
    names = known if chosen is None else _selected(chosen, known + list(pairs), where)
    items = [
        Item(*pairs[name]()) if name in pairs else as_item(data.mod[name], name) for name in names
    ]
    return Collection(names, items, by_name=True, index=np.asarray(data.obs_names))
