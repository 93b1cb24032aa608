"""Result files → one page, its figures and tables as files, and the same numbers as Markdown."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from manyview.io.writing import claimed, restored
from manyview.output.report import page as pg
from manyview.reproduction.page.claims.judging import (
    AGREES,
    ALIKE,
    DIFFERS,
    NOT_MEASURED,
    OWN,
    PARTLY,
    SAME,
    UNDECIDED,
)

from . import paper
from .claims import verdicts
from .drawing import drawn, made_by
from .figures import figures
from .formats import Table, as_csv, as_latex, as_markdown
from .pictures import pictures
from .provenance import how, lead_runs, made, runs_in_words, runs_of, settings_of
from .read import Results, Row
from .tables import claims, observations, tables

PAGE = "reproduction.html"
#: What a verdict looks like. An answer to a question of ours is neither good nor bad for the paper.
_TONE = {AGREES: "good", PARTLY: "half", UNDECIDED: "open", DIFFERS: "bad", NOT_MEASURED: "open"}
_TONE |= dict.fromkeys(OWN.values(), "own")
#: How verdicts come about, for the reader.
_RULES = (
    "Methods are compared run by run, on the same seeds: a difference is the mean over the runs, and ± is "
    "half the width of its 95 % interval. A claim agrees, or does not, where the whole interval says so; "
    "where it lies on both sides, or there is one run only, it is undecided. Partly: some parts of the "
    f"claim clearly hold and others clearly do not. Means within {SAME:g} of the paper's are called the "
    f"same, scores within {ALIKE:g} of each other alike."
)


def build(folder: Path) -> list[Path]:
    """Write the page, figures/ and tables/ into the folder of results; everything is made first."""
    restored(folder)
    results = Results(folder)
    contents = {PAGE: _page(results).encode()}
    contents["figures/method.svg"] = _diagram_file()
    found = verdicts(results)
    every = [claims(found), observations(found), made(results)]
    for name in results.experiments:
        every += tables(results, name)
        for form in figures(results, name):
            contents |= {f"figures/{file}": data for file, data in pictures(form).items()}
    for table in every:
        contents[f"tables/{table.name}.csv"] = as_csv(table)
        contents[f"tables/{table.name}.tex"] = as_latex(table)
    with claimed(folder, "report", beside=True) as place:
        place.put(contents)
    return [folder / name for name in contents]


def markdown(folder: Path) -> str:
    """The numbers of a run as a document, with the commands that made them."""
    results = Results(folder)
    found = verdicts(results)
    parts = ["# Reproduction of the paper", _lead(results)]
    if results.manifest.get("command"):
        parts += ["All of it:", f"```sh\n{results.manifest['command']}\n```"]
    parts += ["## The claims", _RULES, as_markdown(claims(found))]
    if observations(found).rows:
        parts += ["## Our own observations", as_markdown(observations(found))]
    for name, experiment in results.experiments.items():
        parts += [f"## {experiment['title']}", experiment["about"]]
        for table in tables(results, name):
            parts += [f"{table.caption.rstrip('.')}.", as_markdown(table)]
        parts += [_trouble(experiment)] if experiment["failed"] else []
        parts.append(f"```sh\n{experiment['command']}\n```")
    parts += ["## How it was run", " ".join(how(results)), as_markdown(made(results))]
    made_by_ = f"This document: `manyview report {folder.name} --markdown`."
    return "\n\n".join([*parts, made_by_]) + "\n"


def _page(results: Results) -> str:
    sections = [
        pg.Section("summary", "In short", _summary(results)),
        pg.Section("method", "The method", _method()),
    ]
    for name, experiment in results.experiments.items():
        sections.append(
            pg.Section(pg.file_stem(name), experiment["title"], _section(results, experiment))
        )
    sections.append(pg.Section("how", "How it was run", _how(results)))
    return pg.page("The paper, reproduced", sections, lead=_lead(results))


def _lead(results: Results) -> str:
    return (
        f"{paper.CITATION}: its tables and figures computed anew with manyview, {lead_runs(results)} of "
        "every method. The paper's numbers are quoted; ours are measured and never adjusted to them."
    )


def _summary(results: Results) -> Any:
    found = verdicts(results)
    theirs = [v.verdict for v in found if not v.is_own]
    tally = [
        (word, _TONE[word], theirs.count(word)) for word in (AGREES, PARTLY, UNDECIDED, DIFFERS)
    ]
    return pg.html(
        "{{ style }}<ul class=tally>{% for word, tone, n in tally %}<li><b class={{ tone }}>{{ n }}</b>"
        "{{ word }}</li>{% endfor %}</ul><p>Each row is something the paper claims, what it reports, what "
        "came out here, and what to make of it. {{ rules }}</p>{{ claims }}{% if own %}<h3>Our own "
        "observations</h3><p>Not claimed by the paper, and counted neither for nor against it.</p>"
        "{{ own }}{% endif %}{% if missing %}<p class=note>LIHC is not here: its matrices may not be "
        "redistributed. With your own files: <code>manyview reproduce lihc --data FOLDER</code>."
        "</p>{% endif %}{% if command %}<p>All of this page was computed by</p>"
        "<pre>{{ command }}</pre>{% endif %}",
        style=pg.html(f"<style>{_asset('reproduction.css')}</style>"),
        tally=[entry for entry in tally if entry[2]],
        rules=_RULES,
        claims=_cards(claims(found), 4),
        own=_cards(observations(found), 3) if observations(found).rows else "",
        missing="lihc" not in results.experiments,
        command=results.manifest.get("command", ""),
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
    command, settings = experiment["command"], settings_of(results, name)
    forms = figures(results, name)
    return pg.html(
        "<p>{{ about }}{% if runs %} Runs made: {{ runs }}.{% endif %}</p>"
        "{% if trouble %}<p class=warning>{{ trouble }}</p>{% endif %}"
        "{% if said %}<ul class=verdicts>{% for v in said %}<li><b class={{ tone[v.verdict] }}>"
        "{% if v.is_own %}our observation, {% endif %}{{ v.verdict }}</b>: {{ v.claim }}. {{ v.words }}"
        "</li>{% endfor %}</ul>{% endif %}"
        "{% for f in figures %}{{ f }}{% endfor %}{{ made }}{% for t in tables %}{{ t }}{% endfor %}",
        about=experiment["about"],
        runs=runs_in_words(runs_of(results, name)),
        trouble=_trouble(experiment) if experiment["failed"] else "",
        said=[v for v in verdicts(results) if v.experiment == name],
        tone=_TONE,
        figures=[drawn(form, command, settings) for form in forms],
        tables=[_table(table) for table in tables(results, name)],
        made="" if forms else made_by(command, settings),
    )


def _asset(name: str) -> str:
    return (
        resources.files("manyview.output.report")
        .joinpath("assets", name)
        .read_text(encoding="utf-8")
    )


def _table(table: Table) -> Any:
    made = pg.table(table.columns, table.rows, name=table.name, caption=table.caption)
    if not table.folded:
        return made
    return pg.html(
        "<details><summary>The numbers: {{ caption }}</summary>{{ table }}</details>",
        caption=table.caption,
        table=made,
    )


def _cards(table: Table, verdict: int) -> Any:
    """A table of claims: on a phone a card for each, every value under the name of its column."""
    return pg.html(
        '<div class="table claims" data-name="{{ name }}"><div class=scroll><table><thead><tr>'
        "{% for c in columns %}<th scope=col>{{ c }}</th>{% endfor %}</tr></thead><tbody>"
        "{% for row in rows %}<tr>{% for c in columns %}<td data-label='{{ c }}'"
        "{% if loop.index0 == verdict %} class={{ tone[row[verdict]] }}{% endif %}>"
        "{{ row[loop.index0] }}</td>{% endfor %}</tr>{% endfor %}</tbody></table></div>"
        "<p class=under><button type=button class='small csv' hidden>Download CSV</button></p>"
        "<script type='application/json'>{{ json }}</script></div>",
        name=table.name,
        columns=table.columns,
        rows=table.rows,
        verdict=verdict,
        tone=_TONE,
        json=pg.script_json({"columns": table.columns, "rows": table.rows}),
    )


def _trouble(experiment: Row) -> str:
    reasons = "; ".join(experiment["reasons"])
    return (
        f"{experiment['failed']} of {experiment['cells']} cells failed and are left out: {reasons}."
    )


def _how(results: Results) -> Any:
    return pg.html(
        "<p>{{ said }}</p>{{ table }}", said=" ".join(how(results)), table=_table(made(results))
    )


def _diagram_file() -> bytes:
    """The diagram on its own: a file has to name its language, and the page's font is not there."""
    text = _asset("diagram.svg").replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return text.replace('font-family="inherit"', 'font-family="sans-serif"').encode()
