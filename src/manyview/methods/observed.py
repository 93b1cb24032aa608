"""Which columns, views and rows anybody observed: the rest is left out of a fit, and told.

A fit sees only what some observation has, so that a column, view or row of NaN changes nothing; what
the model then tells has the shape of what was given.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from manyview._types import Array, Matrix, Views
from manyview.engines.numpy.presence import has_nan

#: Names told in a warning; of more there is a count.
NAMED = 5


def observed_columns(views: Views) -> list[Array] | None:
    """Which columns of each view hold a value; None where all do."""
    masks = [
        ~np.isnan(X).all(axis=0) if has_nan(X) else np.ones(X.shape[1], dtype=bool)
        for X in views.matrices
    ]
    return None if all(mask.all() for mask in masks) else masks


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


def kept_views(columns: Sequence[Array]) -> list[int]:
    return [s for s, mask in enumerate(columns) if mask.any()]


def tell_unobserved(views: Views, columns: list[Array], stacklevel: int) -> None:
    """One warning for every view that nobody observed, or of which columns are empty."""
    for X, name, names, mask in zip(
        views.matrices, views.names, views.feature_names, columns, strict=True
    ):
        if not mask.any():
            message = f"view {name!r} has no observed value; it is left out and gets no weight"
        elif not mask.all():
            empty = np.flatnonzero(~mask)
            listed = [_column_name(names, int(j)) for j in empty[:NAMED]]
            more = f" and {len(empty) - NAMED} more" if len(empty) > NAMED else ""
            message = (
                f"view {name!r}: {len(empty)} of {X.shape[1]} columns have no observed value and are "
                f"left out: {', '.join(listed)}{more}"
            )
        else:
            continue
        warnings.warn(message, UserWarning, stacklevel=stacklevel + 1)


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
