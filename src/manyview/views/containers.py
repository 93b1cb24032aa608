"""The containers users hold, taken apart into matrices with the names of their rows and columns.

Those of other libraries are taken apart in `foreign`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._arrays import is_tensor, on_host
from manyview._types import Array
from manyview.engines.dask.source import DaskMatrix, is_lazy
from manyview.engines.files.disk import DiskMatrix, is_open_file
from manyview.engines.files.formats import INSIDE, STREAMABLE
from manyview.engines.numpy.relations import Relation

from .foreign import (
    annotated,
    from_anndata,
    from_dataarray,
    from_dataset,
    from_polars,
    is_a,
    is_polars,
)
from .items import (
    Collection,
    Item,
    are_names,
    as_texts,
    from_file,
    has_two_levels,
    is_frame,
    numeric_frame,
    of_one_table,
    refuse_twice,
    selected,
)
from .pairs import pairs_by_name


def collect(data: Any, views: Any = None) -> Collection:
    """Whatever users hold → named items; ``views`` splits one array, or names parts of a container."""
    if isinstance(data, Collection):
        return data
    refuse_nothing(data)
    if isinstance(data, Relation):
        raise ValueError(f"got a {type(data).__name__} alone; pass a list or dict of views: [view]")
    if hasattr(data, "views") and hasattr(data, "labels"):
        raise ValueError(f"got a whole {type(data).__name__}; pass its .views")
    if isinstance(views, str | Mapping | Set) or not (views is None or hasattr(views, "__iter__")):
        raise ValueError(
            "views must list how many columns of one array each view takes, or the names of the "
            f"views; got {views!r}"
        )
    chosen = None if views is None else list(views)
    if is_a(data, "AnnData"):
        return from_anndata(data, chosen)
    if is_a(data, "MuData"):
        return _from_mudata(data, chosen)
    if is_a(data, "Dataset"):
        return from_dataset(data, chosen)
    if has_two_levels(data):
        return _from_levels(data, chosen)
    if is_single(data):
        item = as_item(data, "view0", alone=True)
        if chosen is None:
            return Collection(["view0"], [item], single=True)
        items = _split_columns(item, chosen)
        return Collection([f"view{s}" for s in range(len(items))], items, single=True)
    if chosen is not None and not are_names(chosen):
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
    refuse_twice(names)
    return Collection(names, [as_item(X, n) for X, n in zip(data, names, strict=True)])


def refuse_nothing(data: Any) -> None:
    if sp.issparse(data) or is_a(data, "Dataset"):  # Mappings as well
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
        _check_kind(data, name)
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
    if is_polars(data):
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


def _check_kind(path: str | os.PathLike[str], name: str) -> None:
    text = os.fspath(path)
    if not text.partition(INSIDE)[0].lower().endswith(STREAMABLE):
        raise ValueError(
            f"view {name!r} is the text {text!r}; as names of files only those ending in "
            f"{', '.join(STREAMABLE)} are views. Read another first, a table for example by "
            f"pandas.read_csv(name, index_col=0), or use the command `manyview fit`, which also reads "
            ".csv, .tsv, .txt, .npz, .mat, .mtx and .h5mu"
        )


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


def _from_mudata(data: Any, chosen: list | None) -> Collection:
    if getattr(data, "axis", 0) != 0:
        raise ValueError(
            f"the MuData shares axis {data.axis}; views must share the observations (axis=0)"
        )
    known = [str(name) for name in data.mod]
    pairs = pairs_by_name(data)
    where = "the modalities of the MuData"
    names = known if chosen is None else selected(chosen, known + list(pairs), where)
    items = [
        Item(*pairs[name]()) if name in pairs else as_item(data.mod[name], name) for name in names
    ]
    return Collection(names, items, by_name=True, index=np.asarray(data.obs_names))
