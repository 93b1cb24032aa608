"""Users' data → named tables (`collect`), and each table → a matrix of numbers (`as_matrix`).

Containers of other libraries (AnnData, polars, xarray) are recognized by their type, never imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Set
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._arrays import is_tensor, on_host
from manyview._types import Array, Matrix
from manyview._warn import warn_user
from manyview.engines.dask.source import DaskMatrix, is_lazy
from manyview.engines.files.disk import DiskMatrix, is_open_file
from manyview.engines.files.formats import STREAMABLE
from manyview.engines.files.headings import is_id_heading
from manyview.engines.files.row_file import INSIDE
from manyview.engines.numpy.relations import DistanceView, GraphView, Relation
from manyview.engines.numpy.sources import is_streamed

#: What to do about numbers that have no place among the doubles.
TOO_LARGE = (
    "its size must be below 1.8e308: divide the feature by a constant, or take its logarithm"
)


@dataclass(frozen=True, eq=False)
class Item:
    """One view as it came: a table, and the ids of its rows and names of its columns if known.

    Views that share one array of ids, not just its values, are parts of one table: their rows are the
    same samples without any matching.
    """

    matrix: Any
    ids: Array | None = None
    features: Array | None = None
    #: How many samples a sparse matrix lacks, for which it has rows of zeros.
    filled: int = 0


@dataclass(frozen=True, eq=False)
class Collection:
    """Views as they came: ``by_name`` if they carry names of their own rather than positions.

    ``index`` lists the samples where the container does; ``single`` says that it was one array.
    """

    names: list[str]
    items: list[Item]
    by_name: bool = False
    single: bool = False
    index: Array | None = None


def from_file(matrix: DiskMatrix, name: str) -> Item:
    matrix.view = name
    for note in matrix.rows.notes:
        warn_user(f"{matrix.label}: {note}")
    features = matrix.rows.features
    return Item(matrix, matrix.rows.ids, None if features is None else as_texts(features))


def of_one_table(items: list[Item]) -> list[Item]:
    return [replace(item, ids=items[0].ids) for item in items]


def selected(chosen: list, known: list[str], where: str) -> list[str]:
    _check_names(chosen, f"{where} {known}")
    for name in chosen:
        if name not in known:
            raise ValueError(f"views names {name!r}, but {where} are {known}")
    return list(chosen)


def _check_names(chosen: list, where: str) -> None:
    if not _are_names(chosen):
        raise ValueError(f"views must name some of {where}, got {chosen}")
    _refuse_twice(chosen)


def _refuse_twice(names: list) -> None:
    for s, name in enumerate(names):
        if name in names[:s]:
            raise ValueError(f"views names {name!r} twice; name it once")


def _are_names(chosen: list) -> bool:
    return bool(chosen) and all(isinstance(name, str) for name in chosen)


def is_frame(item: Any) -> bool:
    return hasattr(item, "iloc") and hasattr(item, "columns")


def has_two_levels(data: Any) -> bool:
    """Whether data is a DataFrame whose columns have levels, the first of which names views."""
    return is_frame(data) and getattr(data.columns, "nlevels", 1) > 1


def as_texts(names: Any) -> Array:
    return np.array([str(name) for name in names], dtype=object)


def numeric_frame(frame: Any, name: str) -> Array:
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


# --- one view as a matrix of numbers --------------------------------------------------------------


def as_matrix(item: Any, name: str) -> Matrix:
    """A float32 or float64 array or CSR matrix; other numbers become float64."""
    if is_streamed(item) or isinstance(item, Relation):
        return item
    X = _sparse(item, name) if sp.issparse(item) else _dense(item, name)
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
    return _from_objects(X, name)


def _sparse(item: Any, name: str) -> Matrix:
    """A CSR matrix with one entry for every place."""
    if item.ndim != 2:
        raise ValueError(f"Expected 2D array for view {name!r}, got {item.ndim}D array instead")
    X = sp.csr_array(item)
    if not X.has_canonical_format:
        X = X.copy()  # the user's buffers are shared, and may be read-only
        X.sum_duplicates()
    return X


def _dense(item: Any, name: str) -> Array:
    """A two-dimensional array; what is masked becomes NaN."""
    if isinstance(item, np.ma.MaskedArray) and item.dtype != object:
        item = np.ma.filled(item.astype(float), np.nan)
    try:
        # One memory order, so that every container gives the same bits.
        X = np.asarray(item, order="C")
    except ValueError as error:
        raise ValueError(f"view {name!r} is not a rectangular table of numbers: {error}") from error
    if X.ndim == 0:
        raise ValueError(
            f"Expected 2D array for view {name!r} (samples × features), got a "
            f"{type(item).__name__}; pass an array or a table of numbers"
        )
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array for view {name!r} (samples × features), got {X.ndim}D array "
            + "instead. Reshape your data: "
            + (
                "X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) if it is one sample"
                if X.ndim == 1
                else "pass a list with one view per slice, such as list(X), or X.reshape(len(X), -1) "
                "to make all values of a sample features of one view"
            )
        )
    return X


def _from_objects(X: Matrix, name: str) -> Matrix:
    """Numbers of Python's own types as float64."""
    try:
        return X.astype(np.float64)
    except OverflowError as error:
        row, column = next(
            (i, j)
            for i, j in np.ndindex(X.shape)
            if isinstance(X[i, j], int) and abs(X[i, j]) > float(np.finfo(np.float64).max)
        )
        raise ValueError(
            f"view {name!r} has an entry too large for a floating-point number at row {row}, column "
            f"{column}; {TOO_LARGE}"
        ) from error
    except (TypeError, ValueError) as error:
        # An object that can never be a number is a TypeError, a text that is none a ValueError.
        raise type(error)(f"view {name!r} has entries that are not numbers: {error}") from error


# --- AnnData, polars, xarray ----------------------------------------------------------------------


LIBRARIES = {
    "AnnData": "anndata",
    "MuData": "mudata",
    "Dataset": "xarray",
    "DataArray": "xarray",
    "LazyFrame": "polars",
    "DataFrame": "polars",
}


def is_a(item: Any, cls: str) -> bool:
    return any(
        c.__name__ == cls and c.__module__.split(".")[0] == LIBRARIES[cls]
        for c in type(item).__mro__
    )


def from_polars(frame: Any, name: str, alone: bool) -> Item:
    """A polars frame has no index: its one column of text, or one headed as ids, names the rows."""
    words = ("String", "Utf8", "Categorical", "Enum")
    texts = [column for column, kind in frame.schema.items() if str(kind).startswith(words)]
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
                "as numbers, or, if it has the sample ids, make it the only column of text"
                + (" and pass the frame in a dict of views" if alone else "")
            )
    names = None if ids is None else np.array(frame[ids].to_list(), dtype=object)
    matrix = frame.select(features).to_numpy()
    return Item(matrix, names, as_texts(features))


def from_dataarray(array: Any, name: str, samples: Any = None) -> Item:
    if array.ndim != 2:
        raise ValueError(
            f"Expected 2D array for view {name!r} (samples × features), got {array.ndim}D "
            f"array instead with the dimensions {list(array.dims)}"
        )
    if samples is not None:
        array = array.transpose(samples, ...)
    rows, columns = (array.indexes.get(dim) for dim in array.dims)
    return Item(
        array.values,
        None if rows is None else np.array(rows),
        None if columns is None else as_texts(columns),
    )


def from_dataset(data: Any, chosen: list | None) -> Collection:
    """Each two-dimensional variable is a view; the dimension they share lists the samples."""
    known = [str(name) for name in data.data_vars]
    names = known if chosen is None else selected(chosen, known, "the variables of the Dataset")
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
            f"the variables {names} of the Dataset share no dimension; the samples must be "
            "one dimension of all of them"
        )
    items = [from_dataarray(v, n, shared[0]) for v, n in zip(variables, names, strict=True)]
    return Collection(names, of_one_table(items), by_name=True)


def annotated(data: Any, matrix: Any, name: str, features: Any = None) -> Item:
    if matrix is None:
        raise ValueError(f"view {name!r} is an AnnData without X; choose a layer or obsm instead")
    of_file = getattr(data, "isbacked", False) and not data.is_view
    if of_file and getattr(getattr(matrix, "group", matrix), "name", None) == "/X":
        item = from_file(DiskMatrix(data.filename, keep=False), name)
        # Names may have been changed since the file was opened.
        return replace(item, ids=np.array(data.obs_names), features=as_texts(data.var_names))
    if hasattr(matrix, "to_memory"):  # a file opened in "backed" mode
        matrix = matrix.to_memory()
    if is_frame(matrix):
        features, matrix = matrix.columns, numeric_frame(matrix, name)
    elif features is None and matrix.shape[1] == data.n_vars:
        features = data.var_names
    return Item(
        matrix if sp.issparse(matrix) else np.asarray(matrix),
        np.array(data.obs_names),
        None if features is None else as_texts(features),
    )


#: Fits that write into containers by `manyview.tl`, and what they add to their key in obsm and obsp.
WRITERS = ("RobustWMNMF", "WMNMF")
WRITTEN = ("", "_reliance", "_embedding", "_connectivities", "_distances")


def written_by_us(data: Any) -> set[str]:
    """Names in obsm, obsp and layers of a container under which `manyview.tl` wrote results."""
    keys = [
        str(key)
        for key, held in data.uns.items()
        if isinstance(held, Mapping) and str(held.get("method")) in WRITERS
    ]
    return {key + end for key in keys for end in WRITTEN}


def parts_of(data: Any) -> dict[str, tuple[Any, str, str]]:
    """Every part of an AnnData or MuData that may be a view: name → its table, attribute and key.

    Of an AnnData "X", "layers:NAME", "obsm:NAME" and "obsp:NAME"; of a MuData its modalities, these
    parts of each ("rna:obsm:X_pca"), and its own "obsm:NAME" and "obsp:NAME". Results of ours are none.
    """
    ours = written_by_us(data)
    if is_a(data, "MuData"):
        found: dict[str, tuple[Any, str, str]] = {}
        for modality, table in data.mod.items():
            if not is_a(table, "AnnData"):  # a MuData within a MuData
                continue
            for name, part in parts_of(table).items():
                found[str(modality) if name == "X" else f"{modality}:{name}"] = part
        ours |= {str(modality) for modality in data.mod}  # which cells it has
        attributes: tuple[str, ...] = ("obsm", "obsp")
    else:
        found = {} if data.X is None else {"X": (data, "X", "")}
        attributes = ("layers", "obsm", "obsp")
    for attribute in attributes:
        for key in getattr(data, attribute):
            if str(key) not in ours:
                found[f"{attribute}:{key}"] = (data, attribute, key)
    return found


def described_by_var(data: Any, view: str) -> Any | None:
    """The AnnData whose ``var`` lists the features of a view: of a modality, of X or of a layer."""
    table, attribute, _ = parts_of(data).get(full_name(data, view), (None, "", ""))
    return table if attribute in ("X", "layers") else None


def full_name(data: Any, view: str) -> str:
    """The part that a view names, with the bare name of a layer, of obsm or of obsp filled up."""
    if is_a(data, "MuData"):
        return view
    known = parts_of(data)
    matching = [name for name in known if view in (name, name.partition(":")[2])]
    return matching[0] if len(matching) == 1 else view


def _item_of(part: tuple[Any, str, str], view: str) -> Item:
    table, attribute, key = part
    if attribute == "X":
        return as_item(table, view)
    matrix = getattr(table, attribute)[key]
    if attribute == "obsp":
        return Item(pairwise(matrix, view), np.array(table.obs_names))
    item = annotated(table, matrix, view, table.var_names if attribute == "layers" else None)
    return replace(item, features=None) if attribute == "obsm" and not is_frame(matrix) else item


def from_container(data: Any, chosen: list | None) -> Collection:
    """Views by the names of parts of an AnnData or MuData (`parts_of`); by default X, or all modalities."""
    several = is_a(data, "MuData")
    kind = "MuData" if several else "AnnData"
    if several and getattr(data, "axis", 0) != 0:
        raise ValueError(
            f"the MuData shares axis {data.axis}; views must share the samples (axis=0)"
        )
    known = parts_of(data)
    if chosen is None:
        matrices = [name for name, part in known.items() if part[1] != "obsp"]
        if not several and matrices != ["X"]:
            raise ValueError(
                f"the AnnData has {', '.join(matrices)}; choose the views among them, for example "
                "views=['X', 'obsm:protein']"
            )
        chosen = [str(name) for name in data.mod] if several else ["X"]
    _check_names(chosen, f"{list(known)} of the {kind}")
    items = []
    for name in chosen:
        place = full_name(data, name)
        if place in known:
            items.append(_item_of(known[place], name))
        elif several and name in data.mod:
            items.append(as_item(data.mod[name], name))  # which says what it lacks
        else:
            _refuse_unknown(name, data, list(known), kind)
    if several:
        return Collection(chosen, items, by_name=True, index=np.asarray(data.obs_names))
    return Collection(list(chosen), of_one_table(items), by_name=True)


def _refuse_unknown(name: str, data: Any, known: list[str], kind: str) -> None:
    """Say what is there instead of a view."""
    tables = [data, *(data.mod.values() if kind == "MuData" else [])]
    if any(name.rpartition(":")[2] in written_by_us(table) for table in tables):
        raise ValueError(
            f"views names {name!r}, which is a result that manyview.tl wrote into the {kind}; choose the "
            f"views among {known}"
        )
    count = sum(name in (place, place.partition(":")[2]) for place in known)
    raise ValueError(
        f"views names {name!r}, which fits {count or 'none'} of the parts of the {kind}: {known}. Write "
        + ("MODALITY, MODALITY:layers:NAME, MODALITY:obsm:NAME, " * (kind == "MuData"))
        + ("layers:NAME, " * (kind == "AnnData"))
        + "obsm:NAME or obsp:NAME"
    )


def pairwise(matrix: Any, name: str) -> Relation:
    """A matrix of obsp: distances by their name, everything else is a graph."""
    if not name.endswith("distances"):
        return GraphView(matrix)
    if sp.issparse(matrix):
        raise ValueError(
            f"{name!r} has distances between nearest neighbors only; use their graph (scanpy and squidpy: "
            f"{name.removesuffix('distances')}connectivities), or pass a DistanceView of all distances"
        )
    return DistanceView(matrix)


# --- what comes to a fitted model -----------------------------------------------------------------


def by_modality(data: Any, fitted: list[str], features: dict[str, Array | None]) -> Any:
    """An AnnData after a fit on several modalities: the one whose features it has, by its name."""
    if not is_a(data, "AnnData"):
        return data
    parts = {"X", *data.layers, *data.obsm, *data.obsp}
    if any(name.partition(":")[2] in parts or name in parts for name in fitted):
        return data  # the fit was on parts of such a one
    held = {str(name) for name in data.var_names}
    known = {name: features[name] for name in fitted}
    fits = [
        v for v, names in known.items() if names is not None and held.issuperset(map(str, names))
    ]
    if len(fits) == 1:
        return {fits[0]: data}
    why = f"it has the features of {fits}" if fits else "it lacks features of every view"
    raise ValueError(
        f"got one AnnData, and the model was fitted on the views {fitted}; {why}. Name the view of each "
        f"AnnData, for example {{{(fits or fitted)[0]!r}: adata}}"
    )


def views_there(data: Any, views: Any) -> Any:
    """Of the views that were named for the fit, those that the data have."""
    if not isinstance(views, list | tuple) or not _are_names(list(views)):
        return views
    if is_a(data, "MuData"):
        # Where its modality is there, whether a part like "rna:obsm:X_pca" is there is said by the reader.
        there = {*data.mod, "obsm", "obsp"}
        return [name for name in views if name in there or name.partition(":")[0] in there] or views
    held = data.columns.get_level_values(0) if has_two_levels(data) else data
    if isinstance(data, Mapping) or has_two_levels(data):
        texts = {str(name) for name in held}
        return [name for name in views if name in texts] or views
    return views


# --- any of them ----------------------------------------------------------------------------------


def collect(data: Any, views: Any = None) -> Collection:
    """Convert the user's data to named items; ``views`` splits one array, or names parts of a container."""
    if isinstance(data, Collection):
        return data
    refuse_nothing(data)
    if isinstance(data, Relation):
        raise ValueError(f"got a {type(data).__name__} alone; pass a list or dict of views: [view]")
    if hasattr(data, "views") and hasattr(data, "labels"):
        raise ValueError(f"got a whole {type(data).__name__}; pass its .views")
    if isinstance(views, str | Set) or not (views is None or hasattr(views, "__iter__")):
        raise ValueError(
            "views must be a list of numbers of columns (to split one array), a dict of name → columns, or "
            f"a list of names of views; got {views!r}"
        )
    if isinstance(views, Mapping) and not is_single(data):
        raise ValueError(
            f"views={dict(views)} splits the columns of one array, but several views were passed; leave "
            "views out, or list the names of those to use"
        )
    chosen = None if views is None else list(views)
    if is_a(data, "AnnData") or is_a(data, "MuData"):
        return from_container(data, chosen)
    if is_a(data, "Dataset"):
        return from_dataset(data, chosen)
    if has_two_levels(data):
        return _from_levels(data, chosen)
    if is_single(data):
        item = as_item(data, "view0", alone=True)
        if chosen is None:
            return Collection(["view0"], [item], single=True)
        if isinstance(views, Mapping):
            names, wanted = [str(name) for name in views], list(views.values())
            _refuse_twice(names)
        else:
            names, wanted = [f"view{s}" for s in range(len(chosen))], chosen
        return Collection(names, _split_columns(item, names, wanted), single=True)
    if chosen is not None and not _are_names(chosen):
        raise ValueError(
            f"views={chosen} splits the columns of one array, but {len(data)} views were "
            "passed already; leave views=None"
        )
    if isinstance(data, Mapping):
        return _from_mapping(data, chosen)
    names = chosen or [f"view{s}" for s in range(len(data))]
    if len(names) != len(data):
        raise ValueError(
            f"views={chosen} has {len(names)} names, but a {type(data).__name__} of {len(data)} views "
            "was passed; give one name for each, or a dict of name → view to choose from"
        )
    _refuse_twice(names)
    return Collection(names, [as_item(X, n) for X, n in zip(data, names, strict=True)])


def refuse_nothing(data: Any) -> None:
    if sp.issparse(data) or is_a(data, "Dataset"):  # Mappings as well
        return
    if isinstance(data, list | tuple | Mapping) and len(data) == 0:
        raise ValueError(
            f"at least one view is needed, got an empty {type(data).__name__}; pass a 2-D array "
            "(samples × features), or a list or dict of them"
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
    if isinstance(data, Mapping | Collection) or is_a(data, "AnnData") or is_a(data, "MuData"):
        return False
    if has_two_levels(data):
        return False
    return not (isinstance(data, list | tuple) and any(_ndim(item) == 2 for item in data))


def as_item(data: Any, name: str, alone: bool = False) -> Item:
    """One table of any kind. ``alone``: all its columns are features, none may be ids."""
    if isinstance(data, Item):
        return data
    if isinstance(data, Relation):
        return Item(data, data.ids)
    if isinstance(data, str | os.PathLike):
        text = os.fspath(data)
        if not text.partition(INSIDE)[0].lower().endswith(STREAMABLE):
            raise ValueError(
                f"view {name!r} is the text {text!r}; a file can be a view if its name ends in "
                f"{', '.join(STREAMABLE)}. Read other files first, for example a table by "
                "pandas.read_csv(name, index_col=0), or use the command `manyview fit`, which also "
                "reads .csv, .tsv, .txt, .npz, .mat, .mtx and .h5mu"
            )
        return from_file(DiskMatrix(data, keep=False, view=name), name)
    if isinstance(data, DiskMatrix):
        return from_file(copy(data), name)
    if is_lazy(data):
        lazy = DaskMatrix(data, name)
        return Item(lazy, lazy.ids, None if lazy.features is None else as_texts(lazy.features))
    if is_open_file(data):
        return from_file(DiskMatrix.around(data, name), name)
    if is_a(data, "AnnData"):
        return annotated(data, data.X, name)
    if is_a(data, "LazyFrame"):
        raise ValueError("got a polars LazyFrame; pass the result of its .collect()")
    if is_a(data, "DataFrame"):
        return from_polars(data, name, alone)
    if is_a(data, "DataArray"):
        return from_dataarray(data, name)
    if is_frame(data):
        return Item(numeric_frame(data, name), np.array(data.index), as_texts(data.columns))
    return Item(_from_tensor(data, name) if is_tensor(data) else data)


def _from_tensor(data: Any, name: str) -> Array:
    """As NumPy has it; what it has no type for (bfloat16) in float32."""
    if str(data.layout) != "torch.strided":
        raise ValueError(
            f"view {name!r} is a sparse tensor ({data.layout}); pass a SciPy sparse matrix, which "
            "stays sparse, or data.to_dense()"
        )
    return on_host(data.float() if str(data.dtype) == "torch.bfloat16" else data)


def _from_mapping(data: Mapping, chosen: list | None) -> Collection:
    names = [str(name) for name in data]
    if len(set(names)) < len(names):
        raise ValueError(f"view names must differ as text, got {list(data)}")
    held = dict(zip(names, data.values(), strict=True))
    names = names if chosen is None else selected(chosen, names, "the views")
    return Collection(names, [as_item(held[name], name) for name in names], by_name=True)


def _from_levels(frame: Any, chosen: list | None) -> Collection:
    """A DataFrame whose columns have two levels: views by the first."""
    level = as_texts(frame.columns.get_level_values(0))
    names = list(dict.fromkeys(level))
    if len(names) < len(frame.columns.get_level_values(0).unique()):
        raise ValueError(f"view names must differ as text, but the first column level has {names}")
    names = names if chosen is None else selected(chosen, names, "the first column level")
    parts = [frame.loc[:, level == name].droplevel(0, axis=1) for name in names]
    items = [as_item(part, name) for part, name in zip(parts, names, strict=True)]
    return Collection(names, of_one_table(items), by_name=True)


# --- one array ---------------------------------------------------------------------------------


def _split_columns(item: Item, names: list[str], wanted: list) -> list[Item]:
    """Views of one array: ``wanted`` has their numbers of columns in order, or lists of columns."""
    X: Any = item.matrix if hasattr(item.matrix, "shape") else np.asarray(item.matrix)
    if isinstance(X, DiskMatrix):
        raise ValueError(f"{X.label} cannot be split by columns; write one file for each view")
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array to split into views, got {X.ndim}D array instead")
    columns: list[Any]
    if wanted and all(
        isinstance(some, Iterable) and not isinstance(some, str | Mapping) for some in wanted
    ):
        columns = [
            _places(item, X.shape[1], list(some), name)
            for name, some in zip(names, wanted, strict=True)
        ]
    elif not wanted or any(
        isinstance(m, bool) or not isinstance(m, Integral) or m < 1 for m in wanted
    ):
        raise ValueError(
            "views must list how many columns each view takes (1 or more), or a dict of such numbers or "
            f"of lists of columns; got {wanted}"
        )
    elif sum(wanted) != X.shape[1]:
        raise ValueError(
            f"views={wanted} adds up to {sum(wanted)} columns, but X has {X.shape[1]} features"
        )
    else:
        ends = np.cumsum(wanted)
        columns = [slice(end - m, end) for m, end in zip(wanted, ends, strict=True)]
    X = X.tocsc() if sp.issparse(X) else X
    return [
        replace(
            item,
            matrix=X.columns(part) if isinstance(X, DaskMatrix) else X[:, part],
            features=None if item.features is None else item.features[part],
        )
        for part in columns
    ]


def _places(item: Item, n_features: int, columns: list, view: str) -> list[int]:
    """Where the columns of a view are: by name where the array has names, otherwise by position."""
    if not columns:
        raise ValueError(f"views lists no column for {view!r}; name one or more, or leave it out")
    if item.features is None:
        places: dict[Any, int] = {j: j for j in range(n_features)}
    else:
        columns = [str(name) for name in columns]
        places = {str(name): j for j, name in enumerate(item.features)}
        if len(places) < n_features:
            raise ValueError("column names are repeated, and views lists columns; make them unique")
    for column in columns:
        if column not in places:
            raise ValueError(
                f"views lists the column {column!r} for {view!r}, but the {n_features} columns begin with "
                f"{list(places)[:5]}"
            )
    return [places[column] for column in columns]


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
