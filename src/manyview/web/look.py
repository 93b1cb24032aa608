"""What is understood of tables, told by a process of its own: JSON in on standard input, JSON out."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview.data.read import read_views
from manyview.data.read.clinical import clinical_ids, read_clinical
from manyview.outcomes.endpoints import recognise

from .words import choices, reading, shown


def look(files: list[str], clinical: str | None, words: list[Any]) -> dict[str, Any]:
    """Views with their sizes, sentences on how files were read, or a problem and what may be done."""
    try:
        known = clinical_ids(clinical) if clinical else []
        given = vars(reading([(name, value) for name, value in words]))
        data = read_views(files, missing="allow", known=known, **given)
        notes = list(data.told)
        if clinical:
            samples = None if data.sample_names is None else data.sample_names.tolist()
            table = read_clinical(clinical, samples, len(data.first_rows), data.rule)
            note = recognise(table.columns)[2]
            notes += [*table.notes, *([note] if note else [])]
    except (ValueError, ImportError, OSError, MemoryError) as error:
        problem = " ".join(str(error).split()) or type(error).__name__
        return {"problem": problem, "choices": choices(problem), "views": [], "notes": []}
    views = [_described(entry, data.views[entry["view"]]) for entry in data.inputs]
    return {
        "views": views,
        "samples": len(data.first_rows),
        "notes": [shown(n) for n in notes],
        "problem": "",
        "choices": sorted({c for n in notes for c in choices(n) if c[0] == "keep-normals"}),
    }


def _described(entry: dict[str, Any], X: Any) -> dict[str, Any]:
    return {
        "view": entry["view"],
        "samples": int(entry["rows"]),
        "features": int(X.shape[1]),
        "kind": _kind(X),
    }


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
