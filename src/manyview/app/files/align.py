"""Parts from several files → rows that are the same samples: ids, union or intersection."""

from __future__ import annotations

from shlex import quote

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview.views.ids import (
    overlaps,
    places,
    refuse_lookalikes,
    take_rows,
    tie,
)

from .part import Part

#: From so many rows on, a column that counts them is asked about.
FEWEST_COUNTED = 5


def with_common_ids(parts: dict[str, Part]) -> tuple[dict[str, Part], list[str]]:
    """A first column of distinct whole numbers, headed alike in several files, holds ids.

    Read as a feature it would let samples be joined by position.
    """
    seen = [part.first for part in parts.values() if part.first is not None]
    for heading in {first[0] for first in seen}:
        values = [set(first[1]) for first in seen if first[0] == heading]
        if len(values) > 1 and len(set.intersection(*values)) > len(values[0]) / 2:
            changed = {
                view: part.with_first_as_ids()
                if part.first is not None and part.first[0] == heading
                else part
                for view, part in parts.items()
            }
            return changed, [
                f"the column {heading!r}, first in {len(values)} files, is taken for the sample ids"
            ]
    return parts, []


def ask_if_rows_are_counted(parts: dict[str, Part]) -> None:
    """A first column 1, 2, 3, … is hardly a feature, and as one it would weigh as much as any."""
    for view, part in parts.items():
        if part.first is None:
            continue
        heading, values = part.first
        start = [str(i) for i in range(len(values))], [str(i + 1) for i in range(len(values))]
        if len(values) >= FEWEST_COUNTED and values in start:
            raise ValueError(
                f"the first column {heading!r} of {part.file} counts the rows ({values[0]}, {values[1]}, "
                f"…, {values[-1]}) and may be ids or a feature; say which: --index "
                f"{quote(f'{view}={heading}')} for ids, --index {quote(view)}= for a feature"
            )


class Aligned:
    """Matrices with common rows, the ids of these, and what there is to say about it."""

    def __init__(
        self,
        matrices: dict[str, Matrix],
        ids: list[str] | None,
        first_rows: Array,
        notes: list[str],
    ):
        self.matrices, self.ids, self.first_rows, self.notes = matrices, ids, first_rows, notes


def align(parts: dict[str, Part], union: bool) -> Aligned:
    """Rows by id, in the order of the first file; the union or the intersection of the samples."""
    for part in parts.values():
        part.check_ids()
    listed = [part.ids for part in parts.values() if part.ids is not None]
    same = all(ids == listed[0] for ids in listed)
    if len(listed) < len(parts) or same:
        return _in_one_order(parts, listed, same)
    sets = [set(ids) for ids in listed]
    if tie(overlaps(sets)) == 0:
        _complain_of_strangers(list(parts.values()))
    refuse_lookalikes(listed, [part.file for part in parts.values()])
    shared, everyone = set.intersection(*sets), dict.fromkeys(i for ids in listed for i in ids)
    if not union and not shared:
        _complain_of_strangers(list(parts.values()))
    order = list(everyone) if union else [i for i in listed[0] if i in shared]
    matrices, notes, first_rows = {}, [], np.arange(0)
    for s, (view, part) in enumerate(parts.items()):
        n = len(part.ids or ())
        rows = places(order, part.ids or ())
        first_rows = rows if s == 0 else first_rows
        X = part.matrix
        if (rows < 0).any() and not sp.issparse(X):
            X = X.astype(np.result_type(X.dtype, np.float32), copy=False)
        matrices[view] = take_rows(X, rows)
        if not union and n > len(order):
            notes.append(f"{part.file}: {n - len(order)} of {n} samples left out")
        if union and (rows < 0).any():
            notes.append(f"{part.file} lacks {int((rows < 0).sum())} of {len(order)} samples")
    if union:
        notes.append(
            f"{len(shared)} of {len(order)} samples are in every file; all {len(order)} are used, "
            "a view that a sample lacks counts as missing"
        )
    elif notes:
        notes.append(f"{len(order)} samples are in every file and are used")
    return Aligned(matrices, order, first_rows, notes)


def _complain_of_strangers(parts: list[Part]) -> None:
    first, known = parts[0], set(parts[0].ids or ())
    for part in parts[1:]:
        ids = part.ids or [""]
        if not known & set(ids):
            hint = ""
            both = set(first.features or ()) & set(part.features or ())
            if both:
                hint = (
                    f". Their columns share {len(both)} names: if these are the samples, add "
                    "--transpose all"
                )
            raise ValueError(
                f"{part.file} shares no sample id with the files before it: {first.file} has "
                f"{(first.ids or [''])[0]!r}, {part.file} has {ids[0]!r}; give one sample one id "
                f"everywhere{hint}"
            )
        known &= set(ids)


def _in_one_order(parts: dict[str, Part], listed: list[list[str]], same: bool) -> Aligned:
    """Files of which some have no ids, or all the same: row i is the same sample in all."""
    first, *others = parts.values()
    if not same:
        bare = next(part for part in parts.values() if part.ids is None)
        raise ValueError(
            f"{bare.file} has no sample ids, and the other files list theirs in different orders; "
            "give every file a first column of ids, or name its column by --index"
        )
    n = first.matrix.shape[0]
    for part in others:
        if part.matrix.shape[0] != n:
            columns = {p.matrix.shape[1] for p in parts.values()}
            hint = ""
            if len(columns) == 1:
                hint = (
                    f". All have {columns.pop()} columns: if these are samples, add --transpose all"
                )
            raise ValueError(
                f"{first.file} has {n} samples and {part.file} has {part.matrix.shape[0]}; without "
                f"ids in every file the rows must be the same samples in the same order{hint}"
            )
    notes = []
    if len(parts) > 1 and len(listed) < len(parts):
        without = [part.file for part in parts.values() if part.ids is None]
        notes = [
            f"no sample ids in {', '.join(without)}: row by row the samples are taken to be the same"
        ]
    matrices = {view: part.matrix for view, part in parts.items()}
    return Aligned(matrices, listed[0] if listed else None, np.arange(n), notes)
