"""Clusters as integers, and other columns brought to the order of the labels by their ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Number, Real
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator

from manyview._labels import as_list
from manyview._types import Array
from manyview.views.ids import places

from .held import Held, check_unique, hold, is_missing, pick
from .table import counted, quoted


@runtime_checkable
class Clustering(Protocol):
    """A fitted clustering model, of this package or another."""

    labels_: Any


@dataclass(frozen=True, eq=False)
class Groups:
    """Clusters of the observations that have one.

    Attributes
    ----------
    codes : ndarray (n,)
        Cluster of every observation kept, an index into ``names``.
    names : tuple
        The clusters as the user calls them, in order.
    rows : ndarray (n,)
        Positions of the observations kept among those given.
    """

    codes: Array
    names: tuple[Any, ...]
    rows: Array

    @property
    def sizes(self) -> Array:
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))

    def only(self, keep: Array) -> Groups:
        """Return the groups of the observations marked in ``keep``; every name stays."""
        return Groups(self.codes[keep], self.names, self.rows[keep])

    def without_empty(self) -> Groups:
        """Return the same groups less the names nobody bears."""
        used, codes = np.unique(self.codes, return_inverse=True)
        return Groups(codes, tuple(self.names[k] for k in used), self.rows)


@dataclass(eq=False)
class Matched:
    """Labels and other columns in the order of the labels; notes collect what was left out."""

    groups: Groups
    columns: list[dict[str, Any]]
    present: list[Array]
    notes: list[str] = field(default_factory=list)


def match(labels: Any, others: Sequence[Held], ids: Any = None) -> Matched:
    """Bring ``others`` to the order of ``labels``, by ids where both have them.

    Labels −1, None and NaN are left out. ``present[k]`` marks which of the observations kept occur
    in ``others[k]``; columns hold None for the rest.
    """
    given = read_labels(labels, ids)
    values = given.columns["labels"]
    notes: list[str] = []
    for other in others:
        given = given.beside(other.ids)
    known = _adopt(given.n, others, notes) if given.ids is None else given.ids
    others = [other.beside(known) for other in others]
    places = [_places(len(values), known, other, notes) for other in others]
    groups = read_groups(values, notes)
    columns, present = [], []
    for other, place in zip(others, places, strict=True):
        here = place[groups.rows]
        columns.append({name: pick(column, here) for name, column in other.columns.items()})
        present.append(here >= 0)
        if (here < 0).any():
            lacking = counted(int((here < 0).sum()), "labelled observation")
            notes.append(f"Absent from {other.name}: {lacking}.")
    return Matched(groups, columns, present, notes)


# --- labels ------------------------------------------------------------------------------------


def read_labels(labels: Any, ids: Any = None) -> Held:
    """Return labels as a list, with their ids if there are any."""
    known = None if ids is None else as_list(ids)
    if isinstance(labels, BaseEstimator) and not isinstance(labels, Clustering):
        raise ValueError(f"this {type(labels).__name__} has no labels yet; call fit first")
    if isinstance(labels, Clustering):
        names = vars(labels).get("sample_names_in_")
        known = list(np.asarray(names).tolist()) if known is None and names is not None else known
        labels = labels.labels_
    elif isinstance(labels, Mapping):
        known = list(labels) if known is None else known
        labels = list(labels.values())
    held = hold("labels", labels)
    values = as_list(held.columns["labels"])
    known = held.ids if known is None else known
    if known is not None and len(known) != len(values):
        raise ValueError(
            f"ids has {len(known)} entries and labels has {len(values)}; give one id per label"
        )
    check_unique("labels", known)
    return Held("labels", {"labels": values}, len(values), known, held.numbered)


def read_groups(values: list[Any], notes: list[str]) -> Groups:
    """Number the clusters in their natural order; leave out who has none."""
    for i, value in enumerate(values):
        if isinstance(value, list | tuple | dict | set | np.ndarray):
            raise ValueError(
                f"labels must be 1-D, one per observation, but entry {i} is a {type(value).__name__}"
            )
    kept = [i for i, value in enumerate(values) if not _is_unlabelled(value)]
    left_out = len(values) - len(kept)
    if not kept:
        raise ValueError(
            f"none of the {len(values)} observations has a cluster (all labels are −1 or missing); "
            "pass the labels of a clustering"
        )
    if left_out:
        without = counted(left_out, "observation")
        notes.append(f"Left out: {without} without a cluster (−1 or missing).")
    names = sorted(dict.fromkeys(values[i] for i in kept), key=order_of)
    code = {name: k for k, name in enumerate(names)}
    codes = np.array([code[values[i]] for i in kept], dtype=np.intp)
    if len(names) > max(50, len(kept) // 2):
        raise ValueError(
            f"labels has {len(names)} different values for {len(kept)} observations "
            f"(the first is {quoted(names[0])}); these are no clusters: pass one label per cluster"
        )
    return Groups(codes, tuple(names), np.array(kept, dtype=np.intp))


def order_of(name: Any) -> tuple[int, float, str]:
    """Sort numbers by value, texts by letters with the numbers inside them by value."""
    if isinstance(name, Real):
        return (0, float(name), "")
    parts, digits = [], ""
    for c in str(name) + "\0":
        if c.isdecimal():
            digits += c
            continue
        parts.append(digits.zfill(12) if digits else "")
        parts.append(c)
        digits = ""
    return (1, 0.0, "".join(parts))


def _is_unlabelled(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip() in ("", "-1")
    return is_missing(value) or (
        isinstance(value, Number) and not isinstance(value, bool) and value == -1
    )


# --- ids ----------------------------------------------------------------------------------------


def _adopt(n: int, others: Sequence[Held], notes: list[str]) -> list[Any] | None:
    """Labels without ids stand in the order of the first column that has them."""
    first = next((other for other in others if other.ids is not None), None)
    if first is None or first.n != n:
        return None
    notes.append(f"The labels carry no ids; they are taken to be in the order of {first.name}.")
    return first.ids


def _places(n: int, ids: list[Any] | None, other: Held, notes: list[str]) -> Array:
    """Return the row of ``other`` for each label, −1 where there is none."""
    if ids is None or other.ids is None:
        if other.n != n:
            raise ValueError(
                f"labels has {n} entries and {other.name} has {other.n}; pass both with ids (a pandas "
                "Series or DataFrame indexed by id, or ids=) or one value per label"
            )
        if ids is not None:
            notes.append(
                f"{other.name} carries no ids; its rows are taken in the order of the labels."
            )
        return np.arange(n)
    rows = places(ids, other.ids)
    shared = int((rows >= 0).sum())
    if not shared:
        raise ValueError(
            f"labels and {other.name} share no id: labels has {ids[0]!r}, {other.name} has "
            f"{other.ids[0]!r}; give one observation one id everywhere, as text or as a number"
        )
    if shared < other.n:
        unlabelled = counted(other.n - shared, "row")
        notes.append(f"Left out: {unlabelled} of {other.name} without a label.")
    return rows
