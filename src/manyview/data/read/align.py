"""Parts from several files → rows that are the same samples: orientation, ids, union or intersection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from shlex import quote

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview.data.ids import places, refuse_lookalikes, take_rows
from manyview.engines.files.headings import is_feature_heading

from .part import Part

#: Above this many files nobody guesses which of them are transposed.
MOST_GUESSED = 10
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


def oriented(
    parts: dict[str, Part],
    transpose: Sequence[str],
    fitted: Mapping[str, Sequence[str]] | None = None,
) -> tuple[dict[str, Part], list[str]]:
    """Transpose what was asked, and what the ids say; otherwise rows are samples.

    ``fitted`` names the features a view must have, if a model knows them; "" is for every view.
    """
    for name in transpose:
        if name not in parts:
            raise ValueError(f"--transpose {name}: the views are {', '.join(parts)}")
    parts = {v: part.transposed() if v in transpose else part for v, part in parts.items()}
    notes, fixed = [], [view in transpose for view in parts]
    for s, (view, part) in enumerate(list(parts.items())):
        wanted = set((fitted or {}).get(view) or (fitted or {}).get("") or ())
        if not fixed[s] and _rows_are_features(part, wanted):
            parts[view], fixed[s] = part.transposed(), True
            notes.append(
                f"{part.file} has the model's features in rows, so its samples in columns: transposed"
            )
    flips = _guess(list(parts.values()), fixed)
    for (view, part), flip in zip(list(parts.items()), flips, strict=True):
        if flip:
            parts[view] = part.transposed()
            notes.append(
                f"{part.file} has the samples in columns (its headings are the other files' ids): "
                "transposed"
            )
    if not any(fixed) and not any(flips):
        notes += _doubt(parts)
        _ask_if_rows_are_features(parts, fitted)
    return parts, notes


def _ask_if_rows_are_features(
    parts: dict[str, Part], fitted: Mapping[str, Sequence[str]] | None
) -> None:
    """Where every column of ids is headed as one of genes or the like, samples may be the columns."""
    named = {view: part for view, part in parts.items() if part.ids is not None}
    known = {name for names in (fitted or {}).values() for name in names}
    for part in named.values():
        expected = known & set(part.features or ())
        if part.asked or part.heading is None or not is_feature_heading(part.heading) or expected:
            return
    if named:
        view, part = next(iter(named.items()))
        stay = quote(f"{view}={part.heading}")
        turn = " ".join(f"--transpose {name}" for name in named)
        raise ValueError(
            f"{part.file} has its ids in a column headed {part.heading!r}, so that its "
            f"{part.matrix.shape[0]} rows may be features and its {part.matrix.shape[1]} columns the "
            f"samples; say which: {turn} if the columns are samples, --index {stay} if the rows are"
        )


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


def _rows_are_features(part: Part, wanted: set[str]) -> bool:
    in_rows, in_columns = (len(wanted & set(names or ())) for names in (part.ids, part.features))
    return 2 * in_rows > len(wanted) and in_rows > in_columns


def _doubt(parts: dict[str, Part]) -> list[str]:
    """Files alike in rows and in columns do not show which of the two are the samples."""
    if len(parts) < 2 or any(not part.ids or not part.features for part in parts.values()):
        return []
    rows, columns = ([set(p.ids or ()) for p in parts.values()],
                     [set(p.features or ()) for p in parts.values()])  # fmt: skip
    # Headings that only count say nothing.
    counted = all(name.isdecimal() for names in columns for name in names)
    if counted or not _linked(rows, 0.5) or not _linked(columns, 0.5):
        return []
    first = next(iter(parts.values()))
    asked = " ".join(f"--transpose {view}" for view in parts)
    return [
        f"the files share their row ids ({(first.ids or [''])[0]!r}, …) and most of their headings "
        f"({(first.features or [''])[0]!r}, …): rows are taken for the samples; if the columns are, "
        f"add {asked}"
    ]


def _guess(parts: list[Part], fixed: list[bool]) -> list[bool]:
    """Which parts to transpose so that all share ids: only if there is one way to do it."""
    as_given = [False] * len(parts)
    if not 1 < len(parts) <= MOST_GUESSED:
        return as_given
    names = [
        (set(part.ids or ()), set() if given else set(part.features or ()))
        for part, given in zip(parts, fixed, strict=True)
    ]
    if not any(rows for rows, _ in names) or _linked([rows for rows, _ in names], 0):
        return as_given
    ways = [
        flips
        for flips in product([False, True], repeat=len(parts))
        # Where all change sides it may as well be features that the files share.
        if 0 < sum(flips) < len(parts) and _linked([n[f] for n, f in zip(names, flips, strict=True)], 0.5)
    ]  # fmt: skip
    if len(ways) == 1:
        return list(ways[0])
    if len(ways) > 1:
        flipped = [[p.file for p, f in zip(parts, way, strict=True) if f] for way in ways[:2]]
        raise ValueError(
            f"samples may be the rows or the columns: transposing {' and '.join(flipped[0])} or "
            f"{' and '.join(flipped[1])} makes the ids agree; say which by --transpose NAME"
        )
    return as_given


def _linked(names: list[set[str]], share: float) -> bool:
    """Whether every set shares more than this part of the smaller with one it can reach."""
    reached, waiting = [names[0]], names[1:]
    while waiting:
        new = [n for n in waiting if any(len(n & r) > share * min(len(n), len(r)) for r in reached)]
        if not new:
            return False
        reached, waiting = reached + new, [n for n in waiting if not any(n is m for m in new)]
    return True


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
    if not _linked(sets, 0):
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
                    f". Their columns share {len(both)} names: if these are the samples, transpose "
                    "both by --transpose NAME"
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
                hint = f". All have {columns.pop()} columns: if these are samples, add --transpose"
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
