"""`manyview outcomes`: what the clusters of a finished fit mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markup import escape

from manyview.app.files.options import MATCHES
from manyview.app.files.samples import most_alike, smallest_rule
from manyview.app.run.later import add_meaning
from manyview.io.writing import read_csv, restored

from .clinical import Asked, known_ids, read_given
from .common import Voice
from .told import told_outcomes


def run_outcomes(
    run: Path, asked: Asked, horizon: float | None, match: str, figures: bool, voice: Voice
) -> dict[str, Any]:
    """Read, compare, write the tables and the report of the run anew, say what was found."""
    if asked.clinical is None and asked.labels is None:
        raise ValueError("nothing to compare with: give --clinical FILE, --labels FILE, or both")
    asked.check()
    restored(run)
    labels = run / "labels.csv"
    if not labels.is_file():
        raise ValueError(f"{run} is not the folder of a fit: it has no labels.csv; name one")
    ids = [row["id"] for row in read_csv(labels)]
    if match not in MATCHES:
        raise ValueError(f"--match must be one of {', '.join(MATCHES)}, got {match!r}")
    with voice.busy("reading the files") as tell:
        rule = smallest_rule([ids], match, most_alike(known_ids(asked), ids))
        given = read_given(asked, ids, len(ids), rule=rule)
        for note in given.notes:
            voice.note(note)
        tell("comparing the clusters")
        files = add_meaning(
            run,
            given.columns,
            given.time,
            given.event,
            given.classes,
            horizon=horizon,
            notes=given.notes,
            figures=figures,
        )
    summary: dict[str, Any] = {"out": str(run), "files": files, "notes": given.notes}
    voice.show(*told_outcomes(run, summary, voice))
    voice.show(f"Written to [bold]{escape(str(run))}/[/bold]: {escape(', '.join(files))}")
    voice.result(summary)
    return summary
