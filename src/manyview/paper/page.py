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
from jinja2 import Environment, StrictUndefined

from manyview.app.report import page as pg
from manyview.io.writing import claimed, restored

from .claims import (
    AGREES,
    ALIKE,
    DIFFERS,
    NOT_MEASURED,
    OWN,
    PARTLY,
    SAME,
    UNDECIDED,
    contributions,
    verdicts,
)
from .figures import Figure, figures, files, svgs
from .results import Results
from .tables import Table, as_csv, as_latex, as_markdown, of_claims, tables
from .texts import MEASURE_LIHC, TEXTS

PAGE = "reproduction.html"
#: What a verdict looks like. An answer to a question of ours is neither good nor bad for the paper.
_TONE = {AGREES: "good", PARTLY: "half", UNDECIDED: "open", DIFFERS: "bad", NOT_MEASURED: "open"}
_TONES = _TONE | dict.fromkeys(OWN.values(), "own")
PAGE_TEXTS: dict[str, str] = TEXTS["page"]


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
    environment = Environment(autoescape=False, undefined=StrictUndefined, trim_blocks=True)
    template = environment.from_string(_asset("reproduction.md.jinja"))
    return template.render(_seen(results), markdown=as_markdown, name=folder.name)


def _page(results: Results) -> str:
    parts = _asset("reproduction.jinja").split("{# part ")[1:]
    templates = {part.split(" ", 1)[0]: part.split("#}\n", 1)[1] for part in parts}
    seen = _seen(results)
    seen |= {"tone": _TONES, "cards": _cards, "table": _table, "panels": _panels}
    seen["tally"] = [(word, tone, n) for word, tone in _TONE.items()
                     if (n := [c.verdict for c in seen["found"] if not c.is_own].count(word))]  # fmt: skip

    def section(part: str, anchor: str, title: str, **own: Any) -> pg.Section:
        return pg.Section(anchor, title, pg.html(templates[part].strip(), **(seen | own)))

    diagram = pg.trusted(_asset("diagram.svg"))
    sections = [
        section("summary", "summary", "In short"),
        section("method", "method", "The method", svg=diagram),
    ]
    for name, experiment in results.experiments.items():
        own = {"experiment": experiment, "figures": figures(results, name)}
        own["settings"] = settings_of(results, name)
        sections.append(section("experiment", pg.file_stem(name), experiment["title"], **own))
    if "lihc" not in results.experiments:
        sections.append(section("absent", "lihc", "LIHC: not measured"))
    sections.append(section("made", "how", "How it was run"))
    css = _asset("reproduction.css")
    return pg.page("The paper, reproduced", sections, lead=seen["lead"], css=css)


def _seen(results: Results) -> dict[str, Any]:
    """What both templates show."""
    found = verdicts(results)
    most = max((entry["replications"] for entry in results.experiments.values()), default=0)
    runs = f"up to {most} runs" if most > 1 else "one run"
    claims, own = _claims(results)
    return {
        "lead": PAGE_TEXTS["lead"].format(runs=runs),
        "rules": PAGE_TEXTS["rules"].format(same=SAME, alike=ALIKE),
        "no_lihc": PAGE_TEXTS["no_lihc"],
        "measure_lihc": MEASURE_LIHC,
        "manifest": results.manifest,
        "experiments": results.experiments,
        "found": found,
        "lines": contributions(found),
        "claims": claims,
        "own": own,
        "tables": {name: tables(results, name) for name in results.experiments},
        "how": _how(results),
        "made": _made(results),
        "runs_of": _runs,
    }


def _claims(results: Results) -> tuple[Table, Table]:
    """The paper's claims, and what we observed besides."""
    found = verdicts(results)
    basis = {name: _basis(experiment) for name, experiment in results.experiments.items()}
    return of_claims(found, basis, own=False), of_claims(found, basis, own=True)


def _cards(body: Any, table: Table) -> Any:
    """A table of claims, which on a phone is a card for each, with the button that saves it."""
    return pg.with_csv(body, table.columns, table.rows, name=table.name, label=table.caption)


def _panels(figure: Figure) -> list[Any]:
    return list(zip(map(pg.trusted, svgs(figure)), figure.panels, strict=True))


def _table(table: Table) -> Any:
    return pg.table(table.columns, table.rows, name=table.name, caption=table.caption)


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


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
