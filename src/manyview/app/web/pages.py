"""The pages, as text: server-rendered, in the style of the report. Every value is escaped."""

from __future__ import annotations

import time
from functools import cache
from importlib import resources
from typing import Any

from manyview.app.report.page import html

from .answers import OPTIONS, shown
from .runs import STATES, fit_command

SAMPLES = {
    "cohort": "240 patients: expression, methylation, mutations and survival (made up)",
    "nutrimouse": "40 mice: genes and lipids",
}
#: What an answer means, in the words of people.
MEANINGS = {
    "match": {
        "loose": "These ids are the same samples: case and marks are ignored",
        "tcga": "These are TCGA barcodes of the same patients",
        "exact": "These are different samples",
    },
    "transpose": {
        "all": "Every table has its samples in columns",
        "none": "Every table has its samples in rows",
        "": "has its samples in columns",
    },
    "as-view": {"": "is a view, use it"},
    "drop": {"": "leave this column out"},
    "drop-text": {"": "Leave columns of text out"},
    "one-hot": {"": "Make every word of a text column a column of 0 and 1"},
    "decimal": {"comma": "The decimal mark is the comma", "point": "The decimal mark is the point"},
    "event": {"": "“{}” means that the event happened"},
    "adjust": {"": "Remove the effect of “{}” from every view"},
    "batch": {"": "Align the batches of “{}”"},
    "time": {"": "“{}” is the time of survival"},
    "labels": {"": "“{}” holds the known classes"},
    "keep-normals": {"": "Use normal tissue and controls, too"},
    "tumors": {
        "one": "Use one tumor sample of each patient",
        "all": "Treat every tumor sample as a sample of its own",
    },
    "zero-rows": {
        "missing": "A row of zeros is missing",
        "observed": "A row of zeros is a value",
    },
    "header": {
        "yes": "The first line has the names of the columns",
        "no": "The first line is a sample",
    },
}


@cache
def asset(name: str) -> str:
    """A file that comes with the page; the style sheet is the report's with our own after it."""
    text = resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")
    if name == "app.css":
        report = resources.files("manyview.app.report").joinpath("assets", "page.css")
        return report.read_text(encoding="utf-8") + text
    return text


def _page(base: str, title: str, body: Any, refresh: int = 0, first: bool = False) -> str:
    return str(
        html(asset("frame.html"), base=base, title=title, body=body, refresh=refresh, first=first)
    )


def meaning(name: str, value: str) -> str:
    """An answer as a sentence for its button."""
    known = MEANINGS[name]
    if name in ("event", "adjust", "batch", "time", "labels"):
        return known[""].format(value)
    if value in known:
        return known[value]
    view, _, rest = value.rpartition("=")
    return f"{view}: {known[rest]}" if rest in known else f"{value}: {known.get('', '')}"


def home(base: str, runs: list[dict[str, Any]], folder: str) -> str:
    """Start something new, or go on with something old."""
    for run in runs:
        name = run["name"]  # its start time, unless another program named it
        run["when"] = f"{name[:4]}-{name[4:6]}-{name[6:8]}, {name[9:11]}:{name[11:13]}"
        run["state_text"] = STATES.get(run["state"], run["state"])
        tables = ", ".join(t["shown"] for t in run["tables"]) or "no table yet"
        run["shown"] = run["problem"] if run["state"] == "damaged" else tables
    body = html(asset("home.html"), base=base, runs=runs, samples=SAMPLES, folder=folder)
    return _page(base, "Cluster your tables", body, first=True)


def run(base: str, name: str, about: dict[str, Any], folder: str, limit: str) -> str:
    """One run, in whatever state it is."""
    seen = about.get("seen") or {}
    offered = [(n, v, meaning(n, v)) for n, v in seen.get("choices") or [] if n in OPTIONS]
    words = [(n, v, meaning(n, v)) for n, v in about["words"]]
    body = html(
        asset("run.html"),
        base=base,
        name=name,
        about=about,
        seen=seen,
        problem=shown(seen.get("problem", "")) if offered else seen.get("problem", ""),
        offered=offered,
        words=words,
        said=dict(about["words"]),
        columns=(seen.get("offers") or {}).get("columns", []),
        offers={
            kind: [(n, v, meaning(n, v)) for n, v in (seen.get("offers") or {}).get(kind, [])]
            for kind in ("zeros", "event", "batch", "more")
        },
        command=fit_command(about),
        folder=folder,
        limit=limit,
        state_text=STATES[about["state"]],
        took=round((about["ended"] or time.time()) - about["started"]),
    )
    titles = {"draft": "Your tables", "running": "Clustering", "done": "The report"}
    title = titles.get(about["state"], "This run did not finish")
    return _page(base, title, body, refresh=30 if about["state"] == "running" else 0)


def problem(base: str, sentence: str) -> str:
    """Something that is not done, and why."""
    words = '<p class="warning" role="alert">{{ sentence }}</p>'
    return _page(base, "That did not work", html(words, sentence=sentence, base=base))
