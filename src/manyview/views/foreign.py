"""Containers of other libraries (AnnData, polars, xarray), recognised by their type, never imported."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview.engines.files.disk import DiskMatrix
from manyview.engines.files.headings import is_id_heading

from .items import (
    Collection,
    Item,
    are_names,
    as_texts,
    from_file,
    is_frame,
    numeric_frame,
    of_one_table,
    refuse_twice,
    selected,
)
from .pairs import pairwise

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


def is_polars(item: Any) -> bool:
    if is_a(item, "LazyFrame"):
        raise ValueError("got a polars LazyFrame; pass the result of its .collect()")
    return is_a(item, "DataFrame")


def from_polars(frame: Any, name: str, alone: bool) -> Item:
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
    return Item(matrix, names, as_texts(features))


def _holds_text(kind: Any) -> bool:
    return str(kind).startswith(("String", "Utf8", "Categorical", "Enum"))


def from_dataarray(array: Any, name: str, samples: Any = None) -> Item:
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
        None if columns is None else as_texts(columns),
    )


def from_dataset(data: Any, chosen: list | None) -> Collection:
    """Each two-dimensional variable is a view; the dimension they share lists the observations."""
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
            f"the variables {names} of the Dataset share no dimension; the observations must be "
            "one dimension of all of them"
        )
    items = [from_dataarray(v, n, shared[0]) for v, n in zip(variables, names, strict=True)]
    return Collection(names, of_one_table(items), by_name=True)


def annotated(data: Any, matrix: Any, name: str, features: Any = None) -> Item:
    if matrix is None:
        raise ValueError(f"view {name!r} is an AnnData without X; choose a layer or obsm instead")
    if getattr(data, "isbacked", False) and not data.is_view and _is_X(matrix):
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


def _is_X(matrix: Any) -> bool:
    """Whether a part of a backed AnnData is its X, dense or sparse."""
    return getattr(getattr(matrix, "group", matrix), "name", None) == "/X"


def described_by_var(data: Any, view: str) -> Any | None:
    """The AnnData whose ``var`` lists the features of a view: of a modality, of X or of a layer."""
    if is_a(data, "MuData"):
        return data.mod.get(view)
    own = view == "X" or view.removeprefix("layers:") in data.layers
    return data if own else None


def from_anndata(data: Any, chosen: list | None) -> Collection:
    """views=["X", "counts", "obsm:protein", "obsp:spatial"]; a bare name if it is unique."""
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
    if not are_names(chosen):
        raise ValueError(f"views must name some of {list(places)} of the AnnData, got {chosen}")
    refuse_twice(chosen)
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
        item = annotated(data, matrix, name, features)
        items.append(
            item if is_frame(matrix) or features is not None else replace(item, features=None)
        )
    return Collection(list(chosen), of_one_table(items), by_name=True)
