"""Result files → one page, its figures and tables as files, and the same numbers as Markdown."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from manyview.app.report import page as pg
from manyview.io.writing import claimed, restored

from . import paper
from .claims import contributions, verdicts
from .claims.judging import (
    AGREES,
    ALIKE,
    DIFFERS,
    NOT_MEASURED,
    OWN,
    PARTLY,
    SAME,
    UNDECIDED,
)
from .drawing import Figure, files, svgs
from .figures import figures
from .formats import (
    Table,
    as_csv,
    as_latex,
    as_markdown,
)
from .origin import (
    how,
    lead_runs,
    made,
    runs_in_words,
    settings_of,
)
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
    f"same, scores within {ALIKE:g} of each other alike. Methods of the digits table with no score in the "
    "paper's spread are not reproduced, whichever way they differ."
)
_NO_LIHC = (
    "LIHC is not here: its matrices may not be redistributed, so its figure and its claims are not "
    "measured. With your own files this command measures them:"
)


def build(folder: Path) -> list[Path]:
    """Write the page, figures/ and tables/ into the folder of results; everything is made first."""
    restored(folder)
    results = Results(folder)
    contents = {PAGE: _page(results).encode()}
    contents["figures/method.svg"] = _diagram_file()
    found = verdicts(results)
    every = [claims(results, found), observations(results, found), made(results)]
    for name in results.experiments:
        every += tables(results, name)
        for figure in figures(results, name):
            contents |= {f"figures/{file}": data for file, data in files(figure).items()}
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
    own = observations(results, found)
    parts = ["# Reproduction of the paper", _lead(results)]
    parts += ["\n".join(f"- {what}: {said}." for what, said in contributions(found))]
    parts += ["All of it:", _shell(results.manifest["command"])]
    parts += ["## The claims", _RULES, as_markdown(claims(results, found))]
    parts += ["## Our own observations", as_markdown(own)] if own.rows else []
    for name, experiment in results.experiments.items():
        parts += [f"## {experiment['title']}", experiment["about"]]
        for table in tables(results, name):
            parts += [f"{table.caption.rstrip('.')}.", as_markdown(table)]
        parts += [_trouble(experiment), _shell(experiment["command"])]
    if "lihc" not in results.experiments:
        parts += ["## LIHC", _NO_LIHC, _shell(paper.MEASURE_LIHC)]
    parts += ["## How it was run", how(results), as_markdown(made(results))]
    parts += [f"This document: `manyview report {folder.name} --markdown`."]
    return "\n\n".join(part for part in parts if part) + "\n"


def _shell(command: str) -> str:
    return f"```sh\n{command}\n```"


def _page(results: Results) -> str:
    sections = [
        pg.Section("summary", "In short", _summary(results)),
        pg.Section("method", "The method", _method()),
    ]
    for name, experiment in results.experiments.items():
        body = _section(results, experiment)
        sections.append(pg.Section(pg.file_stem(name), experiment["title"], body))
    if "lihc" not in results.experiments:
        told = pg.html(
            "<p>{{ words }}</p><pre>{{ command }}</pre>", words=_NO_LIHC, command=paper.MEASURE_LIHC
        )
        sections.append(pg.Section("lihc", "LIHC: not measured", told))
    ran = pg.html("<p>{{ said }}</p>{{ table }}", said=how(results), table=_table(made(results)))
    sections.append(pg.Section("how", "How it was run", ran))
    css = _asset("reproduction.css")
    return pg.page("The paper, reproduced", sections, lead=_lead(results), css=css)


def _lead(results: Results) -> str:
    return (
        f"{paper.CITATION}: its tables and figures computed anew with manyview, {lead_runs(results)} of "
        "every method. The paper's numbers are quoted; ours are measured and never adjusted to them."
    )


def _summary(results: Results) -> Any:
    found = verdicts(results)
    theirs = [v.verdict for v in found if not v.is_own]
    words = (AGREES, PARTLY, UNDECIDED, DIFFERS, NOT_MEASURED)
    own = observations(results, found)
    return pg.html(
        "<ul class=tally>{% for word, tone, n in tally %}<li><b class={{ tone }}>{{ n }}</b>"
        "{{ word }}</li>{% endfor %}</ul>"
        "<ul>{% for what, said in lines %}<li><b>{{ what }}</b>: {{ said }}.</li>{% endfor %}</ul>"
        "<p>Each row is something the paper claims, what it reports, what "
        "came out here, and what to make of it. {{ rules }}</p>{{ claims }}{% if own %}<h3>Our own "
        "observations</h3><p>Not claimed by the paper, and counted neither for nor against it.</p>"
        "{{ own }}{% endif %}<p>All of this page was computed by</p><pre>{{ command }}</pre>",
        tally=[(word, _TONE[word], n) for word in words if (n := theirs.count(word))],
        lines=contributions(found),
        rules=_RULES,
        claims=_cards(claims(results, found), 4),
        own=_cards(own, 3) if own.rows else "",
        command=results.manifest["command"],
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
    made_by = pg.html(
        "<div class=made><pre>{{ command }}</pre>{% if settings %}<details><summary>Settings</summary>"
        "<ul>{% for line in settings %}<li>{{ line }}</li>{% endfor %}</ul></details>{% endif %}</div>",
        command=experiment["command"],
        settings=settings_of(results, name),
    )
    return pg.html(
        "<p>{{ about }}{% if runs %} Runs made: {{ runs }}.{% endif %}</p>"
        "{% if trouble %}<p class=warning>{{ trouble }}</p>{% endif %}"
        "{% if said %}<ul class=verdicts>{% for v in said %}<li><b class={{ tone[v.verdict] }}>"
        "{% if v.is_own %}our observation, {% endif %}{{ v.verdict }}</b>: {{ v.claim }}. {{ v.words }}"
        "</li>{% endfor %}</ul>{% endif %}"
        "{% for f in figures %}{{ f }}{% endfor %}{{ made }}{% for t in tables %}{{ t }}{% endfor %}",
        about=experiment["about"],
        runs=runs_in_words(results, name),
        trouble=_trouble(experiment),
        said=[v for v in verdicts(results) if v.experiment == name],
        tone=_TONE,
        figures=[_figure(figure) for figure in figures(results, name)],
        tables=[_table(table) for table in tables(results, name)],
        made=made_by,
    )


def _figure(figure: Figure) -> Any:
    """The panels side by side where there is room, below them the caption."""
    return pg.html(
        '<div class="panels of{{ n }}">{% for svg, label in panels %}<figure role=img '
        'aria-label="{{ label }}">{{ svg }}</figure>{% endfor %}</div><p class=caption>{{ caption }}</p>',
        n=min(figure.columns, len(figure.panels)),
        panels=[
            (pg.trusted(svg), f"{p.title}: {p.y_label} {p.x_label}; {', '.join(s.name for s in p.series)}")
            for svg, p in zip(svgs(figure), figure.panels, strict=True)
        ],
        caption=figure.caption,
    )  # fmt: skip


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


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
    """A table of claims: on a phone a card for each, every value under the name of its column.

    The last two columns, on how it was measured, are opened by the reader.
    """
    body = pg.html(
        "<table class=claims><thead><tr>{% for c in columns[:-2] %}<th scope=col>{{ c }}</th>{% endfor %}"
        "</tr></thead><tbody>{% for row in rows %}<tr>{% for c in columns[:-2] %}<td data-label='{{ c }}'"
        "{% if loop.index0 == verdict %} class={{ tone[row[verdict]] }}{% endif %}>"
        "{{ row[loop.index0] }}{% if loop.last %}<details><summary>Measured how</summary>"
        "{% for i in (-2, -1) %}{% if row[i] %}<p>{{ columns[i] }}: {{ row[i] }}</p>{% endif %}"
        "{% endfor %}</details>{% endif %}</td>{% endfor %}</tr>{% endfor %}</tbody></table>",
        columns=table.columns,
        rows=table.rows,
        verdict=verdict,
        tone=_TONE,
    )
    return pg.with_csv(body, table.columns, table.rows, name=table.name, label=table.caption)


def _trouble(experiment: Row) -> str:
    """What failed, if anything has."""
    failed, reasons = experiment["failed"], "; ".join(experiment["reasons"])
    said = f"{failed} of {experiment['cells']} cells failed and are left out: {reasons}."
    return said if failed else ""


def _diagram_file() -> bytes:
    """The diagram on its own: a file has to name its language, and the page's font is not there."""
    text = _asset("diagram.svg").replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return text.replace('font-family="inherit"', 'font-family="sans-serif"').encode()
