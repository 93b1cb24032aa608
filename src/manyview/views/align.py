"""Views with ids in one order of their observations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview._warn import setting, warn_user
from manyview.engines.numpy.sources import is_streamed

from .ids import (
    FAR_BETTER,
    keys_of,
    overlaps,
    places,
    refuse_lookalikes,
    refuse_repeated,
    take_rows,
    tie,
)
from .items import Collection


def align(
    given: Collection,
    matrices: list[Matrix],
    allow_missing: bool,
    zero_is_missing: Callable[[str], bool] | bool,
) -> tuple[Array | None, list[Matrix], frozenset[str]]:
    """Bring views with ids to one order, by default the first one's; plain arrays have none.

    Where only one table has ids, or all views are parts of one, nothing is moved: as many rows come
    out as were given, whatever their ids are. The sparse views that lack samples of others, which are
    rows of zeros there, are named.
    """
    names, ids = given.names, [item.ids for item in given.items]
    filled = {name for name, item in zip(names, given.items, strict=True) if item.filled}
    for name in filled:
        _check_zeros(name, "some", zero_is_missing)
    named = [s for s, listed in enumerate(ids) if listed is not None]
    if not named:
        return None, matrices, frozenset(filled)
    labels = {s: f"view {names[s]!r}" for s in named}
    first = named[0]
    reference = np.asarray(ids[first])
    keys = {first: keys_of(reference, labels[first])}
    if given.index is None and all(ids[s] is ids[first] for s in named):
        return reference, matrices, frozenset(filled)
    keys |= {s: keys_of(ids[s], labels[s]) for s in named[1:]}  # type: ignore[arg-type]
    for s in named:
        refuse_repeated(keys[s], labels[s])
    wanted = keys[first]
    everywhere = len(named) == len(names)
    if allow_missing and everywhere:
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
        if not (allow_missing and everywhere):
            turned = _columns_agree_better(given, keys)
            _check_same_samples(
                names, first, s, len(wanted), len(keys[s]), lacking, everywhere, turned
            )
        if lacking and sp.issparse(matrices[s]):
            _check_zeros(names[s], f"{lacking} of the {len(wanted)}", zero_is_missing)
            filled.add(names[s])
        if is_streamed(matrices[s]):
            _refuse_moving(matrices[s].label, names[first])
        aligned[s] = take_rows(matrices[s], rows)
    return reference, aligned, frozenset(filled)


def _check_zeros(name: str, lacking: str, zero_is_missing: Callable[[str], bool] | bool) -> None:
    if not (zero_is_missing(name) if callable(zero_is_missing) else zero_is_missing):
        raise ValueError(
            f"view {name!r} is sparse and lacks {lacking} samples, and a row of zeros is a value "
            f"here; pass it dense, or use RobustWMNMF with {setting('zero_rows', name, 'missing')}"
        )


def _refuse_moving(label: str, first: str) -> None:
    raise ValueError(
        f"{label} lists the samples in another order than {first!r}, or not the same ones; views read "
        "from files by rows must list the same samples in one order"
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
    if agree <= FAR_BETTER * rows or agree <= 0.5 or all(_counts(names) for names in columns):
        return ""
    return (
        f"The views agree in {agree:.0%} of their column names and in {rows:.0%} of their row ids: if "
        "the columns are the samples, pass the transposed tables (frame.T)."
    )


def _counts(names: set[Any]) -> bool:
    return all(isinstance(name, int) or str(name).isdecimal() for name in names)


def _everyone(
    given: Collection, keys: dict[int, list[Any]], labels: dict[int, str]
) -> tuple[Array, list[Any]]:
    """The ids of all observations, as they are and as they are compared: the container's, or the union."""
    if given.index is None:
        if any(keys[s] != keys[0] for s in keys):
            _refuse_strangers(given.names, list(keys.values()))
            refuse_lookalikes(list(keys.values()), list(labels.values()))
        return _union([np.asarray(item.ids) for item in given.items], list(keys.values()))
    wanted = keys_of(given.index, "the container")
    refuse_repeated(wanted, "the container")
    known = set(wanted)
    for s, listed in keys.items():
        unknown = [key for key in listed if key not in known]
        if unknown:
            raise ValueError(
                f"{labels[s]} has {len(unknown)} observations that the container's obs_names lack, the "
                f"first being {unknown[0]!r}; call its update() first"
            )
    return given.index, wanted


def _check_same_samples(
    names: list[str],
    first: int,
    s: int,
    n_first: int,
    n: int,
    lacking: int,
    everywhere: bool,
    turned: str,
) -> None:
    shared = n_first - lacking
    if shared < max(n_first, n):
        raise ValueError(
            f"views {names[first]!r} ({n_first} samples) and {names[s]!r} ({n} samples) share only "
            f"{shared} sample ids; select the shared ids in every view first. {turned}".rstrip(". ")
        )
    if not everywhere:
        raise ValueError(
            f"views {names[first]!r} and {names[s]!r} list the same samples in another order, and "
            "other views are plain arrays without ids; pass DataFrames for all, or one order"
        )


def _refuse_strangers(names: list[str], keys: list[list[Any]]) -> None:
    """Every view must share an id with the others, if only over a third one."""
    reached, waiting = set(keys[0]), list(range(1, len(keys)))
    while waiting:
        new = [s for s in waiting if not reached.isdisjoint(keys[s])]
        if not new:
            s = waiting[0]
            raise ValueError(
                f"view {names[s]!r} shares no sample id with the others: {names[0]!r} has "
                f"{next(iter(keys[0]), None)!r}, {names[s]!r} has {next(iter(keys[s]), None)!r}; "
                "give one sample one id everywhere, as text or as a number"
            )
        reached.update(*(keys[s] for s in new))
        waiting = [s for s in waiting if s not in new]


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
