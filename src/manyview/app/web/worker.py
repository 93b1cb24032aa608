"""What the page does in processes of their own, within a limit of memory.

``python -m manyview.app.web.worker BYTES fit …`` runs the command; ``… BYTES look`` reads a run as JSON
from standard input and prints what is understood of its tables.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview.app.files import ReadViews, read_views
from manyview.app.files.clinical import clinical_ids, read_clinical
from manyview.app.options import FitRequest
from manyview.engines.numpy.presence import observed_rows, survey
from manyview.io.child import confine
from manyview.outcomes.columns import read_column, read_levels
from manyview.outcomes.endpoints import recognize, split_event

from .answers import Word, choices, request, shown

#: Columns of the clinical table whose effect may be removed, in addition to those that look technical.
MOST_OFFERED = 30
#: Columns among which time, event and classes are chosen.
MOST_COLUMNS = 500


def look(ask: FitRequest) -> dict[str, Any]:
    """Views with their sizes, sentences on how files were read, or a problem and what may be done."""
    try:
        known = clinical_ids(ask.clinical) if ask.clinical else []
        data = read_views(ask.files, missing="allow", known=known, **vars(ask.reading))
        notes, offers = list(data.told), dict[str, Any]()
        columns: dict[str, list[Any]] = {}
        if ask.clinical:
            samples = None if data.sample_names is None else data.sample_names.tolist()
            table = read_clinical(ask.clinical, samples, len(data.first_rows), data.rule)
            columns = table.columns
            note, offers = _offers(columns, ask)
            offers["columns"] = list(columns)[:MOST_COLUMNS]
            notes += [*table.notes, *([note] if note else [])]
        zero_notes, offers["zeros"] = _zeros(data, ask.zero_rows or "")
        notes += zero_notes
        event = [split_event(ask.event, columns)[0]] if ask.event else []
        time = [ask.time] if ask.time else []
        if time and not event:
            raise ValueError("survival needs an event as well as a time; choose its column, too")
        classes = [ask.labels.rpartition(":")[2]] if ask.labels else []
        for column in (*time, *event, *classes, *ask.adjust, *ask.batch):
            if column not in columns:  # the clinical table was replaced or left out meanwhile
                raise ValueError(
                    f"“{column}” is no column of the clinical table; choose “Reset these choices”"
                )
    except (ValueError, ImportError, OSError, MemoryError) as error:
        problem = " ".join(str(error).split()) or type(error).__name__
        return {"problem": problem, "choices": choices(problem), "views": [], "notes": []}
    views = []
    for entry in data.inputs:
        X = data.views[entry["view"]]
        sizes = {"samples": int(entry["rows"]), "features": int(X.shape[1])}
        views.append({"view": entry["view"], **sizes, "kind": _kind(X)})
    return {
        "views": views,
        "samples": len(data.first_rows),
        "notes": [shown(n) for n in notes],
        "problem": "",
        "offers": offers,
        "choices": sorted({c for n in notes for c in choices(n) if c[0] == "keep-normals"}),
    }


def _zeros(data: ReadViews, said: str) -> tuple[list[str], list[Word]]:
    """What a row of zeros is in each view that has some, and the choice of the other."""
    answers = dict(item.rpartition("=")[::2] for item in said.split(","))
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


def _offers(columns: dict[str, list[Any]], ask: FitRequest) -> tuple[str, dict[str, Any]]:
    """What is said of survival, and what may be chosen: the coding of the event, effects to be removed."""
    found = recognize(columns)
    note, doubt = found.note, found.doubt
    if ask.event is not None:
        time = ask.time or found.time
        word = "where" if "=" in ask.event else "from"
        note, doubt = f"survival: time from {time!r}, event {word} {ask.event}", None
    free = [name for name in columns if name not in (*ask.adjust, *ask.batch)]
    technical = [name for name in free if read_levels(name, columns[name])]
    others = [name for name in free if name not in technical and name not in found[:2]]
    return note, {
        "event": [("event", answer) for answer in doubt.answers] if doubt else [],
        "batch": [("batch", name) for name in technical],
        "more": [("adjust", n) for n in others[:MOST_OFFERED] if read_column(n, columns[n]).kind],
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


def end_with_server() -> None:
    """Wait for the end of standard input, which comes with the server's, then end all that began here."""
    with contextlib.suppress(OSError):
        while os.read(0, 1):  # not sys.stdin, whose lock would be held while Python ends
            pass
    if os.name == "posix":  # the server has made this process the first of its group
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    confine(int(sys.argv[1]))
    if sys.argv[2] == "look":
        json.dump(look(request(json.load(sys.stdin))), sys.stdout)
    else:
        from manyview.__main__ import main

        threading.Thread(target=end_with_server, daemon=True).start()
        sys.argv = ["manyview", *sys.argv[2:]]
        main()
