"""Which side of a table the samples are on: as said, as ids and headings tell, or a question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from shlex import quote

import numpy as np

from manyview.datasets._tables import split_suffix
from manyview.engines.files.headings import (
    is_feature_heading,
    is_feature_name,
    is_note_on_features,
    is_sample_heading,
)

from .matching import gist, is_barcode
from .options import ALL, NONE
from .part import Part
from .text import GCT

#: Above this many files nobody guesses which of them are transposed.
MOST_GUESSED = 10
Fitted = Mapping[str, Sequence[str]] | None


def oriented(
    parts: dict[str, Part],
    transpose: Sequence[str],
    fitted: Fitted = None,
    known: Iterable[str] = (),
) -> tuple[dict[str, Part], list[str]]:
    """Transpose what was asked, and what the ids say; otherwise rows are samples.

    ``fitted`` names the features a view must have, if a model knows them; "" is for every view.
    ``known`` are ids of samples from elsewhere: of a table of labels, or of a clinical one.
    """
    said = _said(parts, transpose)
    parts = {v: part.transposed() if v in said else part for v, part in parts.items()}
    notes, fixed = [], [view in said or NONE in transpose for view in parts]
    for s, (view, part) in enumerate(list(parts.items())):
        wanted = set((fitted or {}).get(view) or (fitted or {}).get("") or ())
        told = ""
        if not fixed[s] and _rows_are_features(part, wanted):
            told = "has the model's features in rows, so its samples in columns"
        elif not fixed[s] and split_suffix(part.file)[1] == GCT:
            told = "is a GCT file, which has its samples in columns"
        elif not fixed[s] and _headings_are_barcodes(part):
            told = "has TCGA barcodes for headings, so its samples in columns"
        if told:
            parts[view], fixed[s] = part.transposed(), True
            notes.append(f"{part.file} {told}: transposed")
    flips, whose = _guess(list(parts.values()), fixed, set(known))
    for (view, part), flip in zip(list(parts.items()), flips, strict=True):
        if flip:
            parts[view] = part.transposed()
            notes.append(
                f"{part.file} has the samples in columns (its headings are {whose} ids): transposed"
            )
    if not any(fixed) and not any(flips) and not _rows_are_known(parts, set(known)):
        _ask_if_both_sides_agree(parts, fitted)
        _ask_if_rows_are_features(parts, fitted)
    return {view: _without_notes(part, notes) for view, part in parts.items()}, notes


def _said(parts: dict[str, Part], transpose: Sequence[str]) -> set[str]:
    """The views that somebody says are transposed."""
    said: set[str] = set()
    for name in transpose:
        if name in parts:
            said.add(name)
        elif name == ALL:
            said |= set(parts)
        elif name != NONE:
            raise ValueError(f"--transpose {name}: the views are {', '.join(parts)}; or say all")
    return said


def _headings_are_barcodes(part: Part) -> bool:
    rows, columns = part.ids or [], part.features or []
    there = sum(map(is_barcode, columns))
    return 2 * there > len(columns) and not any(map(is_barcode, rows[:100]))


def _without_notes(part: Part, notes: list[str]) -> Part:
    """Columns of portals that tell about the genes become no samples when the table is turned."""
    if not part.turned or part.ids is None:
        return part
    kept = [i for i, name in enumerate(part.ids) if not is_note_on_features(name)]
    if len(kept) == len(part.ids) or not kept:
        return part
    left_out = [name for name in part.ids if is_note_on_features(name)]
    notes.append(f"{part.file}: {', '.join(map(repr, left_out[:4]))} left out, no sample")
    ids = [part.ids[i] for i in kept]
    return replace(part, matrix=part.matrix[np.array(kept, dtype=np.intp)], ids=ids)


def _rows_are_known(parts: dict[str, Part], known: set[str]) -> bool:
    """Whether ids from elsewhere are those of the rows."""
    names = {gist(name) for name in known}
    return any(
        2 * sum(gist(i) in names for i in p.ids or ()) > len(p.ids or (1,)) for p in parts.values()
    )


def _ask_if_rows_are_features(parts: dict[str, Part], fitted: Fitted) -> None:
    """Where all rows are headed or named as genes or the like, samples may be the columns."""
    named = {view: part for view, part in parts.items() if part.ids is not None}
    known = {name for names in (fitted or {}).values() for name in names}
    for part in named.values():
        if part.asked or known & set(part.features or ()) or not _named_as_features(part):
            return
    if named:
        view, part = next(iter(named.items()))
        why, stay = f"named like features ({(part.ids or [''])[0]!r}, …)", "--transpose none"
        if is_feature_heading(part.heading or ""):
            why = f"headed {part.heading!r}"
            stay = f"--index {quote(f'{view}={part.heading}')}"
        turn = " ".join(f"--transpose {quote(name)}" for name in named)
        raise ValueError(
            f"{part.file} has its ids in a column {why}, so that its {part.matrix.shape[0]} rows may be "
            f"features and its {part.matrix.shape[1]} columns the samples; say which: {turn} if the "
            f"columns are samples, {stay} if the rows are"
        )


def _named_as_features(part: Part) -> bool:
    """Whether a heading says that the rows are features, or their own names do and the columns' do not."""
    if is_feature_heading(part.heading or ""):
        return True
    rows, columns = part.ids or [], part.features or []
    return 2 * sum(map(is_feature_name, rows)) > len(rows) and not any(
        map(is_feature_name, columns)
    )


def _rows_are_features(part: Part, wanted: set[str]) -> bool:
    in_rows, in_columns = (len(wanted & set(names or ())) for names in (part.ids, part.features))
    return 2 * in_rows > len(wanted) and in_rows > in_columns


def _ask_if_both_sides_agree(parts: dict[str, Part], fitted: Fitted) -> None:
    """Files alike in rows and in columns do not show which are the samples: genes might be clustered."""
    if len(parts) < 2 or any(not part.ids or not part.features for part in parts.values()):
        return
    if any(p.asked or is_sample_heading(p.heading or "") for p in parts.values()):
        return
    if any(2 * sum(map(is_barcode, p.ids or ())) > len(p.ids or ()) for p in parts.values()):
        return
    known = {name for names in (fitted or {}).values() for name in names}
    columns = [{str(name) for name in part.features or ()} for part in parts.values()]
    # Headings that only count say nothing; those of a model are features.
    if known & set().union(*columns) or all(n.isdecimal() for names in columns for n in names):
        return
    rows = [set(map(gist, part.ids or ())) for part in parts.values()]
    columns = [set(map(gist, names)) for names in columns]
    if not linked(rows, 0.5) or not linked(columns, 0.5):
        return
    first = next(iter(parts.values()))
    raise ValueError(
        f"the files share their row names ({(first.ids or [''])[0]!r}, …) and most of their headings "
        f"({(first.features or [''])[0]!r}, …), so that either may be the samples; say which: --transpose "
        "none if the rows are samples, --transpose all if the columns are"
    )


def _guess(parts: list[Part], fixed: list[bool], known: set[str]) -> tuple[list[bool], str]:
    """Which parts to transpose so that all share ids, and whose ids told: only if one way does it."""
    as_given = [False] * len(parts)
    names = [
        (set(part.ids or ()), set() if given else set(part.features or ()))
        for part, given in zip(parts, fixed, strict=True)
    ]
    whose = "the other files'"
    if known:
        names, whose = [(known, set()), *names], "the labels'" if len(parts) == 1 else whose
    if not 1 < len(names) <= MOST_GUESSED:
        return as_given, whose
    gists = [(set(map(gist, rows)), set(map(gist, columns))) for rows, columns in names]
    for sides in (names, gists):
        if not any(rows for rows, _ in sides) or linked([rows for rows, _ in sides], 0):
            return as_given, whose
        ways = _ways(sides, bool(known))
        if len(ways) == 1:  # genes that are written alike must not win over samples that are not
            ways = list(dict.fromkeys([*ways, *_ways(gists, bool(known))]))
        ways = [way[-len(parts) :] for way in ways]
        if len(ways) == 1:
            return list(ways[0]), whose
        if len(ways) > 1:
            flipped = [[p.file for p, f in zip(parts, way, strict=True) if f] for way in ways[:2]]
            raise ValueError(
                f"samples may be the rows or the columns: transposing {' and '.join(flipped[0])} or "
                f"{' and '.join(flipped[1])} makes the ids agree; say which by --transpose NAME"
            )
    return as_given, whose


def _ways(sides: list[tuple[set[str], set[str]]], anchored: bool) -> list[tuple[bool, ...]]:
    """All ways to turn some of the tables after which every one shares ids with another."""
    choices = [[False] if anchored and s == 0 else [False, True] for s in range(len(sides))]
    return [
        flips
        for flips in product(*choices)
        # Where all change sides it may as well be features that the files share.
        if 0 < sum(flips) < len(sides)
        and linked([side[flip] for side, flip in zip(sides, flips, strict=True)], 0.5)
    ]


def linked(names: list[set[str]], share: float) -> bool:
    """Whether every set shares more than this part of the smaller with one it can reach."""
    reached, waiting = [names[0]], names[1:]
    while waiting:
        new = [n for n in waiting if any(len(n & r) > share * min(len(n), len(r)) for r in reached)]
        if not new:
            return False
        reached, waiting = reached + new, [n for n in waiting if not any(n is m for m in new)]
    return True
