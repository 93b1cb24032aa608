"""Which columns, views and rows anybody observed: the rest is left out of a fit, and told.

A fit sees only what some observation has, so that a column, view or row of NaN changes nothing; what
the model then tells has the shape of what was given. A column that hardly anybody has beside the others
of its view is like an empty one: it would make whole rows count as unobserved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from manyview._types import Array, Matrix, Views
from manyview._warn import warn_user
from manyview.engines.numpy.presence import has_nan

#: Names told in a warning; of more there is a count.
NAMED = 5
#: A column with a smaller share of the values that the view's fullest column has is nearly empty.
NEARLY_EMPTY = 0.05


def observed_columns(views: Views) -> list[Array] | None:
    """Which columns of each view are observed, not empty or nearly so; None where all are."""
    masks = [_full_enough(X) for X in views.matrices]
    return None if all(mask.all() for mask in masks) else masks


def _full_enough(X: Matrix) -> Array:
    if not has_nan(X):
        return np.ones(X.shape[1], dtype=bool)
    values = _values_of(X)
    return (values > 0) & (values >= NEARLY_EMPTY * values.max())


def _values_of(X: Array) -> Array:
    """How many rows each column is observed for."""
    return np.count_nonzero(~np.isnan(X), axis=0)


def observed_part(views: Views, columns: list[Array]) -> Views:
    """The views that have such columns, with these only."""
    kept = kept_views(columns)
    matrices = [
        X if mask.all() else np.ascontiguousarray(X[:, mask])
        for X, mask in ((views.matrices[s], columns[s]) for s in kept)
    ]
    named = [views.feature_names[s] for s in kept]
    features = [
        None if names is None else np.asarray(names)[columns[s]]
        for s, names in zip(kept, named, strict=True)
    ]
    return replace(
        views,
        matrices=tuple(matrices),
        names=tuple(views.names[s] for s in kept),
        feature_names=tuple(features),
    )


def left_out(views: Views, columns: list[Array]) -> list[tuple[Array, Array, Array]] | None:
    """The few values in columns that are left out: rows, columns, values of every view; None if none."""
    found = []
    for X, mask in zip(views.matrices, columns, strict=True):
        dropped = np.flatnonzero(~mask)
        i, j = np.nonzero(~np.isnan(X[:, dropped])) if len(dropped) else (dropped, dropped)
        found.append((i, dropped[j], X[i, dropped[j]] if len(i) else np.zeros(0)))
    return found if any(len(i) for i, _, _ in found) else None


def kept_views(columns: Sequence[Array]) -> list[int]:
    return [s for s, mask in enumerate(columns) if mask.any()]


def tell_unobserved(views: Views, columns: list[Array]) -> None:
    """One warning for every view that nobody observed, or of which columns are empty or nearly so."""
    for X, name, names, mask in zip(
        views.matrices, views.names, views.feature_names, columns, strict=True
    ):
        if mask.all():
            continue
        values = _values_of(X)
        for message in (
            [f"view {name!r} has no observed value; it is left out and gets no weight"]
            if not mask.any()
            else [*_told_empty(name, names, values), *_told_nearly_empty(name, names, values, mask)]
        ):
            warn_user(message)


def _told_empty(name: str, names: Array | None, values: Array) -> list[str]:
    empty = np.flatnonzero(values == 0)
    if not len(empty):
        return []
    return [
        f"view {name!r}: {len(empty)} of {len(values)} columns have no observed value and are left "
        f"out: {_listed(names, empty)}"
    ]


def _told_nearly_empty(name: str, names: Array | None, values: Array, mask: Array) -> list[str]:
    scarce = np.flatnonzero(~mask & (values > 0))
    if not len(scarce):
        return []
    return [
        f"view {name!r}: {len(scarce)} of {len(values)} columns are observed for at most "
        f"{values[scarce].max()} observations, fewer than {NEARLY_EMPTY:.0%} of the "
        f"{values.max()} of its fullest column, and are left out: {_listed(names, scarce)}"
    ]


def _listed(names: Array | None, columns: Array) -> str:
    more = f" and {len(columns) - NAMED} more" if len(columns) > NAMED else ""
    return ", ".join(_column_name(names, int(j)) for j in columns[:NAMED]) + more


def _column_name(names: Array | None, j: int) -> str:
    """The name of a column, or its number where it has none."""
    return repr(names[j]) if names is not None and str(names[j]).strip() else f"number {j + 1}"


def observed_somewhere(matrices: Sequence[Matrix]) -> Array:
    """Rows of which some view holds a value."""
    anywhere = np.zeros(matrices[0].shape[0], dtype=bool)
    for X in matrices:
        if not has_nan(X):
            return np.ones_like(anywhere)
        anywhere |= ~np.isnan(X).all(axis=1)
    return anywhere


def spread_out(part: Array, mask: Array, axis: int) -> Array:
    """``part`` in the places of ``mask`` along an axis, and 0 elsewhere."""
    if mask.all():
        return part
    shape = list(part.shape)
    shape[axis] = len(mask)
    whole = np.zeros(shape, dtype=part.dtype)
    whole[(slice(None),) * axis + (mask,)] = part
    return whole
