"""What users say view by view: how much each counts, and whether rows of zeros are values.

A dict names views, a list goes by their order; both are checked against the views of the fit before
anything is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from manyview._types import Array
from manyview._warn import parameter

#: "learned", "equal", one number for every view, or numbers by their names.
ViewWeights: TypeAlias = Any
#: What a row of zeros is, for all views or by their names; views that are not named are "auto".
ZeroRows: TypeAlias = str | dict[str, str]

ZERO_ROWS = ("auto", "missing", "observed")


def refuse_strangers(name: str, given: dict[str, Any], names: Sequence[str]) -> None:
    """Refuse names that no view has."""
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(
            f"{parameter(name)} names the view {unknown[0]!r}, and the views are {list(names)}"
        )


# --- weights -----------------------------------------------------------------------------------


def fixed_view_weights(
    asked: ViewWeights, names: Sequence[str], kept: Sequence[int] | None = None
) -> Array | None:
    """The weights that were given, those of the views that are ``kept`` adding up to 1.

    Parameters
    ----------
    asked : "learned", "equal", sequence of numbers, or dict of view → number
    names : sequence of str
        Of all views.
    kept : sequence of int, optional
        Places of the views that hold a value; by default all.

    Returns
    -------
    ndarray (n kept,), or None where the weights are to be learned
    """
    if isinstance(asked, str):
        if asked == "learned":
            return None
        if asked != "equal":
            raise ValueError(
                "view_weights must be 'learned', 'equal', one number for every view or a dict of "
                f"numbers by the names of views, got {asked!r}"
            )
        weights = np.ones(len(names))
    else:
        weights = _numbers(asked, names)
    part = weights if kept is None else weights[list(kept)]
    if not part.sum() > 0:
        raise ValueError(
            "view_weights gives all weight to views that hold no value; give some to another view"
        )
    part = part / part.max()  # the sum of huge numbers is none
    return part / part.sum()


def _numbers(asked: Any, names: Sequence[str]) -> Array:
    """One number of every view, in the order of the views; all are checked."""
    if isinstance(asked, dict):
        refuse_strangers("view_weights", asked, names)
        lacking = [name for name in names if name not in asked]
        if lacking:
            raise ValueError(
                f"view_weights has no number for the view {lacking[0]!r}; give one to each of "
                f"{list(names)}, 0 to those that shall not count"
            )
        asked = [asked[name] for name in names]
    listed = np.asarray(asked, dtype=object)
    if listed.shape != (len(names),):
        raise ValueError(
            f"view_weights has {listed.size} numbers for {len(names)} views {list(names)}; give one "
            "number for every view"
        )
    weights = np.array([_number(value, name) for value, name in zip(asked, names, strict=True)])
    if not weights.any():
        raise ValueError("view_weights are all zero; give a number above 0 to a view that counts")
    return weights


def _number(value: Any, name: str) -> float:
    """A weight, if it is one."""
    try:
        number = float("nan") if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not (np.isfinite(number) and number >= 0):
        raise ValueError(
            f"view_weights of view {name!r} must be a finite number of 0 or more, got {value!r}"
        )
    return number


def with_weight(items: Sequence[Any], weights: Array | None) -> list[Any]:
    """Those of the views that count; all of them where weights are to be learned."""
    if weights is None:
        return list(items)
    return [item for item, weight in zip(items, weights, strict=True) if weight > 0]


# --- rows of zeros -----------------------------------------------------------------------------


def zeros_of(zero_rows: ZeroRows, name: str) -> str:
    """What a row of zeros of this view is: one of `ZERO_ROWS`."""
    return zero_rows.get(name, "auto") if isinstance(zero_rows, dict) else zero_rows


def check_zero_rows(zero_rows: ZeroRows, names: Sequence[str]) -> None:
    """Refuse views or settings that do not exist."""
    if not isinstance(zero_rows, dict):
        if zero_rows not in ZERO_ROWS:
            raise ValueError(
                f"zero_rows must be 'auto', 'missing', 'observed' or a dict by view, got {zero_rows!r}"
            )
        return
    refuse_strangers("zero_rows", zero_rows, names)
    for name, kind in zero_rows.items():
        if kind not in ZERO_ROWS:
            raise ValueError(
                f"zero_rows of view {name!r} must be 'auto', 'missing' or 'observed', got {kind!r}"
            )
