"""Tables that look like the answer and not like a view: labels, classes, survival times."""

from __future__ import annotations

import re
from collections.abc import Collection
from shlex import quote

import numpy as np
import scipy.sparse as sp

from .part import Part

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


def refuse_answers(parts: dict[str, Part], allowed: Collection[str]) -> None:
    """The truth among the views would get the highest weight: it agrees with everybody."""
    for view, part in parts.items():
        if view in allowed:
            continue
        named = [name for name in part.features or () if ANSWERS.fullmatch(name.strip().lower())]
        stays = f"if it is a view, add --as-view {quote(view)}"
        if part.matrix.shape[1] == 1 and (named or _few_values(part)):
            shown = repr(named[0]) if named else f"of {len(_values(part))} different values"
            raise ValueError(
                f"{part.file} is a single column, {shown}, which looks like known classes and not like a "
                f"view: if they are, give it as --labels {quote(str(part.path or part.file))}; {stays}"
            )
        if named and part.matrix.shape[1] < NARROW:
            raise ValueError(
                f"{part.file} has the column {named[0]!r}, which looks like known classes or an outcome "
                f"and not like a view: leave the file away, or give it as --labels; {stays}"
            )
        answers = [name for name in named if _few_values(part, (part.features or []).index(name))]
        if answers:
            drop = quote(f"{view}={answers[0]}")
            raise ValueError(
                f"{part.file} has the column {answers[0]!r} among its features, which looks like known "
                f"classes: add --drop {drop} to leave it out; if it is a feature, add --as-view "
                f"{quote(view)}"
            )


def _values(part: Part, column: int = 0) -> np.ndarray:
    X = part.matrix
    values = X[:, [column]].toarray().ravel() if sp.issparse(X) else np.asarray(X[:, column], float)
    return np.unique(values[~np.isnan(values)])


def _few_values(part: Part, column: int = 0) -> bool:
    values = _values(part, column)
    n = part.matrix.shape[0]
    if n < ROWS or not 2 <= len(values) <= min(FEW, n / 2):
        return False
    return bool((values % 1 == 0).all())
