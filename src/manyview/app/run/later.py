"""A clinical table or known classes for a finished run: its tables and its page are made anew."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyview.app.report.fit import fit_page, read_run
from manyview.io.writing import claimed, read_csv, read_marker

from .figures import (
    KINDS,
    MEANING_FIGURES,
    heatmap_figure,
    meaning_figures,
)
from .folder import KIND, ids_of_run, table_bytes
from .meaning import (
    FILES,
    described,
    known,
    meaning,
)
from .record import run_json

#: What shows something that is known beside the views; the heat map has bars of it.
FRESH = {*FILES, "run.json", "report.html"} | {
    f"figures/{name}.{kind}" for name in (*MEANING_FIGURES, "heatmap") for kind in KINDS
}


def add_meaning(
    run: Path,
    clinical: Any = None,
    time: str | None = None,
    event: str | None = None,
    classes: Sequence[Any] | None = None,
    *,
    horizon: float | None = None,
    notes: Sequence[str] = (),
    figures: bool = False,
) -> list[str]:
    """Compare the clusters of a finished run with what is known; return the files written.

    What an earlier comparison wrote is replaced. Everything else stays as it is.
    """
    with claimed(run, KIND, force=True) as place, place.replacing() as beside:
        kept = keep(run, beside, FRESH.__contains__)
        rows = read_csv(run / "labels.csv")
        ids, originals = ids_of_run(run)
        about = json.loads((run / "run.json").read_text(encoding="utf-8"))
        adjusted = [name for name in about.get("adjusted", []) if name in (clinical or {})]
        beside_views = known(ids, clinical, time, event, classes, adjusted, horizon)
        found = meaning(np.array([int(row["cluster"]) for row in rows]), ids, beside_views)
        for name, table in found.tables.items():
            (beside / name).write_bytes(table_bytes(table, originals))
        told = [note for note in about.get("outcome_notes", []) if note not in notes]
        about |= {**described(found), "outcome_notes": [*told, *notes]}
        (beside / "run.json").write_bytes(run_json(about))
        drawings = meaning_figures(found) if figures else {}
        if figures or (run / "figures" / "heatmap.svg").exists():
            drawings |= heatmap_figure(read_run(beside, run))  # its bars are what is known now
        for name, content in drawings.items():
            (beside / name).parent.mkdir(exist_ok=True)
            (beside / name).write_bytes(content)
        page = (run / "report.html").exists()
        about["files"] = sorted({*_names(beside), "run.json", *(["report.html"] if page else [])})
        (beside / "run.json").write_bytes(run_json(about))
        if page:
            (beside / "report.html").write_text(fit_page(beside, run), encoding="utf-8")
        return sorted(name for name in _names(beside) if name not in kept)


def keep(run: Path, beside: Path, made_anew: Callable[[str], bool]) -> set[str]:
    """Everything of the run that is not made anew, as it is: linked, or copied where that fails."""
    marker = read_marker(run)
    listed = {} if marker is None else marker.ours(run, marker.files.get(KIND, {}))
    kept = {name for name in listed if not made_anew(name)}
    for name in kept:
        (beside / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(run / name, beside / name)
        except OSError:
            shutil.copy2(run / name, beside / name)
    return kept


def _names(folder: Path) -> list[str]:
    return [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]
