"""What comes to a fitted model: a single modality, or fewer views than the fit had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manyview._types import Array

from .foreign import is_a
from .items import are_names, has_two_levels


def by_modality(data: Any, fitted: list[str], features: dict[str, Array | None]) -> Any:
    """An AnnData after a fit on several modalities: the one whose features it has, by its name."""
    if not is_a(data, "AnnData") or _has_part(data, fitted):
        return data
    held = {str(name) for name in data.var_names}
    fits = [name for name in fitted if _all_there(features[name], held)]
    if len(fits) == 1:
        return {fits[0]: data}
    why = f"it has the features of {fits}" if fits else "it has all the features of none of them"
    raise ValueError(
        f"got one AnnData, and the model was fitted on the views {fitted}; {why}, so say which it is: "
        f"{{{(fits or fitted)[0]!r}: adata}}, with one AnnData for each view there is"
    )


def views_there(data: Any, views: Any) -> Any:
    """Of the views that were named for the fit, those that the data have."""
    if not isinstance(views, list | tuple) or not are_names(list(views)):
        return views
    if is_a(data, "MuData"):
        # "rna:obsp:links" is no modality; whether it is there is for those to say who read it.
        return [name for name in views if name in data.mod or ":" in name] or views
    held = data.columns.get_level_values(0) if has_two_levels(data) else data
    if isinstance(data, Mapping) or has_two_levels(data):
        texts = {str(name) for name in held}
        return [name for name in views if name in texts] or views
    return views


def _has_part(data: Any, names: list[str]) -> bool:
    """Whether a view is named as a part of this AnnData is: then it was fitted on such a one."""
    parts = {"X", *data.layers, *data.obsm, *data.obsp}
    return any(name.partition(":")[2] in parts or name in parts for name in names)


def _all_there(features: Array | None, held: set[str]) -> bool:
    return features is not None and held.issuperset(str(feature) for feature in features)
