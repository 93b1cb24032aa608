"""Ids of samples: compare them, and align the rows of several views."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview._warn import warn_user
from manyview.engines.numpy.relations import Relation
from manyview.engines.numpy.sources import is_streamed

from .containers import Collection

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
    missing = (
        [i for i, key in enumerate(keys) if is_missing(key)] if ids.dtype.kind not in "biu" else []
    )
    if missing:
        raise ValueError(
            f"{label} has no sample id (NaN, None or empty) in {named_rows(missing)}; give every row an "
            f"id, or, {IN_ONE_ORDER}"
        )
    for i, key in enumerate(keys):
        try:
            hash(key)
        except TypeError:
            raise ValueError(
                f"{label} has the sample id {key!r} in row {i}, of the type {type(key).__name__}; use text "
                "or numbers"
            ) from None
    return keys


#: What to do where ids of several tables of a user are in the way.
IN_ONE_ORDER = (
    "if the rows of all views are in one order, pass them without ids (for a DataFrame: "
    "frame.reset_index(drop=True))"
)


def refuse_repeated(
    keys: Sequence[Any],
    label: str,
    remedy: str = "rows of several views are matched by their ids, which must be unique; rename or drop "
    f"the repeated ones, or, {IN_ONE_ORDER}",
    first: int = 0,
) -> None:
    """Rows of several tables cannot be brought together by ids that name two of them.

    The first row is called ``first`` in the message.
    """
    found: dict[Any, list[int]] = {}
    for i, key in enumerate(keys, first):
        found.setdefault(key, []).append(i)
    twice = [(key, rows) for key, rows in found.items() if len(rows) > 1]
    if not twice:
        return
    key, rows = twice[0]
    others = [repr(k) for k, _ in twice[1:SHOWN]]
    more = f"; so are {', '.join(others)}{', …' * (len(twice) > SHOWN)}" if others else ""
    raise ValueError(
        f"{label} has the sample id {key!r} more than once ({named_rows(rows)}){more}: {remedy}"
    )


def refuse_strangers(
    keys: Sequence[Sequence[Any]], labels: Sequence[str], union: bool, hint: str = ""
) -> None:
    """Some id must be in every list; for the ``union`` each list must share one with others, directly
    or over a third one."""
    known, waiting = set(keys[0]), list(range(1, len(keys)))
    while waiting:
        s = next((s for s in waiting if not known.isdisjoint(keys[s])), None)
        if s is None:
            s = waiting[0]
            raise ValueError(
                f"{labels[s]} shares no sample id with the others: {labels[0]} has "
                f"{next(iter(keys[0]), None)!r}, {labels[s]} has {next(iter(keys[s]), None)!r}; give one "
                f"sample one id everywhere, as text or as a number{hint}"
            )
        known = known.union(keys[s]) if union else known.intersection(keys[s])
        waiting.remove(s)


def refuse_lookalikes(keys: Sequence[Sequence[Any]], labels: Sequence[str]) -> None:
    """One sample written in two ways (1 and "1", "7" and "7.0") would be treated as two."""
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


def is_missing(key: Any) -> bool:
    """Say whether a value of any kind is none: None, NaN, NaT, NA, or blank text."""
    if key is None:
        return True
    if isinstance(key, str | bytes):
        return not key.strip()
    if isinstance(key, tuple):  # of an index of several levels
        return len(key) == 0 or any(is_missing(part) for part in key)
    same = key == key
    # NaN and NaT differ from themselves; pandas' NA answers neither yes nor no.
    return (isinstance(same, bool | np.bool_) and not same) or type(key).__name__ == "NAType"


def _written(key: Any) -> str:
    text = str(int(key)) if isinstance(key, float) and key % 1 == 0 else str(key).strip()
    whole = WHOLE.fullmatch(text)
    return whole.group(1) if whole else text


def align(
    given: Collection,
    matrices: list[Matrix],
    allow_missing: Callable[[str], bool],
    zero_is_missing: Callable[[str], bool],
) -> tuple[Array | None, list[Matrix], dict[str, int]]:
    """Bring views with ids to one order, by default the first one's; plain arrays have none.

    Where only one table has ids, or all views are parts of one, nothing is moved: as many rows come
    out as were given, whatever their ids are. The sparse views that lack samples of others, which are
    rows of zeros there, come with their number.
    """
    names, ids = given.names, [item.ids for item in given.items]
    filled = {n: item.filled for n, item in zip(names, given.items, strict=True) if item.filled}
    for name in filled:
        _check_zeros(name, "some", zero_is_missing)
    named = [s for s, listed in enumerate(ids) if listed is not None]
    if not named:
        return None, matrices, filled
    labels = {s: f"view {names[s]!r}" for s in named}
    first = named[0]
    reference = np.asarray(ids[first])
    keys = {first: keys_of(reference, labels[first])}
    if given.index is None and all(ids[s] is ids[first] for s in named):
        return reference, matrices, filled
    keys |= {s: keys_of(ids[s], labels[s]) for s in named[1:]}  # type: ignore[arg-type]
    for s in named:
        refuse_repeated(keys[s], labels[s])
    wanted = keys[first]
    everywhere = len(named) == len(names)
    everyone = everywhere and any(map(allow_missing, names))
    if everyone:
        reference, wanted = _everyone(given, keys, labels)
        if given.index is None and (turned := _columns_agree_better(given, keys)):
            warn_user(f"{turned} The rows are used as samples.")
    elif any(keys[s] != wanted for s in named):
        refuse_lookalikes([keys[s] for s in named], [labels[s] for s in named])
    aligned = list(matrices)
    for s in named:
        if keys[s] == wanted:
            continue
        rows = places(wanted, keys[s])
        lacking = int((rows < 0).sum())
        if everyone and lacking and not allow_missing(names[s]):
            raise ValueError(
                f"view {names[s]!r} lacks {lacking} of the {len(wanted)} samples; select the samples that "
                f"it has, or use missing={{{names[s]!r}: 'allow'}}"
            )
        if not everyone:
            n_first, n, shared = len(wanted), len(keys[s]), len(wanted) - lacking
            if shared < max(n_first, n):
                turned = _columns_agree_better(given, keys)
                raise ValueError(
                    f"views {names[first]!r} ({n_first} samples) and {names[s]!r} ({n} samples) share "
                    f"only {shared} sample ids; select the shared ids in every view first. "
                    f"{turned}".rstrip(". ")
                )
            if not everywhere:
                raise ValueError(
                    f"views {names[first]!r} and {names[s]!r} list the same samples in another order, "
                    "and other views are plain arrays without ids; pass DataFrames for all, or one order"
                )
        if lacking and sp.issparse(matrices[s]):
            _check_zeros(names[s], f"{lacking} of the {len(wanted)}", zero_is_missing)
            filled[names[s]] = lacking
        if is_streamed(matrices[s]):
            raise ValueError(
                f"{matrices[s].label} does not have the same samples in the same order as "
                f"{names[first]!r}, which views read from files by rows "
                "must have; reorder its rows, or load it into memory"
            )
        aligned[s] = take_rows(matrices[s], rows)
    return reference, aligned, filled


def _check_zeros(name: str, lacking: str, zero_is_missing: Callable[[str], bool]) -> None:
    if not zero_is_missing(name):
        raise ValueError(
            f"view {name!r} is sparse and lacks {lacking} samples. Rows of zeros would mark them, but are "
            "values here; pass a dense table, or use RobustWMNMF with "
            f"zero_rows={{{name!r}: 'missing'}}"
        )


def _columns_agree_better(given: Collection, keys: dict[int, list[Any]]) -> str:
    """A sentence if the samples may be the columns: genes × samples, as R has them."""
    features = [item.features for item in given.items]
    if any(names is None for names in features) or len(keys) < len(features):
        return ""
    rows = tie(overlaps([set(listed) for listed in keys.values()]))
    columns = [set(np.asarray(names).tolist()) for names in features]
    agree = tie(overlaps(columns))
    # Names that only count agree between any two tables.
    counts = all(isinstance(n, int) or str(n).isdecimal() for names in columns for n in names)
    if agree <= FAR_BETTER * rows or agree <= 0.5 or counts:
        return ""
    return (
        f"The views share {agree:.0%} of their column names and {rows:.0%} of their row ids: if "
        "the columns are the samples, pass the transposed tables (frame.T)."
    )


def _everyone(
    given: Collection, keys: dict[int, list[Any]], labels: dict[int, str]
) -> tuple[Array, list[Any]]:
    """The ids of all samples, as they are and as they are compared: the container's, or the union."""
    if given.index is None:
        if any(keys[s] != keys[0] for s in keys):
            refuse_strangers(list(keys.values()), list(labels.values()), union=True)
            refuse_lookalikes(list(keys.values()), list(labels.values()))
        return _union([np.asarray(item.ids) for item in given.items], list(keys.values()))
    wanted = keys_of(given.index, "the container")
    refuse_repeated(wanted, "the container")
    known = set(wanted)
    for s, listed in keys.items():
        unknown = [key for key in listed if key not in known]
        if unknown:
            raise ValueError(
                f"{labels[s]} has {len(unknown)} samples that the container's obs_names lack, the "
                f"first being {unknown[0]!r}; call its update() first"
            )
    return given.index, wanted


def _union(listed: list[Array], keys: list[list[Any]]) -> tuple[Array, list[Any]]:
    """Every id once, in order of appearance; of the ids' own type where all have the same."""
    seen: dict[Any, Any] = {}
    for ids, found in zip(listed, keys, strict=True):
        samples = list(ids) if ids.dtype.kind in "mM" else ids.tolist()
        for sample, key in zip(samples, found, strict=True):
            seen.setdefault(key, sample)
    if len(seen) == len(listed[0]):
        return listed[0], keys[0]
    union = np.empty(len(seen), dtype=object)
    union[:] = list(seen.values())
    same = all(ids.dtype == listed[0].dtype for ids in listed)
    return union.astype(listed[0].dtype) if same else union, list(seen)
