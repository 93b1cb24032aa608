"""The folder of a run → its page. Everything comes from the files; nothing is computed anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from manyview.io.writing import read_csv

from . import panels
from .page import Section, html, page
from .run_files import Rows, Run
from .text import number

#: What a later comparison replaces.
OF_MEANING = (
    "survival",
    "survival_pairs",
    "survival_curves",
    "survival_at_risk",
    "clinical_tests",
    "clinical_summary",
    "classes",
    "annotations",
)
TABLES = (
    "labels",
    "clusters",
    "view_weights",
    "sample_weights",
    "top_features",
    "embedding",
    "agreement",
    "redundancy",
    "history",
    "stability",
    "baseline",
    "selection",
    "markers",
    "leave_view_out",
    "heatmap",
    "consensus",
    *OF_MEANING,
)
IDS = {"id", "original_id"}
#: Columns that are names, whatever they look like.
TEXT = {*IDS, "view", "feature", "clustering", "scaling", "column", "level", "note", "most_marked"}
#: Other names where headings are users' words ("view" may be a class) or "view" is a position.
OWN_TEXT = {"history": set(), "classes": {"majority"}, "heatmap": IDS, "consensus": IDS}
#: Here every cell is text; what is a number is known from elsewhere.
TEXT_ONLY = "annotations"


def fit_page(folder: Path, otherwise: Path | None = None) -> str:
    """The report of the run in ``folder`` as one self-contained page.

    A file that is not there is looked for in ``otherwise``.
    """
    run = read_run(folder, otherwise)
    about = run.about
    title = about.get("title") or (
        f"{len(run.clusters)} cluster{'s' * (len(run.clusters) != 1)} among "
        f"{about['n_samples']} observations"
    )
    lead = html(
        "Found by <b>{{ method }}</b> from {{ n }} view{{ 's' if n != 1 }}: {{ views }}. "
        "Files beside this page hold every number in it.",
        method=about["method"],
        n=len(run.views),
        views=run.views_in_words,
    )
    sections = [
        Section("short", "In short", panels.in_short(run)),
        Section("clusters", "The clusters", panels.clusters(run)),
        Section("reliance", "Which view each observation relies on", panels.reliance(run)),
        Section("views", "How much each view counts", panels.views(run)),
        Section("features", "What sets each cluster apart", panels.features(run)),
        Section("sure", "How sure the clusters are", panels.sure(run)),
        Section("baseline", "Beside a plain method", panels.baseline(run)),
        Section("fit", "How the fit went", panels.convergence(run)),
        Section("data", "Data and settings", panels.data(run)),
        Section("methods", "Methods, to copy", panels.methods(run)),
    ]
    if about.get("selection"):
        sections.insert(2, Section("number", "Why this many clusters", panels.chosen(run)))
    place = 1 + [section.id for section in sections].index("features")
    sections[place:place] = [
        Section(id_, title, body(run))
        for id_, title, body in (
            ("survival", "How long their members live", panels.survival),
            ("clinical", "Clinical columns by cluster", panels.clinical),
            ("classes", "Beside the known classes", panels.classes),
        )
        if about.get(id_)
    ]
    return page(title, sections, lead=lead)


def read_run(folder: Path, otherwise: Path | None = None) -> Run:
    """The files of a run as plain values."""
    about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    tables = {}
    for name in TABLES:
        path = folder / f"{name}.csv"
        if otherwise is not None and not path.exists() and name not in OF_MEANING:
            path = otherwise / f"{name}.csv"
        tables[name] = _read_csv(path, name) if path.exists() else []
    return Run(about, tables)


def _read_csv(path: Path, table: str) -> Rows:
    names = OWN_TEXT.get(table, TEXT)
    return [
        {key: _cell(text, as_text=key in names or table == TEXT_ONLY) for key, text in row.items()}
        for row in read_csv(path)
    ]


def _cell(text: str, as_text: bool) -> Any:
    if as_text:
        return text
    return number(text) if text else None
