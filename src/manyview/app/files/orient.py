"""Which side of a table the samples are on: as said, as ids tell, or a question; and outcome tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from shlex import quote

import numpy as np
import scipy.sparse as sp

from manyview.engines.files.headings import (
    is_feature_heading,
    is_feature_name,
    is_gene_symbol,
    is_note_on_features,
    is_sample_heading,
)
from manyview.views.ids import FAR_BETTER, overlaps, tie

from .samples import FileView, gist, is_barcode
from .text import GCT, split_suffix

#: Above this many files it is not guessed which of them are transposed.
MOST_GUESSED = 10
#: Rows with symbols of well-known genes from which on they may be genes: how many, and which share.
FEWEST_GENES, LEAST_GENES = 3, 0.01
#: Headings that agree less than this are no samples.
WELL = 0.1
Fitted = Mapping[str, Sequence[str]] | None


def oriented(
    parts: dict[str, FileView],
    transpose: Sequence[str],
    fitted: Fitted,
    known: Iterable[str],
) -> tuple[dict[str, FileView], list[str]]:
    """Transpose files as requested and as the ids say; otherwise rows are samples.

    ``fitted`` names the features a view must have, if a model knows them; "" is for every view.
    ``known`` are ids of samples from elsewhere: of a table of labels, or of a clinical one.
    """
    for name in transpose:
        if name not in (*parts, "all", "none"):
            raise ValueError(f"--transpose {name}: the views are {', '.join(parts)}; or say all")
    said = set(parts) if "all" in transpose and "all" not in parts else set(transpose)
    parts = {v: part.transposed() if v in said else part for v, part in parts.items()}
    notes, fixed = [], [view in said or "none" in transpose for view in parts]
    for s, (view, part) in enumerate(list(parts.items())):
        if fixed[s]:
            continue
        rows, columns = part.ids or [], part.features or []
        wanted = set((fitted or {}).get(view) or (fitted or {}).get("") or ())
        in_rows, in_columns = len(wanted & set(rows)), len(wanted & set(columns))
        barcodes = 2 * sum(map(is_barcode, columns)) > len(columns)
        if 2 * in_rows > len(wanted) and in_rows > in_columns:
            told = "has the model's features in rows, so its samples in columns"
        elif split_suffix(part.file)[1] == GCT:
            told = "is a GCT file, which has its samples in columns"
        elif barcodes and not any(map(is_barcode, rows[:100])):
            told = "has TCGA barcodes for headings, so its samples in columns"
        else:
            continue
        parts[view], fixed[s] = part.transposed(), True
        notes.append(f"{part.file} {told}: transposed")
    flips, whose = _guess(parts, fixed, set(known))
    for (view, part), flip in zip(list(parts.items()), flips, strict=True):
        if flip:
            parts[view] = part.transposed()
            notes.append(
                f"{part.file} has the samples in columns (its headings are {whose} ids): transposed"
            )
    # Ids from elsewhere that are those of the rows leave no doubt.
    others = {gist(name) for name in known}
    rows_are_known = any(
        2 * sum(gist(i) in others for i in p.ids or ()) > len(p.ids or (1,)) for p in parts.values()
    )
    if not any(fixed) and not any(flips) and not rows_are_known:
        _ask_if_both_sides_agree(parts, fitted)
        _ask_if_rows_are_features(parts, fitted)
    return {view: _without_notes(part, notes) for view, part in parts.items()}, notes


def _without_notes(part: FileView, notes: list[str]) -> FileView:
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


def _ask_if_rows_are_features(parts: dict[str, FileView], fitted: Fitted) -> None:
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


def _named_as_features(part: FileView) -> bool:
    """Whether a heading says that the rows are features, or their own names do and the columns' do not."""
    if is_feature_heading(part.heading or ""):
        return True
    rows, columns = part.ids or [], part.features or []
    if any(map(is_feature_name, columns)) or any(map(is_gene_symbol, columns)):
        return False
    genes = sum(map(is_gene_symbol, rows))
    return 2 * sum(map(is_feature_name, rows)) > len(rows) or (
        genes >= FEWEST_GENES and genes > LEAST_GENES * len(rows)
    )


def _ask_if_both_sides_agree(parts: dict[str, FileView], fitted: Fitted) -> None:
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
    sides = _names(list(parts.values()), gist)
    rows, headings = (tie(overlaps(side)) for side in sides)
    # Where no row name is shared there is a sentence on that.
    if rows == 0 or headings <= min(0.5, max(WELL, FAR_BETTER * rows)):
        return
    first = next(iter(parts.values()))
    told = []
    for what, names, side in zip(
        ("row names", "headings"), (first.ids, first.features), sides, strict=True
    ):
        everywhere = set.intersection(*side)
        alike = [name for name in names or () if gist(name) in everywhere]
        told.append(f"{len(alike)} {what}" + (f" ({alike[0]!r}, …)" if alike else ""))
    raise ValueError(
        f"the files share {' and '.join(told)}, so that either may be the samples; say which: --transpose "
        "none if the rows are samples, --transpose all if the columns are"
    )


def _names(
    parts: list[FileView], key: Callable[[str], str]
) -> tuple[list[set[str]], list[set[str]]]:
    """The names of rows and of columns, part by part."""
    rows = [set(map(key, part.ids or ())) for part in parts]
    return rows, [set(map(key, part.features or ())) for part in parts]


def _guess(
    views: dict[str, FileView], fixed: list[bool], known: set[str]
) -> tuple[list[bool], str]:
    """Which parts to transpose so that all share ids, and whose ids told: only if one way does it."""
    parts = list(views.values())
    as_given = [False] * len(parts)
    whose = "the other files'" if len(parts) > 1 else "the clinical or label table's"
    if not 1 < len(parts) + bool(known) <= MOST_GUESSED:
        return as_given, whose
    for key in (str, gist):
        rows, columns = _sides(parts, fixed, known, key)
        here = tie(overlaps(rows))
        if here > 0.5:
            return as_given, whose
        if here > 0:  # headings that only count say nothing against names that are shared
            columns = [set[str]() if all(map(str.isdecimal, c)) else c for c in columns]
        ways = _ways(rows, columns, bool(known))
        if len(ways) == 1:  # genes that are written alike must not win over samples that are not
            ways += _ways(*_sides(parts, fixed, known, gist), bool(known))
        ways = list(dict.fromkeys(way[-len(parts) :] for way in ways))
        if len(ways) == 1 and here == 0:
            return list(ways[0]), whose
        if ways:
            turned = [[view for view, f in zip(views, way, strict=True) if f] for way in ways[:2]]
            files = [" and ".join(views[view].file for view in way) for way in turned]
            words = [" ".join(f"--transpose {quote(view)}" for view in way) for way in turned]
            say = ", ".join(
                f"{w} if the columns of {f} are" for w, f in zip(words, files, strict=True)
            )
            better = f", better than as they are ({here:.0%} of the row names)" * (len(ways) == 1)
            raise ValueError(
                f"samples may be the rows or the columns: transposing {' or '.join(files)} makes the ids "
                f"agree{better}; say which are samples: {say}, --transpose none if all rows are"
            )
    return as_given, whose


def _sides(
    parts: list[FileView], fixed: list[bool], known: set[str], key: Callable[[str], str]
) -> tuple[list[set[str]], list[set[str]]]:
    """The names of rows and of columns that may be samples; the ``known`` ids are a table's rows."""
    rows, columns = _names(parts, key)
    columns = [set[str]() if given else names for names, given in zip(columns, fixed, strict=True)]
    return ([set(map(key, known)), *rows], [set[str](), *columns]) if known else (rows, columns)


def _ways(rows: list[set[str]], columns: list[set[str]], anchored: bool) -> list[tuple[bool, ...]]:
    """All ways to turn some of the tables after which every one shares ids with another."""
    n, shares = len(rows), overlaps([*rows, *columns])
    found = []
    for flips in product(*([False] if anchored and s == 0 else [False, True] for s in range(n))):
        sides = np.arange(n) + n * np.array(flips)
        # Where all change sides it may as well be features that the files share.
        if 0 < sum(flips) < n and tie(shares[np.ix_(sides, sides)]) > 0.5:
            found.append(flips)
    return found


#: Headings of columns that hold what clusters are compared with.
ANSWERS = re.compile(
    r"(.*[\W_])?(labels?|class(es)?|(sub[\W_]?types?|i?clusters?)([\W_].*)?|pam50|target|diagnosis|groups?|"
    r"(os|pfs|dfs|rfs|pfi|dss)([\W_](time|event|status|months|days|years))?|time|event|status|"
    r"vital[\W_]status|days[\W_]to[\W_](death|last[\W_]?follow[\W_]?up)|survival([\W_](time|months|days))?|death|dead|deceased|y)"
)
#: One column with so few different whole numbers is a column of labels, if there are rows enough.
FEW, ROWS = 20, 10
#: A table this narrow that names an answer is one of outcomes; a wider one has a column too many.
NARROW = 6


def refuse_answers(parts: dict[str, FileView], allowed: Collection[str]) -> None:
    """Classes among the views would get the highest weight, because they agree with every view."""
    for view, part in parts.items():
        if view in allowed:
            continue
        named = [name for name in part.features or () if ANSWERS.fullmatch(name.strip().lower())]
        stays = f"if it is a view, add --as-view {quote(view)}"
        single = part.matrix.shape[1] == 1
        if (single and (named or _few_values(part))) or (named and part.matrix.shape[1] < NARROW):
            shown = repr(named[0]) if named else f"of {len(_values(part))} different values"
            what = "is a single column, " if single else "has the column "
            raise ValueError(
                f"{part.file} {what}{shown}, which looks like known classes or an outcome and not like a "
                f"view: if it is, give it as --labels {quote(str(part.path or part.file))}; {stays}"
            )
        answers = [name for name in named if _few_values(part, (part.features or []).index(name))]
        if answers:
            drop = quote(f"{view}={answers[0]}")
            raise ValueError(
                f"{part.file} has the column {answers[0]!r} among its features, which looks like known "
                f"classes: add --drop {drop} to leave it out; if it is a feature, add --as-view "
                f"{quote(view)}"
            )


def _values(part: FileView, column: int = 0) -> np.ndarray:
    X = part.matrix
    values = X[:, [column]].toarray().ravel() if sp.issparse(X) else np.asarray(X[:, column], float)
    return np.unique(values[~np.isnan(values)])


def _few_values(part: FileView, column: int = 0) -> bool:
    values = _values(part, column)
    n = part.matrix.shape[0]
    if n < ROWS or not 2 <= len(values) <= min(FEW, n / 2):
        return False
    return bool((values % 1 == 0).all())
