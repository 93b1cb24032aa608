"""The paper's claims beside our results, from the files of `manyview reproduce` alone.

One page, its figures and tables as files, and the same numbers as Markdown; nothing is computed anew.
"""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd

from manyview.app.report import page as pg
from manyview.io.writing import claimed, restored

from .claims import ALIKE, NOT_MEASURED, OWN, SAME, contributions, verdicts
from .figures import Figure, figures, files, svgs
from .results import AGREES, DIFFERS, PARTLY, UNDECIDED, Results
from .tables import Table, as_csv, as_latex, as_markdown, of_claims, tables
from .texts import MEASURE_LIHC, TEXTS

PAGE = "reproduction.html"
#: What a verdict looks like. An answer to a question of ours is neither good nor bad for the paper.
_TONE = {AGREES: "good", PARTLY: "half", UNDECIDED: "open", DIFFERS: "bad", NOT_MEASURED: "open"}
_TONES = _TONE | dict.fromkeys(OWN.values(), "own")
PAGE_TEXTS: dict[str, str] = TEXTS["page"]
#: How verdicts come about, for the reader.
_RULES = PAGE_TEXTS["rules"].format(same=SAME, alike=ALIKE)


def build(folder: Path) -> list[Path]:
    """Write the page, figures/ and tables/ into the folder of results; everything is made first."""
    restored(folder)
    results = Results(folder)
    contents = {PAGE: _page(results).encode(), "figures/method.svg": _diagram_file()}
    every = [*_claims(results), _made(results)]
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
    claims, own = _claims(results)
    shell = "```sh\n{}\n```".format
    lines = [f"- {what}: {said}." for what, said in contributions(verdicts(results))]
    parts = ["# Reproduction of the paper", _lead(results), "\n".join(lines)]
    parts += ["All of it:", shell(results.manifest["command"])]
    parts += ["## The claims", _RULES, as_markdown(claims)]
    parts += ["## Our own observations", as_markdown(own)] if own.rows else []
    for name, experiment in results.experiments.items():
        parts += [f"## {experiment['title']}", experiment["about"]]
        for table in tables(results, name):
            parts += [f"{table.caption.rstrip('.')}.", as_markdown(table)]
        parts += [_trouble(experiment), shell(experiment["command"])]
    if "lihc" not in results.experiments:
        parts += ["## LIHC", PAGE_TEXTS["no_lihc"], shell(MEASURE_LIHC)]
    parts += ["## How it was run", _how(results), as_markdown(_made(results))]
    parts += [f"This document: `manyview report {folder.name} --markdown`."]
    return "\n\n".join(part for part in parts if part) + "\n"


def _page(results: Results) -> str:
    sections = [
        pg.Section("summary", "In short", _summary(results)),
        pg.Section("method", "The method", _template("method", svg=pg.trusted(_asset("diagram.svg")))),
    ]  # fmt: skip
    for name, experiment in results.experiments.items():
        body = _template(
            "experiment",
            experiment=experiment,
            runs=_runs(experiment),
            trouble=_trouble(experiment),
            said=[claim for claim in verdicts(results) if claim.experiment == name],
            tone=_TONES,
            figures=[_shown(figure) for figure in figures(results, name)],
            settings=settings_of(results, name),
            tables=[(t, _table(t)) for t in tables(results, name)],
        )
        sections.append(pg.Section(pg.file_stem(name), experiment["title"], body))
    if "lihc" not in results.experiments:
        body = _template("absent", words=PAGE_TEXTS["no_lihc"], command=MEASURE_LIHC)
        sections.append(pg.Section("lihc", "LIHC: not measured", body))
    ran = _template("made", said=_how(results), table=_table(_made(results)))
    sections.append(pg.Section("how", "How it was run", ran))
    css = _asset("reproduction.css")
    return pg.page("The paper, reproduced", sections, lead=_lead(results), css=css)


def _lead(results: Results) -> str:
    most = max((entry["replications"] for entry in results.experiments.values()), default=0)
    runs = f"up to {most} runs" if most > 1 else "one run"
    return PAGE_TEXTS["lead"].format(runs=runs)


def _summary(results: Results) -> Any:
    found = verdicts(results)
    theirs = [claim.verdict for claim in found if not claim.is_own]
    claims, own = _claims(results)
    return _template(
        "summary",
        tally=[(word, tone, n) for word, tone in _TONE.items() if (n := theirs.count(word))],
        lines=contributions(found),
        rules=_RULES,
        claims=_cards(claims),
        own=_cards(own) if own.rows else "",
        command=results.manifest["command"],
    )


def _claims(results: Results) -> tuple[Table, Table]:
    """The paper's claims, and what we observed besides."""
    found = verdicts(results)
    basis = {name: _basis(experiment) for name, experiment in results.experiments.items()}
    return of_claims(found, basis, own=False), of_claims(found, basis, own=True)


def _cards(table: Table) -> Any:
    """A table of claims: on a phone a card for each. The last two columns are opened by the reader."""
    verdict = len(table.columns) - 3
    body = _template("cards", table=table, verdict=verdict, tone=_TONES)
    return pg.with_csv(body, table.columns, table.rows, name=table.name, label=table.caption)


def _shown(figure: Figure) -> Any:
    """The panels side by side where there is room, below them the caption."""
    panels = list(zip(map(pg.trusted, svgs(figure)), figure.panels, strict=True))
    n = min(figure.columns, len(panels))
    return _template("figure", n=n, panels=panels, caption=figure.caption)


def _table(table: Table) -> Any:
    return pg.table(table.columns, table.rows, name=table.name, caption=table.caption)


def _trouble(experiment: dict[str, Any]) -> str:
    """What failed, if anything has."""
    failed, reasons = experiment["failed"], "; ".join(experiment["reasons"])
    said = f"{failed} of {experiment['cells']} cells failed and are left out: {reasons}."
    return said if failed else ""


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _template(part: str, **values: Any) -> Any:
    """A part of the page's template, which has them all."""
    parts = _asset("reproduction.jinja").split("{# part ")[1:]
    text = {part.split(" ", 1)[0]: part.split("#}\n", 1)[1] for part in parts}[part]
    return pg.html(text.strip(), **values)


def _diagram_file() -> bytes:
    """The diagram on its own: a file has to name its language, and the page's font is not there."""
    text = _asset("diagram.svg").replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return text.replace('font-family="inherit"', 'font-family="sans-serif"').encode()


# --- What was run, how often, where, when and for how long ---


def _runs(experiment: dict[str, Any]) -> str:
    """The fewest and the most runs of anything in an experiment; empty where nothing is drawn."""
    least, most = (experiment["runs"][key] for key in ("least", "most"))
    return ("" if not most else str(most)) if least == most else f"{least} to {most}"


def _basis(experiment: dict[str, Any]) -> str:
    """The command behind a claim, and on how many seeds it rests."""
    words = shlex.split(experiment["command"])
    # Where the results lie and how many processes ran decide nothing.
    for option in ("--out", "--jobs"):
        if option in words:
            del words[words.index(option) : words.index(option) + 2]
    runs = _runs(experiment)
    return f"{shlex.join(words)}: {runs or 'no'} seed{'s' * (runs != '1')}"


def settings_of(results: Results, experiment: str) -> list[str]:
    """What the cells of an experiment were given, and the parameters of each method: all values seen."""
    seen: dict[str, dict[str, dict[str, None]]] = {"": defaultdict(dict)}
    for name in results.experiments[experiment]["files"]:
        table = name.removesuffix(".csv").removeprefix(experiment).removeprefix("-")
        for text in results.rows(experiment, table).settings.unique():
            given = json.loads(text)
            own = seen.setdefault(given.get("method", ""), defaultdict(dict))
            for mine, values in ((own, given.pop("params", None) or {}), (seen[""], given)):
                for key, value in values.items():
                    mine[key][str(value)] = None

    def said(found: dict[str, dict[str, None]]) -> str:
        named = {key: [value for value in values if value] for key, values in found.items()}
        return "; ".join(
            f"seed {values[0]} and {len(values) - 1} more"
            if key == "seed" and len(values) > 1
            else f"{key} {', '.join(values)}"
            for key, values in named.items()
        )

    return [f"{m}: {said(found)}" if m else said(found) for m, found in seen.items() if found]


def _provenance(results: Results) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Experiment": name,
            "Runs": _runs(e),
            "Cells": e["cells"],
            "Processor minutes": round(e["cpu_seconds"] / 60, 1),
            "Finished": f"{e['finished'][:10]} {e['finished'][11:16]} UTC",
            "Machine": "{processor}, {cores} cores, {system}".format(**e["machine"]),
            "Versions": ", ".join(f"{name} {version}" for name, version in e["versions"].items()),
            "Code": e["code"],
        }
        for name, e in results.experiments.items()
    )


def _same(frame: pd.DataFrame) -> list[str]:
    """Columns that are the same for all experiments, and are then said once in a sentence."""
    return [c for c in ("Finished", "Machine", "Versions", "Code") if frame[c].nunique() == 1]


def _how(results: Results) -> str:
    frame = _provenance(results)
    found = [f"{column}: {frame[column].iloc[0]}." for column in _same(frame)]
    found.append(PAGE_TEXTS["shared"].format(minutes=results.manifest["cpu_seconds"] / 60))
    found += [
        f"{entry['method']} on all digits took {entry['minutes']:.1f} minutes by the clock."
        for entry in results.manifest["slow"]
    ]
    found.append(PAGE_TEXTS["again"])
    return " ".join(found)


def _made(results: Results) -> Table:
    frame = _provenance(results)
    frame = frame.drop(columns=_same(frame)).astype(object)
    caption = "Where and when; minutes of cells that several experiments share are in each of them"
    rows = [list(row) for row in frame.itertuples(index=False)]
    return Table("provenance", caption, list(frame), rows)
