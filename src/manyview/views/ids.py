"""Ids of observations: what can be one, when two are the same, and how tables find one order by them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview.engines.numpy.relations import Relation

#: Positions and ids named in a sentence.
SHOWN = 5
#: Column names that agree so much better than row names may be the samples.
FAR_BETTER = 2
#: A whole number written as a fraction: 7.0 in one table is 7 in another.
WHOLE = re.compile(r"([-+]?\d+)\.0+")


def keys_of(ids: Array, label: str) -> list[Any]:
    """What the ids of a table are compared by; rows without an id are refused."""
    ids = np.asarray(ids)
    if ids.ndim != 1:
        raise ValueError(
            f"{label} has sample ids in {ids.ndim} dimensions; give one id for each row"
        )
    keys = _times(ids) if ids.dtype.kind in "mM" else ids.tolist()
    if ids.dtype.kind not in "biu":
        refuse_missing([i for i, key in enumerate(keys) if _is_missing(key)], label)
    for i, key in enumerate(keys):
        try:
            hash(key)
        except TypeError:
            raise ValueError(
                f"{label} has the sample id {key!r} in row {i}, which is no id (a "
                f"{type(key).__name__}); use text or numbers"
            ) from None
    return keys


def refuse_missing(rows: Sequence[int], label: str) -> None:
    if rows:
        raise ValueError(
            f"{label} has no sample id (NaN, None or empty) in {named_rows(rows)}; give every row an "
            "id, or, if the rows of all views are in one order, pass them without ids (for a "
            "DataFrame: frame.reset_index(drop=True))"
        )


def refuse_repeated(keys: Sequence[Any], label: str) -> None:
    """Rows of several tables cannot be brought together by ids that name two of them."""
    places: dict[Any, list[int]] = {}
    for i, key in enumerate(keys):
        places.setdefault(key, []).append(i)
    twice = {key: rows for key, rows in places.items() if len(rows) > 1}
    if not twice:
        return
    key, rows = next(iter(twice.items()))
    others = [repr(k) for k in list(twice)[1:SHOWN]]
    more = f"; so are {', '.join(others)}{', …' * (len(twice) > SHOWN)}" if others else ""
    raise ValueError(
        f"{label} has the sample id {key!r} more than once ({named_rows(rows)}){more}: rows of several "
        "views are matched by their ids, which must be unique; rename or drop the repeated ones, or, "
        "if the rows of all views are in one order, pass them without ids (for a DataFrame: "
        "frame.reset_index(drop=True))"
    )


def refuse_lookalikes(keys: Sequence[Sequence[Any]], labels: Sequence[str]) -> None:
    """One sample written in two ways (1 and "1", "7" and "7.0") would count as two."""
    known: dict[str, tuple[Any, int]] = {}
    for s, listed in enumerate(keys):
        for key in listed:
            other, t = known.setdefault(_written(key), (key, s))
            if other != key and t != s:
                raise ValueError(
                    f"{labels[t]} has the sample id {other!r} ({type(other).__name__}) and {labels[s]} "
                    f"has {key!r} ({type(key).__name__}), which differ only in how they are written; "
                    "give one sample one id everywhere, as text or as a number (for a DataFrame: "
                    "frame.index = frame.index.astype(str))"
                )


def places(wanted: Iterable[Any], keys: Iterable[Any]) -> Array:
    """Where each of the ``wanted`` stands among the keys, which are unique; −1 where it does not."""
    place = {key: i for i, key in enumerate(keys)}
    return np.array([place.get(key, -1) for key in wanted], dtype=np.intp)


def take_rows(X: Matrix, rows: Array) -> Matrix:
    """Rows of X (of a relation its columns, too); −1 gives a row of NaN, in a sparse matrix zeros."""
    if isinstance(X, Relation):
        return X.take(rows)
    absent = rows < 0
    if not absent.any():
        return X[rows]
    if sp.issparse(X):
        known = np.flatnonzero(~absent)
        pick = sp.csr_array(
            (np.ones(len(known), X.dtype), (known, rows[known])), shape=(len(rows), X.shape[0])
        )
        return sp.csr_array(pick @ X)
    taken = np.full((len(rows), X.shape[1]), np.nan, dtype=X.dtype)
    taken[~absent] = X[rows[~absent]]
    return taken


def overlaps(names: Sequence[set[Any]]) -> Array:
    """For each two sets the share of the smaller that they have in common."""
    found = np.zeros((len(names), len(names)))
    for i, one in enumerate(names):
        for j, other in enumerate(names[:i]):
            found[i, j] = found[j, i] = len(one & other) / max(min(len(one), len(other)), 1)
    return found


def tie(shares: Array) -> float:
    """The largest share by which each set reaches all others, directly or over other sets."""
    reached, weakest = np.arange(len(shares)) == 0, 1.0
    while not reached.all():
        best = np.where(reached, -1, shares[reached].max(axis=0))
        weakest = min(weakest, float(best.max()))
        reached[best.argmax()] = True
    return weakest


def named_rows(rows: Sequence[int]) -> str:
    """ "row 3", "rows 3 and 5", "rows 3, 5, 8, … (12 in all)"."""
    shown = [str(row) for row in rows[:SHOWN]]
    if len(rows) > SHOWN:
        return f"rows {', '.join(shown)}, … ({len(rows)} in all)"
    if len(rows) == 1:
        return f"row {shown[0]}"
    return f"rows {', '.join(shown[:-1])} and {shown[-1]}"


def _times(ids: Array) -> list[Any]:
    """Times as text, exact to the nanosecond: the same time has one key in every unit."""
    seconds = ids.astype(f"{ids.dtype.kind}8[s]")
    rest = (ids - seconds).astype("m8[ns]").astype(np.int64)
    unit = "" if ids.dtype.kind == "M" else " s"
    found = [
        f"{second}{f'.{ns:09d}'.rstrip('0') if ns else ''}{unit}"
        for second, ns in zip(seconds.astype(str if unit == "" else np.int64), rest, strict=True)
    ]
    return [None if lost else key for key, lost in zip(found, np.isnat(ids).tolist(), strict=True)]


def _is_missing(key: Any) -> bool:
    if key is None:
        return True
    if isinstance(key, str | bytes):
        return not key.strip()
    if isinstance(key, tuple):  # of an index of several levels
        return len(key) == 0 or any(_is_missing(part) for part in key)
    same = key == key
    # NaN and NaT differ from themselves; pandas' NA answers neither yes nor no.
    return (isinstance(same, bool | np.bool_) and not same) or type(key).__name__ == "NAType"


def _written(key: Any) -> str:
    text = str(int(key)) if isinstance(key, float) and key % 1 == 0 else str(key).strip()
    whole = WHOLE.fullmatch(text)
    return whole.group(1) if whole else text
