"""Result files → one page, its figures and tables as files, and the same numbers as Markdown."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path
from typing import Any

from .. import page as pg
from . import paper
from .drawing import drawn
from .figures import figures
from .pictures import pictures
from .read import Results, Row
from .tables import Table, as_csv, as_latex, as_markdown, claims, tables
from .verdicts import AGREES, DIFFERS, OWN, PARTLY, UNSURE, Verdict, verdicts

PAGE = "reproduction.html"
_TONE = {AGREES: "good", PARTLY: "half", UNSURE: "half", DIFFERS: "bad"}
_TONE |= {OWN[word]: tone for word, tone in _TONE.items()}


def build(folder: Path) -> list[Path]:
    """Write the page, figures/ and tables/ into the folder of results; everything is made first."""
    results = Results(folder)
    contents = {PAGE: _page(results).encode()}
    every = [claims(verdicts(results))]
    for name in results.experiments:
        every += tables(results, name)
        for form in figures(results, name):
            contents |= {f"figures/{file}": data for file, data in pictures(form).items()}
    for table in every:
        contents[f"tables/{table.name}.csv"] = as_csv(table)
        contents[f"tables/{table.name}.tex"] = as_latex(table)
    for name, data in contents.items():
        _write(folder / name, data)
    return [folder / name for name in contents]


def markdown(folder: Path) -> str:
    """The numbers of a run as a document, with the commands that made them."""
    results = Results(folder)
    parts = [
        "# Reproduction of the paper",
        _lead(results),
        "## The claims",
        as_markdown(claims(verdicts(results))),
    ]
    for name, experiment in results.experiments.items():
        parts += [f"## {experiment['title']}", experiment["about"]]
        for table in tables(results, name):
            parts += [f"{table.caption.rstrip('.')}.", as_markdown(table)]
        parts += [_trouble(experiment)] if experiment["failed"] else []
        parts.append(f"```sh\n{experiment['command']}\n```")
    made = f"This document: `manyview report {folder.name} --markdown`."
    return "\n\n".join([*parts, "## How it was run", _how(results), made]) + "\n"


def _page(results: Results) -> str:
    sections = [
        pg.Section("summary", "In short", _summary(results)),
        pg.Section("method", "The method", _method()),
    ]
    for name, experiment in results.experiments.items():
        sections.append(
            pg.Section(pg.file_stem(name), experiment["title"], _section(results, experiment))
        )
    sections.append(
        pg.Section("how", "How it was run", pg.html("<p>{{ how }}</p>", how=_how(results)))
    )
    return pg.page("The paper, reproduced", sections, lead=_lead(results))


def _lead(results: Results) -> str:
    runs = sorted({e["replications"] for e in results.experiments.values()})
    said = f"{runs[0]} to {runs[-1]}" if len(runs) > 1 else str(*runs)
    return (
        f"{paper.CITATION}: its tables and figures computed anew with manyview, {said} "
        f"run{'s' * (runs != [1])} of every method. The paper's numbers are quoted; ours are measured and "
        "never adjusted to them."
    )


def _summary(results: Results) -> Any:
    found = verdicts(results)
    counted = (AGREES, PARTLY, UNSURE, DIFFERS)
    tally = [(word, _TONE[word], sum(v.verdict == word for v in found)) for word in counted]
    tally = [entry for entry in tally if entry[2]]
    missing = "lihc" not in results.experiments
    return pg.html(
        "{{ style }}<ul class=tally>{% for word, tone, n in tally %}<li><b class={{ tone }}>{{ n }}</b>"
        "{{ word }}</li>{% endfor %}</ul><p>Each row is something the paper claims, what it reports, what "
        "came out here, and what to make of it. Runs differ by their seeds, so small differences mean "
        "little.</p>{{ table }}{% if missing %}<p class=note>LIHC is not here: its matrices may not be "
        "redistributed. With your own files: <code>manyview reproduce lihc --data FOLDER</code>."
        "</p>{% endif %}",
        style=pg.html(f"<style>{_asset('reproduction.css')}</style>"),
        tally=tally,
        table=_claims(found),
        missing=missing,
    )


def _method() -> Any:
    return pg.html(
        "<p>Several matrices describe the same observations. Each is factorised into nonnegative parts and "
        "coefficients; all coefficients are drawn to a consensus. Weights are learned on the way: w, how "
        "far an observation counts in a view, and α, how far a view counts in the consensus.</p>"
        "<div class=drawing>{{ svg }}</div>",
        svg=pg.html(_asset("diagram.svg")),
    )


def _section(results: Results, experiment: Row) -> Any:
    name = experiment["name"]
    return pg.html(
        "<p>{{ about }}</p>{% if trouble %}<p class=warning>{{ trouble }}</p>{% endif %}"
        "{% if said %}<ul class=verdicts>{% for v in said %}<li><b class={{ tone[v.verdict] }}>"
        "{{ v.verdict }}</b>: {{ v.claim }}. {{ v.words }}</li>{% endfor %}</ul>{% endif %}"
        "{% for f in figures %}{{ f }}{% endfor %}<p class=made>Made by</p><pre>{{ command }}</pre>"
        "{% for t in tables %}{{ t }}{% endfor %}",
        about=experiment["about"],
        trouble=_trouble(experiment) if experiment["failed"] else "",
        said=[v for v in verdicts(results) if v.experiment == name],
        tone=_TONE,
        figures=[drawn(form) for form in figures(results, name)],
        tables=[_table(table) for table in tables(results, name)],
        command=experiment["command"],
    )


def _asset(name: str) -> str:
    return resources.files("manyview.report").joinpath("assets", name).read_text(encoding="utf-8")


def _table(table: Table) -> Any:
    made = pg.table(table.columns, table.rows, name=table.name, caption=table.caption)
    if not table.folded:
        return made
    return pg.html(
        "<details><summary>The numbers: {{ caption }}</summary>{{ table }}</details>",
        caption=table.caption,
        table=made,
    )


def _claims(found: list[Verdict]) -> Any:
    """The summary table: on a phone a card per claim, each value under the name of its column."""
    table = claims(found)
    return pg.html(
        '<div class="table claims" data-name="summary"><div class=scroll><table><thead><tr>'
        "{% for c in columns %}<th scope=col>{{ c }}</th>{% endfor %}</tr></thead><tbody>"
        "{% for row in rows %}<tr>{% for c in columns %}<td data-label='{{ c }}'"
        "{% if loop.index0 == 4 %} class={{ tone[row[4]] }}{% endif %}>{{ row[loop.index0] }}</td>"
        "{% endfor %}</tr>{% endfor %}</tbody></table></div><p class=under><button type=button "
        "class='small csv' hidden>Download CSV</button></p>"
        "<script type='application/json'>{{ json }}</script></div>",
        columns=table.columns,
        rows=table.rows,
        tone=_TONE,
        json=pg.script_json({"columns": table.columns, "rows": table.rows}),
    )


def _trouble(experiment: Row) -> str:
    reasons = "; ".join(experiment["reasons"])
    return (
        f"{experiment['failed']} of {experiment['cells']} cells failed and are left out: {reasons}."
    )


def _how(results: Results) -> str:
    m = results.manifest
    versions = ", ".join(f"{name} {version}" for name, version in m["versions"].items())
    minutes = sum(e.get("cpu_seconds", 0.0) for e in m["experiments"]) / 60
    return (
        f"Finished {m['finished']} on {m['machine']['processor']} ({m['machine']['cores']} cores, "
        f"{m['machine']['system']}); {minutes:.0f} minutes of processor time, one thread per process. "
        f"{versions}. Every row of the CSV files beside this page has its seed and settings; the same "
        "command goes on where it was interrupted."
    )


def _write(path: Path, content: bytes) -> None:
    """Beside and renamed: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
