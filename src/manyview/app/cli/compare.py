"""`manyview compare`: files in, tables, a picture and a page out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from manyview.app.compare.comparison import (
    FILES,
    Comparison,
    check_request,
    compare,
)
from manyview.app.compare.page import plain_rows
from manyview.app.compare.runs import KIND
from manyview.app.files import read_views
from manyview.app.files.clinical import clinical_ids
from manyview.app.options import CompareRequest, command_line
from manyview.app.report.page import printable
from manyview.io.writing import claimed
from manyview.plot import pyplot

from .inputs import read_given, read_labels
from .terminal import Voice, caught_warnings


def run_compare(ask: CompareRequest, voice: Voice) -> None:
    """Read, compare, write, and print the summary.

    A folder that holds something else than a comparison is refused, unless forced; files of others are
    never written over.
    """
    pyplot()  # hours of work must not end with the news that matplotlib is missing
    names = [name.strip() for name in ask.methods.split(",") if name.strip()]
    scale = None if ask.scale == "none" else ask.scale
    check_request(names, ask.clusters, scale)
    ask.check_clinical()
    with claimed(ask.out, KIND, force=ask.force, goes_on=True) as place:
        place.check(FILES)
        beside = [file for file in (ask.labels, ask.clinical) if file is not None]
        known = [column for file in beside for column in clinical_ids(file)]
        data = read_views(ask.files, known=known, missing=ask.missing, **vars(ask.reading))
        y = None if ask.labels is None else read_labels(ask.labels, data)
        samples = None if data.sample_names is None else data.sample_names.tolist()
        n = len(data.first_rows)
        given = read_given(replace(ask, labels=None), samples, n, data, data.rule)
        ids = [str(i) for i in (range(n) if samples is None else samples)]
        data.notes.extend(given.notes)
        voice.note(*map(printable, data.told))
        with caught_warnings() as warned:
            found = compare(
                data.views,
                y,
                n_clusters=ask.clusters,
                methods=names,
                n_runs=ask.runs,
                random_state=ask.seed,
                out=ask.out,
                n_jobs=ask.jobs,
                max_seconds=ask.max_seconds,
                max_memory=ask.max_memory,
                progress=voice.speaks,
                scale=scale,
            )
        voice.warn(warned)
        found = replace(found, ids=ids)
        shared = found.shared(given.known)
        written = found.save(ask.out, command=command_line("compare", ask), shared=shared)
    voice.show(_summary(found))
    voice.show(*_clinical(shared[0]), *map(_shown, shared[1]))
    voice.show(*(_shown(line) for line in found.troubles))
    voice.finish(
        {
            "out": str(ask.out),
            "files": [path.name for path in written],
            "n_samples": found.settings["n_samples"],
            "summary": plain_rows(found.summary),
            **({"clinical": plain_rows(shared[0]["clinical.csv"])} if given.known.clinical else {}),
            "troubles": found.troubles,
            "notes": data.told,
            "warnings": warned,
        }
    )
    if not (found.table["status"] == "ok").any():
        typer.echo("manyview compare: no run gave a result; the reasons are above.", err=True)
        raise typer.Exit(1)


def _clinical(tables: dict[str, Any]) -> list[Any]:
    if "clinical.csv" not in tables:
        return []
    rows = plain_rows(tables["clinical.csv"])
    table = Table(
        title="Clinical differences (clinical.csv)", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    shown = {"survival_p": "survival p", "survival_q": "q", "enriched": "columns with q ≤ 0.05"}
    shown = {name: heading for name, heading in shown.items() if name in rows[0]}
    for heading in ("method", *shown.values()):
        table.add_column(heading)
    for row in rows:
        cells = [row[name] for name in shown]
        texts = [c if isinstance(c, str) else "–" if c is None else f"{c:.2g}" for c in cells]
        table.add_row(_shown(row["method"]), *map(_shown, texts))
    table.caption = (
        "q over the methods; no method is better because its clusters differ in survival"
    )
    return [table]


def _summary(found: Comparison) -> Table:
    truth = "acc_mean" in found.summary
    shown = {"acc": "ACC", "nmi": "NMI", "ari": "ARI"} if truth else {}
    # As narrow as a terminal of 80 columns: the other spreads are in summary.csv.
    title = "Mean (sd) over runs" + (", best mean rank first" if truth else "")
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    for heading in (*(("rank",) if truth else ()), *shown.values(), "stab.", "seconds", "runs"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in found.summary.to_dict("records"):
        name = (
            _shown(row["method"]) + ("*" if row["oracle"] else "") + ("†" if row["shifted"] else "")
        )
        means = [_number(row[f"{column}_mean"], 3) for column in shown]
        sd = _number(row["acc_sd"], 3) if truth else ""
        if sd:
            means[0] += f" ({sd})"
        total = row["n_ok"] + row["n_failed"] + row["n_skipped"] + row["n_not_applicable"]
        last = [_number(row["stability"], 2), _number(row["seconds_mean"], 2)]
        rank = [_number(row["mean_rank"], 1)] if truth else []
        table.add_row(name, *rank, *means, *last, f"{row['n_ok']}/{total}")
    remarks = []
    if found.summary["oracle"].any():
        remarks.append("* oracle: chose its view by the true classes, as in the paper")
    if found.summary["shifted"].any():
        remarks.append("† features shifted to start at 0: it accepts no negative numbers")
    table.caption = "\n".join(remarks) or None
    return table


def _shown(text: Any) -> str:
    """Text for the terminal, where control characters and [brackets] would do something."""
    return escape(printable(text))


def _number(value: float, digits: int) -> str:
    return "" if value != value else f"{value:.{digits}f}"
