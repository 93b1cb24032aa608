"""What is understood of tables, told by a process of its own: JSON in on standard input, JSON out."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview.app.files import ReadViews, read_views
from manyview.app.files.clinical import clinical_ids, read_clinical
from manyview.engines.numpy.presence import observed_rows, survey
from manyview.outcomes.columns import read_column, read_levels
from manyview.outcomes.endpoints import recognise, split_event

from .words import Word, choices, reading, shown

#: Columns of the clinical table whose effect may be removed, beside those that look technical.
MOST_OFFERED = 30


def look(files: list[str], clinical: str | None, words: list[Any]) -> dict[str, Any]:
    """Views with their sizes, sentences on how files were read, or a problem and what may be done."""
    try:
        known = clinical_ids(clinical) if clinical else []
        given = vars(reading(words))
        data = read_views(files, missing="allow", known=known, **given)
        notes = list(data.told)
        offers: dict[str, Any] = {}
        columns: dict[str, list[Any]] = {}
        if clinical:
            samples = None if data.sample_names is None else data.sample_names.tolist()
            table = read_clinical(clinical, samples, len(data.first_rows), data.rule)
            columns = table.columns
            note, offers = _offers(columns, words)
            notes += [*table.notes, *([note] if note else [])]
        told, zeros = _zeros(data, words)
        notes += told
        offers["zeros"] = zeros
        _check_columns(columns, words)
    except (ValueError, ImportError, OSError, MemoryError) as error:
        problem = " ".join(str(error).split()) or type(error).__name__
        return {"problem": problem, "choices": choices(problem), "views": [], "notes": []}
    views = [
        (entry["view"], int(entry["rows"]), data.views[entry["view"]]) for entry in data.inputs
    ]
    return {
        "views": [
            {"view": name, "samples": rows, "features": int(X.shape[1]), "kind": _kind(X)}
            for name, rows, X in views
        ],
        "samples": len(data.first_rows),
        "notes": [shown(n) for n in notes],
        "problem": "",
        "offers": offers,
        "choices": sorted({c for n in notes for c in choices(n) if c[0] == "keep-normals"}),
    }


def _zeros(data: ReadViews, words: list[Any]) -> tuple[list[str], list[Word]]:
    """What a row of zeros is in each view that has some, and the choice of the other."""
    answers = dict(value.rpartition("=")[::2] for name, value in words if name == "zero-rows")
    notes, offered = [], []
    for entry in data.inputs:
        view, X = entry["view"], data.views[entry["view"]]
        if sp.issparse(X) and int(entry["rows"]) < X.shape[0]:  # zeros stand for samples it lacks
            continue
        present, values = survey(X)
        n = int((observed_rows(X) & ~present).sum())
        if not n or not present.any():
            continue
        kind = answers.get(view, "observed" if values else "missing")
        here, other = ("values", "missing") if kind == "observed" else ("missing", "observed")
        notes.append(f"{view}: {n} sample{'s' * (n > 1)} with zeros only, treated as {here}")
        if "," not in view:  # the option separates views by commas
            offered.append(("zero-rows", f"{view}={other}"))
    return notes, offered


def _offers(columns: dict[str, list[Any]], words: list[Any]) -> tuple[str, dict[str, Any]]:
    """What is said of survival, and what may be chosen: the coding of the event, effects to be removed."""
    found = recognise(columns)
    note, doubt = found.note, found.doubt
    answered = dict(words).get("event")
    if answered is not None:
        note, doubt = f"survival: time from {found.time!r}, event where {answered}", None
    free = [name for name in columns if ["adjust", name] not in [list(word) for word in words]]
    technical = [name for name in free if read_levels(name, columns[name])]
    others = [name for name in free if name not in technical and name not in found[:2]]
    return note, {
        "event": [("event", answer) for answer in doubt.answers] if doubt else [],
        "adjust": [("adjust", name) for name in technical],
        "more": [("adjust", n) for n in others[:MOST_OFFERED] if read_column(n, columns[n]).kind],
    }


def _check_columns(columns: dict[str, list[Any]], words: list[Any]) -> None:
    """Answers to a clinical table that was replaced or left out meanwhile."""
    for name, value in words:
        column = {"adjust": value, "event": split_event(value, columns)[0]}.get(name)
        if column is not None and column not in columns:
            raise ValueError(
                f"“{column}” is no column of the clinical table; choose “Forget these answers”"
            )


def _kind(X: Any) -> str:
    values = X.data if sp.issparse(X) else np.asarray(X[:2000], dtype=float).ravel()
    values = values[~np.isnan(values)]
    if not len(values):
        return "empty"
    whole = bool((values % 1 == 0).all())
    if whole and set(np.unique(values[:10000])) <= {0.0, 1.0}:
        return "0 and 1"
    if whole and values.min() >= 0:
        return "counts"
    return "numbers" if values.min() < 0 else "numbers, none negative"


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump(look(asked["files"], asked["clinical"], asked["words"]), sys.stdout)
