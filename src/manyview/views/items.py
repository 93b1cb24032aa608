"""Views as they came: tables with the names of their rows and columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from manyview._types import Array
from manyview._warn import warn_user
from manyview.engines.files.disk import DiskMatrix

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
    #: Whether the matrix is sparse and has rows of zeros for samples that it lacks.
    filled: bool = False


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


def from_file(matrix: DiskMatrix, name: str) -> Item:
    matrix.view = name
    for note in matrix.rows.notes:
        warn_user(f"{matrix.label}: {note}")
    features = matrix.rows.features
    return Item(matrix, matrix.rows.ids, None if features is None else as_texts(features))


def of_one_table(items: list[Item]) -> list[Item]:
    return [replace(item, ids=items[0].ids) for item in items]


def selected(chosen: list, known: list[str], where: str) -> list[str]:
    if not are_names(chosen):
        raise ValueError(f"views must name some of {where} {known}, got {chosen}")
    for name in chosen:
        if name not in known:
            raise ValueError(f"views names {name!r}, but {where} are {known}")
    refuse_twice(chosen)
    return list(chosen)


def refuse_twice(names: list[str]) -> None:
    for s, name in enumerate(names):
        if name in names[:s]:
            raise ValueError(f"views names {name!r} twice; a view counts once, so leave one out")


def are_names(chosen: list) -> bool:
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
